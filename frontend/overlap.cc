#include "frontend/overlap.h"

#include <algorithm>

namespace onetrip {

bool Overlap::Has(std::string_view key) const {
  return std::any_of(calls_.begin(), calls_.end(),
                     [key](const Call& call) { return !call.is_done_ && call.key_ == key; });
}

bool Overlap::MustAwait(std::string_view key) const {
  return std::any_of(calls_.begin(), calls_.end(), [key](const Call& call) {
    return !call.is_done_ && !call.in_order_.has_place && call.key_ == key;
  });
}

void Overlap::End(Call& call, OutputBuffer& output) {
  call.is_done_ = true;
  while (!calls_.empty() && calls_.front().is_done_) {
    output.AppendAll(calls_.front().out_.buffer());
    calls_.pop_front();
  }
  ended_.Set();
}

size_t Overlap::memory_bytes() const {
  size_t bytes = sizeof(*this) + calls_.size() * sizeof(Call);
  for (const auto& buffer : buffers_) bytes += sizeof(*buffer) + buffer->memory_bytes();
  return bytes;
}

OutputBuffer* Overlap::NewBuffer() {
  if (free_.empty()) {
    buffers_.push_back(std::make_unique<OutputBuffer>(kChunkBytes));
    free_.push_back(buffers_.back().get());
  }
  OutputBuffer* const buffer = free_.back();
  free_.pop_back();
  return buffer;
}

}  // namespace onetrip
