// GrpcNodeMasterClient: NodeMasterClient over a ControlStream. MakeNodeMasterClient() makes one.
//
// Three threads meet here: the one that joins, serves and stops; the stream's, which must not
// block; and one for the duties, which may. After every reconnection the node says again what it
// holds and where it serves, and refuses whom the master has expelled meanwhile before it does.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_GRPC_NODE_MASTER_CLIENT_H_
#define ONETRIP_CLIENT_CORE_CONTROL_GRPC_NODE_MASTER_CLIENT_H_

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/cluster/node_session.h"
#include "client_core/control/control_options.h"
#include "client_core/control/control_stream.h"
#include "client_core/control/node_master_client.h"
#include "client_core/control/offset_estimate.h"

namespace onetrip {

namespace control {
class Recalled;
class Reply;
}  // namespace control

class GrpcNodeMasterClient final : public NodeMasterClient, private ControlStream::Handler {
 public:
  explicit GrpcNodeMasterClient(ControlOptions options);
  ~GrpcNodeMasterClient() override;

  Result<NodePlace> Join(const NodeOffer& offer, std::string* reason) override;
  Status NoteMark(uint64_t mark, uint64_t timeout_ms, std::string* reason) override;
  Status Serve(const NodeAddress& address, NodeDuties* duties, std::string* reason) override;
  void Stop(bool leave) override;

 private:
  void OnWelcome(const ControlWelcome& welcome) override;
  void OnMessage(const control::FromMaster& message) override;
  void OnExpelled(const std::string& reason) override;
  void OnTime(uint64_t time_us, uint64_t sent_ns, uint64_t received_ns) override {
    offset_.Add(time_us, sent_ns, received_ns);
  }
  void OnMarkStored(uint64_t mark) override;
  void OnState(const control::Recalled& kept) override;
  void FillRecalled(control::Recalled* recalled) override;
  void FillReport(control::Report* report) override;
  [[nodiscard]] uint64_t KnownEpoch() override { return session_->epoch(); }
  [[nodiscard]] uint64_t KnownTimeUs() override { return offset_.TimeUs(clock_.NowNs()); }

  // Session thread.
  void OnPlace(Status status, const std::string& reason, const control::Reply* reply);
  // Runs `event` on the session thread, and performs what the session makes of it.
  void RunThenPerform(std::function<void()> event);
  // Does what the session says. After every event of it.
  void PerformEffects();
  void Perform(const FencedMessage& message);
  void Perform(const node_effect::AskForPlace& ask);
  void Perform(const node_effect::TakePlace& take);
  void Perform(const node_effect::TakePlaceAgain& take);
  void Perform(const node_effect::AskToServe& ask);
  void Perform(const node_effect::Serve& serve);
  void Perform(const node_effect::Fence& fence);
  void Perform(const node_effect::UseView& use);
  void Perform(const node_effect::OpenAnother& open);
  void Perform(const node_effect::GiveUp& end);
  void Perform(const node_effect::Complain& complain);
  [[nodiscard]] NodeAge Age();

  void AddDuty(std::function<void(NodeDuties&)> duty);
  void RunDuties();
  // Ends waiting in Join and Serve. REQUIRES: mutex_ is held.
  void Fail(Status status, const std::string& reason);

  const uint64_t serve_timeout_ms_;
  const uint64_t request_timeout_ms_;

  // Session thread, from Connect() on.
  NodeOffer offer_;
  std::optional<NodeSession> session_;
  const SystemClock clock_;
  OffsetEstimate offset_;

  ControlStream stream_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  std::optional<NodePlace> place_;  // once there is one
  bool serving_ = false;            // the master has answered ServeNode
  Status failure_;                  // for good
  std::string failure_reason_;
  bool stopped_ = false;
  NodeDuties* duties_ = nullptr;
  std::deque<std::function<void(NodeDuties&)>> duty_queue_;

  std::mutex stop_mutex_;
  std::thread duty_thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_GRPC_NODE_MASTER_CLIENT_H_
