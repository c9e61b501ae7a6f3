// Agent: one worker of the simulation: executor, fabric, engine, keys, and the sessions of its
// clients, who talk to it in commands without a socket between.
#ifndef ONETRIP_TESTS_SIM_AGENT_H_
#define ONETRIP_TESTS_SIM_AGENT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "client_core/coro/sim_executor.h"
#include "client_core/coro/sync.h"
#include "client_core/fabric/sim.h"
#include "client_core/kv/kv.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"
#include "tests/sim/sim_master.h"
#include "tests/support/history.h"
#include "tests/unit/redis_fake_hooks.h"

namespace onetrip {

class Agent {
 public:
  // An executor and a fabric; everything else comes with Start.
  Agent(SimExecutor& world, SimNetwork& network, SimMaster& master, uint64_t seed);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  // Drops what still runs on it.
  ~Agent();

  // Joins, asking again for as long as the master does not answer, and opens the index.
  Task<Status> Start(DataPathOptions options, MemoryObserver* observer);
  // REQUIRES: no command is running.
  Task<void> Stop();

  // Executes one command and fills `reply` (RESP2).
  Task<void> Execute(const Command* command, std::string* reply);

  SimProcess& process() { return process_; }
  SimFabric& fabric() { return *fabric_; }
  Kv& kv() { return *kv_; }
  WorkerContext& context() { return *context_; }
  [[nodiscard]] bool started() const { return started_; }
  // What clients of it run under, so that it can be awaited.
  Gate& gate() { return gate_; }

 private:
  SimProcess process_;
  std::unique_ptr<SimFabric> fabric_;
  ViewHold hold_;
  SimMasterClient master_;
  FakeHooks hooks_;
  uint64_t next_session_ = 1;
  Gate gate_;
  std::unique_ptr<WorkerContext> context_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Kv> kv_;
  bool started_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_AGENT_H_
