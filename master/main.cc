// onetrip-master: who is in the cluster, and where its memory lies. Never on the data path.
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/arguments.h"
#include "client_core/base/clock.h"
#include "client_core/base/log.h"
#include "client_core/base/options.h"
#include "client_core/base/process_signals.h"
#include "client_core/base/program_main.h"
#include "client_core/base/program_text.h"
#include "client_core/base/version.h"
#include "master/master_server.h"
#include "master/rebuild_command.h"
#include "master/sqlite_store.h"

namespace onetrip {
namespace {

int Fail(const std::string& reason) {
  std::fprintf(stderr, "onetrip-master: %s\n", reason.c_str());
  return 1;
}

std::string ReadyLine(const MasterServer& server, const MasterOptions& options) {
  return "onetrip-master " ONETRIP_VERSION " is ready: " + server.address() + ", cluster " +
         ClusterText(server.cluster()) + ", data in " + options.data_dir + ", " +
         std::to_string(options.replicas) + " replicas on " + std::to_string(options.nodes) +
         " memory nodes, lease " + std::to_string(options.lease_ms) + " ms";
}

int Run(const MasterOptions& options, const std::function<std::string(LogLevel*)>& read_level) {
  LogLevel level = LogLevel::kInfo;
  if (ParseLogLevel(options.log_level, &level)) SetLogLevel(level);
  PrepareSignals();
  SignalThread signals(read_level);

  std::string reason;
  Secret secret;
  if (!options.secret_file.empty()) {
    Result<Secret> loaded = LoadSecretFile(options.secret_file, &reason);
    if (!loaded.ok()) return Fail(reason);
    secret = std::move(*loaded);
  }
  const Result<std::unique_ptr<SqliteStore>> store = SqliteStore::Open(options.data_dir, &reason);
  if (!store.ok()) return Fail(reason);
  MasterServerOptions server_options;
  server_options.listen = options.listen;
  server_options.coordinator.replicas = static_cast<int>(options.replicas);
  server_options.coordinator.nodes = static_cast<uint16_t>(options.nodes);
  server_options.coordinator.lease_ms = options.lease_ms;
  server_options.coordinator.replace_after_ms = options.replace_node_after_s * 1000;
  const SystemClock clock;
  const Result<std::unique_ptr<MasterServer>> server =
      MasterServer::Start(server_options, std::move(secret), *store.value(), clock, &reason);
  if (!server.ok()) return Fail(reason);
  std::printf("%s\n", ReadyLine(*server.value(), options).c_str());
  std::fflush(stdout);

  signals.AwaitEnd();
  server.value()->Stop();
  return 0;
}

RebuildOptions rebuild_options;

int Rebuild(const MasterOptions& options,
            const std::function<std::string(LogLevel*)>& /*read_level*/) {
  std::string reason;
  return RunRebuild(options, rebuild_options, &reason).ok() ? 0 : Fail("rebuild: " + reason);
}

// `onetrip-master rebuild`, with the master's own options and a few more.
int Rebuilds(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 2, argv + argc);
  std::string reason;
  const ProgramText program = DescribeProgram(kUserMaster);
  const CommandText& command = *FindCommandText(program, "rebuild");
  if (!arguments.empty() && (arguments.front() == "--help" || arguments.front() == "-h")) {
    std::fputs(HelpText(program, command).c_str(), stdout);
    return 0;
  }
  if (!TakeRebuildOptions(&arguments, &rebuild_options, &reason)) return Fail("rebuild: " + reason);
  // An unknown flag is told with the nearest one of either table.
  std::vector<const ParameterRow*> known = ParametersOf(kUserMaster);
  known.insert(known.end(), command.parameters.begin(), command.parameters.end());
  if (!KnowsFlags(known, arguments, &reason)) return Fail("rebuild: " + reason);
  std::vector<const char*> rest = {argv[0]};
  for (const std::string& argument : arguments) rest.push_back(argument.c_str());
  return ParseAndRun(static_cast<int>(rest.size()), rest.data(), ParseMasterOptions, Rebuild);
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "rebuild") return onetrip::Rebuilds(argc, argv);
  return onetrip::ParseAndRun(argc, argv, onetrip::ParseMasterOptions, onetrip::Run);
}
