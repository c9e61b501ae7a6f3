// Bytes of the RACE index: bucket groups, subtables, the directory (RACE hashing; FUSEE 4.2).
//
// A group is three cache lines: main bucket 0 (8 slots), the overflow bucket (header + 7 slots)
// that both main buckets share, main bucket 1 (8 slots). A combined bucket is a main bucket with
// the overflow bucket: 128 contiguous bytes, one READ.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_INDEX_LAYOUT_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_INDEX_LAYOUT_H_

#include <cstdint>

#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"

namespace onetrip {

inline constexpr uint32_t kGroupWords = 24;
inline constexpr uint32_t kGroupBytes = kGroupWords * 8;
inline constexpr uint32_t kGroupHeaderWord = 8;  // first word of the overflow bucket
inline constexpr uint32_t kGroupSlots = kGroupWords - 1;
inline constexpr uint32_t kCombinedWords = 16;
inline constexpr uint32_t kCombinedBytes = kCombinedWords * 8;
inline constexpr uint32_t kSubtableGroups = 128;
inline constexpr uint32_t kSubtableBytes = kSubtableGroups * kGroupBytes;
inline constexpr uint32_t kMaxDepth = 16;
inline constexpr uint32_t kDirectoryEntries = 1U << kMaxDepth;

static_assert(SizeClass::For(kSubtableBytes).bytes() == kSubtableBytes, "no slack per subtable");

// First word of side 0 or 1 of a group's combined buckets.
constexpr uint32_t CombinedFirstWord(uint32_t side) { return side == 0 ? 0 : kGroupHeaderWord; }

// Which keys a group holds: those whose hash ends in `suffix`, `depth` bits long. The header turns
// to the new depth before the first entry of a split moves; `filling` marks a group whose entries
// may still be in the parent's group.
class GroupHeader {
 public:
  constexpr GroupHeader() = default;
  constexpr explicit GroupHeader(uint64_t bits) : bits_(bits) {}
  constexpr GroupHeader(uint32_t depth, uint32_t suffix, bool filling)
      : bits_(kMagic | (static_cast<uint64_t>(filling) << 40) |
              (static_cast<uint64_t>(depth) << 32) | suffix) {}

  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool is_valid() const { return (bits_ & kMagicMask) == kMagic; }
  [[nodiscard]] constexpr uint32_t depth() const {
    return static_cast<uint32_t>(bits_ >> 32) & 0xff;
  }
  [[nodiscard]] constexpr uint32_t suffix() const { return static_cast<uint32_t>(bits_); }
  [[nodiscard]] constexpr bool filling() const { return ((bits_ >> 40) & 1) != 0; }

 private:
  static constexpr uint64_t kMagic = 0xb7ULL << 56;
  static constexpr uint64_t kMagicMask = 0xffULL << 56;
  uint64_t bits_ = 0;
};

// A directory entry: where the subtable of a suffix lies, how deep it is, and what a split does to
// it. Entry s + 2^b is the subtable that split off suffix s at bit b; there is one entry per
// subtable. Its word goes 0 -> filling(d) -> open(d) -> splitting(d) -> open(d + 1) -> ..., and
// never back, so none recurs.
//   63 0 | 62 closed to splits | 61 filling | 60 in use | 59..50 worker index | 49..44 depth |
//   43..0 addr / 16
class DirectoryWord {
 public:
  constexpr DirectoryWord() = default;
  constexpr explicit DirectoryWord(uint64_t bits) : bits_(bits) {}
  // The word is the same from every worker that proposes it.
  static constexpr DirectoryWord Open(GlobalAddr subtable, uint32_t depth) {
    return DirectoryWord((1ULL << 60) | (static_cast<uint64_t>(depth) << 44) |
                         (subtable.bits() / kObjectAlignBytes));
  }
  // `worker` splits it from `depth` to the next.
  static constexpr DirectoryWord Splitting(GlobalAddr subtable, uint32_t depth,
                                           WorkerIndex worker) {
    return DirectoryWord(Open(subtable, depth).bits() | (1ULL << 62) |
                         (static_cast<uint64_t>(worker.value) << 50));
  }
  // Made by `worker`; the split of its parent fills it.
  static constexpr DirectoryWord Filling(GlobalAddr subtable, uint32_t depth, WorkerIndex worker) {
    return DirectoryWord(Splitting(subtable, depth, worker).bits() | (1ULL << 61));
  }

  // The same of a subtable that has moved.
  [[nodiscard]] constexpr DirectoryWord MovedTo(GlobalAddr subtable) const {
    constexpr uint64_t kAddress = (1ULL << 44) - 1;
    return DirectoryWord((bits_ & ~kAddress) | (subtable.bits() / kObjectAlignBytes));
  }

  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr bool is_used() const { return ((bits_ >> 60) & 1) != 0; }
  // By its own split or, while it is filled, by its parent's.
  [[nodiscard]] constexpr bool locked() const { return ((bits_ >> 62) & 1) != 0; }
  [[nodiscard]] constexpr bool filling() const { return ((bits_ >> 61) & 1) != 0; }
  [[nodiscard]] constexpr bool splitting() const { return locked() && !filling(); }
  [[nodiscard]] constexpr uint32_t depth() const { return static_cast<uint32_t>(bits_ >> 44) & 63; }
  [[nodiscard]] constexpr GlobalAddr subtable() const {
    return GlobalAddr((bits_ & ((1ULL << 44) - 1)) * kObjectAlignBytes);
  }
  friend constexpr bool operator==(const DirectoryWord&, const DirectoryWord&) = default;

 private:
  uint64_t bits_ = 0;
};

static_assert(kMaxWorkers <= 1024, "a worker index fits ten bits");
static_assert(kMaxDepth < 64, "a depth fits six bits");

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_INDEX_LAYOUT_H_
