// The engine alone: no RESP, shm, three replicas; one thread unless a row says another number, then
// with a worker each on one cluster. 16 operations in flight means here that the keys of the next
// 16 are prefetched before the first is executed.
//
// Insert and Del use each key once, so that their number of iterations is fixed; the memory that
// inserts take is cleared by the kernel when they first touch it, as in an agent.
#include <benchmark/benchmark.h>

#include <array>
#include <cmath>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr int kKeys = 100'000;
constexpr int kInFlight = 16;
constexpr size_t kDraws = 1 << 18;
constexpr uint32_t kFreshKeys = 1 << 18;  // a thread has in rows that use each once
constexpr size_t kNameBytes = 16;

// Zipf by rejection-free inversion over a table; theta .99 as YCSB has it.
std::vector<uint32_t> DrawKeys(bool zipf, uint64_t seed = 42) {
  Rng rng(seed);
  std::vector<uint32_t> draws(kDraws);
  if (!zipf) {
    for (uint32_t& draw : draws) draw = static_cast<uint32_t>(rng.Below(kKeys));
    return draws;
  }
  std::vector<double> cumulative(kKeys);
  double sum = 0;
  for (int i = 0; i < kKeys; ++i) cumulative[i] = sum += 1 / std::pow(i + 1, 0.99);
  // Popular keys lie anywhere, and are the same for all threads.
  std::vector<uint32_t> scattered(kKeys);
  for (int i = 0; i < kKeys; ++i) scattered[i] = static_cast<uint32_t>(i);
  Rng scatter(42);
  for (int i = kKeys - 1; i > 0; --i) std::swap(scattered[i], scattered[scatter.Below(i + 1)]);
  for (uint32_t& draw : draws) {
    const auto at = std::lower_bound(cumulative.begin(), cumulative.end(), rng.NextDouble() * sum);
    draw = scattered[std::min<size_t>(at - cumulative.begin(), kKeys - 1)];
  }
  return draws;
}

// Names one after the other, as they would come from a socket.
void AppendName(uint32_t key, std::string* names) {
  char name[kNameBytes + 1];
  snprintf(name, sizeof(name), "key:%012u", key);
  names->append(name, kNameBytes);
}

class Store {
 public:
  explicit Store(EngineKind engine) : worker_(cluster_, engine) {
    const std::string value(64, 'v');
    for (int i = 0; i < kKeys; ++i) {
      AppendName(static_cast<uint32_t>(i), &names_);
      CHECK(worker_->Set(name(static_cast<uint32_t>(i)), value).ok());
    }
  }
  Kv& kv() { return worker_->kv(); }
  Executor& executor() { return worker_.executor(); }
  std::string_view name(uint32_t key) const {
    return {names_.data() + static_cast<size_t>(key) * kNameBytes, kNameBytes};
  }

 private:
  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 256ULL << 20}};
  ShmWorker worker_;
  std::string names_;
};

// The cluster of all threads of a row: the first to come makes it, and the last one ends it.
std::shared_ptr<TestCluster> ClusterOfRow() {
  static const SystemClock clock;
  static std::mutex mutex;
  static std::weak_ptr<TestCluster> shared;
  const std::lock_guard<std::mutex> lock(mutex);
  std::shared_ptr<TestCluster> cluster = shared.lock();
  if (cluster == nullptr) {
    cluster = std::make_shared<TestCluster>(
        clock, ClusterShape{.nodes = 3, .replicas = 3, .node_bytes = 512ULL << 20});
    shared = cluster;
  }
  return cluster;
}

// One thread's worker, with the names of `keys` keys from `first` on.
class ThreadStore {
 public:
  ThreadStore(uint32_t first, uint32_t keys) {
    for (uint32_t i = 0; i < keys; ++i) AppendName(first + i, &names_);
  }
  Kv& kv() { return worker_->kv(); }
  Executor& executor() { return worker_.executor(); }
  std::string_view name(uint32_t key) const {
    return {names_.data() + static_cast<size_t>(key) * kNameBytes, kNameBytes};
  }

 private:
  const std::shared_ptr<TestCluster> cluster_ = ClusterOfRow();
  ShmWorker worker_{*cluster_, EngineKind::kSwarm};
  std::string names_;
};

// The commands in flight: hashed when their places are prefetched, as by an agent's connection.
using KeyGroup = std::array<Key, kInFlight>;

template <typename AnyStore>
KeyGroup NameGroup(AnyStore& store, const uint32_t* keys) {
  KeyGroup group;
  for (int i = 0; i < kInFlight; ++i) group[i] = {0, store.name(keys[i])};
  return group;
}

template <typename AnyStore>
void PrefetchGroup(AnyStore& store, KeyUse use, KeyGroup* group) {
  for (Key& key : *group) store.kv().PrefetchLocation(&key);
  for (const Key& key : *group) store.kv().PrefetchRecord(key, use);
}

Task<void> Gets(Store& store, const KeyGroup& keys) {
  for (const Key& key : keys) {
    ReadResult result;
    if (!store.kv().GetFast(key, &result)) {
      const Status status = co_await store.kv().Get(key, &result);
      CHECK(status.ok() && result.found());
    }
    benchmark::DoNotOptimize(result.record().value.data());
  }
}

template <typename AnyStore>
Task<void> Sets(AnyStore& store, const KeyGroup& keys, std::string_view value) {
  for (const Key& key : keys) {
    NewRecord record;
    record.head = value;
    const Status status = co_await store.kv().StartSet(key, record);
    CHECK(status.ok());
  }
}

Task<void> Increments(ThreadStore& store, const KeyGroup& keys) {
  for (const Key& key : keys) {
    AddMutation add(1);
    const Status status = co_await store.kv().ReadModifyWrite(key, add);
    CHECK(status.ok());
  }
}

Task<void> Deletes(ThreadStore& store, const KeyGroup& keys) {
  for (const Key& key : keys) {
    bool existed = false;
    const Status status = co_await store.kv().Delete(key, &existed);
    CHECK(status.ok() && existed);
  }
}

template <typename AnyStore, typename Group>
void RunGroups(benchmark::State& state, AnyStore& store, const std::vector<uint32_t>& keys,
               KeyUse use, Group group) {
  size_t at = 0;
  for (auto _ : state) {
    KeyGroup names = NameGroup(store, &keys[at]);
    PrefetchGroup(store, use, &names);
    BlockOn(store.executor(), group(store, names));
    at = (at + kInFlight) % keys.size();
  }
  state.SetItemsProcessed(state.iterations() * kInFlight);
}

void BM_Get(benchmark::State& state, EngineKind engine, bool zipf) {
  Store store(engine);
  RunGroups(state, store, DrawKeys(zipf), KeyUse::kRead,
            [](Store& of, const KeyGroup& keys) { return Gets(of, keys); });
}

void BM_Set(benchmark::State& state, EngineKind engine, bool zipf) {
  static const std::string value(64, 'w');
  Store store(engine);
  RunGroups(state, store, DrawKeys(zipf), KeyUse::kWrite,
            [](Store& of, const KeyGroup& keys) { return Sets(of, keys, value); });
}

// Each of a thread's own keys once, in any order.
std::vector<uint32_t> ShuffledKeys(int thread) {
  Rng rng(static_cast<uint64_t>(thread) + 1);
  std::vector<uint32_t> keys(kFreshKeys);
  for (uint32_t i = 0; i < kFreshKeys; ++i) keys[i] = i;
  for (uint32_t i = kFreshKeys - 1; i > 0; --i) std::swap(keys[i], keys[rng.Below(i + 1)]);
  return keys;
}

uint32_t FirstKeyOf(const benchmark::State& state) {
  return static_cast<uint32_t>(state.thread_index()) * kFreshKeys;
}

void BM_Insert(benchmark::State& state) {
  static const std::string value(64, 'v');
  ThreadStore store(FirstKeyOf(state), kFreshKeys);
  RunGroups(state, store, ShuffledKeys(state.thread_index()), KeyUse::kWrite,
            [](ThreadStore& to, const KeyGroup& keys) { return Sets(to, keys, value); });
}

void BM_Del(benchmark::State& state) {
  static const std::string value(64, 'v');
  ThreadStore store(FirstKeyOf(state), kFreshKeys);
  const std::vector<uint32_t> keys = ShuffledKeys(state.thread_index());
  for (size_t at = 0; at < keys.size(); at += kInFlight) {
    BlockOn(store.executor(), Sets(store, NameGroup(store, &keys[at]), value));
  }
  RunGroups(state, store, keys, KeyUse::kWrite, Deletes);
}

// All threads increment the same counters, and have incremented each before.
void BM_Incr(benchmark::State& state, bool zipf) {
  ThreadStore store(0, kKeys);
  std::vector<uint32_t> keys(kKeys);
  for (uint32_t i = 0; i < kKeys; ++i) keys[i] = i;
  for (size_t at = 0; at < keys.size(); at += kInFlight) {
    BlockOn(store.executor(), Increments(store, NameGroup(store, &keys[at])));
  }
  RunGroups(state, store, DrawKeys(zipf, 42 + static_cast<uint64_t>(state.thread_index())),
            KeyUse::kWrite, Increments);
}

BENCHMARK_CAPTURE(BM_Get, swarm_zipf, EngineKind::kSwarm, true);
BENCHMARK_CAPTURE(BM_Get, swarm_uniform, EngineKind::kSwarm, false);
BENCHMARK_CAPTURE(BM_Set, swarm_zipf, EngineKind::kSwarm, true);
BENCHMARK_CAPTURE(BM_Set, swarm_uniform, EngineKind::kSwarm, false);
BENCHMARK_CAPTURE(BM_Get, snapshot_zipf, EngineKind::kSnapshot, true);
BENCHMARK_CAPTURE(BM_Get, snapshot_uniform, EngineKind::kSnapshot, false);
BENCHMARK_CAPTURE(BM_Set, snapshot_zipf, EngineKind::kSnapshot, true);
BENCHMARK_CAPTURE(BM_Set, snapshot_uniform, EngineKind::kSnapshot, false);
BENCHMARK_CAPTURE(BM_Get, raw_zipf, EngineKind::kRaw, true);
BENCHMARK_CAPTURE(BM_Set, raw_zipf, EngineKind::kRaw, true);
BENCHMARK(BM_Insert)->Iterations(kFreshKeys / kInFlight)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK(BM_Del)->Iterations(kFreshKeys / kInFlight)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK_CAPTURE(BM_Incr, uniform, false)->Threads(1)->Threads(2)->UseRealTime();
BENCHMARK_CAPTURE(BM_Incr, zipf, true)->Threads(1)->Threads(2)->UseRealTime();

}  // namespace
}  // namespace onetrip

BENCHMARK_MAIN();
