#include "tool/node.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "client_core/base/host_id.h"
#include "client_core/control/cluster_status.h"
#include "client_core/control/control_options.h"
#include "tool/cluster_dir.h"
#include "tool/find_cluster.h"
#include "tool/launcher.h"
#include "tool/overview.h"
#include "tool/process.h"
#include "tool/resp_probe.h"

namespace onetrip {
namespace {

constexpr uint64_t kMiB = 1024 * 1024;

using Clock = std::chrono::steady_clock;

constexpr auto kLookAgain = std::chrono::milliseconds(200);
// How long a master may be away, as in a restart, while something is waited for.
constexpr auto kMasterAway = std::chrono::seconds(60);

Status Refuse(std::string* reason, std::string what) {
  *reason = std::move(what);
  return Status(StatusCode::kInvalidArgument, "node");
}

// Finds the master to ask, by the options or by the directory's record.
Status FindMaster(const NodeOptions& options, ControlOptions* control, std::string* reason) {
  control->connect_timeout_ms = 5000;
  control->request_timeout_ms = 5000;
  return FindCluster(options.dir, options.master, options.secret_file, control, nullptr, reason);
}

// True if the member is this host's process; another host has processes of the same numbers.
bool IsHere(const MemberStatusInfo& member, pid_t pid) {
  return member.pid == static_cast<uint64_t>(pid) && member.host == HostName();
}

const MemberStatusInfo* FindNode(const ClusterStatusInfo& status, uint32_t node) {
  for (const MemberStatusInfo& member : status.members) {
    if (member.kind == MemberKind::kMemoryNode && member.node == node) return &member;
  }
  return nullptr;
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

// The number that is meant: the master's, or that of a process of the directory.
Status NumberOf(const NodeOptions& options, const ControlOptions& control, uint32_t* node,
                std::string* reason) {
  const char* const end = options.node.data() + options.node.size();
  const auto [rest, error] = std::from_chars(options.node.data(), end, *node);
  if (error == std::errc() && rest == end) return Status::Ok();
  if (!options.master.empty()) {
    return Refuse(reason, options.node + " is no number of a memory node");
  }
  Result<ClusterRecord> record = ClusterDir::Read(options.dir, reason);
  if (!record.ok()) return record.status();
  const ProcessRecord* const process = FindProcess(*record, options.node);
  if (process == nullptr || !process->name.starts_with("memnode")) {
    return Refuse(reason, "there is no memory node " + options.node);
  }
  return NumberOf(control, process->pid, node, reason);
}

// The master's report of the pool, and the agents' of keys that become records.
struct PoolLook {
  bool full = false;
  std::string text;
  bool agents_tell = false;   // they may ask for a password
  uint64_t records_made = 0;  // by all
};

PoolLook LookAtPool(const ClusterStatusInfo& status) {
  // The last blocks are the memory nodes' reserve.
  constexpr double kFull = 0.97;
  PoolLook look;
  if (status.usage.has_value() && status.usage->capacity_bytes != 0) {
    const PoolUsage& usage = *status.usage;
    look.text = std::to_string(usage.granted_bytes / kMiB) + " of " +
                std::to_string(usage.capacity_bytes / kMiB) + " MiB of the pool are granted";
    look.full = static_cast<double>(usage.granted_bytes) >=
                kFull * static_cast<double>(usage.capacity_bytes);
  }
  for (const MemberStatusInfo& member : status.members) {
    if (member.kind != MemberKind::kAgent || member.state != "up") continue;
    const auto info = AgentInfo(member.address, "");
    if (!info.has_value()) continue;
    AgentOverview agent;
    TakeInfo(*info, &agent);
    look.agents_tell = true;
    look.records_made += agent.registers_thawed;
  }
  return look;
}

// Tells an operator each step while regions move once, and after a while without a step why.
class Progress {
 public:
  explicit Progress(uint32_t node) : node_(node) {}

  // False: it does not get on, *reason says why and what to do.
  bool Tell(const ClusterStatusInfo& status, std::string* reason) {
    const auto now = Clock::now();
    const std::string step = status.moving + "\n" + status.waiting_for;
    if (step != step_) {
      step_ = step;
      since_ = now;
      told_ = now;
      if (!status.moving.empty()) Print(status.moving, status.waiting_for);
      return true;
    }
    if (now < told_ + kTellAgain) return true;
    told_ = now;
    const PoolLook pool = LookAtPool(status);
    const bool becomes_records = status.moving.find("become records") != std::string::npos;
    std::string made;
    if (becomes_records && pool.records_made > records_made_) {
      // That is a step, too, of which the master does not know.
      if (records_made_ != 0) since_ = now;
      made = "; " + std::to_string(pool.records_made) + " keys have become records";
    }
    records_made_ = pool.records_made;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - since_).count();
    const std::string until = seconds == 0 ? "" : "for " + std::to_string(seconds) + " s: ";
    Print(until + status.moving + made,
          status.waiting_for + (status.waiting_for.empty() || pool.text.empty() ? "" : "; ") +
              pool.text);
    const auto give_up = pool.agents_tell ? kGiveUp : kGiveUpBlindly;
    if (!pool.full || !becomes_records || now < since_ + give_up) return true;
    *reason =
        "the pool is full, its reserve, too: keys must become records before regions move, and "
        "that takes some memory; delete keys, and it goes on by itself, or take the wish back by: "
        "onetrip node keep " +
        std::to_string(node_);
    return false;
  }

 private:
  static constexpr auto kTellAgain = std::chrono::seconds(10);
  static constexpr auto kGiveUp = std::chrono::seconds(60);
  // For a command that cannot learn how many keys have become records.
  static constexpr auto kGiveUpBlindly = std::chrono::seconds(300);

  static void Print(const std::string& moving, const std::string& waiting_for) {
    std::printf("%s%s%s\n", moving.c_str(),
                waiting_for.empty() ? "" : "; waiting for: ", waiting_for.c_str());
    std::fflush(stdout);
  }

  const uint32_t node_;
  std::string step_;
  Clock::time_point since_;
  Clock::time_point told_;
  uint64_t records_made_ = 0;
};

// Waits while the node is in `state`, and prints what moves when that changes. *after: how it is
// then.
Status WaitWhile(const ControlOptions& control, uint32_t node, const std::string& state,
                 MemberStatusInfo* after, std::string* reason) {
  Progress progress(node);
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
      if (!progress.Tell(*status, reason)) {
        return Status(StatusCode::kUnavailable, "no progress");
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
  if (record->shape.memory.empty()) {
    return Refuse(reason,
                  "the cluster was started by an older version; start a memory node by "
                  "hand, and name its number");
  }
  if (!IsRunning(record->master)) {
    return Refuse(reason,
                  "the cluster's master does not run; start what is missing first, by: "
                  "onetrip up --dir " +
                      options.dir);
  }
  // Numbers of processes that were ended are not used again: their files may be there still.
  ProcessRecord& process = record->memnodes.emplace_back();
  process.number = record->memnodes_started++;
  process.name = "memnode-" + std::to_string(process.number);
  Launcher launcher(*dir.value(), *record, options.timeout_s);
  Status status = launcher.Launch(&process, reason);
  if (status.ok()) status = launcher.AwaitReady(&process, reason);
  if (status.ok()) status = launcher.LearnNumbers(reason);
  if (!status.ok()) {
    launcher.EndStarted(/*ready_too=*/true);
    record->memnodes.pop_back();
    std::string ignored;
    (void)dir.value()->Save(*record, &ignored);
    return status;
  }
  *pid = process.pid;
  return status;
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
  if (record->shape.persistent) {
    std::printf("Its file holds nothing that is needed, and may be removed: %s\n",
                dir.value()->backing(found->number).c_str());
  }
  record->memnodes.erase(found);
  return dir.value()->Save(*record, reason);
}

void PrintCapacity(const ClusterStatusInfo& before, const ClusterStatusInfo& now) {
  const auto mib = [](const ClusterStatusInfo& status) {
    return static_cast<unsigned long long>(status.regions * status.region_bytes / kMiB);
  };
  if (now.regions < before.regions) {
    std::printf("the capacity has shrunk from %llu to %llu MiB\n", mib(before), mib(now));
  } else if (now.regions == before.regions) {
    std::printf("the capacity is what it was, %llu MiB: there is no room for one region more\n",
                mib(now));
  } else {
    std::printf("the capacity has grown from %llu to %llu MiB\n", mib(before), mib(now));
  }
}

}  // namespace

Status AddNode(const NodeOptions& options, std::string* reason) {
  uint32_t node = 0;
  if (options.spare && !options.node.empty()) {
    return Refuse(reason, "--spare starts one more memory node, and none is to be named with it");
  }
  if (options.node.empty() && !options.master.empty()) {
    return Refuse(reason,
                  "with --master, start onetrip-memnode by hand and name the number that "
                  "`onetrip status` shows for it");
  }
  ControlOptions control;
  Status status = FindMaster(options, &control, reason);
  pid_t pid = 0;
  if (status.ok() && !options.node.empty()) {
    status = NumberOf(options, control, &node, reason);
  } else if (status.ok()) {
    status = StartMemnode(options, &pid, reason);
    if (status.ok()) status = NumberOf(control, pid, &node, reason);
    if (status.ok()) {
      std::printf("memory node %u has been started (pid %d)\n", node, static_cast<int>(pid));
      std::fflush(stdout);
    }
  }
  if (status.ok() && options.spare) return status;
  const Result<ClusterStatusInfo> before = QueryStatus(control, reason);
  if (status.ok()) status = AskToMoveRegions(control, node, RegionWish::kShare, reason);
  if (!status.ok() || !options.wait) return status;
  MemberStatusInfo after;
  status = WaitWhile(control, node, "filling", &after, reason);
  if (!status.ok()) return status;
  if (after.state != "up" && after.state != "spare") {
    return Refuse(reason, "memory node " + std::to_string(node) + " is " + after.state);
  }
  std::printf("memory node %u has its share: %u regions\n", node, after.regions);
  const Result<ClusterStatusInfo> now = QueryStatus(control, reason);
  if (before.ok() && now.ok()) PrintCapacity(*before, *now);
  return Status::Ok();
}

Status DrainNode(const NodeOptions& options, std::string* reason) {
  uint32_t node = 0;
  ControlOptions control;
  Status status = FindMaster(options, &control, reason);
  if (status.ok()) status = NumberOf(options, control, &node, reason);
  if (!status.ok()) return status;
  // A cluster that has just started has not told its master yet how much is in use, which a drain
  // may depend on.
  constexpr auto kPatience = std::chrono::seconds(5);
  const auto until = Clock::now() + kPatience;
  Result<ClusterStatusInfo> before = QueryStatus(control, reason);
  while (before.ok() && !before->usage.has_value() && Clock::now() < until) {
    std::this_thread::sleep_for(kLookAgain);
    before = QueryStatus(control, reason);
  }
  status = AskToMoveRegions(control, node, RegionWish::kDrain, reason);
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
  const Result<ClusterStatusInfo> now = QueryStatus(control, reason);
  if (before.ok() && now.ok() && now->regions != before->regions) PrintCapacity(*before, *now);
  return options.master.empty() ? EndMemnode(options, after, reason) : Status::Ok();
}

Status AcceptLoss(const NodeOptions& options, std::string* reason) {
  ControlOptions control;
  Status status = FindMaster(options, &control, reason);
  if (!status.ok()) return status;
  status = AskToAcceptLoss(control, /*confirmed=*/false, reason);
  if (status.code() != StatusCode::kCorrupt) return status;
  if (!options.yes) {
    *reason += ". Nothing has been done; to accept that: onetrip node accept-loss --yes";
    return status;
  }
  std::printf("%s\n", reason->c_str());
  std::fflush(stdout);
  status = AskToAcceptLoss(control, /*confirmed=*/true, reason);
  const auto deadline = Clock::now() + kMasterAway;
  while (status.ok() && options.wait) {
    const Result<ClusterStatusInfo> now = QueryStatus(control, reason);
    if (now.ok() && now->state != "not serving") {
      std::printf(
          "the cluster goes on: it is %s; regions get their copies back on memory nodes that "
          "are started now\n",
          now->state.c_str());
      return Status::Ok();
    }
    if (Clock::now() > deadline) {
      if (!now.ok()) return now.status();
      return Refuse(reason, "it is accepted, and the cluster has not gone on yet; it waits for: " +
                                (now->waiting_for.empty() ? "an agent" : now->waiting_for));
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  return status;
}

Status KeepNode(const NodeOptions& options, std::string* reason) {
  uint32_t node = 0;
  ControlOptions control;
  Status status = FindMaster(options, &control, reason);
  if (status.ok()) status = NumberOf(options, control, &node, reason);
  if (status.ok()) status = AskToMoveRegions(control, node, RegionWish::kNone, reason);
  if (status.ok()) std::printf("memory node %u keeps the regions that it has\n", node);
  return status;
}

}  // namespace onetrip
