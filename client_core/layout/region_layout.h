// Bytes of a region: its header with the block table, and the root area in region 0 that workers
// share without asking anyone (epochs, key counters, directory).
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_REGION_LAYOUT_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_REGION_LAYOUT_H_

#include <cstddef>
#include <cstdint>

#include "client_core/layout/global_addr.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"

namespace onetrip {

// The owner of an open block: any worker may get it from its memory node, and what is free in it
// the bitmap tells (PROTOCOLS, "Open blocks"). No worker has this number.
inline constexpr WorkerId kNobody{0};

// The owner of a block: 0 is free. A span's first block carries the span, the others kSpanTail.
class BlockEntry {
 public:
  enum class Use : uint8_t { kFree = 0, kOwned = 1, kSpanTail = 2, kRoot = 3 };

  constexpr BlockEntry() = default;
  constexpr explicit BlockEntry(uint64_t bits) : bits_(bits) {}
  constexpr BlockEntry(Use use, WorkerId owner, SizeClass size_class)
      : bits_((static_cast<uint64_t>(use) << 56) |
              (static_cast<uint64_t>(size_class.index()) << 48) | owner.value) {}

  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr Use use() const { return static_cast<Use>(bits_ >> 56); }
  [[nodiscard]] constexpr WorkerId owner() const { return WorkerId{static_cast<uint32_t>(bits_)}; }
  [[nodiscard]] constexpr SizeClass size_class() const {
    return SizeClass(static_cast<uint8_t>(bits_ >> 48));
  }
  // An open grant begins here.
  [[nodiscard]] constexpr bool is_open() const {
    return use() == Use::kOwned && owner() == kNobody;
  }

 private:
  uint64_t bits_ = 0;
};

// Where an object is in its block or span, and back.
constexpr uint16_t ObjectIndex(GlobalAddr addr, GlobalAddr block_start, SizeClass size_class) {
  const uint64_t in_block = addr.bits() - block_start.bits();
  return static_cast<uint16_t>((in_block - FirstObjectOffset(block_start.block())) /
                               size_class.bytes());
}
constexpr GlobalAddr ObjectAddr(GlobalAddr block_start, SizeClass size_class, uint16_t index) {
  return block_start + FirstObjectOffset(block_start.block()) + index * size_class.bytes();
}

struct RegionHeader {
  uint64_t magic;
  uint64_t layout_version;
  uint64_t region;
  uint64_t reserved[5];
  uint64_t blocks[kBlocksPerRegion];  // BlockEntry
};
inline constexpr uint64_t kRegionMagic = 0x4f4e4554524950ULL;  // "ONETRIP"
inline constexpr uint64_t kLayoutVersion = 11;
static_assert(sizeof(RegionHeader) <= kRegionHeaderBytes);
static_assert(offsetof(RegionHeader, blocks) == 64);

// One per live worker: the epoch it has passed, the bytes it has retired and not yet given back,
// and since when: what it unlinked in earlier epochs is in its free lists or with the owners of the
// blocks. And whether it is short of memory.
struct EpochEntry {
  uint64_t passed;   // 0: no worker has this entry
  uint64_t backlog;  // BacklogWord
  uint64_t retired_since;
};
static_assert(sizeof(EpochEntry) == 24);

// The bytes that a worker has retired; the size class of which it is short, so that others open
// blocks of theirs; whether it is about to open or to give back some itself; and whether a memory
// node has told it that free blocks are few.
class BacklogWord {
 public:
  constexpr BacklogWord() = default;
  constexpr explicit BacklogWord(uint64_t bits) : bits_(bits) {}
  // `wanted` is not valid: short of none.
  constexpr BacklogWord(uint64_t retired_bytes, SizeClass wanted, bool gives, bool tight)
      : bits_((retired_bytes & kBytesMask) |
              (wanted.is_valid() ? (wanted.index() + uint64_t{1}) << kWantedShift : 0) |
              (gives ? kGives : 0) | (tight ? kTight : 0)) {}

  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr uint64_t retired_bytes() const { return bits_ & kBytesMask; }
  [[nodiscard]] constexpr SizeClass wanted() const {
    const auto wanted = static_cast<uint8_t>(bits_ >> kWantedShift);
    return wanted == 0 ? SizeClass() : SizeClass(static_cast<uint8_t>(wanted - 1));
  }
  [[nodiscard]] constexpr bool gives() const { return (bits_ & kGives) != 0; }
  [[nodiscard]] constexpr bool is_tight() const { return (bits_ & kTight) != 0; }

 private:
  static constexpr uint32_t kWantedShift = 48;
  static constexpr uint64_t kBytesMask = (uint64_t{1} << kWantedShift) - 1;
  static constexpr uint64_t kGives = uint64_t{1} << 56;
  static constexpr uint64_t kTight = uint64_t{1} << 57;
  uint64_t bits_ = 0;
};

// Keys that a worker added less those it removed, per keyspace: its id (upper 32 bits) and a count
// modulo 2^32, in one word so that a reader never pairs one keyspace with another's count. There
// are as many words as databases, and any word may be any keyspace's: databases swap theirs.
struct KeyCounters {
  uint64_t words[kMaxDatabases];
};
static_assert(sizeof(KeyCounters) == 128);

// Registers that a worker has retired, for the others to forget: a ring of addresses, and how many
// it has ever written there (PROTOCOLS, "Retired registers"). The ring is the few entries that
// every seat has, so that memory can come back when there is none, or an object.
struct RetiredRing {
  uint64_t ring;    // GlobalAddr; 0: it has retired none
  uint64_t head;    // entry i is at i modulo the ring's entries
  uint64_t worker;  // WorkerId
  uint64_t doubts;  // how often it has asked all to look every register up anew
};
static_assert(sizeof(RetiredRing) == 32);
inline constexpr uint64_t kSeatRingEntries = 8;
inline constexpr uint64_t kSeatRingBytes = kSeatRingEntries * 8;
inline constexpr uint64_t kRetiredRingEntries = 4096;  // in a ring that is an object
inline constexpr uint64_t kRetiredRingBytes = kRetiredRingEntries * 8;

// Offsets in region 0.
inline constexpr uint64_t kEpochTableOffset = kRegionHeaderBytes;
inline constexpr uint64_t kEpochTableBytes = kMaxWorkers * sizeof(EpochEntry);
inline constexpr uint64_t kKeyCountersOffset = kEpochTableOffset + kEpochTableBytes;
inline constexpr uint64_t kKeyCountersBytes = kMaxWorkers * sizeof(KeyCounters);
inline constexpr uint64_t kDirectoryOffset = kKeyCountersOffset + kKeyCountersBytes;
inline constexpr uint64_t kDirectoryBytes = uint64_t{kDirectoryEntries} * 8;
// One is in force (View::directory); the index moves by being written anew to the other.
inline constexpr uint8_t kDirectories = 2;
constexpr uint8_t OtherDirectory(uint8_t directory) { return directory == 0 ? 1 : 0; }
inline constexpr uint64_t kRetiredRingsOffset = kDirectoryOffset + kDirectories * kDirectoryBytes;
inline constexpr uint64_t kRetiredRingsBytes = kMaxWorkers * sizeof(RetiredRing);
inline constexpr uint64_t kSeatRingsOffset = kRetiredRingsOffset + kRetiredRingsBytes;
inline constexpr uint64_t kSeatRingsBytes = kMaxWorkers * kSeatRingBytes;
inline constexpr uint64_t kRootBytes = kSeatRingsOffset + kSeatRingsBytes;
inline constexpr uint32_t kRootBlocks = (kRootBytes + kBlockBytes - 1) / kBlockBytes;
static_assert(kRootBlocks == 5, "root area: 5 of region 0's 64 blocks");

constexpr GlobalAddr EpochEntryAddr(WorkerIndex worker) {
  return GlobalAddr(0, kEpochTableOffset + worker.value * sizeof(EpochEntry));
}
constexpr GlobalAddr KeyCounterAddr(WorkerIndex worker, uint32_t word) {
  return GlobalAddr(0, kKeyCountersOffset + worker.value * sizeof(KeyCounters) + word * 8);
}
constexpr GlobalAddr DirectoryAddr(uint32_t entry, uint8_t directory) {
  return GlobalAddr(0, kDirectoryOffset + directory * kDirectoryBytes + uint64_t{entry} * 8);
}

constexpr GlobalAddr RetiredRingAddr(WorkerIndex worker) {
  return GlobalAddr(0, kRetiredRingsOffset + worker.value * sizeof(RetiredRing));
}

constexpr GlobalAddr SeatRingAddr(WorkerIndex worker) {
  return GlobalAddr(0, kSeatRingsOffset + worker.value * kSeatRingBytes);
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_REGION_LAYOUT_H_
