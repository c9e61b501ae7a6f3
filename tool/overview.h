// Overview: a cluster at one moment, as `onetrip status` shows it, and its two forms: a table for
// people and JSON for programs.
#ifndef ONETRIP_TOOL_OVERVIEW_H_
#define ONETRIP_TOOL_OVERVIEW_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "client_core/cluster/pool_usage.h"

namespace onetrip {

struct LatencyUs {
  double p50 = 0;
  double p99 = 0;
  double p999 = 0;
};

struct MasterOverview {
  uint64_t pid = 0;
  std::string address;
  std::string state;  // "up", "away": it runs and does not answer, "down", "unreachable"
  uint64_t uptime_s = 0;
};

// An absent field is not known yet: without the master, or before a member's first report.
struct MemnodeOverview {
  std::string name;              // the directory's process's; empty: it is none of the directory's
  std::optional<uint32_t> node;  // the master's number
  std::optional<uint64_t> member;
  uint64_t pid = 0;  // 0: there is no process
  std::string address;
  std::string state;  // the master's word; "missing": its process does not run, and the master
                      // does not know of it; without the master "running" or "missing"
  std::string host;
  std::optional<uint32_t> regions;
  std::optional<uint64_t> bytes;
  std::optional<uint64_t> unusable_bytes;  // part of these
  std::optional<uint64_t> granted_bytes;
  std::optional<uint64_t> operations;  // that it executed itself: over tcp
  uint64_t page_bytes = 0;             // size of its memory's pages; 0: not known
  std::string rdma;                    // the device by which it is reached; empty: not over RDMA
};

// Beside the fields of an agent's INFO: it could not count its keys.
inline constexpr char kKeysNotCounted[] = "keys_not_counted";

struct AgentOverview {
  std::string name;  // as a memory node's
  std::optional<uint64_t> member;
  uint64_t pid = 0;
  std::string address;
  std::string state;
  std::string host;
  bool answers = false;   // PING
  bool answered = false;  // INFO; the rest is its own word
  uint64_t clients = 0;
  uint64_t ops_per_s = 0;
  uint64_t commands = 0;
  std::optional<uint64_t> keys;                 // nothing: it could not count them
  uint64_t registers_thawed = 0;                // that became records, since the agent's start
  std::map<std::string, double> round_trips;    // by kind of command, mean
  std::map<std::string, LatencyUs> latency_us;  // by command
};

struct Overview {
  std::optional<uint64_t> cluster;
  std::optional<uint64_t> epoch;
  std::string state;
  std::string waiting_for;  // joins, leaves and flushes wait for this; empty: nothing
  std::string moving;       // which regions move, and how far that is; empty: none
  std::string unreached;    // which agents do not reach which memory nodes; empty: all reach all
  uint32_t replicas = 0;    // 0: not known
  std::optional<uint32_t> regions;
  std::optional<uint32_t> regions_fully_redundant;
  std::optional<uint64_t> region_bytes;  // sum over all regions, on one replica
  std::optional<uint64_t> keys;
  uint64_t ops_per_s = 0;
  std::optional<PoolUsage> usage;  // the master's word
  std::string short_of_memory;     // why writes are refused, or soon will be; empty: there is room
  MasterOverview master;
  std::vector<MemnodeOverview> memnodes;
  std::vector<AgentOverview> agents;
};

// How a cluster does, as the exit code of `onetrip status` tells it.
enum class Service : int { kServing = 0, kDegraded = 1, kNotServing = 2 };

// `local`: the agents are processes of this host, so that one that does not answer is out of order;
// those of other hosts may listen to their own host only.
Service ServiceOf(const Overview& overview, bool local);

// Fills in what the agent's INFO says.
void TakeInfo(const std::map<std::string, std::string>& info, AgentOverview* agent);

std::string OverviewText(const Overview& overview);
std::string OverviewJson(const Overview& overview);

}  // namespace onetrip

#endif  // ONETRIP_TOOL_OVERVIEW_H_
