// What a master's store holds after a change, for stores in memory.
#ifndef ONETRIP_TESTS_SUPPORT_DURABLE_CHANGE_H_
#define ONETRIP_TESTS_SUPPORT_DURABLE_CHANGE_H_

#include "master/durable_state.h"

namespace onetrip {

inline void ApplyChange(const DurableChange& change, DurableState* state) {
  if (change.cluster.has_value()) state->cluster = *change.cluster;
  for (const auto& [id, node] : change.nodes) {
    if (state->nodes.size() <= id) state->nodes.resize(size_t{id} + 1);
    state->nodes[id] = node;
  }
  for (const auto& [region, placement] : change.regions) {
    if (state->regions.size() <= region) state->regions.resize(size_t{region} + 1);
    state->regions[region] = placement;
  }
  for (const auto& [index, seat] : change.seats) {
    if (seat.has_value()) {
      state->seats[index] = *seat;
    } else {
      state->seats.erase(index);
    }
  }
  for (const auto& [id, agent] : change.agents) {
    if (agent.has_value()) {
      state->agents[id] = *agent;
    } else {
      state->agents.erase(id);
    }
  }
  for (const auto& [life, epoch] : change.lives) {
    if (epoch.has_value()) {
      state->lives[life] = *epoch;
    } else {
      state->lives.erase(life);
    }
  }
  for (const auto& [worker, is_one] : change.former) {
    if (is_one) {
      state->former.insert(worker);
    } else {
      state->former.erase(worker);
    }
  }
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_DURABLE_CHANGE_H_
