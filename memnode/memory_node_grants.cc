// MemoryNode: which blocks are whose. Grants, open blocks, and what is taken back.
#include <algorithm>
#include <bit>

#include "client_core/base/planted_bug.h"
#include "memnode/memory_node.h"

namespace onetrip {

bool MemoryNode::IsFree(const HostedRegion& region, uint32_t first, uint32_t count) {
  if (first + count > kBlocksPerRegion) return false;
  for (uint32_t block = first; block < first + count; ++block) {
    if (LoadEntry(region, block).use() != BlockEntry::Use::kFree) return false;
  }
  return true;
}

uint32_t MemoryNode::FreeBlocks(const HostedRegion& region) {
  uint32_t free_blocks = 0;
  for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
    free_blocks += LoadEntry(region, block).use() == BlockEntry::Use::kFree ? 1 : 0;
  }
  return free_blocks;
}

uint32_t MemoryNode::FindFree(const HostedRegion& region, SizeClass size_class) {
  const uint32_t count = size_class.blocks();
  for (uint32_t i = 0; i < kBlocksPerRegion; ++i) {
    const uint32_t first = (region.next_block + i) % kBlocksPerRegion;
    // A span needs whole blocks; block 0 also holds the region header.
    if (size_class.is_span() && first == 0) continue;
    if (IsFree(region, first, count)) return first;
  }
  return kBlocksPerRegion;
}

void MemoryNode::Grant(HostedRegion& region, uint32_t first, const ControlRequest& request) {
  const uint32_t count = request.size_class.blocks();
  for (uint32_t block = first; block < first + count; ++block) {
    if (region.used_before[block]) {
      const uint64_t skip = block == 0 ? kRegionHeaderBytes : 0;
      auto* words = reinterpret_cast<uint64_t*>(region.memory + block * kBlockBytes + skip);
      for (uint64_t i = 0; i < (kBlockBytes - skip) / 8; ++i) {
        __atomic_store_n(words + i, 0, __ATOMIC_RELAXED);
      }
    }
    region.used_before[block] = true;
  }
  // The owner's entry last: until then the blocks have no owner, whenever the process may die.
  SetOwner(region, first, request.size_class, request.owner);
  region.next_block = (first + count) % kBlocksPerRegion;
  if (toucher_) toucher_->NoteInUse(region.memory + (first + count) * kBlockBytes - base());
}

ControlReply MemoryNode::Handle(const ControlRequest& request) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!request.size_class.is_valid()) return {ControlReply::Outcome::kConflict, {}};
  switch (request.kind) {
    case ControlRequest::Kind::kAlloc:
    case ControlRequest::Kind::kAllocReserve:
      return Alloc(request);
    case ControlRequest::Kind::kAllocSparse:
      return GiveSparse(request);
    case ControlRequest::Kind::kAllocOpen:
      return GiveAnyOpen(request);
    case ControlRequest::Kind::kGrant:
      return RecordGrant(request);
    case ControlRequest::Kind::kFree:
      return Free(request);
    case ControlRequest::Kind::kTakeOver:
      return TakeOver(request);
  }
  return {ControlReply::Outcome::kConflict, {}};
}

uint32_t MemoryNode::GrantingRegions() const {
  return static_cast<uint32_t>(std::count_if(regions_.begin(), regions_.end(), Grants));
}

// A sixty-fourth of what it may grant. But a worker needs a block for each size class that it
// meets, however small the pool is, and no more than a few at a time, however large.
uint32_t MemoryNode::ReserveBlocks() const {
  constexpr uint32_t kShare = 64;
  constexpr uint32_t kMin = 4;
  constexpr uint32_t kMax = 64;
  const uint32_t blocks = GrantingRegions() * kBlocksPerRegion;
  return std::min(blocks, std::clamp(blocks / kShare, kMin, kMax));
}

bool MemoryNode::HasBeyondReserve(uint32_t count) const {
  if (Planted(Bug::kReserveGiven)) return HasFreeBlocks(count);
  return HasFreeBlocks(ReserveBlocks() + count);
}

// An eighth of what it may grant, and its reserve.
bool MemoryNode::IsTight() const {
  constexpr uint32_t kShare = 8;
  return !HasFreeBlocks(ReserveBlocks() + GrantingRegions() * kBlocksPerRegion / kShare);
}

bool MemoryNode::HasFreeBlocks(uint32_t wanted) const {
  uint32_t free_blocks = 0;
  // Those that are granted from next have most of them.
  for (size_t i = 0; i < regions_.size() && free_blocks < wanted; ++i) {
    const HostedRegion& region = regions_[(next_region_ + i) % regions_.size()];
    if (Grants(region)) free_blocks += FreeBlocks(region);
  }
  return free_blocks >= wanted;
}

// Gives open blocks that are mostly free first, so that blocks of which little is used do not
// become more and more; those that have hardly anything free last.
ControlReply MemoryNode::Alloc(const ControlRequest& request) {
  constexpr uint32_t kMostlyFree = 2;
  ControlReply reply = GiveOpen(request, kMostlyFree);
  if (reply.outcome == ControlReply::Outcome::kFull) reply = GiveFree(request);
  if (reply.outcome == ControlReply::Outcome::kFull && Reap()) reply = GiveFree(request);
  if (reply.outcome == ControlReply::Outcome::kFull) reply = GiveOpen(request, 0);
  reply.is_tight = IsTight();
  return reply;
}

ControlReply MemoryNode::GiveFree(const ControlRequest& request) {
  if (request.kind == ControlRequest::Kind::kAlloc &&
      !HasBeyondReserve(request.size_class.blocks())) {
    return {ControlReply::Outcome::kFull, {}};
  }
  for (size_t i = 0; i < regions_.size(); ++i) {
    HostedRegion& region = regions_[(next_region_ + i) % regions_.size()];
    if (!IsAsked(region, request)) continue;
    const uint32_t first = FindFree(region, request.size_class);
    if (first == kBlocksPerRegion) continue;
    // The next request goes on here: fill a region before the next one is touched.
    next_region_ = static_cast<uint32_t>((next_region_ + i) % regions_.size());
    Grant(region, first, request);
    return {ControlReply::Outcome::kDone, GlobalAddr(region.region, first * kBlockBytes)};
  }
  return {ControlReply::Outcome::kFull, {}};
}

ControlReply MemoryNode::GiveOpen(const ControlRequest& request, uint32_t share) {
  const SizeClass size_class = request.size_class;
  if (!may_be_open_[size_class.index()]) return {ControlReply::Outcome::kFull, {}};
  const BlockEntry open(BlockEntry::Use::kOwned, kNobody, size_class);
  HostedRegion* best_region = nullptr;
  uint32_t best_block = 0;
  uint32_t most_free = 0;
  bool any = false;
  for (HostedRegion& region : regions_) {
    if (!Grants(region)) continue;
    for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
      if (LoadEntry(region, block).bits() != open.bits()) continue;
      any = true;
      if (!IsAsked(region, request)) continue;
      const uint32_t objects = ObjectsPerBlock(size_class, block);
      const uint32_t free = FreeObjects(region, block, objects);
      if (free <= most_free || (share != 0 && free * share < objects)) continue;
      best_region = &region;
      best_block = block;
      most_free = free;
    }
  }
  may_be_open_[size_class.index()] = any;
  if (best_region == nullptr) return {ControlReply::Outcome::kFull, {}};
  SetOwner(*best_region, best_block, size_class, request.owner);
  return {.outcome = ControlReply::Outcome::kOpened,
          .block = GlobalAddr(best_region->region, best_block * kBlockBytes),
          .size_class = size_class};
}

ControlReply MemoryNode::GiveSparse(const ControlRequest& request) {
  constexpr double kLeastFree = 0.25;
  HostedRegion* best_region = nullptr;
  uint32_t best_block = 0;
  double most_free = 0;
  for (HostedRegion& region : regions_) {
    if (!Grants(region)) continue;
    for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
      const BlockEntry entry = LoadEntry(region, block);
      if (!entry.is_open() || entry.size_class().index() >= SizeClass::kSlabClasses) continue;
      const uint32_t objects = ObjectsPerBlock(entry.size_class(), block);
      const double free = static_cast<double>(FreeObjects(region, block, objects)) / objects;
      if (free < kLeastFree || free <= most_free) continue;
      best_region = &region;
      best_block = block;
      most_free = free;
    }
  }
  if (best_region == nullptr) return {ControlReply::Outcome::kFull, {}};
  const SizeClass size_class = LoadEntry(*best_region, best_block).size_class();
  SetOwner(*best_region, best_block, size_class, request.owner);
  return {.outcome = ControlReply::Outcome::kOpened,
          .block = GlobalAddr(best_region->region, best_block * kBlockBytes),
          .size_class = size_class};
}

ControlReply MemoryNode::GiveAnyOpen(const ControlRequest& request) {
  const bool leaves = request.block.is_null();
  for (HostedRegion& region : regions_) {
    if (!region.is_primary || region.is_leaving != leaves) continue;
    if (!leaves && !IsAsked(region, request)) continue;
    ReapIn(region);
    for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
      const BlockEntry entry = LoadEntry(region, block);
      if (!entry.is_open()) continue;
      SetOwner(region, block, entry.size_class(), request.owner);
      return {.outcome = ControlReply::Outcome::kOpened,
              .block = GlobalAddr(region.region, block * kBlockBytes),
              .size_class = entry.size_class()};
    }
  }
  return {ControlReply::Outcome::kFull, {}};
}

uint32_t MemoryNode::FreeObjects(const HostedRegion& region, uint32_t block, uint32_t objects) {
  const auto* words =
      reinterpret_cast<const uint64_t*>(region.memory + block * kBlockBytes + BitmapOffset(block));
  uint32_t free = 0;
  for (uint32_t i = 0; i * 64 < objects; ++i) {
    free += static_cast<uint32_t>(std::popcount(__atomic_load_n(words + i, __ATOMIC_ACQUIRE)));
  }
  return std::min(free, objects);
}

bool MemoryNode::IsWhollyFree(const HostedRegion& region, uint32_t block) {
  const uint32_t objects = ObjectsPerBlock(LoadEntry(region, block).size_class(), block);
  return FreeObjects(region, block, objects) == objects;
}

// The worker that set the last bit had set it on the other replicas before: nothing is under way to
// any of them, and they learn that the block is free when it is granted anew.
bool MemoryNode::Reap() {
  bool any = false;
  if (std::none_of(may_be_open_.begin(), may_be_open_.end(), [](bool may_be) { return may_be; })) {
    return false;
  }
  for (HostedRegion& region : regions_) {
    if (region.is_primary && ReapIn(region)) any = true;
  }
  return any;
}

bool MemoryNode::ReapIn(HostedRegion& region) {
  bool any = false;
  for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
    const BlockEntry entry = LoadEntry(region, block);
    if (!entry.is_open() || !IsWhollyFree(region, block)) continue;
    DropOpen(region, block, 1);
    any = true;
  }
  return any;
}

uint64_t MemoryNode::CountLeaving() {
  uint64_t blocks = 0;
  for (HostedRegion& region : regions_) {
    if (!region.is_primary || !region.is_leaving) continue;
    ReapIn(region);
    blocks += kBlocksPerRegion - FreeBlocks(region);
  }
  return blocks;
}

bool MemoryNode::HasOpenInUse(const HostedRegion& region, uint32_t first, uint32_t count) {
  for (uint32_t block = 0; block < std::min(first + count, kBlocksPerRegion); ++block) {
    const BlockEntry entry = LoadEntry(region, block);
    if (!entry.is_open() || block + entry.size_class().blocks() <= first) continue;
    if (!IsWhollyFree(region, block)) return true;
  }
  return false;
}

void MemoryNode::DropOpen(HostedRegion& region, uint32_t first, uint32_t count) {
  DropGrants(region, first, count, [](BlockEntry entry) { return entry.is_open(); });
}

void MemoryNode::DropGrants(HostedRegion& region, uint32_t first, uint32_t count,
                            bool (*is_dropped)(BlockEntry entry)) {
  for (uint32_t block = 0; block < std::min(first + count, kBlocksPerRegion); ++block) {
    const BlockEntry entry = LoadEntry(region, block);
    const bool is_grant = entry.use() == BlockEntry::Use::kOwned && entry.size_class().is_valid();
    if (!is_grant || block + entry.size_class().blocks() <= first || !is_dropped(entry)) continue;
    // The first entry first, as in Free().
    for (uint32_t i = 0; i < entry.size_class().blocks(); ++i) {
      StoreEntry(region, block + i, BlockEntry());
    }
  }
}

void MemoryNode::SetOwner(const HostedRegion& region, uint32_t first, SizeClass size_class,
                          WorkerId owner) {
  // The first entry says whose all of them are.
  for (uint32_t block = first + size_class.blocks(); block-- > first;) {
    const auto use = block == first ? BlockEntry::Use::kOwned : BlockEntry::Use::kSpanTail;
    StoreEntry(region, block, BlockEntry(use, owner, size_class));
  }
}

ControlReply MemoryNode::RecordGrant(const ControlRequest& request) {
  HostedRegion* region = Find(request.block);
  // The caller may know of a copy, or of a region that has moved here, before this node does.
  if (region == nullptr || region->is_missing || region->is_leaving) {
    return {ControlReply::Outcome::kFull, request.block};
  }
  // The primary takes back an open block that is wholly free, and gives it to another worker,
  // without a word to this node.
  if (!region->is_primary) DropOpen(*region, request.block.block(), request.size_class.blocks());
  if (!IsFree(*region, request.block.block(), request.size_class.blocks())) {
    return {ControlReply::Outcome::kConflict, request.block};
  }
  Grant(*region, request.block.block(), request);
  return {ControlReply::Outcome::kDone, request.block};
}

ControlReply MemoryNode::Free(const ControlRequest& request) {
  HostedRegion* region = Find(request.block);
  const uint32_t first = request.block.block();
  const uint32_t count = request.size_class.blocks();
  // As of a grant.
  if (region == nullptr || region->is_missing) return {ControlReply::Outcome::kFull, request.block};
  if (!IsGrant(*region, first, request.size_class) ||
      LoadEntry(*region, first).owner() != request.owner) {
    return {ControlReply::Outcome::kConflict, request.block};
  }
  // The owner's entry first, for the same reason.
  for (uint32_t block = first; block < first + count; ++block) {
    StoreEntry(*region, block, BlockEntry());
  }
  return {ControlReply::Outcome::kDone, request.block};
}

ControlReply MemoryNode::TakeOver(const ControlRequest& request) {
  HostedRegion* region = Find(request.block);
  const uint32_t first = request.block.block();
  if (region == nullptr || region->is_missing) return {ControlReply::Outcome::kFull, request.block};
  const bool opens = request.owner == kNobody;
  const WorkerId owner = LoadEntry(*region, first).owner();
  // A worker that asks again has not heard that it was done.
  const bool is_done = owner == request.owner && (opens || request.from == kNobody);
  if (opens || request.from == kNobody) {
    if (!IsGrant(*region, first, request.size_class) || (owner != request.from && !is_done)) {
      return {ControlReply::Outcome::kConflict, request.block};
    }
    if (opens) may_be_open_[request.size_class.index()] = true;
  }
  // A worker that lost a race for it has looked at it before the winner used it.
  if (region->is_primary && owner != request.from && !is_done) {
    return {ControlReply::Outcome::kConflict, request.block};
  }
  // A block that its last owner was giving back, or getting, when it died is free here.
  if (!region->is_primary && IsFree(*region, first, request.size_class.blocks())) {
    Grant(*region, first, request);
    return {ControlReply::Outcome::kDone, request.block};
  }
  if (!IsGrant(*region, first, request.size_class)) {
    if (region->is_primary || opens || request.from == kNobody) {
      return {ControlReply::Outcome::kConflict, request.block};
    }
    // `from` had it of the primary. As in RecordGrant(); or a grant of a region that leaves, whose
    // end this node has not heard: none follows it here that is not `from`'s. What is open and in
    // use stays: this node may be the primary by now, and not have heard of that.
    if (region->is_leaving) {
      DropGrants(*region, first, request.size_class.blocks());
    } else if (!HasOpenInUse(*region, first, request.size_class.blocks())) {
      DropOpen(*region, first, request.size_class.blocks());
    }
    if (!IsFree(*region, first, request.size_class.blocks())) {
      return {ControlReply::Outcome::kConflict, request.block};
    }
    Grant(*region, first, request);
    return {ControlReply::Outcome::kDone, request.block};
  }
  SetOwner(*region, first, request.size_class, request.owner);
  return {ControlReply::Outcome::kDone, request.block};
}

}  // namespace onetrip
