#include "master/master_stream.h"

#include <grpcpp/grpcpp.h>

#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "client_core/control/control.grpc.pb.h"
#include "master/master_driver.h"

namespace onetrip {
namespace {

// Callbacks come from gRPC's threads, the MemberStream's calls from the driver's.
class GrpcMemberStream final
    : public grpc::ServerBidiReactor<control::FromMember, control::FromMaster>,
      public MemberStream {
 public:
  GrpcMemberStream(StreamEvents& driver, grpc::CallbackServerContext* context,
                   size_t queue_messages_max, size_t queue_bytes_max)
      : driver_(driver),
        context_(context),
        peer_(context->peer()),
        queue_messages_max_(queue_messages_max),
        queue_bytes_max_(queue_bytes_max) {}

  // Hands the stream to the driver; it lives until OnDone() and until the driver lets go of it.
  void Open(std::shared_ptr<GrpcMemberStream> self) {
    self_ = self;
    // Callbacks may come before Opened() returns: the id travels under the lock.
    const std::lock_guard<std::mutex> lock(mutex_);
    id_ = driver_.Opened(std::move(self));
    if (id_ == 0) return FinishLocked("the master ends");
    // The HELLO does not wait until the driver has time for the stream.
    ReadLocked();
  }

  bool Send(const control::FromMaster& message) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (finished_ || ending_) return true;
    const size_t bytes = message.ByteSizeLong();
    if (queue_.size() >= queue_messages_max_ ||
        (!queue_.empty() && queue_bytes_ + bytes > queue_bytes_max_)) {
      return false;
    }
    queue_.push_back({message, bytes});
    queue_bytes_ += bytes;
    if (queue_.size() == 1) StartWrite(&queue_.front().message);
    return true;
  }

  void ReadNext() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    ReadLocked();
  }

  void End(const std::string& reason) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (finished_ || ending_) return;
    ending_ = true;
    end_reason_ = reason;
    if (queue_.empty()) FinishLocked(reason);
  }

  void Abort() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!done_) context_->TryCancel();
  }

  [[nodiscard]] std::string peer() const override { return peer_; }

  void OnReadDone(bool ok) override {
    std::unique_ptr<control::FromMember> message;
    StreamId id = 0;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      message = std::move(message_);
      read_ended_ = !ok;
      id = id_;
    }
    if (ok) {
      if (driver_.Said(id, std::move(message))) ReadNext();
    } else {
      driver_.Closed(id);
    }
  }

  void OnWriteDone(bool ok) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ok) {
      queue_bytes_ -= queue_.front().bytes;
      queue_.pop_front();
    } else {
      // The stream is broken; the read that fails tells the driver.
      queue_.clear();
      queue_bytes_ = 0;
    }
    if (finished_) return;
    if (!queue_.empty()) {
      StartWrite(&queue_.front().message);
    } else if (ending_) {
      FinishLocked(end_reason_);
    }
  }

  void OnDone() override {
    std::shared_ptr<GrpcMemberStream> self;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      done_ = true;
      self = std::move(self_);
    }
    driver_.Gone(id_);
  }

 private:
  void ReadLocked() {
    if (finished_ || read_ended_) return;
    message_ = std::make_unique<control::FromMember>();
    StartRead(message_.get());
  }
  struct Queued {
    control::FromMaster message;
    size_t bytes;
  };

  void FinishLocked(const std::string& reason) {
    finished_ = true;
    Finish(reason.empty() ? grpc::Status::OK : grpc::Status(grpc::StatusCode::ABORTED, reason));
  }

  StreamEvents& driver_;
  grpc::CallbackServerContext* const context_;
  const std::string peer_;
  const size_t queue_messages_max_;
  const size_t queue_bytes_max_;

  std::mutex mutex_;
  std::shared_ptr<GrpcMemberStream> self_;
  StreamId id_ = 0;
  std::unique_ptr<control::FromMember> message_;  // being read
  std::deque<Queued> queue_;                      // the first is being written
  size_t queue_bytes_ = 0;
  std::string end_reason_;
  bool read_ended_ = false;
  bool ending_ = false;
  bool finished_ = false;
  bool done_ = false;
};

}  // namespace

class MasterService::Impl final : public control::Master::CallbackService {
 public:
  Impl(StreamEvents& driver, size_t queue_messages_max, size_t queue_bytes_max)
      : driver_(driver),
        queue_messages_max_(queue_messages_max),
        queue_bytes_max_(queue_bytes_max) {}

  grpc::ServerBidiReactor<control::FromMember, control::FromMaster>* Attend(
      grpc::CallbackServerContext* context) override {
    auto stream =
        std::make_shared<GrpcMemberStream>(driver_, context, queue_messages_max_, queue_bytes_max_);
    GrpcMemberStream* const reactor = stream.get();
    reactor->Open(std::move(stream));
    return reactor;
  }

 private:
  StreamEvents& driver_;
  const size_t queue_messages_max_;
  const size_t queue_bytes_max_;
};

MasterService::MasterService(StreamEvents& driver, size_t queue_messages_max,
                             size_t queue_bytes_max)
    : impl_(std::make_unique<Impl>(driver, queue_messages_max, queue_bytes_max)) {}

MasterService::~MasterService() = default;

void* MasterService::service() { return static_cast<grpc::Service*>(impl_.get()); }

}  // namespace onetrip
