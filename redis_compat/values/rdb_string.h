// A string as Redis serializes it (DUMP and RESTORE; the formats of RDB): a type byte, the string,
// two bytes of version and a CRC of eight.
//
// Pure functions; any thread. What is decoded comes from clients: nothing here trusts it. Strings
// may be large: whatever looks at all bytes of one can be done by the piece.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_RDB_STRING_H_
#define ONETRIP_REDIS_COMPAT_VALUES_RDB_STRING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace onetrip {

// CRC-64 as Redis computes it (Jones' polynomial, reflected, from 0). `before` is that of the bytes
// in front.
uint64_t Crc64(std::string_view bytes, uint64_t before = 0);

// A payload as redis-server 7.0 makes it, but it does not compress: `head`, `plain`, then
// DumpFooter() for the CRC of both.
struct DumpParts {
  std::string head;
  std::string_view plain;  // bytes of the value
};
DumpParts BeginDump(std::string_view value);
std::string DumpFooter(uint64_t crc);

// Version and checksum.
inline constexpr size_t kDumpFooterBytes = sizeof(uint16_t) + sizeof(uint64_t);
// The type byte and the value. REQUIRES: LoadDumpChecksum().
inline std::string_view DumpBody(std::string_view payload) {
  return payload.substr(0, payload.size() - kDumpFooterBytes);
}

// The checksum that a payload carries: `crc` should be that of its first `checked_bytes`.
struct DumpChecksum {
  uint64_t crc = 0;
  size_t checked_bytes = 0;
};
// False: too short, or of a version that Redis 7.0 does not read.
bool LoadDumpChecksum(std::string_view payload, DumpChecksum* checksum);

// The value of a payload.
struct DumpedString {
  enum class Form : uint8_t { kPlain, kInteger, kCompressed };
  Form form = Form::kPlain;
  std::string_view bytes;    // kPlain: the value; kCompressed: what Decompressor takes
  std::string integer;       // kInteger: its text
  uint64_t value_bytes = 0;  // kCompressed
};
// REQUIRES, as LoadString(): LoadDumpChecksum().
bool IsStringDump(std::string_view payload);
// False: it is no string, or damaged, or longer than `bytes_max`. REQUIRES: LoadDumpChecksum().
bool LoadString(std::string_view payload, uint64_t bytes_max, DumpedString* string);

// LZF: literal runs of up to 32 bytes, and references of up to 8,192 bytes back.
class Decompressor {
 public:
  // Both outlive it.
  Decompressor(std::string_view from, std::span<char> to) : from_(from), to_(to) {}
  // Makes `bytes` more, or a few beyond, or what is left. False: the input is damaged.
  bool Advance(size_t bytes);
  // True if it has taken every byte of the input and made every byte of the output.
  [[nodiscard]] bool is_done() const { return taken_ == from_.size() && made_ == to_.size(); }

 private:
  bool TakeOne();

  std::string_view from_;
  std::span<char> to_;
  size_t taken_ = 0;
  size_t made_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_RDB_STRING_H_
