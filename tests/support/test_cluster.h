// A little cluster in this process, for tests and benchmarks: memory nodes, a master, and workers
// on whatever fabric the test likes.
#ifndef ONETRIP_TESTS_SUPPORT_TEST_CLUSTER_H_
#define ONETRIP_TESTS_SUPPORT_TEST_CLUSTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
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

// A simulated fabric for tests that write far more bytes than they look into: every operation takes
// effect at once. Torn reads and writes are the simulations' concern.
inline constexpr SimFabricOptions kWholeSteps{.step_ns = 0};

// A LocalMaster whose views a test may edit: which nodes are out, what is missing where.
class EditedMaster final : public MasterClient {
 public:
  using Edit = std::function<void(View& view)>;

  EditedMaster(MembershipState state, const Clock& clock) : inner_(std::move(state), clock) {
    Publish();
  }
  [[nodiscard]] std::shared_ptr<const View> view() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return view_;
  }
  Task<Result<Membership>> Join(Quiesce& hold) override;
  Task<Status> Leave(Quiesce& hold, Membership membership) override;
  Task<Status> FlushKeyspaces(Quiesce& hold, std::optional<uint32_t> database) override;
  // Workers are released before they see the new view: nothing else may be under way.
  Task<Status> SwapKeyspaces(Quiesce& hold, uint32_t first, uint32_t second) override;

  // From now on every view is as the cluster's own with all edits made, one after the other.
  // Commits one that is.
  void AddEdit(Edit edit);

 private:
  void Publish();

  LocalMaster inner_;
  mutable std::mutex mutex_;
  std::vector<Edit> edits_;           // guarded by mutex_
  uint64_t epochs_ = 0;               // that edits have added; guarded by mutex_
  std::shared_ptr<const View> view_;  // guarded by mutex_
};

// Takes `node` out: it is the last, and missing, of all regions that it holds.
void TakeOut(View& view, NodeId node);
// It serves again, and what it holds is missing yet.
void TakeIn(View& view, NodeId node);

// Memory nodes and master. Outlives its workers.
class TestCluster {
 public:
  TestCluster(const Clock& clock, ClusterShape shape);

  EditedMaster& master() { return *master_; }
  // Commits a view without `node`, and tells the node itself and the others. Workers' fabrics are
  // the test's to tell.
  void TakeOut(NodeId node);
  // Commits a view with it, its regions copied by this call.
  void BringBack(NodeId node);
  // The next of them; false: there is none.
  bool BringBackRegion(NodeId node);
  // Tells the nodes the newest view.
  void TellNodes();
  MemoryNode& node(size_t index) { return *nodes_[index]; }
  [[nodiscard]] size_t node_count() const { return nodes_.size(); }
  std::vector<MemoryEndpoint*> endpoints();

 private:
  std::vector<std::unique_ptr<MemoryNode>> nodes_;
  std::unique_ptr<EditedMaster> master_;
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
  Quiesce hold_;
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
  std::unique_ptr<SlotStore> kv_;
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
  [[nodiscard]] std::optional<uint64_t> growth() const override { return 20; }
  Change Apply(const RecordView* current) override;
  [[nodiscard]] int64_t sum() const { return sum_; }

 private:
  int64_t addend_;
  int64_t sum_ = 0;
  std::string text_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_TEST_CLUSTER_H_
