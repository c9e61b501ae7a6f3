#include "tests/sim/memory_watch.h"

#include <algorithm>
#include <cstring>

#include "client_core/layout/region_layout.h"
#include "client_core/layout/register_layout.h"

namespace onetrip {

void MemoryWatch::Fail(const char* what, GlobalAddr addr) {
  if (!failure_.empty()) return;
  failure_ = std::string(what) + ": region " + std::to_string(addr.region()) + ", offset " +
             std::to_string(addr.offset());
}

void MemoryWatch::UseView(const View& view) {
  const size_t before = view_.regions.size();
  view_ = view;
  if (view.regions.size() < before) ForgetRegionsFrom(static_cast<uint32_t>(view.regions.size()));
}

void MemoryWatch::ForgetRegionsFrom(uint32_t end) {
  for (const auto& [bits, object] : objects_) {
    if (GlobalAddr(bits).region() >= end) {
      Fail("a region was given up in which an object is in use", GlobalAddr(bits));
    }
  }
  const uint64_t first = GlobalAddr(end, 0).bits();
  for (auto block = blocks_.lower_bound(first); block != blocks_.end(); ++block) {
    const GlobalAddr start(block->first);
    if (!MayBeTakenBack(start)) Fail("a region was given up in which somebody has a block", start);
  }
  absl::erase_if(objects_, [&](const auto& one) { return one.first >= first; });
  absl::erase_if(in_use_, [&](const auto& one) { return one.first >= first; });
  blocks_.erase(blocks_.lower_bound(first), blocks_.end());
  free_.erase(free_.lower_bound(first), free_.end());
  absl::erase_if(released_before_, [&](uint64_t addr) { return addr >= first; });
}

void MemoryWatch::Allocated(GlobalAddr addr, SizeClass size_class, MemoryUse use) {
  if (!objects_.try_emplace(addr.bits(), Object{Phase::kAllocated, use, size_class, 0}).second) {
    Fail("an object was allocated that is in use", addr);
  } else {
    ++in_use_[addr.block_start().bits()];
  }
  if (!view_.Contains(addr)) {
    Fail("an object was allocated in a region that is gone", addr);
  }
  Block* const block = BlockOf(addr);
  if (block == nullptr) {
    Fail("an object was allocated in a block that nobody has", addr);
  } else {
    const uint16_t index = ObjectIndex(addr, addr.block_start(), size_class);
    if (block->size_class != size_class || !block->listed.at(index)) {
      return Fail("an object was allocated that is in no list of free ones", addr);
    }
    block->listed[index] = false;
  }
  if (released_before_.contains(addr.bits())) {
    ++reused_;
    if (on_reuse_) on_reuse_();
  }
  ForgetFree(addr, size_class);
}

void MemoryWatch::ForgetFree(GlobalAddr addr, SizeClass size_class) {
  // Its block may have gone back to its node since and have been granted in another class: what was
  // released there, or in a span that reached into it, is no object any more.
  const auto forget_before = [this](auto next, uint64_t from) {
    while (next != free_.begin()) {
      const auto last = std::prev(next);
      if (last->first + last->second <= from) return;
      next = free_.erase(last);
    }
  };
  forget_before(free_.lower_bound(addr.bits() + size_class.bytes()), addr.bits());
  forget_before(free_.lower_bound(addr.block_start().bits()), addr.block_start().bits());
}

void MemoryWatch::Retired(GlobalAddr addr, SizeClass size_class) {
  const auto found = objects_.find(addr.bits());
  if (found == objects_.end() || found->second.phase == Phase::kRetired) {
    return Fail("an object was retired that is not in use", addr);
  }
  if (found->second.size_class != size_class) Fail("an object was retired in another class", addr);
  found->second.phase = Phase::kRetired;
  found->second.retired_at = next_ticket_;
}

void MemoryWatch::Released(GlobalAddr addr, SizeClass size_class, MemoryUse use) {
  const auto found = objects_.find(addr.bits());
  if (found == objects_.end()) return Fail("an object was released twice", addr);
  if (found->second.phase != Phase::kAllocated && !pinned_.empty() &&
      *pinned_.begin() < found->second.retired_at) {
    Fail("an object was released while an operation runs that may read it", addr);
  }
  objects_.erase(found);
  --in_use_[addr.block_start().bits()];
  free_[addr.bits()] = size_class.bytes();
  released_before_.insert(addr.bits());
  Poison(addr, size_class, use);
}

// The worker that unlinked it may be about to retire it, or has not lived to.
void MemoryWatch::Unnamed(GlobalAddr addr) {
  const auto found = objects_.find(addr.bits());
  // Two workers may look for it one after the other: no worker names it again that was seen
  // unnamed.
  if (found == objects_.end() || found->second.phase != Phase::kAllocated) return;
  found->second.phase = Phase::kUnnamed;
  found->second.retired_at = next_ticket_;
}

void MemoryWatch::Reclaimed(GlobalAddr addr, SizeClass size_class) {
  const auto found = objects_.find(addr.bits());
  if (found == objects_.end()) return;
  if (found->second.phase == Phase::kAllocated) Fail("an object was taken over in use", addr);
  Released(addr, size_class, found->second.use);
}

MemoryWatch::Block* MemoryWatch::BlockOf(GlobalAddr addr) {
  const auto found = blocks_.find(addr.block_start().bits());
  return found == blocks_.end() ? nullptr : &found->second;
}

void MemoryWatch::Adopted(GlobalAddr start, SizeClass size_class, const std::vector<bool>* used) {
  if (used == nullptr && BlockOf(start) != nullptr && !MayBeTakenBack(start)) {
    return Fail("a block was granted that somebody has", start);
  }
  Block& block = blocks_[start.bits()];
  block = {size_class, std::vector<bool>(ObjectsPerBlock(size_class, start.block()))};
  for (size_t i = 0; i < block.listed.size(); ++i) {
    block.listed[i] = used == nullptr || !(*used)[i];
    const GlobalAddr addr = ObjectAddr(start, size_class, static_cast<uint16_t>(i));
    if (block.listed[i] && !IsFree(addr)) Fail("a block's owner takes for free what is not", addr);
  }
  ForgetBlocksIn(start, size_class);
}

// Blocks that their node has taken back since, and granted again as the rest of a span.
void MemoryWatch::ForgetBlocksIn(GlobalAddr start, SizeClass size_class) {
  for (uint32_t i = 1; i < size_class.blocks(); ++i) {
    const GlobalAddr rest = start + i * kBlockBytes;
    if (BlockOf(rest) == nullptr) continue;
    if (!MayBeTakenBack(rest)) Fail("a span was granted over a block that a worker has", rest);
    blocks_.erase(rest.bits());
  }
}

void MemoryWatch::Opened(GlobalAddr start) {
  Block* const block = BlockOf(start);
  if (block == nullptr || block->is_open) return Fail("a block was opened that nobody has", start);
  block->listed.assign(block->listed.size(), false);
  block->is_open = true;
}

bool MemoryWatch::MayBeTakenBack(GlobalAddr start) const {
  const auto block = blocks_.find(start.bits());
  if (block == blocks_.end() || !block->second.is_open) return false;
  const auto in_use = in_use_.find(start.bits());
  return in_use == in_use_.end() || in_use->second == 0;
}

void MemoryWatch::GivenBack(GlobalAddr start) {
  const Block* const block = BlockOf(start);
  if (block == nullptr) return Fail("a block was given back that nobody has", start);
  if (!std::all_of(block->listed.begin(), block->listed.end(),
                   [](bool listed) { return listed; })) {
    Fail("a block was given back of which not all is free", start);
  }
  blocks_.erase(start.bits());
}

void MemoryWatch::Listed(GlobalAddr addr) {
  Block* const block = BlockOf(addr);
  if (block == nullptr) return Fail("an object was freed in a block that nobody has", addr);
  if (!IsFree(addr)) return Fail("an object was freed that is in use", addr);
  const uint16_t index = ObjectIndex(addr, addr.block_start(), block->size_class);
  if (block->listed.at(index)) Fail("an object was freed twice", addr);
  block->listed[index] = true;
}

std::vector<std::pair<GlobalAddr, SizeClass>> MemoryWatch::OnTheWay() const {
  std::vector<std::pair<GlobalAddr, SizeClass>> objects;
  for (const auto& [start, block] : blocks_) {
    for (size_t i = 0; i < block.listed.size(); ++i) {
      const GlobalAddr addr =
          ObjectAddr(GlobalAddr(start), block.size_class, static_cast<uint16_t>(i));
      if (!block.listed[i] && IsFree(addr)) objects.emplace_back(addr, block.size_class);
    }
  }
  return objects;
}

void MemoryWatch::Written(NodeId node, uint64_t offset) {
  if (free_.empty()) return;
  for (uint32_t region = 0; region < view_.regions.size(); ++region) {
    const RegionPlacement& placement = view_.regions[region];
    for (int replica = 0; replica < view_.replicas - placement.missing; ++replica) {
      const uint64_t base = placement.base[replica];
      if (placement.nodes[replica] != node || offset < base || offset >= base + kRegionBytes) {
        continue;
      }
      const GlobalAddr addr(region, offset - base);
      const auto after = free_.upper_bound(addr.bits());
      if (after == free_.begin()) return;
      const auto& [start, bytes] = *std::prev(after);
      if (addr.bits() < start + bytes && !MayClearLock(addr)) {
        Fail("an object was written that is free", addr);
      }
      return;
    }
  }
}

bool MemoryWatch::MayClearLock(GlobalAddr addr) {
  const Block* const block = BlockOf(addr);
  if (block == nullptr) return false;
  const GlobalAddr start = addr.block_start();
  const uint16_t index = ObjectIndex(addr, start, block->size_class);
  return index < block->listed.size() && !block->listed[index] &&
         addr == ObjectAddr(start, block->size_class, index);
}

void MemoryWatch::Poison(GlobalAddr addr, SizeClass size_class, MemoryUse use) {
  if (!view_.Contains(addr)) return Fail("an object of a region that is gone was released", addr);
  for (int replica = 0; replica < view_.LiveReplicas(addr); ++replica) {
    const RemoteAddr at = view_.Locate(addr, replica);
    // Enough of it: a record's header, which holds its checksum, is at its beginning.
    const uint64_t kept = use == MemoryUse::kBuffer ? kBufferBulkOffset : 0;
    std::memset(nodes_.at(at.node.value)->base() + at.offset + kept, 0xdb,
                std::min<uint64_t>(size_class.bytes(), 512) - kept);
  }
}

uint64_t MemoryWatch::Pinned() {
  pinned_.insert(next_ticket_);
  return next_ticket_++;
}

uint64_t MemoryWatch::live_objects() const {
  uint64_t live = 0;
  for (const auto& [addr, object] : objects_) live += IsLiveObject(object) ? 1 : 0;
  return live;
}

GlobalAddr MemoryWatch::LiveBesides(const absl::flat_hash_set<uint64_t>& named) const {
  for (const auto& [addr, object] : objects_) {
    if (IsLiveObject(object) && !named.contains(addr)) return GlobalAddr(addr);
  }
  return GlobalAddr();
}

bool MemoryWatch::IsLive(GlobalAddr addr) const {
  const auto found = objects_.find(addr.bits());
  return found != objects_.end() && found->second.phase == Phase::kAllocated;
}

}  // namespace onetrip
