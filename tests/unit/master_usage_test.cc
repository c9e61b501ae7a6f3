// How much memory is used: the master adds up what members report, and tells all agents the same.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client_core/layout/region_layout.h"
#include "tests/unit/master_repair_fixture.h"

namespace onetrip {
namespace {

// Three nodes of four regions each, of three replicas: four regions.
constexpr uint64_t kBlocks = 4 * kBlocksPerRegion - kRootBlocks;

class MasterUsageTest : public testing::Test {
 protected:
  void SetUp() override {
    nodes_ = bench_.Form();
    for (int i = 0; i < 2; ++i) agents_.push_back(bench_.AddAgent());
    bench_.AddWorker(agents_[0], agents_);
  }
  void NodeReports(size_t node, uint64_t granted_blocks, uint64_t free_bytes = 0) {
    RenewMessage renew;
    renew.report.node = {.blocks = 85, .granted_blocks = granted_blocks, .reserve_blocks = 4};
    renew.report.node.free_bytes[2] = free_bytes;
    bench_.Say(nodes_[node], renew);
  }
  void AgentReports(size_t agent, WorkerUsage usage) {
    RenewMessage renew;
    renew.report.agent = usage;
    bench_.Say(agents_[agent], renew);
  }
  // All members report, with little that is used.
  void AllReport() {
    for (size_t i = 0; i < nodes_.size(); ++i) NodeReports(i, 10, 100);
    WorkerUsage usage{.retired_bytes = 7};
    usage.free_bytes[2] = 1000;
    AgentReports(0, usage);
    AgentReports(1, {});
    bench_.Advance(100);
  }
  const PoolUsage* ToldTo(size_t agent) {
    const auto* told = bench_.Last<UsageMessage>(agents_[agent]);
    return told == nullptr ? nullptr : told->usage.get();
  }
  size_t CountTold(size_t agent) {
    size_t count = 0;
    for (const MasterMessage& message : bench_.inbox[agents_[agent]]) {
      count += std::holds_alternative<UsageMessage>(message) ? 1 : 0;
    }
    return count;
  }
  bool Logged(const std::string& part) {
    for (const std::string& line : bench_.log) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }

  MasterBench bench_;
  std::vector<StreamId> nodes_;
  std::vector<StreamId> agents_;
};

TEST_F(MasterUsageTest, AllAgentsAndTheStatusAreToldTheSame) {
  AllReport();
  ASSERT_NE(ToldTo(0), nullptr);
  ASSERT_NE(ToldTo(1), nullptr);
  EXPECT_EQ(*ToldTo(0), *ToldTo(1));
  EXPECT_EQ(ToldTo(0)->capacity_bytes, (kBlocks - 12) * kBlockBytes);
  EXPECT_EQ(ToldTo(0)->used_bytes(), 30 * kBlockBytes - 300 - 1000 - 7);
  const StatusReply status = bench_.coordinator.Status(bench_.now_us);
  ASSERT_TRUE(status.status.usage.has_value());
  EXPECT_EQ(*status.status.usage, *ToldTo(0));
  EXPECT_EQ(status.status.short_of_memory, "");
}

TEST_F(MasterUsageTest, NobodyIsToldWhatHasNotChanged) {
  AllReport();
  const size_t told = CountTold(0);
  for (int i = 0; i < 5; ++i) AllReport();
  EXPECT_EQ(CountTold(0), told);
  NodeReports(1, 11);
  bench_.Advance(100);
  EXPECT_EQ(CountTold(0), told + 1);
  EXPECT_EQ(CountTold(1), told + 1);
}

TEST_F(MasterUsageTest, NothingIsToldBeforeAllWhoKnowHave) {
  NodeReports(0, 10);
  NodeReports(1, 10);
  AgentReports(0, {});
  bench_.Advance(100);
  EXPECT_EQ(ToldTo(0), nullptr);
  EXPECT_FALSE(bench_.coordinator.Status(bench_.now_us).status.usage.has_value());
  NodeReports(2, 10);
  bench_.Advance(100);
  EXPECT_NE(ToldTo(0), nullptr);
}

TEST_F(MasterUsageTest, NorAfterARestartOfTheMaster) {
  AllReport();
  const uint64_t member = bench_.coordinator.Status(bench_.now_us).status.members.back().member;
  bench_.Start();
  const StreamId back = bench_.Attend(MemberKind::kAgent, member, 1);
  ASSERT_TRUE(bench_.attendance.welcome) << bench_.attendance.reason;
  bench_.Say(back, RenewMessage{});
  bench_.Advance(50);
  EXPECT_EQ(bench_.Last<UsageMessage>(back), nullptr);
}

TEST_F(MasterUsageTest, WhatIsFreeWithADeadAgentIsUsed) {
  AllReport();
  bench_.Break(agents_[0]);
  agents_.erase(agents_.begin());
  bench_.Advance(100);
  EXPECT_EQ(ToldTo(0)->used_bytes(), 30 * kBlockBytes - 300);
}

TEST_F(MasterUsageTest, AlertsAreLoggedOnceAndWhenTheyAreOver) {
  AllReport();
  for (size_t i = 0; i < nodes_.size(); ++i) NodeReports(i, 66);  // 198 of 241
  bench_.Advance(100);
  EXPECT_TRUE(Logged("82 % of the memory is used"));
  const size_t lines = bench_.log.size();
  for (size_t i = 0; i < nodes_.size(); ++i) NodeReports(i, 67);
  bench_.Advance(100);
  EXPECT_EQ(bench_.log.size(), lines);
  EXPECT_NE(bench_.coordinator.Status(bench_.now_us).status.short_of_memory, "");
  for (size_t i = 0; i < nodes_.size(); ++i) NodeReports(i, 78);
  bench_.Advance(100);
  EXPECT_TRUE(Logged("97 % of the memory is used"));
  for (size_t i = 0; i < nodes_.size(); ++i) NodeReports(i, 20);
  bench_.Advance(100);
  EXPECT_TRUE(Logged("less than 95 % of the memory is used again"));
}

// Others become the primaries of what a lost node had, and say so with their next renewals.
TEST_F(MasterRepairTest, WhatALostNodeHadIsNotTakenForFree) {
  const auto report = [this](size_t node, uint64_t granted_blocks) {
    RenewMessage renew;
    renew.report.node = {.blocks = 85,
                         .granted_blocks = granted_blocks,
                         .reserve_blocks = 4,
                         .view_epoch = bench.SentEpoch(nodes[node])};
    bench.Say(nodes[node], renew);
  };
  const auto used = [this] { return bench.Last<UsageMessage>(b)->usage->used_bytes(); };
  for (size_t node = 0; node < 3; ++node) report(node, 66);
  for (const StreamId agent : {a, b}) bench.Say(agent, RenewMessage{});
  bench.Advance(100);
  ASSERT_NE(bench.Last<UsageMessage>(b), nullptr);
  EXPECT_EQ(used(), 198 * kBlockBytes);
  const size_t lines = bench.log.size();
  LoseNode1();
  ASSERT_TRUE(view().IsOut(NodeId{1}));
  bench.Advance(100);
  EXPECT_EQ(used(), 198 * kBlockBytes);
  report(0, 99);
  bench.Advance(100);
  EXPECT_EQ(used(), 198 * kBlockBytes) << "one of two has told";
  report(2, 98);
  bench.Advance(100);
  EXPECT_EQ(used(), 197 * kBlockBytes);
  for (size_t line = lines; line < bench.log.size(); ++line) {
    EXPECT_EQ(bench.log[line].find("of the memory is used"), std::string::npos) << bench.log[line];
  }
}

TEST_F(MasterUsageTest, TheStatusTellsWhyWritesAreRefused) {
  AllReport();
  AgentReports(1, {.refused_bytes = 4096});
  AgentReports(0, {.refused_bytes = 4096});
  const std::string why = bench_.coordinator.Status(bench_.now_us).status.short_of_memory;
  EXPECT_TRUE(why.starts_with("writes that take 4.0 KiB are refused")) << why;
}

}  // namespace
}  // namespace onetrip
