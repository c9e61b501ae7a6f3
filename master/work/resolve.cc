#include "master/work/resolve.h"

#include <string>

#include "master/emit.h"
#include "master/facts.h"
#include "master/lost_nodes.h"
#include "master/repairs.h"

namespace onetrip::master {
namespace {

class Resolve final : public WorkKind {
 public:
  std::optional<Hold> Due(const ClusterState& state, uint64_t now_us) const override {
    if (now_us < state.repair_not_before_us || !Leaving(state, now_us).empty()) return std::nullopt;
    if (!state.record.resolve_due || !SomebodyWorks(state) || !AllServe(state)) return std::nullopt;
    Hold hold;
    hold.work = Work::kResolve;
    return hold;
  }
  [[nodiscard]] HoldKind hold_kind() const override { return HoldKind::kSlots; }
  [[nodiscard]] bool is_of_region() const override { return false; }
  [[nodiscard]] std::optional<RepairKind> repair_kind() const override {
    return RepairKind::kResolveSlots;
  }
  void Commit(ClusterState& state, Effects& effects, const Hold& hold,
              uint64_t now_us) const override {
    state.record.resolve_due = false;
    state.record.heal_due = false;
    state.registers_ended = false;  // one may be back that only a backup named
    BeginWalkAnew(state);
    Log(effects, LogLevel::kInfo,
        "slots are resolved; agents held theirs for " +
            std::to_string((now_us - hold.since_us + 500) / 1000) + " ms");
  }
};

}  // namespace

const WorkKind& ResolveWork() {
  static const Resolve kind;
  return kind;
}

}  // namespace onetrip::master
