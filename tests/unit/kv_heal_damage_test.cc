// Damaged memory that was accepted as it is: what is sound at some replica is everywhere
// afterwards, and what is at none is lost by name, and may be written again. And what a check of
// the pool finds of damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

#include "client_core/base/planted_bug.h"
#include "client_core/base/rng.h"
#include "client_core/kv/heal_damage.h"
#include "client_core/kv/pool_check.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/region_layout.h"
#include "tests/support/byte_tree.h"
#include "tests/support/index_worker.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

using testing::HasSubstr;

constexpr uint64_t kPageBytes = 4096;

class HealDamageTest : public testing::TestWithParam<EngineKind> {
 protected:
  HealDamageTest() {
    auto writer = NewWorker();
    for (int i = 0; i < 1500; ++i) Set(*writer, "key:" + std::to_string(i), "first");
    for (int i = 0; i < 1500; ++i) {
      const std::string key = "key:" + std::to_string(i);
      if (i % 3 == 0) Set(*writer, key, "second value " + std::to_string(i));
      if (i % 7 == 0) Set(*writer, key, std::string(300, 'x') + std::to_string(i));
      if (i % 11 != 0) continue;
      EXPECT_TRUE(writer->Delete(key));
      model_.erase(key);
    }
    for (int i = 0; i < 200; ++i) {
      AddMutation add(i);
      const std::string key = "sum:" + std::to_string(i);
      EXPECT_TRUE(BlockOn(executor_, writer->kv().ReadModifyWrite({0, key}, add)).ok());
      model_[key] = std::to_string(i);
    }
    Set(*writer, "large", std::string(20'000, 'l'));
    std::string tree;
    for (int i = 0; i < 4000; ++i) tree += std::to_string(i * 7919);
    ByteTreeEdit edit(writer->kv().tree_limits(), 0, 0, tree);
    EXPECT_TRUE(BlockOn(executor_, writer->kv().ReadModifyWrite({0, "tree"}, edit)).ok());
    model_["tree"] = tree;
    writer->Stop();
  }

  std::unique_ptr<TestWorker> NewWorker() {
    DataPathOptions options;
    options.epoch_tick_us = 100;
    options.record_value_bytes_max = 4000;
    options.extent_bytes = 3000;
    auto worker = std::make_unique<TestWorker>(
        cluster_, executor_,
        std::make_unique<SimFabric>(executor_, cluster_.endpoints(), kWholeSteps), GetParam(),
        options);
    worker->Start();
    return worker;
  }
  void Set(TestWorker& worker, const std::string& key, const std::string& value) {
    ASSERT_TRUE(worker.Set(key, value).ok()) << key;
    model_[key] = value;
  }
  Task<void> Sleep() { co_await executor_.SleepFor(2'000'000); }
  std::byte* Bytes(GlobalAddr addr, int replica) {
    const RemoteAddr at = cluster_.master().view()->Locate(addr, replica);
    return cluster_.node(at.node.value).base() + at.offset;
  }

  // The pages of subtables, objects and values, by a replica-independent address; what the memory
  // nodes themselves keep in blocks is left alone.
  std::set<uint64_t> Pages() {
    const IndexPicture picture = LookAtIndex(cluster_);
    std::set<uint64_t> pages;
    std::vector<GlobalAddr> all = picture.named;
    all.insert(all.end(), picture.buffers.begin(), picture.buffers.end());
    for (const GlobalAddr addr : all) {
      const uint64_t page = addr.bits() / kPageBytes * kPageBytes;
      const uint64_t offset = GlobalAddr(page).offset();
      if (offset % kBlockBytes >= kBlockHeaderBytes) pages.insert(page);
    }
    return pages;
  }
  // Every page, at one replica each.
  void DamageEverywhere(uint64_t seed) {
    Rng rng(seed);
    for (const uint64_t page : Pages()) {
      std::byte* const bytes = Bytes(GlobalAddr(page), static_cast<int>(rng.Below(3)));
      if (rng.Below(2) == 0) {
        std::memset(bytes, 0, kPageBytes);
      } else {
        for (uint64_t i = 0; i < kPageBytes; ++i) bytes[i] = static_cast<std::byte>(rng.Next());
      }
    }
  }
  Status Repair(TestWorker& worker, RepairKind kind) {
    RepairOrder order;
    order.kind = kind;
    order.view = cluster_.master().view();
    order.damaged = kind == RepairKind::kResolveSlots;
    Status result(StatusCode::kUnavailable, "not ended");
    bool ended = false;
    worker.context().quiesce.duties()->Repair(order, [&](Status status) {
      result = status;
      ended = true;
    });
    for (int i = 0; i < 10'000 && !ended; ++i) BlockOn(executor_, Sleep());
    return result;
  }
  int Wrong(TestWorker& worker) {
    int wrong = 0;
    for (const auto& [key, value] : model_) wrong += worker.Get(key) == value ? 0 : 1;
    return wrong;
  }
  GlobalAddr ObjectOf(const std::string& key) { return SlotWord(SlotOf(key).second).addr(); }
  // The group that has the key, and its slot's word.
  std::pair<GlobalAddr, uint64_t> SlotOf(const std::string& key) {
    for (const GlobalAddr start : LookAtIndex(cluster_).named) {
      for (uint32_t i = 0; i < kSubtableBytes / 8; ++i) {
        uint64_t bits = 0;
        std::memcpy(&bits, Bytes(start, 0) + i * 8, 8);
        const SlotWord word(bits);
        EntryKey found;
        if (word.is_empty() || !word.size_class().is_valid() ||
            !cluster_.master().view()->Contains(word.addr()) ||
            !LoadEntryKey(word, Bytes(word.addr(), 0), word.size_class().bytes(), &found)) {
          continue;
        }
        if (found.bytes == key) return {start + i / kGroupWords * kGroupBytes, bits};
      }
    }
    CHECK(false);
    return {};
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20}};
  std::map<std::string, std::string> model_;
};

TEST_P(HealDamageTest, ACheckOfThePoolCountsWhatIsThereAndWhatIsWrong) {
  auto worker = NewWorker();
  const auto check = [&] {
    PoolCounts counts;
    EXPECT_TRUE(BlockOn(executor_, worker->kv().CheckPool(&counts)).ok());
    return counts;
  };
  const PoolCounts sound = check();
  EXPECT_EQ(sound.wrong(), 0U) << sound.ToText();
  EXPECT_EQ(sound.unfinished, 0U);
  EXPECT_EQ(sound.records + sound.registers, model_.size());
  EXPECT_EQ(sound.extents, 7U);
  EXPECT_LT(sound.named_bytes, sound.owned_bytes);

  // A byte of a record, and then of an extent's list, on one replica.
  for (const char* key : {"sum:5", "large"}) {
    std::byte* const byte = Bytes(ObjectOf(key), 1) + kRecordHeaderBytes + 1;
    *byte ^= std::byte{1};
    EXPECT_EQ(check().damaged, 1U) << key;
    EXPECT_EQ(check().wrong(), 1U) << key;
    *byte ^= std::byte{1};
  }

  // A second entry for a key, which names the same object.
  const GlobalAddr group = SlotOf("sum:5").first;
  const uint64_t word = SlotOf("sum:5").second;
  GlobalAddr empty;
  for (uint32_t i = 0; i < kGroupWords; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, Bytes(group + i * 8, 0), 8);
    if (i != kGroupHeaderWord && SlotWord(bits).is_empty()) empty = group + i * 8;
  }
  ASSERT_FALSE(empty.is_null());
  uint64_t was = 0;
  std::memcpy(&was, Bytes(empty, 0), 8);
  std::memcpy(Bytes(empty, 0), &word, 8);
  EXPECT_EQ(check().differing, 2U) << "from two replicas";
  for (int replica = 1; replica < 3; ++replica) std::memcpy(Bytes(empty, replica), &word, 8);
  const PoolCounts twice = check();
  EXPECT_EQ(twice.duplicates, 1U);
  EXPECT_EQ(twice.named_twice, 1U);
  EXPECT_EQ(twice.differing, 0U);
  EXPECT_EQ(twice.examples.size(), 2U);
  for (int replica = 0; replica < 3; ++replica) std::memcpy(Bytes(empty, replica), &was, 8);
  EXPECT_EQ(check().wrong(), 0U);
}

TEST_P(HealDamageTest, EveryPageMayBeDamagedAtOneReplica) {
  DamageEverywhere(7);
  auto worker = NewWorker();
  ASSERT_TRUE(Repair(*worker, RepairKind::kResolveSlots).ok());
  ASSERT_TRUE(Repair(*worker, RepairKind::kScrubRegisters).ok());
  EXPECT_EQ(Wrong(*worker), 0);
  const IndexPicture picture = LookAtIndex(cluster_);
  EXPECT_TRUE(picture.replicas_agree);
  EXPECT_EQ(picture.objects, model_.size());
  EXPECT_EQ(picture.damaged, 0U);
  // All of it may be written and removed.
  for (auto& [key, value] : model_) {
    ASSERT_TRUE(worker->Set(key, value = "after").ok()) << key;
  }
  EXPECT_EQ(Wrong(*worker), 0);
  for (const auto& [key, value] : model_) EXPECT_TRUE(worker->Delete(key)) << key;
  worker->Stop();
}

TEST_P(HealDamageTest, WhatIsSoundIsLeftAsItIs) {
  auto worker = NewWorker();
  DamageHealer healer(worker->fabric(), *cluster_.master().view(), [] { return SlotWord(); });
  ASSERT_TRUE(BlockOn(executor_, healer.Run()).ok());
  EXPECT_EQ(healer.healed(), 0U);
  EXPECT_EQ(healer.lost(), 0U);
  EXPECT_EQ(healer.LostText(), "");
  EXPECT_EQ(Wrong(*worker), 0);
  worker->Stop();
}

TEST_P(HealDamageTest, WhatNoReplicaHasIsLostByNameAndMayBeWrittenAgain) {
  for (const char* key : {"key:1", "sum:1"}) {
    const GlobalAddr addr = ObjectOf(key);
    // The key of sum:1 can still be read, but nothing of key:1.
    for (int replica = 0; replica < 3; ++replica) {
      std::byte* const bytes = Bytes(addr, replica);
      if (std::string(key) == "sum:1") {
        bytes[kRecordHeaderBytes + 5] ^= std::byte{4};  // a byte of the value
      } else {
        std::memset(bytes, 0, 48);
      }
    }
    model_.erase(key);
  }
  auto worker = NewWorker();
  EXPECT_THAT(worker->Get("sum:1"), HasSubstr("error"));
  uint32_t next = 1 << 20;
  DamageHealer healer(worker->fabric(), *cluster_.master().view(),
                      [&next] { return SlotWord::Empty(WorkerId{999}, ++next); });
  ASSERT_TRUE(BlockOn(executor_, healer.Run()).ok());
  EXPECT_EQ(healer.lost(), 2U);
  EXPECT_THAT(healer.LostText(),
              HasSubstr("2 keys are lost, of which no replica was intact: sum:1, 1 "));
  for (const char* key : {"key:1", "sum:1"}) {
    EXPECT_EQ(worker->Get(key), "(nil)");
    EXPECT_TRUE(worker->Set(key, "again").ok());
    EXPECT_EQ(worker->Get(key), "again");
    EXPECT_TRUE(worker->Delete(key));
  }
  EXPECT_EQ(Wrong(*worker), 0);
  worker->Stop();
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_P(HealDamageTest, PlantedBugDamagedKeyNotHealedIsFound) {
  DamageEverywhere(7);
  TEST_planted_bug = Bug::kDamagedKeyNotHealed;
  auto worker = NewWorker();
  (void)Repair(*worker, RepairKind::kResolveSlots);
  TEST_planted_bug = Bug::kNone;
  EXPECT_GT(Wrong(*worker), 0);
}
#endif

INSTANTIATE_TEST_SUITE_P(Engines, HealDamageTest,
                         testing::Values(EngineKind::kSnapshot, EngineKind::kSwarm),
                         [](const testing::TestParamInfo<EngineKind>& info) {
                           return info.param == EngineKind::kSwarm ? "swarm" : "snapshot";
                         });

}  // namespace
}  // namespace onetrip
