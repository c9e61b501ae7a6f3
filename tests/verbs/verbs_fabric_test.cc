// The verbs backend on a real driver: the contract of every backend, and its own faults.
#include <gtest/gtest.h>

#include <string>

#include "tests/verbs/verbs_world.h"

namespace onetrip {
namespace {

constexpr FabricBackend kVerbs{"verbs", MakeWorld<VerbsWorld>, false, false, 2000};
INSTANTIATE_TEST_SUITE_P(Verbs, FabricTest, testing::Values(kVerbs),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr NodeId kNode0{0};
constexpr NodeId kNode1{1};

class VerbsFabricTest : public testing::Test {
 protected:
  Status Post(VerbsFabric& fabric, const RoundTripPtr& rt) {
    return BlockOn(world_.executor(), PostInATurn(&world_.executor(), &fabric, rt));
  }
  std::unique_ptr<VerbsFabric> NewFabric(VerbsFabricOptions options = {}) {
    return world_.NewVerbsFabric({&nodes_[0], &nodes_[1]}, options);
  }

  BareEndpoint nodes_[2]{BareEndpoint(1 << 16), BareEndpoint(1 << 16)};
  VerbsWorld world_{1};
};

TEST_F(VerbsFabricTest, ABatchIsOneChainAndOneCompletionPerNode) {
  const auto fabric = NewFabric();
  const RoundTripPtr rt = fabric->NewRoundTrip();
  for (const NodeId node : {kNode0, kNode1}) {
    rt->WriteWord({node, 8}, 7);
    rt->Cas({node, 8}, 7, 9);
    rt->Read({node, 0}, 64);
  }
  ASSERT_TRUE(Post(*fabric, rt).ok());
  EXPECT_EQ(fabric->stats().chains, 2U);
  EXPECT_EQ(fabric->stats().completions, 2U);
  EXPECT_EQ(fabric->stats().requests, 6U);
  EXPECT_EQ(nodes_[1].word(8), 9U);
}

TEST_F(VerbsFabricTest, ManyBatchesAtOnceWaitForRoom) {
  const auto fabric = NewFabric({.requests_max = RoundTrip::kMaxOps});
  constexpr size_t kPosts = 64;
  std::vector<Task<void>> posts;
  posts.reserve(kPosts);
  for (size_t i = 0; i < kPosts; ++i) {
    posts.push_back([](VerbsFabric* on) -> Task<void> {
      const RoundTripPtr rt = on->NewRoundTrip();
      while (rt->HasRoom(1)) rt->Faa({kNode0, 16}, 1);
      const Status status = co_await on->Post(rt);
      EXPECT_TRUE(status.ok());
    }(fabric.get()));
  }
  BlockOn(world_.executor(), AwaitAllInATurn(&world_.executor(), std::move(posts)));
  EXPECT_EQ(nodes_[0].word(16), kPosts * RoundTrip::kMaxOps);
}

TEST_F(VerbsFabricTest, AReadGoesToMemoryThatTheDeviceDoesNotKnow) {
  const auto fabric = NewFabric();
  nodes_[0].set_word(512, 77);
  uint64_t into = 0;
  const RoundTripPtr rt = fabric->NewRoundTrip();
  rt->ReadTo({kNode0, 512}, reinterpret_cast<std::byte*>(&into), sizeof(into));
  ASSERT_TRUE(Post(*fabric, rt).ok());
  EXPECT_EQ(into, 77U);
}

// The device gives a peer up that is gone after its retries, half a second; the cluster's view is
// faster. Meanwhile the worker sleeps.
TEST_F(VerbsFabricTest, APeerThatIsGoneFailsWhatWaitsForIt) {
  const auto fabric = NewFabric({.busy_poll_us = 0});
  world_.HostOf(nodes_[0]).Fence(world_.worker());
  const RoundTripPtr rt = fabric->NewRoundTrip();
  rt->WriteWord({kNode0, 8}, 1);
  rt->WriteWord({kNode1, 8}, 2);
  const uint64_t turns = world_.executor().turns();
  EXPECT_EQ(Post(*fabric, rt).code(), StatusCode::kUnknownOutcome);
  EXPECT_FALSE(rt->op(0).ok);
  EXPECT_TRUE(rt->op(1).ok);
  EXPECT_GT(fabric->stats().wakeups, 0U);
  EXPECT_LT(world_.executor().turns() - turns, 100U);
  EXPECT_FALSE(fabric->Reaches(kNode0));
  EXPECT_TRUE(fabric->Reaches(kNode1));
  EXPECT_EQ(nodes_[0].word(8), 0U);
}

TEST_F(VerbsFabricTest, AWrongKeyFailsAllThatIsUnderWayAndNothingElse) {
  const auto fabric = NewFabric();
  std::string reason;
  const Result<VerbsAddress> own = fabric->Offer(kNode0, &reason);
  ASSERT_TRUE(own.ok()) << reason;
  Result<VerbsTarget> target = world_.HostOf(nodes_[0]).Welcome(world_.worker(), *own, &reason);
  ASSERT_TRUE(target.ok()) << reason;
  target.value().key ^= 0x55;
  ASSERT_TRUE(fabric->Connect(kNode0, *target, &reason).ok()) << reason;

  const RoundTripPtr rt = fabric->NewRoundTrip();
  rt->WriteWord({kNode0, 8}, 1);
  rt->WriteWord({kNode1, 8}, 2);
  EXPECT_EQ(Post(*fabric, rt).code(), StatusCode::kUnknownOutcome);
  EXPECT_FALSE(rt->op(0).ok);
  EXPECT_TRUE(rt->op(1).ok);
  EXPECT_EQ(nodes_[0].word(8), 0U);
  EXPECT_EQ(nodes_[1].word(8), 2U);
  EXPECT_FALSE(fabric->Reaches(kNode0));
  EXPECT_TRUE(fabric->Reaches(kNode1));
  EXPECT_FALSE(fabric->settled());

  world_.ConnectTo(*fabric, kNode0, nodes_[0]);
  EXPECT_TRUE(fabric->settled());
  const RoundTripPtr again = fabric->NewRoundTrip();
  again->WriteWord({kNode0, 8}, 3);
  EXPECT_TRUE(Post(*fabric, again).ok());
  EXPECT_EQ(nodes_[0].word(8), 3U);
}

TEST_F(VerbsFabricTest, OutsideTheMemoryNothingIsPosted) {
  const auto fabric = NewFabric();
  const RoundTripPtr rt = fabric->NewRoundTrip();
  rt->Read({kNode0, (1 << 16) - 8}, 16);
  rt->Faa({kNode0, ~uint64_t{7}}, 1);
  rt->WriteWord({kNode0, 32}, 5);
  EXPECT_EQ(Post(*fabric, rt).code(), StatusCode::kUnknownOutcome);
  EXPECT_FALSE(rt->op(0).ok);
  EXPECT_FALSE(rt->op(1).ok);
  EXPECT_TRUE(rt->op(2).ok);
  EXPECT_EQ(nodes_[0].word(32), 5U);
  EXPECT_TRUE(fabric->Reaches(kNode0));
}

// VERBS, "Death and fencing": a thousand times in a guest of two processors.
TEST_F(VerbsFabricTest, NothingOfAFencedWorkerTakesEffect) {
  const auto fabric = NewFabric();
  for (int round = 0; round < 1000; ++round) {
    std::vector<Task<void>> posts;
    for (int i = 0; i < 4; ++i) {
      posts.push_back([](VerbsFabric* on) -> Task<void> {
        const RoundTripPtr rt = on->NewRoundTrip();
        while (rt->HasRoom(1)) rt->Faa({kNode0, 40}, 1);
        (void)co_await on->Post(rt);
      }(fabric.get()));
      posts.back().Start();
    }
    world_.HostOf(nodes_[0]).Fence(world_.worker());
    const uint64_t then = nodes_[0].word(40);
    // The worker notices by itself, after retries; the cluster's view is faster.
    fabric->SetEvicted(kNode0, true);
    for (bool done = false; !done;) {
      world_.executor().RunOnce();
      done = std::all_of(posts.begin(), posts.end(),
                         [](const Task<void>& post) { return post.done(); });
    }
    ASSERT_EQ(nodes_[0].word(40), then) << "round " << round;
    fabric->SetEvicted(kNode0, false);
    ASSERT_FALSE(fabric->Reaches(kNode0));
    world_.ConnectTo(*fabric, kNode0, nodes_[0]);
  }
}

TEST(VerbsDeviceTest, SaysWhatIsWrongWithItsName) {
  std::string reason;
  EXPECT_FALSE(VerbsDevice::Open({.name = "mlx5_7"}, &reason).ok());
  EXPECT_EQ(reason, "there is no RDMA device mlx5_7; there are rxe0");
  EXPECT_FALSE(VerbsDevice::Open({.gid_index = 99}, &reason).ok());
  EXPECT_EQ(reason, "the RDMA device rxe0 has no GID at index 99; ibv_devinfo -v lists them");
  const auto device = VerbsDevice::Open({}, &reason);
  ASSERT_TRUE(device.ok()) << reason;
  EXPECT_EQ(device.value()->Describe(), "rxe0, port 1, GID 1 ::ffff:10.0.0.1, MTU 4096, Ethernet");
}

}  // namespace
}  // namespace onetrip
