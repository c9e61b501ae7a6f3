#include "tool/node.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <utility>

#include "client_core/base/host_id.h"
#include "client_core/control/cluster_status.h"
#include "client_core/control/control_options.h"
#include "tool/cluster_dir.h"
#include "tool/process.h"
#include "tool/programs.h"

namespace onetrip {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLookAgain = std::chrono::milliseconds(200);
// How long a master may be away, as in a restart, while something is waited for.
constexpr auto kMasterAway = std::chrono::seconds(60);

Status Refuse(std::string* reason, std::string what) {
  *reason = std::move(what);
  return Status(StatusCode::kInvalidArgument, "node");
}

// Whom to ask, by the options or by the directory's record.
Status FindMaster(const NodeOptions& options, ControlOptions* control, std::string* reason) {
  control->connect_timeout_ms = 5000;
  control->request_timeout_ms = 5000;
  control->master = options.master;
  if (!options.secret_file.empty()) {
    Result<Secret> secret = LoadSecretFile(options.secret_file, reason);
    if (!secret.ok()) return secret.status();
    control->secret = std::move(secret.value());
  }
  if (!options.master.empty()) return Status::Ok();
  const Result<ClusterRecord> record = ClusterDir::Read(options.dir, reason);
  if (!record.ok()) return record.status();
  control->master = record->master.address;
  return Status::Ok();
}

// Whether the member is this host's process; another host has processes of the same numbers.
bool IsHere(const MemberStatusInfo& member, pid_t pid) {
  return member.pid == static_cast<uint64_t>(pid) && member.host == HostName();
}

const MemberStatusInfo* FindNode(const ClusterStatusInfo& status, uint32_t node) {
  for (const MemberStatusInfo& member : status.members) {
    if (member.kind == MemberKind::kMemoryNode && member.node == node) return &member;
  }
  return nullptr;
}

// Waits while the node is in `state`, and prints what moves when that changes. *after: how it is
// then.
Status WaitWhile(const ControlOptions& control, uint32_t node, const std::string& state,
                 MemberStatusInfo* after, std::string* reason) {
  std::string told;
  auto deadline = Clock::now() + kMasterAway;
  while (true) {
    const Result<ClusterStatusInfo> status = QueryStatus(control, reason);
    if (!status.ok() && Clock::now() > deadline) return status.status();
    if (status.ok()) {
      deadline = Clock::now() + kMasterAway;
      const MemberStatusInfo* const member = FindNode(*status, node);
      if (member == nullptr) {
        return Refuse(reason, "there is no memory node " + std::to_string(node));
      }
      *after = *member;
      // One that is away for a while goes on when it is back, or is replaced.
      const bool away = member->state == "out" || member->state == "lost" ||
                        member->state == "left" || member->state == "joining" ||
                        member->state == "damaged" || member->state == "copying";
      if (member->state != state && !(away && !status->moving.empty())) return Status::Ok();
      if (status->moving != told) {
        std::printf("%s\n", status->moving.c_str());
        std::fflush(stdout);
        told = status->moving;
      }
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

// One memory node more, with the options of the others. *pid: of its process.
Status StartMemnode(const NodeOptions& options, pid_t* pid, std::string* reason) {
  const Result<std::unique_ptr<ClusterDir>> dir = ClusterDir::Open(options.dir, true, reason);
  if (!dir.ok()) return dir.status();
  Result<ClusterRecord> record = dir.value()->Load(reason);
  if (!record.ok()) return record.status();
  if (record->memory.empty()) {
    return Refuse(reason,
                  "the cluster was started by an older version; start a memory node by "
                  "hand, and name its number");
  }
  // Numbers of processes that were ended are not used again: their files may be there still.
  const size_t number = record->memnodes_started;
  ProcessRecord process;
  process.name = "memnode-" + std::to_string(number);
  process.log = dir.value()->log_dir() + "/" + process.name + ".log";
  std::filesystem::remove(process.log);
  Status status = StartProcess(MemnodeArgv(*dir.value(), *record, number), &process, reason);
  if (!status.ok()) return status;
  record->memnodes.push_back(process);
  record->memnodes_started = number + 1;
  // A record of what runs, should this process be killed now.
  status = dir.value()->Save(*record, reason);
  const auto deadline = Clock::now() + std::chrono::seconds(options.timeout_s);
  while (status.ok() && record->memnodes.back().address.empty()) {
    record->memnodes.back().address = AddressOf(ReadyLine(process));
    if (!IsRunning(process) || Clock::now() > deadline) {
      *reason = process.name + (IsRunning(process) ? " was not ready in time" : " ended") +
                "; its log says:\n" + LastLines(process.log, 5);
      bool forced = false;
      EndProcess(process, 1000, &forced);
      record->memnodes.pop_back();
      std::string ignored;
      (void)dir.value()->Save(*record, &ignored);
      return Status(StatusCode::kUnavailable, "the memory node did not start");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  *pid = process.pid;
  return status.ok() ? dir.value()->Save(*record, reason) : status;
}

// The number that the master gave to the process of this host.
Status NumberOf(const ControlOptions& control, pid_t pid, uint32_t* node, std::string* reason) {
  const Result<ClusterStatusInfo> status = QueryStatus(control, reason);
  if (!status.ok()) return status.status();
  for (const MemberStatusInfo& member : status->members) {
    if (member.kind != MemberKind::kMemoryNode || !IsHere(member, pid)) continue;
    *node = member.node;
    return Status::Ok();
  }
  return Refuse(reason, "the master does not know process " + std::to_string(pid));
}

// Ends the drained node's process, if it is one of the directory's.
Status EndMemnode(const NodeOptions& options, const MemberStatusInfo& member, std::string* reason) {
  const Result<std::unique_ptr<ClusterDir>> dir = ClusterDir::Open(options.dir, true, reason);
  if (!dir.ok()) return dir.status();
  Result<ClusterRecord> record = dir.value()->Load(reason);
  if (!record.ok()) return record.status();
  const auto found = std::find_if(record->memnodes.begin(), record->memnodes.end(),
                                  [&](const ProcessRecord& process) {
                                    return IsHere(member, process.pid) && IsRunning(process);
                                  });
  if (found == record->memnodes.end()) return Status::Ok();
  bool forced = false;
  if (!EndProcess(*found, options.timeout_s * 1000, &forced)) {
    *reason = found->name + " (pid " + std::to_string(found->pid) + ") does not end";
    return Status(StatusCode::kUnavailable, "still running");
  }
  std::printf("%s (pid %d) has been ended\n", found->name.c_str(), static_cast<int>(found->pid));
  record->memnodes.erase(found);
  return dir.value()->Save(*record, reason);
}

}  // namespace

Status AddNode(const NodeOptions& options, std::string* reason) {
  uint32_t node = options.node.value_or(0);
  if (!options.node.has_value() && !options.master.empty()) {
    return Refuse(reason,
                  "with --master, start onetrip-memnode by hand and name the number that "
                  "`onetrip status` shows for it");
  }
  ControlOptions control;
  Status status = FindMaster(options, &control, reason);
  pid_t pid = 0;
  if (status.ok() && !options.node.has_value()) {
    status = StartMemnode(options, &pid, reason);
    if (status.ok()) status = NumberOf(control, pid, &node, reason);
    if (status.ok()) {
      std::printf("memory node %u has been started (pid %d)\n", node, static_cast<int>(pid));
      std::fflush(stdout);
    }
  }
  if (status.ok()) status = AskToMoveRegions(control, node, RegionWish::kShare, reason);
  if (!status.ok() || !options.wait) return status;
  MemberStatusInfo after;
  status = WaitWhile(control, node, "filling", &after, reason);
  if (!status.ok()) return status;
  if (after.state != "up" && after.state != "spare") {
    return Refuse(reason, "memory node " + std::to_string(node) + " is " + after.state);
  }
  std::printf("memory node %u has its share: %u regions\n", node, after.regions);
  return Status::Ok();
}

Status DrainNode(const NodeOptions& options, std::string* reason) {
  const uint32_t node = options.node.value();
  ControlOptions control;
  Status status = FindMaster(options, &control, reason);
  if (status.ok()) status = AskToMoveRegions(control, node, RegionWish::kDrain, reason);
  if (!status.ok() || !options.wait) return status;
  MemberStatusInfo after;
  status = WaitWhile(control, node, "draining", &after, reason);
  if (!status.ok()) return status;
  if (after.state != "drained") {
    return Refuse(reason, "memory node " + std::to_string(node) +
                              " does not drain any more, somebody has told it otherwise: it is " +
                              after.state);
  }
  std::printf("memory node %u is drained: it may be switched off\n", node);
  return options.master.empty() ? EndMemnode(options, after, reason) : Status::Ok();
}

}  // namespace onetrip
