#include "master/reach_verdict.h"

#include <algorithm>
#include <map>

namespace onetrip {
namespace {

using Kind = ReachVerdict::Kind;

// The one that misses most; of equals the one that came last.
const ReachReport* Worst(const std::vector<const ReachReport*>& reports) {
  return *std::max_element(
      reports.begin(), reports.end(), [](const ReachReport* a, const ReachReport* b) {
        return std::pair(a->unreached.size(), a->agent) < std::pair(b->unreached.size(), b->agent);
      });
}

}  // namespace

ReachVerdict JudgeReach(std::span<const ReachReport> agents,
                        const std::function<bool(const std::vector<uint16_t>&)>& may_leave) {
  std::map<uint16_t, size_t> missed_by;
  std::vector<const ReachReport*> cut_off;
  std::vector<const ReachReport*> beyond_help;
  for (const ReachReport& report : agents) {
    if (report.unreached.empty()) continue;
    cut_off.push_back(&report);
    if (!may_leave(report.unreached)) beyond_help.push_back(&report);
    for (const uint16_t node : report.unreached) ++missed_by[node];
  }
  if (cut_off.empty()) return {};
  const auto out = [&](Kind kind, const ReachReport& report) {
    const uint16_t node = report.unreached.front();
    return ReachVerdict{kind, report.agent, node, missed_by[node], agents.size()};
  };
  if (!beyond_help.empty()) {
    const bool all = beyond_help.size() == agents.size();
    return out(all ? Kind::kNobody : Kind::kAgentOut, *Worst(beyond_help));
  }
  const auto most =
      std::max_element(missed_by.begin(), missed_by.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  if (2 * most->second >= agents.size()) {
    return {Kind::kNodeOut, 0, most->first, most->second, agents.size()};
  }
  return out(Kind::kAgentOut, *Worst(cut_off));
}

}  // namespace onetrip
