// How people read the names of agents and nodes, and sizes.
#ifndef ONETRIP_MASTER_TEXTS_H_
#define ONETRIP_MASTER_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "master/state.h"

namespace onetrip::master {

[[nodiscard]] std::string AgentText(const Member& member);
[[nodiscard]] std::string NodeText(size_t node);
// "memory node 1" or "memory nodes 1, 2".
[[nodiscard]] std::string NodesText(const std::vector<NodeId>& nodes);
// Whole MiB, rounded down.
[[nodiscard]] std::string MiB(uint64_t bytes);

}  // namespace onetrip::master

#endif  // ONETRIP_MASTER_TEXTS_H_
