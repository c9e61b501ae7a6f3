#include "redis_compat/values/packed.h"

#include <array>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr char kFormat = 1;
constexpr size_t kNumberBytesMax = 5;
constexpr unsigned kBits = 7;
constexpr unsigned kMore = 1u << kBits;

constexpr size_t NumberBytes(uint64_t number) {
  size_t bytes = 1;
  while ((number >>= kBits) != 0) ++bytes;
  return bytes;
}

using Number = std::array<char, kNumberBytesMax>;

// Writes `number` to the front of `to`, lowest bits first; returns how many bytes.
size_t PutNumber(uint64_t number, Number* to) {
  size_t bytes = 0;
  for (; number >= kMore; number >>= kBits) {
    (*to)[bytes++] = static_cast<char>(number | kMore);
  }
  (*to)[bytes++] = static_cast<char>(number);
  return bytes;
}

// The bytes of a number, given one after the other. False: there have been too many of them.
struct NumberReader {
  uint64_t number = 0;
  size_t bytes = 0;
  bool ends = false;

  bool Take(char byte) {
    if (bytes == kNumberBytesMax) return false;
    const auto bits = static_cast<unsigned char>(byte);
    number |= static_cast<uint64_t>(bits & (kMore - 1)) << (kBits * bytes++);
    ends = (bits & kMore) == 0;
    return true;
  }
};

}  // namespace

bool LoadPackedHeader(std::string_view value, PackedHeader* header) {
  if (value.size() < kPackedHeaderBytes || value[0] != kFormat) return false;
  header->flags = static_cast<uint8_t>(value[1]);
  header->elements = 0;
  for (size_t i = 0; i < 4; ++i) {
    header->elements |= static_cast<uint32_t>(static_cast<unsigned char>(value[4 + i])) << (8 * i);
  }
  return true;
}

std::string PackedHeaderBytes(const PackedHeader& header) {
  std::string bytes(kPackedHeaderBytes, '\0');
  StorePackedHeader(header, &bytes);
  return bytes;
}

void StorePackedHeader(const PackedHeader& header, std::string* value) {
  CHECK(value->size() >= kPackedHeaderBytes);
  (*value)[0] = kFormat;
  (*value)[1] = static_cast<char>(header.flags);
  (*value)[2] = (*value)[3] = 0;
  for (size_t i = 0; i < 4; ++i) {
    (*value)[4 + i] = static_cast<char>(header.elements >> (8 * i));
  }
}

size_t PackedEntryBytes(size_t bytes) {
  const size_t front = NumberBytes(bytes) + bytes;
  return front + NumberBytes(front);
}

void AppendPackedEntry(std::string_view bytes, std::string* to) {
  CHECK(bytes.size() <= UINT32_MAX);
  Number number;
  const size_t front = PutNumber(bytes.size(), &number);
  to->append(number.data(), front);
  to->append(bytes);
  for (size_t left = PutNumber(front + bytes.size(), &number); left > 0; --left) {
    to->push_back(number[left - 1]);
  }
}

bool PackedCursor::Next(std::string_view* bytes) {
  NumberReader size;
  size_t at = at_;
  while (!size.ends) {
    if (at >= entries_.size() || !size.Take(entries_[at++])) return false;
  }
  if (size.number > entries_.size() - at) return false;
  const size_t behind = at + size.number + NumberBytes(at - at_ + size.number);
  if (behind > entries_.size()) return false;
  *bytes = entries_.substr(at, size.number);
  at_ = behind;
  return true;
}

bool PackedCursor::Previous(std::string_view* bytes) {
  NumberReader size;
  size_t at = at_;
  while (!size.ends) {
    if (at == 0 || !size.Take(entries_[--at])) return false;
  }
  if (size.number > at) return false;
  PackedCursor front(entries_, at - size.number);
  const size_t begin = front.at_;
  if (!front.Next(bytes) || front.at_ != at_) return false;
  at_ = begin;
  return true;
}

}  // namespace onetrip
