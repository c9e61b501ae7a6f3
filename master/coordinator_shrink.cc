// Regions that are given up, for nodes that drain and whose regions the others lack room for
// (docs/MASTER.md, "Less memory"): those with the highest numbers leave. Nobody allocates there any
// more, the index and the keys move out, and when every block there is free a view lacks them.
#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "client_core/layout/region_layout.h"
#include "master/coordinator.h"
#include "master/placement.h"

namespace onetrip {
namespace {

// Of what is left, so much may be in use: keys come and go meanwhile, and blocks of a class are
// never all full.
constexpr uint64_t kPercentMax = 90;

std::string MiB(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

// ---- How many ----

size_t Coordinator::RegionsToGiveUp(const std::vector<MovePart>& parts) const {
  const std::vector<RegionPlacement>& regions = membership_.view().regions;
  const auto fits = [&](size_t given_up) {
    MovePlanner planner(parts, record_.replicas, {regions.begin(), regions.end() - given_up});
    while (planner.Next().has_value()) continue;
    return planner.left_on_draining() == 0;
  };
  if (fits(0)) return 0;
  // As many as now, mostly.
  size_t low = 0;  // does not fit
  size_t high = regions.size();
  if (record_.leaving != 0 && fits(record_.leaving)) high = record_.leaving;
  while (low + 1 < high) {
    const size_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return high;
}

std::string Coordinator::WhyNotWithout(size_t given_up) const {
  const size_t regions = membership_.view().regions.size();
  if (given_up >= regions || given_up > UINT16_MAX) return "none would be left without them";
  std::optional<PoolUsage> usage = Usage();
  if (!usage.has_value()) {
    return "how much memory is in use is not known yet, try again in a moment";
  }
  usage->SetBlocks(regions * kBlocksPerRegion - kRootBlocks);  // with what is in use there
  const uint64_t blocks = (regions - given_up) * kBlocksPerRegion - kRootBlocks;
  const uint64_t bytes = blocks * kBlockBytes;
  const uint64_t left = bytes - std::min(bytes, usage->reserve_bytes);
  if (usage->used_bytes() <= left / 100 * kPercentMax) return "";
  return MiB(usage->used_bytes()) + " are in use, which do not fit into " +
         std::to_string(kPercentMax) + " % of the " + MiB(left) +
         " that would be left: delete keys";
}

// ---- What is next ----

std::optional<uint64_t> Coordinator::LeavingBlocks() const {
  uint64_t blocks = 0;
  for (uint16_t id = 0; id < NodesInView(); ++id) {
    const Node& node = nodes_[id];
    if (node.record.out) continue;
    if (!node.report.is_told || node.report.node.view_epoch < placement_epoch_) return std::nullopt;
    blocks += node.report.node.leaving_blocks;
  }
  return blocks;
}

// Where all nodes are full, a copy that was lost may find its place when regions have left.
bool Coordinator::AwaitsNoCopy() const { return missing_regions_ == 0 || record_.leaving != 0; }

bool Coordinator::LeavingAreEmpty() const {
  return LeavingBlocks() == uint64_t{0} || Planted(Bug::kCutWhileUsed);
}

std::optional<Coordinator::Hold> Coordinator::NextLeave() const {
  if (!record_.may_shrink && record_.leaving == 0) return std::nullopt;
  Hold hold;
  const size_t wanted = RegionsToGiveUp(MoveParts());
  const bool more = wanted > record_.leaving;
  if (wanted != record_.leaving && !(more && !WhyNotWithout(wanted).empty())) {
    hold.work = Work::kLeave;
    hold.leaving = static_cast<uint16_t>(wanted);
    return hold;
  }
  if (record_.leaving == 0) return std::nullopt;
  if (!record_.index_left) {
    hold.work = Work::kMoveIndex;
    return hold;
  }
  if (RegistersAreToEnd() || !LeavingAreEmpty()) return std::nullopt;
  hold.work = Work::kCut;
  return hold;
}

void Coordinator::WalkAgainForLeaving(uint64_t now_us) {
  if (record_.leaving == 0 || !record_.index_left || !registers_ended_ || hold_.has_value() ||
      now_us < leave_again_us_ || LeavingBlocks().value_or(0) == 0) {
    return;
  }
  registers_ended_ = false;
  BeginWalkAnew();
}

// In the next view, which the caller commits. All hold.
void Coordinator::CommitLeave(const Hold& hold, uint64_t now_us) {
  placement_epoch_ = membership_.view().epoch.value + 1;
  if (hold.work == Work::kLeave) {
    record_.leaving = hold.leaving;
    record_.index_left = false;
    record_.records_only = true;
    registers_ended_ = false;
    BeginWalkAnew();
    membership_.SetLeaving(record_.leaving);
    membership_.SetRecordsOnly(true);
    return;
  }
  PauseCopies(hold, now_us);
  if (hold.work == Work::kMoveIndex) {
    record_.directory = OtherDirectory(record_.directory);
    record_.index_left = true;
    membership_.SetDirectory(record_.directory);
    return;
  }
  const size_t before = membership_.view().regions.size();
  membership_.CutRegions();
  const auto end = static_cast<uint32_t>(membership_.view().regions.size());
  record_.leaving = 0;
  record_.index_left = false;
  effects_.change.regions_end = end;
  effects_.change.regions.erase(effects_.change.regions.lower_bound(end),
                                effects_.change.regions.end());
  CountMissing();
  Log(LogLevel::kInfo, "the capacity has shrunk by " + std::to_string(before - end) +
                           " regions from " + MiB(before * kRegionBytes) + " to " +
                           MiB(end * kRegionBytes));
}

void Coordinator::EndLeaving() {
  if (record_.leaving != 0) {
    Log(LogLevel::kInfo, "no region is given up any more");
    placement_epoch_ = membership_.view().epoch.value + 1;
  }
  record_.leaving = 0;
  record_.index_left = false;
  membership_.SetLeaving(0);
  if (!MovesAreWanted()) record_.may_shrink = false;
}

// ---- For people ----

std::string Coordinator::Shrinking() const {
  const size_t regions = membership_.view().regions.size();
  if (record_.leaving != 0) {
    std::string text = "; the capacity shrinks from " + MiB(regions * kRegionBytes) + " to " +
                       MiB((regions - record_.leaving) * kRegionBytes);
    if (const std::optional<uint64_t> blocks = LeavingBlocks(); blocks.has_value()) {
      text += ", what is in " + std::to_string(*blocks) + " blocks moves first";
    }
    return told_not_done_.empty() ? text : text + "; " + told_not_done_;
  }
  if (!record_.may_shrink) return "";
  const size_t wanted = RegionsToGiveUp(MoveParts());
  if (wanted == 0) return "";
  const std::string why = WhyNotWithout(wanted);
  return why.empty() ? "" : "; " + why;
}

}  // namespace onetrip
