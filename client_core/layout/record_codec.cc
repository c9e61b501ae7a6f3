#include "client_core/layout/record_codec.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr uint64_t kChecksumFrom = offsetof(RecordHeader, key_bytes);

uint32_t Checksum(const std::byte* record, uint64_t record_bytes) {
  return static_cast<uint32_t>(XXH3_64bits(record + kChecksumFrom, record_bytes - kChecksumFrom));
}

std::byte* Put(std::byte* at, std::string_view part) {
  if (!part.empty()) std::memcpy(at, part.data(), part.size());
  return at + part.size();
}

uint64_t KeyOffset(const RecordHeader& header) {
  return RecordKeyOffset(static_cast<LogOpcode>(header.opcode));
}

}  // namespace

void EncodeRecord(const RecordFields& fields, std::byte* to) {
  CHECK(fields.key.size() <= kMaxKeyBytes);
  const uint64_t value_bytes = fields.value_bytes();
  CHECK(value_bytes <= kRecordValueBytesMax);
  RecordHeader header{};
  header.key_bytes = static_cast<uint16_t>(fields.key.size());
  header.type = fields.type;
  header.opcode = static_cast<uint8_t>(fields.opcode);
  header.keyspace = fields.keyspace.value;
  header.value_bytes = static_cast<uint32_t>(value_bytes);
  header.deadline_ms = fields.deadline_ms;
  header.version = fields.version;
  std::memcpy(to, &header, sizeof(header));
  std::byte* at = to + sizeof(header);
  if (fields.opcode == LogOpcode::kThawed) {
    std::memcpy(at, &fields.origin, sizeof(fields.origin));
    at += sizeof(fields.origin);
  }
  at = Put(at, fields.key);
  at = Put(at, fields.value_head);
  std::memset(at, 0, fields.value_gap);
  at = Put(at + fields.value_gap, fields.value_tail);
  at = Put(at, fields.value_rest);
  header.checksum = Checksum(to, static_cast<uint64_t>(at - to));
  std::memcpy(to + offsetof(RecordHeader, checksum), &header.checksum, sizeof(header.checksum));
}

RecordHeader LoadRecordHeader(const std::byte* bytes) {
  RecordHeader header;
  std::memcpy(&header, bytes, sizeof(header));
  return header;
}

bool RecordHasKey(const std::byte* bytes, uint64_t available, KeyspaceId keyspace,
                  std::string_view key) {
  if (available < kRecordHeaderBytes + key.size()) return false;
  const RecordHeader header = LoadRecordHeader(bytes);
  return header.key_bytes == key.size() && header.keyspace == keyspace.value &&
         available >= KeyOffset(header) + key.size() &&
         (key.empty() || std::memcmp(bytes + KeyOffset(header), key.data(), key.size()) == 0);
}

bool RecordIsIntact(const std::byte* bytes, uint64_t available) {
  if (available < kRecordHeaderBytes) return false;
  const RecordHeader header = LoadRecordHeader(bytes);
  const uint64_t record_bytes = RecordBytesOf(header);
  return record_bytes <= available && Checksum(bytes, record_bytes) == header.checksum;
}

uint64_t RecordBytesOf(const RecordHeader& header) {
  return KeyOffset(header) + header.key_bytes + header.value_bytes;
}

bool RecordHasOrigin(const std::byte* bytes, uint64_t available, RecordOrigin* origin) {
  if (available < RecordKeyOffset(LogOpcode::kThawed)) return false;
  if (LoadRecordHeader(bytes).opcode != static_cast<uint8_t>(LogOpcode::kThawed)) return false;
  std::memcpy(origin, bytes + kRecordHeaderBytes, sizeof(*origin));
  return true;
}

std::string_view RecordValue(const std::byte* bytes) {
  const RecordHeader header = LoadRecordHeader(bytes);
  return {reinterpret_cast<const char*>(bytes) + KeyOffset(header) + header.key_bytes,
          header.value_bytes};
}

uint64_t HashKey(KeyspaceId keyspace, std::string_view key) {
  return XXH3_64bits_withSeed(key.data(), key.size(), keyspace.value);
}

}  // namespace onetrip
