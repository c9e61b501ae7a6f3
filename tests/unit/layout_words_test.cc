// The 8-byte words that replicas share: whatever is put in comes out, and nothing else changes.
#include <gtest/gtest.h>

#include <set>

#include "client_core/base/rng.h"
#include "client_core/layout/index_layout.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/slot.h"

namespace onetrip {
namespace {

constexpr uint64_t kAddrLimit = 1ULL << kAddrBits;

TEST(GlobalAddrTest, PartsMakeTheWhole) {
  constexpr uint32_t kLastRegion = (1U << (kAddrBits - kRegionBits)) - 1;
  for (const uint32_t region : {0U, 1U, 77U, kLastRegion}) {
    for (const uint64_t offset : {uint64_t{0}, kBlockBytes - 1, kBlockBytes, kRegionBytes - 1}) {
      const GlobalAddr addr(region, offset);
      EXPECT_EQ(addr.region(), region);
      EXPECT_EQ(addr.offset(), offset);
      EXPECT_EQ(addr.block(), offset / kBlockBytes);
      EXPECT_EQ(addr.block_start(), GlobalAddr(region, offset / kBlockBytes * kBlockBytes));
      EXPECT_LT(addr.bits(), kAddrLimit);
      EXPECT_EQ(GlobalAddr(addr.bits()), addr);
    }
  }
  EXPECT_EQ(GlobalAddr(3, kRegionBytes - 16) + 16, GlobalAddr(4, 0));
  EXPECT_TRUE(GlobalAddr().is_null());
  EXPECT_FALSE(GlobalAddr(0, 16).is_null());
}

TEST(SlotWordTest, FieldsComeBackWhateverTheOthersAre) {
  Rng rng(1);
  for (int i = 0; i < 200'000; ++i) {
    const auto kind = static_cast<SlotKind>(1 + rng.Below(7));
    const auto fingerprint = static_cast<uint8_t>(rng.Next());
    const SizeClass size_class(static_cast<uint8_t>(rng.Below(64)));
    const GlobalAddr addr(rng.Below(kAddrLimit / kObjectAlignBytes) * kObjectAlignBytes);
    const bool blind = rng.Below(2) == 0;
    const SlotWord word = SlotWord::Make(kind, fingerprint, size_class, addr, blind);
    ASSERT_EQ(word.kind(), kind);
    ASSERT_EQ(word.fingerprint(), fingerprint);
    ASSERT_EQ(word.size_class(), size_class);
    ASSERT_EQ(word.addr(), addr);
    ASSERT_EQ(word.blind(), blind);
    ASSERT_FALSE(word.is_empty());
    ASSERT_EQ(word.bits() >> 62, 0U) << "the operation log marks bit 63";
    ASSERT_EQ(SlotWord(word.bits()), word);

    const SlotWord frozen = word.WithKind(SlotKind::kFrozen);
    ASSERT_EQ(frozen, SlotWord::Make(SlotKind::kFrozen, fingerprint, size_class, addr, false));
    ASSERT_EQ(SlotWord::Make(kind, fingerprint, size_class, addr, !blind).bits() ^ word.bits(),
              1ULL << 61);
    const SlotWord reg = SlotWord::Register(fingerprint, size_class, addr, blind);
    ASSERT_TRUE(reg.is_register());
    ASSERT_EQ(reg.bits() ^ word.WithKind(SlotKind::kObject).bits(),
              (1ULL << 62) | (uint64_t{blind} << 61));
    ASSERT_TRUE(reg.WithKind(SlotKind::kTentative).is_register());
    ASSERT_EQ(SlotWord::Dropped(addr, fingerprint).addr(), addr);
    ASSERT_EQ(SlotWord::Dropped(addr, fingerprint).credit(), fingerprint);
    ASSERT_TRUE(SlotWord::Dropped(addr, fingerprint).is_empty());
  }
}

TEST(SlotWordTest, EveryDeleteLeavesAnotherEmptyWord) {
  EXPECT_TRUE(SlotWord().is_empty());
  EXPECT_EQ(SlotWord().bits(), 0U);
  constexpr uint32_t kLastWorker = (1U << 22) - 1;
  constexpr uint64_t kLastSequence = (1ULL << 36) - 1;
  std::set<uint64_t> words;
  size_t made = 0;
  for (const uint32_t worker : {1U, 2U, 1000U, kLastWorker}) {
    for (const uint64_t sequence : {uint64_t{1}, uint64_t{2}, uint64_t{1} << 35, kLastSequence}) {
      const SlotWord word = SlotWord::Empty(WorkerId{worker}, sequence);
      EXPECT_TRUE(word.is_empty());
      EXPECT_EQ(word.bits() >> 58, 0U);
      words.insert(word.bits());
      ++made;
    }
  }
  EXPECT_EQ(words.size(), made);
  EXPECT_FALSE(words.contains(0)) << "worker ids begin with 1";
}

TEST(GroupHeaderTest, FieldsComeBackAndForeignWordsAreNoHeaders) {
  for (uint32_t depth = 0; depth <= kMaxDepth; ++depth) {
    for (const uint32_t suffix : {0U, 1U, (1U << depth) - 1}) {
      for (const bool filling : {false, true}) {
        const GroupHeader header(depth, suffix, filling);
        EXPECT_TRUE(header.is_valid());
        EXPECT_EQ(header.depth(), depth);
        EXPECT_EQ(header.suffix(), suffix);
        EXPECT_EQ(header.filling(), filling);
        EXPECT_EQ(GroupHeader(header.bits()).bits(), header.bits());
      }
    }
  }
  EXPECT_FALSE(GroupHeader().is_valid());
  EXPECT_FALSE(GroupHeader(0x1234).is_valid());
  const SlotWord slot =
      SlotWord::Make(SlotKind::kFrozen, 0xff, SizeClass(63), GlobalAddr(kAddrLimit - 16), true);
  EXPECT_FALSE(GroupHeader(slot.bits()).is_valid());
}

TEST(DirectoryWordTest, FieldsComeBackWhateverTheOthersAre) {
  Rng rng(2);
  for (int i = 0; i < 100'000; ++i) {
    const GlobalAddr subtable(rng.Below(kAddrLimit / kObjectAlignBytes) * kObjectAlignBytes);
    const auto depth = static_cast<uint32_t>(rng.Below(kMaxDepth + 1));
    const WorkerIndex worker{static_cast<uint16_t>(rng.Below(kMaxWorkers))};
    const DirectoryWord words[] = {DirectoryWord::Open(subtable, depth),
                                   DirectoryWord::Splitting(subtable, depth, worker),
                                   DirectoryWord::Filling(subtable, depth, worker)};
    for (const DirectoryWord& word : words) {
      ASSERT_TRUE(word.is_used());
      ASSERT_EQ(word.subtable(), subtable);
      ASSERT_EQ(word.depth(), depth);
      ASSERT_EQ(word.locked(), &word != &words[0]);
      ASSERT_EQ(word.splitting(), &word == &words[1]);
      ASSERT_EQ(word.filling(), &word == &words[2]);
      ASSERT_EQ((word.bits() >> 50) & 1023, &word == &words[0] ? 0 : worker.value);
      ASSERT_EQ(word.bits() >> 63, 0U);
    }
  }
  EXPECT_FALSE(DirectoryWord().is_used());
}

TEST(BlockEntryTest, FieldsComeBack) {
  using Use = BlockEntry::Use;
  for (const Use use : {Use::kOwned, Use::kSpanTail, Use::kRoot}) {
    for (const uint32_t owner : {0U, 1U, ~0U}) {
      for (uint8_t index = 0; index < SizeClass::kCount; ++index) {
        const BlockEntry entry(use, WorkerId{owner}, SizeClass(index));
        EXPECT_EQ(entry.use(), use);
        EXPECT_EQ(entry.owner(), WorkerId{owner});
        EXPECT_EQ(entry.size_class(), SizeClass(index));
        EXPECT_NE(entry.bits(), 0U);
      }
    }
  }
  EXPECT_EQ(BlockEntry().use(), Use::kFree);
}

// Everything of the root area, in order, without a gap or an overlap.
TEST(RegionLayoutTest, TheRootAreaIsTiled) {
  EXPECT_EQ(sizeof(RegionHeader), 64 + kBlocksPerRegion * 8);
  EXPECT_EQ(EpochEntryAddr(WorkerIndex{0}), GlobalAddr(0, kRegionHeaderBytes));
  EXPECT_EQ(EpochEntryAddr(WorkerIndex{kMaxWorkers - 1}) + sizeof(EpochEntry),
            KeyCounterAddr(WorkerIndex{0}, 0));
  EXPECT_EQ(KeyCounterAddr(WorkerIndex{3}, kMaxDatabases - 1) + 8,
            KeyCounterAddr(WorkerIndex{4}, 0));
  EXPECT_EQ(KeyCounterAddr(WorkerIndex{kMaxWorkers - 1}, kMaxDatabases - 1) + 8,
            DirectoryAddr(0, 0));
  EXPECT_EQ(DirectoryAddr(kDirectoryEntries - 1, 1) + 8, RetiredRingAddr(WorkerIndex{0}));
  EXPECT_EQ(RetiredRingAddr(WorkerIndex{kMaxWorkers - 1}) + sizeof(RetiredRing),
            SeatRingAddr(WorkerIndex{0}));
  EXPECT_EQ((SeatRingAddr(WorkerIndex{kMaxWorkers - 1}) + kSeatRingBytes).offset(), kRootBytes);
  EXPECT_LE(kRootBytes, kRootBlocks * kBlockBytes);
  EXPECT_GT(kRootBytes, (kRootBlocks - 1) * kBlockBytes);
}

TEST(IndexLayoutTest, CombinedBucketsShareTheOverflowBucket) {
  EXPECT_EQ(CombinedFirstWord(0) + kCombinedWords, CombinedFirstWord(1) + kGroupHeaderWord);
  EXPECT_EQ(CombinedFirstWord(1) + kCombinedWords, kGroupWords);
  for (const uint32_t side : {0U, 1U}) {
    EXPECT_LE(CombinedFirstWord(side), kGroupHeaderWord);
    EXPECT_GT(CombinedFirstWord(side) + kCombinedWords, kGroupHeaderWord);
  }
}

}  // namespace
}  // namespace onetrip
