// Kv over the simulated fabric: round trips as the paper counts them, and histories of several
// workers, checked for linearizability, over thousands of seeds.
#include <gtest/gtest.h>

#include <array>
#include <charconv>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client_core/coro/sync.h"
#include "client_core/layout/index_layout.h"
#include "tests/support/linearizability.h"
#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr ClusterShape kShape{.nodes = 3, .replicas = 3, .node_bytes = 48ULL << 20};

// Several workers in one simulated world.
class World {
 public:
  World(uint64_t seed, size_t workers, SimFabricOptions options = {}) : executor_(seed) {
    DataPathOptions data_path;
    data_path.location_cache_bytes = 1 << 16;
    data_path.epoch_tick_us = 1000;
    for (size_t i = 0; i < workers; ++i) {
      workers_.push_back(std::make_unique<TestWorker>(
          cluster_, executor_,
          std::make_unique<SimFabric>(executor_, cluster_.endpoints(), options),
          EngineKind::kSnapshot, data_path));
      workers_.back()->Start();
    }
  }
  ~World() {
    for (auto& worker : workers_) worker->Stop();
  }

  SimExecutor& executor() { return executor_; }
  TestCluster& cluster() { return cluster_; }
  TestWorker& worker(size_t i) { return *workers_[i]; }
  [[nodiscard]] size_t size() const { return workers_.size(); }

 private:
  SimExecutor executor_;
  TestCluster cluster_{executor_.clock(), kShape};
  std::vector<std::unique_ptr<TestWorker>> workers_;
};

uint64_t RoundTripsOf(const Histogram& histogram) { return histogram.Sum(); }

TEST(RoundTrips, AreAsThePaperStatesThem) {
  World world(1, 2);
  TestWorker& a = world.worker(0);
  TestWorker& b = world.worker(1);
  StoreMetrics& metrics = a.kv().metrics();
  const StoreMetrics& others = b.kv().metrics();

  EXPECT_EQ(a.Get("k"), "(nil)");
  EXPECT_EQ(RoundTripsOf(metrics.get_round_trips), 1U) << "a miss";
  ASSERT_TRUE(a.Set("k", "v").ok());
  EXPECT_EQ(RoundTripsOf(metrics.set_round_trips), 3U) << "an insert";
  metrics.get_round_trips.Reset();
  metrics.set_round_trips.Reset();

  EXPECT_EQ(a.Get("k"), "v");
  EXPECT_EQ(RoundTripsOf(metrics.get_round_trips), 1U) << "a valid cached location";
  EXPECT_EQ(b.Get("k"), "v");
  EXPECT_EQ(RoundTripsOf(others.get_round_trips), 2U) << "no cached location";

  ASSERT_TRUE(a.Set("k", "w").ok());
  EXPECT_EQ(RoundTripsOf(metrics.set_round_trips), 3U) << "an update";
  EXPECT_EQ(b.Get("k"), "w");
  EXPECT_EQ(RoundTripsOf(others.get_round_trips), 4U)
      << "a cached location that is stale: two more";

  AddMutation add(1);
  ASSERT_TRUE(BlockOn(world.executor(), a.kv().ReadModifyWrite({0, "k"}, add)).ok());
  EXPECT_EQ(RoundTripsOf(metrics.rmw_round_trips), 3U)
      << "read; write and CAS the backups; CAS the primary";
  EXPECT_TRUE(a.Delete("k"));
  EXPECT_EQ(RoundTripsOf(metrics.del_round_trips), 3U) << "read, CAS backups, CAS primary";
}

// A client may do these, with integers for values.
enum class Kind : uint8_t {
  kGet,
  kSet,
  kDelete,
  kAdd,    // a missing key counts as 0
  kSetNx,  // stores if missing
};
constexpr size_t kKinds = 5;

struct ClientOp {
  Kind kind = Kind::kGet;
  int64_t argument = 0;
  std::optional<int64_t> answer = std::nullopt;  // the value, the sum, or 1 or 0
};

Command CommandOf(const ClientOp& op, const std::string& key) {
  static constexpr std::array<const char*, kKinds> kNames = {"GET", "SET", "DEL", "INCRBY",
                                                             "SETNX"};
  Command argv = {kNames[static_cast<size_t>(op.kind)], key};
  if (op.kind != Kind::kGet && op.kind != Kind::kDelete) {
    argv.push_back(std::to_string(op.argument));
  }
  return argv;
}

std::string ReplyOf(const ClientOp& op) {
  if (op.kind == Kind::kSet) return std::string(kRespOk);
  if (op.kind != Kind::kGet) return RespInteger(*op.answer);
  return op.answer.has_value() ? RespBulk(std::to_string(*op.answer)) : std::string(kRespNil);
}

struct Recorder {
  History history;
  size_t keys = 1;
  uint32_t clients_running = 0;
};

struct ClientOptions {
  uint32_t id = 0;
  int operations = 8;
  std::vector<Kind> kinds;
};

class SetNxMutation final : public Mutation {
 public:
  explicit SetNxMutation(int64_t value) : text_(std::to_string(value)) {}
  Change Apply(const RecordView* current) override {
    stored_ = current == nullptr;
    if (!stored_) return Change::Keep();
    NewRecord record;
    record.head = text_;
    return Change::Write(record);
  }
  [[nodiscard]] bool stored() const { return stored_; }

 private:
  std::string text_;
  bool stored_ = false;
};

Task<Status> Execute(Kv& kv, std::string_view key, ClientOp* op) {
  switch (op->kind) {
    case Kind::kGet: {
      ReadResult result;
      const Status status = co_await kv.Get({0, key}, &result);
      if (!status.ok()) co_return status;
      if (result.found()) {
        int64_t value = 0;
        const std::string_view text = result.record().value;
        std::from_chars(text.data(), text.data() + text.size(), value);
        op->answer = value;
      }
      co_return status;
    }
    case Kind::kSet: {
      const std::string text = std::to_string(op->argument);
      NewRecord record;
      record.head = text;
      co_return co_await kv.Set({0, key}, record);
    }
    case Kind::kDelete: {
      bool existed = false;
      const Status status = co_await kv.Delete({0, key}, &existed);
      op->answer = existed ? 1 : 0;
      co_return status;
    }
    case Kind::kAdd: {
      AddMutation add(op->argument);
      const Status status = co_await kv.ReadModifyWrite({0, key}, add);
      op->answer = add.sum();
      co_return status;
    }
    case Kind::kSetNx: {
      SetNxMutation set(op->argument);
      const Status status = co_await kv.ReadModifyWrite({0, key}, set);
      op->answer = set.stored() ? 1 : 0;
      co_return status;
    }
  }
  co_return Status::Ok();
}

Task<void> RunClient(Executor& executor, Kv& kv, Recorder& recorder, ClientOptions options) {
  for (int i = 0; i < options.operations; ++i) {
    co_await executor.SleepFor(executor.rng().Below(4000));
    const std::string key = "key" + std::to_string(executor.rng().Below(recorder.keys));
    ClientOp op;
    op.kind = options.kinds[executor.rng().Below(options.kinds.size())];
    op.argument = op.kind == Kind::kAdd ? 1 : 1000 * (options.id + 1) + i;
    const size_t index =
        recorder.history.Start(options.id, CommandOf(op, key), executor.clock().NowNs());
    const Status status = co_await Execute(kv, key, &op);
    CHECK(status.ok());  // nothing fails in these runs
    recorder.history.Finish(index, ReplyOf(op), executor.clock().NowNs());
  }
  --recorder.clients_running;
}

struct Scenario {
  const char* name;
  uint64_t seeds;
  size_t workers;
  uint32_t clients_per_worker;
  size_t keys;
  int operations;
  std::vector<Kind> kinds;
};

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

class KvHistories : public testing::TestWithParam<Scenario> {};

void RunSeed(const Scenario& scenario, uint64_t seed) {
  SimFabricOptions options;
  // Some worlds are even, in some a message may take ten times as long as another.
  options.latency_min_ns = 500;
  options.latency_max_ns = seed % 3 == 0 ? 600 : 5000;
  options.step_ns = seed % 2 == 0 ? 5 : 0;
  World world(seed, scenario.workers, options);
  Recorder recorder;
  recorder.keys = scenario.keys;
  Gate gate(world.executor());
  for (uint32_t client = 0; client < scenario.workers * scenario.clients_per_worker; ++client) {
    ++recorder.clients_running;
    world.executor().Spawn(
        gate, RunClient(world.executor(), world.worker(client % scenario.workers).kv(), recorder,
                        {client, scenario.operations, scenario.kinds}));
  }
  uint64_t steps = 0;
  while (recorder.clients_running > 0) {
    ASSERT_TRUE(world.executor().RunOnce());
    ASSERT_LT(++steps, 3'000'000U) << "no progress, seed " << seed;
  }
  const CheckResult result = CheckHistory(recorder.history.ops());
  ASSERT_TRUE(result.ok()) << "seed " << seed << "\n" << result.message;
}

TEST_P(KvHistories, AreLinearizable) {
  const Scenario& scenario = GetParam();
  const uint64_t seeds = static_cast<uint64_t>(Scaled(static_cast<int>(scenario.seeds)));
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    RunSeed(scenario, seed);
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, KvHistories,
    testing::Values(
        Scenario{"reads_and_writes", 1500, 3, 1, 1, 10, {Kind::kGet, Kind::kGet, Kind::kSet}},
        Scenario{"all_on_one_key",
                 1500,
                 3,
                 2,
                 1,
                 8,
                 {Kind::kGet, Kind::kSet, Kind::kDelete, Kind::kAdd, Kind::kSetNx}},
        Scenario{"all_on_two_keys",
                 1000,
                 4,
                 1,
                 2,
                 12,
                 {Kind::kGet, Kind::kSet, Kind::kDelete, Kind::kAdd, Kind::kSetNx}},
        Scenario{"create_and_delete", 1500, 3, 1, 1, 12, {Kind::kGet, Kind::kSetNx, Kind::kDelete}},
        Scenario{"blind_against_counting", 1500, 4, 1, 1, 10, {Kind::kSet, Kind::kAdd}},
        Scenario{"counting", 500, 5, 1, 1, 10, {Kind::kAdd}}),
    [](const auto& info) { return std::string(info.param.name); });

// Keys that are there throughout are found throughout, while every subtable splits under the
// readers.
Task<void> Grow(Kv& kv, int first, int count, int* left) {
  for (int i = first; i < first + count; ++i) {
    const std::string name = "grow" + std::to_string(i);
    NewRecord record;
    record.head = name;
    const Status status = co_await kv.Set({0, name}, record);
    CHECK(status.ok());
  }
  --*left;
}

Task<void> ReadOld(Executor& executor, Kv& kv, int old_keys, const int* left, uint64_t* reads) {
  while (*left > 0) {
    const std::string name = "old" + std::to_string(executor.rng().Below(old_keys));
    ReadResult result;
    const Status status = co_await kv.Get({0, name}, &result);
    CHECK(status.ok());
    EXPECT_TRUE(result.found()) << name;
    if (result.found()) {
      EXPECT_EQ(result.record().value.substr(0, 3), "old");
    }
    ++*reads;
  }
}

Task<void> CountOld(Executor& executor, Kv& kv, int old_keys, const int* left, uint64_t* adds) {
  while (*left > 0) {
    const std::string name = "count" + std::to_string(executor.rng().Below(old_keys));
    AddMutation add(1);
    const Status status = co_await kv.ReadModifyWrite({0, name}, add);
    CHECK(status.ok());
    ++*adds;
  }
}

SimFabricOptions UnevenFabric(uint64_t seed) {
  SimFabricOptions options;
  options.latency_min_ns = 500;
  options.latency_max_ns = seed % 2 == 0 ? 1000 : 20'000;
  options.step_ns = seed % 3 == 0 ? 50 : 5;
  return options;
}

uint64_t SplitsOf(World& world) {
  uint64_t splits = 0;
  for (size_t i = 0; i < world.size(); ++i) {
    splits += world.worker(i).kv().metrics().index->splits.Value();
  }
  return splits;
}

TEST(Growth, LookupsNeverMissAndNoUpdateIsLost) {
  const int seeds = Scaled(8);
  for (int seed = 1; seed <= seeds; ++seed) {
    World world(seed, 3, UnevenFabric(seed));
    constexpr int kOld = 300;
    for (int i = 0; i < kOld; ++i) {
      ASSERT_TRUE(world.worker(0).Set("old" + std::to_string(i), "old").ok());
      ASSERT_TRUE(world.worker(0).Set("count" + std::to_string(i), "0").ok());
    }
    // Several inserters on each worker, so that one worker's coroutines meet in a split as well.
    constexpr int kInserters = 6;
    constexpr int kEach = 1500;
    int left = kInserters;
    uint64_t reads = 0;
    uint64_t adds = 0;
    Gate gate(world.executor());
    for (int i = 0; i < kInserters; ++i) {
      world.executor().Spawn(gate, Grow(world.worker(i % 3).kv(), i * kEach, kEach, &left));
    }
    for (size_t i = 0; i < 6; ++i) {
      Kv& kv = world.worker(i % 3).kv();
      world.executor().Spawn(gate, ReadOld(world.executor(), kv, kOld, &left, &reads));
      world.executor().Spawn(gate, CountOld(world.executor(), kv, kOld, &left, &adds));
    }
    while (gate.inside() > 0) ASSERT_TRUE(world.executor().RunOnce());
    EXPECT_GT(reads, 1000U);
    EXPECT_GE(SplitsOf(world), 3U);
    uint64_t sum = 0;
    for (int i = 0; i < kOld; ++i) {
      sum += std::stoull(world.worker(1).Get("count" + std::to_string(i)));
    }
    EXPECT_EQ(sum, adds) << "seed " << seed;
    for (int i = 0; i < kInserters * kEach; ++i) {
      const std::string name = "grow" + std::to_string(i);
      ASSERT_EQ(world.worker(2).Get(name), name) << "seed " << seed;
    }
    EXPECT_EQ(world.worker(2).CountKeys(), uint64_t{kInserters * kEach + 2 * kOld});
  }
}

Task<void> CreateOrCount(Kv& kv, int keys) {
  for (int i = 0; i < keys; ++i) {
    const std::string name = "shared" + std::to_string(i);
    AddMutation add(1);
    const Status status = co_await kv.ReadModifyWrite({0, name}, add);
    CHECK(status.ok());
  }
}

// The client that comes first creates the key, the others must find it: in the middle of splits,
// too.
TEST(Growth, CreatorsOfOneKeyMakeOneEntry) {
  const int seeds = Scaled(20);
  for (int seed = 1; seed <= seeds; ++seed) {
    World world(seed, 3, UnevenFabric(seed));
    constexpr int kKeys = 3500;
    constexpr int kCreators = 6;
    Gate gate(world.executor());
    for (size_t i = 0; i < kCreators; ++i) {
      world.executor().Spawn(gate, CreateOrCount(world.worker(i % 3).kv(), kKeys));
    }
    while (gate.inside() > 0) ASSERT_TRUE(world.executor().RunOnce());
    EXPECT_GE(SplitsOf(world), 1U);
    for (int i = 0; i < kKeys; ++i) {
      const std::string name = "shared" + std::to_string(i);
      ASSERT_EQ(world.worker(0).Get(name), std::to_string(kCreators)) << name << " seed " << seed;
      ASSERT_TRUE(world.worker(1).Delete(name)) << name << " seed " << seed;
      ASSERT_FALSE(world.worker(2).Delete(name)) << name << " twice, seed " << seed;
    }
  }
}

}  // namespace
}  // namespace onetrip
