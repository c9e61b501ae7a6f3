#include "tests/sim/sim_master_client.h"

#include <algorithm>
#include <coroutine>
#include <utility>

namespace onetrip {
namespace {

// From the thread of the session to the worker's.
constexpr uint64_t kPostNsMax = 2000;

}  // namespace

struct SimMasterClient::Call {
  std::coroutine_handle<> waiter;
  Status status;
  Membership membership;
};

class SimMasterClient::CallAwaiter {
 public:
  CallAwaiter(SimMasterClient& client, ControlLink::RequestBody body, ViewHold& hold,
              std::shared_ptr<Call> call)
      : client_(client), body_(std::move(body)), hold_(hold), call_(std::move(call)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    call_->waiter = waiter;
    const bool leaves = std::holds_alternative<LeaveWorkerRequest>(body_);
    client_.link_.Ask(std::move(body_), client_.settings_.request_ms,
                      [&client = client_, &hold = hold_, call = call_, leaves](
                          Status status, const ReplyMessage* reply) {
                        call->status = status;
                        if (status.ok() && leaves) client.worker_ = nullptr;
                        const auto* joined =
                            status.ok() ? std::get_if<WorkerJoined>(&reply->body) : nullptr;
                        if (joined != nullptr) {
                          call->membership = {joined->worker, joined->index};
                          client.worker_ = &hold;
                          // It hears of every change from here on; one that is under way it has
                          // missed.
                          if (client.hold_epoch_ != 0) hold.Hold();
                          client.events_.joined(joined->worker);
                        }
                        client.process_.Schedule(call->waiter);
                      });
  }
  void await_resume() const noexcept {}

 private:
  SimMasterClient& client_;
  ControlLink::RequestBody body_;
  ViewHold& hold_;
  const std::shared_ptr<Call> call_;
};

SimMasterClient::SimMasterClient(SimProcess& process, SimExecutor& world, SimMaster& master,
                                 const ControlSettings& settings, std::string name, Events events)
    : process_(process),
      world_(world),
      settings_(settings),
      events_(std::move(events)),
      link_(process, world, master, settings, MemberKind::kAgent, std::move(name), *this) {
  // The cluster's time exactly: what clocks do to deadlines has scenarios of its own.
  clock_offset_us_.store(static_cast<int64_t>(world.clock().UnixUs()) -
                         static_cast<int64_t>(world.NowNs() / 1000));
}

Task<Result<Membership>> SimMasterClient::Join(ViewHold& hold) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, JoinWorkerRequest(), hold, call);
  if (!call->status.ok()) co_return call->status;
  co_return call->membership;
}

Task<Status> SimMasterClient::Leave(ViewHold& hold, Membership membership) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, LeaveWorkerRequest{membership.id, membership.index.value}, hold,
                       call);
  co_return call->status;
}

Task<Status> SimMasterClient::FlushKeyspaces(ViewHold& hold, std::optional<uint32_t> database) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, FlushRequest{database}, hold, call);
  co_return call->status;
}

Task<Status> SimMasterClient::SayGoodbye(ViewHold& hold) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, LeaveRequest(), hold, call);
  co_return call->status;
}

void SimMasterClient::OnMessage(const MasterMessage& message) {
  if (const auto* hold = std::get_if<HoldForViewMessage>(&message)) {
    hold_epoch_ = hold->epoch.value;
    TellWorker([](ViewHold& worker) { worker.Hold(); }, ViewHeldMessage{hold->epoch});
  } else if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
    OnView(committed->view);
  }
}

void SimMasterClient::OnView(const std::shared_ptr<const View>& view) {
  const uint64_t epoch = view->epoch.value;
  if (epoch > view_version()) {
    view_ = view;
    view_version_.store(epoch, std::memory_order_release);
  }
  // An older view is one that was under way when a stream broke; the hold is for a newer one.
  const bool releases = hold_epoch_ != 0 && epoch >= hold_epoch_;
  if (releases) hold_epoch_ = 0;
  TellWorker(
      [releases](ViewHold& worker) {
        if (releases) worker.Release();
      },
      ViewInForceMessage{view->epoch});
}

void SimMasterClient::TellWorker(std::function<void(ViewHold&)> change, MemberMessage then) {
  if (worker_ == nullptr) return link_.Send(std::move(then));
  uint64_t time_ns = process_.NowNs();
  if (world_.rng().Below(2) == 0) time_ns += world_.rng().Below(kPostNsMax);
  if (!posted_.empty()) time_ns = std::max(time_ns, posted_.back().time_ns);
  posted_.push_back({time_ns, std::move(change), std::move(then)});
  process_.At(time_ns, OnPosted, this);
}

void SimMasterClient::OnPosted(void* arg) {
  SimMasterClient& client = *static_cast<SimMasterClient*>(arg);
  Posted posted = std::move(client.posted_.front());
  client.posted_.pop_front();
  if (client.worker_ != nullptr) posted.change(*client.worker_);
  client.link_.Send(std::move(posted.then));
}

}  // namespace onetrip
