// Measures the cost of coroutines, sleeps and loop turns.
#include <benchmark/benchmark.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client_core/coro/loop_executor.h"
#include "client_core/coro/sim_executor.h"
#include "client_core/coro/socket.h"
#include "client_core/coro/sync.h"

namespace onetrip {
namespace {

Task<uint64_t> Level(int depth, uint64_t value) {
  if (depth <= 1) co_return value + 1;
  co_return co_await Level(depth - 1, value) + 1;
}

Task<uint64_t> Repeat(int depth, benchmark::State* state) {
  uint64_t sum = 0;
  for (auto unused : *state) sum += co_await Level(depth, sum);
  co_return sum;
}

// A chain of `depth` tasks that all end inline, as a GET on shm does.
void BM_InlineAwaits(benchmark::State& state) {
  SimExecutor executor(1);
  benchmark::DoNotOptimize(BlockOn(executor, Repeat(static_cast<int>(state.range(0)), &state)));
}
BENCHMARK(BM_InlineAwaits)->Arg(1)->Arg(6)->Arg(12);

Task<void> Yields(Executor* executor, benchmark::State* state) {
  for (auto unused : *state) co_await executor->Yield();
}

void BM_YieldSim(benchmark::State& state) {
  SimExecutor executor(1);
  BlockOn(executor, Yields(&executor, &state));
}
BENCHMARK(BM_YieldSim);

void BM_YieldLoop(benchmark::State& state) {
  const SystemClock clock;
  LoopExecutor executor(clock, 1);
  BlockOn(executor, Yields(&executor, &state));
}
BENCHMARK(BM_YieldLoop);

Task<void> Sleeps(Executor* executor, uint64_t delay_ns, benchmark::State* state) {
  for (auto unused : *state) co_await executor->SleepFor(delay_ns);
}

// Real time per sleep of 50 us: the excess is the timer's error.
void BM_Sleep50us(benchmark::State& state) {
  const SystemClock clock;
  LoopExecutor executor(clock, 1);
  BlockOn(executor, Sleeps(&executor, 50'000, &state));
}
BENCHMARK(BM_Sleep50us)->UseRealTime();

Task<void> Vote(Quorum<>::Participant participant) {
  participant.Report(true);
  co_return;
}

Task<void> Quorums(Executor* executor, Gate* gate, benchmark::State* state) {
  for (auto unused : *state) {
    Quorum<> quorum(*executor, 3);
    for (int i = 0; i < 3; ++i) executor->Spawn(*gate, Vote(quorum.Join()));
    benchmark::DoNotOptimize(co_await quorum.Wait(2));
  }
}

void BM_QuorumOfThreeInline(benchmark::State& state) {
  SimExecutor executor(1);
  Gate gate(executor);
  BlockOn(executor, Quorums(&executor, &gate, &state));
}
BENCHMARK(BM_QuorumOfThreeInline);

struct Echo {
  int fd;
};

// One loop turn that serves one readable socket: epoll_wait, read, write; the peer's write and read
// are in the figure too. With range 1 a timer 100 ms ahead is pending, which must cost nothing.
void BM_SocketTurn(benchmark::State& state) {
  const SystemClock clock;
  LoopExecutor executor(clock, 1);
  int fds[2];
  CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0);
  Echo echo{fds[0]};
  FdWatcher watcher(
      executor, fds[0],
      [](void* arg) {
        char bytes[64];
        const int fd = static_cast<Echo*>(arg)->fd;
        const ssize_t n = read(fd, bytes, sizeof(bytes));
        CHECK(write(fd, bytes, static_cast<size_t>(n)) == n);
      },
      [](void*) {}, &echo);
  watcher.WatchReads(true);
  if (state.range(0) != 0)
    executor.At(
        executor.NowNs() + 3'600'000'000'000, [](void*) {}, nullptr);
  char bytes[64] = {};
  for (auto unused : state) {
    CHECK(write(fds[1], bytes, sizeof(bytes)) == sizeof(bytes));
    executor.RunOnce();
    CHECK(read(fds[1], bytes, sizeof(bytes)) == sizeof(bytes));
  }
  watcher.WatchReads(false);
  close(fds[0]);
  close(fds[1]);
}
BENCHMARK(BM_SocketTurn)->Arg(0)->Arg(1);

}  // namespace
}  // namespace onetrip
