#include "client_core/verbs/arena.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/log.h"

namespace onetrip {

size_t VerbsArena::SizeOf(size_t bytes) {
  const size_t rounded = std::bit_ceil(std::max(bytes, kBytesMin));
  const auto size = static_cast<size_t>(std::countr_zero(rounded / kBytesMin));
  CHECK(size < kSizes);
  return size;
}

void* VerbsArena::Take(size_t bytes) {
  const size_t size = SizeOf(bytes);
  if (!free_[size].empty()) {
    void* const memory = free_[size].back();
    free_[size].pop_back();
    return memory;
  }
  const uint64_t all = kBytesMin << size;
  if (chunks_.empty() || chunks_.back().memory.bytes() - chunks_.back().used < all) {
    std::string reason;
    const Status grown = Grow(std::max(all, kChunkBytes), &reason);
    if (!grown.ok()) LogError(reason);
    CHECK(grown.ok());
  }
  Chunk& chunk = chunks_.back();
  std::byte* const memory = chunk.memory.start() + chunk.used;
  chunk.used += all;
  return memory;
}

Status VerbsArena::Grow(uint64_t bytes, std::string* reason) {
  Chunk chunk{ZeroedMemory(bytes), nullptr};
  auto known =
      VerbsMemory::Register(device_, chunk.memory.start(), bytes, VerbsMemory::Use::kLocal, reason);
  if (!known.ok()) return known.status();
  chunk.known = std::move(known.value());
  chunks_.push_back(std::move(chunk));
  return Status::Ok();
}

void VerbsArena::Give(void* memory, size_t bytes) { free_[SizeOf(bytes)].push_back(memory); }

bool VerbsArena::FindKey(const std::byte* start, uint64_t bytes, uint32_t* key) const {
  for (const Chunk& chunk : chunks_) {
    const std::byte* const first = chunk.memory.start();
    if (start < first || start + bytes > first + chunk.memory.bytes()) continue;
    *key = chunk.known->local_key();
    return true;
  }
  return false;
}

}  // namespace onetrip
