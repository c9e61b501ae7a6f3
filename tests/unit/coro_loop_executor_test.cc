#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "client_core/coro/loop_executor.h"
#include "client_core/coro/socket.h"
#include "client_core/coro/sync.h"

namespace onetrip {
namespace {

class LoopExecutorTest : public testing::Test {
 protected:
  SystemClock clock_;
  LoopExecutor executor_{clock_, 1};
};

Task<uint64_t> MeasureSleep(Executor& executor, uint64_t delay_ns) {
  const uint64_t start_ns = executor.NowNs();
  co_await executor.SleepFor(delay_ns);
  co_return executor.NowNs() - start_ns;
}

TEST_F(LoopExecutorTest, ShortSleepsAreShort) {
  uint64_t shortest_ns = UINT64_MAX;
  for (int i = 0; i < 50; ++i) {
    const uint64_t slept_ns = BlockOn(executor_, MeasureSleep(executor_, 50'000));
    EXPECT_GE(slept_ns, 50'000U);
    shortest_ns = std::min(shortest_ns, slept_ns);
  }
  // The best of many, so that a busy machine cannot fail this: millisecond timers would.
  EXPECT_LT(shortest_ns, 900'000U);
}

TEST_F(LoopExecutorTest, SleepsOfManyTasksEndInOrder) {
  std::vector<int> order;
  auto sleeper = [](Executor& e, uint64_t delay_ns, std::vector<int>* out, int id) -> Task<void> {
    co_await e.SleepFor(delay_ns);
    out->push_back(id);
  };
  std::vector<Task<void>> tasks;
  tasks.push_back(sleeper(executor_, 9'000'000, &order, 3));
  tasks.push_back(sleeper(executor_, 1'000'000, &order, 1));
  tasks.push_back(sleeper(executor_, 5'000'000, &order, 2));
  auto all = [](std::vector<Task<void>> t) -> Task<void> { co_await WhenAll(std::move(t)); };
  BlockOn(executor_, all(std::move(tasks)));
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST_F(LoopExecutorTest, PostedWorkRunsOnTheLoopInOrderAndStopEndsIt) {
  std::vector<int> order;
  std::thread::id loop_id;
  std::thread loop([&] {
    loop_id = std::this_thread::get_id();
    executor_.Run();
  });
  std::atomic<bool> same_thread{true};
  for (int i = 0; i < 1000; ++i) {
    executor_.Post([&, i] {
      order.push_back(i);
      if (std::this_thread::get_id() != loop_id) same_thread = false;
    });
  }
  executor_.Post([&] { executor_.Stop(); });
  loop.join();
  EXPECT_TRUE(same_thread);
  ASSERT_EQ(order.size(), 1000U);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
}

TEST_F(LoopExecutorTest, PostsFromManyThreadsAllArrive) {
  std::atomic<int> count{0};
  std::thread loop([&] { executor_.Run(); });
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) executor_.Post([&] { ++count; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  executor_.Post([&] { executor_.Stop(); });
  loop.join();
  EXPECT_EQ(count, 2000);
}

TEST_F(LoopExecutorTest, AStopBeforeRunIsRemembered) {
  executor_.Stop();
  executor_.Run();
  SUCCEED();
}

TEST_F(LoopExecutorTest, AnIdleLoopSleepsAndTakesFewTurns) {
  auto idle = [](Executor& e) -> Task<void> { co_await e.SleepFor(100'000'000); };
  const uint64_t turns = executor_.turns();
  BlockOn(executor_, idle(executor_));
  EXPECT_LE(executor_.turns() - turns, 5U);
}

TEST_F(LoopExecutorTest, BeforeSleepHooksRunInEveryTurn) {
  static int calls = 0;
  calls = 0;
  executor_.AddBeforeSleep([](void* arg) { ++*static_cast<int*>(arg); }, &calls);
  auto turns = [](Executor& e) -> Task<void> {
    for (int i = 0; i < 10; ++i) co_await e.Yield();
  };
  BlockOn(executor_, turns(executor_));
  EXPECT_GE(calls, 10);
}

class SocketPair {
 public:
  SocketPair() { CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds_) == 0); }
  ~SocketPair() {
    close(fds_[0]);
    close(fds_[1]);
  }
  [[nodiscard]] int here() const { return fds_[0]; }
  [[nodiscard]] int there() const { return fds_[1]; }

 private:
  int fds_[2];
};

TEST_F(LoopExecutorTest, AWatcherReportsReadsAlwaysAndWritesWhenAsked) {
  struct Seen {
    int reads = 0;
    int writes = 0;
    int fd = -1;
  } seen;
  const SocketPair pair;
  seen.fd = pair.here();
  FdWatcher watcher(
      executor_, pair.here(),
      [](void* arg) {
        auto* s = static_cast<Seen*>(arg);
        char byte = 0;
        while (read(s->fd, &byte, 1) == 1) ++s->reads;
      },
      [](void* arg) { ++static_cast<Seen*>(arg)->writes; }, &seen);
  watcher.WatchReads(true);
  ASSERT_EQ(write(pair.there(), "abc", 3), 3);
  executor_.RunOnce();
  EXPECT_EQ(seen.reads, 3);
  EXPECT_EQ(seen.writes, 0);
  watcher.WatchWrites(true);
  executor_.RunOnce();
  EXPECT_EQ(seen.writes, 1);
  watcher.WatchWrites(false);
  watcher.WatchReads(false);
  ASSERT_EQ(write(pair.there(), "d", 1), 1);
  executor_.Post([] {});
  executor_.RunOnce();
  EXPECT_EQ(seen.reads, 3);
}

TEST_F(LoopExecutorTest, AWatcherMayDieInItsCallback) {
  const SocketPair pair;
  std::unique_ptr<FdWatcher> watcher;
  watcher = std::make_unique<FdWatcher>(
      executor_, pair.here(), [](void* arg) { static_cast<decltype(watcher)*>(arg)->reset(); },
      [](void*) {}, &watcher);
  watcher->WatchReads(true);
  ASSERT_EQ(write(pair.there(), "a", 1), 1);
  executor_.RunOnce();
  EXPECT_EQ(watcher, nullptr);
}

TEST(SocketTest, ATakenPortIsNamedInOneLine) {
  std::string reason;
  Result<UniqueFd> first = ListenTcp("127.0.0.1", 0, 16, &reason);
  ASSERT_TRUE(first.ok()) << reason;
  const uint16_t port = LocalPort(first->get());
  EXPECT_NE(port, 0);
  const Result<UniqueFd> second = ListenTcp("127.0.0.1", port, 16, &reason);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(reason.find("port " + std::to_string(port) + " is taken"), std::string::npos) << reason;
  EXPECT_EQ(reason.find('\n'), std::string::npos);
}

TEST(SocketTest, AnAddressOfNobodyIsRefused) {
  std::string reason;
  EXPECT_FALSE(ListenTcp("192.0.2.1", 0, 16, &reason).ok());
  EXPECT_FALSE(reason.empty());
}

class UnixPath {
 public:
  UnixPath() : path_("/tmp/onetrip_coro_test_" + std::to_string(getpid()) + ".sock") {}
  ~UnixPath() { unlink(path_.c_str()); }
  [[nodiscard]] const std::string& get() const { return path_; }

 private:
  std::string path_;
};

TEST(SocketTest, UnixSocketsReplaceStaleFilesButNotLiveOnesOrOtherFiles) {
  const UnixPath path;
  std::string reason;
  {
    const Result<UniqueFd> first = ListenUnix(path.get(), 0700, 16, &reason);
    ASSERT_TRUE(first.ok()) << reason;
    EXPECT_FALSE(ListenUnix(path.get(), 0, 16, &reason).ok());
    EXPECT_NE(reason.find("taken"), std::string::npos) << reason;
  }
  EXPECT_TRUE(ListenUnix(path.get(), 0, 16, &reason).ok()) << reason;
  unlink(path.get().c_str());
  std::ofstream(path.get()) << "text";
  EXPECT_FALSE(ListenUnix(path.get(), 0, 16, &reason).ok());
  EXPECT_NE(reason.find("not a socket"), std::string::npos) << reason;
}

TEST(SocketTest, AnUnwritableOrTooLongUnixPathIsRefused) {
  std::string reason;
  EXPECT_FALSE(ListenUnix("/nonexistent-folder/a.sock", 0, 16, &reason).ok());
  EXPECT_NE(reason.find("directory"), std::string::npos) << reason;
  EXPECT_FALSE(ListenUnix("/tmp/" + std::string(200, 'x'), 0, 16, &reason).ok());
  EXPECT_NE(reason.find("107 bytes"), std::string::npos) << reason;
}

TEST(SocketTest, AcceptedConnectionsKnowTheirAddresses) {
  std::string reason;
  Result<UniqueFd> listener = ListenTcp("127.0.0.1", 0, 16, &reason);
  ASSERT_TRUE(listener.ok()) << reason;
  bool exhausted = true;
  EXPECT_FALSE(Accept(listener->get(), &exhausted).valid());
  EXPECT_FALSE(exhausted);
  const UniqueFd client(socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  ASSERT_EQ(getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  ASSERT_EQ(connect(client.get(), reinterpret_cast<sockaddr*>(&address), length), 0);
  const UniqueFd accepted = Accept(listener->get(), &exhausted);
  ASSERT_TRUE(accepted.valid());
  TuneTcp(accepted.get(), 300);
  EXPECT_EQ(PeerAddress(accepted.get()), LocalAddress(client.get()));
  EXPECT_EQ(LocalAddress(accepted.get()),
            "127.0.0.1:" + std::to_string(LocalPort(listener->get())));
}

}  // namespace
}  // namespace onetrip
