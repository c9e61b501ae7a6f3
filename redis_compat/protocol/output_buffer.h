// OutputBuffer: the replies of one connection that the socket has not taken yet.
//
// A list of chunks: appending never moves bytes that are already there, so a large reply costs one
// copy and the frontend hands the chunks to one writev. After warm-up small replies allocate
// nothing: the last chunk is kept when the buffer runs empty. Not thread-safe.
#ifndef ONETRIP_REDIS_COMPAT_PROTOCOL_OUTPUT_BUFFER_H_
#define ONETRIP_REDIS_COMPAT_PROTOCOL_OUTPUT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/check.h"

namespace onetrip {

class OutputBuffer {
 public:
  static constexpr size_t kChunkBytes = size_t{16} << 10;

  // `chunk_bytes`: what it takes at a time, unless a reply needs more.
  explicit OutputBuffer(size_t chunk_bytes = kChunkBytes) : chunk_bytes_(chunk_bytes) {}
  OutputBuffer(const OutputBuffer&) = delete;
  OutputBuffer& operator=(const OutputBuffer&) = delete;

  // Room for `bytes` contiguous bytes behind the last one; the caller writes them and calls
  // Commit() with how many it used. The pointer is valid until the next call of any other method.
  char* Reserve(size_t bytes) {
    if (static_cast<size_t>(limit_ - cursor_) < bytes) [[unlikely]] {
      AddChunk(bytes);
    }
    return cursor_;
  }

  // REQUIRES: `bytes` is at most what was reserved.
  void Commit(size_t bytes) { cursor_ += bytes; }

  void Append(std::string_view text) {
    if (text.empty()) return;  // memcpy takes no null pointer, and an empty view may have one.
    std::memcpy(Reserve(text.size()), text.data(), text.size());
    Commit(text.size());
  }

  // The same without a copy: `owner` keeps `bytes` until they are sent.
  void AppendShared(std::shared_ptr<const void> owner, std::string_view bytes);

  // The same for all that waits in `from`, which is empty afterwards.
  void AppendAll(OutputBuffer& from);

  // Bytes waiting to be sent.
  [[nodiscard]] size_t size() const {
    return sealed_bytes_ + static_cast<size_t>(cursor_ - begin_);
  }
  [[nodiscard]] bool empty() const { return size() == 0; }
  // The most of them that one owner keeps.
  [[nodiscard]] size_t LargestShared() const;

  // Fills `views` with the waiting bytes from the front, as many chunks as fit; returns how many
  // were filled. For writev.
  size_t Views(std::span<std::string_view> views) const;

  // Bytes ever appended: the name of a place to roll back to.
  [[nodiscard]] uint64_t position() const { return consumed_bytes_ + size(); }

  // Drops everything appended since position() was `position`, so that a reply begun may become an
  // error. Returns false, and drops nothing, if some of it has been consumed already.
  bool RollBackTo(uint64_t position);

  // Drops `bytes` from the front: the socket took them. REQUIRES: bytes <= size().
  void Consume(size_t bytes);

  // Gives all memory back, kept chunk included. REQUIRES: empty().
  void Release();

  // Drops everything; keeps one chunk.
  void Clear() { Consume(size()); }

  // Bytes of memory held, for CLIENT LIST.
  [[nodiscard]] size_t memory_bytes() const { return memory_bytes_; }

  // Everything as one string; for tests and tools.
  [[nodiscard]] std::string TEST_ToString() const;

 private:
  // A full chunk, waiting in front of the open one.
  struct Sealed {
    std::unique_ptr<char[]> memory;
    std::shared_ptr<const void> owner;  // keeps foreign bytes, which begin at `start`
    const char* start = nullptr;
    size_t capacity = 0;
    size_t begin = 0;
    size_t end = 0;
  };

  void AddChunk(size_t bytes);
  // The open chunk goes to the end of the queue, if anything is in it.
  void SealOpen();

  const size_t chunk_bytes_;
  // The open chunk: [begin_, cursor_) is waiting, [cursor_, limit_) is free.
  std::unique_ptr<char[]> open_;
  char* begin_ = nullptr;
  char* cursor_ = nullptr;
  char* limit_ = nullptr;
  std::vector<Sealed> sealed_;
  size_t sealed_head_ = 0;  // First chunk not fully sent.
  size_t sealed_bytes_ = 0;
  uint64_t consumed_bytes_ = 0;
  size_t memory_bytes_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PROTOCOL_OUTPUT_BUFFER_H_
