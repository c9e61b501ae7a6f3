#include "master/local_master.h"

#include <coroutine>
#include <mutex>
#include <utility>

#include "client_core/cluster/ack_barrier.h"

namespace onetrip {

// Lives in the frame of who asked for it.
struct LocalMaster::Swap {
  uint32_t first;
  uint32_t second;
  MailboxPtr mailbox;  // to the worker that asked
  std::coroutine_handle<> waiter;
  Status status;
};

class LocalMaster::SwapAwaiter {
 public:
  SwapAwaiter(LocalMaster& master, Swap& swap) : master_(master), swap_(swap) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    swap_.waiter = waiter;
    master_.Enqueue(&swap_);
  }
  Status await_resume() const noexcept { return swap_.status; }

 private:
  LocalMaster& master_;
  Swap& swap_;
};

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

Task<Result<Membership>> LocalMaster::Join(Quiesce& hold) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Result<Membership> membership = state_.Join();
  if (!membership.ok()) co_return membership;
  Commit();
  // It has nothing under way, and starts nothing before the swaps.
  if (!swaps_.empty()) hold.Hold(HoldKind::kAll);
  workers_.push_back(hold.mailbox());
  co_return membership;
}

Task<Status> LocalMaster::Leave(Quiesce& hold, Membership membership) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Status status = state_.Leave(membership);
  if (!status.ok()) co_return status;
  Commit();
  std::erase(workers_, hold.mailbox());
  co_return status;
}

Task<Status> LocalMaster::FlushKeyspaces(Quiesce& /*hold*/, std::optional<uint32_t> database) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const Status status = state_.FlushKeyspaces(database);
  if (status.ok()) Commit();
  co_return status;
}

Task<Status> LocalMaster::SwapKeyspaces(Quiesce& hold, uint32_t first, uint32_t second) {
  Swap swap{first, second, hold.mailbox(), nullptr, Status::Ok()};
  const Status status = co_await SwapAwaiter(*this, swap);
  co_return status;
}

void LocalMaster::Enqueue(Swap* swap) {
  std::unique_lock<std::mutex> lock(mutex_);
  swaps_.push_back(swap);
  if (swaps_.size() > 1) return;
  AckBarrier all_hold([this] { CommitSwaps(); });
  for (const MailboxPtr& mailbox : workers_) {
    mailbox->Post([ack = all_hold.Expect()](Quiesce& hold) {
      hold.Hold(HoldKind::kAll, [ack] { ack->Give(); });
    });
  }
  lock.unlock();  // which the commit takes
  all_hold.Close();
}

// The whole commit runs under the lock: no quiesce for the next swaps may come ahead of the release
// from these.
void LocalMaster::CommitSwaps() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Swap* swap : swaps_) swap->status = state_.SwapKeyspaces(swap->first, swap->second);
  Commit();
  for (const MailboxPtr& mailbox : workers_) {
    mailbox->Post([](Quiesce& hold) { hold.Release(); });
  }
  for (const Swap* swap : std::exchange(swaps_, {})) {
    swap->mailbox->Post(
        [waiter = swap->waiter](Quiesce& hold) { hold.executor().Schedule(waiter); });
  }
}

}  // namespace onetrip
