#include "tool/status.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "client_core/control/cluster_status.h"
#include "client_core/control/control_options.h"
#include "client_core/layout/global_addr.h"
#include "tool/cluster_dir.h"
#include "tool/overview.h"
#include "tool/resp_probe.h"

namespace onetrip {
namespace {

// What the master says.
void TakeStatus(const ClusterStatusInfo& status, Overview* overview) {
  overview->cluster = status.cluster;
  overview->epoch = status.epoch;
  overview->state = status.state;
  overview->waiting_for = status.waiting_for;
  overview->moving = status.moving;
  overview->unreached = status.unreached;
  overview->replicas = status.replicas;
  overview->regions = status.regions;
  overview->regions_fully_redundant = status.regions_fully_redundant;
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
      node.regions = member.regions;
      node.bytes = member.bytes;
      node.granted_bytes = member.granted_blocks * kBlockBytes;
      node.operations = member.operations;
      node.page_bytes = member.page_bytes;
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

// Without a master: what runs, by the record of the directory.
void TakeRecord(const ClusterRecord& record, Overview* overview) {
  const auto state = [](const ProcessRecord& process) {
    return IsRunning(process) ? "up" : "down";
  };
  overview->state = "without its master";
  overview->master.pid = static_cast<uint64_t>(record.master.pid);
  overview->master.state = IsRunning(record.master) ? "away" : "down";
  for (const ProcessRecord& process : record.memnodes) {
    MemnodeOverview node;
    node.node = static_cast<uint32_t>(overview->memnodes.size());
    node.pid = static_cast<uint64_t>(process.pid);
    node.address = process.address;
    node.state = state(process);
    overview->memnodes.push_back(std::move(node));
  }
  for (const ProcessRecord& process : record.agents) {
    AgentOverview agent;
    agent.pid = static_cast<uint64_t>(process.pid);
    agent.address = process.address;
    agent.state = state(process);
    overview->agents.push_back(std::move(agent));
  }
}

// What the agents say of themselves; any of them knows keys and memory.
void AskAgents(const std::string& password, Overview* overview) {
  for (AgentOverview& agent : overview->agents) {
    const auto info = AgentInfo(agent.address, password);
    if (!info.has_value()) continue;
    TakeInfo(*info, &agent);
    overview->ops_per_s += agent.ops_per_s;
    overview->keys = std::max(overview->keys, agent.keys);
    overview->capacity_bytes = std::max(overview->capacity_bytes, agent.pool_capacity_bytes);
    overview->granted_bytes = std::max(overview->granted_bytes, agent.pool_granted_bytes);
  }
}

}  // namespace

Status ShowStatus(const StatusOptions& options, std::string* reason) {
  ControlOptions control;
  control.connect_timeout_ms = 2000;
  control.request_timeout_ms = 2000;
  control.master = options.master;
  if (!options.secret_file.empty()) {
    Result<Secret> secret = LoadSecretFile(options.secret_file, reason);
    if (!secret.ok()) return secret.status();
    control.secret = std::move(secret.value());
  }
  ClusterRecord record;
  const bool by_directory = options.master.empty();
  if (by_directory) {
    Result<ClusterRecord> read = ClusterDir::Read(options.dir, reason);
    if (!read.ok()) return read.status();
    record = std::move(read.value());
    control.master = record.master.address;
  }
  Overview overview;
  overview.master.address = control.master;
  // A dead one may have been started again by hand, under another pid: asked all the same, briefly.
  if (by_directory && !IsRunning(record.master)) control.connect_timeout_ms = 200;
  const Result<ClusterStatusInfo> status = QueryStatus(control, reason);
  if (status.ok()) {
    TakeStatus(status.value(), &overview);
  } else if (by_directory) {
    TakeRecord(record, &overview);
  } else {
    return status.status();
  }
  AskAgents(options.password, &overview);
  const std::string text = options.json ? OverviewJson(overview) : OverviewText(overview);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return Status::Ok();
}

}  // namespace onetrip
