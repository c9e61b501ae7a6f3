// LocationCache: where a worker last found each key: the slot and the word it held (FUSEE 4.6).
//
// A hint of bounded size: what it says is validated in the same round trip that uses it. A key
// whose entries prove invalid too often is bypassed for as long as that lasts. Two entries share a
// cache line; the older of them makes room. Single-threaded.
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

  // Uses at most `bytes`, rounded down to a power of two of lines, at least one.
  explicit LocationCache(uint64_t bytes);
  LocationCache(const LocationCache&) = delete;
  LocationCache& operator=(const LocationCache&) = delete;

  // Returns true if `location` was filled. Counts an access.
  bool Find(KeyHash hash, Location* location);
  // Finds a location without counting; for prefetching.
  [[nodiscard]] const Location* Peek(KeyHash hash) const;
  void Put(KeyHash hash, Location location);
  // Forgets all.
  void Clear() { ++generation_; }
  // The location found was not the key's any more.
  void NoteInvalid(KeyHash hash);
  void Prefetch(KeyHash hash) const { __builtin_prefetch(&LineOf(hash)); }

  [[nodiscard]] uint64_t bytes() const { return (mask_ + 1) * sizeof(Line); }

 private:
  // A key is bypassed when more than half of at least this many accesses were invalid.
  static constexpr uint8_t kBypassAccesses = 16;

  struct Entry {
    uint64_t hash;  // 0: unused
    Location location;
    uint16_t accesses;
    uint16_t invalid;
    uint32_t generation;  // an entry of an older one was forgotten
  };
  struct alignas(64) Line {
    std::array<Entry, 2> entries;  // the more recently used first
  };
  static_assert(sizeof(Entry) <= 32 && sizeof(Line) == 64);

  [[nodiscard]] Line& LineOf(KeyHash hash) const {
    // The multiplication spreads what the index uses in chunks.
    return lines_[(hash.bits() * 0x9e3779b97f4a7c15ULL >> 20) & mask_];
  }
  static uint64_t Tag(KeyHash hash) { return hash.bits() | 1; }
  [[nodiscard]] bool IsOf(const Entry& entry, KeyHash hash) const {
    return entry.hash == Tag(hash) && entry.generation == generation_;
  }
  Entry* FindEntry(Line& line, KeyHash hash) const;

  ZeroedMemory memory_;
  Line* lines_;
  uint64_t mask_;
  uint32_t generation_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_LOCATION_CACHE_H_
