// Open blocks as a memory node sees them (PROTOCOLS, "Open blocks" and "Compaction").
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "client_core/cluster/view.h"
#include "client_core/layout/region_layout.h"
#include "master/membership.h"
#include "memnode/memory_node.h"

namespace onetrip {
namespace {

using Kind = ControlRequest::Kind;
using Outcome = ControlReply::Outcome;

constexpr SizeClass kSlab(3);

class MemoryNodeOpenTest : public testing::Test {
 protected:
  MemoryNodeOpenTest() {
    Result<MembershipState> state =
        MembershipState::Create({.nodes = 1, .replicas = 1, .node_bytes = 2 * kRegionBytes});
    CHECK(state.ok());
    view_ = state->view();
    Result<std::unique_ptr<MemoryNode>> node = MemoryNode::Create(NodeId{0}, view_);
    CHECK(node.ok());
    node_ = std::move(node.value());
  }
  ControlReply Ask(Kind kind, SizeClass size_class, uint32_t owner) {
    ControlRequest request;
    request.kind = kind;
    request.size_class = size_class;
    request.owner = WorkerId{owner};
    return node_->Handle(request);
  }
  std::byte* At(GlobalAddr addr) { return node_->base() + view_.Locate(addr, 0).offset; }
  // A block of the class that has no owner, in which `free` objects are free.
  GlobalAddr Open(SizeClass size_class, uint32_t free) {
    const ControlReply reply = Ask(Kind::kAlloc, size_class, 5);
    CHECK(reply.outcome == Outcome::kDone);
    auto* bitmap = reinterpret_cast<uint64_t*>(At(reply.block) + BitmapOffset(reply.block.block()));
    for (uint32_t i = 0; i < free; ++i) bitmap[i / 64] |= 1ULL << (i % 64);
    ControlRequest request;
    request.kind = Kind::kTakeOver;
    request.size_class = size_class;
    request.owner = kNobody;
    request.from = WorkerId{5};
    request.block = reply.block;
    CHECK(node_->Handle(request).outcome == Outcome::kDone);
    return reply.block;
  }
  BlockEntry Entry(GlobalAddr block) {
    const auto* header = reinterpret_cast<RegionHeader*>(At(GlobalAddr(block.region(), 0)));
    return BlockEntry(header->blocks[block.block()]);
  }

  View view_;
  std::unique_ptr<MemoryNode> node_;
};

// The emptiest first, whatever its class; spans, and what is mostly used, never.
TEST_F(MemoryNodeOpenTest, OneOfWhichLittleIsUsedGoesToWhoAsksForAny) {
  const SizeClass large = SizeClass::For(20'000);
  const GlobalAddr half = Open(large, 6);
  Open(kSlab, 10);
  const GlobalAddr mostly_free = Open(kSlab, ObjectsPerBlock(kSlab, 1) * 9 / 10);
  Open(SizeClass(SizeClass::kSlabClasses + 2), 1);
  for (const auto& [block, size_class] : {std::pair(mostly_free, kSlab), std::pair(half, large)}) {
    const ControlReply given = Ask(Kind::kAllocSparse, SizeClass(0), 6);
    EXPECT_EQ(given.outcome, Outcome::kOpened);
    EXPECT_EQ(given.block, block);
    EXPECT_EQ(given.size_class, size_class);
    EXPECT_EQ(Entry(block).owner(), WorkerId{6});
  }
  EXPECT_EQ(Ask(Kind::kAllocSparse, SizeClass(0), 6).outcome, Outcome::kFull);
}

TEST_F(MemoryNodeOpenTest, ANodeSaysWithItsGrantsThatFreeBlocksAreFew) {
  const uint64_t blocks = node_->Usage().blocks;
  uint64_t granted = 0;
  bool is_tight = false;
  for (ControlReply reply = Ask(Kind::kAlloc, kSlab, 1); reply.outcome == Outcome::kDone;
       reply = Ask(Kind::kAlloc, kSlab, 1)) {
    ++granted;
    EXPECT_TRUE(!is_tight || reply.is_tight);
    if (reply.is_tight && !is_tight) {
      EXPECT_GT(granted, blocks / 2);
    }
    is_tight = reply.is_tight;
  }
  EXPECT_TRUE(is_tight);
}

// The primary has taken an open block back when it was wholly free, and granted it anew; a grant
// that did not reach this backup is made up for when its owner claims it.
TEST_F(MemoryNodeOpenTest, ABackupGivesWhatIsOpenToTheOwnerThatThePrimaryNames) {
  Result<MembershipState> state =
      MembershipState::Create({.nodes = 2, .replicas = 2, .node_bytes = 2 * kRegionBytes});
  ASSERT_TRUE(state.ok());
  const View view = state->view();
  const uint32_t region = 1;
  const NodeId backup_id = view.regions[region].nodes[1];
  Result<std::unique_ptr<MemoryNode>> backup = MemoryNode::Create(backup_id, view);
  ASSERT_TRUE(backup.ok());
  const GlobalAddr start(region, kBlockBytes);
  const SizeClass span(SizeClass::kSlabClasses);
  const auto ask = [&](Kind kind, SizeClass size_class, WorkerId owner, WorkerId from) {
    ControlRequest request;
    request.kind = kind;
    request.size_class = size_class;
    request.owner = owner;
    request.from = from;
    request.block = start;
    return backup.value()->Handle(request).outcome;
  };
  const WorkerId first{5};
  const WorkerId second{6};
  ASSERT_EQ(ask(Kind::kGrant, kSlab, first, {}), Outcome::kDone);
  EXPECT_EQ(ask(Kind::kTakeOver, span, second, second), Outcome::kConflict) << "it is somebody's";
  ASSERT_EQ(ask(Kind::kTakeOver, kSlab, kNobody, first), Outcome::kDone);
  EXPECT_EQ(ask(Kind::kTakeOver, span, kNobody, second), Outcome::kConflict);
  EXPECT_EQ(ask(Kind::kTakeOver, span, second, kNobody), Outcome::kConflict);
  EXPECT_EQ(ask(Kind::kTakeOver, span, second, second), Outcome::kConflict) << "it is in use";
  auto* bitmap = reinterpret_cast<uint64_t*>(backup.value()->base() + view.Locate(start, 1).offset +
                                             BitmapOffset(start.block()));
  for (uint32_t i = 0; i < ObjectsPerBlock(kSlab, 1); ++i) bitmap[i / 64] |= 1ULL << (i % 64);
  EXPECT_EQ(ask(Kind::kTakeOver, span, second, second), Outcome::kDone);
  EXPECT_EQ(ask(Kind::kFree, span, second, {}), Outcome::kDone);
}

// Regions that leave: a block that is open there goes to a worker that asks for it, a block that is
// wholly free to none.
TEST_F(MemoryNodeOpenTest, OfARegionThatLeavesNothingIsGrantedAndWhatIsLeftIsCounted) {
  const auto take = [&](uint32_t free) {
    ControlRequest request;
    request.kind = Kind::kAlloc;
    request.size_class = kSlab;
    request.owner = WorkerId{5};
    request.block = GlobalAddr(1, kBlockBytes);
    const ControlReply reply = node_->Handle(request);
    CHECK(reply.outcome == Outcome::kDone && reply.block.region() == 1);
    auto* bitmap = reinterpret_cast<uint64_t*>(At(reply.block) + BitmapOffset(reply.block.block()));
    for (uint32_t i = 0; i < free; ++i) bitmap[i / 64] |= 1ULL << (i % 64);
    return reply.block;
  };
  const auto open = [&](GlobalAddr block) {
    ControlRequest request;
    request.kind = Kind::kTakeOver;
    request.size_class = kSlab;
    request.owner = kNobody;
    request.from = WorkerId{5};
    request.block = block;
    CHECK(node_->Handle(request).outcome == Outcome::kDone);
  };
  const GlobalAddr whole = take(ObjectsPerBlock(kSlab, 1));
  const GlobalAddr part = take(10);
  const GlobalAddr owned = take(0);
  open(whole);
  open(part);
  View leaving = view_;
  ++leaving.epoch.value;
  leaving.leaving = 1;
  std::string reason;
  ASSERT_TRUE(node_->UseView(leaving, &reason).ok()) << reason;
  const NodeUsage usage = node_->Usage();
  EXPECT_EQ(usage.leaving_blocks, 2U) << "the open one that is wholly free has gone back";
  EXPECT_EQ(usage.view_epoch, leaving.epoch.value);
  EXPECT_EQ(Entry(whole).use(), BlockEntry::Use::kFree);
  // Elsewhere there is room.
  for (int i = 0; i < 100; ++i) {
    const ControlReply reply = Ask(Kind::kAllocReserve, kSlab, 7);
    if (reply.outcome == Outcome::kFull) break;
    EXPECT_EQ(reply.block.region(), 0U);
  }
  EXPECT_EQ(Ask(Kind::kAllocReserve, kSlab, 7).outcome, Outcome::kFull);
  EXPECT_EQ(Ask(Kind::kAllocSparse, SizeClass(0), 7).outcome, Outcome::kFull);
  const ControlReply given = Ask(Kind::kAllocOpen, SizeClass(0), 7);
  EXPECT_EQ(given.outcome, Outcome::kOpened);
  EXPECT_EQ(given.block, part);
  EXPECT_EQ(given.size_class, kSlab);
  EXPECT_EQ(Ask(Kind::kAllocOpen, SizeClass(0), 7).outcome, Outcome::kFull);
  for (const auto& [block, owner] : {std::pair(owned, 5U), std::pair(part, 7U)}) {
    ControlRequest request;
    request.kind = Kind::kFree;
    request.size_class = kSlab;
    request.owner = WorkerId{owner};
    request.block = block;
    EXPECT_EQ(node_->Handle(request).outcome, Outcome::kDone);
  }
  EXPECT_EQ(node_->Usage().leaving_blocks, 0U);
}

}  // namespace
}  // namespace onetrip
