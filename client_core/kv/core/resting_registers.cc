#include "client_core/kv/core/resting_registers.h"

#include <utility>

#include "client_core/base/check.h"

namespace onetrip {

RestingRegisters::RestingRegisters(uint64_t max) : max_(max) {
  if (max_ == 0) return;
  constexpr size_t kShards = size_t{1} << kShardBits;
  by_hash_.assign(kShards, ByHash(0, HashBits{this}, SameHash{this}));
  by_addr_.assign(kShards, ByAddr(0, AddrBits{this}, SameAddr{this}));
}

RestingRegister* RestingRegisters::Find(KeyHash hash) {
  if (size() == 0) return nullptr;
  const ByHash& shard = by_hash_[ShardOf(hash.bits())];
  const auto found = shard.find(hash);
  return found == shard.end() ? nullptr : &Place(*found);
}

RestingRegister* RestingRegisters::FindAt(GlobalAddr addr) {
  if (size() == 0) return nullptr;
  const ByAddr& shard = by_addr_[ShardOf(addr.bits())];
  const auto found = shard.find(addr);
  return found == shard.end() ? nullptr : &Place(*found);
}

void RestingRegisters::Prefetch(KeyHash hash) const {
  if (size() != 0) by_hash_[ShardOf(hash.bits())].prefetch(hash);
}

bool RestingRegisters::Put(const RestingRegister& resting) {
  if (max_ == 0 || Find(resting.hash) != nullptr) return false;
  CHECK(FindAt(resting.addr()) == nullptr);
  MakeRoom();
  uint32_t place = 0;
  if (!TakePlace(&place)) return false;
  Place(place) = resting;
  by_hash_[ShardOf(resting.hash.bits())].insert(place);
  by_addr_[ShardOf(resting.addr().bits())].insert(place);
  return true;
}

void RestingRegisters::Erase(RestingRegister* resting) {
  const ByAddr& shard = by_addr_[ShardOf(resting->addr().bits())];
  const auto found = shard.find(resting->addr());
  CHECK(found != shard.end());
  EraseAt(*found);
}

void RestingRegisters::EraseAt(uint32_t place) {
  RestingRegister& resting = Place(place);
  by_hash_[ShardOf(resting.hash.bits())].erase(place);
  by_addr_[ShardOf(resting.addr().bits())].erase(place);
  resting = RestingRegister();
  free_.push_back(place);
}

void RestingRegisters::MakeRoom() {
  constexpr int kLooks = 64;
  for (int looks = 0; size() >= max_ && looks < kLooks; ++looks) {
    hand_ = (hand_ + 1) % places_;
    RestingRegister* const resting = At(hand_);
    if (resting != nullptr && !resting->live) EraseAt(static_cast<uint32_t>(hand_));
  }
}

bool RestingRegisters::TakePlace(uint32_t* place) {
  if (!free_.empty()) {
    *place = free_.back();
    free_.pop_back();
    return true;
  }
  if (places_ == chunks_.size() * kChunkPlaces) {
    const uint64_t huge_from = chunks_.empty() ? kChunkBytes + 1 : kChunkBytes;
    ZeroedMemory chunk = ZeroedMemory::TryMake(kChunkBytes, huge_from);
    if (chunk.start() == nullptr) return false;
    chunks_.push_back(std::move(chunk));
  }
  *place = static_cast<uint32_t>(places_++);
  return true;
}

}  // namespace onetrip
