// Signals of the programs: SIGTERM and SIGINT end them in order, SIGHUP has them open their log
// anew (as after logrotate has renamed it) and read their log level again, SIGPIPE does nothing: a
// peer that has gone is an error of one write.
#ifndef ONETRIP_CLIENT_CORE_BASE_PROCESS_SIGNALS_H_
#define ONETRIP_CLIENT_CORE_BASE_PROCESS_SIGNALS_H_

#include <csignal>
#include <functional>
#include <string>
#include <thread>

#include "client_core/base/log.h"

namespace onetrip {

// SIGTERM and SIGINT; SIGHUP, too.
sigset_t EndSignals();
sigset_t HandledSignals();

// Blocks the handled signals for this thread and all that it starts, ignores SIGPIPE, and notes
// which file standard error goes to. Main thread, before others start.
void PrepareSignals();

// Acts on SIGHUP: opens the file that standard error went to at the start anew, by its path, if it
// is one, and sets the level that `read_level` finds. `read_level` returns "" or the reason why
// the options cannot be read now, which is logged; all stays as it is then.
void OnHangup(const std::function<std::string(LogLevel*)>& read_level);

// Waits for signals, in a thread of its own, from the construction on. An end while the process
// still starts, when nothing depends on it yet, ends it at once with exit code 0. One that then
// takes longer than 3 s, because others are dead, is not waited for: the process ends as it is.
class SignalThread {
 public:
  // REQUIRES: PrepareSignals().
  explicit SignalThread(std::function<std::string(LogLevel*)> read_level);
  // The process has ended in order, or its start has failed. REQUIRES: what must end in order was
  // made after this object.
  ~SignalThread();
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  // The process has started. Returns when it is to end.
  void AwaitEnd();

 private:
  struct State;
  State* const state_;
  std::thread thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_PROCESS_SIGNALS_H_
