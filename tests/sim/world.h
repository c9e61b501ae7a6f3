// World: a cluster of agents, memory nodes and a master in virtual time, and clients that send it
// Redis commands, with faults; everything in it is production code but the network, the clocks and
// the processes (docs/SIMULATION.md). The cluster forms by itself, as a real one does.
//
// A run records what the clients saw, watches memory while it goes, and decides at the end whether
// what was seen was linearizable. Nothing but the plan decides what happens.
#ifndef ONETRIP_TESTS_SIM_WORLD_H_
#define ONETRIP_TESTS_SIM_WORLD_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/coro/sim_executor.h"
#include "client_core/coro/sync.h"
#include "client_core/fabric/sim.h"
#include "memnode/memory_node.h"
#include "tests/sim/agent.h"
#include "tests/sim/meetings.h"
#include "tests/sim/memory_watch.h"
#include "tests/sim/plan.h"
#include "tests/sim/sim_master.h"
#include "tests/sim/sim_node.h"
#include "tests/sim/trace.h"
#include "tests/sim/wait_freedom.h"
#include "tests/support/history.h"
#include "tests/support/linearizability.h"

namespace onetrip {

// The result of a run.
struct Report {
  std::string failure;      // empty: nothing was found wrong
  std::string_view engine;  // the plan's engine
  uint64_t trace_hash = 0;
  uint64_t commands = 0;       // sent
  uint64_t unanswered = 0;     // commands with an unknown outcome
  uint64_t fabric_ops = 0;     // applied at memory nodes
  uint64_t faults = 0;         // that happened
  uint64_t reused = 0;         // objects allocated a second time
  uint64_t splits = 0;         // splits of the index
  uint64_t thawed = 0;         // registers that became records
  uint64_t combined = 0;       // read-modify-writes that another one carried out
  uint64_t dropped = 0;        // registers that were deleted
  uint64_t interrupted = 0;    // writes to registers that met a seal
  uint64_t hot = 0;            // writes of records that took no search
  uint64_t opened = 0;         // blocks that lost their owner
  uint64_t acquired = 0;       // ... and got one again
  uint64_t found = 0;          // objects that nothing named any more
  uint64_t unsigned_ends = 0;  // workers that ended and owe the others a look
  uint64_t moved = 0;          // records that compaction moved
  uint64_t flushes = 0;        // that changed a view
  uint64_t swaps = 0;          // swaps of databases, likewise
  uint64_t shrunk = 0;         // views with fewer regions
  uint64_t expelled = 0;       // agents that were told so
  uint64_t steps = 0;
  uint64_t held_up_max_ns = 0;  // SimExecutor::held_up_max_ns
  MeetingTable meetings;
  WaitFreedomReport wait_freedom;  // for plans that freeze agents
  std::string timeline;            // if it was asked for

  [[nodiscard]] bool ok() const { return failure.empty(); }
};

struct RunOptions {
  bool timeline = false;
  // A run that has not come to its end by then never will.
  uint64_t steps_max = 60'000'000;
};

class World {
 public:
  // Forms the cluster and starts the agents; no fault happens before the first program.
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
    Agent* agent = nullptr;  // that it has struck
  };

  // A dead agent whose place a new one is to take.
  struct Revival {
    World* world;
    uint32_t number;
    uint32_t attempt;
  };
  struct Departure {
    World* world;
    Agent* agent;
    uint64_t away_ns;
  };

  static constexpr uint32_t kReader = 1000;   // the client of the last reads
  static constexpr uint32_t kFlusher = 1001;  // ... and of the last flush
  static constexpr uint32_t kWriter = 1002;   // ... and of writes by agents that were cut off
  static constexpr uint32_t kGrower = 1003;   // ... and of the last inserts
  static constexpr uint32_t kDeleter = 999;   // ... and of deletions that make room

  void FormCluster();
  void TakeBlocks();
  // Gives back the blocks that were taken in regions that leave and, in the regions where those go
  // to, the blocks that were taken since.
  void FreeTaken(const View& view);
  // Takes what is free in the first regions of all, when others have been added: all agents are
  // quiesced.
  void TakeTheRest(const View& view);
  void OnPlaced(NodeId node, const View& view);
  void OnReachable(NodeId node, bool reachable);
  // Nothing of `worker` takes effect on `node` any more.
  void Refuse(NodeId node, WorkerId worker);
  void OnJoined(Agent* agent, WorkerId worker);
  // A worker that is refused by every node that is not out can do no harm any more.
  void LookWhoIsRefused();
  [[nodiscard]] bool IsRefused(const std::set<NodeId>& by) const;
  Agent& AddAgent(uint32_t number);
  // Its process is dead.
  void Bury(Agent* agent);
  void Crash(const PlannedFault& planned);
  static void CrashAtTheLatest(void* planned_fault);
  void Revive(uint32_t number, uint32_t attempt, uint64_t delay_ns);
  static void ReviveNow(void* revival);
  [[nodiscard]] DataPathOptions OptionsOf(uint32_t number) const;
  // Runs until no live agent has a client any more; false if that takes too long.
  bool RunUntilDone(std::string_view what);
  // Runs until every fault is over.
  void OutlastFaults(const std::vector<Fault>& faults);
  // A new agent, which must be able to join; null: it fails.
  Agent* JoinAtTheEnd(uint64_t until_ns);
  // It flushes; then nothing is there any more.
  bool FlushAtTheEnd(const std::vector<std::string>& keys);
  // A new agent inserts keys where the index has grown.
  bool GrowAtTheEnd();
  Task<void> InsertAll(Agent* agent, uint64_t until_ns);
  // Waits until every region is whole, loses a node for good, and reads every key.
  bool LoseAtTheEnd(const std::vector<std::string>& keys);
  // Waits until no region moves, and switches the nodes off that are drained.
  bool LoseDrained(uint64_t until_ns);
  // True the first time that the pool is too full for what moves, and if there is room then.
  bool MakeRoom();
  Task<void> DeleteBallast(Agent* agent);
  void CheckAllRoomIsUsed();
  // An agent dies; once it has been looked for, nothing is lost.
  bool DieAtTheEnd();
  Task<void> StopWell(Agent* agent);
  bool AllFlushedIsGone();
  [[nodiscard]] std::vector<MemoryEndpoint*> Endpoints() const;
  void AccountForAll(bool owes_look);
  Task<void> ReadAll(Agent* agent, const std::vector<std::string>* keys, uint64_t until_ns);
  [[nodiscard]] uint64_t Patience() const;
  struct Ahead;
  Task<void> RunClient(Agent* agent, Client* client);
  // How many of its next commands a client sends without waiting for replies.
  [[nodiscard]] size_t CommandsAhead(const Client& client) const;
  Task<void> RunTogether(Agent* agent, Client* client, size_t commands);
  Task<void> RunOneOf(Agent* agent, const Client* client, const Command* command, InOrder* in_order,
                      Ahead* ahead);
  static Task<void> AwaitOne(Ahead* ahead);
  // `in_order`, unless null, is the command's among those that run together.
  Task<void> RunCommand(Agent* agent, const Client* client, const Command* sent, InOrder* in_order);
  // Between two commands of one client: they are no single turn, although each completes inline.
  static Task<void> NextTurn(Agent* agent);
  Task<void> ReadKeys(Agent* agent, const std::vector<std::string>* keys);
  Task<void> StopAgent(Agent* agent);
  Task<void> Depart(Agent* agent, uint64_t away_ns);
  static void EndDeparture(void* arg);
  Task<void> StartAlone(Agent* agent, bool* started);
  Task<void> FlushAll(Agent* agent, uint64_t until_ns, bool* flushed);
  Task<void> Start(Agent* agent, uint32_t attempt);
  void StartClients(uint32_t number);
  // An agent that neither is dead nor stands still until further notice.
  Agent* LiveAgent(uint32_t first);
  [[nodiscard]] bool IsFrozen(const Agent* agent) const;
  // Returns true if some region has no majority any more that could make it whole, for a node is
  // lost for good while others lack what they missed: no agent can start, and no repair ends.
  [[nodiscard]] bool IsBeyondRepair() const;
  // Lets those go on that are not frozen for good, to their end.
  bool GoOnFrozen();
  // Around every command, if the plan freezes agents.
  void WatchBeginning(Agent* agent);
  void WatchEnd(Agent* agent, const HistoryOp& op);
  [[nodiscard]] WaitFreedom::Moment Now() const;
  static void Strike(void* planned_fault);
  static void EndFault(void* planned_fault);
  [[nodiscard]] bool MayLose(NodeId node) const;
  // A drain that has a duration waits so long at most until regions have been added.
  [[nodiscard]] bool AwaitsGrowth(const Fault& fault) const;
  void NoteShrink(bool shrinks);
  void StrikeNow(PlannedFault& planned);
  void NoteMeeting(const Fault& fault);
  void StrikeAgent(PlannedFault& planned);
  void StrikeControl(const PlannedFault& planned);
  void EndNow(const PlannedFault& planned);
  void SetCut(uint32_t agent, NodeId node, bool cut);
  // Cuts that last for ever: a member must be served all the same. Then they end.
  bool OutlastCuts(const std::vector<Fault>& faults);
  Task<void> WriteUntilServed(Agent* agent, uint64_t until_ns);
  // Returns true if every agent lacks the majority of some region's live replicas.
  [[nodiscard]] bool NobodyCanBeHelped() const;
  // The node that one agent of at least three does not reach, while nothing else happens.
  [[nodiscard]] std::optional<NodeId> MissedByOne() const;
  // Why the outcome of the agent's command, which began at `begun_ns`, may not be unknown; empty:
  // it may.
  [[nodiscard]] std::string WhyNotUnknown(const Agent* agent, const Command& command,
                                          uint64_t begun_ns) const;
  // Returns true if nodes are away now and then, and every write after a key's first is one of a
  // register.
  [[nodiscard]] bool OnlyWritesRegisters() const;
  // Returns true if regions move, and nothing else happens that the clients do not ask for.
  [[nodiscard]] bool OnlyMoves() const;
  [[nodiscard]] CheckOptions CheckOptionsOf() const;
  bool Explain();
  void Fail(std::string text);

  const Plan plan_;
  const uint64_t steps_max_;
  SimExecutor executor_;
  Trace trace_;
  Meetings meetings_;
  SimMaster master_;
  std::vector<std::unique_ptr<SimNode>> node_processes_;
  // By the numbers that the master gave.
  std::vector<SimNode*> node_by_id_;
  std::vector<std::unique_ptr<MemoryNode>> nodes_;
  std::unique_ptr<const View> memory_view_;    // where regions lie, which never changes
  std::unique_ptr<WaitFreedom> wait_freedom_;  // null: no agent is to be frozen
  std::unique_ptr<SimNetwork> network_;
  std::unique_ptr<MemoryWatch> memory_;
  std::map<WorkerId, Agent*> workers_;            // by the id that their agents were given
  std::map<WorkerId, std::set<NodeId>> refused_;  // the nodes that refuse it
  History history_;
  std::vector<std::unique_ptr<Agent>> agents_;  // all that ever lived
  std::vector<Agent*> current_;                 // by number; those that died stay until replaced
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<PlannedFault>> planned_;
  std::vector<const PlannedFault*> frozen_;  // agents that stand still by kFreezeAgent
  std::vector<std::unique_ptr<Revival>> revivals_;
  std::vector<std::unique_ptr<Departure>> departures_;
  std::string failure_;
  uint64_t started_ns_ = 0;
  uint64_t last_loss_ns_ = 0;  // when a node was last lost
  // When a SET of the key by the agent was first acknowledged: the agent knows its register since.
  std::map<std::pair<const Agent*, std::string>, uint64_t> set_keys_;
  uint64_t commands_ = 0;
  uint64_t unanswered_ = 0;
  uint64_t faults_ = 0;
  std::set<std::pair<uint32_t, NodeId>> cuts_;  // the agent's number, and the node it misses
  uint32_t reviving_ = 0;                       // agents that will be started anew
  bool shrinks_ = false;
  uint64_t amid_shrink_end_ns_ = 0;
  bool made_room_ = false;
  uint64_t struck_end_ns_ = 0;  // the last one's of the faults so far
  bool rest_is_taken_ = false;
  bool program_runs_ = false;
  bool ending_ = false;
  uint32_t lost_nodes_ = 0;  // for good
  bool lossy_ = false;       // something was lost that keeps memory from adding up
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_WORLD_H_
