// The reliable max register: what a majority holds is never gone back behind, and what it costs.
#include <gtest/gtest.h>

#include "client_core/base/planted_bug.h"
#include "client_core/replication/max_register.h"
#include "tests/support/register_fixture.h"

namespace onetrip {
namespace {

class MaxRegisterTest : public testing::Test {
 protected:
  // Replica 0 has the in-place copy; reads prefer replicas 0 and 1.
  MaxRegisterTest()
      : cluster_(3, size_t{64} * 1024),
        executor_(1),
        network_(executor_, cluster_.endpoints(), SimFabricOptions{}),
        ref_(cluster_.CreateRegister({}, /*incarnation=*/0, Ticks{1'000'000})) {
    for (uint32_t id = 1; id <= 2; ++id) {
      workers_.push_back(
          std::make_unique<RegisterWorker>(executor_, network_, cluster_.master(), id));
      handles_.emplace_back(ref_, workers_.back()->guess_clock);
    }
  }

  // Stragglers end before what they use.
  void TearDown() override { EXPECT_TRUE(executor_.RunUntilIdle()); }

  MaxRegister& max_register(size_t worker = 0) {
    return workers_[worker]->safe_guess.max_register();
  }
  MetaWord NewWord(RegisterTime time) { return {time, cluster_.NewBuffer(ref_.shape).addr}; }

  struct Done {
    RegisterStep step;
    uint32_t round_trips = 0;
    Tuple m;
    [[nodiscard]] std::string value() const {
      return m.has_value ? TextOf(m.value.bytes) : "(none)";
    }
  };
  Done Read(size_t worker = 0) {
    Done done;
    RegisterOperation operation;
    done.step = BlockOn(executor_, max_register(worker).Read(operation, handles_[worker], &done.m));
    done.round_trips = operation.round_trips;
    return done;
  }
  Done Write(MetaWord word, std::string_view value, size_t worker = 0) {
    Done done;
    RegisterOperation operation;
    QuorumCall call = max_register(worker).NewCall(operation, ref_);
    const WrittenValue written{WorkerId{static_cast<uint32_t>(worker) + 1}, BytesOf(value)};
    done.step = BlockOn(executor_, max_register(worker).Write(operation, handles_[worker], word,
                                                              written, true, nullptr, &call));
    done.round_trips = operation.round_trips;
    done.m = MaxRegister::Largest(call);
    return done;
  }
  // Puts a write on one replica only, as a writer whose other messages are late.
  void Plant(int replica, uint32_t lane, MetaWord word, std::string_view value) {
    const WrittenValue written{WorkerId{9}, BytesOf(value)};
    EncodeBuffer(
        {ref_.birth.value + word.time()}, written,
        cluster_.node(replica).base() + word.buffer(ref_.addr).offset() + kBufferBulkOffset);
    cluster_.Word(ref_.addr + ref_.shape.lane_offset(lane), replica) = word.bits();
  }
  void Settle() { ASSERT_TRUE(executor_.RunUntilIdle()); }

  LittleCluster cluster_;
  SimExecutor executor_;
  SimNetwork network_;
  RegisterRef ref_;
  std::vector<std::unique_ptr<RegisterWorker>> workers_;
  std::vector<RegisterHandle> handles_;
};

TEST_F(MaxRegisterTest, AnEmptyRegisterIsReadInOneRoundTrip) {
  const Done read = Read();
  EXPECT_TRUE(read.step.done());
  EXPECT_TRUE(read.m.word.is_empty());
  EXPECT_EQ(read.round_trips, 1U);
}

TEST_F(MaxRegisterTest, AWriteTakesOneRoundTripAndReachesAllReplicas) {
  const MetaWord word = NewWord(10);
  const Done write = Write(word, "hello");
  EXPECT_TRUE(write.step.done());
  EXPECT_EQ(write.round_trips, 1U);
  EXPECT_EQ(write.m.word, word);
  Settle();
  for (int replica = 0; replica < 3; ++replica) EXPECT_EQ(cluster_.Lane(ref_, replica, 1), word);
}

TEST_F(MaxRegisterTest, AValueInPlaceIsReadInOneRoundTripVerifiedOrNot) {
  const MetaWord word = NewWord(10);
  (void)Write(word, "hello");
  Settle();
  const Done guess = Read(1);
  EXPECT_EQ(guess.value(), "hello");
  EXPECT_EQ(guess.m.value.worker.value, 1U);
  EXPECT_FALSE(guess.m.word.verified());
  EXPECT_TRUE(guess.m.in_place);
  EXPECT_EQ(guess.round_trips, 1U);
  RegisterOperation operation;
  max_register().Verify(operation, handles_[0], guess.m);
  Settle();
  const Done verified = Read(1);
  EXPECT_EQ(verified.value(), "hello");
  EXPECT_TRUE(verified.m.word.verified());
  EXPECT_TRUE(verified.m.in_place);
  EXPECT_EQ(verified.round_trips, 1U);
  EXPECT_EQ(max_register(1).widened(), 0U);
}

class FirstValueTest : public MaxRegisterTest {
 protected:
  // As a register is born: the first word, and its value in the in-place area, on every replica.
  FirstValueTest() {
    for (int replica = 0; replica < 3; ++replica) {
      EncodeInPlace(kFirst, {WorkerId{9}, BytesOf("first")}, InPlaceArea(replica));
      cluster_.Word(ref_.addr + ref_.shape.lane_offset(3), replica) = kFirst.bits();
    }
  }
  std::byte* InPlaceArea(int replica) {
    return cluster_.node(replica).base() + ref_.addr.offset() + ref_.shape.in_place_offset();
  }
  bool HoldsFirst(int replica) {
    WrittenValue value;
    return DecodeInPlace(InPlaceArea(replica), InPlaceBytes(ref_.shape.in_place_bytes), kFirst,
                         &value) &&
           TextOf(value.bytes) == "first";
  }
  int InPlaceReplica() const { return InNOut::InPlaceReplica(ref_.addr, 3); }
  void Seal(int replica) {
    cluster_.Word(ref_.addr + kSealOffset, replica) = SealWord::Frozen().bits();
  }

  static constexpr MetaWord kFirst = MetaWord::InRegister(1);
};

TEST_F(FirstValueTest, IsReadInOneRoundTripAndFromAnyReplica) {
  Done done = Read();
  EXPECT_EQ(done.value(), "first");
  EXPECT_EQ(done.m.value.worker.value, 9U);
  EXPECT_EQ(done.round_trips, 1U);
  std::memset(InPlaceArea(InPlaceReplica()), 0, InPlaceBytes(ref_.shape.in_place_bytes));
  done = Read(1);
  EXPECT_EQ(done.value(), "first");
  EXPECT_FALSE(done.m.in_place);
}

TEST_F(FirstValueTest, IsCopiedOverBehindTheFirstWriteAndAheadOfLaterOnes) {
  EXPECT_FALSE(max_register().MayCopyInPlace(handles_[0]));
  (void)Write(NewWord(10), "second");
  Settle();
  EXPECT_TRUE(max_register().MayCopyInPlace(handles_[0]));
  for (int replica = 0; replica < 3; ++replica) {
    EXPECT_EQ(HoldsFirst(replica), replica != InPlaceReplica()) << replica;
  }
  Done done = Read(1);
  EXPECT_EQ(done.value(), "second");
  EXPECT_TRUE(done.m.in_place);
  EXPECT_TRUE(max_register(1).MayCopyInPlace(handles_[1])) << "a read tells, too";
}

// A write that comes behind the seals is in no majority: what they close is what was there.
TEST_F(FirstValueTest, StaysWhereAWriteMeetsASeal) {
  for (int replica = 0; replica < 3; ++replica) Seal(replica);
  EXPECT_NE(Write(NewWord(10), "late").step.seal, 0U);
  Settle();
  for (int replica = 0; replica < 3; ++replica) EXPECT_TRUE(HoldsFirst(replica)) << replica;
}

#ifdef ONETRIP_PLANTED_BUGS
TEST_F(FirstValueTest, PlantedBugFirstCopiedOverIsFound) {
  for (int replica = 0; replica < 3; ++replica) Seal(replica);
  TEST_planted_bug = Bug::kFirstCopiedOver;
  EXPECT_NE(Write(NewWord(10), "late").step.seal, 0U);
  Settle();
  TEST_planted_bug = Bug::kNone;
  EXPECT_FALSE(HoldsFirst(InPlaceReplica()));
}
#endif

TEST_F(FirstValueTest, StaysWhereTheWordDidNotArrive) {
  cluster_.node(InPlaceReplica()).SetReachable(false);
  (void)Write(NewWord(10), "second");
  Settle();
  EXPECT_TRUE(HoldsFirst(InPlaceReplica()));
  EXPECT_FALSE(max_register().MayCopyInPlace(handles_[0]));
}

TEST_F(FirstValueTest, WhatIsKnownOfItEndsWithTheView) {
  (void)Write(NewWord(10), "second");
  Settle();
  handles_[0].past_first = Epoch{cluster_.master().view()->epoch.value + 1};
  EXPECT_FALSE(max_register().MayCopyInPlace(handles_[0]));
}

TEST_F(MaxRegisterTest, WhatOneReplicaHoldsIsAtAMajorityWithItsBytesWhenItIsReturned) {
  const MetaWord word = NewWord(10);
  Plant(0, /*lane=*/3, word, "lonely");
  const Done read = Read();
  EXPECT_EQ(read.value(), "lonely");
  EXPECT_EQ(read.round_trips, 3U) << "lanes, buffer, write-back";
  Settle();
  for (int replica = 1; replica < 3; ++replica) {
    EXPECT_EQ(cluster_.Lane(ref_, replica, 3), word) << "the lane where it was seen";
    EXPECT_EQ(cluster_.Lane(ref_, replica, 1), MetaWord());
  }
  cluster_.node(0).SetReachable(false);
  EXPECT_EQ(Read(1).value(), "lonely");
}

TEST_F(MaxRegisterTest, AWordWhoseBytesAreGoneWithItsNodeWasNotAtAMajority) {
  (void)Write(NewWord(10), "old");
  Settle();
  Plant(0, /*lane=*/3, NewWord(20), "never acknowledged");
  // The node is lost between the READ of the lanes and the READ of the buffer.
  RegisterOperation operation;
  Tuple m;
  Task<RegisterStep> read = max_register().Read(operation, handles_[0], &m);
  bool lost = false;
  ASSERT_FALSE(read.Start());
  while (!read.done()) {
    if (!lost && operation.round_trips == 1) {
      cluster_.node(0).SetReachable(false);
      lost = true;
    }
    ASSERT_TRUE(executor_.RunOnce());
  }
  EXPECT_TRUE(lost);
  EXPECT_TRUE(read.TakeResult().done());
  EXPECT_EQ(TextOf(m.value.bytes), "old");
  Settle();
  EXPECT_EQ(cluster_.Lane(ref_, 1, 3), MetaWord());
}

TEST_F(MaxRegisterTest, AWordWithoutBytesAnywhereIsAnErrorWithinABound) {
  const MetaWord word = NewWord(10);
  for (int replica = 0; replica < 3; ++replica) {
    cluster_.Word(ref_.addr + ref_.shape.lanes_offset(), replica) = word.bits();
  }
  const Done read = Read();
  EXPECT_EQ(read.step.status.code(), StatusCode::kUnavailable);
  EXPECT_LE(read.round_trips, 3 * (RegisterOptions().restarts_max + 1))
      << "lanes, a buffer, another";
}

TEST_F(MaxRegisterTest, AnnouncingWhatAMajorityHoldsCostsNothing) {
  (void)Write(NewWord(10), "hello");
  Settle();
  RegisterOperation operation;
  QuorumCall call = max_register().NewCall(operation, ref_);
  Tuple m;
  ASSERT_TRUE(
      BlockOn(executor_, max_register().ReadLanes(operation, handles_[0], &call, &m)).done());
  EXPECT_EQ(operation.round_trips, 1U);
  EXPECT_TRUE(BlockOn(executor_, max_register().Announce(operation, handles_[0], call, &m)).done());
  EXPECT_EQ(operation.round_trips, 1U);
}

TEST_F(MaxRegisterTest, AReadWidensWhenAPreferredNodeHangs) {
  (void)Write(NewWord(10), "hello");
  Settle();
  network_.PauseNode(NodeId{0});
  const uint64_t start_ns = executor_.NowNs();
  const Done read = Read();
  EXPECT_EQ(read.value(), "hello");
  EXPECT_EQ(max_register().widened(), 1U);
  const uint64_t took_ns = executor_.NowNs() - start_ns;
  const uint64_t trips_ns = 2 * 2 * network_.options().latency_max_ns;
  EXPECT_LE(took_ns, RegisterOptions().widen_first_ns + trips_ns + 2000);
  // From then on it is asked last.
  const uint64_t again_ns = executor_.NowNs();
  EXPECT_EQ(Read().value(), "hello");
  EXPECT_EQ(max_register().widened(), 1U);
  EXPECT_LE(executor_.NowNs() - again_ns, trips_ns + 2000);
  network_.ResumeNode(NodeId{0});
  Settle();
}

// A hiccup: reads soon find values in place there again.
TEST_F(MaxRegisterTest, ANodeThatWasLateOnceIsAskedFirstAgainSoon) {
  (void)Write(NewWord(10), "hello");
  Settle();
  RegisterOperation operation;
  max_register().Verify(operation, handles_[0], Read(1).m);
  Settle();
  EXPECT_EQ(Read().round_trips, 1U);
  const uint64_t start_ns = executor_.NowNs();
  network_.PauseNode(NodeId{0});
  EXPECT_EQ(Read().round_trips, 3U) << "lanes, those of the third, a buffer";
  EXPECT_EQ(max_register().widened(), 1U);
  executor_.RunUntil(start_ns + 100'000);
  EXPECT_EQ(Read().round_trips, 2U) << "it is late still";
  network_.ResumeNode(NodeId{0});
  executor_.RunUntil(start_ns + 250'000);
  EXPECT_EQ(Read().round_trips, 1U);
  EXPECT_EQ(max_register().widened(), 1U);
}

TEST_F(MaxRegisterTest, WideningFollowsTheRoundTripsMeasured) {
  (void)Write(NewWord(10), "hello");
  for (int i = 0; i < 100; ++i) EXPECT_EQ(Read().value(), "hello");
  Settle();
  network_.PauseNode(NodeId{0});
  const uint64_t start_ns = executor_.NowNs();
  EXPECT_EQ(Read().value(), "hello");
  // Several round trips of about 2 us, not the first guess of 50.
  EXPECT_LE(executor_.NowNs() - start_ns, 25'000U);
  network_.ResumeNode(NodeId{0});
  Settle();
}

TEST_F(MaxRegisterTest, WithoutAMajorityStepsFailInTime) {
  cluster_.node(1).SetReachable(false);
  cluster_.node(2).SetReachable(false);
  EXPECT_EQ(Read().step.status.code(), StatusCode::kUnavailable);
  EXPECT_EQ(Write(NewWord(10), "x").step.status.code(), StatusCode::kUnavailable);
}

// Nodes that neither answer nor fail: the operation's own time ends the wait.
TEST_F(MaxRegisterTest, AWaitForSilentNodesEndsWithTheOperationsTime) {
  for (uint16_t node = 1; node < 3; ++node) network_.PauseNode(NodeId{node});
  const uint64_t start_ns = executor_.NowNs();
  EXPECT_EQ(Read().step.status.code(), StatusCode::kUnavailable);
  const uint64_t took_ms = (executor_.NowNs() - start_ns) / 1'000'000;
  EXPECT_GE(took_ms, DataPathOptions().op_timeout_ms);
  EXPECT_LE(took_ms, DataPathOptions().op_timeout_ms + 5);
  for (uint16_t node = 1; node < 3; ++node) network_.ResumeNode(NodeId{node});
  Settle();
}

TEST_F(MaxRegisterTest, OneSealedReplicaIsNoMajorityTwoAreASeal) {
  (void)Write(NewWord(10), "hello");
  Settle();
  cluster_.Seal(ref_, 2) = 77;
  EXPECT_EQ(Read().value(), "hello") << "two open replicas are a majority";
  cluster_.Seal(ref_, 1) = 77;
  const Done read = Read();
  EXPECT_TRUE(read.step.status.ok());
  EXPECT_EQ(read.step.seal, 77U);
  EXPECT_EQ(Write(NewWord(11), "x").step.seal, 77U);
}

TEST_F(MaxRegisterTest, AnotherRegistersMemoryIsToldApart) {
  handles_[0].ref.incarnation += 1;
  EXPECT_EQ(Read().step.status.code(), StatusCode::kNotFound);
}

// PROTOCOLS, "Memory": the pin is held until the last straggler has answered.
TEST_F(MaxRegisterTest, StragglersKeepTheOperationsPin) {
  class Tickets final : public MemoryObserver {
   public:
    void Allocated(GlobalAddr /*addr*/, SizeClass /*size_class*/, MemoryUse /*use*/) override {}
    void Retired(GlobalAddr /*addr*/, SizeClass /*size_class*/) override {}
    void Released(GlobalAddr /*addr*/, SizeClass /*size_class*/, MemoryUse /*use*/) override {}
    void Unnamed(GlobalAddr /*addr*/) override {}
    void Reclaimed(GlobalAddr /*addr*/, SizeClass /*size_class*/) override {}
    uint64_t Pinned() override { return ++pinned; }
    void Unpinned(uint64_t /*ticket*/) override { --pinned; }
    uint64_t pinned = 0;
  };
  Tickets tickets;
  workers_[0]->context.memory_observer = &tickets;
  Reclaimer reclaimer(workers_[0]->context);
  ASSERT_TRUE(BlockOn(executor_, reclaimer.Join()).ok());
  network_.PauseNode(NodeId{2});
  {
    RegisterOperation operation;
    operation.shared_pin = SharedPin(reclaimer.Pin());
    QuorumCall call = max_register().NewCall(operation, ref_);
    ASSERT_TRUE(
        BlockOn(executor_, max_register().Write(operation, handles_[0], NewWord(10),
                                                {WorkerId{1}, BytesOf("x")}, false, nullptr, &call))
            .done());
  }
  EXPECT_EQ(tickets.pinned, 1U);
  network_.ResumeNode(NodeId{2});
  Settle();
  EXPECT_EQ(tickets.pinned, 0U);
}

}  // namespace
}  // namespace onetrip
