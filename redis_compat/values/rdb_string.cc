#include "redis_compat/values/rdb_string.h"

#include <array>
#include <bit>
#include <cstring>

#include "redis_compat/values/rdb_wire.h"

namespace onetrip {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is, too");

constexpr uint16_t kVersion = 10;  // Redis 7.0 writes it
constexpr char kTypeString = 0;

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
  parts.plain = AppendRdbHead(value, &parts.head);
  return parts;
}

std::string DumpFooter(uint64_t crc) {
  std::string footer;
  AppendRdbNumber(kVersion, &footer);
  AppendRdbNumber(Crc64(footer, crc), &footer);
  return footer;
}

bool LoadDumpChecksum(std::string_view payload, DumpChecksum* checksum) {
  if (payload.size() < kDumpFooterBytes) return false;
  uint16_t version = 0;
  const char* const footer = payload.data() + payload.size() - kDumpFooterBytes;
  std::memcpy(&version, footer, sizeof(version));
  std::memcpy(&checksum->crc, footer + sizeof(version), sizeof(checksum->crc));
  checksum->checked_bytes = payload.size() - sizeof(checksum->crc);
  return version <= kVersion;
}

bool IsStringDump(std::string_view payload) {
  const std::string_view body = DumpBody(payload);
  return !body.empty() && body.front() == kTypeString;
}

bool LoadString(std::string_view payload, uint64_t bytes_max, DumpedString* string) {
  if (!IsStringDump(payload)) return false;
  RdbReader reader(DumpBody(payload).substr(1));
  return reader.TakeString(bytes_max, string);
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
