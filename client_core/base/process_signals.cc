#include "client_core/base/process_signals.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <utility>

namespace onetrip {
namespace {

// An end in order may take this long. Processes that need longer are dead, and what this process
// owes them is done without it.
constexpr auto kEndWithin = std::chrono::milliseconds(3000);

// The path behind standard error; empty: it is no file. Written once, before threads start.
std::string& LogPath() {
  static auto* const path = new std::string;
  return *path;
}

bool IsSameFile(int a, int b) {
  struct stat a_info {};
  struct stat b_info {};
  return fstat(a, &a_info) == 0 && fstat(b, &b_info) == 0 && a_info.st_dev == b_info.st_dev &&
         a_info.st_ino == b_info.st_ino;
}

std::string OpenLogAnew() {
  if (LogPath().empty()) return "";
  const int fd = open(LogPath().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return "cannot open the log " + LogPath() + ": " + std::strerror(errno);
  const bool output_too = IsSameFile(STDOUT_FILENO, STDERR_FILENO);
  const bool ok = dup2(fd, STDERR_FILENO) >= 0 && (!output_too || dup2(fd, STDOUT_FILENO) >= 0);
  close(fd);
  return ok ? "" : "cannot write to the log " + LogPath() + ": " + std::strerror(errno);
}

}  // namespace

sigset_t EndSignals() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  return ends;
}

sigset_t HandledSignals() {
  sigset_t handled = EndSignals();
  sigaddset(&handled, SIGHUP);
  return handled;
}

void PrepareSignals() {
  const sigset_t handled = HandledSignals();
  pthread_sigmask(SIG_BLOCK, &handled, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  struct stat info {};
  if (fstat(STDERR_FILENO, &info) != 0 || !S_ISREG(info.st_mode)) return;
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/fd/2", path.data(), path.size());
  if (length > 0) LogPath().assign(path.data(), static_cast<size_t>(length));
}

void OnHangup(const std::function<std::string(LogLevel*)>& read_level) {
  const std::string lost = OpenLogAnew();
  if (!lost.empty()) LogError(lost);
  LogLevel level = LogLevel::kInfo;
  const std::string unread = read_level(&level);
  if (!unread.empty()) {
    LogWarning("SIGHUP: the log is open anew, the log level stays: " + unread);
    return;
  }
  SetLogLevel(level);
  LogInfo("SIGHUP: the log is open anew, the log level read again; other options need a restart");
}

struct SignalThread::State {
  std::mutex mutex;
  std::condition_variable changed;
  bool started = false;
  bool ends = false;
  bool has_ended = false;
};

SignalThread::SignalThread(std::function<std::string(LogLevel*)> read_level)
    // Never freed: the thread outlives this object when the start has failed.
    : state_(new State), thread_([state = state_, read_level = std::move(read_level)] {
        pthread_setname_np(pthread_self(), "signals");
        const sigset_t handled = HandledSignals();
        while (true) {
          int signal = 0;
          if (sigwait(&handled, &signal) != 0) continue;
          if (signal == SIGHUP) {
            OnHangup(read_level);
            continue;
          }
          std::unique_lock<std::mutex> lock(state->mutex);
          if (!state->started) _exit(0);
          state->ends = true;
          state->changed.notify_all();
          const auto has_ended = [state] { return state->has_ended; };
          if (state->changed.wait_for(lock, kEndWithin, has_ended)) return;
          LogWarning("it ends without a goodbye, for others did not answer within " +
                     std::to_string(kEndWithin.count()) + " ms: they take it for dead");
          _exit(0);
        }
      }) {}

SignalThread::~SignalThread() {
  bool joins = false;
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->has_ended = true;
    joins = state_->ends;
  }
  state_->changed.notify_all();
  if (joins) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void SignalThread::AwaitEnd() {
  std::unique_lock<std::mutex> lock(state_->mutex);
  state_->started = true;
  state_->changed.wait(lock, [this] { return state_->ends; });
}

}  // namespace onetrip
