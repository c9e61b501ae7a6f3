#include "client_core/base/zeroed_memory.h"

#include <sys/mman.h>

#include "client_core/base/check.h"

namespace onetrip {

namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

std::byte* MapPages(uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  return static_cast<std::byte*>(memory);
}

}  // namespace

ZeroedMemory::ZeroedMemory(uint64_t bytes, uint64_t huge_from) : bytes_(bytes) {
  if (bytes < huge_from) {
    start_ = MapPages(bytes);
    return;
  }
  // Not every kernel aligns large mappings: take more, and give the ends back.
  std::byte* memory = MapPages(bytes + kHugePageBytes);
  const uint64_t before = -reinterpret_cast<uintptr_t>(memory) % kHugePageBytes;
  start_ = memory + before;
  if (before > 0) munmap(memory, before);
  const uint64_t used = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  munmap(start_ + used, bytes + kHugePageBytes - before - used);
  (void)madvise(start_, bytes, MADV_HUGEPAGE);
}

ZeroedMemory::~ZeroedMemory() {
  if (start_ != nullptr) munmap(start_, bytes_);
}

}  // namespace onetrip
