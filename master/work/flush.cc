#include "master/work/flush.h"

#include "master/facts.h"
#include "master/holds.h"

namespace onetrip::master {
namespace {

class Flush final : public WorkKind {
 public:
  std::optional<Hold> Due(const ClusterState& state, uint64_t /*now_us*/) const override {
    if (!HasQueued(state, ChangeKind::kFlush)) return std::nullopt;
    Hold hold;
    hold.work = Work::kFlush;
    return hold;
  }
  [[nodiscard]] bool IsStillDue(const ClusterState& /*state*/, const Hold& /*hold*/,
                                uint64_t /*now_us*/) const override {
    return true;
  }
  [[nodiscard]] HoldKind hold_kind() const override { return HoldKind::kStart; }
  [[nodiscard]] bool is_of_region() const override { return false; }
  // The changes that wait for this are in the view that the caller commits.
  void Commit(ClusterState& /*state*/, Effects& /*effects*/, const Hold& /*hold*/,
              uint64_t /*now_us*/) const override {}
  void OnTimeout(ClusterState& state, Effects& effects, const std::string& missing,
                 uint64_t now_us) const override {
    GiveUpChangesOfKeyspaces(state, effects, "a flush", missing, now_us);
  }
};

}  // namespace

const WorkKind& FlushWork() {
  static const Flush kind;
  return kind;
}

}  // namespace onetrip::master
