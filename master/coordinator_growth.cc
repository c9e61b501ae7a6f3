// Regions that are added when memory nodes have room for more (docs/MASTER.md, "More memory"):
// under a hold of everything one agent writes their headers, then there is a view that has them.
// What is planned is in MovePlanner; which moves it takes is in coordinator_moves.cc.
#include "client_core/base/planted_bug.h"
#include "client_core/layout/global_addr.h"
#include "master/coordinator.h"
#include "master/placement.h"

namespace onetrip {
namespace {

// In one hold: how long all stand still for their headers is bounded, and so is what a view grows
// by.
constexpr size_t kRegionsAtOnce = 256;

}  // namespace

std::optional<Coordinator::Hold> Coordinator::NextGrowth(MovePlanner* planner) const {
  Hold hold;
  hold.work = Work::kGrow;
  hold.grown = planner->Grow(kRegionsAtOnce);
  if (hold.grown.empty()) return std::nullopt;
  return hold;
}

// Whether everybody can use what is placed there: the nodes are in, and every agent reaches them.
bool Coordinator::AllReach(const std::vector<RegionPlacement>& regions) const {
  for (const RegionPlacement& region : regions) {
    for (int i = 0; i < record_.replicas; ++i) {
      const NodeId node = region.nodes[i];
      if (node.value >= NodesInView() || nodes_[node.value].record.out) return false;
      if (!WhoDoesNotReach(node).empty()) return false;
    }
  }
  return true;
}

// In the next view, which the caller commits. All hold: nobody meets an address there before he
// knows where that is.
void Coordinator::CommitGrowth(const Hold& hold, uint64_t now_us) {
  placement_epoch_ = membership_.view().epoch.value + 1;
  PauseCopies(hold, now_us);
  for (const RegionPlacement& region : hold.grown) {
    for (int i = 0; i < record_.replicas; ++i) {
      // It would be missing there at once, and what was written there may be lost.
      if (!nodes_[region.nodes[i].value].serving) return;
    }
  }
  const auto first = static_cast<uint32_t>(membership_.view().regions.size());
  membership_.AddRegions(hold.grown);
  const auto end = static_cast<uint32_t>(membership_.view().regions.size());
  std::vector<uint32_t> added;
  for (uint32_t region = first; region < end; ++region) added.push_back(region);
  if (Planted(Bug::kGrownNotDurable)) {
    CountMissing();
  } else {
    SaveRegions(added);
  }
  Log(LogLevel::kInfo, "the capacity has grown by " + std::to_string(end - first) + " regions to " +
                           std::to_string(end) + ", " + std::to_string(end * (kRegionBytes >> 20)) +
                           " MiB");
}

}  // namespace onetrip
