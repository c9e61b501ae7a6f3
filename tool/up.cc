#include "tool/up.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/host_id.h"
#include "client_core/control/cluster_status.h"
#include "client_core/control/control_options.h"
#include "tool/cluster_dir.h"
#include "tool/directory_options.h"
#include "tool/find_cluster.h"
#include "tool/launcher.h"
#include "tool/process.h"
#include "tool/status.h"

namespace onetrip {
namespace {

Status Refuse(std::string* reason, std::string what) {
  *reason = std::move(what);
  return Status(StatusCode::kInvalidArgument, "up");
}

bool IsAnyRunning(const std::vector<ProcessRecord>& processes) {
  return std::any_of(processes.begin(), processes.end(), IsRunning);
}

bool IsAnyRunning(const ClusterRecord& record) {
  return IsRunning(record.master) || IsAnyRunning(record.memnodes) || IsAnyRunning(record.agents);
}

// Starts all of the record's processes that do not run, and waits for them. *started: their names.
Status StartMissing(const ClusterDir& dir, ClusterRecord& record, uint64_t timeout_s,
                    std::vector<std::string>* started, std::string* reason) {
  const bool beside_others = IsAnyRunning(record);
  const bool forms = !record.formed && !beside_others;
  Launcher launcher(dir, record, timeout_s);
  const auto run = [&]() -> Status {
    std::vector<ProcessRecord*> missing;
    for (ProcessRecord* process : record.all()) {
      if (IsRunning(*process)) continue;
      started->push_back(process->name);
      Status status = launcher.Launch(process, reason);
      // The others are told where the master is.
      const bool first = process == &record.master;
      if (status.ok() && first) status = launcher.AwaitReady(process, reason);
      if (status.ok() && forms && process->name.starts_with("memnode")) {
        status = launcher.AwaitJoined(*process, process->number + 1, reason);
      }
      if (!status.ok()) return status;
      if (!first) missing.push_back(process);
    }
    for (ProcessRecord* process : missing) {
      const Status status = launcher.AwaitReady(process, reason);
      if (!status.ok()) return status;
    }
    record.formed = true;
    const Status saved = dir.Save(record, reason);
    return saved.ok() ? launcher.LearnNumbers(reason) : saved;
  };
  const Status status = run();
  if (!status.ok()) {
    launcher.EndStarted(/*ready_too=*/!beside_others);
    if (reason->empty() || reason->back() != '\n') *reason += "\n";
    *reason += "Nothing has been removed: logs are in " + dir.path() + "/logs";
  }
  return status;
}

void PrintUse(const std::string& dir, const ClusterRecord& record,
              const std::vector<std::string>& started) {
  if (started.empty()) {
    std::printf("The cluster is up already, every process of it runs: ");
  } else if (started.size() < 1 + record.memnodes.size() + record.agents.size()) {
    std::string names;
    for (const std::string& name : started) names += (names.empty() ? "" : ", ") + name;
    std::printf("Started again: %s.\nThe cluster is up: ", names.c_str());
  } else {
    std::printf("The cluster is up: ");
  }
  std::printf("1 master, %zu memory nodes of %s, %zu agents over %s%s.\n\n", record.memnodes.size(),
              record.shape.memory.c_str(), record.agents.size(), record.shape.fabric.c_str(),
              record.shape.persistent ? ", memory in files" : "");
  for (const ProcessRecord& agent : record.agents) {
    const std::string port = agent.address.substr(agent.address.rfind(':') + 1);
    std::printf("  redis-cli -p %s                  %s\n", port.c_str(), agent.name.c_str());
  }
  std::printf("\n  onetrip status --dir %s\n  onetrip down --dir %s\n", dir.c_str(), dir.c_str());
  std::fflush(stdout);
}

// Takes over a persistent cluster that is down, of which there are files without a description.
Result<ClusterRecord> Adopt(const UpOptions& options, const ClusterDir& dir, std::string* reason) {
  if (!options.persistent) {
    return Refuse(reason, dir.path() +
                              " holds a cluster's data without a description, as a master that was "
                              "started by hand or an older version leaves it; give --persistent, "
                              "and the --memory and --replicas of then, to go on with it, or "
                              "choose another --dir");
  }
  UpOptions counted = options;
  counted.memnodes = static_cast<uint16_t>(
      std::clamp<size_t>(dir.backed_nodes(), options.memnodes.value_or(1), UINT16_MAX));
  return DescribeCluster(counted, nullptr, reason);
}

// The cluster to be started, as the directory has it or as the options say.
Result<ClusterRecord> Describe(const UpOptions& options, std::unique_ptr<ClusterDir>& dir,
                               std::string* reason) {
  if (dir->has_unknown_state()) return Adopt(options, *dir, reason);
  if (!dir->has_record()) return DescribeCluster(options, nullptr, reason);
  Result<ClusterRecord> old = dir->Load(reason);
  if (!old.ok()) return old;
  constexpr uint64_t kEndingMs = 5000;
  for (const ProcessRecord* process : std::as_const(*old).all()) AwaitEnding(*process, kEndingMs);
  const bool runs = IsAnyRunning(*old);
  const bool has_data = old->shape.persistent && (old->formed || dir->backed_nodes() != 0);
  if (runs || has_data) {
    if (runs && old->formed && !old->shape.persistent && !IsAnyRunning(old->memnodes)) {
      return Refuse(reason, "all memory nodes of the cluster in " + dir->path() +
                                " have ended, and what it held with them; remove it by `onetrip "
                                "down --dir " +
                                options.dir + "`, then start it anew");
    }
    const Status same = ReconcileOptions(options, runs, &*old, reason);
    if (!same.ok()) return same;
    return old;
  }
  // Nothing is left of it but files that are of no use to anyone.
  Result<ClusterRecord> fresh = DescribeCluster(options, &*old, reason);
  if (!fresh.ok()) return fresh;
  if (old->formed) {
    std::printf(
        "All processes of the cluster in %s had ended, and it kept no data: it starts "
        "empty.\n",
        dir->path().c_str());
  }
  dir->Clear(*old);
  dir.reset();
  Result<std::unique_ptr<ClusterDir>> again = ClusterDir::Open(options.dir, false, reason);
  if (!again.ok()) return again.status();
  dir = std::move(*again);
  return fresh;
}

Status EnsureSecret(const ClusterDir& dir, ClusterRecord* record, std::string* reason) {
  if (!IsAnyRunning(*record)) return dir.MakeSecret(record, reason);
  // Processes of an older version go on without one until all have been stopped.
  if (record->secret_file.empty()) return Status::Ok();
  std::string why;
  if (LoadSecretFile(record->secret_file, &why).ok()) return Status::Ok();
  return Refuse(reason, why +
                            "; the processes that run know it: put the file back, or stop them by "
                            "`onetrip down`, and `up` makes another");
}

}  // namespace

Status Up(const UpOptions& options, std::string* reason) {
  Result<std::unique_ptr<ClusterDir>> opened = ClusterDir::Open(options.dir, false, reason);
  if (!opened.ok()) return opened.status();
  std::unique_ptr<ClusterDir> dir = std::move(*opened);
  Result<ClusterRecord> described = Describe(options, dir, reason);
  if (!described.ok()) return described.status();
  ClusterRecord record = std::move(*described);
  if (!dir->has_record()) dir->ClaimItself(&record);
  Status status = EnsureSecret(*dir, &record, reason);
  if (status.ok()) status = dir->Save(record, reason);
  std::vector<std::string> started;
  if (status.ok()) status = StartMissing(*dir, record, options.timeout_s, &started, reason);
  if (!status.ok()) return status;
  PrintUse(options.dir, record, started);
  const std::string waits_for = WhyNotServing(options.dir);
  if (!waits_for.empty()) {
    std::printf("\nIt does not serve yet. It waits for: %s\n", waits_for.c_str());
  }
  return status;
}

Status Down(const DownOptions& options, std::string* reason) {
  const Result<std::unique_ptr<ClusterDir>> dir = ClusterDir::Open(options.dir, true, reason);
  if (!dir.ok()) return dir.status();
  Result<ClusterRecord> record = dir.value()->Load(reason);
  if (!record.ok()) return record.status();
  std::string left;
  const auto end = [&](const std::vector<ProcessRecord>& processes) {
    std::vector<const ProcessRecord*> all;
    all.reserve(processes.size());
    for (const ProcessRecord& process : processes) all.push_back(&process);
    std::vector<std::string> forced;
    for (const ProcessRecord* process : EndProcesses(all, options.grace_ms, &forced)) {
      left += " " + process->name + " (pid " + std::to_string(process->pid) + ")";
    }
    for (const std::string& name : forced) {
      std::printf("%s did not end in order within %llu ms and was killed\n", name.c_str(),
                  static_cast<unsigned long long>(options.grace_ms));
    }
  };
  end(record->agents);
  end(record->memnodes);
  end({record->master});
  if (!left.empty()) {
    *reason = "still running:" + left;
    return Status(StatusCode::kUnavailable, "not down");
  }
  if (!record->shape.persistent) {
    dir.value()->Clear(*record);
    std::printf("The cluster is down; nothing is left of it in %s.\n", dir.value()->path().c_str());
    return Status::Ok();
  }
  for (ProcessRecord* process : record->all()) process->pid = 0;
  const Status saved = dir.value()->Save(*record, reason);
  if (!saved.ok()) return saved;
  std::printf("The cluster is down; its data stays in %s.\n", dir.value()->path().c_str());
  return Status::Ok();
}

namespace {

// Refuses if the memory node's memory is nowhere else, or too few copies would be left.
Status MayEndMemnode(const ClusterRecord& record, const ProcessRecord& process,
                     std::string* reason) {
  ControlOptions control;
  control.connect_timeout_ms = 2000;
  control.request_timeout_ms = 2000;
  const Status known = UseRecord(record, &control, reason);
  if (!known.ok()) return known;
  const std::string kOr = "; give --force to end it all the same";
  const Result<ClusterStatusInfo> status = QueryStatus(control, reason);
  if (!status.ok()) {
    return Refuse(reason, "the master does not tell whether the data is on others, too (" +
                              *reason + ")" + kOr);
  }
  for (const MemberStatusInfo& member : status->members) {
    if (member.kind != MemberKind::kMemoryNode || member.host != HostName() ||
        member.pid != static_cast<uint64_t>(process.pid) || member.regions == 0) {
      continue;
    }
    if (status->replicas < 3) {
      return Refuse(reason, "the cluster keeps " + std::to_string(status->replicas) +
                                " replicas, and what " + process.name +
                                " holds would be lost, it is in no file" + kOr);
    }
    if (status->regions_fully_redundant != status->regions) {
      return Refuse(reason, "only " + std::to_string(status->regions_fully_redundant) + " of " +
                                std::to_string(status->regions) +
                                " regions are on all of their memory nodes, and what " +
                                process.name + " holds is in no file; wait for that" + kOr);
    }
  }
  return Status::Ok();
}

}  // namespace

Status Restart(const RestartOptions& options, std::string* reason) {
  const Result<std::unique_ptr<ClusterDir>> dir = ClusterDir::Open(options.dir, true, reason);
  if (!dir.ok()) return dir.status();
  Result<ClusterRecord> loaded = dir.value()->Load(reason);
  if (!loaded.ok()) return loaded.status();
  ClusterRecord& record = *loaded;
  ProcessRecord* const process = FindProcess(record, options.name);
  if (process == nullptr) {
    std::string names;
    for (const ProcessRecord* any : record.all()) names += " " + any->name;
    return Refuse(reason, "there is no process " + options.name + "; there are:" + names);
  }
  if (process != &record.master && !IsRunning(record.master)) {
    return Refuse(reason,
                  "the master does not run, and " + process->name +
                      " would wait for it; start it first, by: onetrip restart master --dir " +
                      options.dir);
  }
  UpOptions as_it_is;
  as_it_is.dir = options.dir;
  Status status = ReconcileOptions(as_it_is, true, &record, reason);
  if (status.ok()) status = EnsureSecret(*dir.value(), &record, reason);
  const bool holds_memory = process->name.starts_with("memnode") && !record.shape.persistent;
  if (status.ok() && holds_memory && IsRunning(*process) && !options.force) {
    status = MayEndMemnode(record, *process, reason);
  }
  if (!status.ok()) return status;
  constexpr uint64_t kGraceMs = 30'000;
  bool forced = false;
  if (!EndProcess(*process, kGraceMs, &forced)) {
    *reason = process->name + " (pid " + std::to_string(process->pid) + ") does not end";
    return Status(StatusCode::kUnavailable, "still running");
  }
  Launcher launcher(*dir.value(), record, options.timeout_s);
  status = launcher.Launch(process, reason);
  if (status.ok()) status = launcher.AwaitReady(process, reason);
  if (status.ok()) status = launcher.LearnNumbers(reason);
  if (!status.ok()) {
    launcher.EndStarted(/*ready_too=*/true);
    return status;
  }
  std::printf("%s runs again (pid %d)\n", process->name.c_str(), static_cast<int>(process->pid));
  return Status::Ok();
}

}  // namespace onetrip
