// The index on shm, one worker, three replicas: finding keys with and without their location in the
// cache, inserting (the splits on the way included), and one split.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>
#include <vector>

#include "tests/support/index_worker.h"

namespace onetrip {
namespace {

constexpr uint64_t kKeys = 100'000;

std::string KeyOf(uint64_t n) {
  char key[17];
  snprintf(key, sizeof(key), "key:%012llu", static_cast<unsigned long long>(n));
  return key;
}

class Store {
 public:
  explicit Store(uint64_t cache_bytes)
      : worker_(cluster_, executor_, MakeShm(cluster_, executor_),
                DataPathOptions{.location_cache_bytes = cache_bytes}) {
    CHECK(BlockOn(executor_, worker_.Open()).ok());
  }
  ~Store() { worker_.Leave(); }
  IndexWorker& worker() { return worker_; }
  Executor& executor() { return executor_; }
  void Fill() {
    for (uint64_t i = 0; i < kKeys; ++i) Insert(i);
  }
  void Insert(uint64_t n) { CHECK(BlockOn(executor_, worker_.Insert(KeyOf(n), n)).value()); }
  // Runs the index alone: shows the cost of one Find, its key hashed and its result dropped.
  void Find(const std::string& key, bool expect_found) {
    BlockOn(executor_, [](IndexWorker* worker, const std::string* name, bool found) -> Task<void> {
      Operation operation;
      operation.pin = worker->reclaimer().Pin();
      SearchResult search;
      CHECK((co_await worker->index().Find(operation, IndexKey::Make(KeyspaceId{1}, *name),
                                           ReadExtent::kWhole, worker->fabric().NewRoundTrip(),
                                           &search))
                .ok());
      CHECK(search.found == found);
    }(&worker_, &key, expect_found));
  }

 private:
  SystemClock clock_;
  LoopExecutor executor_{clock_, 1};
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 1ULL << 30}};
  IndexWorker worker_;
};

void Finds(benchmark::State& state, uint64_t cache_bytes, uint64_t first_key, bool found) {
  Store store(cache_bytes);
  store.Fill();
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < kKeys; ++i) keys.push_back(KeyOf(first_key + i * 7919 % kKeys));
  size_t at = 0;
  for (auto unused : state) {
    store.Find(keys[at], found);
    at = at + 1 == keys.size() ? 0 : at + 1;
  }
}

void BM_FindCached(benchmark::State& state) { Finds(state, 64 << 20, 0, true); }
BENCHMARK(BM_FindCached);

// One line of cache: hardly any key is in it.
void BM_FindUncached(benchmark::State& state) { Finds(state, 64, 0, true); }
BENCHMARK(BM_FindUncached);

void BM_FindMissing(benchmark::State& state) { Finds(state, 64 << 20, kKeys, false); }
BENCHMARK(BM_FindMissing);

// Memory, record, tentative and committed entry, and the key's share of the splits.
void BM_Insert(benchmark::State& state) {
  Store store(64 << 20);
  uint64_t n = 0;
  for (auto unused : state) store.Insert(n++);
  state.counters["splits"] = static_cast<double>(store.worker().index().metrics().splits.Value());
}
BENCHMARK(BM_Insert)->Iterations(1'000'000);

// One subtable filled until it must split, then split: about half of its keys move.
void BM_Split(benchmark::State& state) {
  uint64_t keys = 0;
  for (auto unused : state) {
    state.PauseTiming();
    auto store = std::make_unique<Store>(1 << 20);
    for (keys = 0; keys < 1500; ++keys) store->Insert(keys);
    CHECK(store->worker().index().metrics().splits.Value() == 0);
    IndexWorker& worker = store->worker();
    const Subtable table = worker.index().SubtableAt(0);
    state.ResumeTiming();
    CHECK(BlockOn(store->executor(), worker.Split(table, KeyHash())).ok());
    state.PauseTiming();
    store.reset();
    state.ResumeTiming();
  }
  state.counters["keys"] = static_cast<double>(keys);
}
BENCHMARK(BM_Split)->Iterations(100);

}  // namespace
}  // namespace onetrip
