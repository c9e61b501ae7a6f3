// Several processes in one simulated world: pausing, dying, and clocks that disagree.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client_core/coro/sim_executor.h"
#include "client_core/coro/sync.h"

namespace onetrip {
namespace {

struct Journal {
  std::string text;
  void Add(char name) { text += name; }
};

Task<void> Tick(Executor& executor, char name, uint64_t every_ns, int times, Journal* journal) {
  for (int i = 0; i < times; ++i) {
    co_await executor.SleepFor(every_ns);
    journal->Add(name);
  }
}

// Counts how many live, so that a test sees frames go.
struct Alive {
  explicit Alive(int* counter) : count(counter) { ++*count; }
  Alive(const Alive&) = delete;
  Alive& operator=(const Alive&) = delete;
  ~Alive() { --*count; }
  int* count;
};

Task<void> Child(Executor& executor, int* alive) {
  const Alive here(alive);
  co_await executor.SleepFor(1000);
}

Task<void> Parent(Executor& executor, int* alive) {
  const Alive here(alive);
  co_await Child(executor, alive);
}

TEST(SimProcessTest, ProcessesShareTheWorldsTime) {
  SimExecutor world(1);
  SimProcess a(world, 1);
  SimProcess b(world, 2);
  Gate gate(world);
  Journal journal;
  a.Spawn(gate, Tick(a, 'a', 10, 3, &journal));
  b.Spawn(gate, Tick(b, 'b', 14, 2, &journal));
  EXPECT_TRUE(world.RunUntilIdle());
  EXPECT_EQ(journal.text, "ababa");
  EXPECT_EQ(world.NowNs(), 30U);
}

TEST(SimProcessTest, APausedProcessGoesOnWhereItStopped) {
  SimExecutor world(1);
  SimProcess process(world, 1);
  Gate gate(world);
  Journal journal;
  process.Spawn(gate, Tick(process, 'x', 10, 3, &journal));
  world.RunUntil(15);
  process.Pause();
  world.RunUntil(500);
  EXPECT_EQ(journal.text, "x");
  process.Resume();
  EXPECT_TRUE(world.RunUntilIdle());
  EXPECT_EQ(journal.text, "xxx");
  EXPECT_EQ(world.NowNs(), 510U);
}

TEST(SimProcessTest, ADeadProcessNeverRunsAndItsFramesCanBeFreed) {
  SimExecutor world(1);
  SimProcess process(world, 1);
  Gate gate(world);
  int alive = 0;
  process.Spawn(gate, Parent(process, &alive));
  EXPECT_EQ(alive, 2);
  process.Kill();
  EXPECT_TRUE(world.RunUntilIdle());
  EXPECT_EQ(alive, 2);
  EXPECT_EQ(gate.inside(), 1U);
  process.DropBackground();
  EXPECT_EQ(alive, 0);
  EXPECT_EQ(gate.inside(), 0U);
}

TEST(SimProcessTest, SkewedClocksFireTimersByTheirOwnTime) {
  SimExecutor world(1);
  world.manual_clock().AdvanceTo(1'000'000);
  SimProcess fast(world, 1);
  fast.skewed_clock().SetDriftPpm(100'000);
  Gate gate(world);
  Journal journal;
  fast.Spawn(gate, Tick(fast, 'f', 1'100'000, 1, &journal));
  EXPECT_TRUE(world.RunUntilIdle());
  EXPECT_EQ(world.NowNs(), 2'000'000U);
  EXPECT_GE(fast.NowNs(), 2'100'000U);

  fast.skewed_clock().SetDriftPpm(0);
  fast.skewed_clock().Step(5000);
  EXPECT_EQ(fast.NowNs(), world.NowNs() + 105'000);
  // A step back holds the clock still until time has caught up.
  const uint64_t before = fast.NowNs();
  fast.skewed_clock().Step(-3000);
  EXPECT_EQ(fast.NowNs(), before);
  world.RunUntil(world.NowNs() + 1000);
  EXPECT_EQ(fast.NowNs(), before);
  world.RunUntil(world.NowNs() + 2500);
  EXPECT_EQ(fast.NowNs(), before + 500);
}

TEST(SimProcessTest, WorldTimeOfALocalTimeIsTheFirstAtWhichTheClockShowsIt) {
  SimExecutor world(1);
  SkewedClock clock(world.manual_clock());
  Rng rng(3);
  for (int round = 0; round < 300; ++round) {
    clock.SetDriftPpm(static_cast<int64_t>(rng.Below(400'000)) - 200'000);
    clock.Step(static_cast<int64_t>(rng.Below(2000)) - 1000);
    const uint64_t local_ns = clock.NowNs() + 1 + rng.Below(3'000'000);
    const uint64_t world_ns = clock.WorldNs(local_ns);
    ASSERT_GT(world_ns, world.NowNs()) << round;
    world.manual_clock().AdvanceTo(world_ns - 1);
    ASSERT_LT(clock.NowNs(), local_ns) << round;
    world.manual_clock().AdvanceTo(world_ns);
    ASSERT_GE(clock.NowNs(), local_ns) << round;
  }
}

// A turn of `steps` steps, between which the process stands still.
Task<void> Step(SimExecutor& world, SimProcess& process, char name, uint64_t step_ns, int steps,
                Journal* journal) {
  for (int i = 0; i < steps; ++i) {
    world.StandStill(process, step_ns);
    journal->Add(name);
  }
  co_return;
}

TEST(SimProcessTest, TurnsThatStandStillGoOnInTheOrderOfTime) {
  SimExecutor world(1);
  SimProcess a(world, 1);
  SimProcess b(world, 2);
  SimProcess c(world, 3);
  for (SimProcess* process : {&a, &b, &c}) process->UseOwnStack();
  Gate gate(world);
  Journal journal;
  a.Spawn(gate, Step(world, a, 'a', 100, 3, &journal));
  b.Spawn(gate, Step(world, b, 'b', 70, 5, &journal));
  c.Spawn(gate, Tick(c, 'c', 145, 1, &journal));
  EXPECT_EQ(gate.inside(), 3U);
  EXPECT_TRUE(world.RunUntilIdle());
  // b at 70, 140, 210, 280, 350; a at 100, 200, 300; c at 145.
  EXPECT_EQ(journal.text, "babcabbab");
  EXPECT_EQ(gate.inside(), 0U);
  EXPECT_EQ(world.held_up_max_ns(), 0U);
}

// An agent that spins in turn after turn, or in one, does not keep another one from its own.
TEST(SimProcessTest, ATurnGoesOnWhenItsTimeHasComeWhoeverElseSpins) {
  SimExecutor world(1);
  SimProcess waits(world, 1);
  SimProcess spins(world, 2);
  for (SimProcess* process : {&waits, &spins}) process->UseOwnStack();
  Gate gate(world);
  Journal journal;
  waits.Spawn(gate, Step(world, waits, 'w', 50, 1, &journal));
  spins.Spawn(gate, Step(world, spins, 's', 10, 1000, &journal));
  EXPECT_TRUE(world.RunUntilIdle());
  EXPECT_EQ(journal.text.find('w'), 4U);
}

TEST(SimProcessTest, TheWorldWaitsForTheEndOfATurnAndTheTurnHurries) {
  SimExecutor world(1);
  SimProcess process(world, 1);
  process.UseOwnStack();
  Gate gate(world);
  Journal journal;
  process.Spawn(gate, Step(world, process, 't', 1'000'000, 3, &journal));
  world.At(
      100, [](void* arg) { static_cast<Journal*>(arg)->Add('w'); }, &journal);
  EXPECT_TRUE(world.RunUntilIdle());
  EXPECT_EQ(journal.text, "tttw");
  EXPECT_LT(world.NowNs(), 1000U);
  EXPECT_EQ(world.held_up_max_ns(), world.NowNs() - 100);
}

Task<void> YieldAgainAndAgain(SimExecutor& world, SimProcess& process, int times) {
  for (int i = 0; i < times; ++i) {
    world.StandStill(process, 10);
    co_await process.Yield();
  }
}

TEST(SimProcessTest, TimersFireAlthoughCoroutinesThatTakeTimeYieldAgainAndAgain) {
  SimExecutor world(1);
  SimProcess process(world, 1);
  process.UseOwnStack();
  Gate gate(world);
  Journal journal;
  process.Spawn(gate, Tick(process, 't', 100, 3, &journal));
  process.Spawn(gate, YieldAgainAndAgain(world, process, 40));
  world.RunUntil(320);
  EXPECT_EQ(journal.text, "ttt");
  EXPECT_TRUE(world.RunUntilIdle());
}

TEST(SimProcessTest, WhoIsKilledAmidATurnEndsItAtOnce) {
  SimExecutor world(1);
  SimProcess process(world, 1);
  process.UseOwnStack();
  Gate gate(world);
  Journal journal;
  process.Spawn(gate, Step(world, process, 't', 1000, 3, &journal));
  world.RunUntil(1500);
  EXPECT_EQ(journal.text, "t");
  process.Kill();
  EXPECT_EQ(journal.text, "ttt");
  EXPECT_TRUE(world.RunUntilIdle());
  EXPECT_EQ(world.NowNs(), 1500U);
}

TEST(SimProcessTest, WhatAPausedProcessBeginsDoesNotStandStill) {
  SimExecutor world(1);
  SimProcess process(world, 1);
  process.UseOwnStack();
  Gate gate(world);
  Journal journal;
  process.Pause();
  EXPECT_TRUE(process.Spawn(gate, Step(world, process, 't', 1000, 2, &journal)));
  EXPECT_EQ(journal.text, "tt");
}

}  // namespace
}  // namespace onetrip
