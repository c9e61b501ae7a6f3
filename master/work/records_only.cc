#include "master/work/records_only.h"

#include "master/repairs.h"

namespace onetrip::master {
namespace {

class RecordsOnly final : public WorkKind {
 public:
  void Commit(ClusterState& state, Effects& /*effects*/, const Hold& /*hold*/,
              uint64_t /*now_us*/) const override {
    state.placement_epoch = state.membership.view().epoch.value + 1;
    state.record.records_only = true;
    state.registers_ended = false;
    BeginWalkAnew(state);
    state.membership.SetRecordsOnly(true);
  }
};

}  // namespace

const WorkKind& RecordsOnlyWork() {
  static const RecordsOnly kind;
  return kind;
}

}  // namespace onetrip::master
