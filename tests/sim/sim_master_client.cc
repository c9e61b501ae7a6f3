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
                          if (client.hold_epoch_ != 0) hold.Hold(client.hold_kind_);
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

Task<Status> SimMasterClient::SwapKeyspaces(ViewHold& hold, uint32_t first, uint32_t second) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, SwapRequest{first, second}, hold, call);
  co_return call->status;
}

Task<Status> SimMasterClient::SayGoodbye(ViewHold& hold) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, LeaveRequest(), hold, call);
  co_return call->status;
}

void SimMasterClient::TellReach(WorkerId worker, NodeId node, bool reached) {
  if (unreached_.WorkerSays(worker, node, reached, process_.NowNs())) SendUnreached();
}

void SimMasterClient::TellProbed(NodeId node, bool reached) {
  if (unreached_.Probed(node, reached, process_.NowNs())) SendUnreached();
}

void SimMasterClient::OnWelcome() {
  if (!unreached_.entries().empty()) SendUnreached();
}

void SimMasterClient::SendUnreached() {
  UnreachedMessage message;
  for (const auto& [node, entry] : unreached_.entries()) {
    message.nodes.push_back({NodeId{node}, entry.worker.value_or(WorkerId{0}).value,
                             (process_.NowNs() - entry.since_ns) / 1'000'000});
  }
  link_.Send(message);
}

void SimMasterClient::OnMessage(const MasterMessage& message) {
  if (const auto* hold = std::get_if<HoldForViewMessage>(&message)) {
    hold_epoch_ = hold->epoch.value;
    hold_kind_ = hold->kind;
    TellWorker(
        [kind = hold->kind, left = hold->leave](ViewHold& worker, std::function<void()> done) {
          for (const NodeId node : left) {
            if (worker.duties() != nullptr) worker.duties()->LeaveNode(node);
          }
          worker.Hold(kind, std::move(done));
        },
        [this, epoch = hold->epoch] { link_.Send(ViewHeldMessage{epoch}); });
  } else if (const auto* reach = std::get_if<ReachMessage>(&message)) {
    TellWorker(
        [node = reach->node](ViewHold& worker, std::function<void()> done) {
          worker.AwaitReach(node, std::move(done));
        },
        [this, id = reach->id] { link_.Send(ReachedMessage{id}); });
  } else if (const auto* repair = std::get_if<RepairMessage>(&message)) {
    OnRepair(*repair);
  } else if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
    OnView(committed->view);
  }
}

void SimMasterClient::OnRepair(const RepairMessage& message) {
  if (message.id == repair_.id) {
    // Asked again, on a new connection.
    if (repair_.end.has_value()) AnswerRepair();
    return;
  }
  repair_ = {};
  repair_.id = message.id;
  repair_.under_hold = IsUnderHold(message.order.kind);
  const Status none(StatusCode::kUnavailable, "no worker can do it");
  if (worker_ == nullptr) return OnRepairEnded(message.id, none);
  TellWorker(
      [this, message, none](ViewHold& worker, const std::function<void()>& /*done*/) {
        if (worker.duties() == nullptr) return OnRepairEnded(message.id, none);
        worker.duties()->Repair(
            message.order, [this, id = message.id](Status status) { OnRepairEnded(id, status); });
      },
      [this, id = message.id, none] { OnRepairEnded(id, none); });
}

void SimMasterClient::OnRepairEnded(uint64_t id, Status status) {
  if (repair_.id != id) return;
  repair_.end = status;
  AnswerRepair();
  if (repair_.next_view != nullptr) OnView(std::exchange(repair_.next_view, nullptr));
}

void SimMasterClient::OnView(const std::shared_ptr<const View>& view) {
  // Nobody goes on while a repair that others hold for still runs here.
  if (repair_.id != 0 && repair_.under_hold && !repair_.end.has_value()) {
    repair_.next_view = view;
    return;
  }
  const uint64_t epoch = view->epoch.value;
  if (epoch > view_version()) {
    view_ = view;
    view_version_.store(epoch, std::memory_order_release);
    unreached_.UseView(*view);
  }
  // An older view is one that was under way when a stream broke; the hold is for a newer one.
  const bool releases = hold_epoch_ != 0 && epoch >= hold_epoch_;
  if (releases) hold_epoch_ = 0;
  TellWorker(
      [this, releases](ViewHold& worker, const std::function<void()>& done) {
        if (worker.duties() != nullptr) worker.duties()->UseView(*view_);
        if (releases) worker.Release();
        done();
      },
      [this, epoch = view->epoch] { link_.Send(ViewInForceMessage{epoch}); });
}

void SimMasterClient::TellWorker(ChangeFn change, std::function<void()> then) {
  if (worker_ == nullptr) return then();
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
  if (client.worker_ == nullptr) return posted.then();
  posted.change(*client.worker_, posted.then);
}

}  // namespace onetrip
