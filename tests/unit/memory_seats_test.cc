// Epochs and the map: whose entry in the epoch table counts.
#include <gtest/gtest.h>

#include <memory>

#include "tests/support/memory_worker.h"

namespace onetrip {
namespace {

constexpr SizeClass kClass(4);

class SeatsTest : public testing::Test {
 protected:
  std::unique_ptr<MemoryWorker> NewWorker() {
    return std::make_unique<MemoryWorker>(cluster_, executor_, MakeSim(cluster_, executor_));
  }
  void Retire(MemoryWorker& owner) {
    owner.allocator().Retire(owner.Allocate(kClass).value(), kClass);
  }
  static void MaintainOften(MemoryWorker& worker) {
    for (int i = 0; i < 10; ++i) worker.Maintain();
  }
  // Acts as the master does when a worker that said no goodbye is fenced on every node.
  void Expel(MemoryWorker& worker) {
    EXPECT_TRUE(BlockOn(executor_, cluster_.master().Leave(worker.context().quiesce,
                                                           worker.context().membership))
                    .ok());
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}};
};

TEST_F(SeatsTest, ADeadWorkersEpochHoldsNobodyBackOnceItsSeatIsFree) {
  auto owner = NewWorker();
  owner->Join();
  auto dead = NewWorker();
  dead->Join();
  Retire(*owner);
  MaintainOften(*owner);
  EXPECT_EQ(owner->allocator().retired_count(), 1U);
  Expel(*dead);
  MaintainOften(*owner);
  EXPECT_EQ(owner->allocator().retired_count(), 0U);
  owner->Leave();
}

TEST_F(SeatsTest, WhoTakesADeadWorkersSeatOverwritesItsEntry) {
  auto owner = NewWorker();
  owner->Join();
  auto dead = NewWorker();
  dead->Join();
  const WorkerIndex seat = dead->context().membership.index;
  Expel(*dead);
  // Epochs go on without it.
  for (int round = 0; round < 5; ++round) {
    Retire(*owner);
    MaintainOften(*owner);
    ASSERT_EQ(owner->allocator().retired_count(), 0U) << "round " << round;
  }
  auto heir = NewWorker();
  ASSERT_EQ(heir->context().membership.index, seat);
  // The seat lives, and what is in it is the dead worker's: it may hold back, never hurry.
  Retire(*owner);
  MaintainOften(*owner);
  EXPECT_EQ(owner->allocator().retired_count(), 1U);
  heir->Join();
  EXPECT_GE(heir->reclaimer().current_epoch() + 1, owner->reclaimer().current_epoch());
  for (int i = 0; i < 5; ++i) {
    owner->Maintain();
    heir->Maintain();
  }
  EXPECT_EQ(owner->allocator().retired_count(), 0U);
  // It is waited for like any other worker.
  EpochPin pin = heir->reclaimer().Pin();
  Retire(*owner);
  for (int i = 0; i < 10; ++i) {
    owner->Maintain();
    heir->Maintain();
  }
  EXPECT_EQ(owner->allocator().retired_count(), 1U);
  pin.Release();
  heir->Leave();
  owner->Leave();
}

// Notes WRITEs that change at once what a reader must not see in part.
class RingWatch final : public SimObserver {
 public:
  explicit RingWatch(TestCluster& cluster) : cluster_(cluster) {}
  void Posted(const SimFabric& /*fabric*/, NodeId node, const RoundTrip& round_trip,
              uint64_t ops) override {
    for (size_t i = 0; i < round_trip.size(); ++i) {
      if ((ops >> i & 1) != 0) Look(node, round_trip.op(i));
    }
  }
  void Applied(const SimFabric& /*fabric*/, NodeId /*node*/, const FabricOp& /*op*/) override {}
  void Answered(const SimFabric& /*fabric*/, NodeId /*node*/, bool /*ok*/) override {}

  int written = 0;
  int torn = 0;

 private:
  void Look(NodeId node, const FabricOp& op) {
    const uint64_t table =
        cluster_.master().view()->LocateOn(RetiredRingAddr(WorkerIndex{0}), node).offset;
    const bool is_entry = op.kind == FabricOpKind::kWrite && op.bytes == sizeof(RetiredRing) &&
                          op.offset >= table &&
                          op.offset < table + kMaxWorkers * sizeof(RetiredRing);
    if (!is_entry) return;
    ++written;
    const auto* before =
        reinterpret_cast<const RetiredRing*>(cluster_.node(node.value).base() + op.offset);
    const auto* then = reinterpret_cast<const RetiredRing*>(op.local);
    const bool is_other_ring = before->ring != then->ring && then->ring != 0;
    if (is_other_ring && before->head != then->head) ++torn;
    if (before->worker != then->worker && before->ring != 0) ++torn;
  }

  TestCluster& cluster_;
};

TEST_F(SeatsTest, NoWriteChangesARingAndWhatIsCountedThere) {
  SimNetwork network(executor_, cluster_.endpoints(), SimFabricOptions());
  RingWatch watch(cluster_);
  network.set_observer(&watch);
  const auto new_worker = [&] {
    auto worker = std::make_unique<MemoryWorker>(cluster_, executor_,
                                                 std::make_unique<SimFabric>(executor_, network));
    worker->Join();
    EXPECT_TRUE(BlockOn(executor_, worker->allocator().retired_registers().Join()).ok());
    return worker;
  };
  auto dead = new_worker();
  for (int round = 0; round < 3; ++round) {
    dead->allocator().RetireRegister(dead->Allocate(kClass).value(), kClass);
    MaintainOften(*dead);
  }
  const WorkerIndex seat = dead->context().membership.index;
  Expel(*dead);
  auto heir = new_worker();
  ASSERT_EQ(heir->context().membership.index, seat);
  heir->allocator().RetireRegister(heir->Allocate(kClass).value(), kClass);
  MaintainOften(*heir);
  EXPECT_GT(watch.written, 6);
  EXPECT_EQ(watch.torn, 0);
  network.set_observer(nullptr);
  heir->Leave();
  dead.reset();
  heir.reset();
}

}  // namespace
}  // namespace onetrip
