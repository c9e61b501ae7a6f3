#include "client_core/control/grpc_node_master_client.h"

#include <chrono>
#include <future>
#include <utility>

#include "client_core/base/log.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/kept_state.h"
#include "client_core/control/node_codec.h"
#include "client_core/control/usage_codec.h"
#include "client_core/control/view_codec.h"

namespace onetrip {

std::unique_ptr<NodeMasterClient> MakeNodeMasterClient(ControlOptions options) {
  return std::make_unique<GrpcNodeMasterClient>(std::move(options));
}

GrpcNodeMasterClient::GrpcNodeMasterClient(ControlOptions options)
    : serve_timeout_ms_(options.connect_timeout_ms),
      request_timeout_ms_(options.request_timeout_ms),
      stream_(std::move(options), ControlStream::Role::kMemoryNode, this) {}

GrpcNodeMasterClient::~GrpcNodeMasterClient() { Stop(false); }

// ---- The node's main thread ----

Result<NodePlace> GrpcNodeMasterClient::Join(const NodeOffer& offer, std::string* reason) {
  offer_ = offer;
  session_.emplace(offer);
  control::Recalled kept;
  // A file beside other memory than it was written for tells of another cluster, or another time.
  if (!offer.state.empty() && DecodeStateFile(offer.state, &kept).ok() &&
      kept.incarnation() == offer.incarnation) {
    stream_.Restore(kept);
  }
  const Status connected = stream_.Connect(reason);
  if (!connected.ok()) return connected;
  std::unique_lock<std::mutex> lock(mutex_);
  const auto decided = [this] { return place_.has_value() || !failure_.ok() || stopped_; };
  if (!changed_.wait_for(lock, std::chrono::seconds(1), decided)) {
    LogInfo(offer_.damage.empty()
                ? "control: waiting for a place: the master waits for more memory nodes"
                : "control: waiting for a place: the map counts on this node's memory as it was");
    changed_.wait(lock, decided);
  }
  if (place_.has_value()) return *place_;
  *reason = stopped_ && failure_.ok() ? "stopped" : failure_reason_;
  return failure_.ok() ? Status(StatusCode::kUnavailable, "stopped") : failure_;
}

Status GrpcNodeMasterClient::NoteMark(uint64_t mark, uint64_t timeout_ms, std::string* reason) {
  if (!stream_.attending()) {
    *reason = "the master is away";
    return Status(StatusCode::kUnavailable, "the master is away");
  }
  control::Request request;
  request.mutable_note_mark()->set_mark(mark);
  struct Outcome {
    Status status;
    std::string reason;
  };
  const auto outcome = std::make_shared<std::promise<Outcome>>();
  stream_.Ask(request, timeout_ms,
              [outcome](Status status, const std::string& why, const control::Reply*) {
                outcome->set_value({status, why});
              });
  const Outcome got = outcome->get_future().get();
  *reason = got.reason;
  return got.status;
}

Status GrpcNodeMasterClient::Serve(const NodeAddress& address, NodeDuties* duties,
                                   std::string* reason) {
  std::unique_lock<std::mutex> lock(mutex_);
  CHECK(place_.has_value() && duties_ == nullptr);
  if (stopped_) {
    *reason = "stopped";
    return Status(StatusCode::kUnavailable, "stopped");
  }
  duties_ = duties;
  duty_thread_ = std::thread([this] { RunDuties(); });
  RunThenPerform([this, address] { session_->OnServes(address); });
  const auto decided = [this] { return serving_ || !failure_.ok() || stopped_; };
  if (!changed_.wait_for(lock, std::chrono::milliseconds(serve_timeout_ms_), decided)) {
    *reason = "the master does not answer: it is not known whether agents are told of this node";
    return Status(StatusCode::kUnavailable, "no answer");
  }
  if (serving_) return Status::Ok();
  *reason = failure_.ok() ? "stopped" : failure_reason_;
  return failure_.ok() ? Status(StatusCode::kUnavailable, "stopped") : failure_;
}

void GrpcNodeMasterClient::Stop(bool leave) {
  const std::lock_guard<std::mutex> one_at_a_time(stop_mutex_);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  stream_.Stop(leave);
  if (duty_thread_.joinable()) duty_thread_.join();
}

// ---- The session thread ----

void GrpcNodeMasterClient::OnWelcome(const ControlWelcome& /*welcome*/) {
  session_->OnWelcome(Age());
  PerformEffects();
}

void GrpcNodeMasterClient::OnMessage(const control::FromMaster& message) {
  if (message.kind_case() == control::FromMaster::kFence) {
    session_->OnFence(DecodeFence(message.fence()));
  } else if (message.kind_case() == control::FromMaster::kViewCommitted) {
    std::string reason;
    Result<View> view = DecodeView(message.view_committed().view(), &reason);
    if (!view.ok()) return LogError("control: " + reason);
    session_->OnView(std::make_shared<const View>(std::move(view.value())));
  }
  PerformEffects();
}

void GrpcNodeMasterClient::OnPlace(Status status, const std::string& reason,
                                   const control::Reply* reply) {
  if (reply == nullptr) {
    session_->OnNoPlace(status, reason, stream_.attending());
    return PerformEffects();
  }
  std::string why;
  Result<NodePlace> place = DecodePlace(reply->node_joined(), &why);
  if (place.ok()) {
    session_->OnPlace(std::move(place.value()));
  } else {
    session_->OnNoPlace(place.status(), why, /*attending=*/true);
  }
  PerformEffects();
}

NodeAge GrpcNodeMasterClient::Age() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return duties_ != nullptr ? duties_->Age() : offer_.age;
}

void GrpcNodeMasterClient::OnExpelled(const std::string& reason) {
  // A node that was welcomed is never told to end (refusal.h).
  const std::lock_guard<std::mutex> lock(mutex_);
  Fail(Status(StatusCode::kInvalidArgument, "expelled"), reason);
}

void GrpcNodeMasterClient::Fail(Status status, const std::string& reason) {
  if (!failure_.ok()) return;
  failure_ = status;
  failure_reason_ = reason;
  changed_.notify_all();
}

void GrpcNodeMasterClient::OnMarkStored(uint64_t mark) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (duties_ != nullptr && mark != 0) duties_->OnMarkStored(mark);
}

void GrpcNodeMasterClient::OnState(const control::Recalled& kept) {
  AddDuty([bytes = EncodeStateFile(kept)](NodeDuties& duties) { duties.OnState(bytes); });
}

void GrpcNodeMasterClient::FillRecalled(control::Recalled* recalled) {
  const NodeAge age = Age();
  recalled->set_incarnation(offer_.incarnation);
  recalled->set_mark(age.mark);
  recalled->set_next_worker(age.next_worker);
}

void GrpcNodeMasterClient::FillReport(control::Report* report) {
  NodeDuties* duties = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    duties = duties_;
  }
  if (duties == nullptr) return;
  const NodeReport fresh = duties->Report();
  report->set_blocks(fresh.blocks);
  report->set_granted_blocks(fresh.granted_blocks);
  report->set_operations(fresh.operations);
  report->set_page_bytes(fresh.page_bytes);
  report->set_mark(fresh.mark);
  EncodeUsage(fresh.usage, report);
}

// ---- What the session says ----

void GrpcNodeMasterClient::RunThenPerform(std::function<void()> event) {
  stream_.Run([this, event = std::move(event)] {
    event();
    PerformEffects();
  });
}

void GrpcNodeMasterClient::PerformEffects() {
  for (const NodeEffect& effect : session_->TakeEffects()) {
    std::visit([this](const auto& one) { Perform(one); }, effect);
  }
}

void GrpcNodeMasterClient::Perform(const FencedMessage& message) {
  control::FromMember out;
  EncodeFenced(message, &out);
  stream_.Send(out);
}

// There may be no map for as long as nodes are missing.
void GrpcNodeMasterClient::Perform(const node_effect::AskForPlace& ask) {
  control::Request request;
  EncodeJoinNode(ask.request, request.mutable_join_node());
  stream_.Ask(request, /*timeout_ms=*/0,
              [this](Status status, const std::string& reason, const control::Reply* reply) {
                OnPlace(status, reason, reply);
              });
}

void GrpcNodeMasterClient::Perform(const node_effect::TakePlace& take) {
  const std::lock_guard<std::mutex> lock(mutex_);
  place_ = take.place;
  changed_.notify_all();
}

void GrpcNodeMasterClient::Perform(const node_effect::TakePlaceAgain& take) {
  AddDuty([this, take](NodeDuties& duties) {
    std::string failure;
    const Status fenced =
        take.expelled.empty() ? Status::Ok() : duties.Fence(take.expelled, Epoch{0}, &failure);
    if (!fenced.ok()) LogWarning("control: expelled workers are not refused yet: " + failure);
    duties.OnView(take.view);
    RunThenPerform([this] { session_->OnTakenUp(); });
  });
}

void GrpcNodeMasterClient::Perform(const node_effect::AskToServe& ask) {
  control::Request request;
  EncodeNodeAddress(ask.address, request.mutable_serve_node()->mutable_address());
  stream_.Ask(request, request_timeout_ms_,
              [this](Status status, const std::string& reason, const control::Reply*) {
                session_->OnServeAnswer(status, reason, stream_.attending());
                PerformEffects();
              });
}

void GrpcNodeMasterClient::Perform(const node_effect::Serve& /*serve*/) {
  const std::lock_guard<std::mutex> lock(mutex_);
  serving_ = true;
  changed_.notify_all();
}

void GrpcNodeMasterClient::Perform(const node_effect::Fence& fence) {
  AddDuty([this, order = fence.fence](NodeDuties& duties) {
    std::string reason;
    const Status status = duties.Fence(order.workers, order.epoch, &reason);
    RunThenPerform(
        [this, id = order.id, status, reason] { session_->OnFenced(id, status, reason); });
  });
}

void GrpcNodeMasterClient::Perform(const node_effect::UseView& use) {
  AddDuty([view = use.view](NodeDuties& duties) { duties.OnView(view); });
}

void GrpcNodeMasterClient::Perform(const node_effect::OpenAnother& open) {
  stream_.OpenAnother(open.reason);
}

void GrpcNodeMasterClient::Perform(const node_effect::GiveUp& end) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Fail(end.status, end.reason);
}

void GrpcNodeMasterClient::Perform(const node_effect::Complain& complain) {
  LogError("control: " + complain.text);
}

// ---- The duty thread ----

void GrpcNodeMasterClient::AddDuty(std::function<void(NodeDuties&)> duty) {
  const std::lock_guard<std::mutex> lock(mutex_);
  duty_queue_.push_back(std::move(duty));
  changed_.notify_all();
}

void GrpcNodeMasterClient::RunDuties() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stopped_ || !duty_queue_.empty(); });
    if (stopped_) return;
    const std::function<void(NodeDuties&)> duty = std::move(duty_queue_.front());
    duty_queue_.pop_front();
    lock.unlock();
    duty(*duties_);
    lock.lock();
  }
}

}  // namespace onetrip
