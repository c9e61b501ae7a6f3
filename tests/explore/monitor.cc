#include "tests/explore/monitor.h"

#include <utility>

namespace onetrip {

Monitor::Monitor(const Scope& scope) : scope_(scope) {
  State first;
  first.worlds.insert({scope.InitialValue(), {}});
  Intern(first);
}

Monitor::StateId Monitor::Intern(const State& state) {
  const auto [found, is_new] = ids_.try_emplace(state, static_cast<StateId>(ids_.size()));
  if (is_new) states_.push_back(&found->first);
  return found->second;
}

void Monitor::Close(State* state) const {
  std::vector<World> unseen(state->worlds.begin(), state->worlds.end());
  while (!unseen.empty()) {
    const World world = std::move(unseen.back());
    unseen.pop_back();
    for (const OpenOp& op : state->open) {
      if (world.results.contains(op)) continue;
      const Scope::SpecStep step = scope_.Apply(world.value, op.client, op.op);
      World next = world;
      next.value = step.value;
      next.results[op] = step.result;
      if (state->worlds.insert(next).second) unseen.push_back(std::move(next));
    }
  }
}

Monitor::StateId Monitor::Take(const Step& step) {
  const auto found = steps_.find(step);
  if (found != steps_.end()) return found->second;
  const auto& [from, event, client, op, result] = step;
  const OpenOp which{client, op};
  State next;
  next.open = states_[from]->open;
  if (event == Event::kStart) {
    next.open.insert(which);
    next.worlds = states_[from]->worlds;
    Close(&next);
  } else {
    next.open.erase(which);
    for (const World& world : states_[from]->worlds) {
      const auto effect = world.results.find(which);
      const bool fits = effect != world.results.end() && effect->second == result;
      if (event == Event::kReturn && !fits) continue;
      World rest = world;
      rest.results.erase(which);
      next.worlds.insert(std::move(rest));
    }
  }
  const StateId id = next.worlds.empty() ? kViolated : Intern(next);
  steps_.emplace(step, id);
  return id;
}

bool Monitor::MayBe(StateId state, uint64_t value) const {
  for (const World& world : states_[state]->worlds) {
    if (world.value == value) return true;
  }
  return false;
}

}  // namespace onetrip
