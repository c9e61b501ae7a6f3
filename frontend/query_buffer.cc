#include "frontend/query_buffer.h"

#include <algorithm>

namespace onetrip {
namespace {

// Less room than this behind the data, and the data moves to the front.
constexpr size_t kRoomMinBytes = 4096;

}  // namespace

std::span<char> QueryBuffer::Room(size_t wanted) {
  wanted = std::max(wanted, kRoomMinBytes);
  const size_t held = size();
  if (capacity_ - end_ < wanted) {
    if (capacity_ - held >= wanted) {
      std::memmove(memory_.get(), memory_.get() + begin_, held);
    } else {
      // Doubling bounds the copying for a command of many arguments.
      const size_t larger = std::max({kFirstBytes, held + wanted, held > 0 ? 2 * capacity_ : 0});
      std::unique_ptr<char[]> memory(new char[larger]);
      if (held > 0) std::memcpy(memory.get(), memory_.get() + begin_, held);
      memory_ = std::move(memory);
      capacity_ = larger;
    }
    begin_ = 0;
    end_ = held;
  }
  return {memory_.get() + end_, capacity_ - end_};
}

void QueryBuffer::Release() {
  CHECK(size() == 0);
  memory_.reset();
  capacity_ = 0;
  begin_ = end_ = 0;
}

}  // namespace onetrip
