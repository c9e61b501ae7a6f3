// Registers that rest: the table of them, and what operations on them cost and give back.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/fabric/shm.h"
#include "client_core/kv/core/resting_registers.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

RestingRegister Make(uint64_t hash, uint64_t object) {
  RestingRegister resting;
  resting.hash = KeyHash(hash);
  resting.word = SlotWord::Register(7, SizeClass(5), GlobalAddr(1, object * 16), /*blind=*/true);
  resting.incarnation = object;
  return resting;
}

TEST(RestingRegistersTest, AreFoundByHashAndByAddress) {
  RestingRegisters table(1000);
  std::map<uint64_t, uint64_t> model;  // from hash to object
  Rng rng(1);
  uint64_t objects = 0;
  for (int i = 0; i < 20'000; ++i) {
    const uint64_t hash = rng.Below(600) << 40;  // the lower bits alike
    RestingRegister* const found = table.Find(KeyHash(hash));
    const auto expected = model.find(hash);
    ASSERT_EQ(found != nullptr, expected != model.end());
    if (found == nullptr) {
      ASSERT_TRUE(table.Put(Make(hash, ++objects)));
      model[hash] = objects;
      continue;
    }
    ASSERT_EQ(found->incarnation, expected->second);
    ASSERT_EQ(found, table.FindAt(GlobalAddr(1, expected->second * 16)));
    EXPECT_FALSE(table.Put(Make(hash, ++objects))) << "there is one of that hash";
    if (rng.Below(2) == 0) {
      table.Erase(found);
      model.erase(expected);
    }
  }
  EXPECT_EQ(table.size(), model.size());
  size_t seen = 0;
  table.ForEach([&](const RestingRegister& resting) {
    ++seen;
    EXPECT_EQ(model.at(resting.hash.bits()), resting.incarnation);
  });
  EXPECT_EQ(seen, model.size());
}

TEST(RestingRegistersTest, MakeRoomButForThoseWithBuffers) {
  constexpr uint64_t kMax = 100;
  RestingRegisters table(kMax);
  for (uint64_t i = 0; i < 40; ++i) {
    RestingRegister resting = Make(i, i);
    resting.live = true;
    ASSERT_TRUE(table.Put(resting));
  }
  for (uint64_t i = 40; i < 1000; ++i) ASSERT_TRUE(table.Put(Make(i, i)));
  EXPECT_LE(table.size(), kMax);
  for (uint64_t i = 0; i < 40; ++i) EXPECT_NE(table.Find(KeyHash(i)), nullptr) << i;
  for (uint64_t i = 1000; i < 1200; ++i) {
    RestingRegister resting = Make(i, i);
    resting.live = true;
    ASSERT_TRUE(table.Put(resting));
  }
  EXPECT_EQ(table.size(), 240U) << "they are remembered beyond that";
}

TEST(RestingRegistersTest, NoneRestsWhereNoneMay) {
  RestingRegisters table(0);
  EXPECT_FALSE(table.Put(Make(1, 1)));
  EXPECT_EQ(table.Find(KeyHash(1)), nullptr);
  EXPECT_EQ(table.FindAt(GlobalAddr(1, 16)), nullptr);
}

constexpr int kKeys = 200;
constexpr ClusterShape kShape{.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20};

std::string KeyOf(int i) { return "key" + std::to_string(i); }

// One register is in use at a time.
DataPathOptions Options() {
  DataPathOptions options;
  options.location_cache_bytes = 1 << 16;
  options.epoch_tick_us = 100;
  options.register_cache_entries = 1;
  return options;
}

class KvRestingTest : public testing::Test {
 protected:
  TestWorker& AddWorker() {
    return Add(std::make_unique<SimFabric>(executor_, cluster_.endpoints(), SimFabricOptions()));
  }
  // Its operations complete inline: registers that it makes rest at once.
  TestWorker& AddInlineWorker() {
    return Add(std::make_unique<ShmFabric>(executor_.clock(), cluster_.endpoints()));
  }
  TestWorker& Add(std::unique_ptr<Fabric> fabric) {
    workers_.push_back(std::make_unique<TestWorker>(cluster_, executor_, std::move(fabric),
                                                    EngineKind::kSwarm, Options()));
    workers_.back()->Start();
    return *workers_.back();
  }
  void TearDown() override {
    for (auto& worker : workers_) worker->Stop();
  }
  void Settle() { executor_.RunUntil(executor_.NowNs() + 5'000'000); }
  uint64_t LiveBytes() {
    Settle();
    uint64_t bytes = 0;
    for (const auto& worker : workers_) {
      bytes += worker->kv().metrics().allocator->live_bytes.Value();
    }
    return bytes;
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), kShape};
  std::vector<std::unique_ptr<TestWorker>> workers_;
};

// A SET asks the index, for a write cannot compare the key first.
TEST_F(KvRestingTest, AGetTakesOneRoundTripAndASetTwo) {
  TestWorker& a = AddWorker();
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(a.Set(KeyOf(i), "v" + KeyOf(i)).ok());
  Settle();
  StoreMetrics& metrics = a.kv().metrics();
  metrics.get_round_trips.Reset();
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(a.Get(KeyOf(i)), "v" + KeyOf(i));
  EXPECT_EQ(metrics.get_round_trips.Sum(), uint64_t{kKeys});
  metrics.set_round_trips.Reset();
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(a.Set(KeyOf(i), "w" + KeyOf(i)).ok());
  EXPECT_EQ(metrics.set_round_trips.Sum(), uint64_t{2} * kKeys);
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(a.Get(KeyOf(i)), "w" + KeyOf(i));
}

// Whoever deletes them: this worker gives its buffers back.
TEST_F(KvRestingTest, WhatIsDeletedLeavesNothing) {
  TestWorker& a = AddWorker();
  TestWorker& b = AddWorker();
  const auto make_and_delete = [&] {
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(a.Set(KeyOf(i), "v").ok());
    for (int i = 0; i < kKeys; i += 3) ASSERT_TRUE(b.Set(KeyOf(i), "w").ok());
    for (int i = 0; i < kKeys; ++i) ASSERT_EQ(a.Get(KeyOf(i)), i % 3 == 0 ? "w" : "v");
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE((i % 2 == 0 ? a : b).Delete(KeyOf(i)));
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_EQ(a.Get(KeyOf(i)), "(nil)");
      ASSERT_EQ(b.Get(KeyOf(i)), "(nil)");
    }
  };
  make_and_delete();
  const uint64_t before = LiveBytes();
  for (int round = 0; round < 3; ++round) make_and_delete();
  EXPECT_EQ(LiveBytes(), before);
}

TEST_F(KvRestingTest, ANewRegisterIsKnownWithoutAnEntry) {
  TestWorker& a = AddInlineWorker();
  TestWorker& b = AddInlineWorker();
  StoreMetrics& metrics = a.kv().metrics();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(a.Set(KeyOf(i), "v" + KeyOf(i)).ok());
    metrics.get_round_trips.Reset();
    metrics.set_round_trips.Reset();
    // More uses than wake it.
    for (int use = 0; use < 12; ++use) {
      for (int i = 0; i < kKeys; ++i) ASSERT_EQ(a.Get(KeyOf(i)), "v" + KeyOf(i));
    }
    EXPECT_EQ(metrics.get_round_trips.Sum(), uint64_t{12} * kKeys);
    for (int use = 0; use < 12; ++use) {
      for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(a.Set(KeyOf(i), "w" + KeyOf(i)).ok());
    }
    EXPECT_EQ(metrics.set_round_trips.Sum(), uint64_t{12} * kKeys);
    for (int i = 0; i < kKeys; ++i) ASSERT_EQ(b.Get(KeyOf(i)), "w" + KeyOf(i));
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE((i % 2 == 0 ? a : b).Delete(KeyOf(i)));
    for (int i = 0; i < kKeys; ++i) ASSERT_EQ(a.Get(KeyOf(i)), "(nil)");
    Settle();
  }
}

// A buffer whose word another worker's has overtaken goes back with the next read that sees it,
// whether the register rests or not.
TEST_F(KvRestingTest, AReadGivesBackWhatAnotherHasOvertaken) {
  TestWorker& a = AddWorker();
  TestWorker& b = AddWorker();
  const auto set_all = [](TestWorker& worker, const std::string& value) {
    for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(worker.Set(KeyOf(i), value + KeyOf(i)).ok());
  };
  set_all(a, "v");
  set_all(a, "w");
  const uint64_t one_buffer_each = LiveBytes();
  set_all(b, "x");
  EXPECT_GT(LiveBytes(), one_buffer_each);
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(a.Get(KeyOf(i)), "x" + KeyOf(i));
  EXPECT_EQ(LiveBytes(), one_buffer_each);
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(b.Get(KeyOf(i)), "x" + KeyOf(i));
  EXPECT_EQ(LiveBytes(), one_buffer_each) << "those of the words that are there stay";
}

// The second key of two that have the same hash is not there, whatever is known of the first.
Key WithHashOf(const std::string& other, const std::string& key, const WorkerContext& context) {
  const KeyspaceId keyspace = context.master.view()->keyspaces[0];
  Key made{0, key};
  made.hash = IndexKey::Make(keyspace, other).hash.bits();
  made.hashed_under = uint64_t{keyspace.value} + 1;
  return made;
}

TEST_F(KvRestingTest, AKeyOfTheSameHashIsAnother) {
  TestWorker& a = AddWorker();
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(a.Set(KeyOf(i), "v").ok());
  Settle();
  for (int i = 100; i < kKeys; ++i) {
    const std::string name = "Key" + std::to_string(i);
    const Key key = WithHashOf(KeyOf(i), name, a.context());
    ReadResult result;
    ASSERT_TRUE(BlockOn(executor_, a.kv().Get(key, &result)).ok());
    ASSERT_FALSE(result.found()) << i;
    ASSERT_TRUE(BlockOn(executor_, a.kv().Set(key, {.head = "w"})).ok());
    bool existed = false;
    if (i % 2 == 0) {
      ASSERT_TRUE(BlockOn(executor_, a.kv().Delete(key, &existed)).ok());
    }
    ASSERT_EQ(existed, i % 2 == 0);
    ASSERT_EQ(a.Get(KeyOf(i)), "v") << i;
    ASSERT_TRUE(BlockOn(executor_, a.kv().Get(key, &result)).ok());
    ASSERT_EQ(result.found(), i % 2 != 0) << i;
  }
}

// Where operations complete inline the key is compared ahead of the write.
TEST(KvRestingInlineTest, GetsSetsAndDelsTakeOneRoundTrip) {
  SystemClock clock;
  TestCluster cluster(clock, kShape);
  ShmWorker worker(cluster, EngineKind::kSwarm, Options());
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(worker->Set(KeyOf(i), "v" + KeyOf(i)).ok());
  StoreMetrics& metrics = worker->kv().metrics();
  metrics.set_round_trips.Reset();
  metrics.get_round_trips.Reset();
  metrics.del_round_trips.Reset();
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(worker->Set(KeyOf(i), "w" + KeyOf(i)).ok());
  EXPECT_EQ(metrics.set_round_trips.Sum(), uint64_t{kKeys});
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(worker->Get(KeyOf(i)), "w" + KeyOf(i));
  EXPECT_EQ(metrics.get_round_trips.Sum(), uint64_t{kKeys});
  metrics.del_round_trips.Reset();
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(worker->Delete(KeyOf(i)));
  EXPECT_EQ(metrics.del_round_trips.Sum(), uint64_t{kKeys});
  for (int i = 0; i < kKeys; ++i) ASSERT_EQ(worker->Get(KeyOf(i)), "(nil)");
}

// A SET that took one for the other would write into its register.
TEST(KvRestingInlineTest, AKeyOfTheSameHashIsAnother) {
  SystemClock clock;
  TestCluster cluster(clock, kShape);
  ShmWorker worker(cluster, EngineKind::kSwarm, Options());
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(worker->Set(KeyOf(i), "w" + KeyOf(i)).ok());
  for (int i = 0; i < kKeys; ++i) {
    const std::string name = "Key" + std::to_string(i);
    const Key key = WithHashOf(KeyOf(i), name, worker->context());
    ReadResult result;
    bool existed = false;
    ASSERT_TRUE(BlockOn(worker.executor(), worker->kv().Delete(key, &existed)).ok());
    ASSERT_FALSE(existed);
    ASSERT_TRUE(BlockOn(worker.executor(), worker->kv().Get(key, &result)).ok());
    ASSERT_FALSE(result.found());
    ASSERT_TRUE(BlockOn(worker.executor(), worker->kv().Set(key, {.head = "other"})).ok());
    ASSERT_EQ(worker->Get(KeyOf(i)), "w" + KeyOf(i));
    ASSERT_TRUE(BlockOn(worker.executor(), worker->kv().Delete(key, &existed)).ok());
    ASSERT_TRUE(existed);
    ASSERT_EQ(worker->Get(KeyOf(i)), "w" + KeyOf(i));
  }
}

}  // namespace
}  // namespace onetrip
