// How much of the cluster's memory is used: added up from what members report with their renewals,
// and told to every agent, so that all show the same.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "client_core/cluster/pool_text.h"
#include "client_core/layout/region_layout.h"
#include "master/coordinator.h"

namespace onetrip {

std::optional<PoolUsage> Coordinator::Usage() const {
  PoolUsage usage;
  const uint64_t regions = membership_.view().regions.size();
  if (regions == 0) return std::nullopt;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    const Node& node = nodes_[id];
    // Others are the primaries of what it had.
    if (node.record.out) continue;
    if (!node.report.is_told) return std::nullopt;
    usage.Add(node.report.node);
  }
  for (const auto& [id, member] : members_) {
    if (member.kind != MemberKind::kAgent || member.seats.empty()) continue;
    // What is free in blocks of one that is gone is nobody's to use until somebody has taken them
    // over.
    if (member.standing != Standing::kUp && member.standing != Standing::kAway) continue;
    if (!member.report.is_told) return std::nullopt;
    usage.Add(member.report.agent);
  }
  // Nobody allocates where regions leave.
  usage.SetBlocks((regions - record_.leaving) * kBlocksPerRegion - kRootBlocks);
  return usage;
}

void Coordinator::TellUsage() {
  // Of whose regions others have become the primaries, which have not told so yet.
  uint64_t out_epoch = 0;
  for (const Node& node : nodes_) out_epoch = std::max(out_epoch, node.out_epoch);
  const bool is_old =
      std::any_of(nodes_.begin(), nodes_.begin() + NodesInView(), [out_epoch](const Node& node) {
        return !node.record.out && node.report.is_told && node.report.node.view_epoch < out_epoch;
      });
  if (const std::optional<PoolUsage> usage = Usage(); usage.has_value() && !is_old) {
    UsageWatch::Alert alert = usage_watch_.Look(*usage);
    if (!alert.text.empty()) Log(alert.level, std::move(alert.text));
  }
  const uint64_t version = usage_watch_.version();
  for (auto& [id, member] : members_) {
    const bool attends = member.kind == MemberKind::kAgent && member.stream != 0;
    if (!attends || member.told_usage == version) continue;
    member.told_usage = version;
    Send(member.stream, UsageMessage{usage_watch_.usage()});
  }
}

std::string Coordinator::WhyShortOfMemory() const {
  const std::optional<PoolUsage> usage = Usage();
  std::string text = usage.has_value() ? onetrip::WhyShortOfMemory(*usage) : "";
  if (text.empty()) return "";
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    if (nodes_[id].serving || nodes_[id].record.out) continue;
    text += "; memory node " + std::to_string(id) + " does not answer, and grants nothing";
  }
  return text;
}

}  // namespace onetrip
