// OwnBlocks: the blocks that one worker owns, and the free lists of their objects, so that an
// allocation on the data path costs no round trip (FUSEE 4.4; PROTOCOLS, "Memory").
//
// Each block serves one size class, either objects or buffers. A buffer lies on the nodes of its
// register, so buffers have lists of their own for each set of nodes. All of it is in this worker's
// memory: nothing here waits, and nothing here tells a memory node.
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_OWN_BLOCKS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_OWN_BLOCKS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/cluster/view.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/holders.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

struct OwnBlock {
  GlobalAddr start;
  SizeClass size_class;
  uint32_t objects = 0;
  std::vector<uint16_t> free;  // indices of free objects, last in first out
#ifndef NDEBUG
  std::vector<bool> is_free;  // by index: listed in `free`, and once
#endif
  uint32_t list = 0;               // the number of its list in OwnBlocks
  uint32_t list_position = 0;      // there, while free is not empty
  bool queued_for_return = false;  // among those that OwnBlocks::TakeWhollyFree() gives
  bool sweeping = false;           // its bitmap is being read; it is not returned meanwhile
  bool kept = false;               // never opened: see OwnBlocks::KeepBlockOf
  bool looked_at = false;          // acquired for nothing but an account
  bool closing = false;            // to be opened: in no list, nothing is allocated there
  bool emptying = false;           // its objects are being moved away: likewise
  bool leaving = false;            // its region is given up: likewise
  uint64_t stuck_until_ns = 0;     // it could not be emptied: it is not chosen again before
  uint32_t clearing = 0;           // objects whose lock words are to be zeroed, or are just now
  // By index, in a block of buffers: the lock word means nothing, whether the buffer is free or
  // not. Empty: none is stale.
  std::vector<bool> stale_lock;
  // By index, while there is an account.
  std::vector<bool> suspect;

  [[nodiscard]] bool is_buffers() const { return list >= SizeClass::kCount; }
  [[nodiscard]] bool is_wholly_free() const { return free.size() == objects; }
  // In no list, whatever is free: nothing is allocated there.
  [[nodiscard]] bool is_set_aside() const { return closing || emptying || leaving; }
  // In its list, and others may be given it.
  [[nodiscard]] bool may_be_closed() const { return !kept && !queued_for_return; }
};

class OwnBlocks {
 public:
  using List = std::vector<OwnBlock*>;
  // An allocation asks for an object, or for a buffer near a register.
  struct Want {
    SizeClass size_class;
    GlobalAddr near;  // null: an object
    bool may_use_reserve = false;
    Holders::Holder* idle = nullptr;  // the caller's; it holds nothing while it waits; may be null
  };
  struct Object {
    GlobalAddr addr;
    SizeClass size_class;
  };
  struct FreeObject {
    GlobalAddr block;
    uint16_t index;
  };
  // A write of a register takes this number of buffers, and gives back one.
  static constexpr size_t kBuffersOfAWrite = 2;

  // The three outlive it.
  OwnBlocks(WorkerContext& context, AllocatorMetrics& metrics, const Holders& holders);
  OwnBlocks(const OwnBlocks&) = delete;
  OwnBlocks& operator=(const OwnBlocks&) = delete;

  // The last object of the list's last block; null: the list is empty. REQUIRES: the list is one of
  // `size_class`, and some Holder is alive.
  GlobalAddr Take(uint32_t list, SizeClass size_class);
  GlobalAddr TakeObject(SizeClass size_class) { return Take(size_class.index(), size_class); }
  // A buffer on the nodes of the register at `near`, within the reach of its words.
  GlobalAddr TakeBuffer(SizeClass size_class, GlobalAddr near);
  // An object in a block near which enough buffers of that class for a write are free; null: there
  // is none.
  GlobalAddr TakeBeside(SizeClass size_class, SizeClass buffer_class);
  // True when TakeBuffer() would succeed `count` times; one block may have to do.
  [[nodiscard]] bool HasBuffers(SizeClass size_class, GlobalAddr near, size_t count) {
    const List& list = lists_[BufferList(size_class, near)];
    return !list.empty() && (list.size() >= count || list.back()->free.size() >= count);
  }
  // True when not all regions have the same nodes, as of the last view that a buffer was asked for
  // in.
  [[nodiscard]] bool has_elsewhere() const { return has_elsewhere_; }

  // The object is free from now on; if its lock word is stale it is listed when that is zeroed.
  // REQUIRES: it was taken, and no operation can reach it.
  void ListAgain(OwnBlock& block, uint16_t index);

  // The block that the address lies in; null: it is not this worker's.
  OwnBlock* Find(GlobalAddr addr);
  // In no particular order, which Adopt() and Forget() change.
  [[nodiscard]] const std::vector<std::unique_ptr<OwnBlock>>& all() const { return blocks_; }
  [[nodiscard]] size_t size() const { return blocks_.size(); }

  // The number of the list that has what is wanted, or that takes a block granted for it there.
  // Objects of a class come first; behind them buffers by class for each set of nodes.
  [[nodiscard]] uint32_t ListFor(const Want& want) {
    if (want.near.is_null()) return want.size_class.index();
    return BufferList(want.size_class, want.near);
  }
  // A new view may put blocks into other lists here.
  uint32_t BufferList(SizeClass size_class, GlobalAddr at) {
    if (node_sets_view_ != context_.view().epoch) [[unlikely]] {
      RelistBuffers();
    }
    CHECK(at.region() < node_set_of_.size());
    return node_set_of_[at.region()] * SizeClass::kCount + size_class.index();
  }
  // True when the block at `start` is one that serves `want`.
  bool IsListedFor(GlobalAddr start, const Want& want);
  [[nodiscard]] size_t list_count() const { return lists_.size(); }
  // Those blocks of the list that have something free, but for those that are set aside.
  [[nodiscard]] const List& list(size_t number) const { return lists_[number]; }
  // Into its list and out of it, unless it is set aside. REQUIRES: it has something free, and is
  // not, or is, there.
  void Enlist(OwnBlock& block);
  void Unlist(OwnBlock& block);
  // A block of buffers, if one has any free, serves objects from now on; false: there is none.
  bool MakeObjects(SizeClass size_class);

  // Adds a block of this worker's. `named`, by index, is in use there; null: nothing is.
  OwnBlock& Adopt(GlobalAddr start, SizeClass size_class, uint32_t list,
                  const std::vector<bool>* named = nullptr);
  // Takes out a block that is wholly free and on its way back to its memory node.
  void Remove(OwnBlock& block);
  // Takes out a block that is not this worker's any more. REQUIRES: it is in no list.
  void Forget(OwnBlock& block);
  // This worker alone knows the object there, though something names it: the block is not opened as
  // long as the worker lives.
  void KeepBlockOf(GlobalAddr addr);

  // Candidates for their memory nodes: they were wholly free when they were queued.
  [[nodiscard]] bool has_wholly_free() const { return !wholly_free_.empty(); }
  std::vector<GlobalAddr> TakeWhollyFree() { return std::exchange(wholly_free_, {}); }
  void QueueForReturn(OwnBlock& block);

  // Objects that are free when their lock words are zeroed; `clearing` counts them by block.
  [[nodiscard]] const std::vector<FreeObject>& to_clear() const { return to_clear_; }
  std::vector<FreeObject> TakeToClear() { return std::exchange(to_clear_, {}); }
  void ClearLater(FreeObject object) { to_clear_.push_back(object); }

  // A new view is there: blocks of regions that leave are set aside, and those of regions that are
  // gone are forgotten.
  void UseView(const View& view);
  [[nodiscard]] size_t leaving_count() const { return leaving_count_; }

 private:
  // The nodes that a region lies on, live or missing there, with the stretch of regions that a word
  // can reach.
  struct NodeSet {
    std::array<NodeId, kMaxReplicas> nodes;  // ascending
    uint32_t reach;
    friend bool operator==(const NodeSet&, const NodeSet&) = default;
  };

  void AddFree(OwnBlock& block, uint16_t index);
  // Puts blocks of buffers where the view has them now.
  void RelistBuffers();
  uint32_t FindNodeSet(GlobalAddr at);
  // Pulls the lines of what Take() will take next.
  void PrefetchNext(uint32_t list, SizeClass size_class) const;

  WorkerContext& context_;
  AllocatorMetrics& metrics_;
  const Holders& holders_;
  std::vector<std::unique_ptr<OwnBlock>> blocks_;
  std::vector<uint32_t> position_;  // by region * blocks + block: 1 + the index in blocks_
  std::vector<List> lists_;
  std::vector<NodeSet> node_sets_;
  // By region: 1 + its index in node_sets_, as of one view.
  std::vector<uint32_t> node_set_of_;
  Epoch node_sets_view_{~uint64_t{0}};
  bool has_elsewhere_ = false;           // likewise
  std::vector<GlobalAddr> wholly_free_;  // checked when used
  std::vector<FreeObject> to_clear_;
  size_t leaving_count_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_OWN_BLOCKS_H_
