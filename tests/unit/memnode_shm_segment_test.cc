// The agent's side of the socket: what it does not believe of a node, and that a node that goes is
// noticed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/sync.h"
#include "client_core/fabric/shm.h"
#include "client_core/fabric/shm_segment.h"
#include "memnode/shm_server.h"
#include "tests/support/scale.h"
#include "tests/unit/memnode_shm_fixture.h"

namespace onetrip {
namespace {

// A node that answers as the test says.
class MemnodeShmSegmentTest : public MemnodeShmServerTest {
 protected:
  ~MemnodeShmSegmentTest() override {
    if (node_.joinable()) node_.join();
  }

  // Greets the first process that comes, hands `memory_bytes` of a segment of one page over, then
  // answers the first request with `answer` of its number, if there is one.
  void StartNode(uint64_t memory_bytes, std::function<ShmFrame(uint32_t sequence)> answer) {
    auto listener = ListenUnix(path_, 0600, 1, &reason_);
    CHECK(listener.ok());
    node_ =
        std::thread([memory_bytes, answer = std::move(answer), listening = std::move(*listener)] {
          pollfd waiting{.fd = listening.get(), .events = POLLIN, .revents = 0};
          CHECK(poll(&waiting, 1, -1) == 1);
          const UniqueFd fd(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
          ShmFrame frame;
          SendFrame(fd, EncodeShm(ShmGreeting{.nonce = 1}));
          if (!ReadFrame(fd, &frame)) return;
          HandOver(fd, EncodeShm(ShmVerdict{.memory_bytes = memory_bytes}));
          if (!ReadFrame(fd, &frame) || answer == nullptr) return;
          SendFrame(fd, answer(DecodeShmPrefix(frame).sequence));
          // Until the agent goes.
          while (ReadFrame(fd, &frame)) {
          }
        });
  }
  static void HandOver(const UniqueFd& fd, ShmFrame frame) {
    const UniqueFd memory(memfd_create("page", MFD_CLOEXEC));
    CHECK(ftruncate(memory.get(), 4096) == 0);
    SendWithDescriptor(fd, std::as_bytes(std::span(frame)), memory.get());
  }

  std::thread node_;
};

TEST_F(MemnodeShmSegmentTest, MoreMemoryThanIsHandedOverIsNotMapped) {
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{4097}, ~uint64_t{0}}) {
    StartNode(bytes, nullptr);
    Attach(AttachOptions(), StatusCode::kInvalidArgument);
    EXPECT_THAT(reason_, HasSubstr("less memory than it says"));
    node_.join();
  }
}

TEST_F(MemnodeShmSegmentTest, AnAnswerThatIsNoneLosesTheNode) {
  const std::vector<std::function<ShmFrame(uint32_t)>> answers = {
      [](uint32_t /*sequence*/) { return ShmFrame{}; },
      [](uint32_t sequence) { return EncodeShm(ShmReply{.prefix = {.sequence = sequence + 1}}); },
      [](uint32_t sequence) {
        return EncodeShm(ShmReply{.prefix = {.sequence = sequence}, .outcome = 4});
      },
      [](uint32_t sequence) {
        return EncodeShm(ShmReply{.prefix = {.sequence = sequence}, .outcome = kShmUnavailable});
      },
      [](uint32_t sequence) { return EncodeShm(ShmVerdict{.prefix = {.sequence = sequence}}); },
  };
  for (const auto& answer : answers) {
    StartNode(4096, answer);
    auto segment = Attach(AttachOptions(), StatusCode::kOk);
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(segment->Handle(ControlRequest()).outcome, Outcome::kConflict);
    EXPECT_FALSE(segment->reachable());
    segment.reset();
    node_.join();
  }
}

TEST_F(MemnodeShmSegmentTest, ANodeThatAcceptsButSaysNothingIsGivenUp) {
  auto listener = ListenUnix(path_, 0600, 1, &reason_);
  ASSERT_TRUE(listener.ok());
  ShmAttachOptions options = AttachOptions();
  options.timeout_ms = 10;
  Attach(options, StatusCode::kUnavailable);
  EXPECT_THAT(reason_, HasSubstr("said nothing for too long"));
}

TEST_F(MemnodeShmSegmentTest, ANodeThatDoesNotAnswerInTimeIsLost) {
  std::promise<void> answering;
  StartNode(4096, [may_answer = answering.get_future().share()](uint32_t sequence) {
    may_answer.wait();
    return EncodeShm(ShmReply{.prefix = {.sequence = sequence}});
  });
  ShmAttachOptions options = AttachOptions();
  options.timeout_ms = 200;
  auto attached = ShmSegment::Attach(options, &reason_);
  // On a machine under load the handshake itself may be too late; the rest is tested by others.
  if (attached.ok()) {
    EXPECT_EQ((*attached)->Handle(ControlRequest()).outcome, Outcome::kConflict);
    EXPECT_FALSE((*attached)->reachable());
  } else {
    EXPECT_EQ(attached.status().code(), StatusCode::kUnavailable);
  }
  answering.set_value();
}

// A worker goes on while a node that hangs owes it an answer, and is free of it as soon as the node
// is evicted.
TEST_F(MemnodeShmSegmentTest, NoWorkerStandsStillForANodeThatHangs) {
  std::promise<void> answering;
  StartNode(4096, [may_answer = answering.get_future().share()](uint32_t sequence) {
    may_answer.wait();
    return EncodeShm(ShmReply{.prefix = {.sequence = sequence}});
  });
  auto segment = Attach(AttachOptions(), StatusCode::kOk);
  ASSERT_NE(segment, nullptr);
  const SystemClock clock;
  LoopExecutor executor(clock, 1);
  std::vector<MemoryEndpoint*> endpoints(kNode.value + 1U);
  endpoints[kNode.value] = segment.get();
  ShmFabric fabric(clock, endpoints, &executor);
  const auto ask = [](ShmFabric* on, std::optional<StatusCode>* code) -> Task<void> {
    const Result<ControlReply> reply = co_await on->Control(kNode, ControlRequest());
    *code = reply.status().code();
  };
  Gate gate(executor);
  std::optional<StatusCode> first;
  std::optional<StatusCode> second;
  ASSERT_TRUE(executor.Spawn(gate, ask(&fabric, &first)));
  ASSERT_TRUE(executor.Spawn(gate, ask(&fabric, &second)));
  const auto sleep = [](Executor* on) -> Task<void> { co_await on->SleepFor(5'000'000); };
  BlockOn(executor, sleep(&executor));
  EXPECT_FALSE(first.has_value() || second.has_value());
  EXPECT_TRUE(segment->reachable());
  fabric.SetEvicted(kNode, true);
  BlockOn(executor, [](Gate* left) -> Task<void> { co_await left->Close(); }(&gate));
  EXPECT_EQ(first, StatusCode::kUnknownOutcome);
  EXPECT_EQ(second, StatusCode::kUnknownOutcome);
  EXPECT_TRUE(segment->reachable()) << "it has its time to answer";
  answering.set_value();
  segment.reset();
}

}  // namespace
}  // namespace onetrip
