// A worker and its agent's process notice which memory nodes they do not reach.
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "client_core/cluster/reach_watch.h"
#include "client_core/cluster/unreached_nodes.h"
#include "client_core/coro/sim_executor.h"

namespace onetrip {
namespace {

constexpr WorkerId kOne{1};
constexpr WorkerId kTwo{2};
constexpr NodeId kNode{1};

View ViewOf(std::set<uint16_t> out) {
  View view;
  view.nodes.resize(3);
  view.node_count = 3;
  for (const uint16_t node : out) view.nodes[node].out = true;
  return view;
}

class ReachWatchTest : public testing::Test {
 protected:
  void Look(int times = 1) {
    for (int i = 0; i < times; ++i) watch.Look();
  }

  SimExecutor executor{1};
  std::shared_ptr<const View> view = std::make_shared<const View>(ViewOf({}));
  std::set<uint16_t> silent;
  std::vector<std::string> told;
  ReachWatch watch{executor, 0,
                   ReachWatch::Calls{[this] { return view; },
                                     [this](NodeId node) { return !silent.contains(node.value); },
                                     [this](NodeId node, bool reached) {
                                       told.push_back(std::to_string(node.value) +
                                                      (reached ? " is reached" : " is not"));
                                     }}};
};

using Told = std::vector<std::string>;

TEST_F(ReachWatchTest, ANodeIsLostAfterSomeLooksInARow) {
  silent = {1};
  Look(ReachWatch::kLooksToLose - 1);
  EXPECT_EQ(told, Told());
  silent = {};
  Look();
  silent = {1};
  Look(ReachWatch::kLooksToLose - 1);
  EXPECT_EQ(told, Told()) << "it begins anew";
  Look();
  EXPECT_EQ(told, Told{"1 is not"});
  Look(5);
  EXPECT_EQ(told, Told{"1 is not"}) << "once";
  silent = {};
  Look(2);
  EXPECT_EQ(told, (Told{"1 is not", "1 is reached"}));
}

TEST_F(ReachWatchTest, NodesThatAreOutAreNotLookedAt) {
  silent = {1};
  Look(ReachWatch::kLooksToLose);
  told.clear();
  view = std::make_shared<const View>(ViewOf({1}));
  Look(5);
  EXPECT_EQ(told, Told());
  view = std::make_shared<const View>(ViewOf({}));
  Look(ReachWatch::kLooksToLose - 1);
  EXPECT_EQ(told, Told()) << "it has just come";
  Look();
  EXPECT_EQ(told, Told{"1 is not"});
}

TEST(ReachWatchTimer, LooksByItself) {
  SimExecutor executor{1};
  int looks = 0;
  const auto view = std::make_shared<const View>(ViewOf({}));
  const ReachWatch watch(executor, 1000,
                         ReachWatch::Calls{[&] {
                                             ++looks;
                                             return view;
                                           },
                                           [](NodeId) { return true; }, nullptr});
  executor.RunUntil(10'500);
  EXPECT_EQ(looks, 10);
}

TEST(UnreachedNodes, ANodeIsReachedWhenAllWorkersReachIt) {
  UnreachedNodes nodes;
  EXPECT_TRUE(nodes.WorkerSays(kOne, kNode, false, 5));
  EXPECT_FALSE(nodes.WorkerSays(kTwo, kNode, false, 7));
  EXPECT_EQ(nodes.entries().at(1).worker, kOne);
  EXPECT_EQ(nodes.entries().at(1).since_ns, 5U);
  EXPECT_FALSE(nodes.WorkerSays(kOne, kNode, true, 8));
  EXPECT_TRUE(nodes.WorkerSays(kTwo, kNode, true, 9));
  EXPECT_TRUE(nodes.entries().empty());
}

TEST(UnreachedNodes, AWorkerThatIsGoneMissesNothing) {
  UnreachedNodes nodes;
  nodes.WorkerSays(kOne, kNode, false, 5);
  EXPECT_FALSE(nodes.WorkerGone(kTwo));
  EXPECT_TRUE(nodes.WorkerGone(kOne));
}

TEST(UnreachedNodes, ANodeThatIsOutIsUnreachedUntilAConnectionIsMade) {
  UnreachedNodes nodes;
  nodes.WorkerSays(kOne, kNode, false, 5);
  EXPECT_TRUE(nodes.ToProbe().empty());
  nodes.UseView(ViewOf({1}));
  EXPECT_EQ(nodes.ToProbe(), std::vector<NodeId>{kNode});
  EXPECT_FALSE(nodes.Probed(kNode, false, 6));
  EXPECT_TRUE(nodes.Probed(kNode, true, 7));
  EXPECT_TRUE(nodes.ToProbe().empty());
}

TEST(UnreachedNodes, WhatAWorkerSaysTooLateIsProbed) {
  UnreachedNodes nodes;
  nodes.UseView(ViewOf({1}));
  EXPECT_TRUE(nodes.WorkerSays(kOne, kNode, false, 5));
  EXPECT_EQ(nodes.ToProbe(), std::vector<NodeId>{kNode});
}

TEST(UnreachedNodes, WhoHasNoWorkerYetProbes) {
  UnreachedNodes nodes;
  EXPECT_TRUE(nodes.Probed(kNode, false, 5));
  EXPECT_FALSE(nodes.entries().at(1).worker.has_value());
  nodes.UseView(ViewOf({}));
  EXPECT_EQ(nodes.ToProbe(), std::vector<NodeId>{kNode});
  EXPECT_TRUE(nodes.Probed(kNode, true, 5));
}

}  // namespace
}  // namespace onetrip
