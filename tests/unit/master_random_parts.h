// A random cluster (master_random_cluster.h) keeps these parts for its members.
#ifndef ONETRIP_TESTS_UNIT_MASTER_RANDOM_PARTS_H_
#define ONETRIP_TESTS_UNIT_MASTER_RANDOM_PARTS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>

#include "master/coordinator.h"
#include "master/messages.h"

namespace onetrip {

struct RandomClusterParts {
  struct Task {
    uint64_t id = 0;
    RepairKind kind = RepairKind::kResolveSlots;
    std::shared_ptr<const View> view;
    uint32_t region = 0;
  };
  struct Process {
    uint64_t member = 0;
    uint64_t held = 0;
    HoldKind held_how = HoldKind::kStart;
    std::optional<Task> task;  // a repair that it is at
    uint64_t in_force = 0;
    std::set<uint32_t> workers;
  };
  struct Agent {
    int process = 0;
    bool hung = false;  // says nothing any more
    std::set<uint64_t> pending;
    std::deque<MasterMessage> unheard;
  };
  struct Node {
    StreamId stream = 0;
    bool serving = false;
    std::deque<MasterMessage> unheard;
  };
  // One node, over all lives of its process.
  struct NodeMemory {
    int number = -1;  // its number in the map
    // It cannot be trusted, and no place was given to the node since that counts on nothing in it.
    bool damaged = false;
  };
  struct Acting {
    int process = 0;
    uint16_t index = 0;
    std::set<int> refused_by;
    size_t known_nodes = 0;  // a zombie has never heard of nodes with higher numbers
  };

  // Returns true if a database has a keyspace that another database had before.
  static bool Swaps(const View& before, const View& view) {
    for (uint32_t i = 0; i < kMaxDatabases; ++i) {
      for (uint32_t j = 0; j < kMaxDatabases; ++j) {
        if (i != j && before.keyspaces[i] == view.keyspaces[j]) return true;
      }
    }
    return false;
  }
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_MASTER_RANDOM_PARTS_H_
