// Decides on memory nodes that some agents reach and others do not: the master's rule, pure.
//
// The reports are a bipartite graph of agents and nodes. Every edge must go: by the node's leaving
// the map, which is for all, or by the agent's leaving the cluster. One step at a time: whoever
// carries it out asks again afterwards.
#ifndef ONETRIP_MASTER_REACH_VERDICT_H_
#define ONETRIP_MASTER_REACH_VERDICT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace onetrip {

// An agent that has a say, and the nodes that it does not reach, each once.
struct ReachReport {
  uint64_t agent = 0;
  std::vector<uint16_t> unreached;
};

struct ReachVerdict {
  enum class Kind : uint8_t {
    kNothing,   // everybody reaches every node
    kNodeOut,   // `node` goes out for all
    kAgentOut,  // `agent` is expelled: it does not reach `node`, and others reach what is needed
    kNobody,    // no agent could go on without the nodes that it does not reach; `node` is one
  };
  Kind kind = Kind::kNothing;
  uint64_t agent = 0;
  uint16_t node = 0;
  size_t by = 0;  // agents that do not reach `node`
  size_t of = 0;  // agents that were heard
};

// `may_leave(nodes)`: whether every region keeps a majority of its replicas without these nodes; if
// it does, then so it does without some of them.
//
//  1. An agent is beyond help if the nodes that it does not reach could not all leave. It is
//     expelled if another is not; if all are, there is nothing to decide.
//  2. A node that half of the agents or more do not reach is put out. So is one that one of two
//     does not reach: that costs a replica until the network is whole, the agent all its clients.
//  3. Else the agent that does not reach a node is expelled, the one that misses most first.
ReachVerdict JudgeReach(std::span<const ReachReport> agents,
                        const std::function<bool(const std::vector<uint16_t>&)>& may_leave);

}  // namespace onetrip

#endif  // ONETRIP_MASTER_REACH_VERDICT_H_
