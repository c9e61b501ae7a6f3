#include "client_core/memory/stale_locks.h"

#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {

void StaleLocks::BeginClearing(OwnBlock& block) {
  block.stale_lock.assign(block.objects, true);
  if (context_.memory_observer != nullptr) {
    context_.memory_observer->Adopted(block.start, block.size_class, &block.stale_lock);
  }
#ifndef NDEBUG
  block.is_free.assign(block.objects, false);
#endif
  const uint64_t bytes = block.free.size() * block.size_class.bytes();
  metrics_.free_bytes.Sub(block.size_class, bytes);
  metrics_.live_bytes.Add(bytes);
  for (const uint16_t index : block.free) blocks_.ClearLater({block.start, index});
  block.clearing += static_cast<uint32_t>(block.free.size());
  block.free.clear();
}

Task<void> StaleLocks::Clear() {
  const std::vector<OwnBlocks::FreeObject> all = blocks_.TakeToClear();
  ++clearing_;
  Status status;
  for (size_t first = 0; first < all.size();) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const View& view = context_.view();
    size_t end = first;
    for (; end < all.size() && round_trip->HasRoom(kMaxReplicas); ++end) {
      const GlobalAddr addr =
          ObjectAddr(all[end].block, blocks_.Find(all[end].block)->size_class, all[end].index);
      for (int replica = 0; replica < view.LiveReplicas(addr); ++replica) {
        if (Planted(Bug::kLocksNotCleared)) continue;
        round_trip->WriteWord(view.Locate(addr, replica), 0);
      }
    }
    if (status.ok() && !round_trip->empty()) status = co_await context_.fabric.Post(round_trip);
    for (; first < end; ++first) {
      OwnBlock* const block = blocks_.Find(all[first].block);
      if (!status.ok()) {
        blocks_.ClearLater(all[first]);
        continue;
      }
      --block->clearing;
      block->stale_lock[all[first].index] = false;
      blocks_.ListAgain(*block, all[first].index);
    }
  }
  --clearing_;
}

Task<bool> StaleLocks::MakeBuffers(OwnBlocks::Want want) {
  const uint32_t wanted = blocks_.ListFor(want);  // first: a new view may make lists anew
  OwnBlock* best = nullptr;
  for (OwnBlock* block : blocks_.list(want.size_class.index())) {
    if (block->queued_for_return || blocks_.BufferList(want.size_class, block->start) != wanted) {
      continue;
    }
    if (best == nullptr || block->free.size() > best->free.size()) best = block;
  }
  if (best == nullptr) co_return false;
  blocks_.Unlist(*best);
  best->list = wanted;
  BeginClearing(*best);
  co_await Clear();
  co_return true;
}

}  // namespace onetrip
