// MemoryNode: one memory node: holds regions, grants coarse blocks of them, and runs no protocol
// (FUSEE 4.4).
//
// A region's primary grants a block, its other live replicas record the grant. A few blocks are
// kept for requests that say that they may have them (PROTOCOLS, "The reserve"). A block that
// no worker owns any more may be open (PROTOCOLS, "Open blocks"): its primary gives it to a worker
// that asks for its size class, and takes it back when its bitmap says that all is free. A block is
// zeroed by every node when it is granted. The block tables lie in the regions themselves, where
// recovery can read them and a node that comes back with its memory finds them again, and where an
// agent writes them that copies a region to a node where it was missing: nothing that they say is
// remembered elsewhere. Thread-safe.
#ifndef ONETRIP_MEMNODE_MEMORY_NODE_H_
#define ONETRIP_MEMNODE_MEMORY_NODE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/pool_usage.h"
#include "client_core/cluster/view.h"
#include "client_core/fabric/control.h"
#include "client_core/layout/region_layout.h"
#include "memnode/backing.h"
#include "memnode/page_toucher.h"

namespace onetrip {

struct MemoryNodeStatus {
  uint64_t regions = 0;  // that are not missing
  uint64_t blocks = 0;   // in all regions it holds, the root area's not counted
  uint64_t granted_blocks = 0;
};

class MemoryNode final : public MemoryEndpoint {
 public:
  // Node `self` of `view`, with the regions that the view places on it, formatted. Memory is
  // private to this process. kOutOfMemory: the host does not give that much address space.
  static Result<std::unique_ptr<MemoryNode>> Create(NodeId self, const View& view);

  // The same on `backing`, which must have the bytes that BytesOn() says, or more, whose rest is
  // unused: all of it on a spare, where the view places nothing. A file must have this node as its
  // owner. Memory of an earlier life is adopted: its headers and block tables are checked, every
  // granted block keeps its owner, and what an interrupted grant or free left behind is free. What
  // is missing here is neither looked at nor formatted: it will be overwritten. kCorrupt: the
  // memory is damaged, or says what it cannot, where the view counts on it. On failure `reason`
  // says in one line what is wrong, and adopted memory is as it was.
  static Result<std::unique_ptr<MemoryNode>> Create(NodeId self, const View& view,
                                                    std::unique_ptr<Backing> backing,
                                                    std::string* reason);
  // Tells why Create() would refuse memory of an earlier life: for its damage(), or for its headers
  // and block tables; empty: it would not. REQUIRES: no process writes the memory.
  static std::string WhyNotAdopted(NodeId self, const View& view, const Backing& backing);
  // Bytes of memory that the view places on node `self`; 0: no region is there.
  static uint64_t BytesOn(NodeId self, const View& view);

  // Takes the roles that `view` gives the node: of a region, the first live replica is the primary,
  // and one that is missing here is not granted from. Regions that are placed here anew get their
  // places, and those that left give them up; memory is not touched. An older view than the one in
  // use is ignored. kInvalidArgument: the view makes no sense for this memory, `reason` says why,
  // and nothing has changed.
  Status UseView(const View& view, std::string* reason);

  [[nodiscard]] std::byte* base() const override { return backing_->base(); }
  // All of the backing: a view to come may place regions anywhere in it.
  [[nodiscard]] uint64_t bytes() const override { return backing_->bytes(); }
  [[nodiscard]] Backing& backing() { return *backing_; }
  // Brings pages in ahead of the blocks that are granted, from now on. Before the first request.
  void TouchAhead();
  ControlReply Handle(const ControlRequest& request) override;

  [[nodiscard]] MemoryNodeStatus status() const;
  // How the blocks are used that this node grants, open ones and those of workers alike. Looks at
  // the bitmaps of the next kRegionsPerLook regions; of others it tells what it saw there last.
  NodeUsage Usage();
  static constexpr uint32_t kRegionsPerLook = 4096;

 private:
  // The usage of a region when the node last looked at its bitmaps.
  struct RegionUsage {
    uint32_t granted_blocks = 0;
    uint32_t overhead_bytes = 0;
    std::array<uint32_t, SizeClass::kCount> free_bytes{};
  };
  static_assert(kRegionBytes < UINT32_MAX, "the bytes of a region fit");
  struct HostedRegion {
    uint32_t region = 0;
    std::byte* memory = nullptr;
    bool is_primary = false;
    bool is_missing = false;        // here: what the memory holds means nothing yet
    bool is_leaving = false;        // View::leaving: nothing of it is granted any more
    uint32_t next_block = 0;        // where the search for free blocks starts
    std::vector<bool> used_before;  // blocks that need zeroing when granted
    RegionUsage usage;
  };

  MemoryNode(NodeId self, std::unique_ptr<Backing> backing)
      : self_(self), backing_(std::move(backing)) {
    may_be_open_.fill(true);
  }
  // The regions that the view places on node `self`; what is wrong with that, or nullptr.
  static const char* Place(NodeId self, const View& view, const Backing& backing,
                           std::vector<HostedRegion>* regions);
  static void Format(HostedRegion& region);
  // Looks only; the reason why the region cannot be adopted, or nullptr.
  static const char* Check(const HostedRegion& region);
  // REQUIRES: nothing is wrong with it.
  static void Adopt(HostedRegion& region);
  HostedRegion* Find(GlobalAddr addr);
  static RegionHeader* Header(const HostedRegion& region);
  static BlockEntry LoadEntry(const HostedRegion& region, uint32_t block);
  static void StoreEntry(const HostedRegion& region, uint32_t block, BlockEntry entry);
  // True if the blocks from `first` on are one grant of that class.
  static bool IsGrant(const HostedRegion& region, uint32_t first, SizeClass size_class);
  static uint32_t FreeBlocks(const HostedRegion& region);
  // The first block of `count` contiguous free ones, or kBlocksPerRegion.
  static uint32_t FindFree(const HostedRegion& region, SizeClass size_class);
  static bool IsFree(const HostedRegion& region, uint32_t first, uint32_t count);
  void Grant(HostedRegion& region, uint32_t first, const ControlRequest& request);

  // Free objects of an open block, of `objects` at most.
  static uint32_t FreeObjects(const HostedRegion& region, uint32_t block, uint32_t objects);
  static RegionUsage LookAt(const HostedRegion& region);
  static bool IsWhollyFree(const HostedRegion& region, uint32_t block);
  static bool Grants(const HostedRegion& region) { return region.is_primary && !region.is_leaving; }
  // Regions of which it does.
  [[nodiscard]] uint32_t GrantingRegions() const;
  static bool IsAsked(const HostedRegion& region, const ControlRequest& request) {
    return Grants(region) && (request.block.is_null() || request.block.region() == region.region);
  }
  // True if an open grant that reaches into the `count` blocks from `first` on has objects in use.
  static bool HasOpenInUse(const HostedRegion& region, uint32_t first, uint32_t count);
  // Frees the open grants that reach into the `count` blocks from `first` on.
  static void DropOpen(HostedRegion& region, uint32_t first, uint32_t count);
  // The same of the grants that `is_dropped` names.
  static void DropGrants(
      HostedRegion& region, uint32_t first, uint32_t count,
      bool (*is_dropped)(BlockEntry entry) = [](BlockEntry /*entry*/) { return true; });
  static void SetOwner(const HostedRegion& region, uint32_t first, SizeClass size_class,
                       WorkerId owner);

  // An open block for the request of which at least one in `share` objects is free, the emptiest;
  // 0: at least one object.
  ControlReply GiveOpen(const ControlRequest& request, uint32_t share);
  ControlReply GiveFree(const ControlRequest& request);
  ControlReply GiveSparse(const ControlRequest& request);
  ControlReply GiveAnyOpen(const ControlRequest& request);
  // Takes wholly free open blocks back; whether there was one.
  bool Reap();
  static bool ReapIn(HostedRegion& region);
  // Blocks of regions that leave, but for wholly free open ones, which it takes back.
  uint64_t CountLeaving();
  // Blocks that only kAllocReserve gets.
  [[nodiscard]] uint32_t ReserveBlocks() const;
  [[nodiscard]] bool HasBeyondReserve(uint32_t count) const;
  [[nodiscard]] bool HasFreeBlocks(uint32_t wanted) const;
  // True if few blocks are left: workers that own blocks are to give those that they hardly use.
  [[nodiscard]] bool IsTight() const;
  ControlReply Alloc(const ControlRequest& request);
  ControlReply RecordGrant(const ControlRequest& request);
  ControlReply Free(const ControlRequest& request);
  ControlReply TakeOver(const ControlRequest& request);

  const NodeId self_;
  const std::unique_ptr<Backing> backing_;
  std::unique_ptr<PageToucher> toucher_;  // null: pages come when they are used
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  Epoch epoch_;  // the epoch of the view in use
  std::vector<HostedRegion> regions_;
  uint32_t next_region_ = 0;
  uint32_t next_look_ = 0;
  // By size class: false while no block of it is open here.
  std::array<bool, SizeClass::kCount> may_be_open_;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_MEMORY_NODE_H_
