// Safe-Guess and ABD over In-n-Out in simulation: histories of faulty worlds are linearizable,
// reads end within the paper's bound, and every planted breach of the protocol's rules is found.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "tests/sim/register_world.h"
#include "tests/support/scale.h"

namespace onetrip {
namespace {

// ONETRIP_REGISTER_SEEDS, ONETRIP_REGISTER_FIRST: a longer run, or another.
uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Totals {
  uint64_t operations = 0;
  uint64_t finished = 0;
  uint64_t fast_reads = 0;
  uint64_t fast_writes = 0;
  uint64_t slow_writes = 0;
  uint64_t rewrites = 0;
  uint64_t reused = 0;
  uint32_t iterations_max = 0;
};

// Runs seeds from 1 on, up to the first failure.
void RunSeeds(int seeds, const RegisterRunOptions& options, Totals* totals) {
  const uint64_t first = FromEnvironment("ONETRIP_REGISTER_FIRST", 1);
  const uint64_t count = FromEnvironment("ONETRIP_REGISTER_SEEDS", static_cast<uint64_t>(seeds));
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const RegisterReport report = RunRegisters(seed, options);
    ASSERT_TRUE(report.ok()) << "seed " << seed << ": " << report.failure;
    totals->operations += report.operations;
    totals->finished += report.finished;
    totals->fast_reads += report.fast_reads;
    totals->fast_writes += report.fast_writes;
    totals->slow_writes += report.slow_writes;
    totals->rewrites += report.rewrites;
    totals->reused += report.reused;
    totals->iterations_max = std::max(totals->iterations_max, report.iterations_max);
  }
  printf(
      "%llu seeds from %llu: %llu operations, %llu ended, of one round trip %llu reads and %llu "
      "writes, slow writes %llu, rewrites %llu, buffers reused %llu, at most %u iterations of a "
      "read\n",
      static_cast<unsigned long long>(count), static_cast<unsigned long long>(first),
      static_cast<unsigned long long>(totals->operations),
      static_cast<unsigned long long>(totals->finished),
      static_cast<unsigned long long>(totals->fast_reads),
      static_cast<unsigned long long>(totals->fast_writes),
      static_cast<unsigned long long>(totals->slow_writes),
      static_cast<unsigned long long>(totals->rewrites),
      static_cast<unsigned long long>(totals->reused), totals->iterations_max);
}

TEST(RegisterSimulation, HistoriesAreLinearizableUnderFaults) {
  Totals totals;
  RunSeeds(Scaled(20'000), {}, &totals);
  // The runs reach what they are there for.
  EXPECT_GT(totals.fast_reads, 0U);
  EXPECT_GT(totals.fast_writes, 0U);
  EXPECT_GT(totals.rewrites, 0U);
  EXPECT_GT(totals.reused, 0U);
  EXPECT_GT(totals.slow_writes, totals.rewrites) << "some locks are lost to readers";
  EXPECT_GT(totals.iterations_max, 2U);
}

TEST(RegisterSimulation, HistoriesOfAbdAreLinearizableUnderFaults) {
  Totals totals;
  RunSeeds(Scaled(10'000), {.protocol = RegisterProtocol::kAbd}, &totals);
  EXPECT_EQ(totals.fast_writes, 0U);
  EXPECT_EQ(totals.rewrites, 0U);
  EXPECT_GT(totals.reused, 0U);
  EXPECT_EQ(totals.iterations_max, 1U) << "there are no guesses";
}

// An agent of one protocol beside agents of the other.
TEST(RegisterSimulation, HistoriesOfBothProtocolsOnOneRegisterAreLinearizable) {
  Totals totals;
  RunSeeds(Scaled(20'000), {.protocol = RegisterProtocol::kMixed}, &totals);
  EXPECT_GT(totals.fast_writes, 0U);
  EXPECT_GT(totals.rewrites, 0U);
  EXPECT_GT(totals.iterations_max, 2U);
}

TEST(RegisterSimulation, ReadersOfAbdEndThoughWritersAreFrozenAtAnyStep) {
  Totals totals;
  RunSeeds(Scaled(2000),
           {.protocol = RegisterProtocol::kMixed, .faults = false, .freeze_writers = true},
           &totals);
  EXPECT_LT(totals.finished, totals.operations) << "some writers were frozen in a write";
}

// SWARM C.2: no step waits for a writer. RunRegisters checks that all reads end, and the bound.
TEST(RegisterSimulation, ReadersEndThoughWritersAreFrozenAtAnyStep) {
  Totals totals;
  RunSeeds(Scaled(5000), {.faults = false, .freeze_writers = true}, &totals);
  EXPECT_LT(totals.finished, totals.operations) << "some writers were frozen in a write";
}

TEST(RegisterSimulation, ASeedIsOneRun) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    EXPECT_EQ(RunRegisters(seed).trace, RunRegisters(seed).trace) << "seed " << seed;
  }
}

#ifdef ONETRIP_PLANTED_BUGS
// Tries seed after seed until a run fails; in a child process, since a bug may end in a CHECK. The
// seed that found it, 0 if none did.
bool Finds(const RegisterBug& bug, uint64_t seeds) {
  const pid_t child = fork();
  if (child == 0) {
    TEST_planted_bug = bug.bug;
    for (uint64_t seed = bug.first_seed; seed < bug.first_seed + seeds; ++seed) {
      const RegisterReport report =
          RunRegisters(seed, {.protocol = bug.protocol, .freeze_writers = seed % 4 == 0});
      if (report.ok()) continue;
      fprintf(stderr, "seed %llu: %s\n", static_cast<unsigned long long>(seed),
              report.failure.c_str());
      _exit(1);
    }
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}
#endif

class RegisterPlantedBugTest : public testing::TestWithParam<RegisterBug> {};

TEST_P(RegisterPlantedBugTest, IsFound) {
#ifdef ONETRIP_PLANTED_BUGS
  EXPECT_TRUE(Finds(GetParam(), 400'000)) << GetParam().name;
#else
  GTEST_SKIP() << "a build without planted bugs; take the preset tests";
#endif
}

INSTANTIATE_TEST_SUITE_P(Bugs, RegisterPlantedBugTest,
                         testing::ValuesIn(RegisterBugs().begin(), RegisterBugs().end()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace onetrip
