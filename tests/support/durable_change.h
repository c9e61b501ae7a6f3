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
  if (!change.regions.empty()) state->regions = change.regions;
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
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_DURABLE_CHANGE_H_
