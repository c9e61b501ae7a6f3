// The tcp backend when something breaks: frames cut, changed or repeated, connections and nodes
// lost at any byte. What was acknowledged is done, what is unknown was done once or not at all, and
// everything that was posted ends.
#include <functional>

#include "client_core/base/rng.h"
#include "tests/support/scale.h"
#include "tests/unit/tcp_peer.h"

namespace onetrip {
namespace {

using Fault = SpoilingProxy::Fault;

class MemnodeTcpFaultTest : public TcpNodeTest {};

TcpOp Faa(uint64_t offset, uint64_t addend = 1) {
  return {.kind = TcpOpKind::kFaa, .bytes = 8, .offset = offset, .operand = addend};
}

TEST_F(MemnodeTcpFaultTest, AFrameWithOneBadAddressTouchesNothingAndCostsTheChannel) {
  StartServer();
  constexpr uint64_t kTop = ~uint64_t{0};
  struct Case {
    TcpOp bad;
    TcpError error;
  };
  const Case cases[] = {
      {{.kind = TcpOpKind::kRead, .bytes = 1, .offset = kMemoryBytes}, TcpError::kOutOfBounds},
      {{.kind = TcpOpKind::kRead, .bytes = 9, .offset = kMemoryBytes - 8}, TcpError::kOutOfBounds},
      {{.kind = TcpOpKind::kRead, .bytes = 8, .offset = kTop - 3}, TcpError::kOutOfBounds},
      {{.kind = TcpOpKind::kWrite, .bytes = 64, .offset = kTop - 31}, TcpError::kOutOfBounds},
      {{.kind = TcpOpKind::kWrite, .bytes = 16, .offset = kTop / 2 + 1}, TcpError::kOutOfBounds},
      {Faa(kMemoryBytes), TcpError::kOutOfBounds},
      {Faa(kTop - 7), TcpError::kOutOfBounds},
      {Faa(4), TcpError::kMisaligned},
      {{.kind = TcpOpKind::kCas, .bytes = 8, .offset = 17, .operand = 1}, TcpError::kMisaligned},
  };
  uint64_t incarnation = 0;
  for (const Case& c : cases) {
    for (size_t place = 0; place < 3; ++place) {
      SCOPED_TRACE(c.bad.offset + place);
      RawWorker worker(server_->port(), Hello(1, ++incarnation));
      ASSERT_TRUE(worker.welcome());
      std::vector<TcpOp> ops = {Faa(0), {.kind = TcpOpKind::kWrite, .bytes = 8}};
      ops.insert(ops.begin() + static_cast<ptrdiff_t>(place), c.bad);
      worker.Send(worker.Frame(ops));
      worker.Send(worker.Frame({Faa(8)}));
      const auto answers = worker.Answers();
      ASSERT_EQ(answers.size(), 1U);
      EXPECT_EQ(answers[0].error, c.error);
      EXPECT_EQ(Word(0), 0U);
      EXPECT_EQ(Word(8), 0U);
    }
  }
  EXPECT_EQ(server_->stats().errors, 3 * std::size(cases));
}

TEST_F(MemnodeTcpFaultTest, FramesThatAreChangedRepeatedOrMissingEndTheChannelWithTheirReason) {
  StartServer();
  struct Case {
    const char* what;
    TcpError error;
    std::function<void(RawWorker&)> send;
  };
  const Case cases[] = {
      {"a changed byte", TcpError::kChecksum,
       [](RawWorker& worker) {
         auto frame = worker.Frame({Faa(8)});
         frame.back() ^= std::byte{1};
         worker.Send(frame);
       }},
      {"a repeated frame", TcpError::kSequence,
       [](RawWorker& worker) {
         const auto frame = worker.Frame({Faa(0, 0)});
         worker.Send(frame);
         worker.Send(frame);
       }},
      {"a missing frame", TcpError::kSequence,
       [](RawWorker& worker) {
         worker.Frame({Faa(8)});
         worker.Send(worker.Frame({Faa(8)}));
       }},
      {"a body that is too long", TcpError::kTooLong,
       [](RawWorker& worker) {
         TcpFrameHeader header{.sequence = worker.next().request, .body_bytes = ~0U};
         worker.Send(std::as_bytes(std::span(&header, 1)));
       }},
      {"an answer that is too long", TcpError::kTooLong,
       [](RawWorker& worker) {
         const TcpOp read{.kind = TcpOpKind::kRead, .bytes = 40'000};
         worker.Send(worker.Frame({read, read}));
       }},
      {"a kind that does not exist", TcpError::kMalformed,
       [](RawWorker& worker) {
         std::vector<std::byte> frame = worker.Frame({Faa(8)});
         TcpFrameHeader header;
         std::memcpy(&header, frame.data(), sizeof(header));
         header.zero = 1;
         SealTcpFrame(header, frame.data());
         worker.Send(frame);
       }},
      {"fewer operations than announced", TcpError::kMalformed,
       [](RawWorker& worker) {
         std::vector<std::byte> frame = worker.Frame({Faa(8)});
         TcpFrameHeader header;
         std::memcpy(&header, frame.data(), sizeof(header));
         header.ops = 2;
         SealTcpFrame(header, frame.data());
         worker.Send(frame);
       }},
      {"a queue pair, where none is served", TcpError::kNotOverRdma,
       [](RawWorker& worker) {
         std::vector<std::byte> frame = worker.Frame({Faa(8)});
         TcpFrameHeader header;
         std::memcpy(&header, frame.data(), sizeof(header));
         header.kind = TcpFrameKind::kQueuePair;
         SealTcpFrame(header, frame.data());
         worker.Send(frame);
       }},
  };
  uint64_t incarnation = 0;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    RawWorker worker(server_->port(), Hello(1, ++incarnation));
    ASSERT_TRUE(worker.welcome());
    c.send(worker);
    const auto answers = worker.Answers();
    ASSERT_FALSE(answers.empty());
    EXPECT_EQ(answers.back().kind, TcpFrameKind::kGoodbye);
    EXPECT_EQ(answers.back().error, c.error);
    EXPECT_EQ(Word(8), 0U);
  }
}

TEST_F(MemnodeTcpFaultTest, AFrameIsExecutedOnceItIsWholeAndNotBefore) {
  StartServer();
  RawWorker worker(server_->port(), Hello(1));
  const auto frame = worker.Frame({Faa(0)});
  for (size_t i = 0; i < frame.size(); ++i) {
    EXPECT_EQ(Word(0), 0U);
    worker.Send({frame.data() + i, 1});
    if (i % 8 == 0) Sleep(1);
  }
  EXPECT_TRUE(Eventually([&] { return Word(0) == 1; }));
  {
    RawWorker cut(server_->port(), Hello(2));
    const auto half = cut.Frame({Faa(0)});
    cut.Send({half.data(), half.size() - 1});
  }
  EXPECT_TRUE(Eventually([&] { return server_->stats().channels == 1; }));
  EXPECT_EQ(Word(0), 1U);
}

// The results that a stream of batches learnt of its increments.
struct Tally {
  uint64_t acknowledged = 0;
  uint64_t unknown = 0;
};

constexpr uint32_t kPayloadBytes = 5000;
constexpr uint64_t kPayloadOffset = 8192;

Task<void> Stream(TcpFabric* fabric, int rounds, Tally* tally) {
  for (int i = 0; i < rounds; ++i) {
    const RoundTripPtr rt = fabric->NewRoundTrip();
    std::byte* payload = rt->Reserve(kPayloadBytes);
    std::memset(payload, 0x33, kPayloadBytes);
    rt->Write({NodeId{0}, kPayloadOffset}, payload, kPayloadBytes);
    const std::byte* back = rt->Read({NodeId{0}, kPayloadOffset}, kPayloadBytes);
    rt->Faa({NodeId{0}, 0}, 1);
    const bool ok = (co_await fabric->Post(rt)).ok();
    ++(rt->op(2).ok ? tally->acknowledged : tally->unknown);
    if (!ok) continue;
    EXPECT_EQ(std::memcmp(back, payload, kPayloadBytes), 0);
  }
}

// Every kind of damage at any byte, of handshake or frames, in either direction.
TEST_F(MemnodeTcpFaultTest, ASpoiledByteNeverAddsTwiceNorLosesWhatWasAcknowledged) {
  StartServer();
  SpoilingProxy proxy(server_->port());
  int noticed = 0;
  const int seeds = Scaled(200);
  for (int seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(static_cast<uint64_t>(seed));
    const Fault faults[] = {Fault::kCut, Fault::kFlip, Fault::kRepeat};
    const SpoilingProxy::Plan plan{.fault = faults[rng.Below(3)],
                                   .to_node = rng.Below(2) == 0,
                                   .after_bytes = rng.Below(rng.Below(2) == 0 ? 300 : 40'000)};
    proxy.SetPlan(plan);
    const uint64_t before = Word(0);
    const auto fabric = NewFabric(static_cast<uint32_t>(seed), proxy.port());
    std::vector<Task<void>> streams;
    std::vector<Tally> tallies(4);
    streams.reserve(tallies.size());
    for (Tally& tally : tallies) streams.push_back(Stream(fabric.get(), 5, &tally));
    BlockOn(executor_, AwaitAll(std::move(streams)));
    uint64_t acknowledged = 0;
    uint64_t unknown = 0;
    for (const Tally& tally : tallies) {
      acknowledged += tally.acknowledged;
      unknown += tally.unknown;
    }
    EXPECT_EQ(acknowledged + unknown, 20U);
    // Being welcomed again means that nothing of the lost connection is still to come.
    ASSERT_TRUE(Connects(*fabric)) << fabric->ConnectError(kNode);
    const uint64_t added = Word(0) - before;
    EXPECT_GE(added, acknowledged);
    EXPECT_LE(added, acknowledged + unknown);
    noticed += unknown > 0;
    const uint64_t settled = Word(0);
    EXPECT_TRUE(Add(*fabric).ok());
    EXPECT_EQ(Word(0), settled + 1);
    for (uint64_t at = 0; at < kPayloadBytes; ++at) {
      const std::byte byte = endpoint_.base()[kPayloadOffset + at];
      ASSERT_TRUE(byte == std::byte{0} || byte == std::byte{0x33}) << at;
    }
  }
  // Damage in bytes that are never sent, or in the handshake, costs no batch its outcome.
  EXPECT_GT(noticed, seeds / 4);
}

TEST_F(MemnodeTcpFaultTest, ANodeThatStopsInMidBatchFailsWhatIsUnderWayAndIsFoundAgain) {
  StartServer();
  const uint16_t port = server_->port();
  const auto fabric = NewFabric(1);
  for (int round = 0; round < Scaled(40); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_TRUE(Connects(*fabric)) << fabric->ConnectError(kNode);
    const uint64_t before = Word(0);
    std::thread stopper([this, round] {
      std::this_thread::sleep_for(std::chrono::microseconds(round * 40));
      server_->Stop();
    });
    Tally tallies[3];
    std::vector<Task<void>> streams;
    for (Tally& tally : tallies) streams.push_back(Stream(fabric.get(), 30, &tally));
    BlockOn(executor_, AwaitAll(std::move(streams)));
    stopper.join();
    uint64_t acknowledged = 0;
    uint64_t unknown = 0;
    for (const Tally& tally : tallies) {
      acknowledged += tally.acknowledged;
      unknown += tally.unknown;
    }
    EXPECT_EQ(acknowledged + unknown, 90U);
    EXPECT_GE(Word(0) - before, acknowledged);
    EXPECT_LE(Word(0) - before, acknowledged + unknown);
    TcpServerOptions options = ServerOptions();
    options.port = port;
    StartServer(options);
  }
}

}  // namespace
}  // namespace onetrip
