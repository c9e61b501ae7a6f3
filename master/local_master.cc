#include "master/local_master.h"

#include <utility>

namespace onetrip {

LocalMaster::LocalMaster(MembershipState state, const Clock& clock) : state_(std::move(state)) {
  clock_offset_us_ =
      static_cast<int64_t>(clock.UnixUs()) - static_cast<int64_t>(clock.NowNs() / 1000);
  const std::lock_guard<std::mutex> lock(mutex_);
  Commit();
}

void LocalMaster::Commit() {
  view_ = std::make_shared<const View>(state_.view());
  view_version_.store(view_->epoch.value, std::memory_order_release);
}

std::shared_ptr<const View> LocalMaster::view() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return view_;
}

Task<Result<Membership>> LocalMaster::Join(ViewHold& /*hold*/) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Result<Membership> membership = state_.Join();
  if (membership.ok()) Commit();
  co_return membership;
}

Task<Status> LocalMaster::Leave(ViewHold& /*hold*/, Membership membership) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Status status = state_.Leave(membership);
  if (status.ok()) Commit();
  co_return status;
}

Task<Status> LocalMaster::FlushKeyspaces(ViewHold& /*hold*/, std::optional<uint32_t> database) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Status status = state_.FlushKeyspaces(database);
  if (status.ok()) Commit();
  co_return status;
}

}  // namespace onetrip
