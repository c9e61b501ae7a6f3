// RecordHeader: the bytes ahead of key and value in every object, with the embedded operation log
// (FUSEE 4.5) in its first word.
//
// A record is immutable once its slot names it, except `log_word`. `checksum` covers everything
// behind it and both strings, so that a torn, recycled or rotten record is never believed.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_RECORD_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_RECORD_H_

#include <cstddef>
#include <cstdint>

namespace onetrip {

// The operation that wrote a record, as the operation log tells it.
enum class LogOpcode : uint8_t {
  kNone = 0,
  kInsert = 1,
  kUpdate = 2,
  kThawed = 3,  // took the place of a register: a RecordOrigin lies between header and key
  // An update like any other, in memory that may be larger than its bytes need: that was free, or
  // about to be, where nothing else was.
  kRestated = 4,
};

struct RecordHeader {
  // 0: not offered to a slot. Else, with kLogCommitted, the slot word that this record replaces if
  // the slot names it; on all replicas before the primary slot changes.
  uint64_t log_word;
  uint32_t checksum;
  uint16_t key_bytes;
  uint8_t type;    // opaque to the store
  uint8_t opcode;  // LogOpcode
  uint32_t keyspace;
  uint32_t value_bytes;
  uint64_t deadline_ms;  // Unix milliseconds by the cluster clock; 0: never
  // Unique per write of a key: worker id (upper 24 bits), sequence (lower 40). A thawed record has
  // the version of the register's last write.
  uint64_t version;
};

// The register that the record took the place of, and its last word, F: a writer that replaces the
// record writes it to the register first (PROTOCOLS, "One key, two forms"). The register's memory
// lives until then.
struct RecordOrigin {
  uint64_t register_word;  // SlotWord
  uint64_t last_word;      // MetaWord
};
static_assert(sizeof(RecordOrigin) == 16);

inline constexpr uint64_t kLogCommitted = 1ULL << 63;
inline constexpr uint64_t kRecordHeaderBytes = sizeof(RecordHeader);
inline constexpr uint32_t kMaxKeyBytes = 65535;
// The longest value that lies in its record; a longer one lies in extents (extent.h).
inline constexpr uint32_t kRecordValueBytesMax = 1024 * 1024;
inline constexpr uint32_t kMaxValueBytes = 512 * 1024 * 1024;

static_assert(sizeof(RecordHeader) == 40);
static_assert(offsetof(RecordHeader, log_word) == 0, "the log commit is one aligned word");
static_assert(offsetof(RecordHeader, checksum) == 8);
static_assert(offsetof(RecordHeader, key_bytes) == 12, "the checksum covers all from here on");
static_assert(offsetof(RecordHeader, keyspace) == 16);
static_assert(offsetof(RecordHeader, deadline_ms) == 24);
static_assert(offsetof(RecordHeader, version) == 32);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_RECORD_H_
