// Agents as processes of their own: what they and the node see of each other's memory, and what a
// death on either side leaves behind. The other process is this program, begun again with a task.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>

#include "client_core/base/clock.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/fabric/shm.h"
#include "client_core/fabric/shm_segment.h"
#include "memnode/shm_server.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

using testing::HasSubstr;
using Outcome = ControlReply::Outcome;

constexpr uint64_t kCluster = 21;
constexpr NodeId kNode{0};
constexpr int kSkipped = 77;
// Where the other process says something to this one.
constexpr int kOutput = 100;
// Offsets of the words that the processes meet at.
constexpr uint64_t kFaaWord = 0;
constexpr uint64_t kCasWord = 8;
constexpr uint64_t kBulk = 4096;
constexpr uint64_t kBulkBytes = 4096;
constexpr uint64_t kMarkWord = 64;

ShmAttachOptions AttachOptions(const std::string& path, uint32_t worker) {
  return {.path = path,
          .cluster = kCluster,
          .node = kNode,
          .worker = WorkerId{worker},
          .timeout_ms = 20'000};
}

// ---- The other process

Status Post(Executor& executor, ShmFabric& fabric, const RoundTripPtr& rt) {
  return BlockOn(executor, [](ShmFabric* on, RoundTripPtr posted) -> Task<Status> {
    co_return co_await on->Post(posted);
  }(&fabric, rt));
}

// Adds `rounds` to the FAA word and, by CAS, to the other; writes bulk words that are all of one
// writer, and checks that each word it reads is whole: its halves are each other's complement.
int Hammer(ShmSegment& segment, uint32_t worker, int rounds) {
  const SystemClock clock;
  LoopExecutor executor(clock, worker);
  ShmFabric fabric(clock, {&segment});
  uint64_t expected = 0;
  for (int i = 0; i < rounds; ++i) {
    const RoundTripPtr rt = fabric.NewRoundTrip();
    const auto low = static_cast<uint32_t>(worker * 1'000'000 + static_cast<uint32_t>(i));
    const uint64_t word = uint64_t{~low} << 32 | low;
    std::byte* out = rt->Reserve(kBulkBytes);
    for (uint64_t at = 0; at < kBulkBytes; at += 8) std::memcpy(out + at, &word, 8);
    rt->Write({kNode, kBulk}, out, kBulkBytes);
    rt->Faa({kNode, kFaaWord}, 1);
    const std::byte* in = rt->Read({kNode, kBulk}, kBulkBytes);
    if (!Post(executor, fabric, rt).ok()) return 10;
    for (uint64_t at = 0; at < kBulkBytes; at += 8) {
      uint64_t seen = 0;
      std::memcpy(&seen, in + at, 8);
      if (static_cast<uint32_t>(seen >> 32) != ~static_cast<uint32_t>(seen)) return 11;
    }
    while (true) {
      const RoundTripPtr cas = fabric.NewRoundTrip();
      cas->Cas({kNode, kCasWord}, expected, expected + 1);
      if (!Post(executor, fabric, cas).ok()) return 12;
      const uint64_t seen = cas->op(0).result;
      const bool won = seen == expected;
      expected = won ? expected + 1 : seen;
      if (won) break;
    }
  }
  return 0;
}

void SayAndWait(const char* word) {
  (void)!write(kOutput, word, std::strlen(word));
  for (;;) pause();
}

// One task per first argument; returns what the process exits with.
int RunTask(const std::string& task, const std::string& path, uint32_t worker, int rounds) {
  std::string reason;
  if (task == "as-nobody") {
    if (setresuid(65534, 65534, 65534) != 0) return kSkipped;
    const auto refused = ShmSegment::Attach(AttachOptions(path, worker), &reason);
    if (refused.ok()) return 1;
    const bool is_said =
        reason.find("refused by the node: the peer runs as another user") != std::string::npos;
    return is_said ? 0 : 2;
  }
  auto attached = ShmSegment::Attach(AttachOptions(path, worker), &reason);
  if (!attached.ok()) {
    (void)!write(kOutput, reason.data(), reason.size());
    return 20;
  }
  ShmSegment& segment = **attached;
  if (task == "hammer") return Hammer(segment, worker, rounds);
  if (task == "hammer-forever") {
    (void)!write(kOutput, "up", 2);
    return Hammer(segment, worker, 1 << 30);
  }
  if (task == "hang") {
    for (int number = 1; number < NSIG; ++number) signal(number, SIG_IGN);
    SayAndWait("up");
  }
  if (task == "ask") {
    for (int i = 0; i < rounds; ++i) {
      const ControlReply reply = segment.Handle({.kind = ControlRequest::Kind::kAlloc,
                                                 .size_class = SizeClass(3),
                                                 .owner = WorkerId{worker},
                                                 .block = GlobalAddr()});
      if (reply.outcome != Outcome::kDone || reply.block.block() != worker) return 30;
    }
    return 0;
  }
  if (task == "keep") {
    // Goes on writing although its node is gone: a process that hangs and does not look.
    (void)!write(kOutput, "up", 2);
    for (;;) __atomic_fetch_add(reinterpret_cast<uint64_t*>(segment.base() + kMarkWord), 1, 5);
  }
  return 99;
}

// Before the tests of a program that was begun with a task.
class TaskOfAnotherProcess : public testing::Environment {
 public:
  void SetUp() override {
    const char* task = std::getenv("SHM_TEST_TASK");
    if (task == nullptr) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const std::string path = std::getenv("SHM_TEST_PATH");
    const auto worker = static_cast<uint32_t>(std::atoi(std::getenv("SHM_TEST_WORKER")));
    _exit(RunTask(task, path, worker, std::atoi(std::getenv("SHM_TEST_ROUNDS"))));
  }
};
const testing::Environment* const kTask =
    testing::AddGlobalTestEnvironment(new TaskOfAnotherProcess);

// ---- This process

class OtherProcess {
 public:
  OtherProcess(const std::string& task, const std::string& path, uint32_t worker, int rounds = 0) {
    std::array<int, 2> ends{};
    CHECK(pipe2(ends.data(), O_CLOEXEC) == 0);
    // All that allocates comes before the fork: other threads may hold the allocator then.
    std::vector<std::string> variables = {"SHM_TEST_TASK=" + task, "SHM_TEST_PATH=" + path,
                                          "SHM_TEST_WORKER=" + std::to_string(worker),
                                          "SHM_TEST_ROUNDS=" + std::to_string(rounds)};
    std::vector<char*> environment(variables.size());
    std::transform(variables.begin(), variables.end(), environment.begin(),
                   [](std::string& variable) { return variable.data(); });
    for (char** at = environ; *at != nullptr; ++at) environment.push_back(*at);
    environment.push_back(nullptr);
    std::string name = "other";
    std::array<char*, 2> arguments = {name.data(), nullptr};
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], kOutput);
      dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
      execve("/proc/self/exe", arguments.data(), environment.data());
      _exit(127);
    }
    CHECK(pid_ > 0);
    close(ends[1]);
    output_ = UniqueFd(ends[0]);
  }
  ~OtherProcess() {
    if (pid_ > 0) kill(pid_, SIGKILL);
    if (pid_ > 0) (void)Wait();
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Returns what it says; waits for something, or its end.
  std::string Hear() {
    std::array<char, 512> text{};
    const ssize_t got = read(output_.get(), text.data(), text.size());
    return {text.data(), static_cast<size_t>(got > 0 ? got : 0)};
  }
  // Returns what it exited with, or minus the signal that ended it.
  int Wait() {
    int status = 0;
    CHECK(waitpid(std::exchange(pid_, -1), &status, 0) > 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  UniqueFd output_;
};

// A node on a segment, or on a file; its memory is served as it is.
class BlockCounter final : public MemoryEndpoint {
 public:
  explicit BlockCounter(Backing& backing) : backing_(backing) {}
  [[nodiscard]] std::byte* base() const override { return backing_.base(); }
  [[nodiscard]] uint64_t bytes() const override { return backing_.bytes(); }
  // Answers with a block whose number is the asker's.
  ControlReply Handle(const ControlRequest& request) override {
    return {Outcome::kDone, GlobalAddr(1, request.owner.value * kBlockBytes)};
  }

 private:
  Backing& backing_;
};

class MemnodeShmProcessTest : public testing::Test {
 protected:
  MemnodeShmProcessTest() {
    std::string name = testing::TempDir() + "shm-XXXXXX";
    CHECK(mkdtemp(name.data()) != nullptr);
    directory_ = name;
    path_ = directory_ + "/node.sock";
  }
  ~MemnodeShmProcessTest() override {
    Stop();
    std::filesystem::remove_all(directory_);
  }

  void Stop() {
    server_.reset();
    endpoint_.reset();
    backing_.reset();
  }
  void Begin(BackingOptions::Kind kind) {
    Stop();
    std::string reason;
    auto backing = Backing::Open({.kind = kind,
                                  .bytes = kRegionBytes,
                                  .path = directory_ + "/memory",
                                  .owner = MemoryOwner{.cluster = kCluster, .node = kNode}},
                                 &reason);
    ASSERT_TRUE(backing.ok()) << reason;
    backing_ = std::move(*backing);
    ASSERT_TRUE(backing_->EndClients(/*grace_ms=*/0, /*kill_ms=*/60'000, &reason).ok()) << reason;
    ASSERT_TRUE(backing_->MarkInUse(&reason).ok()) << reason;
    endpoint_ = std::make_unique<BlockCounter>(*backing_);
    const uint64_t whole = uint64_t{~0U} << 32;
    for (uint64_t at = 0; at < kBulkBytes; at += 8) {
      std::memcpy(backing_->base() + kBulk + at, &whole, 8);
    }
    auto server = ShmServer::Start(
        *endpoint_, *backing_, {.path = path_, .cluster = kCluster, .node = kNode},
        [this](const ShmDeparture& departure) {
          const std::lock_guard<std::mutex> lock(mutex_);
          departures_.push_back(departure);
        },
        &reason);
    ASSERT_TRUE(server.ok()) << reason;
    server_ = std::move(*server);
  }
  uint64_t Word(uint64_t offset) {
    return __atomic_load_n(reinterpret_cast<uint64_t*>(backing_->base() + offset),
                           __ATOMIC_ACQUIRE);
  }
  // Waits for as many since the last call.
  std::vector<ShmDeparture> AwaitDepartures(size_t count) {
    while (true) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (departures_.size() >= count) return std::exchange(departures_, {});
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::string directory_;
  std::string path_;
  std::unique_ptr<Backing> backing_;
  std::unique_ptr<BlockCounter> endpoint_;
  std::unique_ptr<ShmServer> server_;
  std::mutex mutex_;
  std::vector<ShmDeparture> departures_;  // guarded by mutex_
};

TEST_F(MemnodeShmProcessTest, SumsOverProcessesAreExactAndBulkWordsWhole) {
  for (const auto kind : {BackingOptions::Kind::kSegment, BackingOptions::Kind::kFile}) {
    Begin(kind);
    const int rounds = Scaled(20'000);
    std::vector<std::unique_ptr<OtherProcess>> agents;
    for (uint32_t worker = 1; worker <= 3; ++worker) {
      agents.push_back(std::make_unique<OtherProcess>("hammer", path_, worker, rounds));
    }
    for (const auto& agent : agents) EXPECT_EQ(agent->Wait(), 0);
    EXPECT_EQ(Word(kFaaWord), 3U * static_cast<uint64_t>(rounds));
    EXPECT_EQ(Word(kCasWord), 3U * static_cast<uint64_t>(rounds));
    const auto departures = AwaitDepartures(3);
    for (const ShmDeparture& departure : departures) EXPECT_TRUE(departure.detached);
  }
}

TEST_F(MemnodeShmProcessTest, EveryProcessGetsTheAnswersToItsOwnRequests) {
  Begin(BackingOptions::Kind::kSegment);
  std::vector<std::unique_ptr<OtherProcess>> agents;
  for (uint32_t worker = 1; worker <= 3; ++worker) {
    agents.push_back(std::make_unique<OtherProcess>("ask", path_, worker, Scaled(2000)));
  }
  for (const auto& agent : agents) EXPECT_EQ(agent->Wait(), 0);
  EXPECT_EQ(server_->stats().requests, 3U * static_cast<uint64_t>(Scaled(2000)));
}

TEST_F(MemnodeShmProcessTest, AnAgentThatDiesInTheMiddleLeavesTheNodeServing) {
  Begin(BackingOptions::Kind::kSegment);
  for (uint32_t worker = 1; worker <= 5; ++worker) {
    OtherProcess victim("hammer-forever", path_, worker);
    ASSERT_EQ(victim.Hear(), "up");
    const uint64_t before = Word(kFaaWord);
    while (Word(kFaaWord) < before + 100) std::this_thread::yield();
    const pid_t pid = victim.pid();
    kill(pid, SIGKILL);
    EXPECT_EQ(victim.Wait(), -SIGKILL);
    const ShmDeparture departure = AwaitDepartures(1).front();
    EXPECT_EQ(departure.process, pid);
    EXPECT_THAT(departure.workers, testing::ElementsAre(WorkerId{worker}));
    EXPECT_FALSE(departure.detached);
    OtherProcess next("hammer", path_, 100 + worker, 10);
    EXPECT_EQ(next.Wait(), 0);
    EXPECT_TRUE(AwaitDepartures(1).front().detached);
  }
}

TEST_F(MemnodeShmProcessTest, AFenceEndsAProcessThatIgnoresEverything) {
  Begin(BackingOptions::Kind::kSegment);
  OtherProcess deaf("hang", path_, 1);
  OtherProcess frozen("hammer-forever", path_, 2);
  ASSERT_EQ(deaf.Hear(), "up");
  ASSERT_EQ(frozen.Hear(), "up");
  kill(deaf.pid(), SIGTERM);
  kill(frozen.pid(), SIGSTOP);
  EXPECT_EQ(server_->stats().processes, 2U);
  EXPECT_TRUE(server_->Fence(WorkerId{1}, 60'000).ok());
  EXPECT_TRUE(server_->Fence(WorkerId{2}, 60'000).ok());
  // They have ended already: nothing of them may come later.
  const uint64_t sum = Word(kFaaWord);
  EXPECT_EQ(deaf.Wait(), -SIGKILL);
  EXPECT_EQ(frozen.Wait(), -SIGKILL);
  EXPECT_EQ(Word(kFaaWord), sum);
  AwaitDepartures(2);

  OtherProcess back("hammer", path_, 1, 1);
  EXPECT_THAT(back.Hear(), HasSubstr("the worker was fenced"));
  EXPECT_EQ(back.Wait(), 20);
  EXPECT_TRUE(server_->Fence(WorkerId{77}, 0).ok()) << "of whom nothing was ever heard";
}

TEST_F(MemnodeShmProcessTest, AWorkerThatALiveProcessHasIsRefusedToAnother) {
  Begin(BackingOptions::Kind::kSegment);
  OtherProcess first("hang", path_, 1);
  ASSERT_EQ(first.Hear(), "up");
  OtherProcess second("hammer", path_, 1, 1);
  EXPECT_THAT(second.Hear(), HasSubstr("another live process has this worker id"));
  EXPECT_EQ(second.Wait(), 20);
  kill(first.pid(), SIGKILL);
  (void)first.Wait();
  OtherProcess third("hammer", path_, 1, 1);
  EXPECT_EQ(third.Wait(), 0);
}

TEST_F(MemnodeShmProcessTest, AnAgentOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  Begin(BackingOptions::Kind::kSegment);
  chmod(directory_.c_str(), 0755);
  chmod(path_.c_str(), 0666);
  OtherProcess stranger("as-nobody", path_, 1);
  EXPECT_EQ(stranger.Wait(), 0);
  EXPECT_EQ(server_->stats().refused, 1U);
}

TEST_F(MemnodeShmProcessTest, ANodeThatComesBackEndsWhoStillMapsItsFileAndHasEveryByte) {
  Begin(BackingOptions::Kind::kFile);
  OtherProcess keeper("keep", path_, 1);
  ASSERT_EQ(keeper.Hear(), "up");
  while (Word(kMarkWord) == 0) std::this_thread::yield();
  std::memset(backing_->base() + 8192, 0x42, 8192);
  const uint64_t incarnation = backing_->incarnation();
  Stop();
  Begin(BackingOptions::Kind::kFile);
  EXPECT_TRUE(backing_->is_adopted());
  EXPECT_EQ(backing_->incarnation(), incarnation);
  const uint64_t mark = Word(kMarkWord);
  EXPECT_GT(mark, 0U);
  EXPECT_EQ(keeper.Wait(), -SIGKILL);
  EXPECT_EQ(Word(kMarkWord), mark);
  EXPECT_EQ(std::to_integer<int>(backing_->base()[8192]), 0x42);
  EXPECT_EQ(std::memcmp(backing_->base() + 8192, backing_->base() + 8193, 8191), 0);
  OtherProcess next("hammer", path_, 2, 10);
  EXPECT_EQ(next.Wait(), 0);
}

}  // namespace
}  // namespace onetrip
