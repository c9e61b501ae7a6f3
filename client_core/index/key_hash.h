// Which bits of a key's hash mean what to the index (RACE hashing; FUSEE 4.2).
//
//   63..56 fingerprint   35, 34 sides   33..27 group 2   26..20 group 1   15..0 directory suffix
#ifndef ONETRIP_CLIENT_CORE_INDEX_KEY_HASH_H_
#define ONETRIP_CLIENT_CORE_INDEX_KEY_HASH_H_

#include <cstdint>
#include <string_view>

#include "client_core/layout/index_layout.h"
#include "client_core/layout/record_codec.h"
#include "client_core/layout/types.h"

namespace onetrip {

// The low `depth` bits.
constexpr uint32_t SuffixMask(uint32_t depth) { return (1U << depth) - 1; }

class KeyHash {
 public:
  constexpr KeyHash() = default;
  constexpr explicit KeyHash(uint64_t bits) : bits_(bits) {}

  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr uint8_t fingerprint() const { return static_cast<uint8_t>(bits_ >> 56); }
  // The low bits, by which subtables split.
  [[nodiscard]] constexpr uint32_t suffix(uint32_t depth) const {
    return static_cast<uint32_t>(bits_) & SuffixMask(depth);
  }
  // The two groups of a subtable, always different, and which main bucket of each.
  [[nodiscard]] constexpr uint32_t group(int choice) const {
    const auto first = static_cast<uint32_t>(bits_ >> 20) % kSubtableGroups;
    if (choice == 0) return first;
    const auto second = static_cast<uint32_t>(bits_ >> 27) % kSubtableGroups;
    return second != first ? second : (first + 1) % kSubtableGroups;
  }
  [[nodiscard]] constexpr uint32_t side(int choice) const {
    return static_cast<uint32_t>(bits_ >> (34 + choice)) & 1;
  }

 private:
  uint64_t bits_ = 0;
};

static_assert(kMaxDepth <= 20, "suffix bits end where group bits begin");
static_assert(kSubtableGroups == 128, "a group takes seven hash bits");

// A key as the index sees it. The bytes are borrowed.
struct IndexKey {
  KeyspaceId keyspace;
  std::string_view bytes;
  KeyHash hash;

  static IndexKey Make(KeyspaceId keyspace, std::string_view bytes) {
    return {keyspace, bytes, KeyHash(HashKey(keyspace, bytes))};
  }
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_KEY_HASH_H_
