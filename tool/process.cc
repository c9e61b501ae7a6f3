#include "tool/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fstream>
#include <sstream>

namespace onetrip {
namespace {

constexpr std::string_view kReadyMark = " is ready: ";

struct ProcessState {
  char state = 0;  // 0: there is no such process
  uint64_t started = 0;
};

// /proc/PID/stat: the name is in brackets and may hold anything, brackets and blanks included.
ProcessState LookUp(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return {};
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(line.substr(name_end + 1));
  ProcessState result;
  fields >> result.state;
  constexpr int kFieldsBetween = 18;  // from ppid (4) to itrealvalue (21)
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> result.started;
  return fields ? result : ProcessState{};
}

int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// Whether the process has ended within `timeout_ms`.
bool WaitForEnd(const ProcessRecord& record, int pidfd, uint64_t timeout_ms) {
  pollfd wait{pidfd, POLLIN, 0};
  if (poll(&wait, 1, static_cast<int>(timeout_ms)) > 0) {
    // A child of ours stays a zombie until it is waited for; for others this does nothing.
    waitpid(record.pid, nullptr, WNOHANG);
    return true;
  }
  return !IsRunning(record);
}

}  // namespace

Status StartProcess(const std::vector<std::string>& argv, ProcessRecord* record,
                    std::string* reason) {
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, record->log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int error =
      posix_spawn(&record->pid, arguments[0], &files, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    *reason = "cannot start " + argv[0] + ": " + std::strerror(error);
    return Status(StatusCode::kUnavailable, "not started");
  }
  record->started = LookUp(record->pid).started;
  return Status::Ok();
}

bool IsRunning(const ProcessRecord& record) {
  if (record.pid <= 0) return false;
  const ProcessState state = LookUp(record.pid);
  if (state.state == 'Z') waitpid(record.pid, nullptr, WNOHANG);
  return state.state != 0 && state.state != 'Z' && state.started == record.started;
}

std::string ReadyLine(const ProcessRecord& record) {
  std::ifstream log(record.log);
  std::string line;
  std::string found;
  // The last one: a log may go back to an earlier life. One that is not finished does not count.
  while (std::getline(log, line) && !log.eof()) {
    const size_t mark = line.find(kReadyMark);
    if (line.starts_with("onetrip-") && mark != std::string::npos) {
      found = line.substr(mark + kReadyMark.size());
    }
  }
  return found;
}

std::string AddressOf(const std::string& ready_line) {
  // A memory node says first which node it is, then how it is reached.
  for (const std::string_view fabric : {", tcp ", ", shm "}) {
    const size_t at = ready_line.find(fabric);
    if (!ready_line.starts_with("node ") || at == std::string::npos) continue;
    const size_t begin = at + fabric.size();
    return ready_line.substr(begin, ready_line.find(',', begin) - begin);
  }
  return ready_line.substr(0, ready_line.find(','));
}

std::string LastLines(const std::string& log, int lines) {
  std::ifstream file(log);
  std::deque<std::string> last;
  std::string line;
  while (std::getline(file, line)) {
    last.push_back(line);
    if (last.size() > static_cast<size_t>(lines)) last.pop_front();
  }
  std::string text;
  for (const std::string& kept : last) text += "  " + kept + "\n";
  return text;
}

bool EndProcess(const ProcessRecord& record, uint64_t grace_ms, bool* forced) {
  *forced = false;
  const int pidfd = OpenPidfd(record.pid);
  // The descriptor names one process for good; only then is its identity looked at.
  if (pidfd < 0 || !IsRunning(record)) {
    if (pidfd >= 0) close(pidfd);
    return !IsRunning(record);
  }
  constexpr uint64_t kKillMs = 5000;
  syscall(SYS_pidfd_send_signal, pidfd, SIGTERM, nullptr, 0);
  bool ended = WaitForEnd(record, pidfd, grace_ms);
  if (!ended) {
    *forced = true;
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0);
    ended = WaitForEnd(record, pidfd, kKillMs);
  }
  close(pidfd);
  return ended;
}

}  // namespace onetrip
