#include "client_core/control/grpc_master_client.h"

#include <algorithm>
#include <coroutine>
#include <utility>

#include "client_core/base/clock.h"
#include "client_core/base/log.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/usage_codec.h"
#include "client_core/control/view_codec.h"

namespace onetrip {

namespace {

// Without its view.
RepairOrder DecodeOrder(const control::Repair& message) {
  RepairOrder order;
  switch (message.kind()) {
    case control::Repair::SCRUB_REGISTERS:
      order.kind = RepairKind::kScrubRegisters;
      break;
    case control::Repair::COPY_REGION:
      order.kind = RepairKind::kCopyRegion;
      break;
    case control::Repair::TAKE_OVER_BLOCKS:
      order.kind = RepairKind::kTakeOverBlocks;
      break;
    case control::Repair::END_REGISTERS:
      order.kind = RepairKind::kEndRegisters;
      break;
    case control::Repair::MOVE_REGION:
      order.kind = RepairKind::kMoveRegion;
      break;
    case control::Repair::FORMAT_REGIONS:
      order.kind = RepairKind::kFormatRegions;
      break;
    case control::Repair::MOVE_SUBTABLES:
      order.kind = RepairKind::kMoveSubtables;
      break;
    default:
      order.kind = RepairKind::kResolveSlots;
  }
  order.region = message.region();
  order.damaged = message.damaged();
  order.walk = message.walk();
  order.source = NodeId{static_cast<uint16_t>(message.source())};
  order.target = {NodeId{static_cast<uint16_t>(message.target())}, message.target_base()};
  for (const uint32_t id : message.living()) order.living.ids.push_back(WorkerId{id});
  order.living.next = WorkerId{message.next_worker()};
  return order;
}

}  // namespace

// A request of a worker, shared by its coroutine and the session thread; the latter fills it and
// then touches it no more.
struct GrpcMasterClient::Call {
  std::coroutine_handle<> waiter;
  Status status;
  std::string reason;
  Membership membership;
};

// The last repair that the master asked for, on whatever stream; it is done once.
struct GrpcMasterClient::Repair {
  uint64_t id = 0;  // 0: none
  bool under_hold = false;
  std::optional<Status> end;               // nothing: it runs
  std::optional<control::View> next_view;  // comes into force after a repair under a hold
};

// Asks, and goes on on the worker's thread when the answer is there.
class GrpcMasterClient::CallAwaiter {
 public:
  CallAwaiter(GrpcMasterClient& client, const control::Request& request, uint64_t timeout_ms,
              ViewHold& hold, std::shared_ptr<Call> call)
      : client_(client),
        request_(request),
        timeout_ms_(timeout_ms),
        hold_(hold),
        call_(std::move(call)) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    call_->waiter = waiter;
    client_.Start(request_, timeout_ms_, hold_.door(), call_);
  }
  void await_resume() const noexcept {}

 private:
  GrpcMasterClient& client_;
  const control::Request& request_;
  const uint64_t timeout_ms_;
  ViewHold& hold_;
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
      repair_(std::make_unique<Repair>()),
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

Task<Result<Membership>> GrpcMasterClient::Join(ViewHold& hold) {
  control::Request request;
  request.mutable_join_worker();
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, request, join_timeout_ms_, hold, call);
  if (!call->status.ok()) co_return call->status;
  co_return call->membership;
}

Task<Status> GrpcMasterClient::Leave(ViewHold& hold, Membership membership) {
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

Task<Status> GrpcMasterClient::FlushKeyspaces(ViewHold& hold, std::optional<uint32_t> database) {
  control::Request request;
  request.mutable_flush()->set_all(!database.has_value());
  request.mutable_flush()->set_database(database.value_or(0));
  auto call = std::make_shared<Call>();
  co_await CallAwaiter(*this, request, request_timeout_ms_, hold, call);
  if (!call->status.ok()) LogWarning("control: a flush failed: " + call->reason);
  co_return call->status;
}

Task<Status> GrpcMasterClient::SwapKeyspaces(ViewHold& hold, uint32_t first, uint32_t second) {
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
                             const DoorPtr& door, std::shared_ptr<Call> call) {
  const bool joins = request.has_join_worker();
  const bool leaves = request.has_leave_worker();
  const WorkerId leaver{request.leave_worker().worker()};
  stream_->Ask(request, timeout_ms,
               [this, joins, leaves, leaver, door, call = std::move(call)](
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
                   // It hears of every change from here on; one that is under way it has missed.
                   if (hold_epoch_ != 0) {
                     door->Post([kind = hold_kind_](ViewHold& hold) { hold.Hold(kind); });
                   }
                   workers_.push_back(door);
                   ++members_;
                 } else if (leaves) {
                   std::erase(workers_, door);
                   --members_;
                   if (unreached_.WorkerGone(leaver)) SendUnreached();
                 }
                 door->Post([call](ViewHold& hold) { hold.executor().Schedule(call->waiter); });
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
  if (!unreached_.entries().empty()) SendUnreached();
}

void GrpcMasterClient::OnTime(uint64_t time_us, uint64_t sent_ns, uint64_t received_ns) {
  offset_.Add(time_us, sent_ns, received_ns);
  clock_offset_us_.store(offset_.offset_us(), std::memory_order_relaxed);
}

void GrpcMasterClient::FillReport(control::Report* report) {
  report->set_workers(workers_.size());
  if (usage_fn_) EncodeUsage(usage_fn_(), report);
}

void GrpcMasterClient::OnMessage(const control::FromMaster& message) {
  if (message.kind_case() == control::FromMaster::kHoldForView) {
    OnHold(message.hold_for_view());
  } else if (message.kind_case() == control::FromMaster::kReach) {
    OnReach(message.reach());
  } else if (message.kind_case() == control::FromMaster::kRepair) {
    OnRepair(message.repair());
  } else if (message.kind_case() == control::FromMaster::kViewCommitted) {
    OnView(message.view_committed().view());
  } else if (message.kind_case() == control::FromMaster::kUsage) {
    const std::lock_guard<std::mutex> lock(mutex_);
    usage_ = DecodePoolUsage(message.usage());
  }
}

void GrpcMasterClient::TellReach(WorkerId worker, NodeId node, bool reached) {
  ChangeUnreached([this, worker, node, reached](uint64_t now_ns) {
    return unreached_.WorkerSays(worker, node, reached, now_ns);
  });
}

void GrpcMasterClient::TellProbed(NodeId node, bool reached) {
  ChangeUnreached(
      [this, node, reached](uint64_t now_ns) { return unreached_.Probed(node, reached, now_ns); });
}

std::vector<NodeId> GrpcMasterClient::to_probe() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return to_probe_;
}

void GrpcMasterClient::ChangeUnreached(std::function<bool(uint64_t now_ns)> change) {
  stream_->Run([this, change = std::move(change)] {
    if (change(SystemClock().NowNs())) SendUnreached();
    const std::lock_guard<std::mutex> lock(mutex_);
    to_probe_ = unreached_.ToProbe();
  });
}

void GrpcMasterClient::SendUnreached() {
  constexpr uint64_t kNsPerMs = 1'000'000;
  const uint64_t now_ns = SystemClock().NowNs();
  control::FromMember message;
  message.mutable_unreached();
  for (const auto& [node, entry] : unreached_.entries()) {
    control::Unreached::Node* const one = message.mutable_unreached()->add_nodes();
    one->set_node(node);
    one->set_worker(entry.worker.value_or(WorkerId{0}).value);
    one->set_for_ms((now_ns - entry.since_ns) / kNsPerMs);
  }
  stream_->Send(message);
}

void GrpcMasterClient::OnHold(const control::HoldForView& message) {
  hold_epoch_ = message.epoch();
  hold_kind_ = message.kind() == control::HoldForView::ALL     ? HoldKind::kAll
               : message.kind() == control::HoldForView::SLOTS ? HoldKind::kSlots
                                                               : HoldKind::kStart;
  left_.clear();
  for (const uint32_t node : message.leave()) {
    left_.push_back(NodeId{static_cast<uint16_t>(node)});
  }
  // A later hold takes this one's place at the workers, and what goes away with it there is no
  // acknowledgement: the master may just have asked again, on a new stream.
  const uint64_t number = ++holds_;
  TellWorkers(
      [kind = hold_kind_, left = left_](ViewHold& hold, const AckPtr& ack) {
        for (const NodeId node : left) {
          if (hold.duties() != nullptr) hold.duties()->LeaveNode(node);
        }
        hold.Hold(kind, [ack] { ack->Give(); });
      },
      [this, number, epoch = hold_epoch_] {
        if (hold_epoch_ != epoch || holds_ != number) return;
        control::FromMember answer;
        answer.mutable_view_held()->set_epoch(epoch);
        stream_->Send(answer);
      });
}

void GrpcMasterClient::OnReach(const control::Reach& message) {
  const NodeId node{static_cast<uint16_t>(message.node())};
  TellWorkers(
      [node](ViewHold& hold, const AckPtr& ack) { hold.AwaitReach(node, [ack] { ack->Give(); }); },
      [this, id = message.id()] {
        control::FromMember answer;
        answer.mutable_reached()->set_id(id);
        stream_->Send(answer);
      });
}

// One worker does it: each has all that it takes. Only the end of registers may need the memory of
// every worker, so each gets its turn.
void GrpcMasterClient::OnRepair(const control::Repair& message) {
  if (message.id() == repair_->id) {
    // Asked again, on a new stream.
    if (repair_->end.has_value()) AnswerRepair();
    return;
  }
  *repair_ = Repair();
  repair_->id = message.id();
  RepairOrder order = DecodeOrder(message);
  repair_->under_hold = IsUnderHold(order.kind);
  std::string reason;
  Result<View> view = DecodeView(message.view(), &reason);
  if (!view.ok()) LogError("control: " + reason);
  if (!view.ok() || workers_.empty()) {
    return OnRepairEnded(message.id(), Status(StatusCode::kUnavailable, "no worker can do it"));
  }
  order.view = std::make_shared<const View>(std::move(view.value()));
  const auto done = [this, weak = std::weak_ptr<ControlStream>(stream_),
                     id = message.id()](Status status) {
    const std::shared_ptr<ControlStream> stream = weak.lock();
    if (stream != nullptr) stream->Run([this, id, status] { OnRepairEnded(id, status); });
  };
  size_t worker = 0;
  if (order.kind == RepairKind::kEndRegisters) worker = end_registers_turn_++ % workers_.size();
  workers_[worker]->Post([order, done](ViewHold& hold) {
    if (hold.duties() == nullptr) {
      return done(Status(StatusCode::kUnavailable, "the worker has not started, or has ended"));
    }
    hold.duties()->Repair(order, done);
  });
}

void GrpcMasterClient::OnRepairEnded(uint64_t id, Status status) {
  if (repair_->id != id) return;
  repair_->end = status;
  AnswerRepair();
  if (!repair_->next_view.has_value()) return;
  const control::View view = *std::exchange(repair_->next_view, std::nullopt);
  OnView(view);
}

void GrpcMasterClient::AnswerRepair() {
  control::FromMember answer;
  answer.mutable_repaired()->set_id(repair_->id);
  answer.mutable_repaired()->set_done(repair_->end->ok());
  answer.mutable_repaired()->set_reason(std::string(repair_->end->message()));
  stream_->Send(answer);
}

void GrpcMasterClient::OnView(const control::View& message) {
  // Nobody goes on while a repair that others hold for still runs here.
  if (repair_->id != 0 && repair_->under_hold && !repair_->end.has_value()) {
    repair_->next_view = message;
    return;
  }
  std::string reason;
  Result<View> decoded = DecodeView(message, &reason);
  if (!decoded.ok()) return LogError("control: " + reason);
  const uint64_t epoch = decoded->epoch.value;
  if (epoch > view_version()) {
    // Without workers nothing lies anywhere for it, and it may have missed views.
    if (!workers_.empty() && !CheckFollows(*view(), *decoded, &reason).ok()) {
      return LogError("control: " + reason);
    }
    auto view = std::make_shared<const View>(std::move(decoded.value()));
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      view_ = std::move(view);
      view_version_.store(epoch, std::memory_order_release);
    }
    unreached_.UseView(*this->view());
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      to_probe_ = unreached_.ToProbe();
    }
    if (new_view_ != nullptr) new_view_();
  }
  // An older view is one that was under way when a stream broke; the hold is for a newer one.
  const bool releases = hold_epoch_ != 0 && epoch >= hold_epoch_;
  if (releases) hold_epoch_ = 0;
  TellWorkers(
      [releases, view = this->view()](ViewHold& hold, const AckPtr& ack) {
        if (hold.duties() != nullptr) hold.duties()->UseView(*view);
        if (releases) hold.Release();
        ack->Give();
      },
      [this, epoch] {
        control::FromMember answer;
        answer.mutable_view_in_force()->set_epoch(epoch);
        stream_->Send(answer);
      });
}

void GrpcMasterClient::TellWorkers(const std::function<void(ViewHold&, const AckPtr&)>& change,
                                   const std::function<void()>& then) {
  AckBarrier barrier([weak = std::weak_ptr<ControlStream>(stream_), then] {
    const std::shared_ptr<ControlStream> stream = weak.lock();
    if (stream != nullptr) stream->Run(then);
  });
  for (const DoorPtr& door : workers_) {
    door->Post([change, ack = barrier.Expect()](ViewHold& hold) { change(hold, ack); });
  }
  barrier.Close();
}

}  // namespace onetrip
