#include "tests/sim/sim_master_client.h"

#include <algorithm>
#include <coroutine>
#include <utility>

#include "client_core/base/log.h"

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
  CallAwaiter(SimMasterClient& client, ControlLink::RequestBody body, Quiesce& hold,
              std::shared_ptr<Call> call)
      : client_(client), body_(std::move(body)), hold_(hold), call_(std::move(call)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    call_->waiter = waiter;
    const auto* leave = std::get_if<LeaveWorkerRequest>(&body_);
    const std::optional<WorkerId> leaver =
        leave == nullptr ? std::nullopt : std::optional(leave->worker);
    client_.link_.Ask(std::move(body_), client_.settings_.request_ms,
                      [&client = client_, &hold = hold_, call = call_, leaver](
                          Status status, const ReplyMessage* reply) {
                        call->status = status;
                        if (status.ok()) client.OnMembership(hold, leaver, *reply, *call);
                        client.process_.Schedule(call->waiter);
                      });
  }
  void await_resume() const noexcept {}

 private:
  SimMasterClient& client_;
  ControlLink::RequestBody body_;
  Quiesce& hold_;
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

Task<Result<Membership>> SimMasterClient::Join(Quiesce& hold) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, JoinWorkerRequest(), hold, call);
  if (!call->status.ok()) co_return call->status;
  co_return call->membership;
}

Task<Status> SimMasterClient::Leave(Quiesce& hold, Membership membership) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, LeaveWorkerRequest{membership.id, membership.index.value}, hold,
                       call);
  co_return call->status;
}

Task<Status> SimMasterClient::FlushKeyspaces(Quiesce& hold, std::optional<uint32_t> database) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, FlushRequest{database}, hold, call);
  co_return call->status;
}

Task<Status> SimMasterClient::SwapKeyspaces(Quiesce& hold, uint32_t first, uint32_t second) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, SwapRequest{first, second}, hold, call);
  co_return call->status;
}

Task<Status> SimMasterClient::SayGoodbye(Quiesce& hold) {
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, LeaveRequest(), hold, call);
  co_return call->status;
}

void SimMasterClient::OnMembership(Quiesce& hold, std::optional<WorkerId> leaver,
                                   const ReplyMessage& reply, Call& call) {
  if (leaver.has_value()) {
    worker_ = nullptr;
    session_.OnLeft(*leaver, process_.NowNs());
  }
  const auto* joined = std::get_if<WorkerJoined>(&reply.body);
  if (joined != nullptr) {
    call.membership = {joined->worker, joined->index};
    worker_ = &hold;
    session_.OnJoined(joined->worker);
  }
  PerformEffects();
  if (joined != nullptr) events_.joined(joined->worker);
}

void SimMasterClient::TellReach(WorkerId worker, NodeId node, bool reached) {
  session_.OnReachOf(worker, node, reached, process_.NowNs());
  PerformEffects();
}

void SimMasterClient::TellProbed(NodeId node, bool reached) {
  session_.OnProbed(node, reached, process_.NowNs());
  PerformEffects();
}

void SimMasterClient::OnWelcome() {
  session_.OnWelcome(process_.NowNs());
  PerformEffects();
}

void SimMasterClient::OnMessage(const MasterMessage& message) {
  if (const auto* hold = std::get_if<HoldForViewMessage>(&message)) {
    session_.OnHold(*hold);
  } else if (const auto* reach = std::get_if<ReachMessage>(&message)) {
    session_.OnReach(*reach);
  } else if (const auto* repair = std::get_if<RepairMessage>(&message)) {
    session_.OnRepair(*repair);
  } else if (const auto* committed = std::get_if<ViewCommittedMessage>(&message)) {
    session_.OnView(committed->view);
  }
  PerformEffects();
}

void SimMasterClient::OnCarriedOut(uint64_t ticket) {
  session_.OnCarriedOut(ticket);
  PerformEffects();
}

void SimMasterClient::OnRepairEnded(uint64_t id, Status status) {
  session_.OnRepairEnded(id, status);
  PerformEffects();
}

void SimMasterClient::PerformEffects() {
  for (const AgentEffect& effect : session_.TakeEffects()) {
    std::visit([this](const auto& one) { Perform(one); }, effect);
  }
}

void SimMasterClient::Perform(const AgentMessage& message) {
  std::visit([this](const auto& one) { link_.Send(one); }, message);
}

void SimMasterClient::Perform(const agent_effect::UseView& use) {
  view_version_.store(use.view->epoch.value, std::memory_order_release);
}

void SimMasterClient::Perform(const agent_effect::TellWorkers& tell) {
  Post([this, order = tell.order, ticket = tell.ticket](Quiesce* worker) {
    if (worker == nullptr) return OnCarriedOut(ticket);
    CarryOut(order, *worker, [this, ticket] { OnCarriedOut(ticket); });
  });
}

void SimMasterClient::Perform(const agent_effect::StartQuiesced& start) {
  worker_->Hold(start.kind);
}

void SimMasterClient::Perform(const agent_effect::StartRepair& start) {
  Post([this, order = start.order, id = start.id](Quiesce* worker) {
    if (worker == nullptr) {
      return OnRepairEnded(id, Status(StatusCode::kUnavailable, "the worker is gone"));
    }
    CarryOut(order, *worker, [this, id](Status status) { OnRepairEnded(id, status); });
  });
}

void SimMasterClient::Perform(const agent_effect::Complain& complain) { LogError(complain.text); }

void SimMasterClient::Post(std::function<void(Quiesce* worker)> run) {
  uint64_t time_ns = process_.NowNs();
  if (world_.rng().Below(2) == 0) time_ns += world_.rng().Below(kPostNsMax);
  if (!posted_.empty()) time_ns = std::max(time_ns, posted_.back().time_ns);
  posted_.push_back({time_ns, std::move(run)});
  process_.At(time_ns, OnPosted, this);
}

void SimMasterClient::OnPosted(void* arg) {
  SimMasterClient& client = *static_cast<SimMasterClient*>(arg);
  const Posted posted = std::move(client.posted_.front());
  client.posted_.pop_front();
  posted.run(client.worker_);
}

}  // namespace onetrip
