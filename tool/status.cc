#include "tool/status.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "client_core/control/cluster_status.h"
#include "client_core/control/control_options.h"
#include "client_core/layout/global_addr.h"
#include "tool/cluster_dir.h"
#include "tool/find_cluster.h"
#include "tool/known_processes.h"
#include "tool/overview.h"
#include "tool/resp_probe.h"

namespace onetrip {
namespace {

// Takes the master's report into the overview.
void TakeStatus(const ClusterStatusInfo& status, Overview* overview) {
  overview->cluster = status.cluster;
  overview->epoch = status.epoch;
  overview->state = status.state;
  overview->waiting_for = status.waiting_for;
  overview->moving = status.moving;
  overview->unreached = status.unreached;
  overview->short_of_memory = status.short_of_memory;
  overview->usage = status.usage;
  overview->replicas = status.replicas;
  if (status.regions != 0) {
    overview->regions = status.regions;
    overview->region_bytes = status.regions * status.region_bytes;
    overview->regions_fully_redundant = status.regions_fully_redundant;
  }
  overview->master.state = "up";
  overview->master.pid = status.master_pid;
  overview->master.uptime_s = status.master_uptime_s;
  for (const MemberStatusInfo& member : status.members) {
    if (member.kind == MemberKind::kMemoryNode) {
      MemnodeOverview node;
      node.node = member.node;
      node.member = member.member;
      node.pid = member.pid;
      node.address = member.address;
      node.state = member.state;
      node.host = member.host;
      if (status.regions != 0) node.regions = member.regions;
      if (member.bytes != 0) node.bytes = member.bytes;
      if (member.bytes != 0) node.unusable_bytes = member.unusable_bytes;
      // Told with the first renewal.
      if (member.blocks != 0) {
        node.granted_bytes = member.granted_blocks * kBlockBytes;
        node.operations = member.operations;
      }
      node.page_bytes = member.page_bytes;
      node.rdma = member.rdma;
      overview->memnodes.push_back(std::move(node));
    } else if (member.kind == MemberKind::kAgent) {
      AgentOverview agent;
      agent.member = member.member;
      agent.pid = member.pid;
      agent.address = member.address;
      agent.state = member.state;
      agent.host = member.host;
      overview->agents.push_back(std::move(agent));
    }
  }
}

// Asks the agents about themselves; any of them knows keys and memory.
void AskAgents(const std::string& password, Overview* overview) {
  for (AgentOverview& agent : overview->agents) {
    if (agent.state == "missing" || agent.address.empty()) continue;
    const auto info = AgentInfo(agent.address, password);
    agent.answers = info.has_value() || Answers(agent.address);
    if (!info.has_value()) continue;
    TakeInfo(*info, &agent);
    overview->ops_per_s += agent.ops_per_s;
    if (agent.keys) overview->keys = std::max(overview->keys.value_or(0), *agent.keys);
  }
}

void SortByNumber(Overview* overview) {
  std::stable_sort(overview->memnodes.begin(), overview->memnodes.end(),
                   [](const MemnodeOverview& a, const MemnodeOverview& b) {
                     return a.node.value_or(UINT32_MAX) < b.node.value_or(UINT32_MAX);
                   });
  std::stable_sort(overview->agents.begin(), overview->agents.end(),
                   [](const AgentOverview& a, const AgentOverview& b) {
                     return std::pair(a.name.size(), a.name) < std::pair(b.name.size(), b.name);
                   });
}

bool IsDown(const ClusterRecord& record) {
  const auto all = record.all();
  return std::none_of(all.begin(), all.end(),
                      [](const ProcessRecord* process) { return IsRunning(*process); });
}

Result<Overview> Look(const StatusOptions& options, std::string* reason) {
  ControlOptions control;
  control.connect_timeout_ms = 2000;
  control.request_timeout_ms = 2000;
  ClusterRecord record;
  const bool by_directory = options.master.empty();
  const Status found =
      FindCluster(options.dir, options.master, options.secret_file, &control, &record, reason);
  if (!found.ok()) return found;
  Overview overview;
  overview.master.address = control.master;
  // A dead one may have been started again by hand, under another pid: asked all the same, briefly.
  if (by_directory && !IsRunning(record.master)) control.connect_timeout_ms = 200;
  const Result<ClusterStatusInfo> status =
      control.master.empty() ? Status(StatusCode::kUnavailable, "it was never started")
                             : QueryStatus(control, reason);
  if (!status.ok() && !by_directory) return status.status();
  const ProcessQuestions ask = SystemQuestions(options.dir);
  if (status.ok()) {
    TakeStatus(*status, &overview);
    if (by_directory) NameMembers(record, ask, &overview);
  } else {
    ListProcesses(record, ask, &overview);
    overview.state = IsDown(record) ? "down" : "without its master";
    if (IsDown(record)) {
      overview.waiting_for = "onetrip up --dir " + options.dir;
    } else if (overview.master.state == "down") {
      overview.waiting_for = "the master: onetrip restart master --dir " + options.dir;
    } else {
      overview.waiting_for = "the master, which does not answer: " + *reason;
    }
  }
  SortByNumber(&overview);
  AskAgents(options.password, &overview);
  return overview;
}

}  // namespace

std::string WhyNotServing(const std::string& dir) {
  StatusOptions options;
  options.dir = dir;
  std::string reason;
  const Result<Overview> overview = Look(options, &reason);
  if (!overview.ok() || ServiceOf(*overview, true) != Service::kNotServing) return "";
  return overview->waiting_for.empty() ? "no agent answers" : overview->waiting_for;
}

Result<Service> ShowStatus(const StatusOptions& options, std::string* reason) {
  while (true) {
    const Result<Overview> overview = Look(options, reason);
    if (!overview.ok() && options.watch_s == 0) return overview.status();
    std::string text = *reason + "\n";
    if (overview.ok()) text = options.json ? OverviewJson(*overview) : OverviewText(*overview);
    const bool clears = options.watch_s != 0 && !options.json && isatty(STDOUT_FILENO) == 1;
    // Home, and everything below it: no line of an earlier picture is left.
    if (clears) std::fputs("\033[H\033[2J", stdout);
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (options.watch_s == 0) return ServiceOf(*overview, options.master.empty());
    if (!clears && !options.json) std::fputs("\n", stdout);
    if (std::fflush(stdout) != 0) return Service::kNotServing;
    std::this_thread::sleep_for(std::chrono::seconds(options.watch_s));
  }
}

}  // namespace onetrip
