// The rule about which agents and nodes must go when they are cut off from each other: every graph
// of up to four agents and four nodes, followed to its end.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "master/reach_verdict.h"

namespace onetrip {
namespace {

using Kind = ReachVerdict::Kind;

// With `spare` nodes that may leave at most.
auto AtMost(size_t spare) {
  return [spare](const std::vector<uint16_t>& nodes) { return nodes.size() <= spare; };
}

ReachVerdict Judge(const std::vector<ReachReport>& agents, size_t spare = 1) {
  return JudgeReach(agents, AtMost(spare));
}

TEST(ReachVerdict, WithoutReportsNothingHappens) {
  EXPECT_EQ(Judge({}).kind, Kind::kNothing);
  EXPECT_EQ(Judge({{1, {}}, {2, {}}}).kind, Kind::kNothing);
}

TEST(ReachVerdict, TheAgentThatAloneMissesANodeGoes) {
  const ReachVerdict verdict = Judge({{1, {}}, {2, {2}}, {3, {}}});
  EXPECT_EQ(verdict.kind, Kind::kAgentOut);
  EXPECT_EQ(verdict.agent, 2U);
  EXPECT_EQ(verdict.node, 2);
  EXPECT_EQ(verdict.by, 1U);
}

TEST(ReachVerdict, ANodeThatMostMissGoes) {
  const ReachVerdict verdict = Judge({{1, {0}}, {2, {0}}, {3, {}}});
  EXPECT_EQ(verdict.kind, Kind::kNodeOut);
  EXPECT_EQ(verdict.node, 0);
  EXPECT_EQ(verdict.by, 2U);
}

TEST(ReachVerdict, OneAgentAloneIsServedWithoutTheNode) {
  EXPECT_EQ(Judge({{7, {1}}}).kind, Kind::kNodeOut);
}

TEST(ReachVerdict, OfTwoAgentsBothStay) {
  EXPECT_EQ(Judge({{1, {}}, {2, {1}}}).kind, Kind::kNodeOut);
  EXPECT_EQ(Judge({{1, {0}}, {2, {}}}).kind, Kind::kNodeOut);
}

TEST(ReachVerdict, AnAgentThatMissesMoreThanMayLeaveGoesFirst) {
  // Not the node, though half miss it: that would not help this agent.
  const ReachVerdict verdict = Judge({{1, {}}, {2, {0, 1}}});
  EXPECT_EQ(verdict.kind, Kind::kAgentOut);
  EXPECT_EQ(verdict.agent, 2U);
}

TEST(ReachVerdict, WhatNobodyCanHelpIsTold) {
  EXPECT_EQ(Judge({{1, {0, 1}}}).kind, Kind::kNobody);
  EXPECT_EQ(Judge({{1, {0, 1}}, {2, {1, 2}}}).kind, Kind::kNobody);
  EXPECT_EQ(Judge({{1, {2}}, {2, {2}}}, /*spare=*/0).kind, Kind::kNobody);
}

TEST(ReachVerdict, WhereNoNodeMayLeaveWhoReachesAllStays) {
  const ReachVerdict verdict = Judge({{1, {2}}, {2, {2}}, {3, {}}}, /*spare=*/0);
  EXPECT_EQ(verdict.kind, Kind::kAgentOut);
  EXPECT_EQ(verdict.agent, 2U);
}

// A graph, as a matrix of bits: agent by node.
struct Graph {
  size_t agents;
  size_t nodes;
  uint32_t bits;
  [[nodiscard]] bool Misses(size_t agent, size_t node) const {
    return (bits >> (agent * nodes + node) & 1) != 0;
  }
};

void FollowToItsEnd(const Graph& graph, size_t spare) {
  SCOPED_TRACE(std::to_string(graph.agents) + " agents, " + std::to_string(graph.nodes) +
               " nodes, bits " + std::to_string(graph.bits) + ", may leave " +
               std::to_string(spare));
  std::set<uint16_t> out;
  std::set<uint64_t> expelled;
  for (size_t step = 0;; ++step) {
    ASSERT_LE(step, graph.agents + graph.nodes);
    std::vector<ReachReport> reports;
    size_t untouched = 0;
    for (size_t agent = 0; agent < graph.agents; ++agent) {
      if (expelled.contains(agent)) continue;
      ReachReport& report = reports.emplace_back();
      report.agent = agent;
      for (uint16_t node = 0; node < graph.nodes; ++node) {
        if (graph.Misses(agent, node) && !out.contains(node)) report.unreached.push_back(node);
      }
      untouched += report.unreached.empty() ? 1 : 0;
    }
    ASSERT_FALSE(reports.empty()) << "somebody is left";
    const ReachVerdict verdict = Judge(reports, spare - out.size());
    const auto misses = [&](uint16_t node) {
      return static_cast<size_t>(
          std::count_if(reports.begin(), reports.end(), [node](const ReachReport& report) {
            return std::count(report.unreached.begin(), report.unreached.end(), node) != 0;
          }));
    };
    switch (verdict.kind) {
      case Kind::kNothing:
        EXPECT_EQ(untouched, reports.size());
        return;
      case Kind::kNobody:
        for (const ReachReport& report : reports) {
          EXPECT_GT(report.unreached.size(), spare - out.size());
        }
        return;
      case Kind::kNodeOut:
        EXPECT_GE(2 * misses(verdict.node), reports.size());
        EXPECT_EQ(verdict.by, misses(verdict.node));
        ASSERT_TRUE(out.insert(verdict.node).second);
        ASSERT_LE(out.size(), spare);
        break;
      case Kind::kAgentOut:
        EXPECT_GT(misses(verdict.node), 0U);
        EXPECT_EQ(verdict.by, misses(verdict.node));
        ASSERT_TRUE(expelled.insert(verdict.agent).second);
        ASSERT_LT(expelled.size(), graph.agents);
        break;
    }
  }
}

TEST(ReachVerdict, EveryGraphComesToAnEndInWhichSomebodyIsServed) {
  for (size_t agents = 1; agents <= 4; ++agents) {
    for (size_t nodes = 1; nodes <= 4; ++nodes) {
      for (uint32_t bits = 0; bits < 1U << (agents * nodes); ++bits) {
        for (size_t spare = 0; spare <= 2; ++spare) {
          FollowToItsEnd({agents, nodes, bits}, spare);
          if (HasFailure()) return;
        }
      }
    }
  }
}

// One agent's report never takes a node from the others, nor does a report of fewer than half.
TEST(ReachVerdict, AMinorityTakesNoNodeFromTheOthers) {
  for (uint64_t agents = 3; agents <= 9; ++agents) {
    for (uint64_t missing = 1; 2 * missing < agents; ++missing) {
      std::vector<ReachReport> reports;
      for (uint64_t agent = 0; agent < agents; ++agent) {
        reports.push_back(
            {agent, agent < missing ? std::vector<uint16_t>{1} : std::vector<uint16_t>()});
      }
      EXPECT_EQ(Judge(reports).kind, Kind::kAgentOut);
    }
  }
}

}  // namespace
}  // namespace onetrip
