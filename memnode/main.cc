// onetrip-memnode: memory for a cluster. Runs no protocol: it holds bytes, grants blocks, and
// fences.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "client_core/base/log.h"
#include "client_core/base/options.h"
#include "client_core/base/process_signals.h"
#include "client_core/base/program_main.h"
#include "client_core/base/secret.h"
#include "client_core/control/control_options.h"
#include "memnode/node_process.h"

namespace onetrip {
namespace {

int Fail(const std::string& reason) {
  std::fprintf(stderr, "onetrip-memnode: %s\n", reason.c_str());
  return 1;
}

// A descriptor for every channel and agent: as many as the process may have.
void RaiseDescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &limit);
}

int Live(NodeProcess& process) {
  std::string reason;
  const Status started = process.Start(&reason);
  // A process that was told to end while it waited for others has not failed.
  if (process.is_interrupted()) return 0;
  if (!started.ok()) return Fail(reason);
  std::printf("%s\n", process.ReadyLine().c_str());
  std::fflush(stdout);
  process.Wait();
  process.Stop();
  return 0;
}

int Run(const MemnodeOptions& options, const std::function<std::string(LogLevel*)>& read_level) {
  LogLevel level = LogLevel::kInfo;
  if (ParseLogLevel(options.log_level, &level)) SetLogLevel(level);
  RaiseDescriptorLimit();
  PrepareSignals();
  const sigset_t handled = HandledSignals();
  const UniqueFd signals(signalfd(-1, &handled, SFD_CLOEXEC));
  const UniqueFd done(eventfd(0, EFD_CLOEXEC));
  if (!signals.valid() || !done.valid()) return Fail("the system gives no descriptors");

  std::string reason;
  Result<Secret> secret = Secret();
  if (!options.secret_file.empty()) secret = LoadSecretFile(options.secret_file, &reason);
  if (!secret.ok()) return Fail(reason);
  ControlOptions control;
  control.master = options.master;
  control.secret = secret->Copy();
  control.connect_timeout_ms = options.connect_timeout_ms;
  // Options that the session would refuse are refused before there is a memory.
  if (!CheckControlOptions(control, &reason).ok()) return Fail(reason);
  NodeProcess process(options, std::move(*secret), [&control](const std::string& address) {
    ControlOptions mine = control.Copy();
    mine.address = address;
    return MakeNodeMasterClient(std::move(mine));
  });

  int code = 0;
  std::thread life([&process, &done, &code] {
    code = Live(process);
    (void)eventfd_write(done.get(), 1);
  });
  pollfd waited[] = {{.fd = signals.get(), .events = POLLIN, .revents = 0},
                     {.fd = done.get(), .events = POLLIN, .revents = 0}};
  while (waited[1].revents == 0) {
    if (poll(waited, 2, -1) < 0 && errno != EINTR) break;
    if (waited[0].revents == 0) continue;
    signalfd_siginfo signal{};
    (void)!read(signals.get(), &signal, sizeof(signal));
    if (signal.ssi_signo == SIGHUP) {
      OnHangup(read_level);
      continue;
    }
    waited[0].fd = -1;
    // The next one ends the process as if it had never been caught.
    const sigset_t ends = EndSignals();
    std::signal(SIGTERM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
    process.Interrupt();
  }
  life.join();
  return code;
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) {
  return onetrip::ParseAndRun(argc, argv, onetrip::ParseMemnodeOptions, onetrip::Run);
}
