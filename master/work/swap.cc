#include "master/work/swap.h"

#include "client_core/base/planted_bug.h"
#include "master/facts.h"
#include "master/holds.h"
#include "master/lost_nodes.h"

namespace onetrip::master {
namespace {

// A write that a lost node or agent has left half done must not come to its end in the other
// database; and one that is under way on a lost node takes too long to end.
bool MaySwap(const ClusterState& state, uint64_t now_us) {
  return HasQueued(state, ChangeKind::kSwap) && !HasQueued(state, ChangeKind::kFenced) &&
         !state.record.resolve_due && Leaving(state, now_us).empty();
}

class Swap final : public WorkKind {
 public:
  std::optional<Hold> Due(const ClusterState& state, uint64_t now_us) const override {
    if (!MaySwap(state, now_us)) return std::nullopt;
    Hold hold;
    hold.work = Work::kSwap;
    return hold;
  }
  // Another quiesce comes first otherwise.
  [[nodiscard]] bool IsStillDue(const ClusterState& state, const Hold& /*hold*/,
                                uint64_t now_us) const override {
    return MaySwap(state, now_us);
  }
  [[nodiscard]] HoldKind hold_kind() const override {
    return Planted(Bug::kSwapUnderOperations) ? HoldKind::kStart : HoldKind::kAll;
  }
  [[nodiscard]] bool is_of_region() const override { return false; }
  // The changes that wait for this are in the view that the caller commits.
  void Commit(ClusterState& /*state*/, Effects& /*effects*/, const Hold& /*hold*/,
              uint64_t /*now_us*/) const override {}
  void OnTimeout(ClusterState& state, Effects& effects, const std::string& missing,
                 uint64_t now_us) const override {
    GiveUpChangesOfKeyspaces(state, effects, "a swap of databases", missing, now_us);
  }
};

}  // namespace

const WorkKind& SwapWork() {
  static const Swap kind;
  return kind;
}

}  // namespace onetrip::master
