// Workers replace objects that others read: no object changes before all workers that could reach
// it are done. Every object is filled with a pattern of its own, and looked at as long as it may
// be.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "client_core/layout/slot.h"
#include "tests/support/memory_worker.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

constexpr uint64_t kPoison = 0x5ca1ab1e'00000000;

// 64 bytes to 2 KiB. With several workers each class takes blocks of its own, so that a region is
// short of blocks at times and workers wait for each other's memory.
SizeClass RandomClass(Rng& rng) { return SizeClass(static_cast<uint8_t>(rng.Below(7) * 3)); }

Task<Status> WritePattern(WorkerContext& context, GlobalAddr addr, SizeClass size_class,
                          uint64_t pattern) {
  RoundTripPtr rt = context.fabric.NewRoundTrip();
  auto* words = reinterpret_cast<uint64_t*>(rt->Reserve(size_class.bytes()));
  std::fill_n(words, size_class.bytes() / 8, pattern);
  for (int replica = 0; replica < context.view().replicas; ++replica) {
    rt->Write(context.view().Locate(addr, replica), reinterpret_cast<std::byte*>(words),
              static_cast<uint32_t>(size_class.bytes()));
  }
  co_return co_await context.fabric.Post(rt);
}

// Returns true if all words of an object are `pattern`; any one value if that is 0.
Task<bool> HasPattern(WorkerContext& context, GlobalAddr addr, SizeClass size_class, int replica,
                      uint64_t pattern) {
  RoundTripPtr rt = context.fabric.NewRoundTrip();
  const auto* words = reinterpret_cast<const uint64_t*>(
      rt->Read(context.view().Locate(addr, replica), static_cast<uint32_t>(size_class.bytes())));
  if (!(co_await context.fabric.Post(rt)).ok()) co_return false;
  const uint64_t wanted = pattern == 0 ? words[0] : pattern;
  co_return std::all_of(words, words + size_class.bytes() / 8,
                        [wanted](uint64_t word) { return word == wanted; });
}

// An object that a shared place names.
struct Published {
  GlobalAddr addr;
  SizeClass size_class;
  uint64_t pattern = 0;
};

// All workers of one simulation share this: places that name objects. Naming another object is one
// instant here; that it takes a SNAPSHOT write in truth is the index's affair.
struct Shared {
  std::vector<Published> places;
  uint64_t next_pattern = kPoison;
  uint64_t checked = 0;
  uint64_t refused = 0;
  uint32_t writers = 0;  // still writing
};

Task<void> Publish(MemoryWorker* worker, Shared* shared) {
  Rng& rng = worker->executor().rng();
  const SizeClass size_class = RandomClass(rng);
  const Allocator::Holder holder(worker->allocator());
  GlobalAddr addr = worker->allocator().TryAllocate(size_class);
  if (addr.is_null()) {
    const Result<GlobalAddr> granted = co_await worker->allocator().Allocate(size_class);
    if (!granted.ok()) {
      ++shared->refused;
      co_return;
    }
    addr = granted.value();
  }
  EpochPin pin = worker->reclaimer().Pin();
  const uint64_t pattern = ++shared->next_pattern;
  EXPECT_TRUE((co_await WritePattern(worker->context(), addr, size_class, pattern)).ok());
  co_await worker->executor().SleepFor(rng.Below(2000));
  EXPECT_TRUE(co_await HasPattern(worker->context(), addr, size_class, 1, pattern))
      << "an object of our own changed before anybody knew it";
  if (rng.Below(10) == 0) {
    worker->allocator().FreeUnpublished(addr, size_class);
    co_return;
  }
  const Published old = std::exchange(shared->places[rng.Below(shared->places.size())],
                                      Published{addr, size_class, pattern});
  if (!old.addr.is_null()) worker->allocator().Retire(old.addr, old.size_class);
}

Task<void> WriteRounds(MemoryWorker* worker, Shared* shared, int rounds) {
  ++shared->writers;
  for (int i = 0; i < rounds; ++i) {
    co_await Publish(worker, shared);
    if (worker->executor().rng().Below(8) == 0) co_await worker->allocator().Maintain();
  }
  --shared->writers;
}

Task<void> ReadRounds(MemoryWorker* worker, Shared* shared) {
  Rng& rng = worker->executor().rng();
  while (shared->writers > 0) {
    EpochPin pin = worker->reclaimer().Pin();
    const Published place = shared->places[rng.Below(shared->places.size())];
    for (uint64_t look = rng.Below(4); look > 0 && !place.addr.is_null(); --look) {
      co_await worker->executor().SleepFor(rng.Below(10'000));
      const auto replica = static_cast<int>(rng.Below(3));
      const bool same = co_await HasPattern(worker->context(), place.addr, place.size_class,
                                            replica, place.pattern);
      EXPECT_TRUE(same) << "reused while it was pinned";
      ++shared->checked;
    }
    pin.Release();
    co_await worker->executor().SleepFor(1 + rng.Below(3000));
  }
}

Task<void> TickRounds(MemoryWorker* worker, Shared* shared) {
  while (shared->writers > 0) {
    co_await worker->allocator().Maintain();
    co_await worker->executor().SleepFor(1 + worker->executor().rng().Below(20'000));
  }
}

Task<void> RunWorker(MemoryWorker* worker, Shared* shared, uint64_t start_ns, int rounds) {
  ++shared->writers;  // so that no worker stops before the last has joined
  co_await worker->executor().SleepFor(start_ns);
  EXPECT_TRUE((co_await worker->reclaimer().Join()).ok());
  std::vector<Task<void>> tasks;
  tasks.reserve(6);
  for (int i = 0; i < 3; ++i) tasks.push_back(WriteRounds(worker, shared, rounds));
  for (int i = 0; i < 2; ++i) tasks.push_back(ReadRounds(worker, shared));
  tasks.push_back(TickRounds(worker, shared));
  --shared->writers;
  co_await WhenAll(std::move(tasks));
}

Task<void> RunAll(std::vector<Task<void>> tasks) { co_await WhenAll(std::move(tasks)); }

// At the end everything is unlinked and all memory must be back.
void ExpectAllComesBack(TestCluster& cluster, Executor& executor,
                        std::vector<std::unique_ptr<MemoryWorker>>& workers, Shared* shared) {
  for (size_t i = 0; i < shared->places.size(); ++i) {
    const Published& place = shared->places[i];
    if (place.addr.is_null()) continue;
    workers[i % workers.size()]->allocator().Retire(place.addr, place.size_class);
  }
  for (int i = 0; i < 60; ++i) {
    for (auto& worker : workers) worker->Maintain();
  }
  for (auto& worker : workers) {
    EXPECT_EQ(worker->allocator().retired_count(), 0U);
    BlockOn(executor, worker->allocator().Drain());
    const AllocatorMetrics& metrics = worker->allocator().metrics();
    EXPECT_EQ(metrics.live_bytes.Value(), 0U);
    EXPECT_EQ(metrics.owned_bytes.Value(), 0U);
    EXPECT_EQ(metrics.free_bytes.Value(), 0U);
  }
  const BlockTables tables = ReadBlockTables(cluster, WorkerId{0});
  EXPECT_EQ(tables.granted_blocks, 0U);
  EXPECT_TRUE(tables.replicas_agree);
  EXPECT_TRUE(tables.headers_intact);
  for (auto& worker : workers) worker->Leave();
}

void RunSimulation(uint64_t seed, size_t places) {
  SimExecutor executor(seed);
  TestCluster cluster(executor.clock(), {.nodes = 3, .replicas = 3, .node_bytes = kRegionBytes});
  Shared shared;
  shared.places.resize(places);
  std::vector<std::unique_ptr<MemoryWorker>> workers;
  std::vector<Task<void>> tasks;
  for (size_t i = 0; i < 2 + seed % 3; ++i) {
    const uint64_t slow = executor.rng().Below(3) == 0 ? 20 : 1;
    const SimFabricOptions options{
        .latency_min_ns = 100, .latency_max_ns = 1500 * slow, .step_ns = 5};
    workers.push_back(std::make_unique<MemoryWorker>(cluster, executor,
                                                     MakeSim(cluster, executor, options),
                                                     DataPathOptions{.memory_wait_ms = 1}));
  }
  for (size_t i = 0; i < workers.size(); ++i) {
    const uint64_t start_ns = i == 0 ? 0 : executor.rng().Below(200'000);
    tasks.push_back(RunWorker(workers[i].get(), &shared, start_ns, 60));
  }
  BlockOn(executor, RunAll(std::move(tasks)));
  EXPECT_GT(shared.checked, 20U);
  ExpectAllComesBack(cluster, executor, workers, &shared);
}

TEST(PoisonTest, NobodysObjectChangesInSimulation) {
  for (int seed = 1; seed <= Scaled(120); ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RunSimulation(static_cast<uint64_t>(seed), 5 + static_cast<size_t>(seed) % 40);
    if (testing::Test::HasFailure()) return;
  }
}

// Real threads on shm. A place is a slot word; an object's words are all the same number.
class PoisonThreads {
 public:
  static constexpr size_t kThreads = 4;

  void Run(int rounds) {
    std::vector<std::thread> threads;
    for (size_t id = 0; id < kThreads; ++id) {
      threads.emplace_back([this, id, rounds] { RunThread(id, rounds); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(damaged_.load(), 0U);
  }

 private:
  void RunThread(size_t id, int rounds) {
    SystemClock clock;
    LoopExecutor executor(clock, id + 1);
    MemoryWorker worker(cluster_, executor, MakeShm(cluster_, executor));
    worker.Join();
    Rng rng(id + 1);
    uint64_t pattern = (id + 1) << 32;
    for (int i = 0; i < rounds; ++i) {
      Replace(worker, rng, ++pattern);
      Look(worker, rng);
      if (i % 16 == 0) worker.Maintain();
    }
    // The others go on: an epoch that stands still would keep their memory.
    ++done_;
    while (done_.load() < kThreads) {
      worker.Maintain();
      std::this_thread::yield();
    }
    worker.Leave();
  }

  void Replace(MemoryWorker& worker, Rng& rng, uint64_t pattern) {
    const SizeClass size_class = RandomClass(rng);
    const Result<GlobalAddr> addr = worker.Allocate(size_class);
    if (!addr.ok()) return;
    EpochPin pin = worker.reclaimer().Pin();
    BlockOn(worker.executor(),
            [](MemoryWorker* self, GlobalAddr at, SizeClass cls, uint64_t p) -> Task<void> {
              EXPECT_TRUE((co_await WritePattern(self->context(), at, cls, p)).ok());
            }(&worker, addr.value(), size_class, pattern));
    const SlotWord word = SlotWord::Make(SlotKind::kObject, 0, size_class, addr.value(), false);
    const SlotWord old(places_[rng.Below(kPlaces)].exchange(word.bits()));
    if (!old.is_empty()) worker.allocator().Retire(old.addr(), old.size_class());
  }

  void Look(MemoryWorker& worker, Rng& rng) {
    EpochPin pin = worker.reclaimer().Pin();
    const SlotWord word(places_[rng.Below(kPlaces)].load());
    if (word.is_empty()) return;
    for (int look = 0; look < 3; ++look) {
      const bool same = BlockOn(
          worker.executor(), HasPattern(worker.context(), word.addr(), word.size_class(), look, 0));
      damaged_ += same ? 0 : 1;
    }
  }

  static constexpr size_t kPlaces = 64;

  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20}};
  std::atomic<uint64_t> places_[kPlaces] = {};
  std::atomic<uint64_t> damaged_{0};
  std::atomic<size_t> done_{0};
};

TEST(PoisonTest, NobodysObjectChangesAcrossThreads) {
  auto threads = std::make_unique<PoisonThreads>();
  threads->Run(Scaled(40'000));
}

}  // namespace
}  // namespace onetrip
