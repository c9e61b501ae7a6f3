// An index that grows under whatever else other scenarios are about.
#include <algorithm>
#include <iterator>

#include "tests/sim/crowded_keys.h"
#include "tests/sim/scenario_parts.h"

namespace onetrip {
namespace {

// SETs of keys that are new, between the commands of every client; some of the keys are deleted, or
// read, some time later.
void AddNewKeys(Rng& rng, bool with_deadlines, Program* program) {
  const auto clients = static_cast<uint32_t>(program->size());
  const uint32_t per_client = (60 + static_cast<uint32_t>(rng.Below(80))) / clients;
  for (uint32_t client = 0; client < clients; ++client) {
    std::vector<Command>& commands = (*program)[client];
    // In the order in which the names are given out.
    std::vector<Command> grown;
    size_t next = 0;
    for (uint32_t i = 0; i < per_client; ++i) {
      const size_t until = commands.size() * (i + 1) / per_client;
      for (; next < until; ++next) grown.push_back(commands[next]);
      const std::string number = std::to_string(client * 1000 + i);
      grown.push_back({"SET", "new" + number, "n" + number});
      if (with_deadlines && rng.Below(3) == 0) {
        grown.back().push_back("PX");
        grown.back().push_back(std::to_string(1 + rng.Below(3)));
      }
      if (i == 0) continue;
      const std::string other = std::to_string(rng.Below(clients) * 1000 + rng.Below(i));
      switch (rng.Below(8)) {
        case 0:
          grown.push_back({"DEL", "new" + other});
          break;
        case 1:
          grown.push_back({"GET", "new" + other});
          break;
        case 2:
          grown.push_back({"APPEND", "new" + other, "a" + number});
          break;
        default:
          break;
      }
    }
    commands = std::move(grown);
  }
}

size_t LongestOf(const Program& program) {
  size_t longest = 0;
  for (const std::vector<Command>& client : program) longest = std::max(longest, client.size());
  return longest;
}

}  // namespace

void MakeGrow(Rng& rng, bool with_deadlines, Plan* plan) {
  const size_t before = LongestOf(plan->program);
  AddNewKeys(rng, with_deadlines, &plan->program);
  // The faults are spread over the longer program.
  const size_t factor = std::max<size_t>(1, LongestOf(plan->program) / std::max<size_t>(before, 1));
  for (Fault& fault : plan->faults) fault.at_ns *= factor;
  const std::vector<std::string>& keys = GrowingKeys();
  RenameKeys({keys.begin() + kLastGrowingKeys, keys.end()}, &plan->program);
  // A worker that waits for another's round in a slot gives way to a quiesce after 20 ms.
  plan->control.hold_timeout_ms = std::max<uint64_t>(plan->control.hold_timeout_ms, 50);
  plan->last_growth = 1;
}

Plan MakeGrowth(uint64_t seed) {
  constexpr Plan (*kUnder[])(uint64_t) = {MakeTurnover, MakeFaults, MakeMembers, MakeRepairs,
                                          MakeTurnover, MakeMoves,  MakeExpiry,  MakeFlush,
                                          MakeBroken,   MakeSwap,   MakeExtents, MakeTurnover};
  Plan plan = kUnder[seed % std::size(kUnder)](seed);
  plan.scenario = "growth";
  Rng rng(seed ^ 0x6704'0000'0000);
  MakeGrow(rng, /*with_deadlines=*/rng.Below(3) == 0, &plan);
  return plan;
}

}  // namespace onetrip
