#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "client_core/coro/sim_executor.h"
#include "client_core/coro/sync.h"

namespace onetrip {
namespace {

Task<void> Record(Event& event, std::vector<int>* order, int id) {
  co_await event.Wait();
  order->push_back(id);
}

Task<int> After(Executor& executor, uint64_t delay_ns, int value) {
  if (delay_ns > 0) co_await executor.SleepFor(delay_ns);
  co_return value;
}

Task<void> AppendAfter(Executor& executor, uint64_t delay_ns, std::vector<int>* order, int id) {
  if (delay_ns > 0) co_await executor.SleepFor(delay_ns);
  order->push_back(id);
}

TEST(EventTest, WakesWaitersInOrderAndInALaterTurn) {
  SimExecutor executor(1);
  Event event(executor);
  Gate gate(executor);
  std::vector<int> order;
  for (int id = 0; id < 3; ++id) EXPECT_TRUE(executor.Spawn(gate, Record(event, &order, id)));
  event.Set();
  EXPECT_TRUE(order.empty());
  EXPECT_TRUE(executor.RunUntilIdle());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(EventTest, ASetEventDoesNotSuspendAndAResetOneDoes) {
  SimExecutor executor(1);
  Event event(executor);
  Gate gate(executor);
  std::vector<int> order;
  event.Set();
  executor.Spawn(gate, Record(event, &order, 1));
  EXPECT_EQ(order.size(), 1U);
  event.Reset();
  executor.Spawn(gate, Record(event, &order, 2));
  executor.RunUntilIdle();
  EXPECT_EQ(order.size(), 1U);
  event.Set();
  executor.RunUntilIdle();
  EXPECT_EQ(order.size(), 2U);
}

TEST(EventTest, ADroppedWaiterLeavesTheList) {
  SimExecutor executor(1);
  Event event(executor);
  std::vector<int> order;
  Task<void> first = Record(event, &order, 1);
  Task<void> third = Record(event, &order, 3);
  first.Start();
  {
    Task<void> second = Record(event, &order, 2);
    second.Start();
    third.Start();
  }
  event.Set();
  executor.RunUntilIdle();
  EXPECT_EQ(order, (std::vector<int>{1, 3}));
}

TEST(GateTest, CloseWaitsForEveryoneAndRefusesNewcomers) {
  SimExecutor executor(1);
  Gate gate(executor);
  std::vector<int> order;
  EXPECT_TRUE(executor.Spawn(gate, AppendAfter(executor, 500, &order, 1)));
  EXPECT_TRUE(executor.Spawn(gate, AppendAfter(executor, 100, &order, 2)));
  EXPECT_EQ(gate.inside(), 2U);
  auto close = [](Gate& g, std::vector<int>* out) -> Task<void> {
    co_await g.Close();
    out->push_back(99);
  };
  BlockOn(executor, close(gate, &order));
  EXPECT_EQ(order, (std::vector<int>{2, 1, 99}));
  EXPECT_EQ(gate.inside(), 0U);
  EXPECT_FALSE(gate.Enter());
  EXPECT_FALSE(executor.Spawn(gate, AppendAfter(executor, 0, &order, 3)));
  EXPECT_EQ(order.size(), 3U);
}

TEST(GateTest, ClosingAnEmptyGateDoesNotSuspend) {
  SimExecutor executor(1);
  Gate gate(executor);
  auto close = [](Gate& g) -> Task<void> { co_await g.Close(); };
  Task<void> task = close(gate);
  EXPECT_TRUE(task.Start());
}

TEST(GateTest, AHoldLeavesOnce) {
  SimExecutor executor(1);
  Gate gate(executor);
  GateHold hold = gate.Enter();
  GateHold moved = std::move(hold);
  EXPECT_EQ(gate.inside(), 1U);
  moved.Release();
  moved.Release();
  EXPECT_EQ(gate.inside(), 0U);
}

TEST(WhenAllTest, RunsAllAndWaitsForTheLast) {
  SimExecutor executor(1);
  std::vector<int> order;
  auto parent = [](Executor& e, std::vector<int>* out) -> Task<void> {
    std::vector<Task<void>> tasks;
    tasks.push_back(AppendAfter(e, 300, out, 1));
    tasks.push_back(AppendAfter(e, 0, out, 2));
    tasks.push_back(AppendAfter(e, 100, out, 3));
    co_await WhenAll(std::move(tasks));
    out->push_back(4);
  };
  BlockOn(executor, parent(executor, &order));
  EXPECT_EQ(order, (std::vector<int>{2, 3, 1, 4}));
  EXPECT_EQ(executor.NowNs(), 300U);
}

TEST(WhenAllTest, InlineChildrenDoNotSuspendTheParent) {
  SimExecutor executor(1);
  std::vector<int> order;
  auto parent = [](Executor& e, std::vector<int>* out) -> Task<void> {
    Task<void> tasks[2] = {AppendAfter(e, 0, out, 1), AppendAfter(e, 0, out, 2)};
    co_await WhenAll(std::span<Task<void>>(tasks));
    co_await WhenAll(std::vector<Task<void>>());
  };
  Task<void> task = parent(executor, &order);
  EXPECT_TRUE(task.Start());
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(WhenAllTest, AFixedSetReturnsATuple) {
  SimExecutor executor(1);
  std::vector<int> order;
  auto parent = [](Executor& e, std::vector<int>* out) -> Task<int> {
    auto [a, b, c] = co_await WhenAll(After(e, 50, 1), After(e, 0, 2), AppendAfter(e, 20, out, 9));
    static_assert(std::is_same_v<decltype(c), std::monostate>);
    co_return a * 10 + b;
  };
  EXPECT_EQ(BlockOn(executor, parent(executor, &order)), 12);
  EXPECT_EQ(executor.NowNs(), 50U);
}

struct Buffers {
  std::string text;
  std::shared_ptr<int> alive = std::make_shared<int>(0);
};

Task<void> Participate(Executor& executor, Quorum<Buffers>::Participant participant,
                       uint64_t delay_ns, bool success) {
  if (delay_ns > 0) co_await executor.SleepFor(delay_ns);
  participant.payload().text += success ? "+" : "-";
  participant.Report(success);
}

struct Outcome {
  bool success;
  uint64_t at_ns;
  std::weak_ptr<int> alive;
};

Task<Outcome> RunQuorum(Executor& executor, Gate& gate, std::vector<int64_t> delays_ns,
                        uint32_t needed) {
  Quorum<Buffers> quorum(executor, static_cast<uint32_t>(delays_ns.size()));
  const std::weak_ptr<int> alive = quorum.payload().alive;
  for (const int64_t delay : delays_ns) {
    // A negative delay fails after that long.
    const auto delay_ns = static_cast<uint64_t>(delay < 0 ? -delay : delay);
    executor.Spawn(gate, Participate(executor, quorum.Join(), delay_ns, delay >= 0));
  }
  const bool success = co_await quorum.Wait(needed);
  co_return Outcome{success, executor.NowNs(), alive};
}

Outcome RunOne(std::vector<int64_t> delays_ns, uint32_t needed, std::weak_ptr<int>* late) {
  SimExecutor executor(1);
  Gate gate(executor);
  Outcome outcome = BlockOn(executor, RunQuorum(executor, gate, std::move(delays_ns), needed));
  *late = outcome.alive;
  EXPECT_EQ(outcome.alive.expired(), gate.inside() == 0);
  executor.RunUntilIdle();
  EXPECT_TRUE(outcome.alive.expired()) << "the last straggler frees the state";
  return outcome;
}

TEST(QuorumTest, ReturnsAtTheMajorityWhileStragglersKeepTheirBuffers) {
  std::weak_ptr<int> alive;
  const Outcome outcome = RunOne({100, 300, 200}, 2, &alive);
  EXPECT_TRUE(outcome.success);
  EXPECT_EQ(outcome.at_ns, 200U);
}

TEST(QuorumTest, FailsAsSoonAsTheMajorityIsOutOfReach) {
  std::weak_ptr<int> alive;
  const Outcome outcome = RunOne({-100, 300, -200}, 2, &alive);
  EXPECT_FALSE(outcome.success);
  EXPECT_EQ(outcome.at_ns, 200U);
}

TEST(QuorumTest, InlineParticipantsDoNotSuspendTheWaiter) {
  SimExecutor executor(1);
  Gate gate(executor);
  Task<Outcome> task = RunQuorum(executor, gate, {0, 0, 0}, 2);
  EXPECT_TRUE(task.Start());
  EXPECT_TRUE(task.TakeResult().success);
}

TEST(QuorumTest, AParticipantDroppedWithoutAWordFails) {
  SimExecutor executor(1);
  auto run = [](Executor& e) -> Task<bool> {
    Quorum<> quorum(e, 2);
    { const auto dropped = quorum.Join(); }
    { const auto dropped = quorum.Join(); }
    co_return co_await quorum.Wait(1);
  };
  EXPECT_FALSE(BlockOn(executor, run(executor)));
}

TEST(QuorumTest, EveryPatternOfFourParticipantsDecidesAsEarlyAsPossible) {
  for (uint32_t needed = 0; needed <= 4; ++needed) {
    for (uint32_t mask = 0; mask < 16; ++mask) {
      SimExecutor executor(1);
      Gate gate(executor);
      std::vector<int64_t> delays_ns;
      uint32_t ok = 0;
      uint32_t failed = 0;
      uint64_t decided_at_ns = needed == 0 ? 0 : UINT64_MAX;
      for (int64_t i = 1; i <= 4; ++i) {
        const bool success = (mask >> (i - 1) & 1) != 0;
        delays_ns.push_back(success ? i * 10 : -i * 10);
        ++(success ? ok : failed);
        if (decided_at_ns == UINT64_MAX && (ok >= needed || failed > 4 - needed)) {
          decided_at_ns = static_cast<uint64_t>(i * 10);
        }
      }
      const Outcome outcome = BlockOn(executor, RunQuorum(executor, gate, delays_ns, needed));
      EXPECT_EQ(outcome.success, ok >= needed) << needed << " of mask " << mask;
      EXPECT_EQ(outcome.at_ns, decided_at_ns) << needed << " of mask " << mask;
      executor.RunUntilIdle();
    }
  }
}

}  // namespace
}  // namespace onetrip
