#include "tool/up.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tool/cluster_dir.h"
#include "tool/process.h"
#include "tool/programs.h"
#include "tool/resp_probe.h"

namespace onetrip {
namespace {

using Clock = std::chrono::steady_clock;

volatile sig_atomic_t interrupted = 0;
void Interrupt(int /*signal*/) { interrupted = 1; }

Status Failed() { return Status(StatusCode::kUnavailable, "the cluster did not start"); }

// One run of `up`: what it has started so far, and the way back.
class Start {
 public:
  Start(const UpOptions& options, ClusterDir& dir)
      : options_(options),
        dir_(dir),
        deadline_(Clock::now() + std::chrono::seconds(options.timeout_s)) {}

  Status Run(std::string* reason) {
    Status status = StartAll(reason);
    if (!status.ok()) TakeBack();
    return status;
  }

  [[nodiscard]] const ClusterRecord& record() const { return record_; }

 private:
  using Argv = std::vector<std::string>;

  Status StartAll(std::string* reason) {
    record_.fabric = options_.fabric;
    record_.persistent = options_.persistent;
    record_.memory = options_.memory;
    record_.memnodes_started = options_.memnodes;
    for (const std::string& folder : {dir_.log_dir(), dir_.run_dir(), dir_.path() + "/memory"}) {
      std::filesystem::create_directories(folder);
      chmod(folder.c_str(), 0700);
    }
    Status status = Launch("master", MasterArgv(), &record_.master, reason);
    if (status.ok()) status = AwaitReady(&record_.master, reason);
    if (!status.ok()) return status;
    for (uint16_t i = 0; status.ok() && i < options_.memnodes; ++i) {
      record_.memnodes.emplace_back();
      status = Launch("memnode-" + std::to_string(i), MemnodeArgv(dir_, record_, i),
                      &record_.memnodes.back(), reason);
    }
    for (uint16_t i = 0; status.ok() && i < options_.agents; ++i) {
      record_.agents.emplace_back();
      status = Launch("agent-" + std::to_string(i), AgentArgv(i), &record_.agents.back(), reason);
    }
    for (ProcessRecord& memnode : record_.memnodes) {
      if (status.ok()) status = AwaitReady(&memnode, reason);
    }
    for (ProcessRecord& agent : record_.agents) {
      if (status.ok()) status = AwaitReady(&agent, reason);
      if (status.ok()) status = AwaitAnswer(agent, reason);
    }
    return status.ok() ? dir_.Save(record_, reason) : status;
  }

  Argv MasterArgv() const {
    return {ProgramPath("onetrip-master"),
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
            dir_.master_dir(),
            "--nodes",
            std::to_string(options_.memnodes),
            "--replicas",
            std::to_string(options_.replicas)};
  }

  Argv AgentArgv(uint16_t agent) const {
    const bool mixed = options_.fabric == "mixed";
    Argv argv = {ProgramPath("onetrip-agent"),
                 "--master",
                 record_.master.address,
                 "--fabric",
                 mixed ? (agent % 2 == 0 ? "shm" : "tcp") : options_.fabric,
                 "--bind",
                 options_.bind,
                 "--port",
                 std::to_string(options_.port + agent),
                 "--threads",
                 std::to_string(options_.threads)};
    if (!options_.engine.empty()) argv.insert(argv.end(), {"--engine", options_.engine});
    return argv;
  }

  Status Launch(const std::string& name, const Argv& argv, ProcessRecord* process,
                std::string* reason) {
    process->name = name;
    process->log = dir_.log_dir() + "/" + name + ".log";
    std::filesystem::remove(process->log);
    const Status status = StartProcess(argv, process, reason);
    if (!status.ok()) return status;
    // A record of what runs, should this process be killed now.
    return dir_.Save(record_, reason);
  }

  // Waits for `done`, as long as `process` runs and there is time.
  Status Await(const ProcessRecord& process, const char* what, const std::function<bool()>& done,
               std::string* reason) {
    constexpr auto kLookAgain = std::chrono::milliseconds(3);
    while (!done()) {
      if (interrupted != 0) {
        *reason = "interrupted";
        return Failed();
      }
      // Whatever ended may be why this one waits.
      for (const ProcessRecord* any : record_.all()) {
        if (any->pid == 0 || IsRunning(*any)) continue;
        *reason = any->name + " ended; its log says:\n" + LastLines(any->log, 5);
        return Failed();
      }
      if (Clock::now() > deadline_) {
        *reason = process.name + " " + what + " within " + std::to_string(options_.timeout_s) +
                  " s; its log says:\n" + LastLines(process.log, 5);
        return Failed();
      }
      std::this_thread::sleep_for(kLookAgain);
    }
    return Status::Ok();
  }

  Status AwaitReady(ProcessRecord* process, std::string* reason) {
    return Await(
        *process, "was not ready",
        [process] {
          process->address = AddressOf(ReadyLine(*process));
          return !process->address.empty();
        },
        reason);
  }

  Status AwaitAnswer(const ProcessRecord& agent, std::string* reason) {
    return Await(
        agent, "did not answer PING", [&agent] { return Answers(agent.address); }, reason);
  }

  void TakeBack() {
    constexpr uint64_t kGraceMs = 3000;
    bool forced = false;
    std::vector<const ProcessRecord*> all = record_.all();
    std::reverse(all.begin(), all.end());
    for (const ProcessRecord* process : all) {
      if (process->pid != 0) EndProcess(*process, kGraceMs, &forced);
    }
    // What was there before, as data, stays.
    dir_.Clear(/*keep_data=*/options_.persistent);
  }

  const UpOptions& options_;
  ClusterDir& dir_;
  const Clock::time_point deadline_;
  ClusterRecord record_;
};

void PrintUse(const UpOptions& options, const ClusterRecord& record) {
  std::printf("The cluster is up: 1 master, %zu memory nodes of %s, %zu agents over %s.\n\n",
              record.memnodes.size(), options.memory.c_str(), record.agents.size(),
              options.fabric.c_str());
  for (const ProcessRecord& agent : record.agents) {
    const std::string port = agent.address.substr(agent.address.rfind(':') + 1);
    std::printf("  redis-cli -p %s                  %s\n", port.c_str(), agent.name.c_str());
  }
  const std::string dir = options.dir;
  std::printf("\n  onetrip status --dir %s\n  onetrip down --dir %s\n", dir.c_str(), dir.c_str());
  std::fflush(stdout);
}

Status CheckOptions(const UpOptions& options, std::string* reason) {
  if (options.memnodes < options.replicas) {
    *reason = std::to_string(options.replicas) +
              " replicas need as many memory nodes; give --memnodes " +
              std::to_string(options.replicas) + " or fewer --replicas";
  } else if (options.port + uint32_t{options.agents} > 65536) {
    *reason = "there are no " + std::to_string(options.agents) + " ports from " +
              std::to_string(options.port) + " on; give a smaller --port";
  } else {
    return Status::Ok();
  }
  return Status(StatusCode::kInvalidArgument, "impossible cluster");
}

}  // namespace

Status Up(const UpOptions& given, std::string* reason) {
  UpOptions options = given;
  constexpr uint16_t kReplicas = 3;
  if (options.replicas == 0) options.replicas = std::min(options.memnodes, kReplicas);
  Status status = CheckOptions(options, reason);
  if (!status.ok()) return status;
  Result<std::unique_ptr<ClusterDir>> dir = ClusterDir::Open(options.dir, false, reason);
  if (!dir.ok()) return dir.status();
  if (dir.value()->has_record()) {
    Result<ClusterRecord> old = dir.value()->Load(reason);
    if (!old.ok()) return old.status();
    for (const ProcessRecord* process : old->all()) {
      if (!IsRunning(*process)) continue;
      *reason = "a cluster runs from " + dir.value()->path() + " (" + process->name + ", pid " +
                std::to_string(process->pid) + "); stop it with: onetrip down --dir " + options.dir;
      return Status(StatusCode::kUnavailable, "already up");
    }
    // All of it has died. What a persistent one kept is taken up again.
    dir.value()->Clear(old->persistent && options.persistent);
    dir = ClusterDir::Open(options.dir, false, reason);
    if (!dir.ok()) return dir.status();
  }
  // Without all that keep something of it, the cluster of before would wait for the others.
  const size_t backed = options.persistent ? dir.value()->backed_nodes() : 0;
  options.memnodes =
      static_cast<uint16_t>(std::clamp<size_t>(backed, options.memnodes, UINT16_MAX));
  struct sigaction action {};
  action.sa_handler = Interrupt;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  Start start(options, *dir.value());
  status = start.Run(reason);
  if (status.ok()) PrintUse(options, start.record());
  return status;
}

Status Down(const DownOptions& options, std::string* reason) {
  const Result<std::unique_ptr<ClusterDir>> dir = ClusterDir::Open(options.dir, true, reason);
  if (!dir.ok()) return dir.status();
  Result<ClusterRecord> record = dir.value()->Load(reason);
  if (!record.ok()) return record.status();
  std::string left;
  const auto end = [&](const ProcessRecord& process) {
    bool forced = false;
    if (process.pid == 0) return;
    if (!EndProcess(process, options.grace_ms, &forced)) {
      left += " " + process.name + " (pid " + std::to_string(process.pid) + ")";
    } else if (forced) {
      std::printf("%s did not end in order within %llu ms and was killed\n", process.name.c_str(),
                  static_cast<unsigned long long>(options.grace_ms));
    }
  };
  for (const ProcessRecord& agent : record->agents) end(agent);
  for (const ProcessRecord& memnode : record->memnodes) end(memnode);
  end(record->master);
  if (!left.empty()) {
    *reason = "still running:" + left;
    return Status(StatusCode::kUnavailable, "not down");
  }
  dir.value()->Clear(record->persistent);
  std::printf("The cluster is down; %s %s.\n",
              record->persistent ? "its data stays in" : "nothing is left of it in",
              dir.value()->path().c_str());
  return Status::Ok();
}

}  // namespace onetrip
