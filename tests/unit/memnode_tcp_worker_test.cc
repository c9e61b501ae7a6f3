// The worker's side of tcp when a node is away, deaf, slow or rotten: what is sent and what is not,
// and that each caller that waits is told.
#include <gmock/gmock.h>

#include <cstdlib>
#include <new>

#include "tests/support/scale.h"
#include "tests/unit/tcp_peer.h"

namespace onetrip {
namespace {

std::atomic<uint64_t> g_allocations{0};

using Fault = SpoilingProxy::Fault;

class MemnodeTcpWorkerTest : public TcpNodeTest {
 protected:
  static constexpr uint64_t kHandshakeBytesToWorker = sizeof(TcpChallenge) + sizeof(TcpVerdict);
};

TEST_F(MemnodeTcpWorkerTest, WhatIsPostedWhileTheNodeIsAwayIsNeverSent) {
  StartServer();
  const uint16_t port = server_->port();
  server_.reset();
  const auto fabric = NewFabric(1, port);
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(Add(*fabric).code(), StatusCode::kUnknownOutcome);
  }
  EXPECT_EQ(fabric->stats().lost_unsent, 50U);
  EXPECT_EQ(fabric->stats().lost_unknown, 0U);
  EXPECT_EQ(fabric->stats().frames, 0U);
  const auto refused = BlockOn(executor_, fabric->Control(kNode, ControlRequest()));
  EXPECT_EQ(refused.status().code(), StatusCode::kUnavailable);
  EXPECT_NE(fabric->ConnectError(kNode), "");
  TcpServerOptions options = ServerOptions();
  options.port = port;
  StartServer(options);
  ASSERT_TRUE(Connects(*fabric));
  EXPECT_EQ(Word(0), 0U);
  EXPECT_TRUE(Add(*fabric).ok());
  EXPECT_EQ(Word(0), 1U);
}

TEST_F(MemnodeTcpWorkerTest, WhatWaitsForAConnectionUntilTheLeaseHasRunOutIsNotSent) {
  StartServer();
  SpoilingProxy proxy(server_->port());
  proxy.SetPaused(true);
  TcpFabricOptions options = FabricOptions();
  options.connect_timeout_ms = 10'000;
  const auto fabric = NewFabric(1, proxy.port(), options);
  fabric->set_lease({.deadline_ns = executor_.NowNs() + 20'000'000, .epoch = Epoch{0}});
  const RoundTripPtr rt = fabric->NewRoundTrip();
  rt->Faa({kNode, 0}, 1);
  Task<Status> posted = PostOne(fabric.get(), rt);
  ASSERT_FALSE(posted.Start()) << "it waits for the connection";
  Sleep(30);
  proxy.SetPaused(false);
  ASSERT_TRUE(Connects(*fabric));
  EXPECT_TRUE(Eventually([&] { return posted.done(); }));
  EXPECT_FALSE(rt->op(0).ok);
  EXPECT_EQ(fabric->stats().lost_unsent, 1U);
  EXPECT_EQ(fabric->stats().frames, 0U);
  EXPECT_EQ(Word(0), 0U);
}

TEST_F(MemnodeTcpWorkerTest, ANodeThatAnswersNothingInTimeIsLostAndItsOutcomesUnknown) {
  StartServer();
  SpoilingProxy proxy(server_->port());
  proxy.SetPlan(
      {.fault = Fault::kSwallow, .to_node = false, .after_bytes = kHandshakeBytesToWorker});
  TcpFabricOptions options = FabricOptions();
  options.reply_timeout_ms = 50;
  const auto fabric = NewFabric(1, proxy.port(), options);
  EXPECT_EQ(Add(*fabric).code(), StatusCode::kUnknownOutcome);
  EXPECT_EQ(Word(0), 1U) << "it was executed, only the answer was lost";
  EXPECT_EQ(fabric->stats().lost_unknown, 1U);
  EXPECT_FALSE(fabric->settled()) << "the node has not said that the old connection is over";
  EXPECT_TRUE(Eventually([&] { return fabric->stats().connections == 2; }));
  EXPECT_TRUE(fabric->settled());
  const auto control = BlockOn(executor_, fabric->Control(kNode, ControlRequest()));
  EXPECT_EQ(control.status().code(), StatusCode::kUnknownOutcome);
  proxy.SetPlan({});
  ASSERT_TRUE(Eventually([&] { return Add(*fabric, 8).ok(); }));
  EXPECT_EQ(Word(0), 1U);
}

TEST_F(MemnodeTcpWorkerTest, ANodeThatIsSilentShowsBeforeItIsGivenUpAlsoToAWorkerThatAsksNothing) {
  StartServer();
  SpoilingProxy proxy(server_->port());
  TcpFabricOptions options = FabricOptions();
  options.reply_timeout_ms = 2000;
  const auto fabric = NewFabric(1, proxy.port(), options);
  ASSERT_TRUE(Connects(*fabric));
  fabric->Ping(kNode);
  ASSERT_TRUE(Eventually([&] { return fabric->stats().frames == 1; }));
  Sleep(50);
  EXPECT_TRUE(fabric->Answers(kNode));
  fabric->Ping(kNode);
  Sleep(50);
  EXPECT_EQ(fabric->stats().frames, 1U) << "something was answered since the last look";
  proxy.SetPlan({.fault = SpoilingProxy::Fault::kSwallow, .to_node = true, .after_bytes = 0});
  fabric->Ping(kNode);
  EXPECT_TRUE(Eventually([&] { return !fabric->Answers(kNode); }));
  EXPECT_TRUE(fabric->Reaches(kNode)) << "the channel is open still";
  EXPECT_EQ(fabric->stats().frames, 2U);
}

// A node that answers as the test says: with `answers[i]`, sealed, to the i-th frame, then nothing.
class RottenNode {
 public:
  struct Answer {
    TcpFrameKind kind = TcpFrameKind::kBatch;
    uint8_t ops = 0;
    std::vector<std::byte> body;
  };

  explicit RottenNode(std::vector<Answer> answers) : answers_(std::move(answers)) {
    std::string reason;
    Result<UniqueFd> listener = ListenTcp("127.0.0.1", 0, 16, &reason);
    CHECK(listener.ok());
    listener_ = std::move(*listener);
    thread_ = std::thread([this] { Run(); });
  }
  ~RottenNode() { thread_.join(); }
  [[nodiscard]] uint16_t port() const { return LocalPort(listener_.get()); }

 private:
  // Waits up to two seconds; false at the end of the stream.
  static bool Receive(int fd, std::vector<std::byte>* bytes) {
    pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
    std::array<std::byte, 4096> chunk;
    if (poll(&readable, 1, 2000) <= 0) return false;
    const ssize_t got = recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got > 0) bytes->insert(bytes->end(), chunk.begin(), chunk.begin() + got);
    return got > 0;
  }

  void Run() {
    pollfd waiting{.fd = listener_.get(), .events = POLLIN, .revents = 0};
    if (poll(&waiting, 1, 2000) <= 0) return;
    bool exhausted = false;
    const UniqueFd fd = Accept(listener_.get(), &exhausted);
    const Secret secret;
    NodeHandshake handshake({.cluster = kTestCluster, .node = NodeId{0}}, TcpNonce{}, secret);
    std::vector<std::byte> bytes;
    while (handshake.state() == Handshake::State::kWaiting && Receive(fd.get(), &bytes)) {
      bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(handshake.Feed(bytes)));
      if (handshake.state() == Handshake::State::kProved) handshake.Welcome(1 << 20, Epoch{0});
      const auto output = handshake.output();
      (void)!send(fd.get(), output.data(), output.size(), MSG_NOSIGNAL);
      handshake.ClearOutput();
    }
    TcpSequences next = handshake.sequences();
    for (const Answer& answer : answers_) {
      TcpFrame frame;
      size_t frame_bytes = 0;
      while (DecodeTcpFrame(bytes, next.request, &frame, &frame_bytes) == TcpError::kNone &&
             frame_bytes == 0 && Receive(fd.get(), &bytes)) {
      }
      ++next.request;
      bytes.erase(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(frame_bytes));
      std::vector<std::byte> reply(kTcpHeaderBytes + answer.body.size());
      std::copy(answer.body.begin(), answer.body.end(), reply.begin() + kTcpHeaderBytes);
      SealTcpFrame({.sequence = next.reply++,
                    .body_bytes = static_cast<uint32_t>(answer.body.size()),
                    .kind = answer.kind,
                    .ops = answer.ops},
                   reply.data());
      (void)!send(fd.get(), reply.data(), reply.size(), MSG_NOSIGNAL);
    }
    while (Receive(fd.get(), &bytes)) {
    }
  }

  std::vector<Answer> answers_;
  UniqueFd listener_;
  std::thread thread_;
};

TEST_F(MemnodeTcpWorkerTest, AnAnswerThatDoesNotFitItsRequestCostsTheChannelAndNothingElse) {
  const std::vector<std::byte> word(8);
  const RottenNode::Answer answers[] = {
      {TcpFrameKind::kBatch, 2, word},                       // more than was asked
      {TcpFrameKind::kBatch, 1, {}},                         // too short
      {TcpFrameKind::kBatch, 1, std::vector<std::byte>(9)},  // too long
      {TcpFrameKind::kBatch, 0, word},                       // a result of nothing
      {TcpFrameKind::kControl, 0, std::vector<std::byte>(16)},
  };
  for (const RottenNode::Answer& answer : answers) {
    RottenNode node({answer});
    const auto fabric = NewFabric(1, node.port());
    const RoundTripPtr rt = fabric->NewRoundTrip();
    rt->Faa({kNode, 0}, 1);
    EXPECT_FALSE(BlockOn(executor_, PostOne(fabric.get(), rt)).ok());
    EXPECT_THAT(fabric->ConnectError(kNode), testing::HasSubstr("does not fit its request"));
  }
}

// A long operation travels in two frames. The node stopped in the first and goes on in the second.
TEST_F(MemnodeTcpWorkerTest, AnOperationOfWhichAFrameFailedIsNotDone) {
  constexpr uint32_t kBytes = 100'000;
  constexpr uint32_t kPiece = (kTcpBodyBytesMax - 1024) / 2;
  constexpr uint32_t kRest = kBytes - 3 * kPiece;
  RottenNode node({{TcpFrameKind::kBatch, 1, std::vector<std::byte>(kPiece)},
                   {TcpFrameKind::kBatch, 2, std::vector<std::byte>(kPiece + kRest)},
                   {TcpFrameKind::kBatch, 1, std::vector<std::byte>(8)}});
  const auto fabric = NewFabric(1, node.port());
  RoundTripPtr rt = fabric->NewRoundTrip();
  rt->Read({kNode, 0}, kBytes);
  EXPECT_EQ(BlockOn(executor_, PostOne(fabric.get(), rt)).code(), StatusCode::kUnknownOutcome);
  EXPECT_FALSE(rt->op(0).ok);
  EXPECT_TRUE(Add(*fabric).ok()) << "the next round trip has nothing to do with it";
}

TEST_F(MemnodeTcpWorkerTest, AHandshakeThatIsNotAnsweredEndsInTime) {
  std::string reason;
  const Result<UniqueFd> deaf = ListenTcp("127.0.0.1", 0, 16, &reason);
  ASSERT_TRUE(deaf.ok());
  TcpFabricOptions options = FabricOptions();
  options.connect_timeout_ms = 30;
  const auto fabric = NewFabric(1, LocalPort(deaf.value().get()), options);
  EXPECT_FALSE(Add(*fabric).ok());
  EXPECT_THAT(fabric->ConnectError(kNode), testing::HasSubstr(TcpRefusalText(TcpRefusal::kSilent)));
}

TEST_F(MemnodeTcpWorkerTest, AttemptsToConnectBackOff) {
  std::string reason;
  Result<UniqueFd> rude = ListenTcp("127.0.0.1", 0, 1000, &reason);
  ASSERT_TRUE(rude.ok());
  const uint64_t start_ns = executor_.NowNs();
  const auto fabric = NewFabric(1, LocalPort(rude->get()));
  uint64_t attempts = 0;
  const bool enough = Eventually([&] {
    bool exhausted = false;
    while (Accept(rude->get(), &exhausted).valid()) ++attempts;
    return attempts >= 12;
  });
  EXPECT_TRUE(enough) << "it goes on trying";
  // 1, 2, 4, 8, 16 ms at least half of which are waited, and from then on half of 20 or more.
  const uint64_t elapsed_ms = (executor_.NowNs() - start_ns) / 1'000'000;
  EXPECT_LE(attempts, elapsed_ms / 10 + 7);
}

// Answers control requests once it is told to.
class HeldEndpoint final : public MemoryEndpoint {
 public:
  [[nodiscard]] std::byte* base() const override { return memory_.base(); }
  [[nodiscard]] uint64_t bytes() const override { return memory_.bytes(); }
  ControlReply Handle(const ControlRequest& request) override {
    while (!released_) std::this_thread::yield();
    return {ControlReply::Outcome::kDone, request.block};
  }
  void Release() { released_ = true; }

 private:
  BareEndpoint memory_{4096};
  std::atomic<bool> released_{false};
};

TEST_F(MemnodeTcpWorkerTest, AWaiterThatIsDestroyedLeavesItsAnswerToNobody) {
  HeldEndpoint held;
  std::string reason;
  const auto server = TcpServer::Start(held, Secret(), ServerOptions(), &reason);
  ASSERT_TRUE(server.ok()) << reason;
  const auto fabric = NewFabric(1, server.value()->port());
  ASSERT_TRUE(Connects(*fabric));
  {
    Task<Result<ControlReply>> sent = fabric->Control(kNode, ControlRequest());
    EXPECT_FALSE(sent.Start());
    EXPECT_TRUE(Eventually([&] { return fabric->stats().frames == 1; }));
    Task<Result<ControlReply>> pending = fabric->Control(kNode, ControlRequest());
    EXPECT_FALSE(pending.Start());
  }
  held.Release();
  EXPECT_TRUE(Add(*fabric).ok()) << "the channel goes on";
  EXPECT_EQ(fabric->stats().frames, 2U) << "what nobody waits for is not sent";
}

// At every stage: connecting, in the handshake, sent.
TEST_F(MemnodeTcpWorkerTest, AFabricMayGoWithOperationsUnderWay) {
  StartServer();
  int gone = 0;
  for (int turns = 0; turns < 6; ++turns) {
    auto fabric = NewFabric(static_cast<uint32_t>(turns + 1));
    RoundTripPtr rt = fabric->NewRoundTrip();
    rt->Read({kNode, 0}, 50'000);
    rt->Faa({kNode, 8}, 1);
    Task<Status> waiting = PostOne(fabric.get(), rt);
    waiting.Start();
    for (int i = 0; i < turns && !rt->op(1).ok; ++i) executor_.RunOnce();
    if (rt->op(1).ok) {
      EXPECT_TRUE(Eventually([&] { return waiting.done(); }));
      continue;
    }
    waiting = Task<Status>();
    rt = RoundTripPtr();
    fabric.reset();
    ++gone;
    Sleep(1);
  }
  EXPECT_GT(gone, 2);
  EXPECT_TRUE(Eventually([&] { return server_->stats().channels == 0; }));
}

TEST_F(MemnodeTcpWorkerTest, ANodeThatMovedIsReachedAtItsNewAddress) {
  StartServer();
  const auto fabric = NewFabric(1);
  EXPECT_TRUE(Add(*fabric).ok());
  BareEndpoint elsewhere(kMemoryBytes);
  std::string reason;
  auto moved = TcpServer::Start(elsewhere, Secret(), ServerOptions(), &reason);
  ASSERT_TRUE(moved.ok());
  ASSERT_TRUE(fabric->SetNode(kNode, "127.0.0.1", (*moved)->port(), &reason).ok());
  EXPECT_TRUE(Add(*fabric).ok());
  EXPECT_EQ(Word(0), 1U);
  EXPECT_EQ(elsewhere.word(0), 1U);
  EXPECT_FALSE(fabric->SetNode(NodeId{1}, "no such host.invalid", 1, &reason).ok());
  EXPECT_THAT(reason, testing::HasSubstr("cannot resolve"));
}

Task<void> AddAndRead(TcpFabric* fabric, int rounds) {
  for (int i = 0; i < rounds; ++i) {
    const RoundTripPtr rt = fabric->NewRoundTrip();
    rt->Faa({NodeId{0}, 0}, 1);
    rt->Write({NodeId{0}, 64}, rt->Reserve(100), 100);
    rt->Read({NodeId{0}, 0}, 200);
    EXPECT_TRUE((co_await fabric->Post(rt)).ok());
  }
}

TEST_F(MemnodeTcpWorkerTest, NeitherSideAllocatesForAFrameOnceWarm) {
  if (kSlowdown != 1) GTEST_SKIP() << "the sanitizer has its own allocator";
  StartServer();
  const auto fabric = NewFabric(1);
  const auto run = [&](int rounds) {
    std::vector<Task<void>> streams;
    streams.reserve(8);
    for (int i = 0; i < 8; ++i) streams.push_back(AddAndRead(fabric.get(), rounds));
    const uint64_t before = g_allocations;
    BlockOn(executor_, AwaitAll(std::move(streams)));
    return g_allocations - before;
  };
  run(200);
  const uint64_t of_few = run(1);
  EXPECT_EQ(run(500), of_few) << "more frames, not more allocations";
}

}  // namespace
}  // namespace onetrip

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// Not inlined, or the compiler sees free() meet operator new.
[[gnu::noinline]] void* operator new(size_t bytes) {
  onetrip::g_allocations.fetch_add(1, std::memory_order_relaxed);
  void* memory = std::malloc(bytes > 0 ? bytes : 1);
  if (memory == nullptr) std::abort();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif
