// A store that goes on with two of three memory nodes, whichever is out, and with all three again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <map>
#include <optional>
#include <string_view>

#include "tests/support/index_worker.h"
#include "tests/support/scale.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr ClusterShape kShape{.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20};

struct Case {
  EngineKind engine;
  bool shm;
};

Task<void> Sleep(Executor* executor) { co_await executor->SleepFor(2'000'000); }

class MissingNodeTest : public testing::TestWithParam<Case> {
 protected:
  MissingNodeTest() {
    DataPathOptions options;
    options.location_cache_bytes = 1 << 18;
    options.epoch_tick_us = 100;
    if (!GetParam().shm) options.op_timeout_ms = 1000;  // simulated time
    for (int i = 0; i < 2; ++i) {
      std::unique_ptr<Fabric> fabric;
      if (GetParam().shm) {
        fabric = std::make_unique<ShmFabric>(executor().clock(), cluster().endpoints());
      } else {
        fabric = std::make_unique<SimFabric>(executor(), cluster().endpoints(), kWholeSteps);
      }
      workers_.push_back(std::make_unique<TestWorker>(cluster(), executor(), std::move(fabric),
                                                      GetParam().engine, options));
      workers_.back()->Start();
    }
  }
  ~MissingNodeTest() override {
    for (auto& worker : workers_) worker->Stop();
  }

  Executor& executor() {
    return GetParam().shm ? static_cast<Executor&>(loop_executor_) : sim_executor_;
  }
  TestCluster& cluster() { return cluster_; }
  TestWorker& worker(size_t i) { return *workers_[i % workers_.size()]; }

  // Nothing is under way: what runs behind operations has come to its end.
  void Settle() { BlockOn(executor(), Sleep(&executor())); }
  void TakeOut(NodeId node) {
    Settle();
    cluster().node(node.value).SetReachable(false);
    for (auto& worker : workers_) worker->fabric().SetEvicted(node, true);
    cluster().TakeOut(node);
  }
  void BringBack(NodeId node) {
    Settle();
    cluster().node(node.value).SetReachable(true);
    for (auto& worker : workers_) worker->fabric().SetEvicted(node, false);
    cluster().BringBack(node);
  }
  // Does the repair that the master orders when a node is out.
  void Scrub() {
    RepairOrder order;
    order.kind = RepairKind::kScrubRegisters;
    order.view = cluster().master().view();
    Status result(StatusCode::kUnavailable, "not ended");
    worker(0).context().quiesce.duties()->Repair(order, [&](Status status) { result = status; });
    for (int i = 0; i < 100 && result.code() == StatusCode::kUnavailable; ++i) Settle();
    ASSERT_TRUE(result.ok()) << result.message();
  }
  void Set(size_t i, const std::string& key, const std::string& value) {
    ASSERT_TRUE(worker(i).Set(key, value).ok()) << key;
    model_[key] = value;
  }
  void Add(size_t i, const std::string& key) {
    AddMutation add(1);
    const Status status = BlockOn(executor(), worker(i).kv().ReadModifyWrite({0, key}, add));
    ASSERT_TRUE(status.ok()) << status.message();
    model_[key] = std::to_string(add.sum());
  }
  void Delete(size_t i, const std::string& key) {
    EXPECT_EQ(worker(i).Delete(key), model_.erase(key) == 1) << key;
  }
  // Some of everything, by both workers, of which the other knows the keys from before.
  void Work(int round) {
    const auto name = [](const char* kind, int i) { return kind + std::to_string(i); };
    for (int i = 0; i < 40; ++i) {
      const auto at = static_cast<size_t>(i) + static_cast<size_t>(round);
      Set(at, name("set:", i), "round " + std::to_string(round));
      Set(at + 1, name("set:", i), "again " + std::to_string(round));
      Add(at, name("sum:", i % 5));
      Set(at, name("new:", round * 100 + i), "value");
      Delete(at + 1, name("new:", round * 100 + i - 7));
      Add(at + 1, name("set:num", i));
      if (i % 4 == 0) Delete(at, name("set:", i));
    }
  }
  void ExpectAll() {
    for (auto& worker : workers_) {
      for (const auto& [key, value] : model_) ASSERT_EQ(worker->Get(key), value) << key;
      EXPECT_EQ(worker->Get("never there"), "(nil)");
    }
    Settle();
    const IndexPicture picture = LookAtIndex(cluster());
    EXPECT_TRUE(picture.replicas_agree);
    EXPECT_EQ(picture.unfinished, 0U);
    EXPECT_EQ(picture.misplaced, 0U);
    EXPECT_EQ(picture.duplicates, 0U);
    EXPECT_EQ(picture.objects, model_.size());
    EXPECT_EQ(worker(0).CountKeys(), model_.size());
  }

  // A key of a record, which every worker has looked up; its slot's primary.
  NodeId RememberSum() {
    TakeOut(NodeId{0});
    BringBack(NodeId{0});  // the view knows its nodes now
    Add(0, "sum");
    for (auto& worker : workers_) EXPECT_EQ(worker->Get("sum"), "1");
    return cluster().master().view()->Locate(GlobalAddr(0, 0), 0).node;
  }
  void ReachOthers(NodeId primary, bool is_reached) {
    Settle();
    for (uint16_t node = 0; node < 3; ++node) {
      if (NodeId{node} != primary) cluster().node(node).SetReachable(is_reached);
    }
  }
  int ReadsOfPrimaryAlone(NodeId primary) {
    ReachOthers(primary, false);
    int read = 0;
    for (const char* key : {"sum", "never there"}) {
      for (auto& worker : workers_) {
        ReadResult result;
        read += BlockOn(executor(), worker->kv().Get({0, key}, &result)).ok() ? 1 : 0;
      }
    }
    return read;
  }
  // Each comes back region by region, while registers are written.
  void LoseNodesInTurn() {
    constexpr int kKeys = 480;
    const auto name = [](int i) { return "key:" + std::to_string(i); };
    // Registers and their buffers lie in many regions.
    for (int i = 0; i < kKeys; ++i) {
      Set(static_cast<size_t>(i), name(i), std::string(3000, 'a'));
      Set(static_cast<size_t>(i) + 1, name(i), "before");
    }
    int next = 0;
    for (int i = 0; i < 6; ++i) {
      const NodeId lost{static_cast<uint16_t>(i % 3)};
      TakeOut(lost);
      Settle();
      cluster().node(lost.value).SetReachable(true);
      for (auto& worker : workers_) worker->fabric().SetEvicted(lost, false);
      while (cluster().BringBackRegion(lost)) {
        for (int j = 0; j < 20; ++j, ++next) {
          Set(static_cast<size_t>(j), name(next % kKeys), "in between " + std::to_string(next));
        }
        Settle();
      }
    }
  }
  // Writes that one node lacks are acknowledged by the two others, of which one goes and comes
  // back, and then the other goes. Returns how many values are gone by then.
  int LostOfTwo() {
    int gone = 0;
    for (uint16_t lost = 0; lost < 3; ++lost) {
      for (uint16_t lacks = 0; lacks < 3; ++lacks) {
        if (lacks == lost) continue;
        const std::string key = "key " + std::to_string(lost) + std::to_string(lacks);
        Set(0, key, "before");
        Settle();
        cluster().node(lacks).SetReachable(false);
        Set(0, key, "acknowledged");
        TakeOut(NodeId{lost});
        cluster().node(lacks).SetReachable(true);
        Scrub();
        BringBack(NodeId{lost});
        const NodeId other{static_cast<uint16_t>(3 - lost - lacks)};
        TakeOut(other);
        gone += worker(1).Get(key) == "acknowledged" ? 0 : 1;
        BringBack(other);
      }
    }
    return gone;
  }
  // Takes the bytes of `keys` registers from one node; how many are there again after a scrub.
  size_t WholeAfterScrub(size_t keys) {
    // Too long for a copy in place.
    const std::string value = "these bytes " + std::string(2000, 'b');
    for (size_t i = 0; i < keys; ++i) Set(i, "key:" + std::to_string(i), value);
    Settle();
    std::byte* const base = cluster().node(2).base();
    const std::string_view memory(reinterpret_cast<const char*>(base), cluster().node(2).bytes());
    for (size_t at = memory.find(value); at != memory.npos; at = memory.find(value, at + 1)) {
      base[at] = std::byte{'x'};
    }
    Scrub();
    size_t whole = 0;
    for (size_t at = memory.find(value); at != memory.npos; at = memory.find(value, at + 1)) {
      ++whole;
    }
    return whole;
  }

  SystemClock clock_;
  LoopExecutor loop_executor_{clock_, 1};
  SimExecutor sim_executor_{1};
  TestCluster cluster_{executor().clock(), kShape};
  std::vector<std::unique_ptr<TestWorker>> workers_;
  std::map<std::string, std::string> model_;
};

TEST_P(MissingNodeTest, EverythingGoesOnWithoutOneNodeAfterTheOther) {
  int round = 0;
  Work(round++);
  ExpectAll();
  for (uint16_t lost = 0; lost < 3; ++lost) {
    SCOPED_TRACE(lost);
    TakeOut(NodeId{lost});
    ExpectAll();
    Work(round++);
    ExpectAll();
    BringBack(NodeId{lost});
    ExpectAll();
    Work(round++);
    ExpectAll();
  }
}

// A register's region and that of its buffers come back one after the other. What is written in
// between has to be whole on that node when the others are lost in their turn.
TEST_P(MissingNodeTest, WhatIsWrittenWhileRegionsComeBackOutlivesTheOtherNodes) {
  LoseNodesInTurn();
  ExpectAll();
}

// A copy to a node that comes back may be taken from the node that lacks the value.
TEST_P(MissingNodeTest, AScrubBringsWordsToEveryNode) {
  if (GetParam().engine == EngineKind::kSnapshot) return;  // has no registers
  EXPECT_EQ(LostOfTwo(), 0);
}

// A node may have the word of a write that was cut short, and not the bytes.
TEST_P(MissingNodeTest, AScrubBringsBytesToEveryNode) {
  const size_t keys = 40;
  EXPECT_EQ(WholeAfterScrub(keys), GetParam().engine == EngineKind::kSnapshot ? 0 : keys);
}

TEST_P(MissingNodeTest, TheIndexGrowsWithoutANode) {
  const NodeId lost = cluster().master().view()->Locate(GlobalAddr(0, 0), 0).node;
  const int keys = GetParam().shm && kSlowdown == 1 ? 20'000 : 6'000;
  const auto name = [](int i) { return "key:" + std::to_string(i); };
  for (int i = 0; i < keys / 2; ++i) Set(0, name(i), std::to_string(i));
  TakeOut(lost);
  for (int i = keys / 2; i < keys; ++i) Set(static_cast<size_t>(i), name(i), std::to_string(i));
  ExpectAll();
  EXPECT_GT(worker(0).kv().metrics().index->splits.Value(), 1U);
  BringBack(lost);
  // The others one by one: all that was written meanwhile is on the node that came back.
  for (uint16_t node = 0; node < 3; ++node) {
    if (NodeId{node} == lost) continue;
    TakeOut(NodeId{node});
    ExpectAll();
    BringBack(NodeId{node});
  }
}

Task<void> SetInto(Kv* kv, NewRecord record, std::optional<Status>* status) {
  *status = co_await kv->Set({0, "key"}, record);
}

TEST_P(MissingNodeTest, AWriteWithoutAMajorityIsPostedWhenThereIsOne) {
  if (GetParam().engine == EngineKind::kSnapshot) return;  // has no registers
  Set(0, "key", "one");
  Settle();
  const auto reach = [this](std::initializer_list<size_t> nodes, bool is_reached) {
    for (const size_t node : nodes) cluster().node(node).SetReachable(is_reached);
  };
  Gate gate(executor());
  std::optional<Status> status;
  NewRecord record;
  record.head = "two";
  reach({1, 2}, false);
  ASSERT_TRUE(executor().Spawn(gate, SetInto(&worker(0).kv(), record, &status)));
  Settle();
  EXPECT_FALSE(status.has_value());
  reach({2}, true);
  for (int i = 0; i < 1000 && !status.has_value(); ++i) Settle();
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(status->ok());
  EXPECT_EQ(worker(1).Get("key"), "two");
  reach({1}, true);

  // A worker that gives up has posted nothing.
  if (GetParam().shm) return;  // time is real there
  reach({1, 2}, false);
  EXPECT_EQ(worker(0).Set("key", "three").code(), StatusCode::kUnavailable);
  reach({1, 2}, true);
  EXPECT_EQ(worker(1).Get("key"), "two");
}

Task<void> DeleteInto(Kv* kv, bool* existed, std::optional<Status>* status) {
  *status = co_await kv->Delete({0, "deleted"}, existed);
}

Task<void> AddInto(Kv* kv, AddMutation* add, std::optional<Status>* status) {
  *status = co_await kv->ReadModifyWrite({0, "sum"}, *add);
}

// No process knows yet that the node is lost when the search meets it, and no repair has begun.
TEST_P(MissingNodeTest, AWriteThatMeetsALostNodeIsDoneWithoutIt) {
  for (uint16_t lost = 0; lost < 3; ++lost) {
    SCOPED_TRACE(lost);
    Add(0, "sum");
    Set(0, "deleted", "value");
    Settle();
    cluster().node(lost).SetReachable(false);
    Gate gate(executor());
    Kv& kv = worker(1).kv();
    std::array<std::optional<Status>, 3> statuses;
    NewRecord record;
    record.head = "value";
    bool existed = false;
    AddMutation add(1);
    ASSERT_TRUE(executor().Spawn(gate, SetInto(&kv, record, &statuses[0])));
    ASSERT_TRUE(executor().Spawn(gate, DeleteInto(&kv, &existed, &statuses[1])));
    ASSERT_TRUE(executor().Spawn(gate, AddInto(&kv, &add, &statuses[2])));
    TakeOut(NodeId{lost});
    const auto ended = [](const auto& status) { return status.has_value(); };
    for (int i = 0; i < 1000 && !std::all_of(statuses.begin(), statuses.end(), ended); ++i) {
      Settle();
    }
    for (const std::optional<Status>& status : statuses) {
      ASSERT_TRUE(status.has_value());
      EXPECT_TRUE(status->ok()) << status->message();
    }
    EXPECT_TRUE(existed);
    model_["key"] = "value";
    model_["sum"] = std::to_string(add.sum());
    model_.erase("deleted");
    ExpectAll();
    BringBack(NodeId{lost});
    EXPECT_TRUE(worker(0).Delete("key"));
    model_.erase("key");
  }
}

// A worker that only the primary lets in may have been expelled, and the primary may be lost.
TEST_P(MissingNodeTest, ASlotIsNotReadWithoutWitnesses) {
  if (GetParam().shm) return;  // a worker that is fenced there has ended
  const NodeId primary = RememberSum();
  EXPECT_EQ(ReadsOfPrimaryAlone(primary), 0);
  // Any of the others will do.
  for (uint16_t node = 0; node < 3; ++node) {
    if (NodeId{node} == primary) continue;
    ReachOthers(primary, true);
    cluster().node(node).SetReachable(false);
    for (auto& worker : workers_) {
      EXPECT_EQ(worker->Get("sum"), "1");
      EXPECT_EQ(worker->Get("never there"), "(nil)");
    }
  }
  ReachOthers(primary, true);
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_P(MissingNodeTest, PlantedBugBytesNotBesideIsFound) {
  if (GetParam().engine == EngineKind::kSnapshot) return;
  if (GetParam().shm) return;  // time is real there, and a worker that misses bytes waits for them
  TEST_planted_bug = Bug::kBytesNotBeside;
  LoseNodesInTurn();
  TEST_planted_bug = Bug::kNone;
  int wrong = 0;
  for (const auto& [key, value] : model_) wrong += worker(0).Get(key) == value ? 0 : 1;
  EXPECT_GT(wrong, 0);
}

TEST_P(MissingNodeTest, PlantedBugNoScrubIsFound) {
  if (GetParam().engine == EngineKind::kSnapshot) return;
  TEST_planted_bug = Bug::kNoScrub;
  EXPECT_GT(LostOfTwo(), 0);
  TEST_planted_bug = Bug::kNone;
}

TEST_P(MissingNodeTest, PlantedBugScrubLeavesBytesIsFound) {
  TEST_planted_bug = Bug::kScrubLeavesBytes;
  EXPECT_EQ(WholeAfterScrub(40), 0U);
  TEST_planted_bug = Bug::kNone;
}

TEST_P(MissingNodeTest, PlantedBugNoWitnessesIsFound) {
  if (GetParam().shm) return;
  const NodeId primary = RememberSum();
  TEST_planted_bug = Bug::kNoWitnesses;
  EXPECT_GT(ReadsOfPrimaryAlone(primary), 0);
  TEST_planted_bug = Bug::kNone;
  ReachOthers(primary, true);
}
#endif

INSTANTIATE_TEST_SUITE_P(Engines, MissingNodeTest,
                         testing::Values(Case{EngineKind::kSwarm, true},
                                         Case{EngineKind::kSwarm, false},
                                         Case{EngineKind::kSnapshot, true},
                                         Case{EngineKind::kAbd, false}),
                         [](const auto& info) {
                           const std::string fabric = info.param.shm ? "Shm" : "Sim";
                           switch (info.param.engine) {
                             case EngineKind::kSwarm:
                               return "Swarm" + fabric;
                             case EngineKind::kAbd:
                               return "Abd" + fabric;
                             default:
                               return "Snapshot" + fabric;
                           }
                         });

}  // namespace
}  // namespace onetrip
