#include "tool/launcher.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "client_core/base/host_id.h"
#include "client_core/control/cluster_status.h"
#include "client_core/control/control_options.h"
#include "tool/find_cluster.h"
#include "tool/programs.h"
#include "tool/resp_probe.h"

namespace onetrip {
namespace {

using Clock = std::chrono::steady_clock;
using Argv = std::vector<std::string>;

volatile sig_atomic_t interrupted = 0;
void Interrupt(int /*signal*/) { interrupted = 1; }

Status Failed() { return Status(StatusCode::kUnavailable, "not started"); }

bool Contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void AddDevice(const ClusterShape& shape, Argv* argv) {
  if (!shape.device.empty()) argv->insert(argv->end(), {"--device", shape.device});
  if (shape.gid_index < 0) return;
  argv->insert(argv->end(), {"--gid-index", std::to_string(shape.gid_index)});
}

}  // namespace

Launcher::Launcher(const ClusterDir& dir, ClusterRecord& record, uint64_t timeout_s)
    : dir_(dir),
      record_(record),
      timeout_s_(timeout_s),
      deadline_(Clock::now() + std::chrono::seconds(timeout_s)) {
  struct sigaction action {};
  action.sa_handler = Interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Argv Launcher::MasterArgv() const {
  // Members that run expect the master where it was.
  const bool is_expected =
      std::any_of(record_.memnodes.begin(), record_.memnodes.end(),
                  [](const ProcessRecord& process) { return IsRunning(process); }) ||
      std::any_of(record_.agents.begin(), record_.agents.end(),
                  [](const ProcessRecord& process) { return IsRunning(process); });
  const std::string& address = record_.master.address;
  return {ProgramPath("onetrip-master"),
          "--listen",
          is_expected && !address.empty() ? address : "127.0.0.1:0",
          "--data-dir",
          dir_.master_dir(),
          "--nodes",
          std::to_string(record_.shape.nodes),
          "--replicas",
          std::to_string(record_.shape.replicas)};
}

Argv Launcher::MemnodeArgv(size_t number) const {
  const ClusterShape& shape = record_.shape;
  Argv argv = {ProgramPath("onetrip-memnode"),
               "--master",
               record_.master.address,
               "--memory",
               shape.memory,
               "--fabric",
               shape.fabric == "mixed" ? "both" : shape.fabric,
               "--listen",
               "127.0.0.1:0",
               "--socket",
               dir_.socket(number)};
  if (shape.persistent) argv.insert(argv.end(), {"--backing", dir_.backing(number)});
  AddDevice(shape, &argv);
  return argv;
}

Argv Launcher::AgentArgv(size_t number) const {
  const ClusterShape& shape = record_.shape;
  const char* const in_turn = number % 2 == 0 ? "shm" : "tcp";
  Argv argv = {ProgramPath("onetrip-agent"),
               "--master",
               record_.master.address,
               "--fabric",
               shape.fabric == "mixed" ? in_turn : shape.fabric,
               "--bind",
               shape.bind,
               "--port",
               std::to_string(shape.port + number),
               "--threads",
               std::to_string(shape.threads)};
  if (!shape.engine.empty()) argv.insert(argv.end(), {"--engine", shape.engine});
  AddDevice(shape, &argv);
  return argv;
}

Argv Launcher::CommandLine(const ProcessRecord& process) const {
  Argv argv = process.name == "master"            ? MasterArgv()
              : process.name.starts_with("agent") ? AgentArgv(process.number)
                                                  : MemnodeArgv(process.number);
  if (!record_.secret_file.empty()) {
    argv.insert(argv.end(), {"--secret-file", record_.secret_file});
  }
  return argv;
}

void Launcher::ClaimFiles(const ProcessRecord& process) {
  dir_.Claim("logs/" + process.name + ".log", &record_);
  const std::string number = std::to_string(process.number);
  if (process.name == "master") {
    for (const char* name : {"master/master.db", "master/master.db-wal", "master/master.db-shm"}) {
      dir_.Claim(name, &record_);
    }
  } else if (process.name.starts_with("memnode")) {
    dir_.Claim("run/node-" + number + ".sock", &record_);
    if (record_.shape.persistent) dir_.Claim("memory/node-" + number + ".img", &record_);
  }
}

Status Launcher::Launch(ProcessRecord* process, std::string* reason) {
  for (const char* folder : {"logs", "run", "master", "memory"}) {
    const Status made = dir_.MakeFolder(folder, &record_, reason);
    if (!made.ok()) return made;
  }
  ClaimFiles(*process);
  process->log = dir_.log(process->name);
  // Earlier lives are in the same log.
  std::error_code missing;
  const auto bytes = std::filesystem::file_size(process->log, missing);
  process->log_from = missing ? 0 : bytes;
  const Status status = StartProcess(CommandLine(*process), process, reason);
  if (!status.ok()) {
    process->pid = 0;
    return status;
  }
  started_.push_back(process->name);
  // A record of what runs, should this process be killed now.
  return dir_.Save(record_, reason);
}

Status Launcher::Await(const ProcessRecord& process, const char* what,
                       const std::function<bool()>& done, std::string* reason) {
  constexpr auto kLookAgain = std::chrono::milliseconds(3);
  while (!done()) {
    if (interrupted != 0) {
      *reason = "interrupted";
      return Failed();
    }
    for (const ProcessRecord* any : record_.all()) {
      if (!Contains(started_, any->name) || IsRunning(*any)) continue;
      *reason = any->name + " ended; its log says:\n" + LastLines(any->log, 5);
      return Failed();
    }
    if (Clock::now() > deadline_) {
      *reason = process.name + " " + what + " within " + std::to_string(timeout_s_) +
                " s; its log says:\n" + LastLines(process.log, 5);
      return Failed();
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  return Status::Ok();
}

Status Launcher::AwaitReady(ProcessRecord* process, std::string* reason) {
  std::string address;
  Status status = Await(
      *process, "was not ready",
      [process, &address] {
        address = AddressOf(ReadyLine(*process));
        return !address.empty();
      },
      reason);
  if (!status.ok()) return status;
  process->address = address;
  if (process->name.starts_with("agent")) {
    status = Await(
        *process, "did not answer PING", [&address] { return Answers(address); }, reason);
  }
  if (!status.ok()) return status;
  ready_.push_back(process->name);
  return dir_.Save(record_, reason);
}

Result<ClusterStatusInfo> Launcher::AskMaster(std::string* reason) const {
  ControlOptions control;
  control.connect_timeout_ms = 2000;
  control.request_timeout_ms = 2000;
  const Status known = UseRecord(record_, &control, reason);
  if (!known.ok()) return known;
  return QueryStatus(control, reason);
}

Status Launcher::AwaitJoined(const ProcessRecord& process, size_t memnodes, std::string* reason) {
  return Await(
      process, "did not join",
      [&] {
        std::string ignored;
        const Result<ClusterStatusInfo> status = AskMaster(&ignored);
        if (!status.ok()) return false;
        return static_cast<size_t>(std::count_if(status->members.begin(), status->members.end(),
                                                 [](const auto& member) {
                                                   return member.kind == MemberKind::kMemoryNode;
                                                 })) >= memnodes;
      },
      reason);
}

Status Launcher::LearnNumbers(std::string* reason) {
  std::string ignored;
  // They are for a status without the master; a cluster that serves is up without them, too.
  const Result<ClusterStatusInfo> status = AskMaster(&ignored);
  if (!status.ok()) return Status::Ok();
  for (const MemberStatusInfo& member : status->members) {
    if (member.kind != MemberKind::kMemoryNode || member.host != HostName()) continue;
    for (ProcessRecord& process : record_.memnodes) {
      if (member.pid == static_cast<uint64_t>(process.pid)) process.node = member.node;
    }
  }
  return dir_.Save(record_, reason);
}

void Launcher::EndStarted(bool ready_too) {
  constexpr uint64_t kGraceMs = 3000;
  bool forced = false;
  std::vector<ProcessRecord*> all = record_.all();
  std::reverse(all.begin(), all.end());
  for (ProcessRecord* process : all) {
    if (!Contains(started_, process->name)) continue;
    if (!ready_too && Contains(ready_, process->name)) continue;
    EndProcess(*process, kGraceMs, &forced);
    process->pid = 0;
  }
  std::string ignored;
  (void)dir_.Save(record_, &ignored);
}

ProcessRecord* FindProcess(ClusterRecord& record, const std::string& name) {
  for (ProcessRecord* process : record.all()) {
    if (process->name == name) return process;
  }
  return nullptr;
}

}  // namespace onetrip
