// These tests check how signals affect the programs, and that a successor waits for what a killed
// process still holds.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "client_core/base/held_by_predecessor.h"
#include "client_core/base/process_signals.h"

namespace onetrip {
namespace {

class ProcessSignals : public testing::Test {
 protected:
  ProcessSignals() {
    std::string name = testing::TempDir() + "onetrip_signals.XXXXXX";
    dir_ = mkdtemp(name.data());
    log_ = dir_ + "/log";
  }
  ~ProcessSignals() override { std::filesystem::remove_all(dir_); }

  // A process whose standard error is the log and that does `what` with its signal thread.
  template <typename What>
  pid_t Fork(const What& what) const {
    const pid_t pid = fork();
    if (pid != 0) return pid;
    if (std::freopen(log_.c_str(), "a", stderr) == nullptr) _exit(9);
    PrepareSignals();
    SignalThread signals([](LogLevel* level) {
      *level = LogLevel::kInfo;
      return std::string();
    });
    LogInfo("began");
    _exit(what(signals));
  }
  static int ExitCode(pid_t pid) {
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  void AwaitInLog(const std::string& word) const {
    std::string text;
    while (text.find(word) == std::string::npos) {
      std::ostringstream all;
      all << std::ifstream(log_).rdbuf();
      text = all.str();
    }
  }

  std::string dir_;
  std::string log_;
};

TEST_F(ProcessSignals, AnEndInOrderIsTheProgramsOwn) {
  const pid_t pid = Fork([](SignalThread& signals) {
    signals.AwaitEnd();
    return 7;
  });
  AwaitInLog("began");
  // AwaitEnd may not have been reached: then the process counts as one that still starts.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(pid, SIGTERM);
  EXPECT_EQ(ExitCode(pid), 7);
}

TEST_F(ProcessSignals, WhoStillStartsEndsAtOnce) {
  const pid_t pid = Fork([](SignalThread&) {
    pause();
    return 7;
  });
  AwaitInLog("began");
  kill(pid, SIGTERM);
  EXPECT_EQ(ExitCode(pid), 0);
}

TEST_F(ProcessSignals, AnEndThatWaitsForTheDeadIsCutShort) {
  const pid_t pid = Fork([](SignalThread& signals) {
    signals.AwaitEnd();
    sleep(100);
    return 7;
  });
  AwaitInLog("began");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto began = std::chrono::steady_clock::now();
  kill(pid, SIGTERM);
  EXPECT_EQ(ExitCode(pid), 0);
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(20));
  AwaitInLog("without a goodbye");
}

TEST_F(ProcessSignals, AHangupOpensTheLogAnewAndAPipeSignalDoesNothing) {
  const pid_t pid = Fork([](SignalThread& signals) {
    signals.AwaitEnd();
    return 7;
  });
  AwaitInLog("began");
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::filesystem::rename(log_, log_ + ".1");
  kill(pid, SIGPIPE);
  kill(pid, SIGHUP);
  AwaitInLog("SIGHUP");
  kill(pid, SIGTERM);
  EXPECT_EQ(ExitCode(pid), 7);
}

TEST(HeldByPredecessor, IsWaitedForAndNotForEver) {
  int tries = 0;
  EXPECT_TRUE(TryUntilPredecessorEnds([&tries] { return ++tries == 5; }));
  EXPECT_EQ(tries, 5);
  EXPECT_FALSE(TryUntilPredecessorEnds([] { return false; }));
}

}  // namespace
}  // namespace onetrip
