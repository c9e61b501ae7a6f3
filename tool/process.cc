#include "tool/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>
#include <thread>

namespace onetrip {
namespace {

constexpr std::string_view kReadyMark = " is ready: ";

struct ProcessState {
  char state = 0;  // 0: there is no such process
  uint64_t flags = 0;
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
  constexpr int kFieldsBeforeFlags = 5;  // from ppid (4) to tpgid (8)
  constexpr int kFieldsBetween = 12;     // from minflt (10) to itrealvalue (21)
  std::string skipped;
  for (int i = 0; i < kFieldsBeforeFlags; ++i) fields >> skipped;
  fields >> result.flags;
  for (int i = 0; i < kFieldsBetween; ++i) fields >> skipped;
  fields >> result.started;
  return fields ? result : ProcessState{};
}

// True if threads of a process are left whose first thread has ended: it still holds its ports and
// its memory.
bool HasThreadsLeft(pid_t pid) {
  std::error_code gone;
  size_t threads = 0;
  for (const auto& thread :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    if (thread.path().filename() != std::to_string(pid)) ++threads;
  }
  return threads > 0;
}

// True if SIGKILL has been sent to it, and not all of its threads have taken notice yet.
bool IsKilled(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (!line.starts_with("ShdPnd:")) continue;
    return (std::strtoull(line.c_str() + 7, nullptr, 16) >> (SIGKILL - 1) & 1) != 0;
  }
  return false;
}

int OpenPidfd(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// True if the process has ended within `timeout_ms`.
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
  if (state.state == 0 || state.started != record.started) return false;
  if (state.state != 'Z') return true;
  waitpid(record.pid, nullptr, WNOHANG);
  return HasThreadsLeft(record.pid);
}

bool AwaitEnding(const ProcessRecord& record, uint64_t timeout_ms) {
  constexpr uint64_t kExiting = 0x4;  // PF_EXITING of the kernel
  constexpr auto kLookAgain = std::chrono::milliseconds(2);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (IsRunning(record)) {
    const ProcessState state = LookUp(record.pid);
    const bool is_ending =
        state.state == 'Z' || (state.flags & kExiting) != 0 || IsKilled(record.pid);
    if (!is_ending || std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(kLookAgain);
  }
  return true;
}

std::string ReadyLine(const ProcessRecord& record) {
  std::ifstream log(record.log);
  log.seekg(0, std::ios::end);
  // Lines of earlier lives come before; a log that is shorter is another file by now.
  const bool is_same = log.tellg() >= static_cast<std::streamoff>(record.log_from);
  log.seekg(is_same ? static_cast<std::streamoff>(record.log_from) : 0);
  std::string line;
  std::string found;
  // The last one; one that is not finished does not count.
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
  std::vector<std::string> forced_names;
  const bool ended = EndProcesses({&record}, grace_ms, &forced_names).empty();
  *forced = !forced_names.empty();
  return ended;
}

std::vector<const ProcessRecord*> EndProcesses(const std::vector<const ProcessRecord*>& processes,
                                               uint64_t grace_ms,
                                               std::vector<std::string>* forced) {
  using Clock = std::chrono::steady_clock;
  constexpr uint64_t kKillMs = 5000;
  struct Ending {
    const ProcessRecord* process;
    int pidfd;
  };
  std::vector<Ending> endings;
  for (const ProcessRecord* process : processes) {
    const int pidfd = process->pid > 0 ? OpenPidfd(process->pid) : -1;
    // The descriptor names one process for good; only then is its identity looked at.
    if (pidfd >= 0 && IsRunning(*process)) {
      endings.push_back({process, pidfd});
    } else if (pidfd >= 0) {
      close(pidfd);
    }
  }
  const auto signal_and_wait = [&endings](int signal, uint64_t within_ms) {
    for (const Ending& one : endings) syscall(SYS_pidfd_send_signal, one.pidfd, signal, nullptr, 0);
    const auto deadline = Clock::now() + std::chrono::milliseconds(within_ms);
    std::erase_if(endings, [&](const Ending& one) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (!WaitForEnd(*one.process, one.pidfd, static_cast<uint64_t>(std::max<int64_t>(left, 0)))) {
        return false;
      }
      close(one.pidfd);
      return true;
    });
  };
  signal_and_wait(SIGTERM, grace_ms);
  for (const Ending& late : endings) forced->push_back(late.process->name);
  if (!endings.empty()) signal_and_wait(SIGKILL, kKillMs);
  std::vector<const ProcessRecord*> left;
  for (const Ending& one : endings) {
    left.push_back(one.process);
    close(one.pidfd);
  }
  return left;
}

}  // namespace onetrip
