// Epochs and foreign frees between workers: when memory may come back, and that it comes back once.
#include <gtest/gtest.h>

#include <set>

#include "tests/support/memory_worker.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

constexpr SizeClass kClass(4);

// Several workers in one simulation.
class EpochTest : public testing::Test {
 protected:
  explicit EpochTest(uint64_t node_bytes = 16ULL << 20)
      : cluster_(executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = node_bytes}) {}

  std::unique_ptr<MemoryWorker> NewWorker(SimFabricOptions options = {}) {
    return std::make_unique<MemoryWorker>(cluster_, executor_,
                                          MakeSim(cluster_, executor_, options));
  }
  std::unique_ptr<MemoryWorker> NewJoinedWorker() {
    auto worker = NewWorker();
    worker->Join();
    return worker;
  }
  uint64_t& Word(GlobalAddr addr, int replica) {
    const RemoteAddr at = cluster_.master().view()->Locate(addr, replica);
    return *reinterpret_cast<uint64_t*>(cluster_.node(at.node.value).base() + at.offset);
  }
  void ExpectBitmapIsClear(GlobalAddr addr) {
    const GlobalAddr bitmap = addr.block_start() + BitmapOffset(addr.block());
    for (uint32_t word = 0; word < kBitmapWords; ++word) {
      for (int replica = 0; replica < 3; ++replica) {
        ASSERT_EQ(Word(bitmap + word * 8, replica), 0U) << "word " << word << " of " << replica;
      }
    }
  }

  SimExecutor executor_{1};
  TestCluster cluster_;
};

TEST_F(EpochTest, APinHoldsBackEveryWorkersMemory) {
  auto owner = NewJoinedWorker();
  auto reader = NewJoinedWorker();
  for (int round = 0; round < 20; ++round) {
    const GlobalAddr addr = owner->Allocate(kClass).value();
    EpochPin pin = reader->reclaimer().Pin();
    owner->allocator().Retire(addr, kClass);
    for (int i = 0; i < 10; ++i) {
      owner->Maintain();
      reader->Maintain();
      ASSERT_EQ(owner->allocator().retired_count(), 1U) << "round " << round;
    }
    pin.Release();
    for (int i = 0; i < 5; ++i) {
      owner->Maintain();
      reader->Maintain();
    }
    ASSERT_EQ(owner->allocator().retired_count(), 0U) << "round " << round;
  }
  reader->Leave();
  owner->Leave();
}

Task<void> PostAlone(Fabric* fabric, RoundTripPtr round_trip, Status* status) {
  *status = co_await fabric->Post(round_trip);
}

TEST_F(EpochTest, WhatFailedAndMayStillArriveHoldsMemoryBack) {
  auto owner = NewJoinedWorker();
  auto writer = NewWorker({.latency_min_ns = 5'000'000, .latency_max_ns = 5'000'000});
  writer->Join();
  Gate gate(executor_);
  for (int round = 0; round < 5; ++round) {
    const GlobalAddr addr = owner->Allocate(kClass).value();
    Status status;
    {
      // An operation that writes and whose connection breaks: it ends long before its WRITE
      // arrives.
      const EpochPin pin = writer->reclaimer().Pin();
      RoundTripPtr round_trip = writer->fabric().NewRoundTrip();
      const RemoteAddr at = cluster_.master().view()->Locate(addr, 2);
      round_trip->Faa(at, 1);
      executor_.Spawn(gate, PostAlone(&writer->fabric(), std::move(round_trip), &status));
      static_cast<SimFabric&>(writer->fabric()).BreakChannel(at.node);
      executor_.RunUntil(executor_.NowNs() + 100'000);
    }
    EXPECT_EQ(gate.inside(), 0U);
    EXPECT_EQ(status.code(), StatusCode::kUnknownOutcome);
    EXPECT_FALSE(writer->fabric().settled());
    owner->allocator().Retire(addr, kClass);
    for (int i = 0; i < 10; ++i) {
      EXPECT_EQ(BlockOn(executor_, writer->reclaimer().Tick({})).code(), StatusCode::kUnavailable);
      owner->Maintain();
      ASSERT_EQ(owner->allocator().retired_count(), 1U) << "round " << round;
    }
    executor_.RunUntil(executor_.NowNs() + 10'000'000);
    EXPECT_TRUE(writer->fabric().settled());
    for (int i = 0; i < 5; ++i) {
      writer->Maintain();
      owner->Maintain();
    }
    ASSERT_EQ(owner->allocator().retired_count(), 0U) << "round " << round;
  }
  writer->Leave();
  owner->Leave();
}

TEST_F(EpochTest, AnOwnPinHoldsMemoryBackToo) {
  auto worker = NewJoinedWorker();
  const GlobalAddr addr = worker->Allocate(kClass).value();
  EpochPin pin = worker->reclaimer().Pin();
  EpochPin moved = std::move(pin);
  worker->allocator().Retire(addr, kClass);
  for (int i = 0; i < 10; ++i) worker->Maintain();
  EXPECT_EQ(worker->allocator().retired_count(), 1U);
  moved.Release();
  for (int i = 0; i < 4; ++i) worker->Maintain();
  EXPECT_EQ(worker->allocator().retired_count(), 0U);
  worker->Leave();
}

TEST_F(EpochTest, AWorkerThatDoesNotTickHoldsMemoryBackUntilItLeaves) {
  auto owner = NewJoinedWorker();
  auto silent = NewJoinedWorker();
  owner->allocator().Retire(owner->Allocate(kClass).value(), kClass);
  for (int i = 0; i < 10; ++i) owner->Maintain();
  EXPECT_EQ(owner->allocator().retired_count(), 1U);
  silent->Leave();
  for (int i = 0; i < 4; ++i) owner->Maintain();
  EXPECT_EQ(owner->allocator().retired_count(), 0U);
  owner->Leave();
}

TEST_F(EpochTest, WorkersJoinNearEachOtherThoughOnlyOneKnowsThatAnotherDied) {
  auto dead = NewJoinedWorker();
  while (dead->reclaimer().current_epoch() < 9) dead->Maintain();
  const WorkerIndex seat = dead->context().membership.index;
  bool known = true;
  const auto publish = [&] {
    cluster_.master().AddEdit([&known, seat](View& view) { view.SetLive(seat, !known); });
  };
  auto knowing = NewWorker();
  auto late = NewWorker();
  publish();
  knowing->Join();
  known = false;
  publish();
  late->Join();
  known = true;
  publish();

  const GlobalAddr addr = knowing->Allocate(kClass).value();
  EpochPin pin = late->reclaimer().Pin();
  knowing->allocator().Retire(addr, kClass);
  for (int i = 0; i < 20; ++i) {
    knowing->Maintain();
    late->Maintain();
  }
  EXPECT_EQ(knowing->allocator().retired_count(), 1U);
  pin.Release();
  late->Leave();
  knowing->Leave();
}

Task<void> TickOften(MemoryWorker* worker, const bool* stop) {
  while (!*stop) {
    EXPECT_TRUE((co_await worker->reclaimer().Tick({})).ok());
    co_await worker->executor().SleepFor(100);
  }
}

// A worker that joins looks at the others' epochs and publishes its own; in between the others may
// go on by many epochs. What it unlinks then must still wait for their operations.
TEST_F(EpochTest, AWorkerThatJoinsSlowlyDoesNotReuseWhatOthersStillRead) {
  auto other = NewJoinedWorker();
  auto reader = NewJoinedWorker();
  bool stop = false;
  Gate gate(executor_);
  executor_.Spawn(gate, TickOften(other.get(), &stop));
  executor_.Spawn(gate, TickOften(reader.get(), &stop));
  auto joiner = NewWorker({.latency_min_ns = 50'000, .latency_max_ns = 60'000});
  joiner->Join();

  const GlobalAddr addr = joiner->Allocate(kClass).value();
  EpochPin pin = reader->reclaimer().Pin();
  joiner->allocator().Retire(addr, kClass);
  for (int i = 0; i < 20; ++i) {
    joiner->Maintain();
    ASSERT_EQ(joiner->allocator().retired_count(), 1U) << "tick " << i;
  }
  pin.Release();
  for (int i = 0; i < 5; ++i) joiner->Maintain();
  EXPECT_EQ(joiner->allocator().retired_count(), 0U);
  stop = true;
  BlockOn(executor_, [](Gate* all) -> Task<void> { co_await all->Close(); }(&gate));
  joiner->Leave();
  reader->Leave();
  other->Leave();
}

// The same while another worker joins: the table grows behind what the joiner reads.
TEST_F(EpochTest, TwoWorkersMayJoinSlowlyAtOnce) {
  auto other = NewJoinedWorker();
  auto reader = NewJoinedWorker();
  bool stop = false;
  Gate gate(executor_);
  executor_.Spawn(gate, TickOften(other.get(), &stop));
  executor_.Spawn(gate, TickOften(reader.get(), &stop));
  auto joiner = NewWorker({.latency_min_ns = 50'000, .latency_max_ns = 60'000});
  Task<Status> join = joiner->reclaimer().Join();
  ASSERT_FALSE(join.Start());
  // It has read the others' epochs, and its own is on its way.
  executor_.RunUntil(executor_.NowNs() + 150'000);
  ASSERT_FALSE(join.done());
  auto late = NewWorker({.latency_min_ns = 500'000, .latency_max_ns = 600'000});
  while (!join.done()) executor_.RunOnce();
  ASSERT_TRUE(join.TakeResult().ok());

  const GlobalAddr addr = joiner->Allocate(kClass).value();
  EpochPin pin = reader->reclaimer().Pin();
  joiner->allocator().Retire(addr, kClass);
  for (int i = 0; i < 20; ++i) {
    joiner->Maintain();
    ASSERT_EQ(joiner->allocator().retired_count(), 1U) << "tick " << i;
  }
  late->Join();
  pin.Release();
  for (int i = 0; i < 20; ++i) {
    joiner->Maintain();
    late->Maintain();
  }
  EXPECT_EQ(joiner->allocator().retired_count(), 0U);
  stop = true;
  BlockOn(executor_, [](Gate* all) -> Task<void> { co_await all->Close(); }(&gate));
  late->Leave();
  joiner->Leave();
  reader->Leave();
  other->Leave();
}

// The other way round: what others unlink waits for the operations of a worker that has just
// joined.
TEST_F(EpochTest, AWorkerThatHasJustJoinedIsWaitedFor) {
  auto owner = NewJoinedWorker();
  for (int i = 0; i < 50; ++i) owner->Maintain();
  auto joiner = NewWorker({.latency_min_ns = 5'000, .latency_max_ns = 60'000});
  bool stop = false;
  Gate gate(executor_);
  executor_.Spawn(gate, TickOften(owner.get(), &stop));
  joiner->Join();
  const GlobalAddr addr = owner->Allocate(kClass).value();
  EpochPin pin = joiner->reclaimer().Pin();
  owner->allocator().Retire(addr, kClass);
  for (int i = 0; i < 20; ++i) {
    joiner->Maintain();
    owner->Maintain();
    ASSERT_EQ(owner->allocator().retired_count(), 1U) << "tick " << i;
  }
  pin.Release();
  stop = true;
  BlockOn(executor_, [](Gate* all) -> Task<void> { co_await all->Close(); }(&gate));
  joiner->Leave();
  owner->Leave();
}

TEST_F(EpochTest, TheBacklogOfOthersIsKnown) {
  auto first = NewJoinedWorker();
  auto second = NewJoinedWorker();
  EXPECT_TRUE(BlockOn(executor_, first->reclaimer().Tick({.bytes = 12'345})).ok());
  EXPECT_TRUE(BlockOn(executor_, second->reclaimer().Tick({.bytes = 55})).ok());
  EXPECT_EQ(second->reclaimer().others_retired_bytes(), 12'345U);
  first->Leave();
  EXPECT_TRUE(BlockOn(executor_, second->reclaimer().Tick({.bytes = 55})).ok());
  EXPECT_EQ(second->reclaimer().others_retired_bytes(), 0U);
  second->Leave();
}

TEST_F(EpochTest, ObjectsFreedByAnotherWorkerComeBackToTheirOwnerOnce) {
  auto owner = NewJoinedWorker();
  auto other = NewJoinedWorker();
  std::vector<GlobalAddr> objects;
  objects.reserve(5000);
  for (int i = 0; i < 5000; ++i) objects.push_back(owner->Allocate(kClass).value());
  const uint64_t live_bytes = owner->allocator().metrics().live_bytes.Value();
  EXPECT_EQ(live_bytes, 5000 * kClass.bytes());
  // Both free, interleaved: two thirds by the other.
  for (size_t i = 0; i < objects.size(); ++i) {
    (i % 3 == 0 ? owner : other)->allocator().Retire(objects[i], kClass);
  }
  for (int i = 0; i < 20; ++i) {
    other->Maintain();
    owner->Maintain();
  }
  EXPECT_EQ(other->allocator().metrics().live_bytes.Value(), 0U);
  EXPECT_EQ(other->allocator().metrics().free_bytes.Value(), 0U);
  EXPECT_EQ(owner->allocator().metrics().live_bytes.Value(), 0U);
  for (const GlobalAddr addr : objects) ASSERT_NO_FATAL_FAILURE(ExpectBitmapIsClear(addr));
  // Each of them is handed out once.
  std::set<GlobalAddr> again;
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(again.insert(owner->Allocate(kClass).value()).second);
  for (const GlobalAddr addr : again) owner->allocator().Retire(addr, kClass);
  for (int i = 0; i < 5; ++i) {
    other->Maintain();
    owner->Maintain();
  }
  BlockOn(executor_, owner->allocator().Drain());
  EXPECT_EQ(owner->allocator().metrics().owned_bytes.Value(), 0U);
  EXPECT_EQ(ReadBlockTables(cluster_, WorkerId{0}).granted_blocks, 0U);
  owner->Leave();
  other->Leave();
}

Task<void> AllocateSome(MemoryWorker* worker, int count, std::vector<GlobalAddr>* objects) {
  for (int i = 0; i < count; ++i) {
    const Result<GlobalAddr> addr = co_await worker->allocator().Allocate(kClass);
    if (addr.ok()) objects->push_back(addr.value());
  }
}

// On a full pool several operations of one worker look for memory at once, in the same bitmaps.
TEST_F(EpochTest, ConcurrentAllocationsOnAFullPoolNeverGetTheSameObject) {
  auto owner = NewJoinedWorker();
  auto other = NewJoinedWorker();
  std::vector<GlobalAddr> objects;
  while (true) {
    const Result<GlobalAddr> addr = owner->Allocate(kClass);
    if (!addr.ok()) break;
    objects.push_back(addr.value());
  }
  std::set<GlobalAddr> live(objects.begin(), objects.end());
  ASSERT_EQ(live.size(), objects.size());
  // The other worker frees every 50th of them; the owner has not looked yet.
  constexpr size_t kStride = 50;
  size_t freed = 0;
  for (size_t i = 0; i < objects.size(); i += kStride) {
    other->allocator().Retire(objects[i], kClass);
    live.erase(objects[i]);
    ++freed;
  }
  for (int i = 0; i < 6; ++i) {
    other->Maintain();
    EXPECT_TRUE(BlockOn(executor_, owner->reclaimer().Tick({})).ok());
  }
  EXPECT_EQ(other->allocator().retired_count(), 0U);

  std::vector<GlobalAddr> got;
  std::vector<Task<void>> tasks;
  constexpr int kEach = 40;
  tasks.reserve(8);
  for (int i = 0; i < 8; ++i) tasks.push_back(AllocateSome(owner.get(), kEach, &got));
  BlockOn(executor_, [](std::vector<Task<void>> all) -> Task<void> {
    co_await WhenAll(std::move(all));
  }(std::move(tasks)));
  ASSERT_GT(freed, 8U * kEach);
  EXPECT_EQ(got.size(), 8U * kEach);
  for (const GlobalAddr addr : got) ASSERT_TRUE(live.insert(addr).second) << "given out twice";
  for (const GlobalAddr addr : objects) ASSERT_NO_FATAL_FAILURE(ExpectBitmapIsClear(addr));
  EXPECT_EQ(owner->allocator().metrics().live_bytes.Value(), live.size() * kClass.bytes());
  owner->Leave();
  other->Leave();
}

}  // namespace
}  // namespace onetrip
