// World: a cluster of agents, memory nodes and a master in virtual time, and clients that send it
// Redis commands, with faults; everything in it is production code but the network, the clocks and
// the processes (TESTING, "Simulation").
//
// A run records what the clients saw, watches memory while it goes, and decides at the end whether
// what was seen was linearizable. Nothing but the plan decides what happens.
#ifndef ONETRIP_TESTS_SIM_WORLD_H_
#define ONETRIP_TESTS_SIM_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/coro/sim_executor.h"
#include "client_core/coro/sync.h"
#include "client_core/fabric/sim.h"
#include "memnode/memory_node.h"
#include "tests/sim/agent.h"
#include "tests/sim/memory_watch.h"
#include "tests/sim/plan.h"
#include "tests/sim/sim_master.h"
#include "tests/sim/trace.h"
#include "tests/support/history.h"
#include "tests/support/linearizability.h"

namespace onetrip {

// What a run came to.
struct Report {
  std::string failure;  // empty: nothing was found wrong
  uint64_t trace_hash = 0;
  uint64_t commands = 0;    // sent
  uint64_t unanswered = 0;  // of these, with an outcome that nobody knows
  uint64_t fabric_ops = 0;  // applied at memory nodes
  uint64_t faults = 0;      // that happened
  uint64_t reused = 0;      // objects allocated a second time
  uint64_t splits = 0;      // of the index
  uint64_t steps = 0;
  std::string timeline;  // if it was asked for

  [[nodiscard]] bool ok() const { return failure.empty(); }
};

struct RunOptions {
  bool timeline = false;
};

class World {
 public:
  // Starts the agents; no fault happens before the first program.
  World(const Plan& plan, const RunOptions& options);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // Lets clients run `program` to its end, then reads every key it names, and checks what was seen.
  // False: something is wrong, see failure(). May be called again, with other keys.
  bool RunProgram(const Program& program, const std::vector<Fault>& faults);

  // If nothing was lost on the way, stops the agents and accounts for all memory.
  bool Finish();

  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] Report TakeReport();

 private:
  struct Client {
    uint32_t id;
    const std::vector<Command>* commands;
    size_t next = 0;  // the first command not sent yet
  };

  struct PlannedFault {
    World* world;
    Fault fault;
  };

  static constexpr uint32_t kReader = 1000;  // the client of the last reads

  Agent& AddAgent(uint32_t number);
  [[nodiscard]] DataPathOptions OptionsOf(uint32_t number) const;
  // Runs until no live agent has a client any more; false if that takes too long.
  bool RunUntilDone(std::string_view what);
  Task<void> RunClient(Agent* agent, Client* client);
  Task<void> ReadKeys(Agent* agent, const std::vector<std::string>* keys);
  Task<void> Restart(Agent* agent, uint32_t number);
  void StartClients(uint32_t number);
  Agent* LiveAgent(uint32_t first);
  static void Strike(void* planned_fault);
  static void EndFault(void* planned_fault);
  void StrikeNow(PlannedFault& planned);
  void EndNow(const Fault& fault);
  [[nodiscard]] CheckOptions CheckOptionsOf() const;
  bool Explain();
  void Fail(std::string text);

  const Plan plan_;
  SimExecutor executor_;
  std::vector<std::unique_ptr<MemoryNode>> nodes_;
  std::unique_ptr<SimMaster> master_;
  std::unique_ptr<SimNetwork> network_;
  std::unique_ptr<MemoryWatch> memory_;
  Trace trace_;
  History history_;
  std::vector<std::unique_ptr<Agent>> agents_;  // all that ever lived
  std::vector<Agent*> current_;                 // by number; those that died stay until replaced
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<PlannedFault>> planned_;
  std::string failure_;
  uint64_t started_ns_ = 0;
  uint64_t commands_ = 0;
  uint64_t unanswered_ = 0;
  uint64_t faults_ = 0;
  uint32_t starting_ = 0;  // agents that are coming back
  bool lossy_ = false;     // something was lost that keeps memory from adding up
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_WORLD_H_
