// RegisterTable: from the hash of a key to where its register lies and to the cache entry of it.
//
// One access to memory tells all that is needed to prefetch the rest: a line has two places, and a
// hash is in its line or just behind it. (A general hash map prefetches where its groups begin, and
// a place is anywhere in one.) It grows in parts: no Put moves more than a share of what there is.
// Single-threaded. Private to kv/.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_REGISTER_TABLE_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_REGISTER_TABLE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "client_core/base/zeroed_memory.h"
#include "client_core/index/key_hash.h"
#include "client_core/layout/global_addr.h"

namespace onetrip {

struct CachedRegister;

// A hash of 0 is a hash like others: a place without an entry is free.
struct RegisterPlace {
  KeyHash hash;
  CachedRegister* entry = nullptr;
  GlobalAddr addr;
  uint16_t bytes = 0;          // the length of the register
  uint16_t in_place_from = 0;  // where its in-place area begins
  uint16_t doubts = 0;         // the cache's, when it was last seen in the index; 0: long ago
  uint8_t in_place_replica = 0;
  bool used = false;  // since the clock hand last passed
};

class RegisterTable {
 public:
  // Null if there is none. Good until the next Put or Erase. Hash and entry are not to be changed.
  [[nodiscard]] RegisterPlace* Find(KeyHash hash) const {
    RegisterPlace* place = PartOf(hash).PlaceFor(hash);
    return place->entry == nullptr ? nullptr : place;
  }
  void Prefetch(KeyHash hash) const { __builtin_prefetch(PartOf(hash).Start(hash)); }

  // Takes the place of another of the same hash. Nothing is put when the host has no memory for one
  // more.
  void Put(const RegisterPlace& place);
  void Erase(KeyHash hash);

 private:
  static constexpr int kPartBits = 4;
  static constexpr size_t kFirstPlaces = 128;  // each part's: a page
  static constexpr uint64_t kHugeFrom = uint64_t{2} << 20;

  // A part without memory has this place, which stays free.
  static RegisterPlace none;

  // The multiplication spreads what the index uses in chunks.
  static uint64_t Spread(KeyHash hash) { return hash.bits() * 0x9e3779b97f4a7c15ULL; }

  struct Part {
    [[nodiscard]] size_t StartIndex(KeyHash hash) const { return (Spread(hash) >> 20) & mask; }
    [[nodiscard]] RegisterPlace* Start(KeyHash hash) const { return places + StartIndex(hash); }
    // The place of `hash`, or a free one, where it belongs. There always is a free one.
    [[nodiscard]] RegisterPlace* PlaceFor(KeyHash hash) const {
      for (size_t at = StartIndex(hash);; at = (at + 1) & mask) {
        RegisterPlace& place = places[at];
        if (place.entry == nullptr || place.hash.bits() == hash.bits()) return &place;
      }
    }
    // Doubles. Stays as it is when the host has no memory.
    void Grow();

    RegisterPlace* places = &none;
    size_t mask = 0;
    size_t used = 0;
    ZeroedMemory memory;
  };

  [[nodiscard]] const Part& PartOf(KeyHash hash) const {
    return parts_[Spread(hash) >> (64 - kPartBits)];
  }
  Part& PartOf(KeyHash hash) { return parts_[Spread(hash) >> (64 - kPartBits)]; }

  std::array<Part, size_t{1} << kPartBits> parts_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_REGISTER_TABLE_H_
