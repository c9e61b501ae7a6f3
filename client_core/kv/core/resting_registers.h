// RestingRegisters: what a worker knows of registers that it has not used lately, in some 64 bytes
// each: enough to read one without asking the index, and to give back the buffer of its own last
// word there. Single-threaded. Private to kv/.
//
// Nothing here has the key: two keys may have the same hash. Who uses a register that rests
// compares the key with what it reads.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_RESTING_REGISTERS_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_RESTING_REGISTERS_H_

#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client_core/base/zeroed_memory.h"
#include "client_core/index/key_hash.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/register_layout.h"
#include "client_core/layout/slot.h"

namespace onetrip {

struct RestingRegister {
  KeyHash hash;
  SlotWord word;  // 0: the place is free
  uint64_t incarnation = 0;
  Ticks birth;
  MetaWord lane_word;  // as of RegisterHandle
  uint16_t key_bytes = 0;
  uint16_t doubts = 0;  // as of RegisterPlace
  uint8_t lanes = 0;
  uint8_t buffer_class = 0;
  bool live : 1 = false;    // the buffer of `lane_word` is this worker's to give back
  bool unseen : 1 = false;  // as of CachedRegister
  uint8_t uses = 0;         // since it began to rest

  [[nodiscard]] GlobalAddr addr() const { return word.addr(); }
  // REQUIRES: live.
  [[nodiscard]] GlobalAddr buffer() const { return lane_word.buffer(addr()); }
  [[nodiscard]] Ticks written() const { return {birth.value + lane_word.time()}; }
};
static_assert(sizeof(RestingRegister) == 48);

class RestingRegisters {
 public:
  // About what one takes: 48, and its share of two tables that are two thirds full.
  static constexpr uint64_t kBytesEach = 64;

  // Keeps about `max`, and beyond that those whose buffers are to be given back.
  explicit RestingRegisters(uint64_t max);
  RestingRegisters(const RestingRegisters&) = delete;
  RestingRegisters& operator=(const RestingRegisters&) = delete;

  // Null if there is none. Good until the next Put or Erase.
  [[nodiscard]] RestingRegister* Find(KeyHash hash);
  [[nodiscard]] RestingRegister* FindAt(GlobalAddr addr);
  void Prefetch(KeyHash hash) const;

  // False: there is one of that hash, or no memory for one more, or none may rest. REQUIRES: none
  // is there at that address.
  bool Put(const RestingRegister& resting);
  void Erase(RestingRegister* resting);

  // visit(resting) of each, in the order of places: the same in every run of a simulation.
  template <typename Visit>
  void ForEach(Visit visit) {
    for (size_t place = 0; place < places_; ++place) {
      if (RestingRegister* const resting = At(place); resting != nullptr) visit(*resting);
    }
  }
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (size_t place = 0; place < places_; ++place) {
      const RestingRegister& resting = Place(place);
      if (resting.word.bits() != 0) visit(resting);
    }
  }
  [[nodiscard]] size_t places() const { return places_; }
  // Null if the place is free.
  [[nodiscard]] RestingRegister* At(size_t place) {
    RestingRegister& resting = Place(place);
    return resting.word.bits() == 0 ? nullptr : &resting;
  }
  [[nodiscard]] bool HasRoom() const { return size() < max_; }
  [[nodiscard]] size_t size() const { return places_ - free_.size(); }

 private:
  static constexpr size_t kChunkPlaces = size_t{1} << 16;
  // From the second chunk on they are huge pages, if the host has any.
  static constexpr uint64_t kChunkBytes = kChunkPlaces * sizeof(RestingRegister);
  static constexpr int kShardBits = 9;

  static uint64_t Spread(uint64_t bits) { return bits * 0x9e3779b97f4a7c15ULL; }
  // Absl's tables take the lower bits, the shard the upper ones.
  struct HashBits {
    using is_transparent = void;
    size_t operator()(KeyHash hash) const { return Spread(hash.bits()); }
    size_t operator()(uint32_t place) const { return Spread(owner->Place(place).hash.bits()); }
    const RestingRegisters* owner;
  };
  struct SameHash {
    using is_transparent = void;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t place, KeyHash hash) const {
      return owner->Place(place).hash.bits() == hash.bits();
    }
    const RestingRegisters* owner;
  };
  struct AddrBits {
    using is_transparent = void;
    size_t operator()(GlobalAddr addr) const { return Spread(addr.bits()); }
    size_t operator()(uint32_t place) const { return Spread(owner->Place(place).addr().bits()); }
    const RestingRegisters* owner;
  };
  struct SameAddr {
    using is_transparent = void;
    bool operator()(uint32_t a, uint32_t b) const { return a == b; }
    bool operator()(uint32_t place, GlobalAddr addr) const {
      return owner->Place(place).addr() == addr;
    }
    const RestingRegisters* owner;
  };
  using ByHash = absl::flat_hash_set<uint32_t, HashBits, SameHash>;
  using ByAddr = absl::flat_hash_set<uint32_t, AddrBits, SameAddr>;

  [[nodiscard]] const RestingRegister& Place(size_t place) const {
    return reinterpret_cast<const RestingRegister*>(
        chunks_[place / kChunkPlaces].start())[place % kChunkPlaces];
  }
  RestingRegister& Place(size_t place) {
    return reinterpret_cast<RestingRegister*>(
        chunks_[place / kChunkPlaces].start())[place % kChunkPlaces];
  }
  [[nodiscard]] static size_t ShardOf(uint64_t bits) { return Spread(bits) >> (64 - kShardBits); }
  void EraseAt(uint32_t place);
  // Makes room for one more, if need be and if it can: roughly the oldest goes.
  void MakeRoom();
  bool TakePlace(uint32_t* place);

  const uint64_t max_;
  std::vector<ZeroedMemory> chunks_;
  size_t places_ = 0;
  std::vector<uint32_t> free_;
  std::vector<ByHash> by_hash_;
  std::vector<ByAddr> by_addr_;
  size_t hand_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_RESTING_REGISTERS_H_
