// Databases that exchange their keyspaces: which agents stand still for it, what travels with it,
// and what it waits for.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "client_core/coro/loop_executor.h"
#include "client_core/coro/sim_executor.h"
#include "client_core/coro/sync.h"
#include "master/local_master.h"
#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

MembershipState MakeState() {
  return MembershipState::Create({.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}).value();
}

TEST(MembershipSwapTest, TwoDatabasesExchangeTheirKeyspaces) {
  MembershipState state = MakeState();
  const auto before = state.view().keyspaces;
  const uint64_t epoch = state.view().epoch.value;
  ASSERT_TRUE(state.SwapKeyspaces(2, 5).ok());
  EXPECT_EQ(state.view().epoch.value, epoch + 1);
  auto expected = before;
  std::swap(expected[2], expected[5]);
  EXPECT_EQ(state.view().keyspaces, expected);
  EXPECT_FALSE(state.SwapKeyspaces(0, kMaxDatabases).ok());
  EXPECT_FALSE(state.SwapKeyspaces(kMaxDatabases, 0).ok());
  EXPECT_EQ(state.view().keyspaces, expected);
  // The newest id that was given out is always some database's: the sweep counts on it.
  ASSERT_TRUE(state.FlushKeyspaces(2).ok());
  ASSERT_TRUE(state.SwapKeyspaces(2, 9).ok());
  EXPECT_EQ(state.view().keyspaces[9].value, state.next_keyspace() - 1);
  EXPECT_EQ(state.view().keyspaces[2], before[9]);
}

class MasterSwapTest : public MasterRepairTest {
 protected:
  using Keyspaces = std::array<KeyspaceId, kMaxDatabases>;
  static Keyspaces Swapped(Keyspaces keyspaces, size_t first, size_t second) {
    std::swap(keyspaces[first], keyspaces[second]);
    return keyspaces;
  }
  const Keyspaces before = view().keyspaces;
};

TEST_F(MasterSwapTest, ASwapWaitsUntilNothingIsUnderWay) {
  const uint64_t swap = bench.Ask(a, SwapRequest{1, 4});
  for (const StreamId agent : {a, b}) {
    ASSERT_NE(HoldOf(agent), nullptr);
    EXPECT_EQ(HoldOf(agent)->kind, HoldKind::kAll);
  }
  Holds(a);
  EXPECT_EQ(view().keyspaces, before) << "b still works";
  Holds(b);
  EXPECT_EQ(view().keyspaces, Swapped(before, 1, 4));
  EXPECT_EQ(bench.disk.cluster.keyspaces, view().keyspaces) << "durable before it is told";
  bench.TakeOver(a);
  EXPECT_EQ(bench.ReplyTo(a, swap), nullptr) << "b is under the older view";
  bench.TakeOver(b);
  ASSERT_NE(bench.ReplyTo(a, swap), nullptr);
  EXPECT_EQ(bench.ReplyTo(a, swap)->code, StatusCode::kOk);
  bench.Start();
  EXPECT_EQ(view().keyspaces, Swapped(before, 1, 4)) << "a restart";
}

TEST_F(MasterSwapTest, FlushesAndSwapsOfOneHoldAreMadeInTheirOrder) {
  const uint64_t swap = bench.Ask(a, SwapRequest{0, 1});
  const uint64_t flush = bench.Ask(b, FlushRequest{0});
  const uint64_t back = bench.Ask(b, SwapRequest{0, 1});
  AllHold();
  TakeOver();
  for (const auto& [stream, request] : {std::pair{a, swap}, {b, flush}, {b, back}}) {
    ASSERT_NE(bench.ReplyTo(stream, request), nullptr);
    EXPECT_EQ(bench.ReplyTo(stream, request)->code, StatusCode::kOk);
  }
  // The old keyspace of database 1 is flushed.
  EXPECT_EQ(view().keyspaces[0], before[0]);
  EXPECT_GT(view().keyspaces[1], before.back());
}

TEST_F(MasterSwapTest, AHoldForAFlushIsNotEnough) {
  const uint64_t flush = bench.Ask(a, FlushRequest{7});
  EXPECT_EQ(HoldOf(a)->kind, HoldKind::kStart);
  const uint64_t swap = bench.Ask(b, SwapRequest{0, 1});
  AllHold();
  TakeOver();
  EXPECT_NE(bench.ReplyTo(a, flush), nullptr);
  EXPECT_EQ(bench.ReplyTo(b, swap), nullptr);
  EXPECT_EQ(view().keyspaces[0], before[0]);
  ASSERT_NE(HoldOf(b), nullptr);
  EXPECT_EQ(HoldOf(b)->kind, HoldKind::kAll);
  AllHold();
  TakeOver();
  EXPECT_NE(bench.ReplyTo(b, swap), nullptr);
  EXPECT_EQ(view().keyspaces[0], before[1]);
}

TEST_F(MasterSwapTest, WhoDoesNotStandStillInTimeKeepsItFromHappening) {
  const uint64_t swap = bench.Ask(a, SwapRequest{0, 1});
  const uint64_t held = HoldOf(a)->epoch.value;
  Holds(a);
  bench.Pass(bench.options.hold_timeout_ms + 200, Everybody());
  ASSERT_NE(bench.ReplyTo(a, swap), nullptr);
  EXPECT_EQ(bench.ReplyTo(a, swap)->code, StatusCode::kUnavailable);
  EXPECT_EQ(bench.ReplyTo(a, swap)->reason.find("nothing was swapped: agent "), 0U);
  EXPECT_EQ(view().keyspaces, before);
  EXPECT_EQ(bench.SentEpoch(a), held) << "a is held until there is a view";
}

TEST_F(MasterSwapTest, ALostNodeGoesFirst) {
  const uint64_t swap = bench.Ask(a, SwapRequest{0, 1});
  Holds(a);
  // Operations that b has under way there would not end.
  bench.Break(nodes[1]);
  EXPECT_EQ(view().keyspaces, before);
  TakeOver();
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->kind, HoldKind::kSlots);
  AllHold();
  TakeOver();
  Resolve();
  EXPECT_EQ(view().keyspaces, before) << "slots are still as the lost node has left them";
  TakeOver();
  ASSERT_NE(HoldOf(a), nullptr);
  EXPECT_EQ(HoldOf(a)->kind, HoldKind::kAll);
  AllHold();
  TakeOver();
  ASSERT_NE(bench.ReplyTo(a, swap), nullptr);
  EXPECT_EQ(bench.ReplyTo(a, swap)->code, StatusCode::kOk);
  EXPECT_EQ(view().keyspaces, Swapped(before, 0, 1));
}

TEST_F(MasterSwapTest, SlotsOfAnAgentThatDiesMeanwhileAreResolvedFirst) {
  const uint64_t swap = bench.Ask(a, SwapRequest{0, 1});
  Holds(a);
  bench.Break(b);
  for (const StreamId node : nodes) bench.ConfirmFence(node);
  bench.TakeOver(a);
  EXPECT_EQ(view().keyspaces, before) << "b has left slots half written";
  Holds(a);
  EXPECT_EQ(HoldOf(a)->kind, HoldKind::kSlots);
  Answer(a, RepairKind::kResolveSlots);
  bench.TakeOver(a);
  Holds(a);
  bench.TakeOver(a);
  EXPECT_EQ(view().keyspaces, Swapped(before, 0, 1));
  EXPECT_NE(bench.ReplyTo(a, swap), nullptr);
}

TEST_F(MasterSwapTest, OfNoDatabaseItIsRefused) {
  const uint64_t swap = bench.Ask(a, SwapRequest{0, kMaxDatabases});
  AllHold();
  TakeOver();
  ASSERT_NE(bench.ReplyTo(a, swap), nullptr);
  EXPECT_EQ(bench.ReplyTo(a, swap)->code, StatusCode::kInvalidArgument);
  EXPECT_EQ(view().keyspaces, before);
}

// A worker of a thread of its own, which a master may quiesce.
class LoopWorker {
 public:
  LoopWorker(LocalMaster& master, const Clock& clock) : master_(master), executor_(clock, 1) {
    membership_ = BlockOn(executor_, master_.Join(hold_)).value();
    thread_ = std::thread([this] { executor_.Run(); });
  }
  ~LoopWorker() {
    executor_.Stop();
    thread_.join();
    in_flight_ = {};
    EXPECT_TRUE(BlockOn(executor_, master_.Leave(hold_, membership_)).ok());
  }
  // Has something under way, or ends it.
  void Work(bool work) {
    std::promise<void> done;
    executor_.Post([&] {
      in_flight_ = work ? Quiesce::InFlightGuard(hold_) : Quiesce::InFlightGuard();
      done.set_value();
    });
    done.get_future().get();
  }
  std::future<std::thread::id> Swap(uint32_t first, uint32_t second) {
    auto done = std::make_shared<std::promise<std::thread::id>>();
    executor_.Post([=, this] { executor_.Spawn(gate_, RunSwap(this, first, second, done)); });
    return done->get_future();
  }
  bool Held() {
    std::promise<bool> held;
    executor_.Post([&] { held.set_value(hold_.held()); });
    return held.get_future().get();
  }
  [[nodiscard]] std::thread::id thread() const { return thread_.get_id(); }

 private:
  static Task<void> RunSwap(LoopWorker* self, uint32_t first, uint32_t second,
                            std::shared_ptr<std::promise<std::thread::id>> done) {
    EXPECT_TRUE((co_await self->master_.SwapKeyspaces(self->hold_, first, second)).ok());
    done->set_value(std::this_thread::get_id());
  }

  LocalMaster& master_;
  LoopExecutor executor_;
  Quiesce hold_{executor_};
  Gate gate_{executor_};
  Quiesce::InFlightGuard in_flight_;
  Membership membership_;
  std::thread thread_;
};

TEST(LocalMasterSwapTest, WaitsForEveryThreadAndAnswersOnTheOneThatAsked) {
  const SystemClock clock;
  LocalMaster master(MakeState(), clock);
  LoopWorker first(master, clock);
  LoopWorker second(master, clock);
  const auto before = master.view()->keyspaces;
  second.Work(true);
  std::future<std::thread::id> swap = first.Swap(0, 1);
  while (!second.Held()) std::this_thread::yield();
  // A swap that comes meanwhile goes with it, and so does a worker that joins.
  std::future<std::thread::id> other = second.Swap(2, 3);
  LoopWorker third(master, clock);
  EXPECT_TRUE(third.Held());
  EXPECT_EQ(master.view()->keyspaces, before);
  second.Work(false);
  EXPECT_EQ(swap.get(), first.thread());
  EXPECT_EQ(other.get(), second.thread());
  EXPECT_EQ(master.view()->keyspaces[0], before[1]);
  EXPECT_EQ(master.view()->keyspaces[1], before[0]);
  EXPECT_EQ(master.view()->keyspaces[2], before[3]);
  for (LoopWorker* worker : {&first, &second, &third}) {
    while (worker->Held()) std::this_thread::yield();
  }
}

TEST(LocalMasterSwapTest, SwapsOfManyThreadsAllHappen) {
  constexpr int kTurns = 201;
  const SystemClock clock;
  LocalMaster master(MakeState(), clock);
  LoopWorker first(master, clock);
  LoopWorker second(master, clock);
  const auto before = master.view()->keyspaces;
  std::vector<std::future<std::thread::id>> swaps;
  for (int i = 0; i < kTurns; ++i) {
    swaps.push_back(first.Swap(0, 1));
    swaps.push_back(second.Swap(4, 5));
  }
  for (auto& swap : swaps) swap.wait();
  EXPECT_EQ(master.view()->keyspaces[0], before[1]);
  EXPECT_EQ(master.view()->keyspaces[4], before[5]);
}

}  // namespace
}  // namespace onetrip
