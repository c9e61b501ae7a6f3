// In-n-Out on one replica at a time: what each step leaves in memory, and what it refuses.
#include <gtest/gtest.h>

#include <functional>

#include "client_core/base/rng.h"
#include "client_core/replication/in_n_out.h"
#include "tests/support/register_fixture.h"

namespace onetrip {
namespace {

using State = ReplicaSeen::State;

// All that one replica has answered.
struct Answer : ReplicaSeen, ReplicaReply {};

TEST(MetaWordTest, OrdersByTimeThenBufferAndFindsTheBufferAgain) {
  Rng rng(1);
  for (int i = 0; i < 20'000; ++i) {
    const GlobalAddr home(static_cast<uint32_t>(rng.Below(1U << 24)), 0);
    const auto region = static_cast<uint32_t>((home.region() & ~0x7ffU) | rng.Below(2048));
    const GlobalAddr buffer(region, rng.Below(kRegionBytes / 32) * 32);
    ASSERT_TRUE(MetaWord::CanName(home, buffer));
    const auto time = static_cast<RegisterTime>(1 + rng.Below(UINT32_MAX - 2));
    const MetaWord word(time, buffer);
    EXPECT_EQ(word.time(), time);
    EXPECT_EQ(word.buffer(home), buffer);
    EXPECT_FALSE(word.verified());
    EXPECT_EQ(word.AsVerified().buffer(home), buffer);
    EXPECT_EQ(word.AsVerified().AsGuess(), word);
    EXPECT_EQ(word.AsFirsthand().AsGuess(), word);
    EXPECT_EQ(word.AsFirsthand().AsVerified(), word.AsVerified());
    EXPECT_EQ(word.AsFirsthand().buffer(home), buffer);
    EXPECT_GT(word.AsVerified(), word.AsFirsthand());
    EXPECT_GT(word.AsVerified(), word);
    EXPECT_GT(MetaWord(time + 1, GlobalAddr(0, 0)), word.AsVerified());
  }
  EXPECT_FALSE(MetaWord::CanName(GlobalAddr(2047, 0), GlobalAddr(2048, 0)));
  EXPECT_FALSE(MetaWord::CanName(GlobalAddr(0, 0), GlobalAddr(0, 16)));
}

TEST(RegisterShapeTest, BuffersLieOnMultiplesOf32) {
  for (uint64_t value_bytes = 0; value_bytes < 200'000; value_bytes += 7) {
    const SizeClass size_class = BufferClass(value_bytes);
    ASSERT_TRUE(size_class.is_valid());
    EXPECT_GE(size_class.bytes(), value_bytes + kBufferHeaderBytes);
    EXPECT_EQ(size_class.bytes() % kBufferAlignBytes, 0U) << value_bytes;
  }
}

// Calls a hook when an operation has taken effect.
class Hook final : public SimObserver {
 public:
  explicit Hook(std::function<void(const FabricOp&)> applied) : applied_(std::move(applied)) {}
  void Posted(const SimFabric& /*fabric*/, NodeId /*node*/, const RoundTrip& /*round_trip*/,
              uint64_t /*ops*/) override {}
  void Applied(const SimFabric& /*fabric*/, NodeId /*node*/, const FabricOp& op) override {
    applied_(op);
  }
  void Answered(const SimFabric& /*fabric*/, NodeId /*node*/, bool /*ok*/) override {}

 private:
  std::function<void(const FabricOp&)> applied_;
};

class InNOutTest : public testing::Test {
 protected:
  static constexpr uint8_t kLane = 1;

  // By a chain of CASes, unless the fabric has MAX.
  explicit InNOutTest(FabricTraits traits = {.has_max = false})
      : cluster_(3, size_t{64} * 1024),
        executor_(1),
        network_(executor_, cluster_.endpoints(), {.step_ns = 5, .traits = traits}),
        worker_(executor_, network_, cluster_.master(), 1),
        ref_(cluster_.CreateRegister({}, /*incarnation=*/0, Ticks{1'000'000})) {}

  InNOut& in_n_out() { return worker_.safe_guess.max_register().in_n_out(); }
  MetaWord NewWord(RegisterTime time) { return {time, cluster_.NewBuffer(ref_.shape).addr}; }

  // One step on replica 0; its reply.
  template <typename Step>
  Answer Run(Step step) {
    QuorumCall call(executor_, ReplicaNodes::Of(*cluster_.master().view(), ref_.addr), SharedPin());
    BlockOn(executor_, step(call.Ask(0)));
    return {call.seen(0), call.reply(0)};
  }
  Answer Write(MetaWord word, MetaWord expected, std::string_view value, bool read_lanes = false) {
    return Run([&](QuorumCall::Share share) {
      return in_n_out().Write(
          std::move(share), ref_, {word, expected, kLane, read_lanes},
          in_n_out().WriteBuffer(ref_, NodeId{0}, word, {WorkerId{7}, BytesOf(value)}));
    });
  }
  Answer Read() {
    return Run([&](QuorumCall::Share share) { return in_n_out().Read(std::move(share), ref_); });
  }
  Answer ReadBuffer(MetaWord word) {
    return Run([&](QuorumCall::Share share) {
      return in_n_out().ReadBuffer(std::move(share), ref_, word);
    });
  }
  std::string ValueOf(const ReplicaReply& reply, MetaWord word) {
    WrittenValue value;
    const bool good = reply.image != nullptr &&
                      DecodeBuffer(reply.image, ref_.shape.buffer_bytes - kBufferBulkOffset,
                                   {ref_.birth.value + word.time()}, &value);
    return good ? TextOf(value.bytes) : "(none)";
  }
  void Verify(MetaWord word, std::string_view value) {
    BlockOn(executor_, in_n_out().Verify(ref_, kLane, word, {}));
    BlockOn(executor_, in_n_out().CopyInPlace(ref_, word, {WorkerId{7}, BytesOf(value)},
                                              worker_.context.view().epoch, {}));
  }
  // The lane holds `larger`.
  void ExpectOvertaken(MetaWord late, MetaWord larger) {
    const Answer overtaken = Write(late, MetaWord(), "late", /*read_lanes=*/true);
    EXPECT_EQ(overtaken.state, State::kCounted);
    EXPECT_EQ(overtaken.round_trips, 1U);
    EXPECT_FALSE(overtaken.firsthand);
    EXPECT_EQ(overtaken.own_lane, larger);
    EXPECT_EQ(overtaken.largest, larger);
    EXPECT_EQ(cluster_.Lane(ref_, 0, kLane), larger);
  }
  std::string InPlace(const ReplicaReply& reply, MetaWord word) {
    WrittenValue value;
    if (!InNOut::ReadInPlace(ref_, reply.image, word, &value)) return "(none)";
    EXPECT_EQ(value.worker.value, 7U);
    return TextOf(value.bytes);
  }

  LittleCluster cluster_;
  SimExecutor executor_;
  SimNetwork network_;
  RegisterWorker worker_;
  RegisterRef ref_;
};

TEST_F(InNOutTest, AWriteIsOneRoundTripAndItsBufferIsThereBeforeItsWord) {
  const MetaWord word = NewWord(10);
  bool checked = false;
  Hook hook([&](const FabricOp& op) {
    if (op.kind != FabricOpKind::kCas) return;
    checked = true;
    const std::byte* bulk =
        cluster_.node(0).base() + word.buffer(ref_.addr).offset() + kBufferBulkOffset;
    WrittenValue value;
    EXPECT_TRUE(DecodeBuffer(bulk, ref_.shape.buffer_bytes - kBufferBulkOffset,
                             {ref_.birth.value + 10}, &value));
  });
  network_.set_observer(&hook);
  const Answer reply = Write(word, MetaWord(), "hello", /*read_lanes=*/true);
  network_.set_observer(nullptr);
  EXPECT_TRUE(checked);
  EXPECT_EQ(reply.state, State::kCounted);
  EXPECT_EQ(reply.round_trips, 1U);
  EXPECT_EQ(reply.own_lane, word);
  EXPECT_EQ(reply.largest, word);
  EXPECT_EQ(reply.lane, kLane);
  EXPECT_EQ(InNOut::LaneIn(ref_, reply.image, kLane), MetaWord()) << "it looks before its CAS";
  EXPECT_TRUE(reply.firsthand);
  EXPECT_EQ(cluster_.Lane(ref_, 0, kLane), word);
  EXPECT_EQ(cluster_.Word(word.buffer(ref_.addr), 0), 0U) << "the lock word is in no bulk WRITE";
  EXPECT_EQ(ValueOf(ReadBuffer(word), word), "hello");
}

TEST_F(InNOutTest, MaxRetriesFromASmallerWordAndStopsAtALargerOne) {
  const MetaWord first = NewWord(10);
  const MetaWord second = NewWord(20);
  EXPECT_EQ(Write(first, MetaWord(), "one").round_trips, 1U);
  const Answer retried = Write(second, MetaWord(), "two");
  EXPECT_EQ(retried.state, State::kCounted);
  EXPECT_EQ(retried.round_trips, 2U);
  EXPECT_EQ(cluster_.Lane(ref_, 0, kLane), second);

  ExpectOvertaken(NewWord(15), second);
}

class InNOutMaxTest : public InNOutTest {
 protected:
  InNOutMaxTest() : InNOutTest(FabricTraits()) {}
};

TEST_F(InNOutMaxTest, AWriteTakesOneRoundTripWhateverItsLaneHolds) {
  const MetaWord first = NewWord(10);
  const MetaWord second = NewWord(20);
  EXPECT_EQ(Write(first, MetaWord(), "one").round_trips, 1U);
  const Answer again = Write(second, MetaWord(), "two", /*read_lanes=*/true);
  EXPECT_EQ(again.state, State::kCounted);
  EXPECT_EQ(again.round_trips, 1U);
  EXPECT_TRUE(again.firsthand);
  EXPECT_EQ(again.own_lane, second);
  EXPECT_EQ(cluster_.Lane(ref_, 0, kLane), second);

  ExpectOvertaken(NewWord(15), second);
}

// PROTOCOLS, "A guess that is everywhere": a reader has written the guess back before its writer
// came there.
TEST_F(InNOutMaxTest, AWordThatIsThereKeepsItsForm) {
  const MetaWord word = NewWord(10);
  for (const MetaWord there : {word, word.AsFirsthand(), word.AsVerified()}) {
    for (const MetaWord posted : {word, word.AsFirsthand(), word.AsVerified()}) {
      cluster_.Word(ref_.addr + ref_.shape.lane_offset(kLane), 0) = there.bits();
      const Answer reply = Write(posted, MetaWord(), "value", /*read_lanes=*/true);
      EXPECT_EQ(reply.state, State::kCounted);
      EXPECT_EQ(reply.round_trips, 1U);
      EXPECT_FALSE(reply.firsthand);
      EXPECT_EQ(reply.own_lane, there);
      EXPECT_EQ(cluster_.Lane(ref_, 0, kLane), there);
    }
  }
}

// Where a READ may come late, as on a network of RDMA.
class InNOutLateReadsTest : public InNOutTest {
 protected:
  InNOutLateReadsTest() : InNOutTest({.has_max = false, .reads_first = false}) {}
};

// PROTOCOLS, "A guess that is everywhere": what comes behind the CAS is not to be looked at.
TEST_F(InNOutLateReadsTest, AWriteLooksAheadOfItsCas) {
  for (int round = 1; round <= 64; ++round) {
    const auto time = static_cast<RegisterTime>(10 * round);
    const MetaWord word = NewWord(time);
    const MetaWord later = NewWord(time + 5);
    std::vector<FabricOpKind> kinds;
    Hook hook([&](const FabricOp& op) {
      kinds.push_back(op.kind);
      if (op.kind == FabricOpKind::kCas) {
        cluster_.Word(ref_.addr + ref_.shape.lane_offset(0), 0) = later.bits();
      }
    });
    network_.set_observer(&hook);
    const MetaWord before = cluster_.Lane(ref_, 0, kLane);
    const Answer reply = Write(word, before, "value", /*read_lanes=*/true);
    network_.set_observer(nullptr);
    ASSERT_EQ(reply.state, State::kCounted);
    EXPECT_TRUE(reply.firsthand);
    EXPECT_EQ(reply.largest, word);
    // The seal and three lanes that are not its own.
    EXPECT_EQ(std::count(kinds.begin(), kinds.end(), FabricOpKind::kFaa), 4);
  }
}

TEST_F(InNOutLateReadsTest, AWriteSeesWhatWasThere) {
  const MetaWord large = NewWord(50);
  cluster_.Word(ref_.addr + ref_.shape.lane_offset(3), 0) = large.bits();
  const Answer overtaken = Write(NewWord(20), MetaWord(), "value", /*read_lanes=*/true);
  EXPECT_FALSE(overtaken.firsthand);
  EXPECT_EQ(overtaken.largest, large);
  EXPECT_EQ(overtaken.lane, 3);
  cluster_.Seal(ref_, 0) = 99;
  const Answer sealed = Write(NewWord(60), NewWord(20), "value", /*read_lanes=*/true);
  EXPECT_EQ(sealed.state, State::kSealed);
  EXPECT_FALSE(sealed.firsthand);
}

TEST_F(InNOutTest, ALaneNeverDecreasesWhateverTheCacheSays) {
  const MetaWord large = NewWord(20);
  ASSERT_EQ(Write(large, MetaWord(), "large").state, State::kCounted);
  EXPECT_EQ(Write(NewWord(10), large, "small").own_lane, large);
  EXPECT_EQ(cluster_.Lane(ref_, 0, kLane), large);
}

TEST_F(InNOutTest, RetriesAreBounded) {
  // Another writer changes the lane before every CAS.
  RegisterTime time = 1;
  network_.set_observer(nullptr);
  Hook hook([&](const FabricOp& op) {
    if (op.kind == FabricOpKind::kWrite || op.kind == FabricOpKind::kRead) {
      cluster_.Word(ref_.addr + ref_.shape.lane_offset(kLane), 0) =
          MetaWord(++time, GlobalAddr(0, 0)).bits();
    }
  });
  network_.set_observer(&hook);
  const Answer reply = Write(NewWord(1'000'000), MetaWord(), "never");
  network_.set_observer(nullptr);
  EXPECT_EQ(reply.state, State::kFailed);
  EXPECT_EQ(reply.round_trips, RegisterOptions().cas_retries_max + 1);
}

TEST_F(InNOutTest, AReplicaSealedBeforeTheLastReadDoesNotCount) {
  // The seal comes after the lanes were read and before it is read itself.
  Hook hook([&](const FabricOp& op) {
    if (op.kind == FabricOpKind::kRead && op.bytes > 8) cluster_.Seal(ref_, 0) = 99;
  });
  network_.set_observer(&hook);
  const Answer read = Read();
  EXPECT_EQ(read.state, State::kSealed);
  EXPECT_EQ(read.seal, 99U);
  cluster_.Seal(ref_, 0) = 0;
  const Answer write = Write(NewWord(5), MetaWord(), "x", /*read_lanes=*/true);
  network_.set_observer(nullptr);
  EXPECT_EQ(write.state, State::kSealed);
  EXPECT_EQ(write.seal, 99U);
}

TEST_F(InNOutTest, TheLargestLaneIsTheRegistersWord) {
  const std::array<RegisterTime, 4> times{7, 30, 12, 29};
  for (uint32_t lane = 0; lane < 4; ++lane) {
    cluster_.Word(ref_.addr + ref_.shape.lane_offset(lane), 0) =
        MetaWord(times[lane], GlobalAddr(0, 32768)).bits();
  }
  const Answer reply = Read();
  EXPECT_EQ(reply.state, State::kCounted);
  EXPECT_EQ(reply.largest.time(), 30U);
  EXPECT_EQ(reply.lane, 1);
  for (uint8_t lane = 0; lane < 4; ++lane) {
    EXPECT_EQ(InNOut::LaneIn(ref_, reply, lane).time(), times[lane]);
  }
}

TEST_F(InNOutTest, TheInPlaceCopyIsOfOneWordOnly) {
  const MetaWord first = NewWord(10);
  (void)Write(first, MetaWord(), "first");
  EXPECT_EQ(InPlace(Read(), first), "(none)");
  Verify(first, "first");
  EXPECT_TRUE(cluster_.Lane(ref_, 0, kLane).verified());
  EXPECT_EQ(InPlace(Read(), first), "first");
  EXPECT_EQ(InPlace(Read(), first.AsVerified()), "first");

  const MetaWord second = NewWord(11);
  (void)Write(second, first.AsVerified(), "second");
  EXPECT_EQ(InPlace(Read(), second), "(none)") << "an old copy under a new word";
  EXPECT_EQ(ValueOf(ReadBuffer(second), second), "second");
}

TEST_F(InNOutTest, NoByteOfTheInPlaceCopyMayBeWrong) {
  const MetaWord word = NewWord(10);
  (void)Write(word, MetaWord(), "precious");
  Verify(word, "precious");
  ASSERT_EQ(InPlace(Read(), word), "precious");
  std::byte* area = cluster_.node(0).base() + ref_.addr.offset() + ref_.shape.in_place_offset();
  for (uint32_t i = 0; i < InPlaceBytes(8); ++i) {
    area[i] ^= std::byte{4};
    EXPECT_EQ(InPlace(Read(), word), "(none)") << "byte " << i;
    area[i] ^= std::byte{4};
  }
  EXPECT_EQ(InPlace(Read(), word), "precious");
}

TEST_F(InNOutTest, NoByteOfABufferMayBeWrong) {
  const MetaWord word = NewWord(10);
  (void)Write(word, MetaWord(), "precious");
  std::byte* buffer = cluster_.node(0).base() + word.buffer(ref_.addr).offset();
  for (uint32_t i = kBufferBulkOffset; i < kBufferHeaderBytes + 8; ++i) {
    buffer[i] ^= std::byte{1};
    EXPECT_EQ(ReadBuffer(word).state, State::kFailed) << "byte " << i;
    buffer[i] ^= std::byte{1};
  }
  EXPECT_EQ(ReadBuffer(word).state, State::kCounted);
  EXPECT_EQ(ReadBuffer(MetaWord(11, word.buffer(ref_.addr))).state, State::kFailed)
      << "a buffer of another time";
}

TEST_F(InNOutTest, AWordThatPointsNowhereFindsNothing) {
  EXPECT_EQ(ReadBuffer(MetaWord(10, GlobalAddr(1234, 64))).state, State::kFailed);
  EXPECT_EQ(ReadBuffer(MetaWord(10, GlobalAddr(0, kRegionBytes - 32))).state, State::kFailed);
}

TEST_F(InNOutTest, AnotherRegistersMemoryIsRefused) {
  RegisterRef stale = ref_;
  ++stale.incarnation;
  const Answer reply =
      Run([&](QuorumCall::Share share) { return in_n_out().Read(std::move(share), stale); });
  EXPECT_EQ(reply.state, State::kFailed);
  EXPECT_TRUE(reply.foreign);
}

TEST_F(InNOutTest, ALostNodeDoesNotCount) {
  cluster_.node(0).SetReachable(false);
  EXPECT_EQ(Read().state, State::kFailed);
  EXPECT_EQ(Write(NewWord(5), MetaWord(), "x").state, State::kFailed);
}

// A verified word goes only where the guess is: elsewhere the buffer may be missing.
TEST_F(InNOutTest, VerifyingTouchesNoOtherLane) {
  const MetaWord word = NewWord(10);
  (void)Write(word, MetaWord(), "one");
  cluster_.Word(ref_.addr + ref_.shape.lane_offset(kLane), 2) =
      MetaWord(3, GlobalAddr(0, 32768)).bits();
  Verify(word, "one");
  EXPECT_EQ(cluster_.Lane(ref_, 0, kLane), word.AsVerified());
  EXPECT_EQ(cluster_.Lane(ref_, 1, kLane), MetaWord());
  EXPECT_EQ(cluster_.Lane(ref_, 2, kLane).time(), 3U);
}

}  // namespace
}  // namespace onetrip
