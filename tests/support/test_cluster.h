// A little cluster in this process, for tests and benchmarks: memory nodes, a master, and workers
// on whatever fabric the test likes.
#ifndef ONETRIP_TESTS_SUPPORT_TEST_CLUSTER_H_
#define ONETRIP_TESTS_SUPPORT_TEST_CLUSTER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/coro/executor.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/sim_executor.h"
#include "client_core/fabric/shm.h"
#include "client_core/fabric/sim.h"
#include "client_core/kv/kv.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"
#include "master/local_master.h"
#include "memnode/memory_node.h"

namespace onetrip {

// Memory nodes and master. Outlives its workers.
class TestCluster {
 public:
  TestCluster(const Clock& clock, ClusterShape shape);

  LocalMaster& master() { return *master_; }
  MemoryNode& node(size_t index) { return *nodes_[index]; }
  [[nodiscard]] size_t node_count() const { return nodes_.size(); }
  std::vector<MemoryEndpoint*> endpoints();

 private:
  std::vector<std::unique_ptr<MemoryNode>> nodes_;
  std::unique_ptr<LocalMaster> master_;
};

// A worker without a Kv: executor, fabric and context, for tests of the layers below.
class TestWorkerBase {
 public:
  TestWorkerBase(TestCluster& cluster, Executor& executor, std::unique_ptr<Fabric> fabric,
                 DataPathOptions options = {});

  Executor& executor() { return executor_; }
  Fabric& fabric() { return *fabric_; }
  WorkerContext& context() { return *context_; }

 protected:
  Executor& executor_;
  ViewHold hold_;
  std::unique_ptr<Fabric> fabric_;
  std::unique_ptr<WorkerContext> context_;
};

// A whole worker. Start() and Stop() block on the executor; in simulations, await the Kv's own.
class TestWorker : public TestWorkerBase {
 public:
  TestWorker(TestCluster& cluster, Executor& executor, std::unique_ptr<Fabric> fabric,
             EngineKind engine = EngineKind::kSnapshot, DataPathOptions options = {});

  Kv& kv() { return *kv_; }
  void Start();
  void Stop();

  // Blocking conveniences.
  Status Set(std::string_view key, std::string_view value, uint64_t deadline_ms = 0);
  // The value, or "(nil)", or "(error ...)".
  std::string Get(std::string_view key);
  bool Delete(std::string_view key);
  uint64_t CountKeys(uint32_t database = 0);

 private:
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Kv> kv_;
};

// A worker on shm in its own loop executor, on the calling thread.
class ShmWorker {
 public:
  explicit ShmWorker(TestCluster& cluster, EngineKind engine = EngineKind::kSnapshot,
                     DataPathOptions options = {}, uint64_t seed = 1);
  ~ShmWorker();

  TestWorker* operator->() { return worker_.get(); }
  LoopExecutor& executor() { return executor_; }

 private:
  SystemClock clock_;
  LoopExecutor executor_;
  std::unique_ptr<TestWorker> worker_;
};

// Adds `addend` to a decimal value; a missing key counts as 0.
class AddMutation final : public Mutation {
 public:
  explicit AddMutation(int64_t addend) : addend_(addend) {}
  Change Apply(const RecordView* current) override;
  [[nodiscard]] int64_t sum() const { return sum_; }

 private:
  int64_t addend_;
  int64_t sum_ = 0;
  std::string text_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_TEST_CLUSTER_H_
