// Round trips: their arena, their pool, and that buffers stay good while any owner refers to them.
#include <array>
#include <cstring>

#include "client_core/fabric/memory_ops.h"
#include "tests/support/fabric_backends.h"

namespace onetrip {
namespace {

class FabricRoundTripTest : public FabricTest {};

TEST_P(FabricRoundTripTest, TheArenaGrowsAndEarlierBuffersStay) {
  RoundTripPtr rt = fabric_->NewRoundTrip();
  std::vector<std::pair<std::byte*, size_t>> buffers;
  for (size_t bytes = 1; bytes < 5000; bytes = bytes * 3 / 2 + 1) {
    std::byte* buffer = rt->Reserve(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer) % 8, 0U);
    std::memset(buffer, static_cast<int>(buffers.size() + 1), bytes);
    buffers.emplace_back(buffer, bytes);
  }
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (size_t at = 0; at < buffers[i].second; ++at) {
      ASSERT_EQ(buffers[i].first[at], static_cast<std::byte>(i + 1)) << i << " at " << at;
    }
  }
}

TEST_P(FabricRoundTripTest, BuffersOfACompletedRoundTripStayWhileItIsHeld) {
  std::vector<RoundTripPtr> held;
  for (uint64_t i = 0; i < 50; ++i) {
    RoundTripPtr rt = fabric_->NewRoundTrip();
    rt->WriteWord({kNode0, 0}, i);
    rt->ReadWord({kNode0, 0});
    rt->Read({kNode0, 0}, 2000);
    ASSERT_TRUE(Post(rt).ok());
    held.push_back(rt);
    RoundTripPtr(std::move(rt));
  }
  for (uint64_t i = 0; i < held.size(); ++i) {
    for (const size_t op : {1, 2}) {
      uint64_t word = 0;
      std::memcpy(&word, held[i]->op(op).local, 8);
      EXPECT_EQ(word, i);
    }
  }
}

TEST_P(FabricRoundTripTest, AReleasedRoundTripComesBackEmpty) {
  const RoundTrip* first = nullptr;
  {
    RoundTripPtr rt = fabric_->NewRoundTrip();
    first = rt.get();
    rt->Read({kNode0, 0}, 3000);
    rt->Cas({kNode0, 0}, 1, 2);
    ASSERT_TRUE(Post(rt).ok());
    RoundTripPtr another;
    another = rt;
    EXPECT_EQ(another.get(), first);
  }
  RoundTripPtr rt = fabric_->NewRoundTrip();
  EXPECT_EQ(rt.get(), first);
  EXPECT_TRUE(rt->empty());
  EXPECT_TRUE(rt->HasRoom(RoundTrip::kMaxOps));
  EXPECT_FALSE(rt->HasRoom(RoundTrip::kMaxOps + 1));
  EXPECT_TRUE(Post(rt).ok()) << "nothing to do is done at once";
}

TEST_P(FabricRoundTripTest, ClearedOperationsLeaveTheBuffers) {
  RoundTripPtr rt = fabric_->NewRoundTrip();
  rt->WriteWord({kNode0, 8}, 42);
  const uint64_t* word = rt->ReadWord({kNode0, 8});
  ASSERT_TRUE(Post(rt).ok());
  rt->ClearOps();
  EXPECT_TRUE(rt->empty());
  rt->WriteWord({kNode0, 8}, 43);
  const uint64_t* again = rt->ReadWord({kNode0, 8});
  ASSERT_TRUE(Post(rt).ok());
  EXPECT_EQ(rt->size(), 2U);
  EXPECT_EQ(*word, 42U);
  EXPECT_EQ(*again, 43U);
}

INSTANTIATE_TEST_SUITE_P(Backends, FabricRoundTripTest, testing::ValuesIn(kFabricBackends),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(FabricCutTest, EveryNodeHasItsPartInTheOrderOfTheirFirstOperation) {
  RoundTripPool pool;
  const RoundTripPtr rt = pool.Get();
  std::array<RoundTrip::Part, RoundTrip::kMaxOps> parts;
  EXPECT_EQ(rt->CutByNode(&parts), 0U);
  const std::array<uint16_t, 6> nodes{7, 2, 7, 0, 2, 7};
  for (const uint16_t node : nodes) rt->Faa({NodeId{node}, 0}, 1);
  ASSERT_EQ(rt->CutByNode(&parts), 3U);
  EXPECT_EQ(parts[0].node, NodeId{7});
  EXPECT_EQ(parts[0].ops, 0b100101U);
  EXPECT_EQ(parts[1].node, NodeId{2});
  EXPECT_EQ(parts[1].ops, 0b010010U);
  EXPECT_EQ(parts[2].node, NodeId{0});
  EXPECT_EQ(parts[2].ops, 0b001000U);
  while (rt->HasRoom(1)) rt->Faa({NodeId{1}, 0}, 1);
  ASSERT_EQ(rt->CutByNode(&parts), 4U);
  EXPECT_EQ(parts[3].ops, ((uint64_t{1} << RoundTrip::kMaxOps) - 1) & ~uint64_t{0b111111});
}

TEST(FabricMemoryOpsTest, CopiesEqualMemcpyAtEveryAlignmentAndLength) {
  alignas(8) std::byte remote[64];
  std::byte local[64];
  for (size_t offset = 0; offset < 16; ++offset) {
    for (size_t bytes = 0; bytes <= 40; ++bytes) {
      for (size_t i = 0; i < sizeof(remote); ++i) remote[i] = static_cast<std::byte>(i);
      std::memset(local, 0xee, sizeof(local));
      CopyOut(local, remote + offset, bytes);
      ASSERT_EQ(std::memcmp(local, remote + offset, bytes), 0);
      for (size_t i = bytes; i < sizeof(local); ++i) ASSERT_EQ(local[i], std::byte{0xee});

      CopyIn(remote + offset, local + 64 - 41, bytes);
      for (size_t i = 0; i < sizeof(remote); ++i) {
        const bool inside = i >= offset && i < offset + bytes;
        const std::byte expected = inside ? local[64 - 41 + i - offset] : static_cast<std::byte>(i);
        ASSERT_EQ(remote[i], expected) << offset << "+" << bytes << " at " << i;
      }
    }
  }
}

TEST(FabricMemoryOpsTest, BoundsHoldAtTheEdges) {
  FabricOp op;
  op.bytes = 8;
  op.offset = 56;
  EXPECT_TRUE(InBounds(op, 64));
  op.offset = 57;
  EXPECT_FALSE(InBounds(op, 64));
  op.bytes = 7;
  EXPECT_TRUE(InBounds(op, 64));
  op.bytes = 0;
  op.offset = 64;
  EXPECT_TRUE(InBounds(op, 64));
  op.offset = 65;
  EXPECT_FALSE(InBounds(op, 64));
  op.kind = FabricOpKind::kCas;
  op.bytes = 8;
  op.offset = 48;
  EXPECT_TRUE(InBounds(op, 64));
  op.offset = 52;
  EXPECT_FALSE(InBounds(op, 64));
  op.offset = ~uint64_t{7};
  EXPECT_FALSE(InBounds(op, 64));
  op.offset = 0;
  EXPECT_FALSE(InBounds(op, 7));
}

}  // namespace
}  // namespace onetrip
