// `onetrip status` makes this text of what master and agents say.
#include <gtest/gtest.h>

#include "tool/overview.h"

namespace onetrip {
namespace {

Overview MakeOverview() {
  Overview overview;
  overview.cluster = 0xabcdef;
  overview.epoch = 7;
  overview.state = "serving";
  overview.replicas = 3;
  overview.regions = 64;
  overview.regions_fully_redundant = 63;
  overview.region_bytes = 64ULL << 24;
  overview.keys = 1234;
  PoolUsage usage;
  usage.capacity_bytes = 1ULL << 30;
  usage.granted_bytes = 900ULL << 20;
  for (uint8_t i = 0; i < 9; ++i) usage.free_bytes[i] = (i + 1ULL) << 20;
  usage.retired_bytes = 5000;
  overview.usage = usage;
  overview.short_of_memory = "82 % of the memory is used";
  overview.master = {77, "127.0.0.1:7400", "up", 12};
  MemnodeOverview node;
  node.pid = 78;
  node.state = "lost";
  node.regions = 64;
  node.granted_bytes = 3 * 1024 * 1024;
  node.bytes = 80ULL << 24;
  node.unusable_bytes = 16ULL << 24;
  node.page_bytes = 2 << 20;
  overview.memnodes.push_back(node);
  node.page_bytes = 4096;
  overview.memnodes.push_back(node);
  overview.waiting_for = "memory node 0 is not there";
  AgentOverview agent;
  agent.state = "up";
  agent.address = "127.0.0.1:7000";
  TakeInfo({{"process_id", "79"},
            {"db0", "keys=5,expires=0,avg_ttl=0"},
            {"db3", "keys=2,expires=0,avg_ttl=0"},
            {"instantaneous_ops_per_sec", "4711"},
            {"rtt_per_get", "1.250"},
            {"rtt_per_get_histogram", "1=3,2=1"},
            {"latency_percentiles_usec_get", "p50=1.500,p99=20.250,p99.9=30.000"}},
           &agent);
  overview.agents.push_back(agent);
  return overview;
}

TEST(Overview, TakesWhatAnAgentSays) {
  const AgentOverview agent = MakeOverview().agents.front();
  EXPECT_TRUE(agent.answered);
  EXPECT_EQ(agent.pid, 79U);
  EXPECT_EQ(agent.keys, 7U);
  AgentOverview unable;
  TakeInfo({{kKeysNotCounted, "1"}}, &unable);
  EXPECT_FALSE(unable.keys.has_value()) << "it could not count them";
  EXPECT_EQ(agent.ops_per_s, 4711U);
  ASSERT_EQ(agent.round_trips.size(), 1U);
  EXPECT_DOUBLE_EQ(agent.round_trips.at("get"), 1.25);
  EXPECT_DOUBLE_EQ(agent.latency_us.at("get").p50, 1.5);
  EXPECT_DOUBLE_EQ(agent.latency_us.at("get").p99, 20.25);
  EXPECT_DOUBLE_EQ(agent.latency_us.at("get").p999, 30);
}

TEST(Overview, TextNamesEveryProcess) {
  const std::string text = OverviewText(MakeOverview());
  for (const char* word :
       {"0000000000abcdef",
        "serving",
        "127.0.0.1:7400",
        "63 of them",
        "1234",
        "1.0 GiB",
        "lost",
        "3.0 MiB",
        "78",
        "79",
        "4711",
        "1.25",
        "20.2",
        "waiting for: memory node 0 is not there",
        "regions: 64 (1.0 GiB)",
        "unusable",
        "256 MiB",
        "pages",
        " 2 MiB",
        " 4 KiB",
        "855 MiB of 1.0 GiB used (83 %, one replica)",
        "124 MiB in free blocks, 45 MiB in partly used ones, 4.9 KiB coming back",
        "free by size: 192 B: 9.0 MiB, 176 B: 8.0 MiB",
        "others",
        "memory: 82 % of the memory is used"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  // No line ends in blanks, none is as wide as a screen.
  size_t begin = 0;
  for (size_t end = 0; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    EXPECT_LE(end - begin, 100U) << text;
    EXPECT_FALSE(end > begin && text[end - 1] == ' ') << text;
  }
}

TEST(Overview, WhatIsNotKnownIsNoNumber) {
  Overview overview;
  overview.state = "without its master";
  MemnodeOverview node;
  node.name = "memnode-3";
  node.state = "missing";
  overview.memnodes.push_back(node);
  const std::string text = OverviewText(overview);
  for (const char* part : {"cluster ?", "epoch ?", "regions: ? (?), ? of them on all of their ?",
                           "keys: ?", "memory: ?", "memnode-3"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
  const std::string json = OverviewJson(overview);
  for (const char* part : {"\"regions\": null", "\"cluster\": null", "\"node\": null"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
}

TEST(Overview, ServiceIsWhatClientsFind) {
  Overview overview;
  overview.state = "serving";
  overview.memnodes.resize(3);
  for (MemnodeOverview& node : overview.memnodes) node.state = "up";
  overview.agents.resize(2);
  for (AgentOverview& agent : overview.agents) {
    agent.state = "up";
    agent.answers = true;
  }
  EXPECT_EQ(ServiceOf(overview, true), Service::kServing);
  Overview changed = overview;
  changed.agents[0].answers = false;
  EXPECT_EQ(ServiceOf(changed, true), Service::kDegraded);
  EXPECT_EQ(ServiceOf(changed, false), Service::kServing) << "it listens to its own host";
  changed.agents[1].answers = false;
  EXPECT_EQ(ServiceOf(changed, true), Service::kNotServing);
  changed = overview;
  changed.agents[0].state = "missing";
  EXPECT_EQ(ServiceOf(changed, true), Service::kDegraded);
  EXPECT_EQ(ServiceOf(changed, false), Service::kDegraded);
  changed = overview;
  changed.memnodes[2].state = "missing";
  EXPECT_EQ(ServiceOf(changed, true), Service::kDegraded);
  changed.memnodes[2].state = "lost";
  changed.memnodes[2].regions = 0;
  changed.memnodes[2].name = "memnode-2";
  EXPECT_EQ(ServiceOf(changed, true), Service::kDegraded);
  changed.memnodes[2].name = "";
  EXPECT_EQ(ServiceOf(changed, true), Service::kServing) << "another life has its name and place";
  EXPECT_EQ(ServiceOf(changed, false), Service::kServing) << "it has no place any more";
  changed.memnodes[2].state = "left";
  EXPECT_EQ(ServiceOf(changed, false), Service::kDegraded) << "it may come back";
  changed = overview;
  changed.state = "without its master";
  for (const size_t node : {1U, 2U}) {
    changed.memnodes[node].state = "missing";
    EXPECT_EQ(ServiceOf(changed, true), node == 1 ? Service::kDegraded : Service::kNotServing);
  }
  for (const char* state : {"degraded", "without its master"}) {
    changed = overview;
    changed.state = state;
    EXPECT_EQ(ServiceOf(changed, true), Service::kDegraded) << state;
  }
  for (const char* state : {"forming", "not serving"}) {
    changed = overview;
    changed.state = state;
    EXPECT_EQ(ServiceOf(changed, true), Service::kNotServing) << state;
  }
}

TEST(Overview, WhoWaitsForNothingSaysNothing) {
  Overview overview = MakeOverview();
  overview.waiting_for.clear();
  EXPECT_EQ(OverviewText(overview).find("waiting"), std::string::npos);
  EXPECT_NE(OverviewJson(overview).find("\"waiting_for\": \"\""), std::string::npos);
}

TEST(Overview, JsonHasMasterMemnodesAndAgents) {
  const std::string json = OverviewJson(MakeOverview());
  for (const char* part :
       {"\"memnodes\": [", "\"agents\": [", "\"master\": {", "\"pid\": 77",
        "\"address\": \"127.0.0.1:7000\"", "\"p99.9\": 30.0",
        "\"waiting_for\": \"memory node 0 is not there\"", "\"page_bytes\": 2097152",
        "\"page_bytes\": 4096", "\"capacity_bytes\": 1073741824", "\"used_bytes\": 896527480",
        "\"64\": 1048576", "\"short_of_memory\": \"82 %"}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << "\n" << json;
  }
}

}  // namespace
}  // namespace onetrip
