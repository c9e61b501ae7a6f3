// RegisterTable: from the hash of a key to where its register lies and to the cache entry of it.
//
// One access to memory tells all that is needed to prefetch the rest: a line has two places, and a
// hash is in its line or just behind it. (A general hash map prefetches where its groups begin, and
// a place is anywhere in one.) Single-threaded. Private to kv/.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_REGISTER_TABLE_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_REGISTER_TABLE_H_

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
  RegisterTable() : memory_(kFirstPlaces * sizeof(RegisterPlace)), mask_(kFirstPlaces - 1) {}

  // Null if there is none. Good until the next Put or Erase. Hash and entry are not to be changed.
  [[nodiscard]] RegisterPlace* Find(KeyHash hash) const {
    for (size_t at = Start(hash);; at = (at + 1) & mask_) {
      RegisterPlace& place = places()[at];
      if (place.entry == nullptr) return nullptr;
      if (place.hash.bits() == hash.bits()) return &place;
    }
  }
  void Prefetch(KeyHash hash) const { __builtin_prefetch(&places()[Start(hash)]); }

  // Takes the place of another of the same hash. REQUIRES: HasRoom().
  void Put(const RegisterPlace& place);
  void Erase(KeyHash hash);
  // False: the host has no memory for more.
  [[nodiscard]] bool HasRoom() const { return used_ <= mask_ / 8 * 7; }

 private:
  static constexpr size_t kFirstPlaces = 64;

  [[nodiscard]] RegisterPlace* places() const {
    return reinterpret_cast<RegisterPlace*>(memory_.start());
  }
  // The multiplication spreads what the index uses in chunks.
  [[nodiscard]] size_t Start(KeyHash hash) const {
    return (hash.bits() * 0x9e3779b97f4a7c15ULL >> 20) & mask_;
  }
  // Stays as it is when the host has no memory.
  void Grow();

  ZeroedMemory memory_;
  size_t mask_;
  size_t used_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_REGISTER_TABLE_H_
