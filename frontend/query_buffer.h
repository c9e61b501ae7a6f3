// QueryBuffer: the bytes one client has sent and that no command has consumed yet.
//
// Contiguous, so that the arguments of a command are views into it and a payload is copied once
// only, from the kernel to here. It grows to what a command needs and gives memory back when told
// to. Views into it die with Room() and Release(). Not thread-safe.
#ifndef ONETRIP_FRONTEND_QUERY_BUFFER_H_
#define ONETRIP_FRONTEND_QUERY_BUFFER_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "client_core/base/check.h"
#include "client_core/base/large_memory.h"

namespace onetrip {

class QueryBuffer {
 public:
  static constexpr size_t kFirstBytes = size_t{16} << 10;

  [[nodiscard]] std::string_view data() const { return {start() + begin_, end_ - begin_}; }
  [[nodiscard]] size_t size() const { return end_ - begin_; }
  [[nodiscard]] size_t capacity() const { return memory_.bytes(); }

  // Writable bytes behind the data: at least `wanted`, and enough for a read to be worth its
  // system call. May move the data.
  std::span<char> Room(size_t wanted);
  // True if Room(wanted) would not have to take other memory; BytesFor() tells how much that is.
  [[nodiscard]] bool Fits(size_t wanted) const {
    return capacity() - size() >= std::max(wanted, kRoomMinBytes);
  }
  [[nodiscard]] size_t BytesFor(size_t wanted) const;
  // Goes on in `memory`, which begins with a copy of data(). REQUIRES: it is larger than that.
  void TakeCopy(LargeMemory memory);
  // The first `bytes` of the last Room() now hold data.
  void Commit(size_t bytes) {
    CHECK(bytes <= capacity() - end_);
    end_ += bytes;
    recent_bytes_ = std::max(recent_bytes_, size());
  }
  // Drops `bytes` from the front. REQUIRES: bytes <= size().
  void Consume(size_t bytes) {
    CHECK(bytes <= size());
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  // Gives all memory back. REQUIRES: size() is 0.
  void Release();
  // Gives back what a large command has left behind, if it is done; may move the data.
  void Shrink();
  // Called regularly, gives back what an empty buffer has not needed since the last call, if that
  // is more than half of it.
  void ShrinkToRecent();

 private:
  // Less room than this behind the data, and the data moves.
  static constexpr size_t kRoomMinBytes = 4096;
  // Behind a large request's known bytes: for arguments that follow a large one, which then need
  // not be moved.
  static constexpr size_t kSpareBytes = size_t{64} << 10;
  // From here on memory is not kept for what comes next.
  static constexpr size_t kLargeBytes = size_t{1} << 20;
  // Up to here it is.
  static constexpr size_t kSmallBytes = size_t{32} << 10;

  [[nodiscard]] char* start() const { return reinterpret_cast<char*>(memory_.start()); }
  // Moves the data to memory of `bytes`.
  void MoveTo(size_t bytes);

  LargeMemory memory_;
  size_t begin_ = 0;
  size_t end_ = 0;
  size_t recent_bytes_ = 0;  // the most that it held since ShrinkToRecent()
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_QUERY_BUFFER_H_
