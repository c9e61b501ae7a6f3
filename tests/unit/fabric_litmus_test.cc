// The simulated network leaves out what networks of RDMA do not promise: each switch by itself,
// with what holds all the same.
#include <gtest/gtest.h>

#include <memory>
#include <set>

#include "client_core/coro/sync.h"
#include "tests/support/fabric_backends.h"

namespace onetrip {
namespace {

constexpr RemoteAddr kWord{NodeId{0}, 64};

SimFabricOptions Late() {
  SimFabricOptions options;
  options.traits.reads_first = false;
  return options;
}

SimFabricOptions Torn() {
  SimFabricOptions options;
  options.atomics_tear = true;
  return options;
}

SimFabricOptions Backwards() {
  SimFabricOptions options;
  options.writes_backwards = true;
  return options;
}

Task<void> PostIt(Fabric* fabric, RoundTripPtr rt) {
  const Status status = co_await fabric->Post(rt);
  EXPECT_TRUE(status.ok());
}

// One memory node, and workers on a network of the given kind.
class Litmus {
 public:
  Litmus(const SimFabricOptions& options, uint64_t seed)
      : world_(seed), network_(world_, {&node_}, options) {
    for (auto& worker : workers_) worker = std::make_unique<Worker>(world_, network_);
  }

  RoundTripPtr New(size_t worker) { return workers_[worker]->fabric.NewRoundTrip(); }
  void Post(size_t worker, RoundTripPtr rt) {
    workers_[worker]->process.Spawn(gate_, PostIt(&workers_[worker]->fabric, std::move(rt)));
  }
  void Finish() { EXPECT_TRUE(world_.RunUntilIdle()); }
  BareEndpoint& node() { return node_; }

 private:
  struct Worker {
    Worker(SimExecutor& world, SimNetwork& network) : process(world, 1), fabric(process, network) {}
    SimProcess process;
    SimFabric fabric;
  };

  SimExecutor world_;
  BareEndpoint node_{4096};
  SimNetwork network_;
  Gate gate_{world_};
  std::unique_ptr<Worker> workers_[2];
};

// All that `observe(litmus)` returns in many runs.
template <typename Observe>
std::set<uint64_t> Outcomes(const SimFabricOptions& options, Observe observe) {
  std::set<uint64_t> outcomes;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Litmus litmus(options, seed);
    outcomes.insert(observe(litmus));
  }
  return outcomes;
}

using Seen = std::set<uint64_t>;

uint64_t ReadThenCas(Litmus& litmus) {
  RoundTripPtr rt = litmus.New(0);
  const uint64_t* seen = rt->ReadWord(kWord);
  rt->Cas(kWord, 0, 1);
  litmus.Post(0, rt);
  litmus.Finish();
  EXPECT_EQ(litmus.node().word(kWord.offset), 1U);
  return *seen;
}

uint64_t ReadThenWrite(Litmus& litmus) {
  RoundTripPtr rt = litmus.New(0);
  const uint64_t* seen = rt->ReadWord(kWord);
  rt->WriteWord(kWord, 1);
  litmus.Post(0, rt);
  litmus.Finish();
  return *seen;
}

TEST(FabricLitmusTest, AReadMayBringWhatComesBehindIt) {
  EXPECT_EQ(Outcomes({}, ReadThenCas), Seen{0});
  EXPECT_EQ(Outcomes({}, ReadThenWrite), Seen{0});
  EXPECT_EQ(Outcomes(Late(), ReadThenCas), (Seen{0, 1}));
  EXPECT_EQ(Outcomes(Late(), ReadThenWrite), (Seen{0, 1}));
}

TEST(FabricLitmusTest, AReadIsBehindTheReadsAheadOfIt) {
  const auto observe = [](Litmus& litmus) {
    RoundTripPtr rt = litmus.New(0);
    const uint64_t* first = rt->ReadWord(kWord);
    rt->Faa(kWord, 1);
    const uint64_t* second = rt->ReadWord(kWord);
    rt->Faa(kWord, 1);
    const uint64_t* third = rt->ReadWord(kWord);
    litmus.Post(0, rt);
    litmus.Finish();
    return 100 * *first + 10 * *second + *third;
  };
  EXPECT_EQ(Outcomes({}, observe), Seen{12});
  // The first one may even come behind what stands behind the second.
  EXPECT_EQ(Outcomes(Late(), observe), (Seen{12, 22, 112, 122, 222}));
}

TEST(FabricLitmusTest, AReadIsBehindTheWritesAndAtomicsAheadOfIt) {
  const auto observe = [](Litmus& litmus) {
    RoundTripPtr rt = litmus.New(0);
    rt->WriteWord(kWord, 5);
    const size_t cas = rt->Cas(kWord, 5, 6);
    const size_t faa = rt->Faa(kWord, 1);
    const uint64_t* seen = rt->ReadWord(kWord);
    litmus.Post(0, rt);
    litmus.Finish();
    return 100 * rt->op(cas).result + 10 * rt->op(faa).result + *seen;
  };
  for (const SimFabricOptions& options : {SimFabricOptions(), Late(), Torn(), Backwards()}) {
    EXPECT_EQ(Outcomes(options, observe), Seen{567});
  }
}

// Some of its words may be from before what has overtaken it, the others from behind it.
TEST(FabricLitmusTest, AReadMayBeOvertakenMidway) {
  const auto observe = [](Litmus& litmus) -> uint64_t {
    constexpr uint32_t kBytes = 512;
    RoundTripPtr rt = litmus.New(0);
    const auto* seen = reinterpret_cast<const uint64_t*>(rt->Read(kWord, kBytes));
    rt->Cas(kWord, 0, 1);
    rt->Cas({kWord.node, kWord.offset + kBytes - 8}, 0, 1);
    litmus.Post(0, rt);
    litmus.Finish();
    return 10 * seen[0] + seen[kBytes / 8 - 1];
  };
  EXPECT_EQ(Outcomes({}, observe), Seen{0});
  EXPECT_EQ(Outcomes(Late(), observe), (Seen{0, 1, 11}));
}

// An FAA by one worker and a WRITE of 50 by the other come at about one time: all that they leave.
std::set<uint64_t> FaaBesideWrite(SimFabricOptions options, uint64_t addend) {
  options.latency_max_ns = options.latency_min_ns + 20;
  return Outcomes(options, [addend](Litmus& litmus) {
    RoundTripPtr atomic = litmus.New(0);
    atomic->Faa(kWord, addend);
    litmus.Post(0, atomic);
    RoundTripPtr write = litmus.New(1);
    write->WriteWord(kWord, 50);
    litmus.Post(1, write);
    litmus.Finish();
    return litmus.node().word(kWord.offset);
  });
}

TEST(FabricLitmusTest, AWriteAmidAnAtomicMayBeLost) {
  EXPECT_EQ(FaaBesideWrite(Torn(), 1), (Seen{1, 50, 51}));
  EXPECT_EQ(FaaBesideWrite({}, 1), (Seen{50, 51}));
}

// Also amid an FAA of 0, as looks are made.
TEST(FabricLitmusTest, AnAtomicThatChangesNothingMayWriteAllTheSame) {
  EXPECT_EQ(FaaBesideWrite(Torn(), 0), (Seen{0, 50}));
  EXPECT_EQ(FaaBesideWrite({}, 0), Seen{50});
}

TEST(FabricLitmusTest, AtomicsExcludeEachOther) {
  const auto observe = [](Litmus& litmus) {
    for (size_t worker = 0; worker < 2; ++worker) {
      RoundTripPtr rt = litmus.New(worker);
      for (int i = 0; i < 30; ++i) rt->Faa(kWord, 1);
      litmus.Post(worker, rt);
    }
    litmus.Finish();
    return litmus.node().word(kWord.offset);
  };
  EXPECT_EQ(Outcomes(Torn(), observe), Seen{60});
}

TEST(FabricLitmusTest, AWriteMayComeFromItsEnd) {
  const auto observe = [](Litmus& litmus) -> uint64_t {
    constexpr uint32_t kBytes = 512;
    RoundTripPtr write = litmus.New(0);
    std::byte* ones = write->Reserve(kBytes);
    for (uint32_t i = 0; i < kBytes; ++i) ones[i] = std::byte{1};
    write->Write(kWord, ones, kBytes);
    litmus.Post(0, write);
    RoundTripPtr read = litmus.New(1);
    const std::byte* first = read->Read(kWord, 8);
    const std::byte* last = read->Read({kWord.node, kWord.offset + kBytes - 8}, 8);
    litmus.Post(1, read);
    litmus.Finish();
    EXPECT_EQ(litmus.node().word(kWord.offset), 0x0101010101010101U);
    EXPECT_EQ(litmus.node().word(kWord.offset + kBytes - 8), 0x0101010101010101U);
    return 10 * static_cast<uint64_t>(first[0]) + static_cast<uint64_t>(last[0]);
  };
  SimFabricOptions options = Backwards();
  options.latency_max_ns = options.latency_min_ns + 300;
  EXPECT_EQ(Outcomes(options, observe), (Seen{0, 1, 10, 11}));
  options.writes_backwards = false;
  EXPECT_EQ(Outcomes(options, observe), (Seen{0, 10, 11}));
}

// A channel that ends amid a late READ or a torn atomic holds up no one.
TEST(FabricLitmusTest, FaultsAmidLeaveTheNodeToTheOthers) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SimFabricOptions options = Late();
    options.atomics_tear = options.writes_backwards = true;
    options.step_ns = seed % 3 == 0 ? 0 : 40;
    SimExecutor world(seed);
    BareEndpoint node(4096);
    SimNetwork network(world, {&node}, options);
    SimProcess processes[2]{{world, 1}, {world, 2}};
    auto broken = std::make_unique<SimFabric>(processes[0], network);
    SimFabric other(processes[1], network);
    Gate gate(world);
    const auto post = [&](SimProcess& process, SimFabric& fabric, int* done) {
      RoundTripPtr rt = fabric.NewRoundTrip();
      for (int i = 0; i < 8; ++i) {
        (void)rt->Read({NodeId{0}, 0}, 256);
        rt->Faa(kWord, 1);
      }
      process.Spawn(gate, [](SimFabric* on, RoundTripPtr batch, int* count) -> Task<void> {
        (void)co_await on->Post(batch);
        ++*count;
      }(&fabric, std::move(rt), done));
    };
    int done = 0;
    int done_of_other = 0;
    post(processes[0], *broken, &done);
    post(processes[1], other, &done_of_other);
    world.RunUntil(options.latency_min_ns + Rng(seed).Below(1500));
    if (seed % 4 == 0) network.PauseNode(NodeId{0});
    if (seed % 2 == 0) broken->Fence(NodeId{0});
    if (seed % 2 != 0) broken->BreakChannel(NodeId{0});
    world.RunUntil(world.NowNs() + 1000);
    network.ResumeNode(NodeId{0});
    EXPECT_TRUE(world.RunUntilIdle()) << seed;
    EXPECT_EQ(done, 1) << seed;
    EXPECT_EQ(done_of_other, 1) << seed;
    EXPECT_GE(node.word(kWord.offset), 8U) << seed;
  }
}

// An agent of this host's memory waits for no READ.
TEST(FabricLitmusTest, WhatCompletesInlineKeepsTheOrder) {
  SimExecutor world(1);
  BareEndpoint node(4096);
  SimNetwork network(world, {&node}, Late());
  SimProcess process(world, 1);
  const SimFabric inline_fabric(process, world, network);
  EXPECT_TRUE(inline_fabric.traits().reads_first);
}

}  // namespace
}  // namespace onetrip
