// LocationCache: where a worker last found each key: the slot and the word it held (FUSEE 4.6).
//
// A hint of bounded size: what it says is validated in the same round trip that uses it. A key
// whose entries prove invalid too often is bypassed for as long as that lasts. Two entries share a
// cache line; the older of them makes room. It begins small, and doubles in parts where entries
// make each other leave, so that it takes memory as keys come and no Put moves more than a share of
// it. Single-threaded.
#ifndef ONETRIP_CLIENT_CORE_INDEX_LOCATION_CACHE_H_
#define ONETRIP_CLIENT_CORE_INDEX_LOCATION_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "client_core/base/zeroed_memory.h"
#include "client_core/index/key_hash.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/slot.h"

namespace onetrip {

class LocationCache {
 public:
  struct Location {
    GlobalAddr slot;
    SlotWord word;
  };

  // Uses at most `bytes_max`, rounded down to a power of two of lines, at least one; 64 KiB in the
  // beginning.
  explicit LocationCache(uint64_t bytes_max);
  LocationCache(const LocationCache&) = delete;
  LocationCache& operator=(const LocationCache&) = delete;

  // Returns true if `location` was filled. Counts an access.
  bool Find(KeyHash hash, Location* location);
  // Finds a location without counting; for prefetching.
  [[nodiscard]] const Location* Peek(KeyHash hash) const;
  // Returns true if the cache has grown.
  bool Put(KeyHash hash, Location location);
  // Forgets all.
  void Clear() { ++generation_; }
  // The location found was not the key's any more.
  void NoteInvalid(KeyHash hash);
  void Prefetch(KeyHash hash) const { __builtin_prefetch(&LineOf(hash)); }

  [[nodiscard]] uint64_t bytes() const { return lines_ * sizeof(Line); }

 private:
  // A key is bypassed when more than half of at least this many accesses were invalid.
  static constexpr uint8_t kBypassAccesses = 16;

  static constexpr size_t kParts = 16;
  static constexpr uint64_t kFirstLines = 64;  // each part's
  static constexpr uint64_t kHugeFrom = uint64_t{2} << 20;

  struct Entry {
    uint64_t hash;
    Location location;
    uint16_t accesses;
    uint16_t invalid;
    uint32_t generation;  // 0: unused; an entry of an older one was forgotten
  };
  struct alignas(64) Line {
    std::array<Entry, 2> entries;  // the more recently used first

    void PutFirst(const Entry& entry) {
      entries[1] = entries[0];
      entries[0] = entry;
    }
  };
  static_assert(sizeof(Entry) <= 32 && sizeof(Line) == 64);

  struct Part {
    Line* lines = nullptr;
    uint64_t mask = 0;
    uint64_t left = 0;    // entries that made room since it has this many lines
    ZeroedMemory memory;  // none at first: the lines are in first_memory_
  };

  // The multiplication spreads what the index uses in chunks.
  static uint64_t Spread(KeyHash hash) { return hash.bits() * 0x9e3779b97f4a7c15ULL; }
  static uint64_t LineNumber(KeyHash hash) { return Spread(hash) >> 20; }
  [[nodiscard]] size_t PartNumber(KeyHash hash) const { return Spread(hash) >> 60 & part_mask_; }
  [[nodiscard]] Line& LineOf(KeyHash hash) const {
    const Part& part = parts_[PartNumber(hash)];
    return part.lines[LineNumber(hash) & part.mask];
  }
  [[nodiscard]] bool IsOf(const Entry& entry, KeyHash hash) const {
    return entry.hash == hash.bits() && entry.generation == generation_;
  }
  Entry* FindEntry(Line& line, KeyHash hash) const;
  // Notes that an entry of `part` made room; returns true if that made the part grow.
  bool NoteLeft(Part* part);
  // Stays as it is when the host has no memory.
  void Double(Part* part) const;

  const uint64_t lines_max_;
  // Few lines are one part, which does not grow.
  const size_t part_mask_;
  uint64_t lines_;  // all parts'
  ZeroedMemory first_memory_;
  std::array<Part, kParts> parts_;
  uint32_t generation_ = 1;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_LOCATION_CACHE_H_
