#include "master/rebuild_command.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <system_error>
#include <thread>
#include <utility>

#include "client_core/base/clock.h"
#include "client_core/base/secret.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/kept_state.h"
#include "master/coordinator.h"
#include "master/durable_change.h"
#include "master/rebuild.h"
#include "master/rebuild_server.h"
#include "master/sqlite_store.h"

namespace onetrip {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr auto kLookAgain = std::chrono::milliseconds(100);
// The wait once no member is missing: an answer that has just come may name others.
constexpr auto kSettle = std::chrono::milliseconds(500);

Status ReadFiles(const std::vector<std::string>& files, Rebuild* rebuild, std::string* reason) {
  for (const std::string& path : files) {
    control::Recalled recalled;
    Status status = ReadStateFile(path, &recalled, reason);
    if (!status.ok()) return status;
    status = rebuild->AddFile(recalled, reason);
    if (status.ok()) continue;
    *reason = path + ": " + *reason;
    return status;
  }
  return Status::Ok();
}

// Collects until no member is missing, or the time is over.
Rebuild Collect(RebuildServer& server, uint64_t wait_s) {
  const auto end = SteadyClock::now() + std::chrono::seconds(wait_s);
  auto complete_since = SteadyClock::time_point::max();
  std::string told;
  while (true) {
    Rebuild collected = server.Collected();
    const std::string missing = collected.MissingText();
    const auto now = SteadyClock::now();
    if (!missing.empty()) complete_since = SteadyClock::time_point::max();
    if (missing.empty() && complete_since == SteadyClock::time_point::max()) complete_since = now;
    if (missing.empty() && now - complete_since >= kSettle) return collected;
    if (now >= end) return collected;
    if (missing != told && !missing.empty()) {
      std::printf("%s\n", missing.c_str());
      std::fflush(stdout);
    }
    told = missing;
    std::this_thread::sleep_for(kLookAgain);
  }
}

// Makes the file if there is none.
Status Fill(const MasterOptions& master, const RebuildOptions& options, std::string* reason) {
  Secret secret;
  if (!master.secret_file.empty()) {
    Result<Secret> loaded = LoadSecretFile(master.secret_file, reason);
    if (!loaded.ok()) return loaded.status();
    secret = std::move(*loaded);
  }
  const Result<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(master.data_dir, reason);
  if (!store.ok()) return store.status();
  const Result<DurableState> before = store.value()->Load(reason);
  if (!before.ok()) return before.status();
  if (before->cluster.cluster != 0) {
    *reason = store.value()->path() + " holds the state of cluster " +
              ClusterText(before->cluster.cluster) +
              " already: move the directory away, or give another --data-dir";
    return Status(StatusCode::kInvalidArgument, "there is a state");
  }
  Rebuild rebuild;
  Status status = ReadFiles(options.files, &rebuild, reason);
  if (!status.ok()) return status;
  {
    const Result<std::unique_ptr<RebuildServer>> server =
        RebuildServer::Start(master.listen, std::move(secret), std::move(rebuild), reason);
    if (!server.ok()) return server.status();
    rebuild = Collect(*server.value(), options.wait_s);
  }
  const SystemClock clock;
  const Result<DurableState> state = rebuild.Make(clock.UnixUs(), options.force, reason);
  if (!state.ok()) return state.status();
  // As the master will.
  CoordinatorOptions as_stored;
  as_stored.replicas = state->cluster.replicas;
  as_stored.nodes = state->cluster.nodes;
  const Result<Coordinator> sound = Coordinator::Create(
      as_stored, *state, /*fresh_cluster=*/1, /*fresh_life=*/1, 0, clock.UnixUs(), reason);
  if (!sound.ok()) return sound.status();
  status = store.value()->Write(WholeState(*state), reason);
  if (!status.ok()) return status;
  const std::string missing = rebuild.MissingText();
  if (!missing.empty())
    std::printf("%s; agents that do not come back are fenced\n", missing.c_str());
  std::printf(
      "%s has the state of cluster %s: %zu memory nodes, %zu regions, %zu workers; start "
      "the master\n",
      store.value()->path().c_str(), ClusterText(state->cluster.cluster).c_str(),
      state->nodes.size(), state->regions.size(), state->seats.size());
  return Status::Ok();
}

}  // namespace

bool TakeRebuildOptions(std::vector<std::string>* arguments, RebuildOptions* options,
                        std::string* reason) {
  std::vector<std::string> rest;
  for (size_t i = 0; i < arguments->size(); ++i) {
    const std::string& name = (*arguments)[i];
    if (name == "--force") {
      options->force = true;
      continue;
    }
    if (name != "--state" && name != "--wait-s") {
      rest.push_back(name);
      continue;
    }
    if (i + 1 == arguments->size()) {
      *reason = name + " needs a value";
      return false;
    }
    const std::string& value = (*arguments)[++i];
    if (name == "--state") {
      options->files.push_back(value);
      continue;
    }
    char* end = nullptr;
    options->wait_s = std::strtoull(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || options->wait_s > 86'400) {
      *reason = "--wait-s takes seconds, at most 86400, not " + value;
      return false;
    }
  }
  *arguments = std::move(rest);
  return true;
}

Status RunRebuild(const MasterOptions& master, const RebuildOptions& options, std::string* reason) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path directory(master.data_dir);
  const bool had_directory = fs::exists(directory, error);
  const bool had_file = fs::exists(directory / "master.db", error);
  const Status status = Fill(master, options, reason);
  if (status.ok() || had_file) return status;
  // A master that is started with an empty file would take itself for that of a new cluster.
  for (const char* const name : {"master.db", "master.db-wal", "master.db-shm"}) {
    fs::remove(directory / name, error);
  }
  if (!had_directory) fs::remove(directory, error);
  return status;
}

}  // namespace onetrip
