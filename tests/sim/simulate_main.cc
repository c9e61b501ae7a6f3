// simulate: runs the simulation, replays a failure, shrinks it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>

#include "client_core/base/planted_bug.h"
#include "tests/sim/bugs.h"
#include "tests/sim/runs.h"

namespace onetrip {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct Flags {
  std::string scenario;  // empty: all in turn
  uint64_t seed = 1;
  uint64_t seeds = 1000;
  uint32_t rounds = 200;
  double minutes = 0;
  std::string plan;
  std::string bug;
  int64_t inline_agents = -1;  // not asked for
  std::string engine;
  bool rdma = false;
  bool timeline = false;
  bool shrink = false;
  bool meetings = false;
  uint64_t steps = RunOptions().steps_max;
};

struct Totals {
  uint64_t schedules = 0;
  uint64_t commands = 0;
  uint64_t unanswered = 0;
  uint64_t fabric_ops = 0;
  uint64_t faults = 0;
  uint64_t reused = 0;
  uint64_t splits = 0;
  uint64_t thawed = 0;
  uint64_t combined = 0;
  uint64_t dropped = 0;
  uint64_t interrupted = 0;
  uint64_t hot = 0;
  uint64_t opened = 0;
  uint64_t acquired = 0;
  uint64_t found = 0;
  uint64_t unsigned_ends = 0;
  uint64_t moved = 0;
  uint64_t shrunk = 0;
  uint64_t held_up_max_ns = 0;
  uint64_t with_registers = 0;  // runs of engines swarm and abd
  MeetingTable meetings;

  void Add(const Report& report, uint64_t count) {
    schedules += count;
    commands += report.commands;
    unanswered += report.unanswered;
    fabric_ops += report.fabric_ops;
    faults += report.faults;
    reused += report.reused;
    splits += report.splits;
    thawed += report.thawed;
    combined += report.combined;
    dropped += report.dropped;
    interrupted += report.interrupted;
    hot += report.hot;
    opened += report.opened;
    acquired += report.acquired;
    found += report.found;
    unsigned_ends += report.unsigned_ends;
    moved += report.moved;
    shrunk += report.shrunk;
    meetings.Add(report.meetings);
    held_up_max_ns = std::max(held_up_max_ns, report.held_up_max_ns);
    with_registers += report.engine != EngineName(EngineKind::kSnapshot) ? count : 0;
  }
};

// Tells how to see the failure again, and makes it small if asked to.
void Explain(const Flags& flags, const std::string& scenario, uint64_t seed, const Report& report) {
  std::cout << "FAILED: " << report.failure << "\nengine: " << report.engine << "\n";
  if (flags.timeline) std::cout << report.timeline;
  std::cout << "replay: simulate --scenario " << scenario << " --seed " << seed << " --seeds 1";
  if (scenario == "small") std::cout << " --rounds " << flags.rounds;
  if (!flags.bug.empty()) std::cout << " --bug " << flags.bug;
  if (flags.rdma) std::cout << " --rdma";
  if (flags.inline_agents >= 0) std::cout << " --inline-agents " << flags.inline_agents;
  std::cout << " --timeline\n";
}

int ShrinkAndPrint(const Plan& plan) {
  const Plan smaller = Shrink(plan);
  RunOptions options;
  options.timeline = true;
  const Report report = RunPlan(smaller, options);
  if (report.ok()) {
    std::cout << "this plan does not fail by itself\n";
    return 0;
  }
  const std::string file = "failing-" + smaller.scenario + ".plan";
  std::ofstream(file) << PlanToText(smaller);
  std::cout << report.timeline << "FAILED: " << report.failure << "\nshrunk to:\n"
            << PlanToText(smaller) << "written: " << file << "\nreplay: simulate --plan " << file
            << " --timeline\n";
  return 1;
}

int RunPlanFile(const Flags& flags) {
  std::ifstream file(flags.plan);
  if (!file) {
    std::cerr << "simulate: cannot read " << flags.plan << "\n";
    return 2;
  }
  std::stringstream text;
  text << file.rdbuf();
  Plan plan;
  std::string error;
  if (!PlanFromText(text.str(), &plan, &error)) {
    std::cerr << "simulate: " << flags.plan << ": " << error << "\n";
    return 2;
  }
  if (flags.shrink) return ShrinkAndPrint(plan);
  RunOptions options;
  options.timeline = flags.timeline;
  options.steps_max = flags.steps;
  const Report report = RunPlan(plan, options);
  std::cout << report.timeline;
  std::cout << "engine: " << report.engine << "\n"
            << (report.ok() ? "passed" : "FAILED: " + report.failure) << "\n";
  return report.ok() ? 0 : 1;
}

Plan PlanOf(const Flags& flags, const Scenario& scenario, uint64_t seed) {
  const PlantedBug* const bug = scenario.name == "small" ? nullptr : FindPlantedBug(flags.bug);
  Plan plan = bug == nullptr ? scenario.Make(seed) : bug->MakePlan(scenario, seed);
  if (flags.inline_agents >= 0) plan.inline_agents = static_cast<uint32_t>(flags.inline_agents);
  // Inline atomics and those of a network do not exclude each other.
  if (plan.inline_agents != 0) plan.fabric.atomics_tear = false;
  if (flags.rdma) UseRdma(&plan);
  return plan;
}

// Runs seed after seed; returns whether all passed.
bool RunScenario(const Flags& flags, const Scenario& scenario, uint64_t first_seed, uint64_t count,
                 SteadyClock::time_point until, Totals* totals) {
  const auto start = SteadyClock::now();
  Totals here;
  RunOptions options;
  options.timeline = flags.timeline;
  options.steps_max = flags.steps;
  const bool small = scenario.name == "small";
  uint64_t seed = first_seed;
  for (; seed < first_seed + count && (seed == first_seed || SteadyClock::now() < until); ++seed) {
    if (!flags.engine.empty() && EngineName(scenario.Make(seed).engine) != flags.engine) continue;
    const Plan plan = PlanOf(flags, scenario, seed);
    const Report report =
        small ? RunSmallPrograms(plan, flags.rounds, options) : RunPlan(plan, options);
    here.Add(report, small ? flags.rounds : 1);
    if (!report.ok()) {
      Explain(flags, std::string(scenario.name), seed, report);
      if (flags.shrink) ShrinkAndPrint(PlanOf(flags, scenario, seed));
      return false;
    }
    if (flags.timeline) std::cout << report.timeline;
  }
  const std::chrono::duration<double> taken = SteadyClock::now() - start;
  std::cout << scenario.name << ": seeds " << first_seed << ".." << seed - 1 << ", "
            << here.schedules << " schedules, " << here.with_registers << " with registers, "
            << here.commands << " commands, " << here.faults << " faults, " << here.unanswered
            << " outcomes unknown, " << here.reused << " objects reused, " << here.splits
            << " splits, " << here.thawed << " registers thawed, " << here.combined
            << " mutations combined, " << here.dropped << " dropped, " << here.interrupted
            << " writes interrupted, " << here.hot << " hot, " << here.opened << " blocks opened, "
            << here.acquired << " of them acquired, " << here.found << " lost objects found, "
            << here.unsigned_ends << " ends that owe a look, " << here.moved << " records moved, "
            << here.shrunk << " times shrunk, " << here.held_up_max_ns
            << " ns held up by a turn at most, " << here.fabric_ops << " fabric operations, "
            << static_cast<uint64_t>(static_cast<double>(here.fabric_ops) / taken.count() / 1000)
            << " k/s, " << taken.count() << " s" << std::endl;
  totals->schedules += here.schedules;
  totals->meetings.Add(here.meetings);
  return true;
}

int Run(const Flags& flags) {
  if (!flags.bug.empty() && !PlantBug(flags.bug)) {
    std::cerr << "simulate: --bug: no such bug, or a build without planted bugs; known are:";
    for (const PlantedBug& bug : PlantedBugs()) std::cerr << " " << bug.name;
    std::cerr << "\n";
    return 2;
  }
  if (!flags.plan.empty()) return RunPlanFile(flags);
  if (!flags.scenario.empty() && FindScenario(flags.scenario) == nullptr) {
    std::cerr << "simulate: --scenario: known are:";
    for (const Scenario& scenario : Scenarios()) std::cerr << " " << scenario.name;
    std::cerr << "\n";
    return 2;
  }
  const auto until = flags.minutes > 0 ? SteadyClock::now() +
                                             std::chrono::duration_cast<SteadyClock::duration>(
                                                 std::chrono::duration<double>(flags.minutes * 60))
                                       : SteadyClock::time_point::max();
  Totals totals;
  uint64_t first = flags.seed;
  do {
    for (const Scenario& scenario : Scenarios()) {
      if (!flags.scenario.empty() && scenario.name != flags.scenario) continue;
      if (!RunScenario(flags, scenario, first, flags.seeds, until, &totals)) return 1;
    }
    first += flags.seeds;
  } while (flags.minutes > 0 && SteadyClock::now() < until);
  if (flags.meetings) std::cout << totals.meetings.ToText();
  std::cout << totals.schedules << " schedules, no failure\n";
  return 0;
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) {
  onetrip::Flags flags;
  CLI::App app("Runs the simulation: scenario after scenario, seed after seed.");
  app.add_option("--scenario", flags.scenario, "Only this one");
  app.add_option("--seed", flags.seed, "The first seed")->capture_default_str();
  app.add_option("--seeds", flags.seeds, "Seeds per scenario")->capture_default_str();
  app.add_option("--rounds", flags.rounds, "Programs per world of scenario small")
      ->capture_default_str();
  app.add_option("--minutes", flags.minutes, "Go on with further seeds for so long");
  app.add_option("--plan", flags.plan, "Run the plan in this file instead");
  app.add_option("--engine", flags.engine, "Only seeds that draw this engine");
  app.add_option("--bug", flags.bug, "Plant this bug (builds of the preset tests)");
  app.add_option("--inline-agents", flags.inline_agents,
                 "The agents whose operations complete inline, bit i: agent i; 0 none, 255 all "
                 "(drawn by the seed)");
  auto* const rdma =
      app.add_flag("--rdma", flags.rdma,
                   "The network promises no more than RDMA: no MAX, late READs, atomics that only "
                   "exclude each other (a quarter of the seeds draw some of it)");
  rdma->excludes("--inline-agents");
  app.add_flag("--timeline", flags.timeline, "Print who did what on which node");
  app.add_flag("--shrink", flags.shrink, "Cut a failing plan down to what still fails");
  app.add_option("--steps", flags.steps, "After so many steps a run is said to have no end")
      ->capture_default_str();
  app.add_flag("--meetings", flags.meetings, "Print which mechanisms and faults met how often");
  CLI11_PARSE(app, argc, argv);
  return onetrip::Run(flags);
}
