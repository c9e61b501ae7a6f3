// Blocks of regions that are given up (PROTOCOLS, "Regions that are given up"). Their keys move by
// ordinary writes, whoever has the blocks: what is freed there comes back to its owner as ever, and
// a block that is wholly free goes back to its node, which grants nothing there any more.
#include <algorithm>
#include <utility>

#include "client_core/layout/region_layout.h"
#include "client_core/memory/allocator.h"

namespace onetrip {
namespace {

constexpr uint32_t kAcquiredAtOnce = 4;

}  // namespace

void Allocator::UseView(const View& view) {
  const auto is_gone = [&](GlobalAddr addr) { return !view.Contains(addr); };
  std::erase_if(closing_, [&](const Closing& one) { return is_gone(one.start); });
  std::erase_if(opening_, [&](const Opening& one) { return is_gone(one.start); });
  std::erase_if(to_return_, [&](const Returning& one) { return is_gone(one.start); });
  std::erase_if(to_claim_, [&](const Granted& one) { return is_gone(one.start); });
  std::erase_if(emptying_, [&](const Emptying& one) { return is_gone(one.start); });
  foreign_.UseView(view);
  sweeper_.UseView(view);
  blocks_.UseView(view);
}

// Others read it as long as it has what they have not seen. Until there is another one, the few
// entries of the seat have to do.
Task<void> Allocator::LeaveRing() {
  const GlobalAddr ring = retired_registers().given();
  if (!ring.is_null() && context_.view().IsLeaving(ring)) retired_registers().LeaveRing();
  if (retired_registers().left().is_null()) co_return;
  const Result<GlobalAddr> left = co_await retired_registers().TakeLeftRing();
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
