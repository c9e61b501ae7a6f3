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
#include "client_core/control/control_options.h"
#include "client_core/control/control_stream.h"
#include "client_core/control/node_master_client.h"
#include "client_core/control/offset_estimate.h"

namespace onetrip {

namespace control {
class Fence;
class Recalled;
class View;
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
  [[nodiscard]] uint64_t KnownEpoch() override;
  [[nodiscard]] uint64_t KnownTimeUs() override { return offset_.TimeUs(clock_.NowNs()); }

  // Session thread.
  void AskForPlace();
  void OnPlace(Status status, const std::string& reason, const control::Reply* reply);
  void AskToServe();
  void OnFence(const control::Fence& fence);
  void OnView(const control::View& message);
  // The master refuses a node that had its place: that may mend, and memory that is given up does
  // not come back.
  void AskAgain(const std::string& why);

  void AddDuty(std::function<void(NodeDuties&)> duty);
  void RunDuties();
  // Ends waiting in Join and Serve. REQUIRES: mutex_ is held.
  void Fail(Status status, const std::string& reason);

  const uint64_t serve_timeout_ms_;
  const uint64_t request_timeout_ms_;

  // Session thread.
  const SystemClock clock_;
  OffsetEstimate offset_;
  std::string told_;  // why it was refused, in the log

  ControlStream stream_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  NodeOffer offer_;
  std::optional<NodePlace> place_;      // once there is one
  std::optional<NodeAddress> address_;  // once it serves
  bool in_place_ = false;               // the master has answered JoinNode on this stream
  bool serving_ = false;                // ... and ServeNode
  Status failure_;                      // for good
  std::string failure_reason_;
  bool stopped_ = false;
  uint64_t epoch_ = 0;
  NodeDuties* duties_ = nullptr;
  std::deque<std::function<void(NodeDuties&)>> duty_queue_;

  std::mutex stop_mutex_;
  std::thread duty_thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_GRPC_NODE_MASTER_CLIENT_H_
