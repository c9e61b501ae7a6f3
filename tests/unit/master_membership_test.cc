// The master's state machine: which workers are members, where regions lie, what a database number
// means.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "client_core/cluster/cluster_clock.h"
#include "client_core/coro/sim_executor.h"
#include "master/local_master.h"
#include "master/membership.h"

namespace onetrip {
namespace {

MembershipState MakeState(const ClusterShape& shape = {
                              .nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20}) {
  Result<MembershipState> state = MembershipState::Create(shape);
  CHECK(state.ok());
  return std::move(state.value());
}

TEST(MembershipTest, ImpossibleShapesAreRefused) {
  const ClusterShape shapes[] = {
      {.nodes = 2, .replicas = 3, .node_bytes = 1ULL << 30},
      {.nodes = 0, .replicas = 0, .node_bytes = 1ULL << 30},
      {.nodes = 3, .replicas = 0, .node_bytes = 1ULL << 30},
      {.nodes = 3, .replicas = -1, .node_bytes = 1ULL << 30},
      {.nodes = 9, .replicas = kMaxReplicas + 1, .node_bytes = 1ULL << 30},
      {.nodes = 3, .replicas = 3, .node_bytes = kRegionBytes - 1},
      {.nodes = 3, .replicas = 3, .node_bytes = 0},
  };
  for (const ClusterShape& shape : shapes) {
    EXPECT_EQ(MembershipState::Create(shape).status().code(), StatusCode::kInvalidArgument);
  }
}

// Every shape: replicas on different nodes, no two regions over each other, no node asked for more
// than it has, hardly anything left over, and primaries spread.
TEST(MembershipTest, RegionsArePlacedFairlyWithinTheNodesMemory) {
  for (uint16_t nodes = 1; nodes <= 7; ++nodes) {
    for (int replicas = 1; replicas <= kMaxReplicas && replicas <= nodes; ++replicas) {
      for (uint64_t regions_per_node = 1; regions_per_node <= 9; ++regions_per_node) {
        SCOPED_TRACE(testing::Message() << nodes << " nodes, " << replicas << " replicas, "
                                        << regions_per_node << " regions each");
        const uint64_t node_bytes = regions_per_node * kRegionBytes + 12345;
        const MembershipState state =
            MakeState({.nodes = nodes, .replicas = replicas, .node_bytes = node_bytes});
        const View& view = state.view();
        EXPECT_EQ(view.replicas, replicas);
        EXPECT_EQ(view.node_count, nodes);
        std::set<std::pair<uint16_t, uint64_t>> places;
        std::vector<uint64_t> primaries(nodes);
        for (const RegionPlacement& region : view.regions) {
          std::set<uint16_t> on;
          for (int replica = 0; replica < replicas; ++replica) {
            const uint16_t node = region.nodes[replica].value;
            ASSERT_LT(node, nodes);
            EXPECT_TRUE(on.insert(node).second);
            EXPECT_EQ(region.base[replica] % kRegionBytes, 0U);
            EXPECT_LE(region.base[replica] + kRegionBytes, node_bytes);
            EXPECT_TRUE(places.emplace(node, region.base[replica]).second);
          }
          ++primaries[region.nodes[0].value];
        }
        EXPECT_GT((view.regions.size() + 1) * static_cast<uint64_t>(replicas),
                  regions_per_node * nodes);
        const auto [least, most] = std::minmax_element(primaries.begin(), primaries.end());
        EXPECT_LE(*most - *least, 2U);
      }
    }
  }
}

TEST(MembershipTest, IdsAreNeverReusedAndIndicesAre) {
  MembershipState state = MakeState();
  std::set<uint32_t> ids;
  std::vector<Membership> members;
  for (uint16_t i = 0; i < 5; ++i) {
    const Result<Membership> member = state.Join();
    ASSERT_TRUE(member.ok());
    EXPECT_EQ(member.value().index.value, i);
    EXPECT_NE(member.value().id.value, 0U) << "0 is nobody";
    EXPECT_TRUE(ids.insert(member.value().id.value).second);
    members.push_back(member.value());
  }
  for (int round = 0; round < 100; ++round) {
    const auto leaves = static_cast<size_t>(round * 7 % 5);
    ASSERT_TRUE(state.Leave(members[leaves]).ok());
    EXPECT_EQ(state.Leave(members[leaves]).code(), StatusCode::kInvalidArgument);
    const Result<Membership> member = state.Join();
    ASSERT_TRUE(member.ok());
    EXPECT_EQ(member.value().index, members[leaves].index);
    EXPECT_TRUE(ids.insert(member.value().id.value).second);
    // The worker that left does not end the membership of the one that has its index now.
    EXPECT_EQ(state.Leave(members[leaves]).code(), StatusCode::kInvalidArgument);
    members[leaves] = member.value();
    EXPECT_EQ(state.view().worker_index_end, 5);
  }
  EXPECT_EQ(state.Leave({WorkerId{1'000'000}, WorkerIndex{999}}).code(),
            StatusCode::kInvalidArgument);
}

TEST(MembershipTest, ThereAreAsManyMembersAsTheTablesHold) {
  MembershipState state = MakeState();
  Membership last;
  for (uint32_t i = 0; i < kMaxWorkers; ++i) {
    const Result<Membership> member = state.Join();
    ASSERT_TRUE(member.ok());
    ASSERT_LT(member.value().index.value, kMaxWorkers);
    last = member.value();
  }
  EXPECT_EQ(state.view().worker_index_end, kMaxWorkers);
  const Epoch epoch = state.view().epoch;
  EXPECT_EQ(state.Join().status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(state.view().epoch, epoch);
  ASSERT_TRUE(state.Leave(last).ok());
  EXPECT_TRUE(state.Join().ok());
}

TEST(MembershipTest, IdsThatASlotWordCannotCarryAreNotGivenOut) {
  MembershipState state = MakeState();
  constexpr uint32_t kLast = (1U << 22) - 1;
  for (uint32_t id = 1; id <= kLast; ++id) {
    const Result<Membership> member = state.Join();
    ASSERT_TRUE(member.ok());
    ASSERT_EQ(member.value().id.value, id);
    ASSERT_TRUE(state.Leave(member.value()).ok());
  }
  EXPECT_EQ(state.Join().status().code(), StatusCode::kUnavailable);
}

TEST(MembershipTest, EveryChangeIsANewView) {
  MembershipState state = MakeState();
  uint64_t epoch = state.view().epoch.value;
  EXPECT_GE(epoch, 1U);
  const Result<Membership> member = state.Join();
  EXPECT_EQ(state.view().epoch.value, ++epoch);
  EXPECT_TRUE(state.FlushKeyspaces(3).ok());
  EXPECT_EQ(state.view().epoch.value, ++epoch);
  EXPECT_TRUE(state.FlushKeyspaces(std::nullopt).ok());
  EXPECT_EQ(state.view().epoch.value, ++epoch);
  EXPECT_TRUE(state.Leave(member.value()).ok());
  EXPECT_EQ(state.view().epoch.value, ++epoch);
  EXPECT_FALSE(state.Leave(member.value()).ok());
  EXPECT_FALSE(state.FlushKeyspaces(kMaxDatabases).ok());
  EXPECT_EQ(state.view().epoch.value, epoch);
}

TEST(MembershipTest, AFlushedDatabaseGetsAKeyspaceThatNobodyHad) {
  MembershipState state = MakeState();
  std::set<uint32_t> ever;
  for (const KeyspaceId keyspace : state.view().keyspaces) {
    EXPECT_NE(keyspace.value, 0U);
    EXPECT_TRUE(ever.insert(keyspace.value).second);
  }
  for (uint32_t database = 0; database < kMaxDatabases; ++database) {
    const auto before = state.view().keyspaces;
    ASSERT_TRUE(state.FlushKeyspaces(database).ok());
    for (uint32_t i = 0; i < kMaxDatabases; ++i) {
      EXPECT_EQ(state.view().keyspaces[i] == before[i], i != database);
    }
    EXPECT_TRUE(ever.insert(state.view().keyspaces[database].value).second);
  }
  ASSERT_TRUE(state.FlushKeyspaces(std::nullopt).ok());
  for (const KeyspaceId keyspace : state.view().keyspaces) {
    EXPECT_TRUE(ever.insert(keyspace.value).second);
  }
}

TEST(LocalMasterTest, ViewsAreImmutableAndVersionsTellThemApart) {
  SimExecutor executor(1);
  LocalMaster master(MakeState(), executor.clock());
  const auto first = master.view();
  EXPECT_EQ(master.view_version(), first->epoch.value);
  Quiesce hold(executor);
  const Result<Membership> member = BlockOn(executor, master.Join(hold));
  ASSERT_TRUE(member.ok());
  EXPECT_EQ(first->worker_index_end, 0);
  EXPECT_EQ(master.view()->worker_index_end, 1);
  EXPECT_GT(master.view_version(), first->epoch.value);
  const KeyspaceId before = master.view()->keyspaces[2];
  EXPECT_TRUE(BlockOn(executor, master.FlushKeyspaces(hold, 2)).ok());
  EXPECT_NE(master.view()->keyspaces[2], before);
  EXPECT_EQ(first->keyspaces[2], before);
  EXPECT_TRUE(BlockOn(executor, master.Leave(hold, member.value())).ok());
  EXPECT_FALSE(BlockOn(executor, master.Leave(hold, member.value())).ok());
}

TEST(LocalMasterTest, TheClusterClockFollowsTheMastersWallClockOfTheStart) {
  SimExecutor executor(1);
  executor.manual_clock().Advance(5'000'000'000);
  executor.manual_clock().SetUnixOriginUs(1'600'000'000'000'000);
  LocalMaster master(MakeState(), executor.clock());
  const ClusterClock clock(executor.clock(), master.clock_offset_us());
  EXPECT_EQ(clock.NowUs(), executor.clock().UnixUs());
  // The wall clock steps; the cluster's does not.
  executor.manual_clock().SetUnixOriginUs(1'000'000);
  EXPECT_EQ(clock.NowMs(), 1'600'000'005'000U);
  executor.manual_clock().Advance(2'000'000);
  EXPECT_EQ(clock.NowMs(), 1'600'000'005'002U);
}

}  // namespace
}  // namespace onetrip
