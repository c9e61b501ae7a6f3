// Registers become records in a pool that has no room (PROTOCOLS, "The reserve").
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client_core/layout/region_layout.h"
#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

class KvFullPoolTest : public testing::Test {
 protected:
  explicit KvFullPoolTest(uint16_t nodes = 3, uint64_t node_bytes = 32ULL << 20)
      : cluster_(executor_.clock(), {.nodes = nodes, .replicas = 3, .node_bytes = node_bytes}) {}
  TestWorker& AddWorker() {
    DataPathOptions options;
    options.location_cache_bytes = 1 << 18;
    options.epoch_tick_us = 100;
    options.memory_wait_ms = 20;
    workers_.push_back(std::make_unique<TestWorker>(
        cluster_, executor_,
        std::make_unique<SimFabric>(executor_, cluster_.endpoints(), kWholeSteps),
        EngineKind::kSwarm, options));
    workers_.back()->Start();
    return *workers_.back();
  }
  void TearDown() override {
    for (auto& worker : workers_) worker->Stop();
  }
  // Sets keys by the workers in turn until every one of them is refused.
  void Fill(const std::function<size_t(size_t)>& value_bytes) {
    size_t refused = 0;
    for (; refused < workers_.size(); ++next_key_) {
      const size_t i = next_key_;
      const std::string key = "key" + std::to_string(i);
      const std::string value(value_bytes(i), static_cast<char>('a' + i % 26));
      const Status status = workers_[i % workers_.size()]->Set(key, value);
      refused = status.ok() ? 0 : refused + 1;
      if (status.ok()) model_[key] = value;
      if (!status.ok()) {
        ASSERT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
      }
    }
  }
  Status EndRegisters(TestWorker& worker) {
    RepairOrder order;
    order.kind = RepairKind::kEndRegisters;
    order.view = cluster_.master().view();
    Status result;
    bool ended = false;
    worker.context().quiesce.duties()->Repair(order, [&](Status status) {
      result = status;
      ended = true;
    });
    while (!ended) BlockOn(executor_, Sleep());
    return result;
  }
  Task<void> Sleep() { co_await executor_.SleepFor(1'000'000); }
  // One worker behind the other, as the master asks; how many were asked.
  int EndRegistersInTurn(int at_most) {
    cluster_.master().AddEdit([](View& view) { view.records_only = true; });
    for (int turn = 0; turn < at_most; ++turn) {
      const Status status = EndRegisters(*workers_[turn % workers_.size()]);
      if (status.ok()) return turn + 1;
      EXPECT_EQ(status.code(), StatusCode::kOutOfMemory) << status.message();
    }
    return at_most + 1;
  }
  void ExpectAll() {
    for (const auto& [key, value] : model_) ASSERT_EQ(workers_.front()->Get(key), value) << key;
  }
  uint64_t GrantedBlocks() {
    uint64_t blocks = 0;
    for (size_t i = 0; i < cluster_.node_count(); ++i) {
      blocks += cluster_.node(i).status().granted_blocks;
    }
    return blocks;
  }

  SimExecutor executor_{1};
  TestCluster cluster_;
  std::vector<std::unique_ptr<TestWorker>> workers_;
  std::map<std::string, std::string> model_;
  size_t next_key_ = 0;  // the next key that Fill() writes
};

class KvFullRegionTest : public KvFullPoolTest {
 protected:
  KvFullRegionTest() : KvFullPoolTest(3, kRegionBytes) {}
};

class KvFullPoolOfManyNodesTest : public KvFullPoolTest {
 protected:
  KvFullPoolOfManyNodesTest() : KvFullPoolTest(5) {}
};

// Hardly two regions have the same nodes there. A block of registers lasts for many more keys than
// the room for buffers on its nodes.
TEST_F(KvFullPoolOfManyNodesTest, LongValuesFillAllOfIt) {
  AddWorker();
  constexpr size_t kBytes = 3000;
  Fill([](size_t) { return kBytes; });
  const size_t regions = cluster_.master().view()->regions.size();
  ASSERT_GE(regions, 3U);
  EXPECT_GE(model_.size() * kBytes, regions * kRegionBytes * 7 / 10);
  ExpectAll();
}

// Long values lie in buffers: the buffers are what comes back.
TEST_F(KvFullPoolTest, OneWorkerMakesRecordsOfAllItsRegisters) {
  AddWorker();
  Fill([](size_t i) { return i % 2 == 0 ? 2000 : 200; });
  EXPECT_GT(model_.size(), 2000U);
  EXPECT_EQ(EndRegistersInTurn(2), 1);
  ExpectAll();
}

TEST_F(KvFullPoolTest, WorkersDoSoInTurnWhateverTheSizes) {
  for (int i = 0; i < 3; ++i) AddWorker();
  Fill([](size_t i) { return FillerBytes(100 + i * 7919 % 5000); });
  EXPECT_LE(EndRegistersInTurn(20), 20);
  ExpectAll();
}

TEST_F(KvFullPoolTest, RecordsAmidRegistersDoNotKeepTheirMemory) {
  for (int i = 0; i < 2; ++i) AddWorker();
  for (int i = 0; i < 300; ++i) {
    const std::string key = "number" + std::to_string(i);
    ASSERT_TRUE(workers_[i % 2]->Set(key, "1").ok());
    AddMutation add(1);
    ASSERT_TRUE(BlockOn(executor_, workers_[i % 2]->kv().ReadModifyWrite({0, key}, add)).ok());
    model_[key] = "2";
  }
  Fill([](size_t i) { return i % 3 == 0 ? 60'000 : 300; });
  EXPECT_LE(EndRegistersInTurn(20), 20);
  ExpectAll();
}

// No class has an object free, and two workers share one region's reserve.
TEST_F(KvFullRegionTest, WhatIsFullToTheBrimBecomesRecordsToo) {
  constexpr size_t kBytes[] = {64, 300, 1000, 5000, 20'000};
  for (int i = 0; i < 2; ++i) AddWorker();
  Fill([&](size_t i) { return kBytes[i / 2 % std::size(kBytes)]; });
  for (size_t bytes : {20'000, 5000, 1000, 300, 64}) {
    Fill([&](size_t) { return bytes; });
  }
  EXPECT_LE(EndRegistersInTurn(20), 20);
  ExpectAll();
}

// Registers in open blocks have no owner, and the memory they give up goes to any worker that asks.
TEST_F(KvFullPoolTest, SoAreThoseOfAWorkerThatHasLeft) {
  if (kSlowdown > 1) GTEST_SKIP() << "too many keys for a sanitizer";
  for (int i = 0; i < 2; ++i) AddWorker();
  for (int i = 0; i < 20'000; ++i) {
    const std::string key = "early" + std::to_string(i);
    ASSERT_TRUE(workers_.front()->Set(key, std::string(300, 'e')).ok()) << i;
    model_[key] = std::string(300, 'e');
  }
  workers_.front()->Stop();
  workers_.erase(workers_.begin());
  Fill([](size_t i) { return 100 + i * 7919 % 5000; });
  EXPECT_LE(EndRegistersInTurn(10), 10);
  ExpectAll();
}

// Else a key would hold the memory of both.
TEST_F(KvFullPoolTest, TheRegistersMemoryComesBackBeforeAnybodyWritesTheKeys) {
  if (kSlowdown > 1) GTEST_SKIP() << "too many keys for a sanitizer";
  AddWorker();
  Fill([](size_t) { return 200; });
  const uint64_t before = GrantedBlocks();
  const Counter& live = workers_.front()->kv().metrics().allocator->live_bytes;
  const uint64_t live_before = live.Value();
  ASSERT_EQ(EndRegistersInTurn(2), 1);
  for (int i = 0; i < 100; ++i) BlockOn(executor_, Sleep());
  EXPECT_LE(live.Value(), live_before + live_before / 100);
  EXPECT_LE(GrantedBlocks(), before + 6);
  ExpectAll();
}

// It has come to a full pool, and has the eight entries of its seat to tell others of what it
// deletes.
TEST_F(KvFullPoolTest, WhatANewcomerDeletesComesBackAtOnce) {
  AddWorker();
  Fill([](size_t) { return 200; });
  constexpr size_t kDeleted = 4000;
  ASSERT_GT(model_.size(), kDeleted);
  TestWorker& newcomer = AddWorker();
  for (size_t i = 0; i < kDeleted; ++i) {
    ASSERT_TRUE(newcomer.Delete(model_.begin()->first));
    model_.erase(model_.begin());
  }
  // Epochs last for a tenth of a millisecond.
  constexpr int kMs = 10;
  for (int ms = 0; ms < kMs; ++ms) BlockOn(executor_, Sleep());
  EXPECT_EQ(newcomer.kv().metrics().allocator->retired_bytes.Value(), 0U);
  ExpectAll();
}

TEST_F(KvFullPoolTest, WritesLeaveTheReserve) {
  AddWorker();
  Fill([](size_t) { return 50'000; });
  uint64_t blocks = 0;
  for (size_t i = 0; i < cluster_.node_count(); ++i) blocks += cluster_.node(i).status().blocks;
  EXPECT_LT(GrantedBlocks(), blocks);
  ControlRequest request;
  request.size_class = SizeClass::For(64);
  request.owner = WorkerId{77};
  int granted = 0;
  int of_reserve = 0;
  for (size_t i = 0; i < cluster_.node_count(); ++i) {
    request.kind = ControlRequest::Kind::kAlloc;
    granted += cluster_.node(i).Handle(request).outcome == ControlReply::Outcome::kDone ? 1 : 0;
    request.kind = ControlRequest::Kind::kAllocReserve;
    of_reserve += cluster_.node(i).Handle(request).outcome == ControlReply::Outcome::kDone ? 1 : 0;
  }
  EXPECT_EQ(granted, 0);
  EXPECT_GE(of_reserve, 1);
}

}  // namespace
}  // namespace onetrip
