// Agent: an agent's process with one worker: executor, connection to the master, fabric, engine,
// keys, and the sessions of its clients, which talk to it in commands without a socket between.
#ifndef ONETRIP_TESTS_SIM_AGENT_H_
#define ONETRIP_TESTS_SIM_AGENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "client_core/cluster/reach_watch.h"
#include "client_core/coro/sim_executor.h"
#include "client_core/coro/sync.h"
#include "client_core/fabric/sim.h"
#include "client_core/kv/kv.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"
#include "tests/sim/meetings.h"
#include "tests/sim/memory_watch.h"
#include "tests/sim/sim_master_client.h"
#include "tests/support/history.h"
#include "tests/unit/redis_fake_hooks.h"

namespace onetrip {

class Agent {
 public:
  struct World {
    SimExecutor& executor;
    SimNetwork& network;
    SimMaster& master;
    const ControlSettings& control;
    MemoryWatch& memory;
    Meetings& meetings;
    EngineKind engine;
    uint32_t transactions_every;
    uint32_t inline_agents;  // Plan::inline_agents
  };

  // An executor and a fabric; everything else comes with Start. `number`: of its clients.
  Agent(const World& world, uint32_t number, uint64_t seed, SimMasterClient::Events events);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  // Drops what still runs on it.
  ~Agent();

  // Joins and opens the index. Not ok: the process must end.
  Task<Status> Start(DataPathOptions options);
  // Its worker leaves. REQUIRES: no command is running. Not ok: it is a member still.
  Task<Status> Stop();
  // The process ends in order. REQUIRES: its worker has left.
  Task<void> End();

  // Executes one command, some of them as a transaction, and fills `reply` (RESP2). `in_order`: as
  // CommandContext's.
  Task<void> Execute(const Command* command, std::string* reply, uint32_t database = 0,
                     InOrder* in_order = nullptr);

  // The process dies where it is: its connections end, its frames stay until it is destroyed.
  void Die();
  [[nodiscard]] bool dead() const { return process_.dead(); }
  [[nodiscard]] uint32_t number() const { return number_; }

  SimProcess& process() { return process_; }
  WorkerMeetings& meetings() { return meetings_; }
  ControlLink& link() { return master_.link(); }
  WorkerMemory& memory() { return memory_; }
  SimFabric& fabric() { return *fabric_; }
  Kv& kv() { return *kv_; }
  WorkerContext& context() { return *context_; }
  // Returns true if the agent is between its start and its first command, or its end.
  [[nodiscard]] bool starting() const { return !started_ && !dead(); }
  // The memory that its worker has.
  [[nodiscard]] WorkerUsage usage() const;
  [[nodiscard]] bool started() const { return started_; }
  // Its clients run under this gate, so that they can be awaited.
  Gate& gate() { return gate_; }
  // It takes no further commands.
  void StartLeaving() { leaving_ = true; }
  [[nodiscard]] bool leaving() const { return leaving_; }
  // It does not join, for it does not reach a node that it would need.
  [[nodiscard]] bool awaits_network() const { return awaits_network_; }
  // Clients with a command under way.
  uint32_t& busy() { return busy_; }

 private:
  // Until connections can be made to all nodes of the map; see ClusteredWorker.
  Task<void> AwaitNetwork();
  // Tries those to which there is no channel.
  bool Probe(NodeId node);
  Task<void> ProbeAgain();
  // Until there is a channel to every node; false if that takes too long.
  Task<bool> ReachNodes();
  Task<void> Send(Session* session, const Command* command, std::string* reply,
                  InOrder* in_order = nullptr);
  Task<void> SendInTransaction(Session* session, const Command* command, std::string* reply);

  const uint32_t number_;
  const EngineKind engine_kind_;
  const uint32_t transactions_every_;
  const uint64_t look_ns_;
  SimProcess process_;
  SimNetwork& network_;
  WorkerMemory memory_;
  WorkerMeetings meetings_;
  std::unique_ptr<SimFabric> fabric_;
  Quiesce hold_;
  SimMasterClient master_;
  FakeHooks hooks_;
  uint64_t next_session_ = 1;
  Gate gate_;
  Gate probes_;
  bool probing_ = false;
  std::unique_ptr<WorkerContext> context_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<SlotStore> kv_;
  std::unique_ptr<ReachWatch> watch_;
  bool started_ = false;
  bool leaving_ = false;
  bool awaits_network_ = false;
  uint32_t busy_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_AGENT_H_
