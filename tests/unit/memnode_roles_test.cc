// A memory node grants and takes back blocks as the map changes around it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "memnode/memory_node.h"

namespace onetrip {
namespace {

using Kind = ControlRequest::Kind;
using Outcome = ControlReply::Outcome;

constexpr SizeClass kSlab(3);
constexpr NodeId kSelf{1};
constexpr NodeId kOther{0};

// One region of two replicas, on kSelf and kOther.
View MapOf(uint64_t epoch, NodeId primary, int missing) {
  View view;
  view.epoch = Epoch{epoch};
  view.replicas = 2;
  view.node_count = 2;
  RegionPlacement region{};
  region.nodes = {primary, primary == kSelf ? kOther : kSelf};
  region.missing = static_cast<uint8_t>(missing);
  view.regions.push_back(region);
  return view;
}

class MemoryNodeRolesTest : public testing::Test {
 protected:
  void Make(const View& view, uint64_t regions_of_memory = 1) {
    Result<std::unique_ptr<Backing>> backing =
        Backing::Open({.bytes = regions_of_memory * kRegionBytes}, &reason_);
    ASSERT_TRUE(backing.ok()) << reason_;
    auto node = MemoryNode::Create(kSelf, view, std::move(backing.value()), &reason_);
    ASSERT_TRUE(node.ok()) << reason_;
    node_ = std::move(node.value());
  }
  void Use(const View& view) { ASSERT_TRUE(node_->UseView(view, &reason_).ok()) << reason_; }
  Outcome Ask(Kind kind, GlobalAddr block = GlobalAddr(), uint32_t owner = 1) {
    ControlRequest request;
    request.kind = kind;
    request.size_class = kSlab;
    request.owner = WorkerId{owner};
    request.block = block;
    last_ = node_->Handle(request);
    return last_.outcome;
  }
  RegionHeader& Header(uint64_t base = 0) {
    return *reinterpret_cast<RegionHeader*>(node_->base() + base);
  }

  std::string reason_;
  std::unique_ptr<MemoryNode> node_;
  ControlReply last_;
};

TEST_F(MemoryNodeRolesTest, ABackupGrantsOnceItIsThePrimary) {
  Make(MapOf(1, kOther, 0));
  EXPECT_EQ(Ask(Kind::kAlloc), Outcome::kFull);
  const GlobalAddr taken(0, 20 * kBlockBytes);
  EXPECT_EQ(Ask(Kind::kGrant, taken, 9), Outcome::kDone);
  Use(MapOf(2, kSelf, 1));
  for (uint32_t i = kRootBlocks; i + 1 < kBlocksPerRegion; ++i) {
    ASSERT_EQ(Ask(Kind::kAllocReserve), Outcome::kDone) << i;
    EXPECT_NE(last_.block, taken) << "what it recorded as a backup is granted";
  }
  EXPECT_EQ(Ask(Kind::kAllocReserve), Outcome::kFull);
  // And no more once it is not; an older map changes nothing.
  EXPECT_EQ(Ask(Kind::kFree, taken, 9), Outcome::kDone);
  Use(MapOf(1, kOther, 0));
  EXPECT_EQ(Ask(Kind::kAllocReserve), Outcome::kDone);
  EXPECT_EQ(Ask(Kind::kFree, last_.block), Outcome::kDone);
  Use(MapOf(3, kOther, 0));
  EXPECT_EQ(Ask(Kind::kAllocReserve), Outcome::kFull);
}

TEST_F(MemoryNodeRolesTest, AMissingRegionIsNeitherGrantedNorFreedNorFormatted) {
  Make(MapOf(1, kOther, 1));
  EXPECT_EQ(Header().magic, 0U);
  EXPECT_EQ(node_->status().regions, 0U);
  const GlobalAddr block(0, 30 * kBlockBytes);
  EXPECT_EQ(Ask(Kind::kAlloc), Outcome::kFull);
  EXPECT_EQ(Ask(Kind::kGrant, block), Outcome::kFull) << "no conflict: it may hear of it later";
  EXPECT_EQ(Ask(Kind::kTakeOver, block), Outcome::kFull) << "likewise";
  EXPECT_EQ(Ask(Kind::kFree, block), Outcome::kFull) << "likewise";
}

// Under a view that it was not told of its memory may have been another region's.
TEST_F(MemoryNodeRolesTest, WhoMissedAViewZeroesWhatItGrantsFromThenOn) {
  Make(MapOf(1, kSelf, 1));
  const auto granted = [this] {
    EXPECT_EQ(Ask(Kind::kAlloc), Outcome::kDone);
    return node_->base() + last_.block.offset();
  };
  std::memset(node_->base() + kRootBlocks * kBlockBytes, 0x5a,
              (kBlocksPerRegion - kRootBlocks) * kBlockBytes);
  EXPECT_EQ(granted()[9], std::byte{0x5a}) << "fresh memory is not written to";
  Use(MapOf(2, kSelf, 1));
  EXPECT_EQ(granted()[9], std::byte{0x5a});
  Use(MapOf(4, kSelf, 1));
  EXPECT_EQ(granted()[9], std::byte{0});
}

// An agent writes the block table, and blocks that had no owner hold what was there before.
TEST_F(MemoryNodeRolesTest, ACopiedRegionIsWhatItsTableSaysAndItsFreeBlocksAreZeroedWhenGranted) {
  for (const bool was_there : {true, false}) {
    SCOPED_TRACE(was_there);
    // Here from the start, or a spare that the region is placed on later.
    View first = MapOf(1, kOther, 0);
    if (!was_there) first.regions.clear();
    Make(first, 2);
    if (was_there) Use(MapOf(2, kOther, 1));
    View missing = MapOf(3, kOther, 1);
    missing.regions[0].base[1] = was_there ? 0 : kRegionBytes;
    const uint64_t base = missing.regions[0].base[1];
    Use(missing);
    std::memset(node_->base() + base, 0x5a, kRegionBytes);
    RegionHeader header{};
    header.magic = kRegionMagic;
    header.layout_version = kLayoutVersion;
    for (uint32_t i = 0; i < kRootBlocks; ++i) {
      header.blocks[i] = BlockEntry(BlockEntry::Use::kRoot, WorkerId{0}, SizeClass()).bits();
    }
    constexpr uint32_t kOwned = 40;
    header.blocks[kOwned] = BlockEntry(BlockEntry::Use::kOwned, WorkerId{7}, kSlab).bits();
    std::memcpy(&Header(base), &header, sizeof(header));
    EXPECT_EQ(node_->status().regions, 0U);

    View copied = missing;
    copied.epoch = Epoch{4};
    copied.regions[0].missing = 0;
    Use(copied);
    EXPECT_EQ(node_->status().regions, 1U);
    EXPECT_EQ(node_->status().granted_blocks, 1U);
    const GlobalAddr owned(0, kOwned * kBlockBytes);
    EXPECT_EQ(Ask(Kind::kGrant, owned), Outcome::kConflict);
    // It becomes the primary.
    View primary = MapOf(5, kSelf, 1);
    primary.regions[0].base[0] = base;
    Use(primary);
    for (uint32_t i = kRootBlocks; i + 1 < kBlocksPerRegion; ++i) {
      ASSERT_EQ(Ask(Kind::kAllocReserve), Outcome::kDone);
      ASSERT_NE(last_.block, owned);
      const auto* words =
          reinterpret_cast<const uint64_t*>(node_->base() + base + last_.block.offset());
      ASSERT_TRUE(std::all_of(words, words + kBlockBytes / 8, [](uint64_t w) { return w == 0; }));
    }
    EXPECT_EQ(Ask(Kind::kAllocReserve), Outcome::kFull);
    EXPECT_EQ(Ask(Kind::kFree, owned, 7), Outcome::kDone);
    EXPECT_EQ(Ask(Kind::kAllocReserve), Outcome::kDone);
    EXPECT_EQ(last_.block, owned);
  }
}

TEST_F(MemoryNodeRolesTest, AnAddedRegionIsGrantedFromOnceTheNodeKnowsItAndZeroedWhateverLayThere) {
  // Region 0 leaves for a third node, and region 1 is made in its place.
  Make(MapOf(1, kSelf, 0));
  ASSERT_EQ(Ask(Kind::kAlloc), Outcome::kDone);
  std::memset(node_->base() + kBlockBytes, 0x5a, kRegionBytes - kBlockBytes);
  View moved = MapOf(2, kSelf, 0);
  moved.node_count = 3;
  moved.regions[0].nodes[0] = NodeId{2};
  Use(moved);
  RegionHeader header{};
  header.magic = kRegionMagic;
  header.layout_version = kLayoutVersion;
  header.region = 1;
  std::memcpy(&Header(), &header, sizeof(header));
  const GlobalAddr block(1, 30 * kBlockBytes);
  EXPECT_EQ(Ask(Kind::kAllocReserve), Outcome::kFull) << "it has not heard of it";
  EXPECT_EQ(Ask(Kind::kGrant, block), Outcome::kFull) << "it may be asked again";
  View grown = moved;
  grown.epoch = Epoch{3};
  grown.regions.push_back(MapOf(1, kSelf, 0).regions[0]);
  Use(grown);
  EXPECT_EQ(node_->status().regions, 1U);
  EXPECT_EQ(node_->status().granted_blocks, 0U);
  for (uint32_t i = 0; i < kBlocksPerRegion; ++i) {
    ASSERT_EQ(Ask(Kind::kAllocReserve), Outcome::kDone) << i;
    ASSERT_EQ(last_.block.region(), 1U);
    const uint64_t skip = last_.block.block() == 0 ? kRegionHeaderBytes : 0;
    const auto* words =
        reinterpret_cast<const uint64_t*>(node_->base() + last_.block.offset() + skip);
    const auto* end =
        reinterpret_cast<const uint64_t*>(node_->base() + last_.block.offset() + kBlockBytes);
    ASSERT_TRUE(std::all_of(words, end, [](uint64_t w) { return w == 0; })) << i;
  }
  EXPECT_EQ(Ask(Kind::kAllocReserve), Outcome::kFull);
}

TEST_F(MemoryNodeRolesTest, AMapThatDoesNotFitTheMemoryChangesNothing) {
  Make(MapOf(1, kSelf, 0));
  View view = MapOf(2, kOther, 0);
  view.regions[0].base[1] = 4 * kRegionBytes;
  EXPECT_EQ(node_->UseView(view, &reason_).code(), StatusCode::kInvalidArgument);
  EXPECT_NE(reason_.find("not in its memory"), std::string::npos);
  EXPECT_EQ(Ask(Kind::kAlloc), Outcome::kDone);
}

TEST_F(MemoryNodeRolesTest, AllOfTheMemoryIsWithinReachWhateverIsPlacedThere) {
  Make(MapOf(1, kSelf, 0), 3);
  EXPECT_EQ(node_->bytes(), 3 * kRegionBytes);
}

}  // namespace
}  // namespace onetrip
