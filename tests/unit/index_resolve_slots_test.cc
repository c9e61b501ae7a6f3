// Half-done slot writes, brought to an end by another worker (FUSEE 5.2).
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>

#include "client_core/index/resolve_slots.h"
#include "client_core/layout/record_codec.h"
#include "tests/support/index_worker.h"

namespace onetrip {
namespace {

class ResolveSlotsTest : public testing::Test {
 protected:
  ResolveSlotsTest() {
    CHECK(BlockOn(executor_, worker_.Open()).ok());
    for (int i = 0; i < 20; ++i) {
      CHECK(BlockOn(executor_, worker_.Insert("key" + std::to_string(i), i)).ok());
    }
    slot_ = SlotOf("key7");
    v_old_ = *Word(slot_, 0);
  }

  // The slot of a key, by looking for its record.
  GlobalAddr SlotOf(const std::string& key) {
    const DirectoryWord directory(*Word(DirectoryAddr(0, 0), 0));
    for (uint32_t i = 0; i < kSubtableGroups * kGroupWords; ++i) {
      const GlobalAddr at = directory.subtable() + i * 8;
      const SlotWord word(*Word(at, 0));
      if (i % kGroupWords == kGroupHeaderWord || word.is_empty()) continue;
      if (RecordHasKey(Bytes(word.addr(), 0), word.size_class().bytes(), KeyspaceId{1}, key)) {
        return at;
      }
    }
    CHECK(false);
    return {};
  }

  std::byte* Bytes(GlobalAddr addr, int replica) {
    const RemoteAddr at = view_.Locate(addr, replica);
    return cluster_.node(at.node.value).base() + at.offset;
  }
  uint64_t* Word(GlobalAddr addr, int replica) {
    return reinterpret_cast<uint64_t*>(Bytes(addr, replica));
  }

  // A record of key7 with `value`, on the node of one replica only; the word that names it.
  SlotWord WriteRecordOn(int replica, uint64_t value) {
    const SlotWord old(v_old_);
    const Result<GlobalAddr> addr = worker_.Allocate(old.size_class());
    CHECK(addr.ok());
    const RecordHeader header = LoadRecordHeader(Bytes(old.addr(), 0));
    RecordFields fields;
    fields.keyspace = KeyspaceId{1};
    fields.key = "key7";
    const std::string text(reinterpret_cast<const char*>(&value), sizeof(value));
    fields.value_head = text;
    fields.version = header.version + 1;
    EncodeRecord(fields, Bytes(*addr, replica));
    return SlotWord::Make(SlotKind::kObject, old.fingerprint(), old.size_class(), *addr, false);
  }

  // The view after the loss of the node of replica `lost`.
  View Without(int lost) {
    View view = view_;
    for (RegionPlacement& placement : view.regions) {
      const RegionPlacement before = placement;
      const NodeId node = view_.Locate(slot_, lost).node;
      int live = 0;
      for (int i = 0; i < view.replicas; ++i) {
        if (before.nodes[i] == node) {
          placement.nodes[view.replicas - 1] = before.nodes[i];
          placement.base[view.replicas - 1] = before.base[i];
        } else {
          placement.nodes[live] = before.nodes[i];
          placement.base[live++] = before.base[i];
        }
      }
      placement.missing = 1;
    }
    return view;
  }

  uint64_t Resolve(const View& view) {
    SlotResolver resolver(worker_.fabric(), view,
                          [this] { return worker_.index().NewEmptyWord(); });
    EXPECT_TRUE(BlockOn(executor_, resolver.Run()).ok());
    return resolver.resolved();
  }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), {.nodes = 3, .replicas = 3, .node_bytes = 16ULL << 20}};
  IndexWorker worker_{cluster_, executor_, MakeSim(cluster_, executor_)};
  const View view_ = *cluster_.master().view();
  GlobalAddr slot_;
  uint64_t v_old_ = 0;
};

TEST_F(ResolveSlotsTest, LeavesAloneWhatIsAlike) {
  EXPECT_EQ(Resolve(view_), 0U);
  EXPECT_EQ(Resolve(Without(0)), 0U);
  EXPECT_EQ(*Word(slot_, 0), v_old_);
}

TEST_F(ResolveSlotsTest, ThePrimarysWordStands) {
  *Word(slot_, 1) = WriteRecordOn(1, 700).bits();
  EXPECT_EQ(Resolve(view_), 1U);
  for (int replica = 0; replica < 3; ++replica) EXPECT_EQ(*Word(slot_, replica), v_old_);
  EXPECT_EQ(BlockOn(executor_, worker_.Lookup("key7")).value(), 7U);
}

TEST_F(ResolveSlotsTest, AClaimGivesWayToTheWordThatItWasMadeFrom) {
  const uint64_t empty = SlotWord::Empty(WorkerId{5}, 6).bits();
  for (int replica = 0; replica < 3; ++replica) *Word(slot_, replica) = empty;
  *Word(slot_, 0) = ClaimOf(v_old_);
  // Its commit had begun.
  *Word(slot_, 2) = v_old_;
  EXPECT_EQ(Resolve(view_), 1U);
  for (int replica = 0; replica < 3; ++replica) EXPECT_EQ(*Word(slot_, replica), empty);
}

TEST_F(ResolveSlotsTest, AClaimWhoseCommitIsOnAllBackupsIsCommitted) {
  *Word(slot_, 0) = ClaimOf(v_old_);
  EXPECT_EQ(Resolve(view_), 1U);
  for (int replica = 0; replica < 3; ++replica) EXPECT_EQ(*Word(slot_, replica), v_old_);
  EXPECT_EQ(BlockOn(executor_, worker_.Lookup("key7")).value(), 7U);
}

TEST_F(ResolveSlotsTest, WhoMeetsADecidedClaimTurnsThePrimary) {
  *Word(slot_, 0) = ClaimOf(v_old_);
  EXPECT_EQ(BlockOn(executor_, worker_.Lookup("key7")).value(), 7U);
  EXPECT_EQ(*Word(slot_, 0), v_old_);
  *Word(slot_, 0) = ClaimOf(v_old_);
  EXPECT_TRUE(BlockOn(executor_, worker_.Add("key7", 3)).value());
  EXPECT_EQ(BlockOn(executor_, worker_.Lookup("key7")).value(), 10U);
}

TEST_F(ResolveSlotsTest, AClaimIsNotDecidedBeforeAllBackupsHoldItsCommit) {
  const uint64_t empty = SlotWord::Empty(WorkerId{5}, 6).bits();
  *Word(slot_, 0) = ClaimOf(v_old_);
  *Word(slot_, 2) = empty;
  EXPECT_EQ(BlockOn(executor_, worker_.Lookup("key7")).value(), IndexWorker::kMissing);
  EXPECT_EQ(*Word(slot_, 0), ClaimOf(v_old_));
}

TEST_F(ResolveSlotsTest, AClaimThatWasCopiedEndsWithAWordOfItsOwn) {
  for (int replica = 0; replica < 3; ++replica) *Word(slot_, replica) = ClaimOf(v_old_);
  EXPECT_EQ(Resolve(view_), 1U);
  const SlotWord word(*Word(slot_, 0));
  EXPECT_TRUE(word.is_empty());
  EXPECT_NE(word.bits(), 0U);
  for (int replica = 1; replica < 3; ++replica) EXPECT_EQ(*Word(slot_, replica), word.bits());
}

TEST_F(ResolveSlotsTest, WhatIsNowhereWholeIsNotTaken) {
  // The new primary has the word of a record that never came to be; no worker can have read it.
  const SlotWord torn = WriteRecordOn(1, 700);
  for (int replica = 0; replica < 3; ++replica) {
    std::memset(Bytes(torn.addr(), replica), 0, kRecordHeaderBytes);
  }
  *Word(slot_, 1) = torn.bits();
  const SlotWord whole = WriteRecordOn(2, 701);
  *Word(slot_, 2) = whole.bits();
  EXPECT_EQ(Resolve(Without(0)), 1U);
  EXPECT_EQ(*Word(slot_, 1), whole.bits());
  EXPECT_EQ(*Word(slot_, 2), whole.bits());
  EXPECT_TRUE(RecordIsIntact(Bytes(whole.addr(), 1), whole.size_class().bytes()));
}

TEST_F(ResolveSlotsTest, TheNewPrimarysWordStands) {
  // Its first reader may have seen it.
  const SlotWord first = WriteRecordOn(1, 700);
  const SlotWord second = WriteRecordOn(2, 701);
  *Word(slot_, 1) = first.bits();
  *Word(slot_, 2) = second.bits();
  EXPECT_EQ(Resolve(Without(0)), 1U);
  EXPECT_EQ(*Word(slot_, 0), v_old_) << "the lost node was written";
  EXPECT_EQ(*Word(slot_, 1), first.bits());
  EXPECT_EQ(*Word(slot_, 2), first.bits());
  EXPECT_TRUE(RecordIsIntact(Bytes(first.addr(), 2), first.size_class().bytes()));
}

TEST_F(ResolveSlotsTest, DirectoryEntriesAndEmptyWords) {
  const SlotWord empty = worker_.index().NewEmptyWord();
  *Word(slot_, 0) = empty.bits();
  const DirectoryWord before(*Word(DirectoryAddr(0, 0), 0));
  const DirectoryWord locked =
      DirectoryWord::Splitting(before.subtable(), before.depth(), WorkerIndex{3});
  *Word(DirectoryAddr(0, 0), 0) = *Word(DirectoryAddr(0, 0), 2) = locked.bits();
  EXPECT_EQ(Resolve(view_), 2U);
  for (int replica = 0; replica < 3; ++replica) {
    EXPECT_EQ(*Word(slot_, replica), empty.bits());
    EXPECT_EQ(*Word(DirectoryAddr(0, 0), replica), locked.bits());
  }
  EXPECT_EQ(BlockOn(executor_, worker_.Lookup("key7")).value(), IndexWorker::kMissing);
}

// A worker that the cluster waits for.
class HeldWorker : public IndexWorker {
 public:
  using IndexWorker::IndexWorker;
  Quiesce& hold() { return hold_; }
};

// Operations that complete inline would go round in one turn for ever.
TEST_F(ResolveSlotsTest, AnInserterThatMayNotWaitForAClaimGivesUp) {
  for (int replica = 0; replica < 3; ++replica) *Word(slot_, replica) = 0;
  *Word(slot_, 0) = ClaimOf(v_old_);
  HeldWorker other(cluster_, executor_, MakeShm(cluster_, executor_));
  ASSERT_TRUE(BlockOn(executor_, other.Open()).ok());
  Quiesce::InFlightGuard in_flight(other.hold());
  ASSERT_TRUE(in_flight.TryEnterSlots());
  other.hold().Hold(HoldKind::kSlots);
  executor_.RunUntil(executor_.NowNs() + 30'000'000);
  ASSERT_TRUE(other.hold().is_impatient());

  const Result<bool> inserted = BlockOn(executor_, other.Insert("key7", 700));
  EXPECT_EQ(inserted.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(*Word(slot_, 0), ClaimOf(v_old_));
  EXPECT_LE(other.allocator().retired_count(), 1U);
}

}  // namespace
}  // namespace onetrip
