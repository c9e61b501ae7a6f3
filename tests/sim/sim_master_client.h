// SimMasterClient: the master as the one worker of a simulated agent sees it. It does what
// client_core/control/grpc_master_client.cc does over gRPC, for the same AgentSession: the worker
// sees the newest view at once; what the session tells it reaches it in a later turn.
#ifndef ONETRIP_TESTS_SIM_SIM_MASTER_CLIENT_H_
#define ONETRIP_TESTS_SIM_SIM_MASTER_CLIENT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client_core/cluster/agent_session.h"
#include "client_core/cluster/master_client.h"
#include "client_core/coro/sim_executor.h"
#include "tests/sim/control_link.h"

namespace onetrip {

class SimMasterClient final : public MasterClient, private ControlLink::Owner {
 public:
  struct Events {
    // The worker has its id and may act from now on.
    std::function<void(WorkerId)> joined;
    // The cluster has taken the process for dead: it must end.
    std::function<void(const std::string& reason)> expelled;
    // The memory that its worker has.
    std::function<WorkerUsage()> usage;
  };

  // Everything outlives it; it outlives the executor's events. `name`: of the agent, for people.
  SimMasterClient(SimProcess& process, SimExecutor& world, SimMaster& master,
                  const ControlSettings& settings, std::string name, Events events);

  // Dials. Once.
  void Connect() { link_.Open(); }
  ControlLink& link() { return link_; }

  [[nodiscard]] std::shared_ptr<const View> view() const override { return session_.view(); }
  Task<Result<Membership>> Join(Quiesce& hold) override;
  Task<Status> Leave(Quiesce& hold, Membership membership) override;
  Task<Status> FlushKeyspaces(Quiesce& hold, std::optional<uint32_t> database) override;
  Task<Status> SwapKeyspaces(Quiesce& hold, uint32_t first, uint32_t second) override;
  // Reports which memory nodes a worker's watch and the process's own attempts reach.
  void TellReach(WorkerId worker, NodeId node, bool reached);
  void TellProbed(NodeId node, bool reached);
  [[nodiscard]] const UnreachedNodes& unreached() const { return session_.unreached(); }

  // The process says goodbye. REQUIRES: its worker has left.
  Task<Status> SayGoodbye(Quiesce& hold);

 private:
  struct Call;
  class CallAwaiter;
  // On its way to the worker. `run` gets null if the worker is gone by then.
  struct Posted {
    uint64_t time_ns;
    std::function<void(Quiesce* worker)> run;
  };

  void OnMessage(const MasterMessage& message) override;
  void OnExpelled(const std::string& reason) override { events_.expelled(reason); }
  void OnWelcome() override;
  [[nodiscard]] uint64_t KnownEpoch() const override { return view_version(); }
  void Report(MemberReport* report) override { report->agent = events_.usage(); }
  // The master has answered: perhaps the worker of `hold` is a member now, or `leaver` is none.
  void OnMembership(Quiesce& hold, std::optional<WorkerId> leaver, const ReplyMessage& reply,
                    Call& call);
  // Does what the session says. After every event of it.
  void PerformEffects();
  void Perform(const AgentMessage& message);
  void Perform(const agent_effect::UseView& use);
  void Perform(const agent_effect::TellWorkers& tell);
  void Perform(const agent_effect::StartQuiesced& start);
  void Perform(const agent_effect::StartRepair& start);
  void Perform(const agent_effect::Complain& complain);
  void OnCarriedOut(uint64_t ticket);
  void OnRepairEnded(uint64_t id, Status status);
  void Post(std::function<void(Quiesce* worker)> run);
  static void OnPosted(void* client);

  SimProcess& process_;
  SimExecutor& world_;
  const ControlSettings& settings_;
  const Events events_;
  AgentSession session_;
  Quiesce* worker_ = nullptr;  // once it is a member, until it has left
  std::deque<Posted> posted_;
  ControlLink link_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_SIM_MASTER_CLIENT_H_
