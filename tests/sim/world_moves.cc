// The end of a run in which regions move and are added.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "master/placement.h"
#include "tests/sim/world.h"

namespace onetrip {

// Nothing is lost with those that have given away all that they had.
bool World::LoseDrained(uint64_t until_ns) {
  const bool moves = std::any_of(plan_.faults.begin(), plan_.faults.end(), [](const Fault& fault) {
    return fault.kind == FaultKind::kDrainNode || fault.kind == FaultKind::kFillNode;
  });
  if (!moves) return true;
  std::vector<NodeId> drained;
  while (!master_.SettledMoves(&drained)) {
    drained.clear();
    if (executor_.NowNs() >= until_ns) {
      if (!MakeRoom()) Fail("after all faults regions still move: " + master_.moving());
      until_ns += Patience();
    }
    if (!failure_.empty() || !executor_.RunOnce()) return false;
  }
  if (executor_.NowNs() < amid_shrink_end_ns_) {
    executor_.RunUntil(amid_shrink_end_ns_);
    return LoseDrained(until_ns);
  }
  CheckAllRoomIsUsed();
  for (const NodeId node : drained) {
    const auto holds = [&](const RegionPlacement& region) {
      const auto end = region.nodes.begin() + plan_.shape.replicas;
      return std::find(region.nodes.begin(), end, node) != end;
    };
    const View& view = master_.newest_view();
    if (std::any_of(view.regions.begin(), view.regions.end(), holds)) {
      Fail("a node is drained and has regions");
    }
    trace_.Note("drained node " + std::to_string(node.value) + " is switched off");
    lossy_ = true;
    node_by_id_.at(node.value)->Lose();
  }
  return failure_.empty();
}

// A pool may be too full for the values in it to move: then some of them are deleted, once, as the
// master says.
bool World::MakeRoom() {
  const bool is_full = master_.moving().find("the pool is full") != std::string::npos;
  Agent* const agent = LiveAgent(0);
  if (!is_full || agent == nullptr || std::exchange(made_room_, true)) return false;
  agent->process().Spawn(agent->gate(), DeleteBallast(agent));
  return RunUntilDone("the deletion of large values");
}

Task<void> World::DeleteBallast(Agent* agent) {
  constexpr size_t kLarge = 4096;
  trace_.Note("the pool is full: large values are deleted");
  std::set<std::string> keys;
  for (const auto& commands : plan_.program) {
    for (const Command& set : commands) {
      const bool is_set = set.size() > 2 && set[0] == "SET";
      if (is_set && (set[1].starts_with(kBallast) || set[2].size() >= kLarge)) keys.insert(set[1]);
    }
  }
  for (const std::string& key : keys) {
    const Command command{"DEL", key};
    const size_t index = history_.Start(kDeleter, command, executor_.NowNs());
    std::string reply;
    co_await agent->Execute(&command, &reply);
    history_.Finish(index, reply, executor_.NowNs());
  }
}

// If nothing fails and no node drains, there are as many regions as the nodes that were to be used
// have room for.
void World::CheckAllRoomIsUsed() {
  std::set<uint32_t> used;
  for (const Fault& fault : plan_.faults) {
    if (fault.kind != FaultKind::kFillNode) return;
    used.insert(fault.node);
  }
  for (uint32_t node = 0; node < plan_.shape.nodes; ++node) used.insert(node);
  const std::vector<uint64_t> bytes(used.size(), plan_.shape.node_bytes);
  const size_t most = PlaceRegions(bytes, static_cast<int>(plan_.shape.replicas)).size();
  const size_t regions = master_.newest_view().regions.size();
  if (regions == most) return;
  Fail("there are " + std::to_string(regions) + " regions where there is room for " +
       std::to_string(most));
}

}  // namespace onetrip
