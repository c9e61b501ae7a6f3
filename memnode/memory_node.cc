#include "memnode/memory_node.h"

#include <algorithm>
#include <bit>

#include "client_core/base/planted_bug.h"

namespace onetrip {

uint64_t MemoryNode::BytesOn(NodeId self, const View& view) {
  uint64_t bytes = 0;
  for (const RegionPlacement& placement : view.regions) {
    for (int replica = 0; replica < view.replicas; ++replica) {
      if (placement.nodes[replica] != self) continue;
      bytes = std::max(bytes, placement.base[replica] + kRegionBytes);
    }
  }
  return bytes;
}

Result<std::unique_ptr<MemoryNode>> MemoryNode::Create(NodeId self, const View& view) {
  const uint64_t bytes = BytesOn(self, view);
  if (bytes == 0) return Status(StatusCode::kInvalidArgument, "a node without regions");
  std::string reason;
  Result<std::unique_ptr<Backing>> backing = Backing::Open({.bytes = bytes}, &reason);
  if (!backing.ok()) return backing.status();
  return Create(self, view, std::move(*backing), &reason);
}

Result<std::unique_ptr<MemoryNode>> MemoryNode::Create(NodeId self, const View& view,
                                                       std::unique_ptr<Backing> backing,
                                                       std::string* reason) {
  const uint64_t bytes = BytesOn(self, view);
  if (bytes > backing->bytes()) {
    *reason = "the map places " + std::to_string(bytes) + " bytes on this memory node, which has " +
              std::to_string(backing->bytes());
    return Status(StatusCode::kInvalidArgument, "more than the memory holds");
  }
  if (backing->owner().has_value() && backing->owner()->node != self) {
    *reason = "the memory belongs to memory node " + std::to_string(backing->owner()->node.value) +
              ", not to " + std::to_string(self.value);
    return Status(StatusCode::kInvalidArgument, "another node's memory");
  }
  const bool is_adopted = backing->is_adopted();
  std::unique_ptr<MemoryNode> node(new MemoryNode(self, std::move(backing)));
  node->epoch_ = view.epoch;
  const char* misplaced = Place(self, view, *node->backing_, &node->regions_);
  if (misplaced != nullptr) {
    *reason = std::string("the map places ") + misplaced + " on this memory node";
    return Status(StatusCode::kInvalidArgument, "a map that makes no sense");
  }
  // All of them before any: memory that is refused stays as it was.
  if (const std::string wrong = WhyNotAdopted(self, view, *node->backing_); !wrong.empty()) {
    *reason = "the memory node's image cannot be adopted: " + wrong +
              "; move it away and start the node without memory";
    return Status(StatusCode::kCorrupt, "the image cannot be adopted");
  }
  // An image says that it is in use when it can be adopted, and is touched only once it says so.
  if (!is_adopted) {
    for (HostedRegion& hosted : node->regions_) {
      if (!hosted.is_missing) Format(hosted);
    }
  }
  const Status in_use = node->backing_->MarkInUse(reason);
  if (!in_use.ok()) return in_use;
  if (is_adopted) {
    for (HostedRegion& hosted : node->regions_) {
      if (!hosted.is_missing) Adopt(hosted);
    }
  }
  return node;
}

std::string MemoryNode::WhyNotAdopted(NodeId self, const View& view, const Backing& backing) {
  std::vector<HostedRegion> regions;
  if (!backing.is_adopted() || Place(self, view, backing, &regions) != nullptr) return "";
  for (const HostedRegion& hosted : regions) {
    if (hosted.is_missing) continue;
    if (!backing.damage().empty()) return backing.damage();
    const char* wrong = Check(hosted);
    if (wrong != nullptr) return "region " + std::to_string(hosted.region) + " " + wrong;
  }
  return "";
}

const char* MemoryNode::Place(NodeId self, const View& view, const Backing& backing,
                              std::vector<HostedRegion>* regions) {
  std::vector<bool> taken(backing.bytes() / kRegionBytes);
  for (uint32_t region = 0; region < view.regions.size(); ++region) {
    const RegionPlacement& placement = view.regions[region];
    for (int replica = 0; replica < view.replicas; ++replica) {
      if (placement.nodes[replica] != self) continue;
      const uint64_t base = placement.base[replica];
      if (base % kRegionBytes != 0 || base / kRegionBytes >= taken.size()) {
        return "a region that is not in its memory";
      }
      if (taken[base / kRegionBytes]) return "two regions in one place";
      taken[base / kRegionBytes] = true;
      HostedRegion hosted;
      hosted.region = region;
      hosted.memory = backing.base() + base;
      hosted.is_missing = replica >= view.replicas - placement.missing;
      hosted.is_primary = replica == 0 && !hosted.is_missing;
      // Who knows what is there by the time that it is not missing any more.
      hosted.used_before.resize(kBlocksPerRegion, hosted.is_missing);
      regions->push_back(std::move(hosted));
    }
  }
  return nullptr;
}

Status MemoryNode::UseView(const View& view, std::string* reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (view.epoch < epoch_) return Status::Ok();
  std::vector<HostedRegion> regions;
  if (const char* wrong = Place(self_, view, *backing_, &regions); wrong != nullptr) {
    *reason = "the map of epoch " + std::to_string(view.epoch.value) + " places " + wrong +
              " on this memory node";
    return Status(StatusCode::kInvalidArgument, "a map that makes no sense");
  }
  // Who missed a view does not know who used its memory under that one.
  const bool missed_one = view.epoch.value > epoch_.value + 1;
  for (HostedRegion& region : regions) {
    const auto before =
        std::find_if(regions_.begin(), regions_.end(), [&](const HostedRegion& known) {
          return known.region == region.region && known.memory == region.memory;
        });
    const bool is_new = before == regions_.end() && !Planted(Bug::kGrownTakenForZeroed);
    if (is_new || missed_one) {
      region.used_before.assign(kBlocksPerRegion, true);
      continue;
    }
    if (before == regions_.end()) continue;
    region.next_block = before->next_block;
    region.usage = before->usage;
    if (!region.is_missing) region.used_before = std::move(before->used_before);
  }
  regions_ = std::move(regions);
  next_region_ = 0;
  may_be_open_.fill(true);
  epoch_ = view.epoch;
  return Status::Ok();
}

void MemoryNode::Format(HostedRegion& region) {
  RegionHeader* header = Header(region);
  header->magic = kRegionMagic;
  header->layout_version = kLayoutVersion;
  header->region = region.region;
  if (region.region != 0) return;
  for (uint32_t block = 0; block < kRootBlocks; ++block) {
    StoreEntry(region, block, BlockEntry(BlockEntry::Use::kRoot, WorkerId{0}, SizeClass()));
  }
}

bool MemoryNode::IsGrant(const HostedRegion& region, uint32_t first, SizeClass size_class) {
  if (first + size_class.blocks() > kBlocksPerRegion) return false;
  for (uint32_t block = first; block < first + size_class.blocks(); ++block) {
    const BlockEntry entry = LoadEntry(region, block);
    const auto use = block == first ? BlockEntry::Use::kOwned : BlockEntry::Use::kSpanTail;
    if (entry.use() != use || entry.size_class() != size_class) return false;
  }
  return true;
}

const char* MemoryNode::Check(const HostedRegion& region) {
  const RegionHeader* header = Header(region);
  if (header->magic != kRegionMagic || header->region != region.region) {
    return "has no header of its own";
  }
  if (header->layout_version != kLayoutVersion) return "has another layout";
  for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
    const BlockEntry entry = LoadEntry(region, block);
    const bool is_root_area = region.region == 0 && block < kRootBlocks;
    const bool is_root = entry.use() == BlockEntry::Use::kRoot;
    if (is_root != is_root_area) return "has no sound root area";
    if (is_root || entry.bits() == 0) continue;
    const BlockEntry sound(entry.use(), entry.owner(), entry.size_class());
    const bool is_used =
        entry.use() == BlockEntry::Use::kOwned || entry.use() == BlockEntry::Use::kSpanTail;
    if (!is_used || sound.bits() != entry.bits() || !entry.size_class().is_valid()) {
      return "has a damaged block table";
    }
    if (entry.use() == BlockEntry::Use::kOwned && !IsGrant(region, block, entry.size_class())) {
      return "has a span without its end in the block table";
    }
  }
  return nullptr;
}

void MemoryNode::Adopt(HostedRegion& region) {
  // What was free may have been used before that.
  region.used_before.assign(kBlocksPerRegion, true);
  for (uint32_t block = 0; block < kBlocksPerRegion;) {
    const BlockEntry entry = LoadEntry(region, block);
    if (entry.use() == BlockEntry::Use::kOwned) {
      block += entry.size_class().blocks();
      continue;
    }
    // A tail that no span claims: the node died between the parts of a grant or free.
    if (entry.use() == BlockEntry::Use::kSpanTail) StoreEntry(region, block, BlockEntry());
    ++block;
  }
}

RegionHeader* MemoryNode::Header(const HostedRegion& region) {
  return reinterpret_cast<RegionHeader*>(region.memory);
}

BlockEntry MemoryNode::LoadEntry(const HostedRegion& region, uint32_t block) {
  return BlockEntry(__atomic_load_n(&Header(region)->blocks[block], __ATOMIC_ACQUIRE));
}

void MemoryNode::StoreEntry(const HostedRegion& region, uint32_t block, BlockEntry entry) {
  __atomic_store_n(&Header(region)->blocks[block], entry.bits(), __ATOMIC_RELEASE);
}

MemoryNode::HostedRegion* MemoryNode::Find(GlobalAddr addr) {
  for (HostedRegion& region : regions_) {
    if (region.region == addr.region()) return &region;
  }
  return nullptr;
}

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
  // The owner's entry last: until then the blocks are nobody's, whenever the process may die.
  SetOwner(region, first, request.size_class, request.owner);
  region.next_block = (first + count) % kBlocksPerRegion;
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
    case ControlRequest::Kind::kGrant:
      return RecordGrant(request);
    case ControlRequest::Kind::kFree:
      return Free(request);
    case ControlRequest::Kind::kTakeOver:
      return TakeOver(request);
  }
  return {ControlReply::Outcome::kConflict, {}};
}

// A sixty-fourth of what it may grant. But a worker needs a block for each size class that it
// meets, however small the pool is, and no more than a few at a time, however large.
uint32_t MemoryNode::ReserveBlocks() const {
  constexpr uint32_t kShare = 64;
  constexpr uint32_t kMin = 4;
  constexpr uint32_t kMax = 64;
  const auto primaries =
      std::count_if(regions_.begin(), regions_.end(),
                    [](const HostedRegion& region) { return region.is_primary; });
  const auto blocks = static_cast<uint32_t>(primaries) * kBlocksPerRegion;
  return std::min(blocks, std::clamp(blocks / kShare, kMin, kMax));
}

bool MemoryNode::HasBeyondReserve(uint32_t count) const {
  return HasFreeBlocks(ReserveBlocks() + count);
}

// An eighth of what it may grant, and its reserve.
bool MemoryNode::IsTight() const {
  constexpr uint32_t kShare = 8;
  const auto primaries =
      std::count_if(regions_.begin(), regions_.end(),
                    [](const HostedRegion& region) { return region.is_primary; });
  return !HasFreeBlocks(ReserveBlocks() +
                        static_cast<uint32_t>(primaries) * kBlocksPerRegion / kShare);
}

bool MemoryNode::HasFreeBlocks(uint32_t wanted) const {
  uint32_t free_blocks = 0;
  // Those that are granted from next have most of them.
  for (size_t i = 0; i < regions_.size() && free_blocks < wanted; ++i) {
    const HostedRegion& region = regions_[(next_region_ + i) % regions_.size()];
    if (region.is_primary) free_blocks += FreeBlocks(region);
  }
  return free_blocks >= wanted;
}

// What is open and mostly free goes first, so that blocks of which little is used do not become
// more and more; what has hardly anything free goes last.
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
    if (!region.is_primary) continue;
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
    if (!region.is_primary) continue;
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

// Whoever set the last bit had set it on the other replicas before: nothing is under way to any of
// them, and they learn that the block is free when it is granted anew.
bool MemoryNode::Reap() {
  bool any = false;
  if (std::none_of(may_be_open_.begin(), may_be_open_.end(), [](bool may_be) { return may_be; })) {
    return false;
  }
  for (HostedRegion& region : regions_) {
    if (!region.is_primary) continue;
    for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
      const BlockEntry entry = LoadEntry(region, block);
      if (!entry.is_open() || !IsWhollyFree(region, block)) continue;
      DropOpen(region, block, 1);
      any = true;
    }
  }
  return any;
}

void MemoryNode::DropOpen(HostedRegion& region, uint32_t first, uint32_t count) {
  for (uint32_t block = 0; block < first + count; ++block) {
    const BlockEntry entry = LoadEntry(region, block);
    if (!entry.is_open() || block + entry.size_class().blocks() <= first) continue;
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
  if (region == nullptr || region->is_missing) return {ControlReply::Outcome::kFull, request.block};
  // What the primary takes back when it is wholly free it gives to others without a word to this
  // node.
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
  if (region == nullptr || region->is_missing || !IsGrant(*region, first, request.size_class) ||
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
  // As of a grant.
  if (region == nullptr || region->is_missing) return {ControlReply::Outcome::kFull, request.block};
  const bool opens = request.owner == kNobody;
  const WorkerId owner = LoadEntry(*region, first).owner();
  // Who asks again has not heard that it was done.
  const bool is_done = owner == request.owner && (opens || request.from == kNobody);
  if (opens || request.from == kNobody) {
    if (!IsGrant(*region, first, request.size_class) || (owner != request.from && !is_done)) {
      return {ControlReply::Outcome::kConflict, request.block};
    }
    if (opens) may_be_open_[request.size_class.index()] = true;
  }
  // Who lost a race for it has looked at it before the winner used it.
  if (region->is_primary && owner != request.from && !is_done) {
    return {ControlReply::Outcome::kConflict, request.block};
  }
  // What its last owner was giving back, or getting, when it died is free here.
  if (!region->is_primary && IsFree(*region, first, request.size_class.blocks())) {
    Grant(*region, first, request);
    return {ControlReply::Outcome::kDone, request.block};
  }
  if (!IsGrant(*region, first, request.size_class)) {
    return {ControlReply::Outcome::kConflict, request.block};
  }
  SetOwner(*region, first, request.size_class, request.owner);
  return {ControlReply::Outcome::kDone, request.block};
}

MemoryNode::RegionUsage MemoryNode::LookAt(const HostedRegion& region) {
  RegionUsage usage;
  for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
    const BlockEntry entry = LoadEntry(region, block);
    if (entry.use() == BlockEntry::Use::kFree || entry.use() == BlockEntry::Use::kRoot) continue;
    ++usage.granted_blocks;
    const SizeClass size_class = entry.size_class();
    if (entry.use() != BlockEntry::Use::kOwned || !size_class.is_valid()) continue;
    const uint32_t objects = ObjectsPerBlock(size_class, block);
    usage.overhead_bytes +=
        static_cast<uint32_t>(size_class.blocks() * kBlockBytes - objects * size_class.bytes());
    usage.free_bytes[size_class.index()] +=
        static_cast<uint32_t>(FreeObjects(region, block, objects) * size_class.bytes());
  }
  return usage;
}

// A few regions at a time: grants wait no longer than that takes.
NodeUsage MemoryNode::Usage() {
  constexpr uint32_t kRegionsAtOnce = 32;
  for (uint32_t looked = 0; looked < kRegionsPerLook; looked += kRegionsAtOnce) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto regions = static_cast<uint32_t>(regions_.size());
    if (looked >= regions) break;
    for (uint32_t i = 0; i < std::min(kRegionsAtOnce, regions - looked); ++i) {
      HostedRegion& region = regions_[next_look_++ % regions];
      if (region.is_primary) region.usage = LookAt(region);
    }
  }
  NodeUsage usage;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const HostedRegion& region : regions_) {
    if (!region.is_primary) continue;
    usage.blocks += kBlocksPerRegion - (region.region == 0 ? kRootBlocks : 0);
    usage.granted_blocks += region.usage.granted_blocks;
    usage.overhead_bytes += region.usage.overhead_bytes;
    for (size_t i = 0; i < usage.free_bytes.size(); ++i) {
      usage.free_bytes[i] += region.usage.free_bytes[i];
    }
  }
  usage.reserve_blocks = ReserveBlocks();
  return usage;
}

MemoryNodeStatus MemoryNode::status() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  MemoryNodeStatus status;
  for (const HostedRegion& region : regions_) {
    if (region.is_missing) continue;
    ++status.regions;
    const uint32_t blocks = kBlocksPerRegion - (region.region == 0 ? kRootBlocks : 0);
    status.blocks += blocks;
    status.granted_blocks += blocks - FreeBlocks(region);
  }
  return status;
}

}  // namespace onetrip
