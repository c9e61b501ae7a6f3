#include "frontend/query_buffer.h"

#include <algorithm>
#include <utility>

namespace onetrip {

std::span<char> QueryBuffer::Room(size_t wanted) {
  wanted = std::max(wanted, kRoomMinBytes);
  const size_t held = size();
  if (capacity() - end_ < wanted) {
    if (Fits(wanted)) {
      std::memmove(start(), start() + begin_, held);
      begin_ = 0;
      end_ = held;
    } else {
      MoveTo(BytesFor(wanted));
    }
  }
  return {start() + end_, capacity() - end_};
}

size_t QueryBuffer::BytesFor(size_t wanted) const {
  const size_t needed = size() + wanted + (wanted > kLargeBytes ? kSpareBytes : kRoomMinBytes);
  // Doubling bounds the copying for a command of many arguments.
  return std::max({kFirstBytes, needed, size() > 0 ? 2 * capacity() : 0});
}

void QueryBuffer::MoveTo(size_t bytes) {
  LargeMemory memory(bytes);
  if (size() > 0) std::memcpy(memory.start(), start() + begin_, size());
  TakeCopy(std::move(memory));
}

void QueryBuffer::TakeCopy(LargeMemory memory) {
  const size_t held = size();
  CHECK(memory.bytes() > held);
  memory_ = std::move(memory);
  begin_ = 0;
  end_ = held;
}

void QueryBuffer::Release() {
  CHECK(size() == 0);
  memory_ = LargeMemory();
  begin_ = end_ = 0;
}

void QueryBuffer::Shrink() {
  if (capacity() <= kLargeBytes || size() > kLargeBytes / 2) return;
  size() == 0 ? Release() : MoveTo(std::max(kFirstBytes, 2 * size()));
}

void QueryBuffer::ShrinkToRecent() {
  const size_t recent = std::exchange(recent_bytes_, size());
  if (size() > 0 || capacity() <= kSmallBytes || 2 * recent >= capacity()) return;
  MoveTo(std::max(kFirstBytes, 2 * recent));
}

}  // namespace onetrip
