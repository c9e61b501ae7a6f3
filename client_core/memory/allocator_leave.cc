// Blocks of regions that are given up (PROTOCOLS, "Regions that are given up"). Their keys move by
// ordinary writes, whoever has the blocks: what is freed there comes back to its owner as ever, and
// a block that is wholly free goes back to its node, which grants nothing there any more.
#include <algorithm>
#include <utility>

#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"

namespace onetrip {
namespace {

// In one turn of maintenance, which a hold waits for.
constexpr uint32_t kSweepsPerTick = 4;
constexpr uint32_t kAcquiredAtOnce = 4;

}  // namespace

void Allocator::UseView(const View& view) {
  const auto is_gone = [&](GlobalAddr addr) { return !view.Contains(addr); };
  std::erase_if(foreign_, [&](const ForeignFree& one) { return is_gone(one.word); });
  std::erase_if(late_, [&](const LateFree& one) { return is_gone(one.free.word); });
  std::erase_if(uncollected_, [&](const Uncollected& one) { return is_gone(one.word); });
  std::erase_if(closing_, [&](const Closing& one) { return is_gone(one.start); });
  std::erase_if(opening_, [&](const Opening& one) { return is_gone(one.start); });
  std::erase_if(to_return_, [&](const Returning& one) { return is_gone(one.start); });
  std::erase_if(to_claim_, [&](const Granted& one) { return is_gone(one.start); });
  std::erase_if(emptying_, [&](const Emptying& one) { return is_gone(one.start); });
  blocks_.UseView(view);
}

Task<void> Allocator::SeeToLeaving() {
  co_await LeaveRing();
  if (context_.view().worker_index_end <= 1 || blocks_.leaving_count() == 0) co_return;
  uint32_t swept = 0;
  for (size_t i = 0; i < blocks_.size() && swept < kSweepsPerTick; ++i) {
    if (context_.hold.held()) co_return;
    const OwnBlock& block = *blocks_.all()[next_leaving_++ % blocks_.size()];
    if (!block.leaving || block.is_wholly_free()) continue;
    ++swept;
    (void)co_await SweepBlock(block.start);
  }
}

// Others read it as long as it has what they have not seen. Until there is another one, the few
// entries of the seat have to do.
Task<void> Allocator::LeaveRing() {
  const GlobalAddr ring = retired_registers_.given();
  if (!ring.is_null() && context_.view().IsLeaving(ring)) retired_registers_.LeaveRing();
  if (retired_registers_.left().is_null()) co_return;
  const Result<GlobalAddr> left = co_await retired_registers_.TakeLeftRing();
  if (left.ok() && !left.value().is_null()) {
    Retire(left.value(), SizeClass::For(kRetiredRingBytes));
  }
}

Task<bool> Allocator::AcquireLeaving() {
  const uint16_t nodes = context_.view().node_count;
  uint32_t acquired = 0;
  for (uint16_t i = 0; i < nodes; ++i) {
    const NodeId node{i};
    while (!context_.view().IsOut(node)) {
      if (acquired == kAcquiredAtOnce || context_.hold.held()) co_return true;
      const Result<GlobalAddr> start = co_await AcquireAnyOpen(node, GlobalAddr());
      if (!start.ok()) break;
      ++acquired;
    }
  }
  co_return false;
}

}  // namespace onetrip
