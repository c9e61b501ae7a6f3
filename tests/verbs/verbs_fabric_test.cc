// The verbs backend on a real driver: the contract of every backend, and its own faults.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "client_core/base/log.h"
#include "tests/verbs/verbs_world.h"

namespace onetrip {
namespace {

constexpr FabricBackend kVerbs{"verbs", MakeWorld<VerbsWorld>, false, false, 6000};
INSTANTIATE_TEST_SUITE_P(Verbs, FabricTest, testing::Values(kVerbs),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr NodeId kNode0{0};
constexpr NodeId kNode1{1};

class VerbsFabricTest : public testing::Test {
 protected:
  Status Post(VerbsFabric& fabric, const RoundTripPtr& rt) {
    return BlockOn(world_.executor(), PostInATurn(&world_.executor(), &fabric, rt));
  }
  // The trials of new queue pairs are counted, too.
  static void ResetCounters(VerbsFabric& fabric) {
    RdmaMetrics& metrics = *fabric.rdma_metrics();
    for (Counter* counter : {&metrics.requests, &metrics.doorbells, &metrics.completions}) {
      counter->Reset();
    }
  }
  std::unique_ptr<VerbsFabric> NewFabric(VerbsFabricOptions options = {}) {
    return world_.NewVerbsFabric({&nodes_[0], &nodes_[1]}, options);
  }

  BareEndpoint nodes_[2]{BareEndpoint(1 << 16), BareEndpoint(1 << 16)};
  VerbsWorld world_{1};
};

TEST_F(VerbsFabricTest, ABatchIsOneChainAndOneCompletionPerNode) {
  const auto fabric = NewFabric();
  ResetCounters(*fabric);
  const RoundTripPtr rt = fabric->NewRoundTrip();
  for (const NodeId node : {kNode0, kNode1}) {
    rt->WriteWord({node, 8}, 7);
    rt->Cas({node, 8}, 7, 9);
    rt->Read({node, 0}, 64);
  }
  ASSERT_TRUE(Post(*fabric, rt).ok());
  EXPECT_EQ(fabric->rdma_metrics()->doorbells.Value(), 2U);
  EXPECT_EQ(fabric->rdma_metrics()->completions.Value(), 2U);
  EXPECT_EQ(fabric->rdma_metrics()->requests.Value(), 6U);
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

// The device gives a peer up that is gone after its retries, half a second. Meanwhile the worker
// sleeps.
TEST_F(VerbsFabricTest, AQueuePairThatIsGoneFailsWhatWaitsForItAndAnotherOneIsMade) {
  const auto fabric = NewFabric({.busy_poll_us = 0});
  world_.HostOf(nodes_[0]).Fence(world_.worker());
  const RoundTripPtr rt = fabric->NewRoundTrip();
  rt->WriteWord({kNode0, 8}, 1);
  rt->WriteWord({kNode1, 8}, 2);
  const uint64_t turns = world_.executor().turns();
  EXPECT_EQ(Post(*fabric, rt).code(), StatusCode::kUnknownOutcome);
  EXPECT_FALSE(rt->op(0).ok);
  EXPECT_TRUE(rt->op(1).ok);
  const RdmaMetrics& metrics = *fabric->rdma_metrics();
  EXPECT_GT(metrics.wakeups.Value(), 0U);
  EXPECT_LT(world_.executor().turns() - turns, 100U);
  EXPECT_FALSE(fabric->Reaches(kNode0));
  EXPECT_TRUE(fabric->Reaches(kNode1));
  EXPECT_FALSE(fabric->settled());
  EXPECT_EQ(metrics.flushed.Value(), 1U);
  EXPECT_EQ(nodes_[0].word(8), 0U);

  world_.AwaitNode(*fabric, kNode0);
  EXPECT_TRUE(fabric->settled());
  EXPECT_EQ(metrics.connections.Value(), 3U);
  const RoundTripPtr again = fabric->NewRoundTrip();
  again->WriteWord({kNode0, 8}, 3);
  EXPECT_TRUE(Post(*fabric, again).ok());
  EXPECT_EQ(nodes_[0].word(8), 3U);
}

TEST_F(VerbsFabricTest, WhatIsPostedWhileAConnectionIsMadeWaitsForIt) {
  const auto fabric = NewFabric();
  world_.ServerOf(nodes_[0]).CloseChannels();
  while (fabric->Reaches(kNode0)) world_.executor().RunOnce();
  const RoundTripPtr rt = fabric->NewRoundTrip();
  rt->WriteWord({kNode0, 24}, 6);
  EXPECT_TRUE(Post(*fabric, rt).ok());
  EXPECT_EQ(nodes_[0].word(24), 6U);
}

TEST_F(VerbsFabricTest, BlocksAreAskedForOverTheChannel) {
  const auto fabric = NewFabric();
  ControlRequest request;
  request.kind = ControlRequest::Kind::kFree;
  request.block = GlobalAddr(4096);
  const auto reply = BlockOn(world_.executor(), fabric->Control(kNode1, request));
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->block, request.block);
  fabric->SetEvicted(kNode1, true);
  EXPECT_EQ(BlockOn(world_.executor(), fabric->Control(kNode1, request)).status().code(),
            StatusCode::kUnavailable);
}

TEST_F(VerbsFabricTest, APingNoticesAQueuePairThatIsGone) {
  const auto fabric = NewFabric();
  fabric->Ping(kNode0);  // its trial was answered since the last look
  ResetCounters(*fabric);
  fabric->Ping(kNode0);
  fabric->Ping(kNode0);  // one is under way
  EXPECT_EQ(fabric->rdma_metrics()->doorbells.Value(), 1U);
  while (fabric->rdma_metrics()->completions.Value() == 0) world_.executor().RunOnce();
  EXPECT_TRUE(fabric->Answers(kNode0));
  world_.HostOf(nodes_[0]).Fence(world_.worker());
  fabric->Ping(kNode0);
  fabric->Ping(kNode0);
  while (fabric->Reaches(kNode0)) world_.executor().RunOnce();
  EXPECT_FALSE(fabric->Answers(kNode0));
}

// A worker that believes a node to be of tcp, and one that believes it to be of RDMA.
TEST_F(VerbsFabricTest, ANodeIsReachedOverOneNetworkAlone) {
  const auto fabric = NewFabric();
  TcpFabric over_tcp(world_.executor(), {.cluster = 7, .worker = WorkerId{99}}, Secret(), {});
  std::string reason;
  const uint16_t port = world_.ServerOf(nodes_[0]).port();
  ASSERT_TRUE(over_tcp.SetNode(kNode0, "127.0.0.1", port, &reason).ok());
  const RoundTripPtr rt = over_tcp.NewRoundTrip();
  rt->WriteWord({kNode0, 8}, 1);
  EXPECT_EQ(BlockOn(world_.executor(), PostInATurn(&world_.executor(), &over_tcp, rt)).code(),
            StatusCode::kUnknownOutcome);
  EXPECT_EQ(nodes_[0].word(8), 0U);
  EXPECT_NE(over_tcp.ConnectError(kNode0).find("reached over RDMA alone"), std::string::npos);

  const auto tcp_only =
      TcpServer::Start(nodes_[1], Secret(), {.cluster = 7, .node = NodeId{5}}, &reason);
  ASSERT_TRUE(tcp_only.ok()) << reason;
  ASSERT_TRUE(fabric->SetNode(NodeId{5}, "127.0.0.1", tcp_only.value()->port(), &reason).ok());
  const uint64_t deadline_ns = world_.executor().NowNs() + 2'000'000'000;
  EXPECT_FALSE(BlockOn(world_.executor(), fabric->Connected(NodeId{5}, deadline_ns)).ok());
  EXPECT_NE(fabric->ConnectError(NodeId{5}).find("does not serve RDMA"), std::string::npos);
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
  SetLogLevel(LogLevel::kError);
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
    world_.ServerOf(nodes_[0]).CloseChannels();
    const uint64_t then = nodes_[0].word(40);
    for (bool done = false; !done;) {
      world_.executor().RunOnce();
      done = std::all_of(posts.begin(), posts.end(),
                         [](const Task<void>& post) { return post.done(); });
    }
    ASSERT_EQ(nodes_[0].word(40), then) << "round " << round;
    world_.AwaitNode(*fabric, kNode0);
  }
  SetLogLevel(LogLevel::kInfo);
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
