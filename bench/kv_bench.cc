// The engine alone: no RESP, one thread, shm, three replicas. 16 operations in flight means here
// that the keys of the next 16 are prefetched before the first is executed.
#include <benchmark/benchmark.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr int kKeys = 100'000;
constexpr int kInFlight = 16;
constexpr size_t kDraws = 1 << 18;

// Zipf by rejection-free inversion over a table; theta .99 as YCSB has it.
std::vector<uint32_t> DrawKeys(bool zipf) {
  Rng rng(42);
  std::vector<uint32_t> draws(kDraws);
  if (!zipf) {
    for (uint32_t& draw : draws) draw = static_cast<uint32_t>(rng.Below(kKeys));
    return draws;
  }
  std::vector<double> cumulative(kKeys);
  double sum = 0;
  for (int i = 0; i < kKeys; ++i) cumulative[i] = sum += 1 / std::pow(i + 1, 0.99);
  // Popular keys lie anywhere.
  std::vector<uint32_t> scattered(kKeys);
  for (int i = 0; i < kKeys; ++i) scattered[i] = static_cast<uint32_t>(i);
  for (int i = kKeys - 1; i > 0; --i) std::swap(scattered[i], scattered[rng.Below(i + 1)]);
  for (uint32_t& draw : draws) {
    const auto at = std::lower_bound(cumulative.begin(), cumulative.end(), rng.NextDouble() * sum);
    draw = scattered[std::min<size_t>(at - cumulative.begin(), kKeys - 1)];
  }
  return draws;
}

class Store {
 public:
  explicit Store(EngineKind engine) : worker_(cluster_, engine) {
    const std::string value(64, 'v');
    for (int i = 0; i < kKeys; ++i) {
      char name[kNameBytes + 1];
      snprintf(name, sizeof(name), "key:%012d", i);
      names_.append(name, kNameBytes);
      CHECK(worker_->Set(std::string_view(name, kNameBytes), value).ok());
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
  static constexpr size_t kNameBytes = 16;
  std::string names_;  // one after the other, as they would come from a socket
};

void PrefetchGroup(Store& store, const uint32_t* keys, KeyUse use) {
  for (int i = 0; i < kInFlight; ++i) {
    Key key{0, store.name(keys[i])};
    store.kv().PrefetchLocation(&key);
  }
  for (int i = 0; i < kInFlight; ++i) store.kv().PrefetchRecord({0, store.name(keys[i])}, use);
}

Task<void> Gets(Store& store, const uint32_t* keys) {
  for (int i = 0; i < kInFlight; ++i) {
    ReadResult result;
    const Key key{0, store.name(keys[i])};
    if (!store.kv().GetFast(key, &result)) {
      const Status status = co_await store.kv().Get(key, &result);
      CHECK(status.ok() && result.found());
    }
    benchmark::DoNotOptimize(result.record().value.data());
  }
}

Task<void> Sets(Store& store, const uint32_t* keys, std::string_view value) {
  for (int i = 0; i < kInFlight; ++i) {
    NewRecord record;
    record.head = value;
    const Status status = co_await store.kv().Set({0, store.name(keys[i])}, record);
    CHECK(status.ok());
  }
}

template <typename Group>
void RunGroups(benchmark::State& state, EngineKind engine, bool zipf, KeyUse use, Group group) {
  Store store(engine);
  const std::vector<uint32_t> keys = DrawKeys(zipf);
  size_t at = 0;
  for (auto _ : state) {
    PrefetchGroup(store, &keys[at], use);
    BlockOn(store.executor(), group(store, &keys[at]));
    at = (at + kInFlight) % kDraws;
  }
  state.SetItemsProcessed(state.iterations() * kInFlight);
}

void BM_Get(benchmark::State& state, EngineKind engine, bool zipf) {
  RunGroups(state, engine, zipf, KeyUse::kRead,
            [](Store& store, const uint32_t* keys) { return Gets(store, keys); });
}

void BM_Set(benchmark::State& state, EngineKind engine, bool zipf) {
  static const std::string value(64, 'w');
  RunGroups(state, engine, zipf, KeyUse::kWrite,
            [](Store& store, const uint32_t* keys) { return Sets(store, keys, value); });
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

}  // namespace
}  // namespace onetrip

BENCHMARK_MAIN();
