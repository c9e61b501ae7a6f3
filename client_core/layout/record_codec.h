// Records as bytes: encode one to be written, look into one that was read.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_RECORD_CODEC_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_RECORD_CODEC_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "client_core/layout/record.h"
#include "client_core/layout/types.h"

namespace onetrip {

struct RecordFields {
  KeyspaceId keyspace;
  std::string_view key;
  // The value: these, one behind the other.
  std::string_view value_head;
  uint64_t value_gap = 0;  // zero bytes
  std::string_view value_tail;
  std::string_view value_rest;
  uint64_t deadline_ms = 0;
  uint64_t version = 0;
  uint8_t type = 0;
  LogOpcode opcode = LogOpcode::kNone;
  RecordOrigin origin{};  // kThawed

  [[nodiscard]] uint64_t value_bytes() const {
    return value_head.size() + value_gap + value_tail.size() + value_rest.size();
  }
};

// Where the key of a record begins.
constexpr uint64_t RecordKeyOffset(LogOpcode opcode) {
  return kRecordHeaderBytes + (opcode == LogOpcode::kThawed ? sizeof(RecordOrigin) : 0);
}
// The most bytes from a record's beginning to the end of a key of that length.
constexpr uint64_t RecordKeyEnd(uint64_t key_bytes) {
  return RecordKeyOffset(LogOpcode::kThawed) + key_bytes;
}

// Bytes that a record of these strings takes, without an origin.
constexpr uint64_t RecordBytes(uint64_t key_bytes, uint64_t value_bytes) {
  return kRecordHeaderBytes + key_bytes + value_bytes;
}

// Writes the record to `to`, which has room for RecordBytes; the log word is 0. REQUIRES: key and
// value within their limits.
void EncodeRecord(const RecordFields& fields, std::byte* to);

// The header of the record at `bytes`, which need not be aligned.
RecordHeader LoadRecordHeader(const std::byte* bytes);

// True if the first `available` bytes of a record hold `keyspace` and `key`, wholly.
bool RecordHasKey(const std::byte* bytes, uint64_t available, KeyspaceId keyspace,
                  std::string_view key);

// True if `available` bytes hold a whole record with a right checksum.
bool RecordIsIntact(const std::byte* bytes, uint64_t available);

// Bytes of the record whose header this is.
uint64_t RecordBytesOf(const RecordHeader& header);

// True if `available` bytes of a record, which hold its key, say what register it took the place
// of; fills `origin` then.
bool RecordHasOrigin(const std::byte* bytes, uint64_t available, RecordOrigin* origin);

// The value of an intact record.
std::string_view RecordValue(const std::byte* bytes);

// The hash that places a key in the index and in caches.
uint64_t HashKey(KeyspaceId keyspace, std::string_view key);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_RECORD_CODEC_H_
