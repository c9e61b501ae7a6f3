#include "memnode/memory_node.h"

#include <algorithm>

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

void MemoryNode::TouchAhead() {
  // Pages of a file would be dirty before they are used, and be written back.
  if (backing_->options().kind == BackingOptions::Kind::kFile) return;
  toucher_ = std::make_unique<PageToucher>(base(), bytes());
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
      hosted.is_leaving = view.IsLeaving(GlobalAddr(region, 0));
      // The node does not know what is there by the time that it is not missing any more.
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
  // A node that missed a view does not know which workers used its memory under that one.
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
  // Blocks that are free now may have been used before.
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
    if (!region.is_primary && !Planted(Bug::kCapacityCountedTwice)) continue;
    usage.blocks += kBlocksPerRegion - (region.region == 0 ? kRootBlocks : 0);
    usage.granted_blocks += region.usage.granted_blocks;
    usage.overhead_bytes += region.usage.overhead_bytes;
    for (size_t i = 0; i < usage.free_bytes.size(); ++i) {
      usage.free_bytes[i] += region.usage.free_bytes[i];
    }
  }
  usage.reserve_blocks = ReserveBlocks();
  usage.leaving_blocks = CountLeaving();
  usage.view_epoch = epoch_.value;
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
