// AgentSession: an agent's part in what the master does to the cluster: workers that quiesce,
// views, repairs, and which memory nodes the agent reaches (docs/MASTER.md).
//
// Pure: no threads, sockets or clocks. The process that has it hands in what happens, one event at
// a time, and does what TakeEffects() says, in that order; so the gRPC client and the simulated one
// run the same text. It outlives streams: what a stream that broke has asked for goes on.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_AGENT_SESSION_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_AGENT_SESSION_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/messages.h"
#include "client_core/cluster/unreached_nodes.h"
#include "client_core/cluster/view.h"
#include "client_core/cluster/worker_order.h"
#include "client_core/layout/types.h"

namespace onetrip {

// To be sent to the master on the stream that is up, or dropped: the master asks again.
using AgentMessage = std::variant<ViewHeldMessage, ViewInForceMessage, RepairedMessage,
                                  ReachedMessage, UnreachedMessage>;

// The steps that the process is to do next.
namespace agent_effect {

// The newest view is another one: everything in the process sees it before what follows is done.
struct UseView {
  std::shared_ptr<const View> view;
};
// Hand `order` to these workers (at least one), behind what they were told before. When each has
// carried it out, or is gone: OnCarriedOut(ticket).
struct TellWorkers {
  std::vector<WorkerId> workers;
  WorkerOrder order;
  uint64_t ticket = 0;
};
// This worker, which has just joined, quiesces before its first turn. Not acknowledged: nothing of
// it is under way.
struct StartQuiesced {
  WorkerId worker;
  HoldKind kind = HoldKind::kStart;
};
// Hand `order` to this worker, behind what it was told before. When it is done, or the worker is
// gone before it began: OnRepairEnded(id).
struct StartRepair {
  WorkerId worker;
  uint64_t id = 0;
  RepairOrder order;
};
// An ERROR line: the master has said what makes no sense.
struct Complain {
  std::string text;
};

}  // namespace agent_effect

using AgentEffect =
    std::variant<AgentMessage, agent_effect::UseView, agent_effect::TellWorkers,
                 agent_effect::StartQuiesced, agent_effect::StartRepair, agent_effect::Complain>;

class AgentSession {
 public:
  // In the order in which they are to be done.
  [[nodiscard]] std::vector<AgentEffect> TakeEffects();

  // ---- Events ----

  // A stream is up.
  void OnWelcome(uint64_t now_ns);
  void OnHold(const HoldForViewMessage& message);
  void OnView(std::shared_ptr<const View> view);
  void OnReach(const ReachMessage& message);
  // `message.order.view` is null if it made no sense.
  void OnRepair(const RepairMessage& message);

  // A worker is a member, and is told of everything from here on; or it is none any more.
  void OnJoined(WorkerId worker);
  void OnLeft(WorkerId worker, uint64_t now_ns);
  void OnCarriedOut(uint64_t ticket);
  void OnRepairEnded(uint64_t id, Status status);

  // `worker` does not reach the memory node, or reaches it again; or a connection was tried.
  void OnReachOf(WorkerId worker, NodeId node, bool reached, uint64_t now_ns);
  void OnProbed(NodeId node, bool reached, uint64_t now_ns);

  // ---- What it knows ----

  [[nodiscard]] const std::shared_ptr<const View>& view() const { return view_; }
  [[nodiscard]] const std::vector<WorkerId>& workers() const { return workers_; }
  [[nodiscard]] const UnreachedNodes& unreached() const { return unreached_; }

 private:
  // The last repair that the master asked for, on whatever stream; it is done once.
  struct Repair {
    uint64_t id = 0;            // 0: none
    std::optional<Status> end;  // nothing: it runs
  };

  void Send(AgentMessage message) { effects_.emplace_back(std::move(message)); }
  void SendUnreached(uint64_t now_ns);
  void AnswerRepair();
  // `answer` goes out when every worker has carried the order out.
  void TellWorkers(WorkerOrder order, AgentMessage answer);

  std::vector<AgentEffect> effects_;
  std::shared_ptr<const View> view_ = std::make_shared<const View>();
  std::vector<WorkerId> workers_;  // that are members, in the order of joining
  uint64_t hold_epoch_ = 0;        // the view that operations wait for; 0: they do not
  HoldKind hold_kind_ = HoldKind::kStart;
  uint64_t hold_ticket_ = 0;  // names the order to quiesce that counts; 0: none
  uint64_t next_ticket_ = 1;
  std::map<uint64_t, AgentMessage> answers_;  // that wait for workers, by ticket
  Repair repair_;
  // Repairs for which others quiesce and that run here, perhaps longer than the master waits.
  std::set<uint64_t> still_repairing_;
  std::shared_ptr<const View> next_view_;  // waits for the end of these; null: none
  size_t end_registers_turn_ = 0;
  UnreachedNodes unreached_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_AGENT_SESSION_H_
