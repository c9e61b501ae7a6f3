// The planted bugs by name, and which scenario has to find each.
#ifndef ONETRIP_TESTS_SIM_BUGS_H_
#define ONETRIP_TESTS_SIM_BUGS_H_

#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>

#include "client_core/base/planted_bug.h"
#include "tests/sim/plan.h"

namespace onetrip {

struct PlantedBug {
  Bug bug;
  std::string_view name;
  std::string_view scenario;   // where to look for it
  uint64_t seeds = 4000;       // seeds of the scenario, in which it must be found
  uint64_t first_seed = 1;     // close before one that finds it, where few do
  bool inline_agents = false;  // the operations of all agents complete inline
  bool sets_twice = false;     // every SET comes twice, so that the key has a buffer behind it

  // The plan of a seed in which it is looked for: all agents are over a network, or, with
  // `inline_agents`, all on the memory nodes' host; the fabric has MAX.
  [[nodiscard]] Plan MakePlan(const Scenario& in, uint64_t seed) const;
};
// By its name, in the name of a test.
inline void PrintTo(const PlantedBug& bug, std::ostream* out) { *out << bug.name; }

std::span<const PlantedBug> PlantedBugs();
// Null if there is none of that name.
const PlantedBug* FindPlantedBug(std::string_view name);

// Switches one on, "none" switches off. False if there is none of that name, or in a build without
// them.
bool PlantBug(std::string_view name);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_BUGS_H_
