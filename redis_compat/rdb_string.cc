#include "redis_compat/rdb_string.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "redis_compat/numbers.h"

namespace onetrip {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is, too");

constexpr uint16_t kVersion = 10;  // of Redis 7.0
constexpr size_t kFooterBytes = sizeof(uint16_t) + sizeof(uint64_t);
constexpr char kTypeString = 0;

// The first two bits of a length say how it goes on.
constexpr uint8_t kLength6 = 0;
constexpr uint8_t kLength14 = 1;
constexpr uint8_t kLength32 = 0x80;  // the whole byte
constexpr uint8_t kLength64 = 0x81;
constexpr uint8_t kEncoded = 3;
// What the other six say then.
constexpr uint8_t kInt8 = 0;
constexpr uint8_t kInt16 = 1;
constexpr uint8_t kInt32 = 2;
constexpr uint8_t kCompressed = 3;
// Strings up to this length are looked at for integers.
constexpr size_t kIntegerTextMax = 11;

constexpr std::array<uint64_t, 256> MakeCrcTable() {
  constexpr uint64_t kReflected = 0x95ac9329ac4bc9b5ULL;
  std::array<uint64_t, 256> table{};
  for (uint64_t byte = 0; byte < 256; ++byte) {
    uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflected : 0);
    table[byte] = crc;
  }
  return table;
}
constexpr std::array<uint64_t, 256> kCrcTable = MakeCrcTable();

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

// LZF: literal runs of up to 32 bytes, and references of up to 8,192 bytes back. False: damaged.
bool Decompress(std::string_view from, uint64_t bytes, std::string* to) {
  to->clear();
  to->reserve(bytes);
  for (size_t i = 0; i < from.size();) {
    const auto control = static_cast<uint8_t>(from[i++]);
    if (control < 32) {
      const size_t run = control + 1U;
      if (from.size() - i < run || bytes - to->size() < run) return false;
      to->append(from.substr(i, run));
      i += run;
      continue;
    }
    size_t length = control >> 5;
    if (length == 7) {
      if (i == from.size()) return false;
      length += static_cast<uint8_t>(from[i++]);
    }
    length += 2;
    if (i == from.size()) return false;
    const size_t back = ((control & 31U) << 8 | static_cast<uint8_t>(from[i++])) + 1;
    if (back > to->size() || bytes - to->size() < length) return false;
    // Byte by byte: what is referred to may be what is being written.
    for (size_t n = 0; n < length; ++n) to->push_back((*to)[to->size() - back]);
  }
  return to->size() == bytes;
}

template <typename Integer>
bool TakeAsText(Reader* reader, std::string* value) {
  Integer number = 0;
  if (!reader->Take(&number)) return false;
  *value = std::to_string(number);
  return true;
}

bool LoadEncoded(Reader* reader, uint64_t encoding, uint64_t bytes_max, std::string* value) {
  if (encoding == kInt8) return TakeAsText<int8_t>(reader, value);
  if (encoding == kInt16) return TakeAsText<int16_t>(reader, value);
  if (encoding == kInt32) return TakeAsText<int32_t>(reader, value);
  uint64_t compressed_bytes = 0;
  uint64_t bytes = 0;
  std::string_view compressed;
  return encoding == kCompressed && reader->TakePlainLength(&compressed_bytes) &&
         reader->TakePlainLength(&bytes) && bytes <= bytes_max &&
         reader->Take(compressed_bytes, &compressed) && Decompress(compressed, bytes, value);
}

}  // namespace

uint64_t Crc64(std::string_view bytes) {
  uint64_t crc = 0;
  for (const char c : bytes) crc = kCrcTable[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return crc;
}

std::string DumpString(std::string_view value) {
  std::string payload(1, kTypeString);
  if (!AppendAsInteger(value, &payload)) {
    AppendLength(value.size(), &payload);
    payload.append(value);
  }
  Append(kVersion, &payload);
  Append(Crc64(payload), &payload);
  return payload;
}

bool IsSoundDump(std::string_view payload) {
  if (payload.size() < kFooterBytes) return false;
  uint16_t version = 0;
  uint64_t crc = 0;
  const char* const footer = payload.data() + payload.size() - kFooterBytes;
  std::memcpy(&version, footer, sizeof(version));
  std::memcpy(&crc, footer + sizeof(version), sizeof(crc));
  return version <= kVersion && crc == Crc64(payload.substr(0, payload.size() - sizeof(crc)));
}

bool LoadString(std::string_view payload, uint64_t bytes_max, std::string* value) {
  Reader reader(payload.substr(0, payload.size() - kFooterBytes));
  char type = 0;
  uint64_t length = 0;
  bool encoded = false;
  if (!reader.Take(&type) || type != kTypeString || !reader.TakeLength(&length, &encoded)) {
    return false;
  }
  if (encoded) return LoadEncoded(&reader, length, bytes_max, value);
  std::string_view plain;
  if (length > bytes_max || !reader.Take(length, &plain)) return false;
  *value = plain;
  return true;
}

}  // namespace onetrip
