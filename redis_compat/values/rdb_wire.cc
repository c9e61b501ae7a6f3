#include "redis_compat/values/rdb_wire.h"

#include <limits>

#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

// The first two bits of a length say how it goes on.
constexpr uint8_t kLength6 = 0;
constexpr uint8_t kLength14 = 1;
constexpr uint8_t kLength32 = 0x80;  // the whole byte
constexpr uint8_t kLength64 = 0x81;
constexpr uint8_t kEncoded = 3;
// The other six bits tell the encoding then.
constexpr uint8_t kInt8 = 0;
constexpr uint8_t kInt16 = 1;
constexpr uint8_t kInt32 = 2;
constexpr uint8_t kCompressed = 3;
// Strings up to this length are looked at for integers.
constexpr size_t kIntegerTextMax = 11;

void AppendEncoding(uint8_t encoding, std::string* out) {
  out->push_back(static_cast<char>((kEncoded << 6) | encoding));
}

// As an integer of up to 32 bits, if it is one in its canonical spelling.
bool AppendAsInteger(std::string_view value, std::string* out) {
  if (value.size() > kIntegerTextMax) return false;
  const auto number = ParseInt64(value);
  if (!number) return false;
  if (*number >= INT8_MIN && *number <= INT8_MAX) {
    AppendEncoding(kInt8, out);
    AppendRdbNumber(static_cast<int8_t>(*number), out);
  } else if (*number >= INT16_MIN && *number <= INT16_MAX) {
    AppendEncoding(kInt16, out);
    AppendRdbNumber(static_cast<int16_t>(*number), out);
  } else if (*number >= INT32_MIN && *number <= INT32_MAX) {
    AppendEncoding(kInt32, out);
    AppendRdbNumber(static_cast<int32_t>(*number), out);
  } else {
    return false;
  }
  return true;
}

template <typename Integer>
bool TakeAsText(RdbReader* reader, std::string* value) {
  Integer number = 0;
  if (!reader->Take(&number)) return false;
  *value = std::to_string(number);
  return true;
}

}  // namespace

void AppendRdbLength(uint64_t length, std::string* out) {
  if (length < (1U << 6)) {
    out->push_back(static_cast<char>((kLength6 << 6) | length));
  } else if (length < (1U << 14)) {
    out->push_back(static_cast<char>((kLength14 << 6) | (length >> 8)));
    out->push_back(static_cast<char>(length & 0xff));
  } else if (length <= std::numeric_limits<uint32_t>::max()) {
    out->push_back(static_cast<char>(kLength32));
    AppendRdbNumber(__builtin_bswap32(static_cast<uint32_t>(length)), out);
  } else {
    out->push_back(static_cast<char>(kLength64));
    AppendRdbNumber(__builtin_bswap64(length), out);
  }
}

std::string_view AppendRdbHead(std::string_view string, std::string* out) {
  if (AppendAsInteger(string, out)) return {};
  AppendRdbLength(string.size(), out);
  return string;
}

void StoreRdbLength32(uint32_t length, char* to) {
  const uint32_t swapped = __builtin_bswap32(length);
  *to = static_cast<char>(kLength32);
  std::memcpy(to + 1, &swapped, sizeof(swapped));
}

bool RdbReader::TakeLengthOrEncoding(uint64_t* length, bool* encoded) {
  uint8_t first = 0;
  if (!Take(&first)) return false;
  *encoded = first >> 6 == kEncoded;
  *length = first & 63;
  if (*encoded || first >> 6 == kLength6) return true;
  if (first >> 6 == kLength14) {
    uint8_t second = 0;
    if (!Take(&second)) return false;
    *length = (*length << 8) | second;
    return true;
  }
  uint32_t length32 = 0;
  if (first == kLength32) {
    if (!Take(&length32)) return false;
    *length = __builtin_bswap32(length32);
    return true;
  }
  if (first != kLength64 || !Take(length)) return false;
  *length = __builtin_bswap64(*length);
  return true;
}

bool RdbReader::TakeLength(uint64_t* length) {
  bool encoded = false;
  return TakeLengthOrEncoding(length, &encoded) && !encoded;
}

bool RdbReader::TakeString(uint64_t bytes_max, DumpedString* string) {
  uint64_t length = 0;
  bool encoded = false;
  if (!TakeLengthOrEncoding(&length, &encoded)) return false;
  if (encoded) return TakeEncoded(length, bytes_max, string);
  string->form = DumpedString::Form::kPlain;
  return length <= bytes_max && Take(length, &string->bytes);
}

bool RdbReader::TakeEncoded(uint64_t encoding, uint64_t bytes_max, DumpedString* string) {
  string->form = DumpedString::Form::kInteger;
  if (encoding == kInt8) return TakeAsText<int8_t>(this, &string->integer);
  if (encoding == kInt16) return TakeAsText<int16_t>(this, &string->integer);
  if (encoding == kInt32) return TakeAsText<int32_t>(this, &string->integer);
  string->form = DumpedString::Form::kCompressed;
  uint64_t compressed_bytes = 0;
  return encoding == kCompressed && TakeLength(&compressed_bytes) &&
         TakeLength(&string->value_bytes) && string->value_bytes <= bytes_max &&
         Take(compressed_bytes, &string->bytes);
}

}  // namespace onetrip
