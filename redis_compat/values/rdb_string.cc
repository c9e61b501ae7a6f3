#include "redis_compat/values/rdb_string.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is, too");

constexpr uint16_t kVersion = 10;  // Redis 7.0 writes it
constexpr size_t kFooterBytes = sizeof(uint16_t) + sizeof(uint64_t);
constexpr char kTypeString = 0;

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

// Table n: what a byte contributes when n bytes follow it. Eight bytes are looked up at a time.
using CrcTables = std::array<std::array<uint64_t, 256>, 8>;
constexpr CrcTables MakeCrcTables() {
  constexpr uint64_t kReflected = 0x95ac9329ac4bc9b5ULL;
  CrcTables tables{};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflected : 0);
    tables[0][byte] = crc;
  }
  for (size_t n = 1; n < tables.size(); ++n) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint64_t before = tables[n - 1][byte];
      tables[n][byte] = tables[0][before & 0xff] ^ (before >> 8);
    }
  }
  return tables;
}
constexpr CrcTables kCrcTables = MakeCrcTables();

template <typename Integer>
void Append(Integer value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendEncoding(uint8_t encoding, std::string* out) {
  out->push_back(static_cast<char>((kEncoded << 6) | encoding));
}

void AppendLength(uint64_t length, std::string* out) {
  if (length < (1U << 6)) {
    out->push_back(static_cast<char>((kLength6 << 6) | length));
  } else if (length < (1U << 14)) {
    out->push_back(static_cast<char>((kLength14 << 6) | (length >> 8)));
    out->push_back(static_cast<char>(length & 0xff));
  } else if (length <= std::numeric_limits<uint32_t>::max()) {
    out->push_back(static_cast<char>(kLength32));
    Append(__builtin_bswap32(static_cast<uint32_t>(length)), out);
  } else {
    out->push_back(static_cast<char>(kLength64));
    Append(__builtin_bswap64(length), out);
  }
}

// As an integer of up to 32 bits, if it is one in its canonical spelling.
bool AppendAsInteger(std::string_view value, std::string* out) {
  if (value.size() > kIntegerTextMax) return false;
  const auto number = ParseInt64(value);
  if (!number) return false;
  if (*number >= INT8_MIN && *number <= INT8_MAX) {
    AppendEncoding(kInt8, out);
    Append(static_cast<int8_t>(*number), out);
  } else if (*number >= INT16_MIN && *number <= INT16_MAX) {
    AppendEncoding(kInt16, out);
    Append(static_cast<int16_t>(*number), out);
  } else if (*number >= INT32_MIN && *number <= INT32_MAX) {
    AppendEncoding(kInt32, out);
    Append(static_cast<int32_t>(*number), out);
  } else {
    return false;
  }
  return true;
}

// Takes from the front of a payload.
class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  template <typename Integer>
  bool Take(Integer* value) {
    if (rest_.size() < sizeof(*value)) return false;
    std::memcpy(value, rest_.data(), sizeof(*value));
    rest_.remove_prefix(sizeof(*value));
    return true;
  }
  bool Take(uint64_t bytes, std::string_view* part) {
    if (rest_.size() < bytes) return false;
    *part = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return true;
  }
  // A length, or an encoding, which `encoded` tells.
  bool TakeLength(uint64_t* length, bool* encoded) {
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
  bool TakePlainLength(uint64_t* length) {
    bool encoded = false;
    return TakeLength(length, &encoded) && !encoded;
  }
  [[nodiscard]] bool empty() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

template <typename Integer>
bool TakeAsText(Reader* reader, std::string* value) {
  Integer number = 0;
  if (!reader->Take(&number)) return false;
  *value = std::to_string(number);
  return true;
}

bool LoadEncoded(Reader* reader, uint64_t encoding, uint64_t bytes_max, DumpedString* string) {
  string->form = DumpedString::Form::kInteger;
  if (encoding == kInt8) return TakeAsText<int8_t>(reader, &string->integer);
  if (encoding == kInt16) return TakeAsText<int16_t>(reader, &string->integer);
  if (encoding == kInt32) return TakeAsText<int32_t>(reader, &string->integer);
  string->form = DumpedString::Form::kCompressed;
  uint64_t compressed_bytes = 0;
  return encoding == kCompressed && reader->TakePlainLength(&compressed_bytes) &&
         reader->TakePlainLength(&string->value_bytes) && string->value_bytes <= bytes_max &&
         reader->Take(compressed_bytes, &string->bytes);
}

}  // namespace

uint64_t Crc64(std::string_view bytes, uint64_t before) {
  uint64_t crc = before;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof(word));
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kCrcTables[7 - i][(word >> (8 * i)) & 0xff];
  }
  for (const char c : bytes) {
    crc = kCrcTables[0][(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  }
  return crc;
}

DumpParts BeginDump(std::string_view value) {
  DumpParts parts{std::string(1, kTypeString), {}};
  if (!AppendAsInteger(value, &parts.head)) {
    AppendLength(value.size(), &parts.head);
    parts.plain = value;
  }
  return parts;
}

std::string DumpFooter(uint64_t crc) {
  std::string footer;
  Append(kVersion, &footer);
  Append(Crc64(footer, crc), &footer);
  return footer;
}

bool LoadDumpChecksum(std::string_view payload, DumpChecksum* checksum) {
  if (payload.size() < kFooterBytes) return false;
  uint16_t version = 0;
  const char* const footer = payload.data() + payload.size() - kFooterBytes;
  std::memcpy(&version, footer, sizeof(version));
  std::memcpy(&checksum->crc, footer + sizeof(version), sizeof(checksum->crc));
  checksum->checked_bytes = payload.size() - sizeof(checksum->crc);
  return version <= kVersion;
}

bool LoadString(std::string_view payload, uint64_t bytes_max, DumpedString* string) {
  Reader reader(payload.substr(0, payload.size() - kFooterBytes));
  char type = 0;
  uint64_t length = 0;
  bool encoded = false;
  if (!reader.Take(&type) || type != kTypeString || !reader.TakeLength(&length, &encoded)) {
    return false;
  }
  if (encoded) return LoadEncoded(&reader, length, bytes_max, string);
  return length <= bytes_max && reader.Take(length, &string->bytes);
}

bool Decompressor::Advance(size_t bytes) {
  const size_t end = bytes < to_.size() - made_ ? made_ + bytes : to_.size();
  while (made_ < end && taken_ < from_.size()) {
    if (!TakeOne()) return false;
  }
  // Nothing more to make, and still something to take, or the other way round.
  return is_done() || (made_ < to_.size() && taken_ < from_.size());
}

bool Decompressor::TakeOne() {
  const auto next = [this] { return static_cast<uint8_t>(from_[taken_++]); };
  const size_t room = to_.size() - made_;
  const uint8_t control = next();
  if (control < 32) {
    const size_t run = control + 1U;
    if (from_.size() - taken_ < run || room < run) return false;
    std::memcpy(to_.data() + made_, from_.data() + taken_, run);
    taken_ += run;
    made_ += run;
    return true;
  }
  size_t length = control >> 5;
  if (length == 7) {
    if (taken_ == from_.size()) return false;
    length += next();
  }
  length += 2;
  if (taken_ == from_.size()) return false;
  const size_t back = ((control & 31U) << 8 | next()) + 1;
  if (back > made_ || room < length) return false;
  // Byte by byte: what is referred to may be what is being written.
  for (size_t n = 0; n < length; ++n, ++made_) to_[made_] = to_[made_ - back];
  return true;
}

}  // namespace onetrip
