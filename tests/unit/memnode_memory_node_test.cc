// A memory node: which blocks it grants, records, takes back and refuses, and what they hold.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <thread>

#include "client_core/base/planted_bug.h"
#include "client_core/base/rng.h"
#include "client_core/cluster/view.h"
#include "master/membership.h"
#include "memnode/memory_node.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

using Kind = ControlRequest::Kind;
using Outcome = ControlReply::Outcome;

class MemoryNodeTest : public testing::Test {
 protected:
  MemoryNodeTest() {
    Result<MembershipState> state =
        MembershipState::Create({.nodes = 3, .replicas = 2, .node_bytes = 4 * kRegionBytes});
    CHECK(state.ok());
    view_ = state->view();
    for (uint16_t i = 0; i < 3; ++i) {
      Result<std::unique_ptr<MemoryNode>> node = MemoryNode::Create(NodeId{i}, view_);
      CHECK(node.ok());
      nodes_.push_back(std::move(node.value()));
    }
  }

  ControlReply Ask(uint16_t node, Kind kind, SizeClass size_class, uint32_t owner,
                   GlobalAddr block = GlobalAddr()) {
    ControlRequest request;
    request.kind = kind;
    request.size_class = size_class;
    request.owner = WorkerId{owner};
    request.block = block;
    return nodes_[node]->Handle(request);
  }
  ControlReply Alloc(uint16_t node, SizeClass size_class, uint32_t owner = 1) {
    return Ask(node, Kind::kAlloc, size_class, owner);
  }
  std::byte* At(GlobalAddr addr, int replica) {
    const RemoteAddr at = view_.Locate(addr, replica);
    return nodes_[at.node.value]->base() + at.offset;
  }
  BlockEntry Entry(GlobalAddr block, int replica) {
    const auto* header =
        reinterpret_cast<RegionHeader*>(At(GlobalAddr(block.region(), 0), replica));
    return BlockEntry(header->blocks[block.block()]);
  }
  static SizeClass Span(uint32_t blocks) {
    return SizeClass(static_cast<uint8_t>(SizeClass::kSlabClasses + blocks - 1));
  }
  // Compares the blocks that all nodes report with the blocks that there are.
  bool CapacityIsRight() {
    uint64_t blocks = kRootBlocks;
    for (const auto& node : nodes_) blocks += node->Usage().blocks;
    return blocks == view_.regions.size() * kBlocksPerRegion;
  }
  uint16_t Primary(GlobalAddr addr) { return view_.Locate(addr, 0).node.value; }
  uint16_t Backup(GlobalAddr addr) { return view_.Locate(addr, 1).node.value; }

  View view_;
  std::vector<std::unique_ptr<MemoryNode>> nodes_;
};

constexpr SizeClass kSlab(3);

TEST_F(MemoryNodeTest, RegionsAreFormattedAndTheRootAreaIsTaken) {
  for (uint32_t region = 0; region < view_.regions.size(); ++region) {
    for (const int replica : {0, 1}) {
      const auto* header = reinterpret_cast<RegionHeader*>(At(GlobalAddr(region, 0), replica));
      EXPECT_EQ(header->magic, kRegionMagic);
      EXPECT_EQ(header->layout_version, kLayoutVersion);
      EXPECT_EQ(header->region, region);
      for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
        const bool is_root = region == 0 && block < kRootBlocks;
        EXPECT_EQ(BlockEntry(header->blocks[block]).use(),
                  is_root ? BlockEntry::Use::kRoot : BlockEntry::Use::kFree);
      }
    }
  }
  EXPECT_FALSE(MemoryNode::Create(NodeId{3}, view_).ok()) << "no region is placed there";
}

TEST_F(MemoryNodeTest, EveryBlockIsGrantedOnceAndByItsPrimaryOnly) {
  std::set<GlobalAddr> granted;
  for (uint16_t node = 0; node < 3; ++node) {
    constexpr uint32_t kReserve = 4;
    uint32_t of_reserve = 0;
    while (true) {
      ControlReply reply = Alloc(node, kSlab, 7);
      if (reply.outcome == Outcome::kFull) {
        reply = Ask(node, Kind::kAllocReserve, kSlab, 7, GlobalAddr());
        if (reply.outcome == Outcome::kFull) break;
        ++of_reserve;
      } else {
        EXPECT_EQ(of_reserve, 0U) << "the reserve is what is left in the end";
      }
      ASSERT_EQ(reply.outcome, Outcome::kDone);
      EXPECT_EQ(Primary(reply.block), node);
      EXPECT_EQ(reply.block, reply.block.block_start());
      ASSERT_TRUE(granted.insert(reply.block).second);
      EXPECT_EQ(Entry(reply.block, 0).owner(), WorkerId{7});
      EXPECT_EQ(Entry(reply.block, 0).size_class(), kSlab);
      EXPECT_EQ(Entry(reply.block, 1).use(), BlockEntry::Use::kFree);
      EXPECT_EQ(Ask(Backup(reply.block), Kind::kGrant, kSlab, 7, reply.block).outcome,
                Outcome::kDone);
      EXPECT_EQ(Entry(reply.block, 1).bits(), Entry(reply.block, 0).bits());
    }
    EXPECT_EQ(of_reserve, kReserve);
    EXPECT_EQ(Alloc(node, kSlab).outcome, Outcome::kFull) << "still";
  }
  EXPECT_EQ(granted.size(), view_.regions.size() * kBlocksPerRegion - kRootBlocks);
  uint64_t blocks = 0;
  for (const auto& node : nodes_) {
    EXPECT_EQ(node->status().granted_blocks, node->status().blocks);
    blocks += node->status().blocks;
  }
  EXPECT_EQ(blocks, 2 * granted.size());
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_F(MemoryNodeTest, PlantedBugReserveGivenIsFound) {
  TEST_planted_bug = Bug::kReserveGiven;
  while (Alloc(0, kSlab, 7).outcome != Outcome::kFull) {
  }
  TEST_planted_bug = Bug::kNone;
  EXPECT_EQ(Ask(0, Kind::kAllocReserve, kSlab, 7, GlobalAddr()).outcome, Outcome::kFull)
      << "whoever gives back more has to find some";
}

TEST_F(MemoryNodeTest, PlantedBugCapacityCountedTwiceIsFound) {
  TEST_planted_bug = Bug::kCapacityCountedTwice;
  EXPECT_FALSE(CapacityIsRight());
  TEST_planted_bug = Bug::kNone;
}
#endif

TEST_F(MemoryNodeTest, TogetherTheyTellOfEveryBlockOnce) { EXPECT_TRUE(CapacityIsRight()); }

TEST_F(MemoryNodeTest, SpansAreContiguousWithinARegionAndAwayFromItsHeader) {
  std::vector<bool> taken(view_.regions.size() * kBlocksPerRegion);
  Rng rng(1);
  for (uint16_t node = 0; node < 3; ++node) {
    for (int full = 0; full < 20;) {
      const auto blocks = static_cast<uint32_t>(1 + rng.Below(SizeClass::kSpanBlocksMax));
      const ControlReply reply = Alloc(node, Span(blocks));
      if (reply.outcome == Outcome::kFull) {
        ++full;
        continue;
      }
      ASSERT_GE(reply.block.block(), 1U);
      ASSERT_LE(reply.block.block() + blocks, kBlocksPerRegion);
      for (uint32_t i = 0; i < blocks; ++i) {
        const GlobalAddr block = reply.block + i * kBlockBytes;
        ASSERT_FALSE(taken[block.region() * kBlocksPerRegion + block.block()]);
        taken[block.region() * kBlocksPerRegion + block.block()] = true;
        EXPECT_EQ(Entry(block, 0).use(),
                  i == 0 ? BlockEntry::Use::kOwned : BlockEntry::Use::kSpanTail);
      }
    }
  }
}

TEST_F(MemoryNodeTest, ConflictingGrantsAndForeignFreesAreRefused) {
  const GlobalAddr block = Alloc(0, kSlab, 1).block;
  const uint16_t backup = Backup(block);
  ASSERT_EQ(Ask(backup, Kind::kGrant, kSlab, 1, block).outcome, Outcome::kDone);
  const uint64_t granted = nodes_[0]->status().granted_blocks;

  EXPECT_EQ(Ask(backup, Kind::kGrant, kSlab, 1, block).outcome, Outcome::kConflict);
  EXPECT_EQ(Ask(backup, Kind::kGrant, kSlab, 2, block).outcome, Outcome::kConflict);
  EXPECT_EQ(Ask(0, Kind::kGrant, kSlab, 2, block).outcome, Outcome::kConflict);
  EXPECT_EQ(Ask(0, Kind::kFree, kSlab, 2, block).outcome, Outcome::kConflict);
  EXPECT_EQ(Ask(0, Kind::kFree, SizeClass(4), 1, block).outcome, Outcome::kConflict);
  EXPECT_EQ(Ask(0, Kind::kFree, Span(2), 1, block).outcome, Outcome::kConflict);
  EXPECT_EQ(Ask(0, Kind::kFree, kSlab, 1, block + kBlockBytes).outcome, Outcome::kConflict);
  EXPECT_EQ(Ask(0, Kind::kFree, kSlab, 0, GlobalAddr(0, 0)).outcome, Outcome::kConflict);
  // The caller may know of a region that has moved here before the node does.
  EXPECT_EQ(Ask(0, Kind::kFree, kSlab, 1, GlobalAddr(1'000'000, 0)).outcome, Outcome::kFull);
  EXPECT_EQ(Ask(0, Kind::kGrant, kSlab, 1, GlobalAddr(1'000'000, 0)).outcome, Outcome::kFull);
  EXPECT_EQ(Ask(0, Kind::kFree, Span(6), 1, GlobalAddr(block.region(), 63 * kBlockBytes)).outcome,
            Outcome::kConflict);
  EXPECT_EQ(Ask(0, Kind::kAlloc, SizeClass(), 1).outcome, Outcome::kConflict);
  // A region that another pair of nodes holds.
  for (uint32_t region = 0; region < view_.regions.size(); ++region) {
    if (Primary(GlobalAddr(region, 0)) == 0 || Backup(GlobalAddr(region, 0)) == 0) continue;
    EXPECT_EQ(Ask(0, Kind::kGrant, kSlab, 1, GlobalAddr(region, 0)).outcome, Outcome::kFull);
  }
  EXPECT_EQ(nodes_[0]->status().granted_blocks, granted);

  EXPECT_EQ(Ask(backup, Kind::kFree, kSlab, 1, block).outcome, Outcome::kDone);
  EXPECT_EQ(Ask(backup, Kind::kFree, kSlab, 1, block).outcome, Outcome::kConflict);
  EXPECT_EQ(Ask(0, Kind::kFree, kSlab, 1, block).outcome, Outcome::kDone);
  EXPECT_EQ(nodes_[0]->status().granted_blocks, granted - 1);
}

TEST_F(MemoryNodeTest, OneOfTwoWhoTakeABlockOverGetsIt) {
  const auto take = [&](uint16_t node, SizeClass size_class, GlobalAddr block, uint32_t from,
                        uint32_t owner) {
    return nodes_[node]
        ->Handle({.kind = Kind::kTakeOver,
                  .size_class = size_class,
                  .owner = WorkerId{owner},
                  .block = block,
                  .from = WorkerId{from}})
        .outcome;
  };
  for (const SizeClass size_class : {kSlab, Span(3)}) {
    const GlobalAddr block = Alloc(0, size_class, 1).block;
    const uint16_t backup = Backup(block);
    ASSERT_EQ(Ask(backup, Kind::kGrant, size_class, 1, block).outcome, Outcome::kDone);
    At(block, 0)[5000] = std::byte{7};
    EXPECT_EQ(take(0, SizeClass(4), block, 1, 2), Outcome::kConflict);
    EXPECT_EQ(take(0, size_class, block, 1, 2), Outcome::kDone);
    EXPECT_EQ(take(0, size_class, block, 1, 3), Outcome::kConflict);
    // A replica that knows less follows, whichever owner it takes the block for.
    EXPECT_EQ(take(backup, size_class, block, 9, 2), Outcome::kDone);
    EXPECT_EQ(At(block, 0)[5000], std::byte{7});
    EXPECT_EQ(Ask(0, Kind::kFree, size_class, 1, block).outcome, Outcome::kConflict);
    EXPECT_EQ(Ask(backup, Kind::kFree, size_class, 2, block).outcome, Outcome::kDone);
    // Its owner died while it gave it back.
    EXPECT_EQ(take(0, size_class, block, 2, 4), Outcome::kDone);
    EXPECT_EQ(take(backup, size_class, block, 2, 4), Outcome::kDone);
    EXPECT_EQ(Ask(backup, Kind::kFree, size_class, 4, block).outcome, Outcome::kDone);
    EXPECT_EQ(Ask(0, Kind::kFree, size_class, 4, block).outcome, Outcome::kDone);
    EXPECT_EQ(take(0, size_class, block, 4, 5), Outcome::kConflict) << "it is nobody's";
  }
}

TEST_F(MemoryNodeTest, PartOfASpanIsNeitherFreedNorGranted) {
  const GlobalAddr span = Alloc(0, Span(3)).block;
  for (const uint64_t block : {0, 1, 2}) {
    EXPECT_EQ(Ask(0, Kind::kFree, Span(1), 1, span + block * kBlockBytes).outcome,
              Outcome::kConflict);
    EXPECT_EQ(Ask(0, Kind::kGrant, kSlab, 1, span + block * kBlockBytes).outcome,
              Outcome::kConflict);
  }
  EXPECT_EQ(Ask(0, Kind::kFree, Span(3), 1, span + kBlockBytes).outcome, Outcome::kConflict);
  EXPECT_EQ(Ask(0, Kind::kFree, Span(3), 1, span).outcome, Outcome::kDone);
}

// A primary counts its blocks, whichever worker frees in them and whichever owns them.
TEST_F(MemoryNodeTest, TellsHowItsBlocksAreUsed) {
  const NodeUsage before = nodes_[1]->Usage();
  EXPECT_EQ(before.granted_blocks, 0U);
  EXPECT_GT(before.blocks, 0U);
  EXPECT_GE(before.reserve_blocks, 4U);
  const ControlReply reply = Alloc(1, kSlab, 5);
  ASSERT_EQ(reply.outcome, Outcome::kDone);
  const ControlReply span = Alloc(1, Span(3), 5);
  ASSERT_EQ(span.outcome, Outcome::kDone);
  auto* bitmap =
      reinterpret_cast<uint64_t*>(At(reply.block, 0) + BitmapOffset(reply.block.block()));
  bitmap[0] = 0b1011;
  const NodeUsage usage = nodes_[1]->Usage();
  EXPECT_EQ(usage.granted_blocks, 4U);
  EXPECT_EQ(usage.free_bytes[kSlab.index()], 3 * kSlab.bytes());
  const uint64_t objects = ObjectsPerBlock(kSlab, reply.block.block()) * kSlab.bytes();
  EXPECT_EQ(usage.overhead_bytes, kBlockBytes - objects + kBlockHeaderBytes);
}

// A node's whole memory is soiled and granted again: every byte that a grant hands out is 0.
TEST_F(MemoryNodeTest, ABlockThatWasUsedIsZeroWhenItIsGrantedAgain) {
  for (int round = 0; round < 3; ++round) {
    std::vector<GlobalAddr> blocks;
    while (true) {
      const ControlReply reply = Alloc(1, kSlab, 5);
      if (reply.outcome == Outcome::kFull) break;
      blocks.push_back(reply.block);
      const uint64_t skip = BitmapOffset(reply.block.block());
      std::byte* memory = At(reply.block, 0);
      const auto* words = reinterpret_cast<const uint64_t*>(memory + skip);
      const auto* end = reinterpret_cast<const uint64_t*>(memory + kBlockBytes);
      ASSERT_TRUE(std::all_of(words, end, [](uint64_t word) { return word == 0; }));
      std::memset(memory + skip, 0xcd, kBlockBytes - skip);
    }
    const auto* header =
        reinterpret_cast<RegionHeader*>(At(GlobalAddr(blocks.front().region(), 0), 0));
    EXPECT_EQ(header->magic, kRegionMagic) << "zeroing block 0 leaves the region's header";
    for (const GlobalAddr block : blocks) {
      ASSERT_EQ(Ask(1, Kind::kFree, kSlab, 5, block).outcome, Outcome::kDone);
    }
    EXPECT_EQ(Alloc(1, Span(SizeClass::kSpanBlocksMax), 5).outcome, Outcome::kDone);
    // Taken back with the next round's first grants.
    for (uint32_t region = 0; region < view_.regions.size(); ++region) {
      for (uint32_t block = 0; block < kBlocksPerRegion; ++block) {
        const GlobalAddr addr(region, block * kBlockBytes);
        if (Primary(addr) != 1) continue;
        Ask(1, Kind::kFree, Span(SizeClass::kSpanBlocksMax), 5, addr);
      }
    }
    EXPECT_EQ(nodes_[1]->status().granted_blocks, 0U);
  }
}

TEST_F(MemoryNodeTest, ThreadsNeverGetTheSameBlock) {
  constexpr uint32_t kThreads = 4;
  std::vector<std::vector<GlobalAddr>> held(kThreads);
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < kThreads; ++id) {
    threads.emplace_back([this, id, &held] {
      Rng rng(id);
      for (int i = 0; i < Scaled(4000); ++i) {
        if (rng.Below(3) > 0) {
          const ControlReply reply = Alloc(2, kSlab, id + 1);
          if (reply.outcome == Outcome::kDone) held[id].push_back(reply.block);
        } else if (!held[id].empty()) {
          EXPECT_EQ(Ask(2, Kind::kFree, kSlab, id + 1, held[id].back()).outcome, Outcome::kDone);
          held[id].pop_back();
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<GlobalAddr> all;
  size_t count = 0;
  for (const auto& blocks : held) {
    count += blocks.size();
    all.insert(blocks.begin(), blocks.end());
  }
  EXPECT_EQ(all.size(), count);
  EXPECT_EQ(nodes_[2]->status().granted_blocks, count);
}

// A node whose memory is a file: its lives follow each other in one process.
class MemoryNodeFileTest : public MemoryNodeTest {
 protected:
  MemoryNodeFileTest() {
    std::string name = testing::TempDir() + "memory-node-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
  }
  ~MemoryNodeFileTest() override { std::filesystem::remove_all(directory_); }

  // Node 0 in its next life; nullptr and reason_ when it is refused.
  MemoryNode* Begin() {
    nodes_[0].reset();
    Result<std::unique_ptr<Backing>> backing =
        Backing::Open({.kind = BackingOptions::Kind::kFile,
                       .bytes = MemoryNode::BytesOn(NodeId{0}, view_),
                       .path = directory_ + "/memory",
                       .owner = MemoryOwner{.cluster = 1, .node = NodeId{0}}},
                      &reason_);
    EXPECT_TRUE(backing.ok()) << reason_;
    if (!backing.ok()) return nullptr;
    auto node = MemoryNode::Create(NodeId{0}, view_, std::move(*backing), &reason_);
    if (node.ok()) nodes_[0] = std::move(*node);
    return nodes_[0].get();
  }
  static bool IsAll(const std::byte* memory, uint64_t bytes, int value) {
    return std::to_integer<int>(memory[0]) == value &&
           std::memcmp(memory, memory + 1, bytes - 1) == 0;
  }
  uint64_t* TableWord(GlobalAddr block) {
    for (int replica = 0; replica < view_.replicas; ++replica) {
      if (view_.Locate(block, replica).node != NodeId{0}) continue;
      auto* header = reinterpret_cast<RegionHeader*>(At(GlobalAddr(block.region(), 0), replica));
      return &header->blocks[block.block()];
    }
    return nullptr;
  }

  std::string directory_;
  std::string reason_;
};

TEST_F(MemoryNodeFileTest, ANodeThatComesBackHasEveryByteAndEveryOwner) {
  ASSERT_NE(Begin(), nullptr);
  EXPECT_FALSE(nodes_[0]->backing().is_adopted());
  Rng rng(4);
  std::map<GlobalAddr, std::pair<SizeClass, uint32_t>> held;
  for (int life = 0; life < 5; ++life) {
    for (int i = 0; i < 30; ++i) {
      const SizeClass size_class =
          rng.Below(3) == 0 ? Span(static_cast<uint32_t>(1 + rng.Below(4))) : kSlab;
      const auto owner = static_cast<uint32_t>(1 + rng.Below(1000));
      const ControlReply reply = Alloc(0, size_class, owner);
      if (reply.outcome != Outcome::kDone) continue;
      ASSERT_TRUE(held.emplace(reply.block, std::pair(size_class, owner)).second);
      const uint64_t skip = BitmapOffset(reply.block.block());
      const uint64_t bytes = size_class.blocks() * kBlockBytes - skip;
      std::byte* memory = At(reply.block, 0) + skip;
      ASSERT_TRUE(IsAll(memory, bytes, 0)) << "zero, although it was used in an earlier life";
      std::memset(memory, static_cast<int>(owner % 251 + 1), bytes);
    }
    for (auto it = held.begin(); it != held.end();) {
      if (rng.Below(4) > 0) {
        ++it;
        continue;
      }
      ASSERT_EQ(Ask(0, Kind::kFree, it->second.first, it->second.second, it->first).outcome,
                Outcome::kDone);
      it = held.erase(it);
    }
    const MemoryNodeStatus before = nodes_[0]->status();
    ASSERT_NE(Begin(), nullptr) << reason_;
    EXPECT_TRUE(nodes_[0]->backing().is_adopted());
    EXPECT_EQ(nodes_[0]->status().granted_blocks, before.granted_blocks);
    EXPECT_EQ(nodes_[0]->status().blocks, before.blocks);
    for (const auto& [block, holding] : held) {
      EXPECT_EQ(Entry(block, 0).owner().value, holding.second);
      EXPECT_EQ(Entry(block, 0).size_class(), holding.first);
      const uint64_t skip = BitmapOffset(block.block());
      EXPECT_TRUE(IsAll(At(block, 0) + skip, holding.first.blocks() * kBlockBytes - skip,
                        static_cast<int>(holding.second % 251 + 1)));
    }
  }
}

TEST_F(MemoryNodeFileTest, WhatAnInterruptedGrantOrFreeLeftIsFreeAgain) {
  ASSERT_NE(Begin(), nullptr);
  const GlobalAddr kept = Alloc(0, Span(2), 5).block;
  const GlobalAddr lost = Alloc(0, Span(4), 6).block;
  const GlobalAddr last = Alloc(0, kSlab, 7).block;
  // As a free leaves it that has come as far as the owner's entry and one tail.
  *TableWord(lost) = 0;
  *TableWord(lost + 2 * kBlockBytes) = 0;
  ASSERT_NE(Begin(), nullptr) << reason_;
  EXPECT_EQ(nodes_[0]->status().granted_blocks, 3U);
  for (uint64_t i = 0; i < 4; ++i) EXPECT_EQ(*TableWord(lost + i * kBlockBytes), 0U);
  EXPECT_EQ(Ask(0, Kind::kFree, Span(2), 5, kept).outcome, Outcome::kDone);
  EXPECT_EQ(Ask(0, Kind::kFree, kSlab, 7, last).outcome, Outcome::kDone);
  EXPECT_EQ(nodes_[0]->status().granted_blocks, 0U);
}

TEST_F(MemoryNodeFileTest, ARottenImageIsRefusedAndLeftAsItIs) {
  ASSERT_NE(Begin(), nullptr);
  const uint64_t incarnation = nodes_[0]->backing().incarnation();
  const GlobalAddr span = Alloc(0, Span(3), 5).block;
  const GlobalAddr slab = Alloc(0, kSlab, 5).block;
  auto* header = reinterpret_cast<RegionHeader*>(At(GlobalAddr(span.region(), 0), 0));
  const uint64_t offset = reinterpret_cast<std::byte*>(header) - nodes_[0]->base();
  const auto word_offset = [&](uint64_t* word) {
    return static_cast<uint64_t>(reinterpret_cast<std::byte*>(word) - nodes_[0]->base());
  };
  const struct {
    uint64_t offset;
    uint64_t flip;
    const char* reason;
  } rots[] = {
      {offset, 1, "no header"},
      {offset + 8, 2, "another layout"},
      {offset + 16, 1, "no header"},
      {word_offset(TableWord(slab)), uint64_t{1} << 40, "damaged block table"},
      {word_offset(TableWord(slab)), uint64_t{1} << 63, "damaged block table"},
      {word_offset(TableWord(slab)), uint64_t{0x3f - 3} << 48, "damaged block table"},
      {word_offset(TableWord(span)), uint64_t{1} << 48, "span without its end"},
      {word_offset(TableWord(span + kBlockBytes)), uint64_t{1} << 48, "span without its end"},
      {word_offset(TableWord(span + 3 * kBlockBytes)) + 8 * 20, 99, "damaged block table"},
      {word_offset(TableWord(span)) + 8 * 30, uint64_t{3} << 56, "root area"},
  };
  const auto flip = [&](uint64_t at, uint64_t bits) {
    Result<std::unique_ptr<Backing>> backing =
        Backing::Open({.kind = BackingOptions::Kind::kFile,
                       .bytes = MemoryNode::BytesOn(NodeId{0}, view_),
                       .path = directory_ + "/memory",
                       .owner = MemoryOwner{.cluster = 1, .node = NodeId{0}}},
                      &reason_);
    CHECK(backing.ok());
    uint64_t word = 0;
    std::memcpy(&word, (*backing)->base() + at, 8);
    word ^= bits;
    std::memcpy((*backing)->base() + at, &word, 8);
  };
  for (const auto& rot : rots) {
    nodes_[0].reset();
    flip(rot.offset, rot.flip);
    EXPECT_EQ(Begin(), nullptr) << rot.reason;
    EXPECT_THAT(reason_, testing::HasSubstr(rot.reason));
    flip(rot.offset, rot.flip);
  }
  ASSERT_NE(Begin(), nullptr) << "as it was: " << reason_;
  EXPECT_EQ(nodes_[0]->backing().incarnation(), incarnation);
  EXPECT_EQ(nodes_[0]->status().granted_blocks, 4U);
}

TEST_F(MemoryNodeFileTest, ARegionThatWasAddedWhileTheNodeWasAwayIsAdoptedByItsHeader) {
  const uint64_t placed = MemoryNode::BytesOn(NodeId{0}, view_);
  const auto begin = [&] {
    nodes_[0].reset();
    Result<std::unique_ptr<Backing>> backing =
        Backing::Open({.kind = BackingOptions::Kind::kFile,
                       .bytes = placed + kRegionBytes,
                       .path = directory_ + "/larger",
                       .owner = MemoryOwner{.cluster = 1, .node = NodeId{0}}},
                      &reason_);
    CHECK(backing.ok());
    auto node = MemoryNode::Create(NodeId{0}, view_, std::move(*backing), &reason_);
    if (node.ok()) nodes_[0] = std::move(*node);
    return node.ok();
  };
  ASSERT_TRUE(begin()) << reason_;
  const auto added = static_cast<uint32_t>(view_.regions.size());
  // The agent that makes the region writes this before there is such a view.
  RegionHeader header{};
  header.magic = kRegionMagic;
  header.layout_version = kLayoutVersion;
  header.region = added;
  std::memset(nodes_[0]->base() + placed, 0x5a, kRegionBytes);
  std::memcpy(nodes_[0]->base() + placed, &header, sizeof(header));
  RegionPlacement region = view_.regions[0];
  region.nodes[0] = NodeId{0};
  region.base[0] = placed;
  for (int replica = 1; replica < view_.replicas; ++replica) {
    region.nodes[replica] = NodeId{static_cast<uint16_t>(100 + replica)};
  }
  view_.regions.push_back(region);
  ++view_.epoch.value;
  const uint64_t before = nodes_[0]->status().regions;
  ASSERT_TRUE(begin()) << reason_;
  EXPECT_TRUE(nodes_[0]->backing().is_adopted());
  EXPECT_EQ(nodes_[0]->status().regions, before + 1);
  const ControlReply reply =
      Ask(0, Kind::kAllocReserve, kSlab, 5, GlobalAddr(added, 3 * kBlockBytes));
  ASSERT_EQ(reply.outcome, Outcome::kDone);
  EXPECT_EQ(reply.block.region(), added);
  const uint64_t skip = BitmapOffset(reply.block.block());
  EXPECT_TRUE(
      IsAll(nodes_[0]->base() + placed + reply.block.offset() + skip, kBlockBytes - skip, 0));
  // Without its header there would be no such region.
  reinterpret_cast<RegionHeader*>(nodes_[0]->base() + placed)->magic = 0;
  EXPECT_FALSE(begin());
  EXPECT_THAT(reason_, testing::HasSubstr("no header"));
}

TEST_F(MemoryNodeFileTest, AMemorySmallerThanTheMapsIsRefusedAndTheRestOfALargerOneIsUnused) {
  auto backing = Backing::Open({.bytes = kRegionBytes}, &reason_);
  ASSERT_TRUE(backing.ok());
  EXPECT_FALSE(MemoryNode::Create(NodeId{0}, view_, std::move(*backing), &reason_).ok());
  EXPECT_THAT(reason_, testing::HasSubstr(std::to_string(kRegionBytes)));

  backing = Backing::Open({.bytes = 64 * kRegionBytes}, &reason_);
  ASSERT_TRUE(backing.ok());
  const auto node = MemoryNode::Create(NodeId{0}, view_, std::move(*backing), &reason_);
  ASSERT_TRUE(node.ok()) << reason_;
  const uint64_t placed = MemoryNode::BytesOn(NodeId{0}, view_);
  EXPECT_EQ(node.value()->bytes(), 64 * kRegionBytes) << "a later map may use it";
  EXPECT_EQ(node.value()->status().regions, placed / kRegionBytes);
  const auto* words = reinterpret_cast<const uint64_t*>(node.value()->base() + placed);
  for (uint64_t i = 0; i < kRegionBytes / 8; ++i) ASSERT_EQ(words[i], 0U);
}

TEST_F(MemoryNodeFileTest, AMapThatMakesNoSenseHereIsRefused) {
  const auto create = [this](const View& view) {
    auto backing = Backing::Open({.bytes = 64 * kRegionBytes}, &reason_);
    CHECK(backing.ok());
    return MemoryNode::Create(NodeId{0}, view, std::move(*backing), &reason_).ok();
  };
  const auto place = [this](uint64_t base) {
    View view = view_;
    for (RegionPlacement& region : view.regions) {
      if (region.nodes[0] != NodeId{0}) continue;
      region.base[0] = base;
      break;
    }
    return view;
  };
  ASSERT_TRUE(create(view_)) << reason_;
  EXPECT_FALSE(create(place(kRegionBytes / 2)));
  EXPECT_THAT(reason_, testing::HasSubstr("a region that is not in its memory"));
  EXPECT_FALSE(create(place(~uint64_t{0} - kRegionBytes + 1)));
  EXPECT_FALSE(create(place(~uint64_t{0} / kRegionBytes * kRegionBytes)));
  EXPECT_FALSE(create(place(64 * kRegionBytes)));
  View twice = view_;
  for (RegionPlacement& region : twice.regions) {
    for (int i = 0; i < twice.replicas; ++i) {
      if (region.nodes[i] == NodeId{0}) region.base[i] = 0;
    }
  }
  EXPECT_FALSE(create(twice));
  EXPECT_THAT(reason_, testing::HasSubstr("two regions in one place"));
}

TEST_F(MemoryNodeFileTest, AnotherNodesMemoryIsRefused) {
  auto backing = Backing::Open({.kind = BackingOptions::Kind::kFile,
                                .bytes = MemoryNode::BytesOn(NodeId{0}, view_),
                                .path = directory_ + "/memory",
                                .owner = MemoryOwner{.cluster = 1, .node = NodeId{1}}},
                               &reason_);
  ASSERT_TRUE(backing.ok());
  EXPECT_FALSE(MemoryNode::Create(NodeId{0}, view_, std::move(*backing), &reason_).ok());
  EXPECT_THAT(reason_, testing::HasSubstr("belongs to memory node 1, not to 0"));
}

}  // namespace
}  // namespace onetrip
