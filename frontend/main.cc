// onetrip-agent: RESP in front, a cluster behind; without --master the cluster is in here too.
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "client_core/base/clock.h"
#include "client_core/base/log.h"
#include "client_core/base/options.h"
#include "client_core/base/process_signals.h"
#include "client_core/base/program_main.h"
#include "client_core/base/version.h"
#include "frontend/admin/admin.h"
#include "frontend/server.h"
#include "frontend/storage/clustered.h"
#include "frontend/storage/embedded.h"

namespace onetrip {
namespace {

int Fail(const std::string& reason) {
  std::fprintf(stderr, "onetrip-agent: %s\n", reason.c_str());
  return 1;
}

std::string ReadyLine(const Server& server) {
  const AgentOptions& options = server.options();
  std::string line = "onetrip-agent " ONETRIP_VERSION " is ready:";
  if (server.tcp_port() != 0) {
    line += " " + options.bind + ":" + std::to_string(server.tcp_port()) + ",";
  }
  if (!options.unixsocket.empty()) line += " " + options.unixsocket + ",";
  line += " engine " + options.engine + ", " + server.storage().Describe() + ", " +
          std::to_string(options.threads) + (options.threads == 1 ? " thread" : " threads");
  return line;
}

// Null, with the reason in one line, when there is none to be had.
std::unique_ptr<Storage> MakeStorage(const AgentOptions& options, const Clock& clock,
                                     std::string* reason) {
  if (options.master.empty()) {
    Result<std::unique_ptr<Embedded>> embedded = Embedded::Create(options, clock, reason);
    return embedded.ok() ? std::move(embedded.value()) : nullptr;
  }
  Result<std::unique_ptr<Clustered>> clustered = Clustered::Create(options, clock, reason);
  return clustered.ok() ? std::move(clustered.value()) : nullptr;
}

int Run(const AgentOptions& options, const std::function<std::string(LogLevel*)>& read_level) {
  LogLevel level = LogLevel::kInfo;
  if (ParseLogLevel(options.log_level, &level)) SetLogLevel(level);
  PrepareSignals();
  SignalThread signals(read_level);

  const SystemClock clock;
  std::string reason;
  const std::unique_ptr<Storage> storage = MakeStorage(options, clock, &reason);
  if (storage == nullptr) return Fail(reason);
  Server server(options, clock, *storage, MakeWorkerHooks);
  if (!server.Start(&reason).ok()) return Fail(reason);
  std::printf("%s\n", ReadyLine(server).c_str());
  std::fflush(stdout);

  signals.AwaitEnd();
  server.Stop();
  return 0;
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) {
  return onetrip::ParseAndRun(argc, argv, onetrip::ParseAgentOptions, onetrip::Run);
}
