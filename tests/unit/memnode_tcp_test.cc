// The tcp backend as a pair, worker and memory node: which workers are let in, fencing, limits,
// control.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cstdlib>

#include "memnode/memory_node.h"
#include "tests/support/scale.h"
#include "tests/unit/tcp_peer.h"

namespace onetrip {
namespace {

using testing::HasSubstr;

class MemnodeTcpTest : public TcpNodeTest {};

TEST_F(MemnodeTcpTest, AMismatchIsRefusedWithItsReason) {
  TcpServerOptions options = ServerOptions();
  options.epoch = Epoch{10};
  StartServer(options, kTestSecret);
  struct Case {
    TcpRefusal refusal;
    const char* secret;
    uint64_t cluster;
    NodeId node;
    uint64_t epoch;
  };
  const Case cases[] = {
      {TcpRefusal::kCluster, kTestSecret, 8, kNode, 10},
      {TcpRefusal::kSecret, "a secret of another length", kTestCluster, kNode, 10},
      {TcpRefusal::kSecret, "", kTestCluster, kNode, 10},
      {TcpRefusal::kNode, kTestSecret, kTestCluster, NodeId{1}, 10},
      {TcpRefusal::kStaleEpoch, kTestSecret, kTestCluster, kNode, 9},
  };
  uint64_t refused = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(TcpRefusalText(c.refusal));
    TcpFabric fabric(executor_, {.cluster = c.cluster, .worker = WorkerId{1}}, Secret(c.secret),
                     FabricOptions());
    fabric.set_lease({.deadline_ns = LeaseGuard::kForever, .epoch = Epoch{c.epoch}});
    std::string reason;
    ASSERT_TRUE(fabric.SetNode(c.node, "127.0.0.1", server_->port(), &reason).ok());
    EXPECT_TRUE(Eventually([&] { return !fabric.ConnectError(c.node).empty(); }));
    EXPECT_THAT(fabric.ConnectError(c.node), HasSubstr(TcpRefusalText(c.refusal)));
    EXPECT_THAT(fabric.ConnectError(c.node), HasSubstr("127.0.0.1"));
    EXPECT_GT(server_->stats().refused, refused);
    refused = server_->stats().refused;
  }
  EXPECT_EQ(server_->stats().welcomed, 0U);
  // The same worker comes in once everything fits.
  const auto fabric = NewFabric(1, server_->port(), FabricOptions(), kTestSecret);
  fabric->set_lease({.deadline_ns = LeaseGuard::kForever, .epoch = Epoch{10}});
  EXPECT_TRUE(Connects(*fabric));
  EXPECT_TRUE(fabric->ConnectError(kNode).empty());
  EXPECT_TRUE(Add(*fabric).ok());
}

TEST_F(MemnodeTcpTest, WithoutASecretOnlyLoopbackIsServed) {
  std::string reason;
  TcpServerOptions options = ServerOptions();
  options.host = "0.0.0.0";
  EXPECT_FALSE(TcpServer::Start(endpoint_, Secret(), options, &reason).ok());
  EXPECT_THAT(reason, HasSubstr("--secret-file"));
  EXPECT_TRUE(TcpServer::Start(endpoint_, Secret(kTestSecret), options, &reason).ok());
  options.host = "::1";
  EXPECT_TRUE(TcpServer::Start(endpoint_, Secret(), options, &reason).ok()) << reason;
}

TEST_F(MemnodeTcpTest, APeerThatSaysNothingIsDroppedAfterTheTimeLimit) {
  TcpServerOptions options = ServerOptions();
  options.handshake_timeout_ms = 50;
  StartServer(options);
  const UniqueFd silent = ConnectTo(server_->port());
  const UniqueFd half = ConnectTo(server_->port());
  const auto hello = EncodeTcpMessage(Hello(3));
  ASSERT_EQ(send(half.get(), hello.data(), 50, MSG_NOSIGNAL), 50);
  for (const int fd : {silent.get(), half.get()}) {
    bool closed = false;
    const auto bytes = ReadToEnd(fd, 2000, &closed);
    EXPECT_TRUE(closed);
    TcpVerdict verdict;
    ASSERT_EQ(DecodeTcpVerdict(bytes, &verdict), TcpRefusal::kNone);
    EXPECT_EQ(verdict.refusal, TcpRefusal::kSilent);
  }
  EXPECT_EQ(server_->stats().refused, 2U);
}

TEST_F(MemnodeTcpTest, AStrangerIsToldSoAndDropped) {
  StartServer();
  const UniqueFd stranger = ConnectTo(server_->port());
  ASSERT_GT(send(stranger.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 0);
  bool closed = false;
  const auto bytes = ReadToEnd(stranger.get(), 2000, &closed);
  EXPECT_TRUE(closed);
  TcpVerdict verdict;
  ASSERT_EQ(DecodeTcpVerdict(bytes, &verdict), TcpRefusal::kNone);
  EXPECT_EQ(verdict.refusal, TcpRefusal::kNotOnetrip);
}

TEST_F(MemnodeTcpTest, ChannelsBeyondTheLimitAreRefusedAndOpenOnesGoOn) {
  TcpServerOptions options = ServerOptions();
  options.channels_max = 2;
  StartServer(options);
  const auto first = NewFabric(1);
  auto second = NewFabric(2);
  ASSERT_TRUE(Connects(*first));
  ASSERT_TRUE(Connects(*second));
  const auto third = NewFabric(3);
  EXPECT_TRUE(Eventually([&] { return !third->ConnectError(kNode).empty(); }));
  EXPECT_THAT(third->ConnectError(kNode), HasSubstr(TcpRefusalText(TcpRefusal::kFull)));
  EXPECT_TRUE(Add(*first).ok());
  second.reset();
  EXPECT_TRUE(Connects(*third)) << third->ConnectError(kNode);
}

TEST_F(MemnodeTcpTest, StrangersKeepNoWorkerOutAndTheFirstOfThemGo) {
  TcpServerOptions options = ServerOptions();
  options.channels_max = 2;
  options.strangers_max = 3;
  options.handshake_timeout_ms = 600'000;
  StartServer(options);
  const auto first = NewFabric(1);
  ASSERT_TRUE(Connects(*first));
  std::array<UniqueFd, 8> strangers;
  for (UniqueFd& stranger : strangers) stranger = ConnectTo(server_->port());
  // One that was refused counts until it has gone.
  ASSERT_GT(send(strangers.back().get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL), 0);
  for (size_t i = 0; i < 5; ++i) {
    bool closed = false;
    EXPECT_THAT(ReadToEnd(strangers[i].get(), 20'000, &closed), testing::IsEmpty());
    EXPECT_TRUE(closed) << i;
  }
  EXPECT_LE(server_->stats().channels, 4U);
  // There is room for one more worker, and none for a third.
  auto second = NewFabric(2);
  EXPECT_TRUE(Connects(*second)) << second->ConnectError(kNode);
  EXPECT_TRUE(Add(*first).ok());
  EXPECT_TRUE(Add(*second).ok());
  const auto third = NewFabric(3);
  EXPECT_TRUE(Eventually([&] { return !third->ConnectError(kNode).empty(); }));
  EXPECT_THAT(third->ConnectError(kNode), HasSubstr(TcpRefusalText(TcpRefusal::kFull)));
}

TEST_F(MemnodeTcpTest, ANewConnectionOfAWorkerEndsItsOldOne) {
  StartServer();
  RawWorker old(server_->port(), Hello(5, 1));
  ASSERT_TRUE(old.welcome());
  old.Send(old.Frame({{.kind = TcpOpKind::kFaa, .bytes = 8, .operand = 1}}));
  RawWorker anew(server_->port(), Hello(5, 2));
  ASSERT_TRUE(anew.welcome());
  // Whatever had arrived by the welcome was executed or dropped; nothing later is executed.
  const uint64_t at_welcome = Word(0);
  old.Send(old.Frame({{.kind = TcpOpKind::kFaa, .bytes = 8, .operand = 100}}));
  const auto answers = old.Answers();
  EXPECT_EQ(answers.back().kind, TcpFrameKind::kGoodbye);
  EXPECT_EQ(answers.back().error, TcpError::kSuperseded);
  EXPECT_EQ(Word(0), at_welcome);
  EXPECT_LE(at_welcome, 1U);

  // A late connection of an earlier life does not get past the newer one.
  const RawWorker late(server_->port(), Hello(5, 1));
  EXPECT_FALSE(late.welcome());
  EXPECT_EQ(late.refusal(), TcpRefusal::kStaleIncarnation);
  anew.Send(anew.Frame({{.kind = TcpOpKind::kFaa, .bytes = 8, .offset = 8, .operand = 1}}));
  EXPECT_TRUE(Eventually([&] { return Word(8) == 1; }));
}

TEST_F(MemnodeTcpTest, AWorkerWithANumberThatNoneCanHaveIsRefused) {
  StartServer();
  const RawWorker odd(server_->port(), Hello(UINT32_MAX));
  EXPECT_EQ(odd.refusal(), TcpRefusal::kMalformed);
  EXPECT_EQ(server_->next_worker(), 0U) << "nobody was given an id below it";
}

TEST_F(MemnodeTcpTest, AFencedWorkerExecutesNothingFromThenOnAndIsNotLetInAgain) {
  StartServer();
  RawWorker worker(server_->port(), Hello(5));
  RawWorker other(server_->port(), Hello(6));
  ASSERT_TRUE(worker.welcome() && other.welcome());
  for (int i = 0; i < 100; ++i) {
    worker.Send(worker.Frame({{.kind = TcpOpKind::kFaa, .bytes = 8, .operand = 1}}));
  }
  server_->Fence(WorkerId{5});
  const uint64_t at_fence = Word(0);
  worker.Send(worker.Frame({{.kind = TcpOpKind::kFaa, .bytes = 8, .operand = 1000}}));
  const auto answers = worker.Answers();
  EXPECT_EQ(answers.back().error, TcpError::kFenced);
  EXPECT_EQ(Word(0), at_fence);
  const RawWorker again(server_->port(), Hello(5, 9));
  EXPECT_EQ(again.refusal(), TcpRefusal::kFenced);
  // Workers that never came can be fenced, too.
  server_->Fence(WorkerId{77});
  const RawWorker never(server_->port(), Hello(77));
  EXPECT_EQ(never.refusal(), TcpRefusal::kFenced);
  other.Send(other.Frame({{.kind = TcpOpKind::kFaa, .bytes = 8, .offset = 8, .operand = 1}}));
  EXPECT_TRUE(Eventually([&] { return Word(8) == 1; }));
  server_->Stop();
  server_->Fence(WorkerId{6});  // A server that has stopped executes no worker's operations.
}

TEST_F(MemnodeTcpTest, ANewerEpochRefusesOlderMapsAndLeavesOpenChannels) {
  StartServer();
  const auto open = NewFabric(1);
  ASSERT_TRUE(Connects(*open));
  server_->SetEpoch(Epoch{5});
  EXPECT_TRUE(Add(*open).ok());
  const RawWorker stale(server_->port(), Hello(2));
  EXPECT_EQ(stale.refusal(), TcpRefusal::kStaleEpoch);
  TcpHello hello = Hello(2);
  hello.epoch = 5;
  EXPECT_TRUE(RawWorker(server_->port(), hello).welcome());
}

TEST_F(MemnodeTcpTest, BlocksAreGrantedAndTakenBackOverTheChannel) {
  View view;
  view.replicas = 1;
  view.node_count = 1;
  view.regions.push_back({.nodes = {NodeId{0}}, .base = {0}});
  auto node = MemoryNode::Create(kNode, view);
  ASSERT_TRUE(node.ok());
  std::string reason;
  auto server = TcpServer::Start(**node, Secret(), ServerOptions(), &reason);
  ASSERT_TRUE(server.ok()) << reason;
  const auto fabric = NewFabric(1, (*server)->port());
  const ControlRequest ask{.kind = ControlRequest::Kind::kAlloc,
                           .size_class = SizeClass::For(1000),
                           .owner = WorkerId{1},
                           .block = GlobalAddr()};
  const auto granted = BlockOn(executor_, fabric->Control(kNode, ask));
  ASSERT_TRUE(granted.ok());
  EXPECT_EQ(granted.value().outcome, ControlReply::Outcome::kDone);
  EXPECT_EQ((*node)->status().granted_blocks, 1U);
  ControlRequest give = ask;
  give.kind = ControlRequest::Kind::kFree;
  give.block = granted.value().block;
  give.owner = WorkerId{2};
  auto freed = BlockOn(executor_, fabric->Control(kNode, give));
  EXPECT_EQ(freed.value().outcome, ControlReply::Outcome::kConflict);
  give.owner = WorkerId{1};
  freed = BlockOn(executor_, fabric->Control(kNode, give));
  EXPECT_EQ(freed.value().outcome, ControlReply::Outcome::kDone);
  EXPECT_EQ((*node)->status().granted_blocks, 0U);
  // A class that does not exist is refused by the node, not by the wire.
  ControlRequest bad = ask;
  bad.size_class = SizeClass();
  const auto refused = BlockOn(executor_, fabric->Control(kNode, bad));
  EXPECT_EQ(refused.value().outcome, ControlReply::Outcome::kConflict);
  EXPECT_FALSE(BlockOn(executor_, fabric->Control(NodeId{9}, ask)).ok());
}

TEST_F(MemnodeTcpTest, WithoutDescriptorsPeersWaitAndAreServedOnceThereAreSome) {
  if (kSlowdown != 1) GTEST_SKIP() << "the sanitizer needs descriptors of its own";
  StartServer();
  const auto open = NewFabric(1);
  ASSERT_TRUE(Connects(*open));
  const UniqueFd late(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool connected = ConnectSocket(late.get(), server_->port());
  Sleep(30);
  const uint64_t channels = server_->stats().channels;
  const bool is_served = Add(*open).ok();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(connected) << "the kernel keeps it in the queue";
  EXPECT_EQ(channels, 1U);
  EXPECT_TRUE(is_served);
  EXPECT_TRUE(Eventually([&] { return server_->stats().channels == 2; }));
}

// As many descriptors as the system allows, two for each channel and some to spare.
size_t ChannelsThatFit(size_t wanted) {
  rlimit limit{};
  CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const auto fit = static_cast<size_t>((limit.rlim_max - 100) / 2);
  return std::min(wanted, fit);
}

Task<void> AddMany(TcpFabric* fabric, int rounds, int* failed) {
  for (int i = 0; i < rounds; ++i) {
    const RoundTripPtr rt = fabric->NewRoundTrip();
    rt->Faa({NodeId{0}, 0}, 1);
    *failed += !(co_await fabric->Post(rt)).ok();
  }
}

TEST_F(MemnodeTcpTest, AThousandChannelsAtOnceAreServedByOneThread) {
  StartServer();
  const size_t channels = ChannelsThatFit(static_cast<size_t>(Scaled(1000)));
  constexpr int kRounds = 20;
  TcpFabricOptions options = FabricOptions();
  options.connect_timeout_ms = 20'000;
  std::vector<std::unique_ptr<TcpFabric>> fabrics;
  std::vector<Task<void>> tasks;
  int failed = 0;
  for (uint32_t i = 0; i < channels; ++i) {
    fabrics.push_back(NewFabric(i + 1, server_->port(), options));
    tasks.push_back(AddMany(fabrics.back().get(), kRounds, &failed));
  }
  BlockOn(executor_, AwaitAll(std::move(tasks)));
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Word(0), channels * kRounds);
  EXPECT_EQ(server_->stats().channels, channels);
  EXPECT_EQ(server_->stats().operations, channels * kRounds);
  fabrics.clear();
  EXPECT_TRUE(Eventually([&] { return server_->stats().channels == 0; }));
}

TEST_F(MemnodeTcpTest, WorkersOnThreadsAndNeighboursOnShmAddUp) {
  StartServer();
  const int rounds = Scaled(5000);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (uint32_t worker = 1; worker <= 3; ++worker) {
    threads.emplace_back([&, worker] {
      SystemClock clock;
      LoopExecutor executor(clock, worker);
      TcpFabric fabric(executor, {.cluster = kTestCluster, .worker = WorkerId{worker}}, Secret(),
                       FabricOptions());
      std::string reason;
      CHECK(fabric.SetNode(kNode, "127.0.0.1", server_->port(), &reason).ok());
      int own_failed = 0;
      BlockOn(executor, AddMany(&fabric, rounds, &own_failed));
      failed += own_failed;
    });
  }
  ShmFabric shm(clock_, {&endpoint_});
  for (int i = 0; i < rounds; ++i) {
    const RoundTripPtr rt = shm.NewRoundTrip();
    rt->Faa({kNode, 0}, 1);
    EXPECT_TRUE(BlockOn(executor_, PostOne(&shm, rt)).ok());
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(Word(0), 4U * static_cast<uint64_t>(rounds));
}

TEST_F(MemnodeTcpTest, AWorkerThatReadsNoAnswersIsStalledThenDroppedAndOthersAreServed) {
  TcpServerOptions options = ServerOptions();
  options.stall_timeout_ms = 200;
  StartServer(options);
  RawWorker greedy(server_->port(), Hello(1), "", /*receive_bytes=*/4096);
  ASSERT_TRUE(greedy.welcome());
  // Far more answers than both socket buffers hold; the node stops reading long before the end.
  std::vector<std::byte> frames;
  for (int i = 0; i < 500; ++i) {
    const auto frame = greedy.Frame({{.kind = TcpOpKind::kRead, .bytes = 60'000}});
    frames.insert(frames.end(), frame.begin(), frame.end());
  }
  ASSERT_EQ(send(greedy.fd(), frames.data(), frames.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(frames.size()));
  const auto other = NewFabric(2);
  EXPECT_TRUE(Add(*other).ok());
  EXPECT_LT(server_->stats().frames, 400U) << "answers are not gathered without bound";
  EXPECT_TRUE(Eventually([&] { return server_->stats().channels == 1; }));
  EXPECT_EQ(server_->stats().errors, 1U);
  EXPECT_TRUE(Add(*other).ok());
}

// The same, but the worker reads in the end: nothing is lost by the pause.
TEST_F(MemnodeTcpTest, AnswersThatHadToWaitArriveWholeAndInOrder) {
  StartServer();
  RawWorker slow(server_->port(), Hello(1), "", /*receive_bytes=*/4096);
  ASSERT_TRUE(slow.welcome());
  constexpr int kFrames = 200;
  // More than the node keeps while it waits: the rest stays in the sockets.
  std::thread sender([&slow] {
    for (int i = 0; i < kFrames; ++i) {
      slow.Send(slow.Frame({{.kind = TcpOpKind::kFaa, .bytes = 8, .operand = 1},
                            {.kind = TcpOpKind::kWrite, .bytes = 5000, .offset = 4096},
                            {.kind = TcpOpKind::kRead, .bytes = 50'000}}));
    }
  });
  Sleep(50);
  EXPECT_LT(Word(0), uint64_t{kFrames});
  std::thread stopper([this] {
    while (Word(0) < kFrames) std::this_thread::yield();
    server_->Fence(WorkerId{1});
  });
  const auto answers = slow.Answers();
  sender.join();
  stopper.join();
  ASSERT_GE(answers.size(), 1U);
  // The fence may overtake the last answers, but not tear them.
  EXPECT_EQ(Word(0), uint64_t{kFrames});
  for (size_t i = 0; i + 1 < answers.size(); ++i) EXPECT_EQ(answers[i].ops, 3U);
}

}  // namespace
}  // namespace onetrip
