#include "redis_compat/protocol/output_buffer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace onetrip {

void OutputBuffer::SealOpen() {
  if (cursor_ == begin_) return;
  const char* const base = open_.get();
  sealed_.push_back(Sealed{std::move(open_), nullptr, base, static_cast<size_t>(limit_ - base),
                           static_cast<size_t>(begin_ - base),
                           static_cast<size_t>(cursor_ - base)});
  sealed_bytes_ += static_cast<size_t>(cursor_ - begin_);
  begin_ = cursor_ = limit_ = nullptr;
}

void OutputBuffer::AppendShared(std::shared_ptr<const void> owner, std::string_view bytes) {
  if (bytes.empty()) return;
  SealOpen();
  sealed_.push_back(Sealed{nullptr, std::move(owner), bytes.data(), bytes.size(), 0, bytes.size()});
  sealed_bytes_ += bytes.size();
  memory_bytes_ += bytes.size();
}

void OutputBuffer::AppendAll(OutputBuffer& from) {
  std::array<std::string_view, 1> all;
  if (from.size() <= kChunkBytes && from.Views(all) == 1 && all[0].size() == from.size()) {
    Append(all[0]);
    from.Consume(from.size());
    return;
  }
  SealOpen();
  from.SealOpen();
  for (size_t i = from.sealed_head_; i < from.sealed_.size(); ++i) {
    memory_bytes_ += from.sealed_[i].capacity;
    from.memory_bytes_ -= from.sealed_[i].capacity;
    sealed_.push_back(std::move(from.sealed_[i]));
  }
  sealed_bytes_ += from.sealed_bytes_;
  from.consumed_bytes_ += std::exchange(from.sealed_bytes_, 0);
  from.sealed_.clear();
  from.sealed_head_ = 0;
}

void OutputBuffer::AddChunk(size_t bytes) {
  SealOpen();
  if (open_ != nullptr) memory_bytes_ -= static_cast<size_t>(limit_ - open_.get());
  const size_t capacity = std::max(bytes, chunk_bytes_);
  open_ = std::make_unique_for_overwrite<char[]>(capacity);
  begin_ = cursor_ = open_.get();
  limit_ = begin_ + capacity;
  memory_bytes_ += capacity;
}

size_t OutputBuffer::Views(std::span<std::string_view> views) const {
  size_t count = 0;
  for (size_t i = sealed_head_; i < sealed_.size() && count < views.size(); ++i) {
    const Sealed& chunk = sealed_[i];
    views[count++] = std::string_view(chunk.start + chunk.begin, chunk.end - chunk.begin);
  }
  if (cursor_ != begin_ && count < views.size()) {
    views[count++] = std::string_view(begin_, static_cast<size_t>(cursor_ - begin_));
  }
  return count;
}

size_t OutputBuffer::LargestShared() const {
  size_t largest = 0;
  for (size_t i = sealed_head_; i < sealed_.size(); ++i) {
    if (sealed_[i].owner != nullptr) largest = std::max(largest, sealed_[i].end - sealed_[i].begin);
  }
  return largest;
}

void OutputBuffer::Consume(size_t bytes) {
  CHECK(bytes <= size());
  consumed_bytes_ += bytes;
  while (bytes > 0 && sealed_head_ < sealed_.size()) {
    Sealed& chunk = sealed_[sealed_head_];
    const size_t taken = std::min(bytes, chunk.end - chunk.begin);
    chunk.begin += taken;
    sealed_bytes_ -= taken;
    bytes -= taken;
    if (chunk.begin == chunk.end) {
      memory_bytes_ -= chunk.capacity;
      chunk.memory.reset();
      chunk.owner.reset();
      ++sealed_head_;
    }
  }
  if (sealed_head_ == sealed_.size()) {
    sealed_.clear();
    sealed_head_ = 0;
  }
  begin_ += bytes;
  if (begin_ != cursor_) {
    return;
  }
  // Empty: start again at the front, but do not hold on to a chunk made for one large reply.
  if (open_ != nullptr && static_cast<size_t>(limit_ - open_.get()) > kChunkBytes) {
    memory_bytes_ -= static_cast<size_t>(limit_ - open_.get());
    open_.reset();
    limit_ = nullptr;
  }
  begin_ = cursor_ = open_.get();
}

bool OutputBuffer::RollBackTo(uint64_t position) {
  if (position < consumed_bytes_) {
    return false;
  }
  const auto kept = static_cast<size_t>(position - consumed_bytes_);
  CHECK(kept <= size());
  if (kept >= sealed_bytes_) {
    cursor_ = begin_ + (kept - sealed_bytes_);
    return true;
  }
  // The place lies in a sealed chunk: empty the open one and cut the chunks behind the place short.
  cursor_ = begin_;
  size_t excess = sealed_bytes_ - kept;
  sealed_bytes_ = kept;
  while (excess > 0) {
    Sealed& last = sealed_.back();
    const size_t dropped = std::min(excess, last.end - last.begin);
    last.end -= dropped;
    excess -= dropped;
    if (last.begin == last.end) {
      memory_bytes_ -= last.capacity;
      sealed_.pop_back();
    }
  }
  return true;
}

void OutputBuffer::Release() {
  CHECK(empty());
  open_.reset();
  begin_ = cursor_ = limit_ = nullptr;
  sealed_.clear();
  sealed_.shrink_to_fit();
  sealed_head_ = 0;
  memory_bytes_ = 0;
}

std::string OutputBuffer::TEST_ToString() const {
  std::string all;
  std::vector<std::string_view> views(sealed_.size() + 1);
  views.resize(Views(views));
  for (const std::string_view view : views) {
    all.append(view);
  }
  return all;
}

}  // namespace onetrip
