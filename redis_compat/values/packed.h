// A packed collection: all elements of a list, set, sorted set or hash as the value of one record.
//
//   0      format, 1
//   1      flags (PackedFlag)
//   2..3   zero
//   4..7   elements, little-endian
//   8..    entries
//
//   entry: length (7 bits a byte, lowest first, top bit: more follow), bytes, and the size of what
//          is before (the same in reverse order), by which entries are read backwards
//
// An element of a list or set is one entry, of a hash two: field and value, of a sorted set two:
// member and score (a double of eight bytes). What their order is says the type's own header.
//
// Pure; any thread. Values come from memory nodes: nothing here trusts them. A damaged one is a
// shorter collection, never a read beyond it.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_PACKED_H_
#define ONETRIP_REDIS_COMPAT_VALUES_PACKED_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace onetrip {

enum PackedFlag : uint8_t {
  // The collection has been beyond the thresholds of Redis's compact encodings, and stays what it
  // became: a hash or set is a hashtable, a sorted set a skiplist.
  kPackedTable = 1u << 0,
  // A set of integers in ascending order, each in the one spelling that Redis gives it.
  kPackedIntegers = 1u << 1,
};

struct PackedHeader {
  uint8_t flags = 0;
  uint32_t elements = 0;
};
inline constexpr size_t kPackedHeaderBytes = 8;
inline constexpr size_t kPackedEntryBytesMin = 2;

// How far Redis keeps a collection in its compact encoding.
struct CompactLimits {
  uint64_t elements = 0;
  uint64_t bytes = 0;  // in a field, value or member
};

// False: `value` is no packed collection.
bool LoadPackedHeader(std::string_view value, PackedHeader* header);
// Elements by the header, which is enough of the value; 0: it is no packed collection.
inline uint64_t PackedSize(std::string_view value) {
  PackedHeader header;
  return LoadPackedHeader(value, &header) ? header.elements : 0;
}
// The eight bytes in front of the entries.
std::string PackedHeaderBytes(const PackedHeader& header);
// Overwrites the first eight bytes of `value`, which has as many.
void StorePackedHeader(const PackedHeader& header, std::string* value);

// The entries of a packed collection; empty if it is none.
inline std::string_view PackedEntries(std::string_view value) {
  return value.size() < kPackedHeaderBytes ? std::string_view() : value.substr(kPackedHeaderBytes);
}

// Bytes that an entry takes.
size_t PackedEntryBytes(size_t bytes);
// Appends an entry. REQUIRES: `bytes` are less than 2^32.
void AppendPackedEntry(std::string_view bytes, std::string* to);

// Goes through entries, forwards and backwards.
class PackedCursor {
 public:
  PackedCursor() = default;
  // `entries` outlive it. It stands before the entry at byte `at`.
  explicit PackedCursor(std::string_view entries, size_t at = 0) : entries_(entries), at_(at) {}
  static PackedCursor AtEnd(std::string_view entries) {
    return PackedCursor(entries, entries.size());
  }

  // Steps over the next entry and gives its bytes. False: there is none, and it stays.
  bool Next(std::string_view* bytes);
  // The same with the one before.
  bool Previous(std::string_view* bytes);
  // The byte at which the next entry begins.
  [[nodiscard]] size_t at() const { return at_; }

 private:
  std::string_view entries_;
  size_t at_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_PACKED_H_
