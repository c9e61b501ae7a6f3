#include "client_core/store/store.h"

#include <algorithm>
#include <cstring>

#include "client_core/base/check.h"
#include "client_core/layout/record.h"

namespace onetrip {

ValuePart PartOf(uint64_t value_bytes, ValueRange range) {
  const auto size = static_cast<int64_t>(value_bytes);
  if (range.first < 0 && range.last < 0 && range.first > range.last) return {};
  const auto from_front = [size](int64_t index) {
    return std::max<int64_t>(index < 0 ? size + index : index, 0);
  };
  const int64_t first = from_front(range.first);
  const int64_t last = std::min(from_front(range.last), size - 1);
  if (size == 0 || first > last) return {};
  return {static_cast<uint64_t>(first), static_cast<uint64_t>(last - first + 1)};
}

void NewRecord::CopyTo(uint64_t offset, std::span<char> to) const {
  // Nearly every value is a SET's, in one piece.
  if (to.size() == head.size() && offset == 0) {
    if (!to.empty()) std::memcpy(to.data(), head.data(), to.size());
    return;
  }
  // Takes what lies before the part that begins `length` bytes further on.
  const auto copy = [&](const char* from, uint64_t length) {
    if (offset >= length) {
      offset -= length;
      return;
    }
    const uint64_t bytes = std::min<uint64_t>(length - offset, to.size());
    if (bytes > 0 && from != nullptr) std::memcpy(to.data(), from + offset, bytes);
    if (bytes > 0 && from == nullptr) std::memset(to.data(), 0, bytes);
    to = to.subspan(bytes);
    offset = 0;
  };
  copy(head.data(), head.size());
  copy(nullptr, gap_bytes);
  copy(tail.data(), tail.size());
  copy(rest.data(), rest.size());
  CHECK(to.empty());
}

Status CheckSizes(const Key& key, const NewRecord& record) {
  if (key.bytes.size() > kMaxKeyBytes) {
    return Status(StatusCode::kTooLarge, "key is longer than 65535 bytes");
  }
  if (record.bytes() > kMaxValueBytes) {
    return Status(StatusCode::kTooLarge, "value is longer than 512 MiB");
  }
  return Status::Ok();
}

}  // namespace onetrip
