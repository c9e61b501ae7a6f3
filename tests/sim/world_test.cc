// The simulation itself: that it is deterministic, that it holds, and that its parts work.
//
// How many seeds run is set so that they fit a CI run; scripts/simulate.sh goes on for as long as
// one likes. ONETRIP_SIM_SCALE (1) multiplies them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>

#include "client_core/layout/size_class.h"
#include "tests/sim/memory_watch.h"
#include "tests/sim/plan.h"
#include "tests/sim/runs.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

uint64_t SeedsOf(int seeds) {
  const char* scale = std::getenv("ONETRIP_SIM_SCALE");
  // A sanitizer looks for other things than schedules: it gets a part of them.
  const double factor = (scale == nullptr ? 1 : std::atof(scale)) * (kSlowdown > 1 ? 0.2 : 1);
  return std::max<uint64_t>(1, static_cast<uint64_t>(Scaled(seeds) * factor));
}

// For what is about the simulation itself, or one long schedule; nothing that a sanitizer would see
// only there.
#define ONETRIP_SKIP_UNDER_SANITIZER() \
  if (kSlowdown > 1)                   \
  GTEST_SKIP() << "takes minutes under a sanitizer, which sees the same elsewhere"

struct ScenarioSeeds {
  const char* scenario;
  uint64_t first_seed;
  int seeds;
};

void PrintTo(const ScenarioSeeds& seeds, std::ostream* out) { *out << seeds.scenario; }

class Simulation : public testing::TestWithParam<ScenarioSeeds> {};

TEST_P(Simulation, EveryHistoryIsLinearizableAndMemoryAddsUp) {
  const Scenario* scenario = FindScenario(GetParam().scenario);
  ASSERT_NE(scenario, nullptr);
  const uint64_t first = GetParam().first_seed;
  const uint64_t count = SeedsOf(GetParam().seeds);
  uint64_t commands = 0;
  uint64_t faults = 0;
  uint64_t unanswered = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const Report report = RunPlan(scenario->Make(seed));
    ASSERT_TRUE(report.ok()) << report.failure << "\nreplay: simulate --scenario " << scenario->name
                             << " --seed " << seed << " --seeds 1 --timeline";
    commands += report.commands;
    faults += report.faults;
    unanswered += report.unanswered;
  }
  std::cout << scenario->name << ": " << count << " seeds, " << commands << " commands, " << faults
            << " faults, " << unanswered << " outcomes unknown\n";
}

// Several cases of the slower ones, so that they share the cores.
INSTANTIATE_TEST_SUITE_P(
    Seeds, Simulation,
    testing::Values(ScenarioSeeds{"calm", 1, 900}, ScenarioSeeds{"tight", 1, 500},
                    ScenarioSeeds{"expiry", 1, 600}, ScenarioSeeds{"skewed", 1, 500},
                    ScenarioSeeds{"crowded", 1, kSlowdown > 1 ? 250 : 750},
                    ScenarioSeeds{"twins", 1, 500}, ScenarioSeeds{"full", 1, 30},
                    ScenarioSeeds{"broken", 1, 500}, ScenarioSeeds{"faults", 1, 1250},
                    ScenarioSeeds{"faults", 100'001, 1250}, ScenarioSeeds{"flush", 1, 1000},
                    ScenarioSeeds{"members", 1, 1000}, ScenarioSeeds{"mixed", 1, 500},
                    ScenarioSeeds{"turnover", 1, 600}, ScenarioSeeds{"frozen", 10'001, 300},
                    ScenarioSeeds{"moves", 1, 150},
                    ScenarioSeeds{"joins", 1001, kSlowdown > 1 ? 200 : 100},
                    // An INCR that waited for a node beside a FLUSHALL and a deadline.
                    ScenarioSeeds{"storm", 801153, 1}, ScenarioSeeds{"storm", 1001, 150},
                    ScenarioSeeds{"extents", 1, 200}, ScenarioSeeds{"collections", 1, 500},
                    ScenarioSeeds{"growth", 1, 300}, ScenarioSeeds{"cuts", 1, 200},
                    ScenarioSeeds{"control", 1, 300}, ScenarioSeeds{"swap", 1, 300},
                    ScenarioSeeds{"repairs", 1, 250}, ScenarioSeeds{"minority", 1, 200},
                    ScenarioSeeds{"appends", 1, 500}, ScenarioSeeds{"brim", 1, 120},
                    ScenarioSeeds{"scarce", 1, 120}, ScenarioSeeds{"spread", 1, 100}),
    [](const auto& info) {
      return std::string(info.param.scenario) + "_from_" + std::to_string(info.param.first_seed);
    });

class SmallPrograms : public testing::TestWithParam<uint64_t> {};

TEST_P(SmallPrograms, EveryScheduleIsLinearizable) {
  constexpr uint32_t kRounds = 200;
  constexpr int kWorlds = 120;
  const uint64_t first = GetParam();
  const uint64_t worlds = SeedsOf(kWorlds);
  for (uint64_t seed = first; seed < first + worlds; ++seed) {
    const Report report = RunSmallPrograms(FindScenario("small")->Make(seed), kRounds);
    ASSERT_TRUE(report.ok()) << report.failure << "\nreplay: simulate --scenario small --seed "
                             << seed << " --seeds 1 --rounds " << kRounds << " --timeline";
  }
  std::cout << "small: " << worlds * kRounds << " schedules\n";
}

INSTANTIATE_TEST_SUITE_P(Worlds, SmallPrograms, testing::Values(1, 1'000'001));

// Seeds that have found something once.
TEST(SimulationRegressions, ASetThatFindsASubtableBusyLetsItsWorkerGoOn) {
  // It polled for as long as an operation may take, and never gave up its thread.
  Plan plan = FindScenario("growth")->make(545);
  plan.inline_agents = ~uint32_t{0};
  const Report report = RunPlan(plan);
  EXPECT_TRUE(report.ok()) << report.failure;
}

// An agent lost its lease only because those that stood above it on the stack went on.
TEST(SimulationRegressions, AnInlineAgentGoesOnWhenItsTimeHasComeWhoeverElseScans) {
  ONETRIP_SKIP_UNDER_SANITIZER();
  Plan plan = FindScenario("spread")->make(710'025);
  plan.inline_agents = ~uint32_t{0};
  const Report report = RunPlan(plan);
  EXPECT_TRUE(report.ok()) << report.failure;
}

// An inline turn holds the master and the others up for less than the third of a lease after which
// members renew it.
TEST(Simulation, NoInlineTurnHoldsTheWorldUpForLong) {
  for (const std::string_view scenario : {"control", "members", "spread", "storm"}) {
    const uint64_t seeds = SeedsOf(6);
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      Plan plan = FindScenario(scenario)->make(seed);
      plan.inline_agents = ~uint32_t{0};
      const Report report = RunPlan(plan);
      ASSERT_TRUE(report.ok()) << report.failure;
      EXPECT_LT(report.held_up_max_ns, plan.control.lease_ms * 1'000'000 / 3)
          << scenario << " seed " << seed;
    }
  }
}

TEST(SimulationRegressions, AReadOfARecordThatExpiresMeanwhile) {
  // A GET answered nil of a record that expired after its slot had been overwritten.
  const Report report = RunPlan(FindScenario("expiry")->Make(1375));
  EXPECT_TRUE(report.ok()) << report.failure;
}

// A memory node of one region, for what only looks at memory.
struct RegionEndpoint final : MemoryEndpoint {
  [[nodiscard]] std::byte* base() const override { return memory; }
  [[nodiscard]] uint64_t bytes() const override { return kRegionBytes; }
  ControlReply Handle(const ControlRequest& /*request*/) override { return {}; }
  std::byte* memory = nullptr;
};

// A span goes back to its node, and its last block is granted for small objects: writing those is
// writing nothing that is free, but a write beside them still is.
TEST(MemoryWatch, ForgetsWhatWasFreeInABlockThatChangedItsClass) {
  const auto bytes = std::make_unique<std::byte[]>(kRegionBytes);
  RegionEndpoint endpoint;
  endpoint.memory = bytes.get();
  View view;
  view.replicas = 1;
  view.node_count = 1;
  view.regions.push_back({});
  MemoryWatch watch({&endpoint}, view);
  const SizeClass span = SizeClass::For(2 * kBlockBytes - kBlockHeaderBytes);
  const GlobalAddr spanning(0, 10 * kBlockBytes + kBlockHeaderBytes);
  const SizeClass small = SizeClass::For(64);
  const GlobalAddr later(0, 11 * kBlockBytes + kBlockHeaderBytes);
  watch.Adopted(spanning.block_start(), span, nullptr);
  watch.Allocated(spanning, span, MemoryUse::kObject);
  watch.Released(spanning, span, MemoryUse::kObject);
  watch.Listed(spanning);
  watch.GivenBack(spanning.block_start());
  watch.Adopted(later.block_start(), small, nullptr);
  watch.Allocated(later, small, MemoryUse::kObject);
  watch.Written(NodeId{0}, later.offset());
  watch.Written(NodeId{0}, later.block_start().offset());
  EXPECT_EQ(watch.failure(), "");
  watch.Allocated(later + 64, small, MemoryUse::kObject);
  watch.Released(later + 64, small, MemoryUse::kObject);
  watch.Written(NodeId{0}, later.offset());
  EXPECT_EQ(watch.failure(), "");
  watch.Written(NodeId{0}, later.offset() + 64 + 63);
  EXPECT_NE(watch.failure(), "");
}

// Every object of a block is in its owner's list, in use or on its way, and only one of these.
TEST(MemoryWatch, ConservesObjects) {
  const auto bytes = std::make_unique<std::byte[]>(kRegionBytes);
  RegionEndpoint endpoint;
  endpoint.memory = bytes.get();
  View view;
  view.replicas = 1;
  view.node_count = 1;
  view.regions.push_back({});
  const SizeClass small = SizeClass::For(64);
  const GlobalAddr block(0, 10 * kBlockBytes);
  const GlobalAddr addr = ObjectAddr(block, small, 3);
  const auto after = [&](const auto& steps) {
    MemoryWatch watch({&endpoint}, view);
    watch.Adopted(block, small, nullptr);
    steps(watch);
    return watch.failure();
  };
  EXPECT_EQ(after([&](MemoryWatch& watch) {
              watch.Allocated(addr, small, MemoryUse::kObject);
              watch.Retired(addr, small);
              watch.Released(addr, small, MemoryUse::kObject);
              EXPECT_EQ(watch.OnTheWay().size(), 1U);
              watch.Listed(addr);
              EXPECT_EQ(watch.OnTheWay().size(), 0U);
              watch.GivenBack(block);
            }),
            "");
  EXPECT_THAT(after([&](MemoryWatch& watch) { watch.Listed(addr); }),
              testing::HasSubstr("freed twice"));
  EXPECT_THAT(after([&](MemoryWatch& watch) {
                watch.Allocated(addr, small, MemoryUse::kObject);
                watch.Listed(addr);
              }),
              testing::HasSubstr("freed that is in use"));
  EXPECT_THAT(after([&](MemoryWatch& watch) {
                watch.Allocated(addr, small, MemoryUse::kObject);
                watch.Released(addr, small, MemoryUse::kObject);
                watch.Allocated(addr, small, MemoryUse::kObject);
              }),
              testing::HasSubstr("in no list"));
  EXPECT_THAT(after([&](MemoryWatch& watch) {
                watch.Allocated(addr, small, MemoryUse::kObject);
                watch.GivenBack(block);
              }),
              testing::HasSubstr("not all is free"));
  EXPECT_THAT(after([&](MemoryWatch& watch) { watch.Adopted(block, small, nullptr); }),
              testing::HasSubstr("granted that somebody has"));
}

// A node that is out may still write what it was sent before.
TEST(MemoryWatch, LeavesReplicasAloneThatAreMissing) {
  const auto bytes = std::make_unique<std::byte[]>(2 * kRegionBytes);
  RegionEndpoint endpoints[2];
  View view;
  view.replicas = 2;
  view.node_count = 2;
  view.regions.push_back({});
  view.regions[0].nodes[1] = NodeId{1};
  for (int node = 0; node < 2; ++node) endpoints[node].memory = &bytes[node * kRegionBytes];
  MemoryWatch watch({&endpoints[0], &endpoints[1]}, view);
  const GlobalAddr addr(0, 10 * kBlockBytes + kBlockHeaderBytes);
  watch.Adopted(addr.block_start(), SizeClass::For(64), nullptr);
  watch.Allocated(addr, SizeClass::For(64), MemoryUse::kObject);
  watch.Released(addr, SizeClass::For(64), MemoryUse::kObject);
  view.regions[0].missing = 1;
  watch.UseView(view);
  // Behind its lock word, which is cleared once it is free.
  watch.Written(NodeId{1}, addr.offset() + 8);
  EXPECT_EQ(watch.failure(), "");
  watch.Written(NodeId{0}, addr.offset() + 8);
  EXPECT_NE(watch.failure(), "");
}

TEST(SimulationDeterminism, OnePlanOneTrace) {
  ONETRIP_SKIP_UNDER_SANITIZER();
  for (const Scenario& scenario : Scenarios()) {
    const int seeds = scenario.name == "full" ? 1 : 10;
    for (uint64_t seed = 1; seed <= static_cast<uint64_t>(seeds); ++seed) {
      const Plan plan = scenario.Make(seed);
      const Report first = RunPlan(plan);
      const Report second = RunPlan(plan);
      ASSERT_EQ(first.trace_hash, second.trace_hash) << scenario.name << ", seed " << seed;
      ASSERT_EQ(first.steps, second.steps) << scenario.name << ", seed " << seed;
    }
  }
  EXPECT_NE(RunPlan(FindScenario("calm")->Make(1)).trace_hash,
            RunPlan(FindScenario("calm")->Make(2)).trace_hash);
}

// The events that the scenarios are about do happen in them.
TEST(SimulationMembers, SwapsHappen) {
  uint64_t swaps = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Report report = RunPlan(FindScenario("swap")->Make(seed));
    EXPECT_TRUE(report.ok()) << report.failure;
    swaps += report.swaps;
  }
  EXPECT_GT(swaps, 20U);
}

TEST(SimulationMembers, FlushesAndExpulsionsHappen) {
  uint64_t flushes = 0;
  uint64_t expelled = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Report report = RunPlan(FindScenario("members")->Make(seed));
    ASSERT_TRUE(report.ok()) << report.failure;
    flushes += report.flushes;
    expelled += report.expelled;
  }
  EXPECT_GT(flushes, 200U);
  EXPECT_GT(expelled, 1U);
}

TEST(SimulationRegisters, EndUnderTheirWriters) {
  for (const std::string_view name : {"small", "calm", "tight", "broken", "faults"}) {
    Report sum;
    const auto seeds = static_cast<uint64_t>(Scaled(60));
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      const Report report = name == "small" ? RunSmallPrograms(FindScenario(name)->Make(seed), 20)
                                            : RunPlan(FindScenario(name)->Make(seed));
      ASSERT_TRUE(report.ok()) << report.failure;
      sum.thawed += report.thawed;
      sum.dropped += report.dropped;
      sum.interrupted += report.interrupted;
    }
    // The same seeds do the same in every build: what all of them come to, the plain one has told.
    if (kSlowdown > 1) continue;
    EXPECT_GT(sum.thawed, 20U) << name;
    EXPECT_GT(sum.dropped, 20U) << name;
    EXPECT_GT(sum.interrupted, 5U) << name;
  }
}

TEST(SimulationPlans, SurviveBeingWrittenAndRead) {
  for (const Scenario& scenario : Scenarios()) {
    const auto seeds = static_cast<uint64_t>(Scaled(20));
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      const Plan plan = scenario.Make(seed);
      const std::string text = PlanToText(plan);
      Plan again;
      std::string error;
      ASSERT_TRUE(PlanFromText(text, &again, &error)) << error;
      ASSERT_EQ(PlanToText(again), text) << scenario.name << ", seed " << seed;
    }
  }
  const Plan plan = FindScenario("faults")->Make(3);
  Plan again;
  std::string error;
  ASSERT_TRUE(PlanFromText(PlanToText(plan), &again, &error));
  EXPECT_EQ(RunPlan(plan).trace_hash, RunPlan(again).trace_hash);
}

TEST(SimulationPlans, ThreeOfFourAreOfEngineSwarmSomeOfAbdAndAThirdHasATinyCache) {
  constexpr uint64_t kSeeds = 1000;
  uint64_t swarm = 0;
  uint64_t abd = 0;
  uint64_t tiny = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Plan plan = FindScenario("calm")->Make(seed);
    swarm += plan.engine == EngineKind::kSwarm ? 1 : 0;
    abd += plan.engine == EngineKind::kAbd ? 1 : 0;
    tiny += plan.data_path.register_cache_entries <= 8 ? 1 : 0;
  }
  EXPECT_GT(swarm, kSeeds * 7 / 10);
  EXPECT_LT(swarm, kSeeds * 8 / 10);
  EXPECT_GT(abd, kSeeds / 25);
  EXPECT_GT(tiny, kSeeds / 4);
  EXPECT_LT(tiny, kSeeds / 2);
}

TEST(SimulationPlans, ATextWithoutAnEngineMeansSnapshot) {
  Plan plan;
  std::string error;
  ASSERT_TRUE(PlanFromText("seed 3\nengine swarm\nregister_lanes 16\nprogram\n", &plan, &error));
  EXPECT_EQ(plan.engine, EngineKind::kSwarm);
  EXPECT_EQ(plan.data_path.register_lanes, 16U);
  ASSERT_TRUE(PlanFromText("seed 3\nprogram\n", &plan, &error));
  EXPECT_EQ(plan.engine, EngineKind::kSnapshot);
  ASSERT_TRUE(PlanFromText("engine mixed\nprogram\n", &plan, &error));
  EXPECT_EQ(EngineOf(plan, 0), EngineKind::kSwarm);
  EXPECT_EQ(EngineOf(plan, 1), EngineKind::kSnapshot);
  EXPECT_NE(PlanToText(plan).find("engine mixed\n"), std::string::npos);
  EXPECT_FALSE(PlanFromText("engine raw\nprogram\n", &plan, &error));
  EXPECT_NE(error.find("engine raw"), std::string::npos);
}

TEST(SimulationPlans, ATextThatIsNoneIsRefusedWithTheLine) {
  Plan plan;
  std::string error;
  EXPECT_FALSE(PlanFromText("seed x\nprogram\n", &plan, &error));
  EXPECT_NE(error.find("seed x"), std::string::npos);
  EXPECT_FALSE(PlanFromText("speed 3\nprogram\n", &plan, &error));
  EXPECT_FALSE(PlanFromText("fault melt-node 1 2 3 4 5\nprogram\n", &plan, &error));
  EXPECT_NE(error.find("melt-node"), std::string::npos);
  EXPECT_FALSE(PlanFromText("seed 3\n", &plan, &error));
}

TEST(SimulationTimeline, TellsWhoDidWhatWhere) {
  RunOptions options;
  options.timeline = true;
  Plan plan = FindScenario("small")->Make(1);
  plan.program = MakeSmallProgram("W WW RR R");
  const Report report = RunPlan(plan, options);
  for (const char* part :
       {"sends \"SET\" \"k\"", "agent 0 @  node 0", "CAS @", "gets \"+OK", " us "}) {
    EXPECT_NE(report.timeline.find(part), std::string::npos) << part;
  }
}

TEST(SimulationSpeed, OfFabricOperationsIsPrinted) {
  ONETRIP_SKIP_UNDER_SANITIZER();
  const auto start = std::chrono::steady_clock::now();
  uint64_t operations = 0;
  const uint64_t seeds = 10;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    operations += RunSmallPrograms(FindScenario("small")->Make(seed), 200).fabric_ops;
  }
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  std::cout << static_cast<double>(operations) / taken.count() / 1e6
            << " M fabric operations a second, checking included\n";
  EXPECT_GT(operations, seeds * 10'000U);
}

}  // namespace
}  // namespace onetrip
