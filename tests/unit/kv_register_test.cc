// Keys as registers, as Kv's callers see them: what operations cost, when a key turns into a record
// and back, how registers end, and that none of it leaks memory.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client_core/coro/sync.h"
#include "client_core/kv/core/registers.h"
#include "client_core/layout/register_layout.h"
#include "tests/support/index_worker.h"
#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr ClusterShape kShape{.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20};
constexpr uint64_t kMs = 1'000'000;

DataPathOptions Options(uint64_t register_cache_entries = 1 << 16) {
  DataPathOptions options;
  options.location_cache_bytes = 1 << 16;
  options.epoch_tick_us = 100;
  options.register_cache_entries = register_cache_entries;
  return options;
}

// Workers of engine swarm in one simulated world.
class World {
 public:
  explicit World(size_t workers, uint64_t seed = 1, const DataPathOptions& options = Options())
      : executor_(seed) {
    SimFabricOptions fabric;
    fabric.latency_min_ns = 500;
    fabric.latency_max_ns = seed % 2 == 0 ? 5000 : 600;
    for (size_t i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<TestWorker>(
          cluster_, executor_, std::make_unique<SimFabric>(executor_, cluster_.endpoints(), fabric),
          EngineKind::kSwarm, options));
      workers_.back()->Start();
    }
  }
  ~World() {
    for (auto& worker : workers_) worker->Stop();
  }

  SimExecutor& executor() { return executor_; }
  TestWorker& worker(size_t i) { return *workers_[i]; }

  // Lets what runs behind the operations come to its end.
  void Settle(uint64_t ms = 5) { executor_.RunUntil(executor_.NowNs() + ms * kMs); }
  IndexPicture Look() {
    Settle();
    return LookAtIndex(cluster_);
  }
  // How many keys are registers.
  size_t Registers() { return Look().registers; }
  uint64_t OwnedBytes() {
    uint64_t bytes = 0;
    for (auto& worker : workers_) bytes += worker->kv().metrics().allocator->owned_bytes.Value();
    return bytes;
  }
  int64_t Add(size_t worker, std::string_view key, int64_t addend) {
    AddMutation add(addend);
    CHECK(BlockOn(executor_, workers_[worker]->kv().ReadModifyWrite({0, key}, add)).ok());
    return add.sum();
  }

 private:
  SimExecutor executor_;
  TestCluster cluster_{executor_.clock(), kShape};
  std::vector<std::unique_ptr<TestWorker>> workers_;
};

TEST(KvRegisters, SetGetAndDelTakeOneRoundTripEach) {
  World world(2);
  TestWorker& a = world.worker(0);
  StoreMetrics& metrics = a.kv().metrics();
  ASSERT_TRUE(a.Set("k", "v").ok());
  world.Settle();
  metrics.set_round_trips.Reset();
  ASSERT_TRUE(a.Set("k", "w").ok());
  EXPECT_EQ(metrics.set_round_trips.Sum(), 1U);
  world.Settle();  // the in-place copy is written behind the operation
  EXPECT_EQ(a.Get("k"), "w");
  EXPECT_EQ(metrics.get_round_trips.Sum(), 1U);
  EXPECT_EQ(a.CountKeys(), 1U);
  EXPECT_TRUE(a.Delete("k"));
  EXPECT_EQ(metrics.del_round_trips.Sum(), 1U);
  world.Settle();
  EXPECT_EQ(a.CountKeys(), 0U);
  EXPECT_EQ(a.Get("k"), "(nil)");
  EXPECT_EQ(world.worker(1).Get("k"), "(nil)");
  EXPECT_FALSE(a.Delete("k"));
  EXPECT_EQ(metrics.registers_dropped.Value(), 1U);
}

Task<void> DeleteKey(Kv* kv, std::string_view key, int* removed) {
  bool existed = false;
  const Status status = co_await kv->Delete({0, key}, &existed);
  CHECK(status.ok());
  *removed += existed ? 1 : 0;
}

TEST(KvRegisters, OfTwoDeletersOneIsCounted) {
  const int seeds = Scaled(300);
  for (int seed = 1; seed <= seeds; ++seed) {
    World world(2, static_cast<uint64_t>(seed));
    ASSERT_TRUE(world.worker(0).Set("k", "v").ok());
    ASSERT_EQ(world.worker(1).Get("k"), "v");
    int removed = 0;
    Gate gate(world.executor());
    for (size_t i = 0; i < 2; ++i) {
      world.executor().Spawn(gate, DeleteKey(&world.worker(i).kv(), "k", &removed));
    }
    world.Settle(20);
    ASSERT_EQ(gate.inside(), 0U) << "seed " << seed;
    ASSERT_EQ(removed, 1) << "seed " << seed;
    ASSERT_EQ(world.worker(0).CountKeys(), 0U) << "seed " << seed;
    ASSERT_EQ(world.worker(1).Get("k"), "(nil)") << "seed " << seed;
  }
}

// Appends `bytes` bytes, and says before that it will be `growth`; or changes nothing.
class Appending final : public Mutation {
 public:
  Appending(std::optional<uint64_t> growth, size_t bytes) : growth_(growth), more_(bytes, 'x') {}
  Change Apply(const RecordView* current) override {
    if (more_.empty()) return Change::Keep();
    return Change::Write({.head = current == nullptr ? "" : current->value, .tail = more_});
  }
  [[nodiscard]] std::optional<uint64_t> growth() const override { return growth_; }

 private:
  const std::optional<uint64_t> growth_;
  const std::string more_;
};

// The round trips that it takes to apply `mutation` to "k", which is a register.
// The index leads to the slot, and the slot to key and value at once.
TEST(KvRegisters, AGetOfAnUnknownRegisterTakesTwoRoundTrips) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    World world(2, seed);
    const std::string value(64, static_cast<char>('a' + seed));
    for (int i = 0; i < 30; ++i) {
      const std::string key = "k" + std::to_string(i);
      ASSERT_TRUE(world.worker(0).Set(key, value).ok());
      world.Settle();
      StoreMetrics& metrics = world.worker(1).kv().metrics();
      metrics.get_round_trips.Reset();
      ASSERT_EQ(world.worker(1).Get(key), value);
      ASSERT_EQ(metrics.get_round_trips.Sum(), 2U);
    }
  }
}

// The worker has to forget the register, but not where it is, and finds its own last word in its
// lane when it looks at the key again.
TEST(KvRegisters, ASetOfAForgottenRegisterTakesTwoRoundTrips) {
  World world(1, 1, Options(/*register_cache_entries=*/1));
  TestWorker& a = world.worker(0);
  ASSERT_TRUE(a.Set("k", "v").ok());
  ASSERT_TRUE(a.Set("other", "v").ok());
  ASSERT_EQ(a.Get("k"), "v");
  ASSERT_TRUE(a.Set("other", "w").ok());
  world.Settle();
  StoreMetrics& metrics = a.kv().metrics();
  metrics.set_round_trips.Reset();
  ASSERT_TRUE(a.Set("k", "w").ok());
  EXPECT_EQ(metrics.set_round_trips.Sum(), 2U);
  EXPECT_EQ(a.Get("k"), "w");
}

uint64_t RoundTripsToChange(World& world, Mutation& mutation) {
  TestWorker& a = world.worker(0);
  CHECK(a.Set("k", "v").ok());
  CHECK(a.Set("k", "v").ok());
  world.Settle();
  a.kv().metrics().rmw_round_trips.Reset();
  CHECK(BlockOn(world.executor(), a.kv().ReadModifyWrite({0, "k"}, mutation)).ok());
  return a.kv().metrics().rmw_round_trips.Sum();
}

TEST(KvRegisters, AnInsertTakesThreeRoundTrips) {
  World world(1);
  TestWorker& a = world.worker(0);
  ASSERT_TRUE(a.Set("another", "v").ok());
  StoreMetrics& metrics = a.kv().metrics();
  metrics.set_round_trips.Reset();
  ASSERT_TRUE(a.Set("k", "v").ok());
  EXPECT_EQ(metrics.set_round_trips.Sum(), 3U);
}

TEST(KvRegisters, AChangeTakesFourRoundTripsAndOneMoreIfItMayBeNone) {
  World world(1);
  Appending likely(3, 3);
  EXPECT_EQ(RoundTripsToChange(world, likely), 4U);
  EXPECT_EQ(world.worker(0).Get("k"), "vxxx");
  Appending unlikely(std::nullopt, 3);
  EXPECT_EQ(RoundTripsToChange(world, unlikely), 5U);
  EXPECT_EQ(world.worker(0).Get("k"), "vxxx");
  EXPECT_EQ(world.Registers(), 0U);
  Appending none(std::nullopt, 0);
  EXPECT_EQ(RoundTripsToChange(world, none), 2U);
  EXPECT_EQ(world.Registers(), 1U);
}

TEST(KvRegisters, AChangeThatFindsNoRoomInTheRecordThatItSaidIsMadeBehindIt) {
  World world(1);
  for (const std::optional<uint64_t> growth :
       {std::optional<uint64_t>(0), std::optional<uint64_t>(1 << 30)}) {
    Appending larger(growth, 5000);
    EXPECT_GT(RoundTripsToChange(world, larger), 4U);
    EXPECT_EQ(world.worker(0).Get("k"), "v" + std::string(5000, 'x'));
  }
  EXPECT_EQ(world.Registers(), 0U);
}

TEST(KvRegisters, ASetWithADeadlineTakesTheRegistersPlaceInFourRoundTrips) {
  World world(2);
  TestWorker& a = world.worker(0);
  ASSERT_TRUE(a.Set("k", "v").ok());
  world.Settle();
  StoreMetrics& metrics = a.kv().metrics();
  metrics.set_round_trips.Reset();
  NewRecord record;
  record.head = "timed";
  record.deadline_ms = a.kv().NowMs() + 100'000;
  ASSERT_TRUE(BlockOn(world.executor(), a.kv().Set({0, "k"}, record)).ok());
  EXPECT_EQ(metrics.set_round_trips.Sum(), 4U);
  EXPECT_EQ(world.worker(1).Get("k"), "timed");
  EXPECT_EQ(world.Registers(), 0U);
  EXPECT_EQ(a.CountKeys(), 1U);
}

TEST(KvRegisters, AnIncrementTurnsOneIntoARecordAndTwoSetsTurnItBack) {
  World world(2);
  TestWorker& a = world.worker(0);
  ASSERT_TRUE(a.Set("k", "41").ok());
  EXPECT_EQ(world.worker(1).Get("k"), "41");
  EXPECT_EQ(world.Registers(), 1U);
  EXPECT_EQ(world.Add(1, "k", 1), 42);
  EXPECT_EQ(world.Registers(), 0U);
  EXPECT_EQ(world.worker(1).kv().metrics().registers_thawed.Value(), 1U);
  EXPECT_EQ(a.Get("k"), "42") << "by a cache that still knows the register";
  ASSERT_TRUE(a.Set("k", "50").ok());
  EXPECT_EQ(world.Registers(), 0U) << "a counter that is set once stays a record";
  ASSERT_TRUE(a.Set("k", "60").ok());
  EXPECT_EQ(world.Registers(), 1U);
  EXPECT_EQ(world.worker(1).Get("k"), "60");
  EXPECT_EQ(world.Add(0, "k", 5), 65);
  EXPECT_EQ(a.CountKeys(), 1U);
  EXPECT_EQ(world.Look().objects, 1U);
}

TEST(KvRegisters, AnIncrementThatStartsAKeyMakesARecord) {
  World world(1);
  EXPECT_EQ(world.Add(0, "k", 7), 7);
  EXPECT_EQ(world.Registers(), 0U);
  EXPECT_EQ(world.worker(0).kv().metrics().registers_thawed.Value(), 0U);
}

TEST(KvRegisters, ValuesMayOutgrowThem) {
  World world(2);
  for (const size_t bytes : {10U, 100U, 1000U, 1025U, 4000U, 8192U, 20U, 8193U, 5U, 5U}) {
    const std::string value(bytes, static_cast<char>('a' + bytes % 26));
    ASSERT_TRUE(world.worker(0).Set("k", value).ok()) << bytes;
    ASSERT_EQ(world.worker(1).Get("k"), value) << bytes;
    ASSERT_EQ(world.worker(0).Get("k"), value) << bytes;
  }
  EXPECT_EQ(world.Registers(), 1U);
  EXPECT_EQ(world.worker(0).CountKeys(), 1U);
  EXPECT_TRUE(world.worker(1).Delete("k"));
  EXPECT_EQ(world.worker(0).Get("k"), "(nil)");
  EXPECT_EQ(world.Look().objects, 0U);
}

TEST(KvRegisters, LongKeysAndLargeValuesAreRecords) {
  World world(1);
  TestWorker& a = world.worker(0);
  const std::string longest(kRegisterKeyBytesMax, 'k');
  const std::string largest(kRegisterValueBytesMax, 'v');
  ASSERT_TRUE(a.Set(longest, largest).ok());
  EXPECT_EQ(world.Registers(), 1U);
  ASSERT_TRUE(a.Set(longest + "k", "v").ok());
  ASSERT_TRUE(a.Set("k", largest + "v").ok());
  EXPECT_EQ(world.Registers(), 1U);
  EXPECT_EQ(world.Look().objects, 3U);
  EXPECT_EQ(a.Get(longest), largest);
  EXPECT_EQ(a.Get(longest + "k"), "v");
  EXPECT_EQ(a.Get("k"), largest + "v");
}

// A register whose timestamps run out is registered anew under those who write to it.
TEST(KvRegisters, OneAtTheEndOfItsTimestampsIsRegisteredAnew) {
  World world(2);
  ASSERT_TRUE(world.worker(0).Set("k", "first").ok());
  ASSERT_EQ(world.worker(1).Get("k"), "first");
  constexpr uint64_t kTicksLeft = 50;
  world.executor().manual_clock().Advance(
      ((uint64_t{kRegisterTimeEnd} - kTicksLeft) << kTickShift) - 10 * kMs);
  world.Settle();
  EXPECT_EQ(world.worker(1).Get("k"), "first");
  // Past the end, by either worker, and a reader that has its entry from before.
  for (int i = 0; i < 40; ++i) {
    world.Settle(1);
    const std::string value = "v" + std::to_string(i);
    ASSERT_TRUE(world.worker(i % 2).Set("k", value).ok()) << i;
    ASSERT_EQ(world.worker((i + 1) % 2).Get("k"), value) << i;
  }
  const IndexPicture after = world.Look();
  EXPECT_EQ(after.objects, 1U);
  ASSERT_EQ(after.buffers.size(), 1U) << "a register again";
  uint64_t thawed = 0;
  for (int i = 0; i < 2; ++i) thawed += world.worker(i).kv().metrics().registers_thawed.Value();
  EXPECT_GE(thawed, 1U) << "and another one";
  EXPECT_EQ(world.worker(0).CountKeys(), 1U);
  EXPECT_TRUE(world.worker(1).Delete("k"));
  EXPECT_EQ(world.worker(0).Get("k"), "(nil)");
}

TEST(KvRegisters, MoreOfThemThanTheCacheHoldsAreServed) {
  constexpr int kKeys = 60;
  World world(2, 1, Options(/*register_cache_entries=*/2));
  std::vector<std::string> expected(kKeys, "(nil)");
  for (int round = 0; round < 8; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = "k" + std::to_string(i);
      TestWorker& worker = world.worker((i + round) % 2);
      if ((i + round) % 5 == 0) {
        EXPECT_EQ(worker.Delete(key), expected[i] != "(nil)") << key << " round " << round;
        expected[i] = "(nil)";
      } else {
        expected[i] = key + "r" + std::to_string(round);
        ASSERT_TRUE(worker.Set(key, expected[i]).ok());
      }
    }
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = "k" + std::to_string(i);
      ASSERT_EQ(world.worker(i % 2).Get(key), expected[i]) << key << " round " << round;
    }
  }
}

class KvRegisterChurn : public testing::TestWithParam<size_t> {
 protected:
  // The most that the workers own after each of `parts` equal parts of the work.
  template <typename Step>
  static void ExpectFlat(World& world, int steps, Step step) {
    const auto run = [&] {
      for (int i = 0; i < steps; ++i) {
        step(i);
        if (i % 100 == 99) world.Settle(1);
      }
      world.Settle();
      return world.OwnedBytes();
    };
    const uint64_t warm = run();
    for (int part = 0; part < 4; ++part) EXPECT_LE(run(), warm) << "part " << part;
  }
};

TEST_P(KvRegisterChurn, OverwritesReuseWhatTheyLeave) {
  const size_t workers = GetParam();
  World world(workers);
  const std::string value(200, 'v');
  ExpectFlat(world, Scaled(4000), [&](int i) {
    ASSERT_TRUE(world.worker(i % workers).Set("k" + std::to_string(i % 5), value).ok()) << i;
  });
}

TEST_P(KvRegisterChurn, InsertsAndDeletesReuseWhatTheyLeave) {
  const size_t workers = GetParam();
  World world(workers);
  const std::string value(200, 'v');
  ExpectFlat(world, Scaled(3000), [&](int i) {
    const std::string key = "k" + std::to_string(i % 7);
    ASSERT_TRUE(world.worker(i % workers).Set(key, value).ok()) << i;
    ASSERT_TRUE(world.worker((i + i / 7) % workers).Delete(key)) << i;
  });
  EXPECT_EQ(world.Look().objects, 0U);
}

TEST_P(KvRegisterChurn, FreezesAndThawsReuseWhatTheyLeave) {
  const size_t workers = GetParam();
  World world(workers);
  ExpectFlat(world, Scaled(2000), [&](int i) {
    ASSERT_TRUE(world.worker(i % workers).Set("k", "1").ok()) << i;
    ASSERT_TRUE(world.worker(i % workers).Set("k", "2").ok()) << i;
    ASSERT_EQ(world.Add((i + 1) % workers, "k", 1), 3) << i;
  });
}

INSTANTIATE_TEST_SUITE_P(Workers, KvRegisterChurn, testing::Values(1, 2),
                         [](const auto& info) { return std::to_string(info.param); });

TEST(KvRegisters, AFlushSweepsThem) {
  constexpr int kKeys = 300;
  World world(2);
  TestWorker& a = world.worker(0);
  for (int round = 1; round <= 3; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_TRUE(world.worker(i % 2).Set("k" + std::to_string(i), "v").ok());
    }
    EXPECT_EQ(world.Registers(), size_t{kKeys});
    ASSERT_TRUE(BlockOn(world.executor(), a.kv().Flush(0)).ok());
    EXPECT_EQ(a.CountKeys(), 0U);
    EXPECT_EQ(world.worker(1).Get("k1"), "(nil)") << "though it has cached the register";
    world.Settle(500);
    EXPECT_EQ(a.kv().metrics().swept.Value(), uint64_t{kKeys} * round);
    EXPECT_EQ(world.Look().objects, 0U);
  }
}

}  // namespace
}  // namespace onetrip
