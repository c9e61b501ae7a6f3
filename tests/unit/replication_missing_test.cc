// Registers and slots while a replica of their region is missing, and while it comes to be so.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "client_core/fabric/shm.h"
#include "tests/support/register_fixture.h"
#include "tests/support/test_cluster.h"
#include "tests/support/write_slot.h"

namespace onetrip {
namespace {

const Ticks kBirth = TicksOfNs(kClusterOffsetNs - 1'000'000);
constexpr GlobalAddr kSlot(0, LittleCluster::kRegistersOffset - 8);

class MissingReplicaTest : public testing::Test {
 protected:
  MissingReplicaTest()
      : cluster_(3, size_t{64} * 1024),
        executor_(1),
        network_(executor_, cluster_.endpoints(), SimFabricOptions()),
        ref_(cluster_.CreateRegister({}, /*incarnation=*/0, kBirth)) {
    for (uint32_t id = 1; id <= 2; ++id) {
      workers_.push_back(
          std::make_unique<RegisterWorker>(executor_, network_, cluster_.master(), id));
      handles_.emplace_back(ref_, workers_.back()->guess_clock);
    }
  }
  ~MissingReplicaTest() override {
    for (auto& worker : workers_) BlockOn(executor_, worker->safe_guess.Stop());
  }

  void Commit(void (*edit)(View& view, NodeId node), NodeId node) {
    auto view = std::make_shared<View>(*cluster_.master().view());
    ++view->epoch.value;
    edit(*view, node);
    cluster_.master().Commit(view);
  }
  // The node ends, and workers are told to evict it.
  void Lose(NodeId node) {
    cluster_.node(node.value).SetReachable(false);
    for (auto& worker : workers_) worker->fabric->SetEvicted(node, true);
    Commit(TakeOut, node);
  }
  RegisterWorker& worker(size_t index) { return *workers_[index]; }
  std::string Get(size_t index) { return worker(index).Get(handles_[index]); }
  WriteOutcome Set(size_t index, std::string_view value) {
    const WriteOutcome outcome =
        worker(index).Set(handles_[index], cluster_.NewBuffers(ref_.shape), value);
    EXPECT_EQ(outcome.end, RegisterEnd::kDone);
    return outcome;
  }
  void Settle() { executor_.RunUntil(executor_.NowNs() + 1'000'000); }

  LittleCluster cluster_;
  SimExecutor executor_;
  SimNetwork network_;
  RegisterRef ref_;
  std::vector<std::unique_ptr<RegisterWorker>> workers_;
  std::vector<RegisterHandle> handles_;
};

TEST_F(MissingReplicaTest, RegistersGoOnWithTwoOfThreeWhicheverIsMissing) {
  for (uint16_t lost = 0; lost < 3; ++lost) {
    SCOPED_TRACE(lost);
    cluster_.Clear();
    ref_ = cluster_.CreateRegister({}, /*incarnation=*/lost, kBirth);
    for (size_t i = 0; i < 2; ++i) handles_[i] = RegisterHandle(ref_, worker(i).guess_clock);
    (void)Set(0, "before");
    Settle();
    Lose(NodeId{lost});
    const std::vector<std::byte> frozen(cluster_.node(lost).base(),
                                        cluster_.node(lost).base() + cluster_.node(lost).bytes());
    EXPECT_EQ(Get(1), "before");
    for (int i = 0; i < 5; ++i) {
      const std::string value = "after " + std::to_string(i);
      (void)Set(static_cast<size_t>(i) % 2, value);
      EXPECT_EQ(Get(1), value);
      Settle();
      EXPECT_EQ(Get(0), value);
      for (uint16_t node = 0; node < 3; ++node) {
        const MetaWord lane = cluster_.Lane(
            ref_, node, InNOut::LaneOf(WorkerId{1 + static_cast<uint32_t>(i) % 2}, ref_.shape));
        if (node != lost) {
          EXPECT_TRUE(lane.verified());
        }
      }
    }
    EXPECT_EQ(std::memcmp(cluster_.node(lost).base(), frozen.data(), frozen.size()), 0);
    // Back again, as if copied.
    std::memcpy(cluster_.node(lost).base(), cluster_.node((lost + 1) % 3).base(),
                cluster_.node(lost).bytes());
    cluster_.node(lost).SetReachable(true);
    for (auto& worker : workers_) worker->fabric->SetEvicted(NodeId{lost}, false);
    Commit(
        [](View& view, NodeId node) {
          TakeIn(view, node);
          view.regions[0].missing = 0;
        },
        NodeId{lost});
    EXPECT_EQ(Get(1), "after 4");
    (void)Set(1, "all three");
    Settle();
    EXPECT_EQ(Get(0), "all three");
  }
}

Task<void> WriteInto(RegisterWorker* worker, RegisterHandle* handle, WriteBuffers buffers,
                     Status* status, bool* done) {
  RegisterOperation operation;
  WriteOutcome outcome;
  *status =
      co_await worker->safe_guess.Write(operation, *handle, buffers, BytesOf("spanning"), &outcome);
  *done = true;
}

// An answer that a node gives after it was taken out does not make a majority: the write must wait
// for the third replica, which is slow.
TEST_F(MissingReplicaTest, AnAnswerOfANodeThatIsOutByThenDoesNotCount) {
  for (uint16_t lost = 0; lost < 3; ++lost) {
    SCOPED_TRACE(lost);
    const NodeId slow{static_cast<uint16_t>((lost + 1) % 3)};
    Status status;
    bool done = false;
    network_.SetSlowness(slow, 1000);
    Task<void> write =
        WriteInto(&worker(0), handles_.data(), cluster_.NewBuffers(ref_.shape), &status, &done);
    ASSERT_FALSE(write.Start());
    Commit(TakeOut, NodeId{lost});
    executor_.RunUntil(executor_.NowNs() + 100'000);
    EXPECT_FALSE(done) << "a node that is out was counted";
    executor_.RunUntil(executor_.NowNs() + 10'000'000);
    EXPECT_TRUE(done);
    EXPECT_TRUE(status.ok());
    const uint8_t lane = InNOut::LaneOf(WorkerId{1}, ref_.shape);
    for (uint16_t node = 0; node < 3; ++node) {
      if (node != lost) {
        EXPECT_FALSE(cluster_.Lane(ref_, node, lane).is_empty()) << node;
      }
    }
    network_.SetSlowness(slow, 1);
    EXPECT_EQ(Get(1), "spanning");
    Commit(
        [](View& view, NodeId node) {
          TakeIn(view, node);
          view.regions[0].missing = 0;
        },
        NodeId{lost});
    Settle();
  }
}

// The last of region 0's replicas becomes `node`, which misses it; other regions stay whole.
void MissFirstRegion(View& view, NodeId node) {
  RegionPlacement& placement = view.regions[0];
  std::swap(*std::find(placement.nodes.begin(), placement.nodes.begin() + 3, node),
            placement.nodes[2]);
  placement.missing = 1;
}

// A region comes back before the one in which its words' buffers lie: a word there cannot be read
// if the other replicas go, so it makes no majority.
TEST_F(MissingReplicaTest, AnInlineReadDoesNotCountAWordWhoseBufferIsMissing) {
  RegisterWorker shm(
      executor_, std::make_unique<ShmFabric>(executor_.clock(), cluster_.endpoints(), &executor_),
      cluster_.master(), 3);
  // The same memory by another name: register and buffers are in different regions.
  Commit([](View& view, NodeId /*node*/) { view.regions.push_back(view.regions[0]); }, NodeId{0});
  ref_.addr = GlobalAddr(1, ref_.addr.offset());
  handles_[0] = RegisterHandle(ref_, worker(0).guess_clock);
  (void)Set(0, "value");
  Settle();
  int counted = 0;
  for (uint16_t node = 0; node < 3; ++node) {
    const auto read = [&] {
      RegisterHandle handle(ref_, shm.guess_clock);
      Tuple m;
      const std::byte* image = nullptr;
      return shm.safe_guess.ReadFast(handle, &m, &image);
    };
    EXPECT_TRUE(read());
    const std::shared_ptr<const View> whole = cluster_.master().view();
    Commit(MissFirstRegion, NodeId{node});
    counted += read() ? 1 : 0;
    auto again = std::make_shared<View>(*whole);
    again->epoch.value += 2;
    cluster_.master().Commit(again);
  }
  EXPECT_EQ(counted, 1) << "two of three replicas are asked, and one misses the bytes";
  BlockOn(executor_, shm.safe_guess.Stop());
}

TEST_F(MissingReplicaTest, WithoutAMajorityThatIsLiveNothingIsAcknowledged) {
  (void)Set(0, "before");
  Settle();
  Lose(NodeId{2});
  cluster_.node(1).SetReachable(false);
  EXPECT_EQ(Get(0), "(too few replicas of a register answered)");
  cluster_.node(1).SetReachable(true);
  EXPECT_EQ(Get(0), "before");
}

TEST_F(MissingReplicaTest, SlotsAreWrittenOnTheLiveReplicasOnly) {
  for (uint16_t lost = 0; lost < 3; ++lost) {
    SCOPED_TRACE(lost);
    WorkerContext& context = worker(0).context;
    const auto engine = MakeEngine(EngineKind::kSnapshot, context);
    for (int node = 0; node < 3; ++node) cluster_.Word(kSlot, node) = 10;
    EXPECT_EQ(engine->Replicas(context.view(), kSlot), 3);
    Lose(NodeId{lost});
    EXPECT_EQ(engine->Replicas(context.view(), kSlot), 2);
    Operation operation;
    const auto won =
        BlockOn(executor_, WriteSlot(engine.get(), &operation, {kSlot, 10, 11, GlobalAddr()}));
    ASSERT_TRUE(won.ok());
    EXPECT_TRUE(won->won);
    EXPECT_EQ(operation.round_trips, 2U);
    const auto beaten =
        BlockOn(executor_, WriteSlot(engine.get(), &operation, {kSlot, 10, 12, GlobalAddr()}));
    ASSERT_TRUE(beaten.ok());
    EXPECT_FALSE(beaten->won);
    EXPECT_EQ(beaten->current, 11U);
    for (int node = 0; node < 3; ++node) {
      EXPECT_EQ(cluster_.Word(kSlot, node), node == lost ? 10U : 11U);
    }
    cluster_.node(lost).SetReachable(true);
    for (auto& worker : workers_) worker->fabric->SetEvicted(NodeId{lost}, false);
    Commit(
        [](View& view, NodeId node) {
          TakeIn(view, node);
          view.regions[0].missing = 0;
        },
        NodeId{lost});
  }
}

}  // namespace
}  // namespace onetrip
