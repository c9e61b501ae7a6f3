#include "master/work/work_kind.h"

#include "master/facts.h"
#include "master/holds.h"

namespace onetrip::master {

std::optional<Hold> WorkKind::Due(const ClusterState& /*state*/, uint64_t /*now_us*/) const {
  return std::nullopt;
}

bool WorkKind::IsStillDue(const ClusterState& state, const Hold& /*hold*/,
                          uint64_t /*now_us*/) const {
  return AllServe(state) && SomebodyWorks(state);
}

void WorkKind::FillOrder(const ClusterState& /*state*/, const Hold& /*hold*/,
                         MembershipState* /*proposed*/, RepairOrder* /*order*/) const {}

void WorkKind::OnFailed(ClusterState& /*state*/, uint64_t /*now_us*/) const {}

void WorkKind::OnTimeout(ClusterState& state, Effects& effects, const std::string& missing,
                         uint64_t now_us) const {
  // More urgent work need not wait for what waits for a copy.
  const bool of_region = is_of_region();
  (of_region ? state.copy_not_before_us : state.repair_not_before_us) =
      now_us + state.options.repair_retry_ms * 1000;
  const uint64_t timeout_ms = HoldTimeoutMs(state, *this);
  if (of_region) ++state.copies_given_up;
  EndHold(state, effects, now_us,
          missing + " did not stop its operations within " + std::to_string(timeout_ms) + " ms");
}

}  // namespace onetrip::master
