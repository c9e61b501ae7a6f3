// Overview: a cluster at one moment, as `onetrip status` shows it, and its two forms: a table for
// people and JSON for programs.
#ifndef ONETRIP_TOOL_OVERVIEW_H_
#define ONETRIP_TOOL_OVERVIEW_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace onetrip {

struct LatencyUs {
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
};

struct MasterOverview {
  uint64_t pid = 0;
  std::string address;
  std::string state;  // "up", "away"
  uint64_t uptime_s = 0;
};

struct MemnodeOverview {
  uint32_t node = 0;
  uint64_t member = 0;
  uint64_t pid = 0;
  std::string address;
  std::string state;
  std::string host;
  uint32_t regions = 0;
  uint64_t bytes = 0;
  uint64_t granted_bytes = 0;
  uint64_t operations = 0;  // that it executed itself: over tcp
  uint64_t page_bytes = 0;  // of its memory's pages; 0: not known
};

struct AgentOverview {
  uint64_t member = 0;
  uint64_t pid = 0;
  std::string address;
  std::string state;
  std::string host;
  bool answered = false;  // the rest is its own word
  uint64_t clients = 0;
  uint64_t ops_per_s = 0;
  uint64_t commands = 0;
  uint64_t keys = 0;
  uint64_t pool_capacity_bytes = 0;
  uint64_t pool_granted_bytes = 0;
  std::map<std::string, double> round_trips;    // by kind of command, mean
  std::map<std::string, LatencyUs> latency_us;  // by command
};

struct Overview {
  uint64_t cluster = 0;
  uint64_t epoch = 0;
  std::string state;
  std::string waiting_for;  // what joins, leaves and flushes wait for; empty: nothing
  std::string moving;       // which regions move, and how far that is; empty: none
  std::string unreached;    // which agents do not reach which memory nodes; empty: all reach all
  uint32_t replicas = 0;
  uint32_t regions = 0;
  uint32_t regions_fully_redundant = 0;
  uint64_t keys = 0;
  uint64_t ops_per_s = 0;
  uint64_t capacity_bytes = 0;  // of one replica
  uint64_t granted_bytes = 0;
  MasterOverview master;
  std::vector<MemnodeOverview> memnodes;
  std::vector<AgentOverview> agents;
};

// Fills in what the agent's INFO says.
void TakeInfo(const std::map<std::string, std::string>& info, AgentOverview* agent);

std::string OverviewText(const Overview& overview);
std::string OverviewJson(const Overview& overview);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_OVERVIEW_H_
