// GrpcMasterClient: the master as all workers of an agent's process see it, over one ControlStream.
//
// What workers ask goes to the session thread, and they go on on their own. Changes of the view
// travel the other way: to every worker's thread, and only when each has run them does the master
// hear that they are done; AgentSession says what is to be done when. While the master is away
// everything but Join, Leave, Flush and Swap goes on.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_GRPC_MASTER_CLIENT_H_
#define ONETRIP_CLIENT_CORE_CONTROL_GRPC_MASTER_CLIENT_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/cluster/agent_session.h"
#include "client_core/cluster/master_client.h"
#include "client_core/cluster/pool_usage.h"
#include "client_core/control/control_options.h"
#include "client_core/control/control_stream.h"
#include "client_core/control/offset_estimate.h"

namespace onetrip {

class GrpcMasterClient final : public MasterClient, private ControlStream::Handler {
 public:
  // Called on the session thread when the cluster has taken this process for dead: the process must
  // end. Nothing comes after it.
  using ExpelledFn = std::function<void(const std::string& reason)>;
  // Called on the session thread when view() has become another one; must not block.
  using NewViewFn = std::function<void()>;
  // Called on the session thread before every renewal; must not block.
  using UsageFn = std::function<WorkerUsage()>;

  // Connects as an agent; blocks until the master has welcomed it. `new_view` and
  // `usage` may be null. Failures as of ControlStream::Connect.
  static Result<std::unique_ptr<GrpcMasterClient>> Connect(ControlOptions options,
                                                           ExpelledFn expelled, std::string* reason,
                                                           NewViewFn new_view = nullptr,
                                                           UsageFn usage = nullptr);
  ~GrpcMasterClient() override;

  [[nodiscard]] std::shared_ptr<const View> view() const override;
  // REQUIRES: `hold` belongs to a LoopExecutor.
  Task<Result<Membership>> Join(Quiesce& hold) override;
  Task<Status> Leave(Quiesce& hold, Membership membership) override;
  Task<Status> FlushKeyspaces(Quiesce& hold, std::optional<uint32_t> database) override;
  Task<Status> SwapKeyspaces(Quiesce& hold, uint32_t first, uint32_t second) override;

  // Why the last Join or Flush failed, in one line. Any thread.
  [[nodiscard]] std::string last_error() const;
  // The whole cluster's, as of less than a second ago while the master is there; nothing until it
  // has told. Any thread.
  [[nodiscard]] std::optional<PoolUsage> usage() const;

  // True if the master is there; and since when it is away, by CLOCK_MONOTONIC. Any thread.
  [[nodiscard]] bool attending() const { return stream_->attending(); }
  [[nodiscard]] uint64_t away_since_ns() const { return stream_->away_since_ns(); }
  // This process's number among the cluster's members. Any thread.
  [[nodiscard]] uint64_t member() const { return member_.load(std::memory_order_relaxed); }

  // `worker` does not reach the memory node, or reaches it again: the master is told. Any thread.
  void TellReach(WorkerId worker, NodeId node, bool reached);
  // The same by a connection that was tried, for nodes to which there is no channel: those in
  // to_probe(), and any before a worker joins. Any thread.
  void TellProbed(NodeId node, bool reached);
  [[nodiscard]] std::vector<NodeId> to_probe() const;

  // Asks the master something that changes nothing; `done` is called on the session thread, with
  // whether it answered, after all that it had sent before. Any thread.
  void TEST_Ask(std::function<void(bool answered)> done);

  // Says goodbye if every worker has left, and closes the stream. Not the session thread.
  void Stop();

 private:
  struct Call;
  class CallAwaiter;
  class RepairOnItsWay;
  using MailboxPtr = std::shared_ptr<Quiesce::Mailbox>;

  GrpcMasterClient(ControlOptions options, ExpelledFn expelled, NewViewFn new_view, UsageFn usage);
  void Start(const control::Request& request, uint64_t timeout_ms, const MailboxPtr& mailbox,
             std::shared_ptr<Call> call);

  void OnWelcome(const ControlWelcome& welcome) override;
  void OnMessage(const control::FromMaster& message) override;
  void OnExpelled(const std::string& reason) override { expelled_(reason); }
  void OnTime(uint64_t time_us, uint64_t sent_ns, uint64_t received_ns) override;
  void FillReport(control::Report* report) override;
  [[nodiscard]] uint64_t KnownEpoch() override { return view_version(); }
  [[nodiscard]] uint64_t KnownTimeUs() override { return offset_.TimeUs(clock_.NowNs()); }

  // Runs `event` on the session thread, and performs what the session makes of it.
  void RunThenPerform(std::function<void()> event);
  // Does what the session says. After every event of it.
  void PerformEffects();
  void PublishNodesToProbe();
  void Perform(const AgentMessage& message);
  void Perform(const agent_effect::UseView& use);
  void Perform(const agent_effect::TellWorkers& tell);
  void Perform(const agent_effect::StartQuiesced& start);
  void Perform(const agent_effect::StartRepair& start);
  void Perform(const agent_effect::Complain& complain);

  const uint64_t join_timeout_ms_;
  const uint64_t request_timeout_ms_;
  const ExpelledFn expelled_;
  const NewViewFn new_view_;
  const UsageFn usage_fn_;
  std::atomic<uint64_t> member_{0};
  std::atomic<uint64_t> members_{0};  // workers that joined and have not left

  // Session thread.
  AgentSession session_;
  std::map<uint32_t, MailboxPtr> mailboxes_;  // by the ids of the session's workers
  const SystemClock clock_;
  OffsetEstimate offset_;

  mutable std::mutex mutex_;
  std::shared_ptr<const View> view_;  // guarded by mutex_
  std::string last_error_;            // guarded by mutex_
  std::vector<NodeId> to_probe_;      // guarded by mutex_
  std::optional<PoolUsage> usage_;    // guarded by mutex_

  // Last: its thread uses all of the above. Shared with what is posted to workers.
  std::shared_ptr<ControlStream> stream_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_GRPC_MASTER_CLIENT_H_
