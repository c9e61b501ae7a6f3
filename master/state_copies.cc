#include "master/state_copies.h"

#include <algorithm>
#include <utility>

#include "client_core/control/control.pb.h"
#include "master/durable_change.h"

namespace onetrip {
namespace {

constexpr size_t kChangeBytesMin = 64 << 10;
// The versions of one life: far more than a life can store.
constexpr int kVersionsPerLifeBits = 32;

}  // namespace

StateCopies::StateCopies(DurableState state)
    : state_(std::move(state)), version_(state_.cluster.epoch << kVersionsPerLifeBits) {}

bool StateCopies::OnStored(const DurableChange& change, control::FromMaster* message) {
  const bool had_state = has_state();
  const bool is_kept = IsKept(change, state_);
  ApplyChange(change, &state_);
  if (!is_kept || !has_state()) return false;
  ++version_;
  whole_.clear();
  if (!had_state || change_bytes_ > std::max(kChangeBytesMin, whole_bytes_)) {
    FillWhole(message);
    whole_bytes_ = whole_.size();
    change_bytes_ = 0;
    return true;
  }
  control::KeepState* const keep = message->mutable_keep_state();
  keep->set_version(version_);
  keep->set_change(EncodeChange(change));
  change_bytes_ += keep->change().size();
  return true;
}

void StateCopies::FillWhole(control::FromMaster* message) {
  if (whole_.empty()) whole_ = EncodeChange(WholeState(state_));
  control::KeepState* const keep = message->mutable_keep_state();
  keep->set_version(version_);
  keep->set_whole(true);
  keep->set_change(whole_);
}

}  // namespace onetrip
