// Numbers, lengths and strings as they lie in RDB: what payloads of all types are made of.
//
// Pure; any thread. Payloads come from clients: nothing here trusts them.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_RDB_WIRE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_RDB_WIRE_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "redis_compat/values/rdb_string.h"

namespace onetrip {

static_assert(std::endian::native == std::endian::little, "the format is, too");

template <typename Number>
void AppendRdbNumber(Number value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// Appends a length, or another number that lies in RDB as one.
void AppendRdbLength(uint64_t length, std::string* out);

// Appends what comes before the bytes of a string, and returns those: none if it is an integer,
// which is all in its head.
std::string_view AppendRdbHead(std::string_view string, std::string* out);

// A length of this many bytes, for a place that is filled when what it counts is known.
inline constexpr size_t kRdbLength32Bytes = 5;
void StoreRdbLength32(uint32_t length, char* to);

// Takes from the front of a payload.
class RdbReader {
 public:
  explicit RdbReader(std::string_view rest) : rest_(rest) {}

  template <typename Number>
  bool Take(Number* value) {
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
  [[nodiscard]] size_t bytes_left() const { return rest_.size(); }
  // A length that is none of an encoded string.
  bool TakeLength(uint64_t* length);
  // False: damaged, or longer than `bytes_max`.
  bool TakeString(uint64_t bytes_max, DumpedString* string);

 private:
  // A length, or an encoding, which `encoded` tells.
  bool TakeLengthOrEncoding(uint64_t* length, bool* encoded);
  bool TakeEncoded(uint64_t encoding, uint64_t bytes_max, DumpedString* string);

  std::string_view rest_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_RDB_WIRE_H_
