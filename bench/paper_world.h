// The testbed of SWARM 7 in virtual time: clients that issue one operation at a time, the systems
// that the paper compares, and what each operation cost.
//
// The network is SimFabric with the figures that the paper gives of RAW (PaperFabric). A client is
// one core: it hands its messages to the network one after the other, and begins its next operation
// when all of the last one, background steps included, are out. Deterministic for a seed.
#ifndef ONETRIP_BENCH_PAPER_WORLD_H_
#define ONETRIP_BENCH_PAPER_WORLD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/coro/sim_executor.h"
#include "client_core/fabric/sim.h"
#include "tests/support/test_cluster.h"

namespace onetrip {

// The network of the paper's testbed, calibrated on RAW alone; see bench/README.md.
SimFabricOptions PaperFabric();
// The same without chance and without cost of its own: a round trip takes twice `latency_ns`.
SimFabricOptions EvenFabric(uint64_t latency_ns);

// kRawEngine is the product's engine `raw`; kRaw what the paper calls RAW.
enum class System : uint8_t { kRaw, kRawEngine, kSwarm, kAbd, kSnapshot };
std::string_view NameOf(System system);

// kCommand is one of command_costs.h, and not for PaperClient.
enum class OpKind : uint8_t { kGet, kUpdate, kInsert, kDelete, kCommand };

struct OpCost {
  OpKind kind;
  uint32_t round_trips;
  uint64_t latency_ns;
};

// One client, and what it needs of its system. An operation that fails ends the program: a figure
// that counts failures as answers is none.
class PaperClient {
 public:
  explicit PaperClient(uint64_t seed) : rng_(seed) {}
  virtual ~PaperClient() = default;
  PaperClient(const PaperClient&) = delete;
  PaperClient& operator=(const PaperClient&) = delete;

  virtual Task<void> Do(OpKind kind, uint32_t key) = 0;
  // Dependent round trips of all operations so far, as the system counts them.
  [[nodiscard]] virtual uint64_t round_trips() const = 0;
  virtual SimFabric& fabric() = 0;
  virtual void Stop() {}

  Rng& rng() { return rng_; }
  std::vector<uint32_t>& keys() { return keys_; }

 private:
  Rng rng_;
  std::vector<uint32_t> keys_;  // the operations to come use them
};

struct WorldOptions {
  System system = System::kSwarm;
  uint32_t clients = 4;
  uint32_t keys = 100'000;
  uint32_t lanes = 4;
  double theta = 0.99;         // Zipf's; 0: all keys alike
  double get_share = 0.95;     // YCSB B; A: 0.5
  double warm_get_share = -1;  // if it differs
  // Operations of random clients to each key that is going to be used, without taking time: they
  // bring the keys into the state in which a long run leaves them.
  uint32_t settle_ops_per_key = 0;
  // In all. Warm-up ones run like the measured ones that follow them.
  uint64_t warm_ops = 0;
  uint64_t measured_ops = 0;
  uint64_t seed = 1;
  SimFabricOptions fabric = PaperFabric();
};

class PaperWorld {
 public:
  // All keys are there, and each client knows where those lie that it is going to use.
  explicit PaperWorld(const WorldOptions& options);
  PaperWorld(const PaperWorld&) = delete;
  PaperWorld& operator=(const PaperWorld&) = delete;
  ~PaperWorld();

  // Settles, warms up, measures.
  std::vector<OpCost> Run();
  // Each client inserts `count` keys of its own and then deletes them.
  std::vector<OpCost> InsertAndDelete(uint32_t count);

 private:
  struct Phase;
  void DrawKeys();
  void Prime();
  void Settle();
  void RunPhase(const Phase& phase, std::vector<OpCost>* costs);
  Task<void> RunClient(PaperClient& client, const Phase& phase, std::vector<OpCost>* costs);
  Task<void> RunRange(PaperClient& client, OpKind kind, uint32_t first, uint32_t count,
                      std::vector<OpCost>* costs);
  Task<void> RunOp(PaperClient& client, OpKind kind, uint32_t key, std::vector<OpCost>* costs);
  [[nodiscard]] uint32_t DrawKey(Rng& rng) const;

  const WorldOptions options_;
  SimExecutor executor_;
  TestCluster cluster_;
  SimNetwork network_;
  std::vector<std::unique_ptr<PaperClient>> clients_;
  std::vector<double> cumulative_;  // Zipf, theta .99
  uint32_t running_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_BENCH_PAPER_WORLD_H_
