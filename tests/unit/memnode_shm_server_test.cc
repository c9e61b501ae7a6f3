// The socket between an agent and the memory node of its host: which agents are refused and told
// why, what neither side believes of the other, and that the end of either is noticed.
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
#include <mutex>
#include <thread>

#include "client_core/base/rng.h"
#include "client_core/fabric/shm_segment.h"
#include "memnode/shm_server.h"
#include "tests/support/scale.h"
#include "tests/unit/memnode_shm_fixture.h"

namespace onetrip {
namespace {

TEST_F(MemnodeShmServerTest, AnAgentSeesTheNodesMemoryAndAsksItForBlocks) {
  StartServer();
  const auto segment = Attach(AttachOptions(), StatusCode::kOk);
  ASSERT_NE(segment, nullptr);
  EXPECT_EQ(segment->bytes(), kRegionBytes);
  EXPECT_NE(segment->base(), backing_->base());
  EXPECT_EQ(segment->incarnation(), backing_->incarnation());
  std::memset(segment->base() + kRegionBytes - 8, 0x31, 8);
  EXPECT_EQ(std::memcmp(backing_->base() + kRegionBytes - 8, "11111111", 8), 0);
  Rng rng(1);
  for (int i = 0; i < 200; ++i) {
    const ControlRequest request{.kind = static_cast<ControlRequest::Kind>(rng.Below(3)),
                                 .size_class = SizeClass(static_cast<uint8_t>(rng.Below(50))),
                                 .owner = WorkerId{static_cast<uint32_t>(rng.Below(1 << 22))},
                                 .block = GlobalAddr(rng.Below(uint64_t{1} << 48))};
    const ControlReply wanted = memory_->Handle(request);
    const ControlReply got = segment->Handle(request);
    ASSERT_EQ(got.outcome, wanted.outcome);
    ASSERT_EQ(got.block, wanted.block);
  }
  EXPECT_EQ(server_->stats().requests, 200U);
}

TEST_F(MemnodeShmServerTest, ThreadsOfAnAgentEachGetTheirOwnAnswers) {
  StartServer();
  const auto segment = Attach(AttachOptions(), StatusCode::kOk);
  ASSERT_NE(segment, nullptr);
  std::vector<std::thread> threads;
  for (uint32_t id = 0; id < 3; ++id) {
    threads.emplace_back([&, id] {
      for (int i = 0; i < Scaled(1000); ++i) {
        const ControlRequest request{.kind = ControlRequest::Kind::kFree,
                                     .size_class = SizeClass(1),
                                     .owner = WorkerId{id},
                                     .block = GlobalAddr(static_cast<uint64_t>(i))};
        EXPECT_EQ(segment->Handle(request).block, memory_->Handle(request).block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(MemnodeShmServerTest, WhoComesToTheWrongNodeIsRefusedAndToldWhy) {
  StartServer();
  ShmAttachOptions options = AttachOptions();
  options.cluster = 22;
  Attach(options, StatusCode::kInvalidArgument);
  EXPECT_EQ(reason_, "memory node 2 at " + path_ + ": refused by the node: the clusters differ");
  options = AttachOptions();
  options.node = NodeId{3};
  Attach(options, StatusCode::kInvalidArgument);
  EXPECT_THAT(reason_, HasSubstr("another memory node is at this socket"));
  options = AttachOptions();
  options.incarnation = backing_->incarnation() ^ 1;
  Attach(options, StatusCode::kInvalidArgument);
  EXPECT_THAT(reason_, HasSubstr("lost the memory"));
  options.incarnation ^= 1;
  EXPECT_NE(Attach(options, StatusCode::kOk), nullptr);
  options = AttachOptions();
  options.epoch = Epoch{4};
  Attach(options, StatusCode::kFenced);
  EXPECT_THAT(reason_, HasSubstr("too old"));
  server_->SetEpoch(Epoch{9});
  Attach(AttachOptions(), StatusCode::kFenced);
  EXPECT_EQ(server_->stats().refused, 5U);
  EXPECT_EQ(server_->stats().welcomed, 1U);
}

TEST_F(MemnodeShmServerTest, WhoSpeaksAnotherProtocolOrVersionIsRefused) {
  StartServer();
  EXPECT_EQ(Answer([](uint64_t nonce) { return EncodeShm(Hello(nonce)); }), ShmRefusal::kNone);
  EXPECT_EQ(Answer([](uint64_t nonce) { return EncodeShm(Hello(nonce ^ 1)); }),
            ShmRefusal::kMalformed);
  EXPECT_EQ(Answer([](uint64_t /*nonce*/) { return ShmFrame{}; }), ShmRefusal::kNotOnetrip);
  // No worker has such a number: the node would say that all up to it have been given out.
  EXPECT_EQ(Answer([](uint64_t nonce) {
              ShmHello hello = Hello(nonce);
              hello.worker = UINT32_MAX;
              return EncodeShm(hello);
            }),
            ShmRefusal::kMalformed);
  EXPECT_EQ(server_->next_worker(), 2U);
  EXPECT_EQ(Answer([](uint64_t nonce) {
              ShmHello hello = Hello(nonce);
              hello.prefix.version = kShmVersion + 1;
              return EncodeShm(hello);
            }),
            ShmRefusal::kVersion);
  EXPECT_EQ(Answer([](uint64_t /*nonce*/) { return EncodeShm(ShmControl{}); }),
            ShmRefusal::kMalformed);
}

TEST_F(MemnodeShmServerTest, ASocketThatAnotherProcessUsesIsRefused) {
  StartServer();
  uint64_t nonce = 0;
  const UniqueFd fd = Greeted(&nonce);
  const ShmFrame hello = EncodeShm(Hello(nonce));
  const pid_t child = fork();
  if (child == 0) {
    const bool sent = send(fd.get(), hello.data(), hello.size(), 0) == kShmFrameBytes;
    _exit(sent ? 0 : 1);
  }
  ASSERT_GT(child, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ShmFrame answer;
  ShmVerdict verdict;
  ASSERT_TRUE(ReadFrame(fd, &answer));
  ASSERT_EQ(DecodeShm(answer, &verdict), ShmRefusal::kNone);
  EXPECT_EQ(static_cast<ShmRefusal>(verdict.refusal), ShmRefusal::kUnfenceable);
}

TEST_F(MemnodeShmServerTest, WhoSaysNothingIsDropped) {
  ShmServerOptions options = ServerOptions();
  options.handshake_timeout_ms = 20;
  StartServer(options);
  const UniqueFd silent = ConnectTo(path_);
  ShmFrame frame;
  ShmVerdict verdict;
  ASSERT_TRUE(ReadFrame(silent, &frame)) << "the greeting";
  ASSERT_TRUE(ReadFrame(silent, &frame));
  ASSERT_EQ(DecodeShm(frame, &verdict), ShmRefusal::kNone);
  EXPECT_EQ(static_cast<ShmRefusal>(verdict.refusal), ShmRefusal::kSilent);
  EXPECT_FALSE(ReadFrame(silent, &frame));
}

TEST_F(MemnodeShmServerTest, WhoComesTooManyIsRefused) {
  ShmServerOptions options = ServerOptions();
  options.agents_max = 1;
  StartServer(options);
  const auto only = Attach(AttachOptions(1), StatusCode::kOk);
  Attach(AttachOptions(2), StatusCode::kUnavailable);
  EXPECT_THAT(reason_, HasSubstr("refused by the node: too many agents"));
}

// Bytes of every kind, before and after a welcome; the node goes on, and keeps nothing of it.
TEST_F(MemnodeShmServerTest, NoBytesOfAPeerHarmTheNode) {
  StartServer();
  const auto witness = Attach(AttachOptions(9), StatusCode::kOk);
  ASSERT_NE(witness, nullptr);
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = descriptors();
  Rng rng(7);
  for (int i = 0; i < Scaled(1000); ++i) {
    uint64_t nonce = 0;
    UniqueFd fd = Greeted(&nonce);
    if (rng.Below(2) == 0) {
      SendFrame(fd, EncodeShm(Hello(nonce)));
      ShmFrame verdict;
      ASSERT_TRUE(ReadFrame(fd, &verdict));
    }
    std::vector<std::byte> bytes(rng.Below(400));
    for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.Below(256));
    // Often enough something that begins well.
    if (bytes.size() >= sizeof(ShmPrefix) && rng.Below(4) > 0) {
      const ShmPrefix prefix{.kind = static_cast<uint8_t>(rng.Below(9))};
      std::memcpy(bytes.data(), &prefix, sizeof(prefix));
    }
    // The frame comes with a descriptor that the node did not ask for.
    SendWithDescriptor(fd, std::as_bytes(std::span(bytes)), fd.get());
  }
  Await([&] { return server_->stats().connections == 1; });
  EXPECT_GT(server_->stats().errors, 0U);
  // The process itself is entered, by its one descriptor.
  EXPECT_LE(descriptors(), before + 1);
  EXPECT_TRUE(witness->reachable());
  (void)witness->Handle(ControlRequest());
  EXPECT_TRUE(witness->reachable());
}

TEST_F(MemnodeShmServerTest, WorkersOfAProcessAreMadeKnownAndDepartTogether) {
  StartServer();
  auto segment = Attach(AttachOptions(1), StatusCode::kOk);
  ASSERT_NE(segment, nullptr);
  EXPECT_TRUE(segment->AddWorker(WorkerId{2}, Epoch{6}, &reason_).ok()) << reason_;
  EXPECT_EQ(segment->AddWorker(WorkerId{3}, Epoch{4}, &reason_).code(), StatusCode::kFenced);
  EXPECT_THAT(reason_, HasSubstr("worker 3 refused by the node"));
  EXPECT_TRUE(server_->Fence(WorkerId{4}, 0).ok());
  EXPECT_EQ(segment->AddWorker(WorkerId{4}, Epoch{6}, &reason_).code(), StatusCode::kFenced);
  // A node does not end itself.
  EXPECT_EQ(server_->Fence(WorkerId{2}, 0).code(), StatusCode::kUnknownOutcome);
  EXPECT_EQ(server_->stats().processes, 1U);
  segment.reset();
  Await([&] { return Departures() == 1; });
  EXPECT_TRUE(departures_[0].detached);
  EXPECT_EQ(departures_[0].process, getpid());
  EXPECT_THAT(departures_[0].workers, testing::ElementsAre(WorkerId{1}, WorkerId{2}));
  Await([&] { return server_->stats().processes == 0; });
  EXPECT_TRUE(server_->Fence(WorkerId{1}, 0).ok()) << "it has nothing mapped any more";
}

TEST_F(MemnodeShmServerTest, AProcessThatAttachedTwiceDepartsWithItsLastMapping) {
  StartServer();
  auto first = Attach(AttachOptions(1), StatusCode::kOk);
  auto second = Attach(AttachOptions(2), StatusCode::kOk);
  first.reset();
  Await([&] { return server_->stats().connections == 1; });
  EXPECT_EQ(Departures(), 0U);
  EXPECT_EQ(server_->stats().processes, 1U);
  second.reset();
  Await([&] { return Departures() == 1; });
  EXPECT_TRUE(departures_[0].detached);
}

TEST_F(MemnodeShmServerTest, AConnectionLostWithoutAWordLeavesTheProcessFenceable) {
  StartServer();
  uint64_t nonce = 0;
  UniqueFd fd = Greeted(&nonce);
  SendFrame(fd, EncodeShm(Hello(nonce)));
  ShmFrame verdict;
  ASSERT_TRUE(ReadFrame(fd, &verdict));
  fd.Reset();
  Await([&] { return Departures() == 1; });
  EXPECT_FALSE(departures_[0].detached);
  EXPECT_EQ(server_->stats().processes, 1U);
  EXPECT_EQ(server_->Fence(WorkerId{1}, 0).code(), StatusCode::kUnknownOutcome);
}

TEST_F(MemnodeShmServerTest, ANodeThatStopsIsNoticedAndTheMappingStays) {
  StartServer();
  const auto segment = Attach(AttachOptions(), StatusCode::kOk);
  ASSERT_NE(segment, nullptr);
  EXPECT_TRUE(segment->reachable());
  server_->Stop();
  Await([&] { return !segment->reachable(); });
  EXPECT_EQ(segment->Handle(ControlRequest()).outcome, Outcome::kConflict);
  EXPECT_EQ(segment->AddWorker(WorkerId{2}, Epoch{5}, &reason_).code(), StatusCode::kUnavailable);
  segment->base()[0] = std::byte{1};
  EXPECT_FALSE(std::filesystem::exists(path_)) << "nothing is left behind";
  EXPECT_EQ(server_->Fence(WorkerId{1}, 0).code(), StatusCode::kUnavailable);
  Attach(AttachOptions(), StatusCode::kUnavailable);
  EXPECT_EQ(reason_, "memory node 2 at " + path_ + ": No such file or directory");
}

TEST_F(MemnodeShmServerTest, AMappingIsGivenUpWithItsNodeWhereThatIsAskedFor) {
  auto file = Backing::Open({.kind = BackingOptions::Kind::kFile,
                             .bytes = kRegionBytes,
                             .path = directory_ + "/memory",
                             .owner = MemoryOwner{.cluster = kCluster, .node = kNode}},
                            &reason_);
  ASSERT_TRUE(file.ok()) << reason_;
  backing_ = std::move(*file);
  memory_ = std::make_unique<Memory>(*backing_);
  ASSERT_TRUE(backing_->MarkInUse(&reason_).ok()) << reason_;
  backing_->base()[0] = std::byte{7};
  for (const bool releases : {true, false}) {
    StartServer();
    ShmAttachOptions options = AttachOptions();
    options.release_when_lost = releases;
    auto segment = Attach(options, StatusCode::kOk);
    ASSERT_NE(segment, nullptr);
    EXPECT_EQ(std::to_integer<int>(segment->base()[0]), 7);
    EXPECT_TRUE(backing_->HasClients());
    // A worker that is in the middle of an access all the time.
    std::atomic<bool> done{false};
    std::thread worker([&] {
      auto* word = reinterpret_cast<uint64_t*>(segment->base() + kRegionBytes / 2);
      while (!done) __atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL);
    });
    server_->Stop();
    Await([&] { return !segment->reachable(); });
    if (releases) {
      Await([&] { return !backing_->HasClients(); });
      segment->base()[0] = std::byte{8};
    }
    done = true;
    worker.join();
    EXPECT_EQ(backing_->HasClients(), !releases);
    EXPECT_EQ(std::to_integer<int>(backing_->base()[0]), 7);
    segment.reset();
    EXPECT_FALSE(backing_->HasClients());
  }
}

TEST_F(MemnodeShmServerTest, ADeadNodesSocketIsReplacedAndALiveOnesIsNot) {
  {
    std::string reason;
    const auto left_behind = ListenUnix(path_, 0600, 1, &reason);
    ASSERT_TRUE(left_behind.ok());
  }
  ASSERT_TRUE(std::filesystem::exists(path_));
  StartServer();
  struct stat info {};
  ASSERT_EQ(stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
  EXPECT_FALSE(ShmServer::Start(*memory_, *backing_, ServerOptions(), nullptr, &reason_).ok());
  EXPECT_THAT(reason_, HasSubstr("taken by another process"));
  EXPECT_NE(Attach(AttachOptions(), StatusCode::kOk), nullptr);
}

TEST_F(MemnodeShmServerTest, PrivateMemoryAndOpenDirectoriesAreNotServed) {
  auto alone = Backing::Open({.bytes = kRegionBytes}, &reason_);
  ASSERT_TRUE(alone.ok());
  EXPECT_FALSE(ShmServer::Start(*memory_, **alone, ServerOptions(), nullptr, &reason_).ok());
  EXPECT_THAT(reason_, HasSubstr("private memory"));
  chmod(directory_.c_str(), 0711);
  EXPECT_FALSE(ShmServer::Start(*memory_, *backing_, ServerOptions(), nullptr, &reason_).ok());
  EXPECT_THAT(reason_, HasSubstr("chmod 700"));
  chmod(directory_.c_str(), 0700);
}

TEST_F(MemnodeShmServerTest, AMappingIsNotInheritedByChildren) {
  StartServer();
  const auto segment = Attach(AttachOptions(), StatusCode::kOk);
  ASSERT_NE(segment, nullptr);
  std::array<int, 2> pipes{};
  ASSERT_EQ(pipe(pipes.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    // The kernel answers for memory that is not there; nothing is touched.
    const ssize_t written = write(pipes[1], segment->base(), 8);
    _exit(written == -1 && errno == EFAULT ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  close(pipes[0]);
  close(pipes[1]);
}

}  // namespace
}  // namespace onetrip
