#include "tests/sim/runs.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

namespace onetrip {
namespace {

// A plan that fails, and ways to make it smaller.
class Shrinker {
 public:
  Shrinker(Plan plan, uint32_t runs_max) : plan_(std::move(plan)), runs_left_(runs_max) {}

  Plan Run() {
    Plan given = plan_;
    if (!Fails(&given, 1)) return plan_;
    for (bool smaller = true; smaller && runs_left_ > 0;) {
      smaller = RemoveFaults();
      smaller |= RemoveClients();
      for (size_t chunk = 8; chunk > 0; chunk /= 2) smaller |= RemoveCommands(chunk);
    }
    return plan_;
  }

 private:
  // Returns true if `plan` fails with its own seed or one of the next; keeps the seed that does.
  bool Fails(Plan* plan, uint32_t seeds) {
    for (uint32_t i = 0; i < seeds && runs_left_ > 0; ++i, ++plan->seed) {
      --runs_left_;
      if (!RunPlan(*plan).ok()) return true;
    }
    return false;
  }

  bool Try(const std::function<void(Plan*)>& cut) {
    constexpr uint32_t kSeeds = 20;
    Plan smaller = plan_;
    cut(&smaller);
    if (!Fails(&smaller, kSeeds)) return false;
    plan_ = std::move(smaller);
    return true;
  }

  bool RemoveFaults() {
    bool removed = false;
    for (size_t i = plan_.faults.size(); i > 0; --i) {
      removed |= Try([&](Plan* plan) { plan->faults.erase(plan->faults.begin() + i - 1); });
    }
    return removed;
  }

  // Emptied, not erased: the others stay with their agents.
  bool RemoveClients() {
    bool removed = false;
    for (size_t i = 0; i < plan_.program.size(); ++i) {
      if (plan_.program[i].empty()) continue;
      removed |= Try([&](Plan* plan) { plan->program[i].clear(); });
    }
    return removed;
  }

  bool RemoveCommands(size_t chunk) {
    bool removed = false;
    for (size_t client = 0; client < plan_.program.size(); ++client) {
      for (size_t first = 0; first + chunk <= plan_.program[client].size();) {
        const bool gone = Try([&](Plan* plan) {
          auto& commands = plan->program[client];
          commands.erase(commands.begin() + first, commands.begin() + first + chunk);
        });
        removed |= gone;
        if (!gone) first += chunk;
      }
    }
    return removed;
  }

  Plan plan_;
  uint32_t runs_left_;
};

}  // namespace

Report RunPlan(const Plan& plan, const RunOptions& options) {
  World world(plan, options);
  if (world.RunProgram(plan.program, plan.faults)) world.Finish();
  return world.TakeReport();
}

Report RunSmallPrograms(Plan of_seed, uint32_t rounds, const RunOptions& options) {
  Plan plan = std::move(of_seed);
  const auto shapes = SmallShapes();
  plan.agents = 5;
  World world(plan, options);
  Rng rng(plan.seed);
  for (uint32_t round = 0; round < rounds; ++round) {
    const std::string_view shape = shapes[rng.Below(shapes.size())];
    if (!world.RunProgram(MakeSmallProgram(shape, "k" + std::to_string(round)), {})) {
      Report report = world.TakeReport();
      report.failure = "round " + std::to_string(round) + ": " + report.failure;
      return report;
    }
  }
  world.Finish();
  return world.TakeReport();
}

Plan Shrink(Plan plan, uint32_t runs_max) { return Shrinker(std::move(plan), runs_max).Run(); }

}  // namespace onetrip
