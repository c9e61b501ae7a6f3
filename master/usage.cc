#include "master/usage.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "client_core/cluster/pool_text.h"
#include "client_core/layout/region_layout.h"
#include "master/emit.h"

namespace onetrip::master {

std::optional<PoolUsage> Usage(const ClusterState& state) {
  PoolUsage usage;
  const uint64_t regions = state.membership.view().regions.size();
  if (regions == 0) return std::nullopt;
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    const Node& node = state.nodes[id];
    // Others are the primaries of what it had.
    if (node.record.out) continue;
    if (!node.report.is_told) return std::nullopt;
    usage.Add(node.report.node);
  }
  for (const auto& [id, member] : state.members) {
    if (member.kind != MemberKind::kAgent || member.seats.empty()) continue;
    // Free space in blocks of an agent that is gone is no agent's to use until another has taken
    // them over.
    if (member.standing != Standing::kUp && member.standing != Standing::kAway) continue;
    if (!member.report.is_told) return std::nullopt;
    usage.Add(member.report.agent);
  }
  // Agents do not allocate where regions leave.
  usage.SetBlocks((regions - state.record.leaving) * kBlocksPerRegion - kRootBlocks);
  return usage;
}

void TellUsage(ClusterState& state, Effects& effects) {
  // The newest loss: other nodes have become primaries of its regions, and some have not told so
  // yet.
  uint64_t out_epoch = 0;
  for (const Node& node : state.nodes) out_epoch = std::max(out_epoch, node.out_epoch);
  const bool is_old = std::any_of(state.nodes.begin(), state.nodes.begin() + state.NodesInView(),
                                  [out_epoch](const Node& node) {
                                    return !node.record.out && node.report.is_told &&
                                           node.report.node.view_epoch < out_epoch;
                                  });
  if (const std::optional<PoolUsage> usage = Usage(state); usage.has_value() && !is_old) {
    UsageWatch::Alert alert = state.usage_watch.Look(*usage);
    if (!alert.text.empty()) Log(effects, alert.level, std::move(alert.text));
  }
  const uint64_t version = state.usage_watch.version();
  for (auto& [id, member] : state.members) {
    const bool attends = member.kind == MemberKind::kAgent && member.stream != 0;
    if (!attends || member.told_usage == version) continue;
    member.told_usage = version;
    Send(effects, member.stream, UsageMessage{state.usage_watch.usage()});
  }
}

std::string WhyShortOfMemory(const ClusterState& state) {
  const std::optional<PoolUsage> usage = Usage(state);
  std::string text = usage.has_value() ? onetrip::WhyShortOfMemory(*usage) : "";
  if (text.empty()) return "";
  for (uint16_t id = 0; id < state.NodesInView(); ++id) {
    if (state.nodes[id].serving || state.nodes[id].record.out) continue;
    text += "; memory node " + std::to_string(id) + " does not answer, and grants nothing";
  }
  return text;
}

}  // namespace onetrip::master
