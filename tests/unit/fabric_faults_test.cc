// Every fabric backend handles a wrong address, a lost node and a lease that has run out.
#include <algorithm>
#include <cstring>

#include "tests/support/fabric_backends.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

class FabricFaultTest : public FabricTest {};

TEST_P(FabricFaultTest, AddressesOutsideTheMemoryFailAndTouchNothing) {
  struct BadAddress {
    uint64_t offset;
    uint32_t bytes;
  };
  constexpr uint64_t kTop = ~uint64_t{0};
  constexpr BadAddress kBad[] = {
      {kMemoryBytes, 1},  {kMemoryBytes - 7, 8}, {kMemoryBytes - 1, 2},
      {kTop, 1},          {kTop - 3, 8},         {kTop - (1 << 20), 1 << 20},
      {kTop / 2 + 1, 64}, {0, kMemoryBytes + 1}, {8, ~uint32_t{0}},
  };
  std::memset(node(0).base(), 0x77, kMemoryBytes);
  const std::vector<std::byte> before(node(0).base(), node(0).base() + kMemoryBytes);
  for (const BadAddress& bad : kBad) {
    RoundTripPtr rt = fabric_->NewRoundTrip();
    // The source and destination are never looked at: a short buffer would tell the sanitizer.
    std::byte* buffer = rt->Reserve(8);
    rt->Write({kNode0, bad.offset}, buffer, bad.bytes);
    const uint64_t* good = rt->ReadWord({kNode0, 8});
    EXPECT_EQ(Post(rt).code(), StatusCode::kUnknownOutcome) << bad.offset << "+" << bad.bytes;
    EXPECT_FALSE(rt->op(0).ok);
    EXPECT_TRUE(rt->op(1).ok);
    EXPECT_EQ(*good, 0x7777777777777777U);
    if (bad.bytes > kMemoryBytes) continue;
    RoundTripPtr read = fabric_->NewRoundTrip();
    read->Read({kNode0, bad.offset}, bad.bytes);
    EXPECT_EQ(Post(read).code(), StatusCode::kUnknownOutcome) << bad.offset << "+" << bad.bytes;
  }
  EXPECT_EQ(std::memcmp(node(0).base(), before.data(), kMemoryBytes), 0);
}

TEST_P(FabricFaultTest, WordsOffTheirAlignmentFailAndTouchNothing) {
  for (const uint64_t offset : {uint64_t{1}, uint64_t{4}, uint64_t{7}, uint64_t{12},
                                kMemoryBytes - 4, kMemoryBytes, ~uint64_t{0}, ~uint64_t{7}}) {
    RoundTripPtr rt = fabric_->NewRoundTrip();
    rt->Cas({kNode0, offset}, 0, 1);
    rt->Faa({kNode0, offset}, 1);
    EXPECT_EQ(Post(rt).code(), StatusCode::kUnknownOutcome) << offset;
    EXPECT_FALSE(rt->op(0).ok);
    EXPECT_FALSE(rt->op(1).ok);
  }
  EXPECT_TRUE(std::all_of(node(0).base(), node(0).base() + kMemoryBytes,
                          [](std::byte byte) { return byte == std::byte{0}; }));
}

TEST_P(FabricFaultTest, OperationsOnALostNodeFailAndTheOtherNodesAnswer) {
  node(0).SetReachable(false);
  RoundTripPtr rt = fabric_->NewRoundTrip();
  rt->WriteWord({kNode0, 0}, 1);
  rt->WriteWord({kNode1, 0}, 2);
  rt->Faa({kNode0, 8}, 1);
  EXPECT_EQ(Post(rt).code(), StatusCode::kUnknownOutcome);
  EXPECT_FALSE(rt->op(0).ok);
  EXPECT_TRUE(rt->op(1).ok);
  EXPECT_FALSE(rt->op(2).ok);
  EXPECT_EQ(node(0).word(0), 0U);
  EXPECT_EQ(node(0).word(8), 0U);
  EXPECT_EQ(node(1).word(0), 2U);
  const auto refused = BlockOn(executor(), fabric_->Control(kNode0, ControlRequest()));
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(BlockOn(executor(), fabric_->Control(kNode1, ControlRequest())).ok());

  node(0).SetReachable(true);
  EXPECT_TRUE(Post(rt).ok());
  EXPECT_EQ(node(0).word(0), 1U);
}

constexpr uint32_t kBulkWords = 256;
constexpr int kBulkWrites = 8;

// Fills the first kBulkWrites areas of nodes 0 and 1 with `pattern`, one FAA after each.
RoundTripPtr BulkWrites(Fabric& fabric, uint64_t pattern) {
  RoundTripPtr rt = fabric.NewRoundTrip();
  auto* words = reinterpret_cast<uint64_t*>(rt->Reserve(kBulkWords * 8));
  std::fill_n(words, kBulkWords, pattern);
  for (uint32_t i = 0; i < kBulkWrites; ++i) {
    for (const uint16_t to : {0, 1}) {
      rt->Write({NodeId{to}, 4096 + i * kBulkWords * 8}, reinterpret_cast<std::byte*>(words),
                kBulkWords * 8);
      rt->Faa({NodeId{to}, i * 8}, 1);
    }
  }
  return rt;
}

Task<void> LoseNode(Executor* executor, uint64_t after_ns, BareEndpoint* node) {
  co_await executor->SleepFor(after_ns);
  node->SetReachable(false);
}

Task<void> PostInto(Fabric* fabric, RoundTripPtr rt, Status* status) {
  *status = co_await fabric->Post(rt);
}

// Node 0 is lost at every phase of a batch: before it arrives, while it is applied, on the way
// back. What is reported as done is done; the rest is done, undone, or done in part; the batch
// ends.
TEST_P(FabricFaultTest, ANodeLostInMidBatchFailsItsOperationsAndTheBatchEnds) {
  int partly = 0;
  int applied_but_failed = 0;
  const int seeds = Scaled(400);
  for (int seed = 1; seed <= seeds; ++seed) {
    StartWorld(static_cast<uint64_t>(seed));
    node(0).SetReachable(true);
    const uint64_t before = node(0).word(4096);
    const auto pattern = static_cast<uint64_t>(seed);
    uint64_t counts[kBulkWrites];
    for (uint64_t i = 0; i < kBulkWrites; ++i) {
      counts[i] = node(0).word(i * 8);
      for (uint64_t word = 0; word < kBulkWords; ++word) {
        node(0).set_word(4096 + (i * kBulkWords + word) * 8, before);
      }
    }
    const RoundTripPtr rt = BulkWrites(*fabric_, pattern);
    Status status;
    std::vector<Task<void>> tasks;
    tasks.push_back(PostInto(fabric_.get(), rt, &status));
    const uint64_t lost_after_ns =
        static_cast<uint64_t>(seed) * 6'000 / static_cast<uint64_t>(seeds);
    tasks.push_back(LoseNode(&executor(), lost_after_ns, &node(0)));
    RunAll(std::move(tasks));

    bool all_of_node_0 = true;
    bool some_applied = false;
    bool some_missing = false;
    for (size_t i = 0; i < rt->size(); ++i) {
      const FabricOp& op = rt->op(i);
      if (op.node == kNode1) {
        EXPECT_TRUE(op.ok) << "seed " << seed;
        continue;
      }
      all_of_node_0 &= op.ok;
      for (uint64_t word = 0; op.kind == FabricOpKind::kWrite && word < kBulkWords; ++word) {
        const uint64_t now = node(0).word(op.offset + word * 8);
        EXPECT_TRUE(now == pattern || (!op.ok && now == before)) << "seed " << seed;
        (now == pattern ? some_applied : some_missing) = true;
      }
      if (op.kind == FabricOpKind::kFaa) {
        const uint64_t added = node(0).word(op.offset) - counts[op.offset / 8];
        EXPECT_TRUE(added == 1 || (!op.ok && added == 0)) << "seed " << seed;
      }
    }
    EXPECT_EQ(status.ok(), all_of_node_0) << "seed " << seed;
    partly += some_applied && some_missing;
    applied_but_failed += !all_of_node_0 && !some_missing;

    // An operation that is posted later fails and touches nothing.
    const std::vector<std::byte> memory(node(0).base(), node(0).base() + 65536);
    EXPECT_FALSE(Post(BulkWrites(*fabric_, ~pattern)).ok());
    EXPECT_EQ(std::memcmp(node(0).base(), memory.data(), memory.size()), 0) << "seed " << seed;
  }
  if (GetParam().has_time) {
    EXPECT_GT(partly, 0);
    EXPECT_GT(applied_but_failed, 0);
  }
}

TEST_P(FabricFaultTest, AfterTheLeaseNothingIsSent) {
  fabric_->set_lease({.deadline_ns = executor().NowNs() + 1'000'000'000'000, .epoch = Epoch{7}});
  EXPECT_EQ(fabric_->lease().epoch, Epoch{7});
  RoundTripPtr rt = fabric_->NewRoundTrip();
  rt->Faa({kNode0, 0}, 1);
  rt->WriteWord({kNode1, 0}, 1);
  ASSERT_TRUE(Post(rt).ok());

  fabric_->set_lease({.deadline_ns = executor().NowNs(), .epoch = Epoch{7}});
  EXPECT_EQ(Post(rt).code(), StatusCode::kFenced);
  BlockOn(executor(), [](Executor& executor) -> Task<void> {
    co_await executor.SleepFor(1'000'000);
  }(executor()));
  EXPECT_EQ(node(0).word(0), 1U);

  fabric_->set_lease({});
  EXPECT_TRUE(Post(rt).ok());
  EXPECT_EQ(node(0).word(0), 2U);
}

INSTANTIATE_TEST_SUITE_P(Backends, FabricFaultTest, testing::ValuesIn(kFabricBackends),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onetrip
