// Regions that are given up: what lies there goes elsewhere, the index and keys of all kinds, and
// nothing is in use there in the end.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client_core/kv/pool_check.h"
#include "tests/support/byte_tree.h"
#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

class KvLeaveTest : public testing::Test {
 protected:
  // Each memory node is the primary of one region: some of everything lies in the last one.
  KvLeaveTest() {
    DataPathOptions options;
    options.location_cache_bytes = 1 << 18;
    options.epoch_tick_us = 100;
    // A worker that looks more often comes to more; a sanitizer takes minutes for that.
    options.account_rest_us = kSlowdown > 1 ? 20'000 : 5000;
    options.record_value_bytes_max = 20'000;
    options.extent_bytes = 10'000;
    for (int i = 0; i < 3; ++i) {
      workers_.push_back(std::make_unique<TestWorker>(
          cluster_, executor_,
          std::make_unique<SimFabric>(executor_, cluster_.endpoints(), kWholeSteps),
          EngineKind::kSwarm, options));
      workers_.back()->Start();
    }
  }
  void TearDown() override {
    for (auto& worker : workers_) worker->Stop();
  }

  void Fill(size_t keys) {
    for (size_t i = 0; i < keys; ++i) {
      const std::string key = "key" + std::to_string(i);
      const size_t bytes = i % 50 == 0 ? 45'000 : 100 + i * 7919 % 3000;
      const std::string value(bytes, static_cast<char>('a' + i % 26));
      TestWorker& worker = *workers_[i % workers_.size()];
      if (i % 50 == 25) {
        std::string all(15'000 + i, static_cast<char>('A' + i % 26));
        ByteTreeEdit edit(worker.kv().tree_limits(), 0, 0, all);
        ASSERT_TRUE(BlockOn(executor_, worker.kv().ReadModifyWrite({0, key}, edit)).ok());
        model_[key].insert(0, all);
        continue;
      }
      ASSERT_TRUE(worker.Set(key, value).ok());
      model_[key] = value;
      if (i % 3 != 0) continue;
      // Registers that records have taken the place of.
      const std::string number = "number" + std::to_string(i);
      ASSERT_TRUE(workers_[0]->Set(number, "1").ok());
      AddMutation add(1);
      ASSERT_TRUE(BlockOn(executor_, workers_[1]->kv().ReadModifyWrite({0, number}, add)).ok());
      model_[number] = "2";
    }
  }
  void Commit(EditedMaster::Edit edit) {
    cluster_.master().AddEdit(std::move(edit));
    cluster_.TellNodes();
    for (auto& worker : workers_) {
      worker->context().quiesce.duties()->UseView(*cluster_.master().view());
    }
  }
  Status Repair(size_t worker, RepairOrder order) {
    Status result;
    bool ended = false;
    workers_[worker]->context().quiesce.duties()->Repair(std::move(order), [&](Status status) {
      result = status;
      ended = true;
    });
    while (!ended) BlockOn(executor_, Sleep());
    return result;
  }
  Task<void> Sleep() { co_await executor_.SleepFor(1'000'000); }
  Status MoveSubtables(size_t worker) {
    View next = *cluster_.master().view();
    ++next.epoch.value;
    next.directory = OtherDirectory(next.directory);
    RepairOrder order;
    order.kind = RepairKind::kMoveSubtables;
    order.view = std::make_shared<const View>(next);
    return Repair(worker, order);
  }
  Status EndRegisters(size_t worker) {
    RepairOrder order;
    order.kind = RepairKind::kEndRegisters;
    order.view = cluster_.master().view();
    return Repair(worker, order);
  }
  // Counts in the directory in force.
  int LeavingSubtables() {
    const View& view = *cluster_.master().view();
    int subtables = 0;
    for (uint32_t entry = 0; entry < kDirectoryEntries; ++entry) {
      const RemoteAddr at = view.Locate(DirectoryAddr(entry, view.directory), 0);
      uint64_t bits = 0;
      std::memcpy(&bits, cluster_.node(at.node.value).base() + at.offset, sizeof(bits));
      const DirectoryWord word(bits);
      subtables += word.is_used() && view.IsLeaving(word.subtable()) ? 1 : 0;
    }
    return subtables;
  }
  uint64_t LeavingBlocks() {
    uint64_t blocks = 0;
    for (size_t i = 0; i < cluster_.node_count(); ++i) {
      const NodeUsage usage = cluster_.node(i).Usage();
      EXPECT_EQ(usage.view_epoch, cluster_.master().view()->epoch.value);
      blocks += usage.leaving_blocks;
    }
    return blocks;
  }
  uint64_t LeavingBlocksInTime() {
    for (int looks = 0; looks < 1000 && LeavingBlocks() != 0; ++looks) BlockOn(executor_, Sleep());
    return LeavingBlocks();
  }
  void ExpectAll() {
    for (auto& worker : workers_) {
      for (const auto& [key, value] : model_) ASSERT_EQ(worker->Get(key), value) << key;
    }
    PoolCounts counts;
    ASSERT_TRUE(BlockOn(executor_, workers_[0]->kv().CheckPool(&counts)).ok());
    EXPECT_EQ(counts.wrong(), 0U) << counts.ToText();
  }
  void Leave() {
    Commit([](View& view) {
      view.records_only = true;
      view.leaving = 1;
    });
  }
  void Cut() {
    Commit([](View& view) {
      view.regions.pop_back();
      view.leaving = 0;
      view.records_only = false;
    });
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 48ULL << 20}};
  std::vector<std::unique_ptr<TestWorker>> workers_;
  std::map<std::string, std::string> model_;
};

TEST_F(KvLeaveTest, EverythingGoesElsewhereAndIsThereWhenTheRegionIsGone) {
  // Enough for every worker to split some subtable.
  for (size_t i = 0; i < 8000; ++i) {
    const std::string key = "small" + std::to_string(i);
    ASSERT_TRUE(workers_[i % workers_.size()]->Set(key, key).ok());
    model_[key] = key;
  }
  Fill(kSlowdown > 1 ? 700 : 2000);
  Leave();
  ASSERT_GT(LeavingBlocks(), 5U);
  EXPECT_GT(LeavingSubtables(), 0);
  ASSERT_TRUE(MoveSubtables(0).ok());
  Commit([](View& view) { view.directory = 1; });
  EXPECT_EQ(LeavingSubtables(), 0);
  ExpectAll();
  // One after the other, as the master asks, for as long as one has not the memory for it.
  Status ended(StatusCode::kOutOfMemory, "");
  for (size_t turn = 0; turn < 20 && !ended.ok(); ++turn) {
    ended = EndRegisters(turn % workers_.size());
  }
  ASSERT_TRUE(ended.ok()) << ended.message();
  EXPECT_EQ(LeavingBlocksInTime(), 0U);
  Cut();
  ExpectAll();
  Fill(300);
  ExpectAll();
}

TEST_F(KvLeaveTest, NothingIsAllocatedWhereRegionsLeave) {
  Fill(300);
  Leave();
  const uint64_t before = LeavingBlocks();
  Fill(1500);
  EXPECT_LE(LeavingBlocks(), before);
  ExpectAll();
}

TEST_F(KvLeaveTest, AnIndexThatWasMovedForNothingStaysWhereItIs) {
  Fill(kSlowdown > 1 ? 1000 : 3000);
  Leave();
  ASSERT_TRUE(MoveSubtables(0).ok());
  // Told again, as on a new stream: the view that decides is yet to come.
  workers_[0]->context().quiesce.duties()->UseView(*cluster_.master().view());
  EXPECT_FALSE(MoveSubtables(0).ok()) << "one is waited for";
  Commit([](View&) {});
  ExpectAll();
  ASSERT_TRUE(MoveSubtables(1).ok());
  Commit([](View& view) { view.directory = 1; });
  ExpectAll();
}

TEST_F(KvLeaveTest, WhatLeavesNoMoreServesAgain) {
  Fill(1000);
  Leave();
  const uint64_t before = LeavingBlocks();
  Commit([](View& view) {
    view.leaving = 0;
    view.records_only = false;
  });
  EXPECT_GT(before, 0U);
  EXPECT_EQ(LeavingBlocks(), 0U);
  Fill(1500);
  ExpectAll();
}

}  // namespace
}  // namespace onetrip
