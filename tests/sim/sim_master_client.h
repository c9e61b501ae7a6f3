// SimMasterClient: the master as the one worker of a simulated agent sees it; what
// client_core/control/grpc_master_client.cc is over gRPC, with its order of things: the newest view
// is seen by the worker at once, a hold and its end reach it in a later turn, and only then does
// the master hear of it.
#ifndef ONETRIP_TESTS_SIM_SIM_MASTER_CLIENT_H_
#define ONETRIP_TESTS_SIM_SIM_MASTER_CLIENT_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client_core/cluster/master_client.h"
#include "client_core/cluster/unreached_nodes.h"
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
    // What its worker has of memory.
    std::function<WorkerUsage()> usage;
  };

  // Everything outlives it; it outlives the executor's events. `name`: of the agent, for people.
  SimMasterClient(SimProcess& process, SimExecutor& world, SimMaster& master,
                  const ControlSettings& settings, std::string name, Events events);

  // Dials. Once.
  void Connect() { link_.Open(); }
  ControlLink& link() { return link_; }

  [[nodiscard]] std::shared_ptr<const View> view() const override { return view_; }
  Task<Result<Membership>> Join(ViewHold& hold) override;
  Task<Status> Leave(ViewHold& hold, Membership membership) override;
  Task<Status> FlushKeyspaces(ViewHold& hold, std::optional<uint32_t> database) override;
  Task<Status> SwapKeyspaces(ViewHold& hold, uint32_t first, uint32_t second) override;
  // What a worker's watch and the process's own attempts find of memory nodes.
  void TellReach(WorkerId worker, NodeId node, bool reached);
  void TellProbed(NodeId node, bool reached);
  [[nodiscard]] const UnreachedNodes& unreached() const { return unreached_; }

  // The process says goodbye. REQUIRES: its worker has left.
  Task<Status> SayGoodbye(ViewHold& hold);

 private:
  struct Call;
  class CallAwaiter;
  // `then` is called by `change`, or instead of it when the worker is gone.
  using ChangeFn = std::function<void(ViewHold&, std::function<void()> done)>;
  struct Posted {
    uint64_t time_ns;
    ChangeFn change;
    std::function<void()> then;
  };

  void OnMessage(const MasterMessage& message) override;
  void OnExpelled(const std::string& reason) override { events_.expelled(reason); }
  void OnWelcome() override;
  void SendUnreached();
  [[nodiscard]] uint64_t KnownEpoch() const override { return view_version(); }
  void Report(MemberReport* report) override { report->agent = events_.usage(); }
  void OnView(const std::shared_ptr<const View>& view);
  void OnRepair(const RepairMessage& message);
  void OnRepairEnded(uint64_t id, Status status);
  void AnswerRepair() {
    link_.Send(RepairedMessage{repair_.id, repair_.end->ok(), std::string(repair_.end->message())});
  }
  void TellWorker(ChangeFn change, std::function<void()> then);
  static void OnPosted(void* client);

  SimProcess& process_;
  SimExecutor& world_;
  const ControlSettings& settings_;
  const Events events_;
  std::shared_ptr<const View> view_ = std::make_shared<const View>();
  ViewHold* worker_ = nullptr;  // once it is a member, until it has left
  uint64_t hold_epoch_ = 0;     // of the view that operations wait for; 0: they do not
  HoldKind hold_kind_ = HoldKind::kStart;
  // The last repair that the master asked for, on whatever connection; it is done once.
  struct Repair {
    uint64_t id = 0;  // 0: none
    bool under_hold = false;
    std::optional<Status> end;              // nothing: it runs
    std::shared_ptr<const View> next_view;  // comes into force after a repair under a hold
  };
  Repair repair_;
  UnreachedNodes unreached_;
  std::deque<Posted> posted_;
  ControlLink link_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_SIM_MASTER_CLIENT_H_
