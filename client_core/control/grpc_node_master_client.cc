#include "client_core/control/grpc_node_master_client.h"

#include <chrono>
#include <future>
#include <utility>

#include "client_core/base/log.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/kept_state.h"
#include "client_core/control/usage_codec.h"
#include "client_core/control/view_codec.h"

namespace onetrip {
namespace {

// The answer to a JoinNode, in plain C++. kCorrupt and *reason: it makes no sense.
Result<NodePlace> DecodePlace(const control::NodeJoined& message, std::string* reason) {
  Result<View> view = DecodeView(message.view(), reason);
  if (!view.ok()) return view.status();
  if (message.node() > UINT16_MAX) {
    *reason = "the master sent a node number that is none";
    return Status(StatusCode::kCorrupt, "not a place");
  }
  NodePlace place;
  place.cluster = view->cluster;
  place.node = NodeId{static_cast<uint16_t>(message.node())};
  place.view = std::move(view.value());
  for (const uint32_t worker : message.expelled_workers()) place.expelled.push_back({worker});
  place.mark = message.mark();
  place.outdated = message.outdated();
  return place;
}

}  // namespace

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
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    offer_ = offer;
  }
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
  address_ = address;
  duty_thread_ = std::thread([this] { RunDuties(); });
  stream_.Run([this] { AskToServe(); });
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
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    in_place_ = false;
  }
  AskForPlace();
}

void GrpcNodeMasterClient::AskForPlace() {
  control::Request request;
  control::JoinNode& join = *request.mutable_join_node();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const NodeAge age = duties_ != nullptr ? duties_->Age() : offer_.age;
    join.set_mark(age.mark);
    join.set_told(age.told);
    join.set_epoch(age.epoch);
    join.set_next_worker(age.next_worker);
    join.set_accepts_old(!place_.has_value() && offer_.accepts_old);
    join.set_bytes(offer_.bytes);
    join.set_incarnation(offer_.incarnation);
    // Once there is a place the memory is that place's.
    join.set_adopted(offer_.adopted || place_.has_value());
    join.set_owner_cluster(place_.has_value() ? place_->cluster : offer_.owner_cluster);
    join.set_owner_node(place_.has_value() ? place_->node.value : offer_.owner_node.value);
    // A place is given when no process counts on what was there.
    if (!place_.has_value()) join.set_damage(offer_.damage);
    join.set_accepted(!place_.has_value() && offer_.accepted);
  }
  // There may be no map for as long as nodes are missing.
  stream_.Ask(request, /*timeout_ms=*/0,
              [this](Status status, const std::string& reason, const control::Reply* reply) {
                OnPlace(status, reason, reply);
              });
}

void GrpcNodeMasterClient::OnPlace(Status status, const std::string& reason,
                                   const control::Reply* reply) {
  // The stream broke: the next one asks again.
  if (!status.ok() && !stream_.attending()) return;
  std::string why = reason;
  Result<NodePlace> place =
      reply != nullptr ? DecodePlace(reply->node_joined(), &why) : Result<NodePlace>(status);
  std::unique_lock<std::mutex> lock(mutex_);
  if (place.ok() && place_.has_value() && place->node != place_->node) {
    place = Status(StatusCode::kInvalidArgument, "another place");
    why = "the master has given this node another number";
  }
  if (!place.ok()) {
    if (!place_.has_value()) return Fail(place.status(), why);
    lock.unlock();
    return AskAgain(why);
  }
  in_place_ = true;
  told_.clear();
  epoch_ = place->view.epoch.value;
  if (!place_.has_value()) {
    place_ = std::move(place.value());
    changed_.notify_all();
    return;
  }
  lock.unlock();
  const auto view = std::make_shared<const View>(place->view);
  // Whom the master has expelled meanwhile the node refuses before agents hear of it again.
  AddDuty([this, view, expelled = place->expelled](NodeDuties& duties) {
    std::string failure;
    const Status fenced =
        expelled.empty() ? Status::Ok() : duties.Fence(expelled, Epoch{0}, &failure);
    if (!fenced.ok()) LogWarning("control: expelled workers are not refused yet: " + failure);
    duties.OnView(view);
    stream_.Run([this] { AskToServe(); });
  });
}

void GrpcNodeMasterClient::AskAgain(const std::string& why) {
  if (std::exchange(told_, why) != why) {
    LogError("control: the master refuses this node its place: " + why +
             "; the node keeps its memory, serves as before and asks again");
  }
  stream_.OpenAnother("it was refused its place");
}

void GrpcNodeMasterClient::AskToServe() {
  control::Request request;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!in_place_ || !address_.has_value()) return;
    EncodeNodeAddress(*address_, request.mutable_serve_node()->mutable_address());
  }
  stream_.Ask(request, request_timeout_ms_,
              [this](Status status, const std::string& reason, const control::Reply*) {
                // When the stream broke the next one asks again.
                if (!status.ok() && !stream_.attending()) return;
                if (status.code() == StatusCode::kUnknownOutcome) return AskToServe();
                std::unique_lock<std::mutex> lock(mutex_);
                if (!status.ok() && serving_) {
                  lock.unlock();
                  return AskAgain(reason);
                }
                if (!status.ok()) return Fail(status, reason);
                serving_ = true;
                changed_.notify_all();
              });
}

void GrpcNodeMasterClient::OnMessage(const control::FromMaster& message) {
  if (message.kind_case() == control::FromMaster::kFence) OnFence(message.fence());
  if (message.kind_case() == control::FromMaster::kViewCommitted) {
    OnView(message.view_committed().view());
  }
}

void GrpcNodeMasterClient::OnFence(const control::Fence& fence) {
  std::vector<WorkerId> workers;
  for (const uint32_t worker : fence.workers()) workers.push_back({worker});
  AddDuty([this, workers, id = fence.id(), epoch = Epoch{fence.epoch()}](NodeDuties& duties) {
    std::string reason;
    const Status status = duties.Fence(workers, epoch, &reason);
    control::FromMember message;
    message.mutable_fenced()->set_id(id);
    message.mutable_fenced()->set_done(status.ok());
    message.mutable_fenced()->set_reason(reason);
    stream_.Run([this, message] { stream_.Send(message); });
  });
}

void GrpcNodeMasterClient::OnView(const control::View& message) {
  std::string reason;
  Result<View> view = DecodeView(message, &reason);
  if (!view.ok()) return LogError("control: " + reason);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    epoch_ = view->epoch.value;
  }
  AddDuty([shared = std::make_shared<const View>(std::move(view.value()))](NodeDuties& duties) {
    duties.OnView(shared);
  });
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
  const std::lock_guard<std::mutex> lock(mutex_);
  const NodeAge age = duties_ != nullptr ? duties_->Age() : offer_.age;
  recalled->set_incarnation(offer_.incarnation);
  recalled->set_mark(age.mark);
  recalled->set_next_worker(age.next_worker);
}

uint64_t GrpcNodeMasterClient::KnownEpoch() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return epoch_;
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
