#include "client_core/control/grpc_master_client.h"

#include <algorithm>
#include <coroutine>
#include <utility>

#include "client_core/base/clock.h"
#include "client_core/base/log.h"
#include "client_core/cluster/ack_barrier.h"
#include "client_core/control/agent_codec.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/usage_codec.h"
#include "client_core/control/view_codec.h"

namespace onetrip {

// A request of a worker, shared by its coroutine and the session thread; the latter fills it and
// then touches it no more.
struct GrpcMasterClient::Call {
  std::coroutine_handle<> waiter;
  Status status;
  std::string reason;
  Membership membership;
};

// A repair on its way to a worker: if that is gone before it begins, `done` says so. A worker that
// goes later has ended it, or its process must be taken for dead.
class GrpcMasterClient::RepairOnItsWay {
 public:
  RepairOnItsWay(RepairOrder order, WorkerDuties::DoneFn done)
      : order_(std::move(order)), done_(std::move(done)) {}
  RepairOnItsWay(const RepairOnItsWay&) = delete;
  RepairOnItsWay& operator=(const RepairOnItsWay&) = delete;
  ~RepairOnItsWay() {
    if (done_) done_(Status(StatusCode::kUnavailable, "the worker is gone"));
  }

  void Arrive(auto& worker) { CarryOut(order_, worker, std::exchange(done_, nullptr)); }

 private:
  const RepairOrder order_;
  WorkerDuties::DoneFn done_;  // null: it has arrived
};

// Asks, and goes on on the worker's thread when the answer is there.
class GrpcMasterClient::CallAwaiter {
 public:
  CallAwaiter(GrpcMasterClient& client, const control::Request& request, uint64_t timeout_ms,
              Quiesce& hold, std::shared_ptr<Call> call)
      : client_(client),
        request_(request),
        timeout_ms_(timeout_ms),
        hold_(hold),
        call_(std::move(call)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    call_->waiter = waiter;
    client_.Start(request_, timeout_ms_, hold_.mailbox(), call_);
  }
  void await_resume() const noexcept {}

 private:
  GrpcMasterClient& client_;
  const control::Request& request_;
  const uint64_t timeout_ms_;
  Quiesce& hold_;
  const std::shared_ptr<Call> call_;
};

Result<std::unique_ptr<GrpcMasterClient>> GrpcMasterClient::Connect(ControlOptions options,
                                                                    ExpelledFn expelled,
                                                                    std::string* reason,
                                                                    NewViewFn new_view,
                                                                    UsageFn usage) {
  std::unique_ptr<GrpcMasterClient> client(new GrpcMasterClient(
      std::move(options), std::move(expelled), std::move(new_view), std::move(usage)));
  const Status status = client->stream_->Connect(reason);
  if (!status.ok()) return status;
  return client;
}

GrpcMasterClient::GrpcMasterClient(ControlOptions options, ExpelledFn expelled, NewViewFn new_view,
                                   UsageFn usage)
    : join_timeout_ms_(options.connect_timeout_ms),
      request_timeout_ms_(options.request_timeout_ms),
      expelled_(std::move(expelled)),
      new_view_(std::move(new_view)),
      usage_fn_(std::move(usage)),
      view_(std::make_shared<const View>()),
      stream_(std::make_shared<ControlStream>(std::move(options), ControlStream::Role::kAgent,
                                              static_cast<ControlStream::Handler*>(this))) {}

GrpcMasterClient::~GrpcMasterClient() { stream_->Stop(/*leave=*/false); }

void GrpcMasterClient::Stop() {
  // Whoever goes while a worker of it may still be heard of must be taken for dead.
  stream_->Stop(/*leave=*/members_.load() == 0);
}

// ---- Workers' threads ----

std::shared_ptr<const View> GrpcMasterClient::view() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return view_;
}

std::optional<PoolUsage> GrpcMasterClient::usage() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return usage_;
}

std::string GrpcMasterClient::last_error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return last_error_;
}

Task<Result<Membership>> GrpcMasterClient::Join(Quiesce& hold) {
  control::Request request;
  request.mutable_join_worker();
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, request, join_timeout_ms_, hold, call);
  if (!call->status.ok()) co_return call->status;
  co_return call->membership;
}

Task<Status> GrpcMasterClient::Leave(Quiesce& hold, Membership membership) {
  control::Request request;
  request.mutable_leave_worker()->set_worker(membership.id.value);
  request.mutable_leave_worker()->set_index(membership.index.value);
  auto call = std::make_shared<Call>();
  // An end is not to take long without the master, who takes a worker that did not say goodbye for
  // dead.
  constexpr uint64_t kLeaveMs = 2000;
  co_await CallAwaiter(*this, request, std::min(request_timeout_ms_, kLeaveMs), hold, call);
  co_return call->status;
}

Task<Status> GrpcMasterClient::FlushKeyspaces(Quiesce& hold, std::optional<uint32_t> database) {
  control::Request request;
  request.mutable_flush()->set_all(!database.has_value());
  request.mutable_flush()->set_database(database.value_or(0));
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, request, request_timeout_ms_, hold, call);
  if (!call->status.ok()) LogWarning("control: a flush failed: " + call->reason);
  co_return call->status;
}

Task<Status> GrpcMasterClient::SwapKeyspaces(Quiesce& hold, uint32_t first, uint32_t second) {
  control::Request request;
  request.mutable_swap()->set_first(first);
  request.mutable_swap()->set_second(second);
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, request, request_timeout_ms_, hold, call);
  if (!call->status.ok()) LogWarning("control: a swap of databases failed: " + call->reason);
  co_return call->status;
}

// ---- The session thread ----

void GrpcMasterClient::Start(const control::Request& request, uint64_t timeout_ms,
                             const MailboxPtr& mailbox, std::shared_ptr<Call> call) {
  const bool joins = request.has_join_worker();
  const bool leaves = request.has_leave_worker();
  const WorkerId leaver{request.leave_worker().worker()};
  stream_->Ask(request, timeout_ms,
               [this, joins, leaves, leaver, mailbox, call = std::move(call)](
                   Status status, const std::string& reason, const control::Reply* reply) {
                 call->status = status;
                 call->reason = reason;
                 if (!status.ok()) {
                   const std::lock_guard<std::mutex> lock(mutex_);
                   last_error_ = reason;
                 } else if (joins) {
                   const control::WorkerJoined& joined = reply->worker_joined();
                   call->membership = {WorkerId{joined.worker()},
                                       WorkerIndex{static_cast<uint16_t>(joined.index())}};
                   offset_.AtLeast(joined.time_us(), clock_.NowNs());
                   clock_offset_us_.store(offset_.offset_us(), std::memory_order_relaxed);
                   offset_.Use();
                   mailboxes_[call->membership.id.value] = mailbox;
                   ++members_;
                   session_.OnJoined(call->membership.id);
                   PerformEffects();
                 } else if (leaves) {
                   mailboxes_.erase(leaver.value);
                   --members_;
                   session_.OnLeft(leaver, clock_.NowNs());
                   PerformEffects();
                 }
                 mailbox->Post([call](Quiesce& hold) { hold.executor().Schedule(call->waiter); });
               });
}

void GrpcMasterClient::TEST_Ask(std::function<void(bool answered)> done) {
  control::Request request;
  request.mutable_get_status();
  stream_->Ask(request, request_timeout_ms_,
               [done = std::move(done)](Status, const std::string&, const control::Reply* reply) {
                 done(reply != nullptr);
               });
}

void GrpcMasterClient::OnWelcome(const ControlWelcome& welcome) {
  member_.store(welcome.member, std::memory_order_relaxed);
  session_.OnWelcome(clock_.NowNs());
  PerformEffects();
}

void GrpcMasterClient::OnTime(uint64_t time_us, uint64_t sent_ns, uint64_t received_ns) {
  offset_.Add(time_us, sent_ns, received_ns);
  clock_offset_us_.store(offset_.offset_us(), std::memory_order_relaxed);
}

void GrpcMasterClient::FillReport(control::Report* report) {
  report->set_workers(session_.workers().size());
  if (usage_fn_) EncodeUsage(usage_fn_(), report);
}

void GrpcMasterClient::OnMessage(const control::FromMaster& message) {
  if (message.kind_case() == control::FromMaster::kHoldForView) {
    session_.OnHold(DecodeHold(message.hold_for_view()));
  } else if (message.kind_case() == control::FromMaster::kReach) {
    session_.OnReach(DecodeReach(message.reach()));
  } else if (message.kind_case() == control::FromMaster::kRepair) {
    std::string reason;
    const RepairMessage repair = DecodeRepair(message.repair(), &reason);
    if (repair.order.view == nullptr) LogError("control: " + reason);
    session_.OnRepair(repair);
  } else if (message.kind_case() == control::FromMaster::kViewCommitted) {
    std::string reason;
    Result<View> view = DecodeView(message.view_committed().view(), &reason);
    if (!view.ok()) return LogError("control: " + reason);
    session_.OnView(std::make_shared<const View>(std::move(view.value())));
  } else if (message.kind_case() == control::FromMaster::kUsage) {
    const std::lock_guard<std::mutex> lock(mutex_);
    usage_ = DecodePoolUsage(message.usage());
  }
  PerformEffects();
}

void GrpcMasterClient::TellReach(WorkerId worker, NodeId node, bool reached) {
  RunThenPerform(
      [this, worker, node, reached] { session_.OnReachOf(worker, node, reached, clock_.NowNs()); });
}

void GrpcMasterClient::TellProbed(NodeId node, bool reached) {
  RunThenPerform([this, node, reached] { session_.OnProbed(node, reached, clock_.NowNs()); });
}

std::vector<NodeId> GrpcMasterClient::to_probe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return to_probe_;
}

void GrpcMasterClient::RunThenPerform(std::function<void()> event) {
  stream_->Run([this, event = std::move(event)] {
    event();
    PerformEffects();
  });
}

// ---- What the session says ----

void GrpcMasterClient::PerformEffects() {
  const std::vector<AgentEffect> effects = session_.TakeEffects();
  // Before a worker is told of a view.
  PublishNodesToProbe();
  for (const AgentEffect& effect : effects) {
    std::visit([this](const auto& one) { Perform(one); }, effect);
  }
}

void GrpcMasterClient::PublishNodesToProbe() {
  std::vector<NodeId> nodes = session_.unreached().ToProbe();
  const std::lock_guard<std::mutex> lock(mutex_);
  to_probe_ = std::move(nodes);
}

void GrpcMasterClient::Perform(const AgentMessage& message) {
  control::FromMember out;
  EncodeAgentMessage(message, &out);
  stream_->Send(out);
}

void GrpcMasterClient::Perform(const agent_effect::UseView& use) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    view_ = use.view;
    view_version_.store(use.view->epoch.value, std::memory_order_release);
  }
  if (new_view_ != nullptr) new_view_();
}

void GrpcMasterClient::Perform(const agent_effect::TellWorkers& tell) {
  AckBarrier barrier([this, weak = std::weak_ptr<ControlStream>(stream_), ticket = tell.ticket] {
    const std::shared_ptr<ControlStream> stream = weak.lock();
    if (stream == nullptr) return;
    stream->Run([this, ticket] {
      session_.OnCarriedOut(ticket);
      PerformEffects();
    });
  });
  for (const WorkerId worker : tell.workers) {
    mailboxes_.at(worker.value)->Post([order = tell.order, ack = barrier.Expect()](Quiesce& hold) {
      CarryOut(order, hold, [ack] { ack->Give(); });
    });
  }
  barrier.Close();
}

void GrpcMasterClient::Perform(const agent_effect::StartQuiesced& start) {
  mailboxes_.at(start.worker.value)->Post([kind = start.kind](Quiesce& hold) { hold.Hold(kind); });
}

void GrpcMasterClient::Perform(const agent_effect::StartRepair& start) {
  auto done = [this, weak = std::weak_ptr<ControlStream>(stream_), id = start.id](Status status) {
    const std::shared_ptr<ControlStream> stream = weak.lock();
    if (stream == nullptr) return;
    stream->Run([this, id, status] {
      session_.OnRepairEnded(id, status);
      PerformEffects();
    });
  };
  const auto repair = std::make_shared<RepairOnItsWay>(start.order, std::move(done));
  mailboxes_.at(start.worker.value)->Post([repair](auto& worker) { repair->Arrive(worker); });
}

void GrpcMasterClient::Perform(const agent_effect::Complain& complain) {
  LogError("control: " + complain.text);
}

}  // namespace onetrip
