// The coordinator's input at its start, and its effects: see coordinator.h.
#ifndef ONETRIP_MASTER_COORDINATOR_EFFECTS_H_
#define ONETRIP_MASTER_COORDINATOR_EFFECTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client_core/base/log.h"
#include "master/durable_state.h"
#include "master/messages.h"

namespace onetrip {

// One open stream of a process; numbered by the driver, never reused, never 0.
using StreamId = uint64_t;

struct CoordinatorOptions {
  int replicas = 3;
  uint16_t nodes = 3;  // that must have joined before the map is made
  uint64_t lease_ms = 1000;
  uint64_t grace_ms = 2000;         // beyond the lease, for agents to come back after a restart
  uint64_t hold_timeout_ms = 3000;  // then a quiesce ends without its change
  // The same for copies and moves, during which all stand still: one that hangs is not waited for.
  // Doubles, up to the other, until one succeeds.
  uint64_t copy_hold_timeout_ms = 100;
  uint64_t flush_wait_ms = 4000;        // for all agents to attend, before a quiesce may start
  uint64_t ack_timeout_ms = 10'000;     // an agent that takes a view no sooner is expelled
  uint64_t fence_retry_ms = 200;        // after a node said that a fence is not done
  uint64_t repair_retry_ms = 200;       // after an agent said that a repair is not done
  uint64_t repair_timeout_ms = 30'000;  // an agent that takes longer while others hold is expelled
  uint64_t replace_after_ms = 10'000;   // a node that is out for so long is replaced by others
  uint64_t node_wait_ms = 2000;    // for a lost node, while there are no workers but some want to
  uint64_t leave_again_ms = 3000;  // between walks for what lies in regions that leave
  uint64_t copy_pause_ms = 20;     // between regions at least, and copy_pause_factor of the last
  uint64_t copy_pause_factor = 4;
  // Nodes that agents do not reach: how long that must last before a node or an agent has to go for
  // it; how soon after that it counts as the same, if it comes again; and how soon a node that had
  // to go may be back, doubling each time.
  uint64_t reach_settle_ms = 1000;
  uint64_t reach_flap_ms = 10'000;
  uint64_t reach_back_ms = 2000;
  uint64_t time_lead_ms = 2000;  // how far durable time runs ahead of what was told
  size_t requests_max = 4096;    // that wait, of all members together
  size_t members_max = 4096;
  size_t nodes_max = 256;  // ids, spares included
};

// The outcome for a process that has proved itself.
struct Attendance {
  bool welcome = false;
  bool retry = false;     // refused: whether trying again can help
  bool expelled = false;  // refused: it was a member, and was taken for dead
  std::string reason;     // refused: one line
  uint64_t member = 0;    // 0: a tool
  // A member is told no later time with its welcome, for the store covers none; 0: none is known.
  uint64_t time_us_max = 0;
};

struct CoordinatorEffects {
  struct Send {
    StreamId stream;
    MasterMessage message;
  };
  struct Close {
    StreamId stream;
    std::string reason;
  };
  struct LogLine {
    LogLevel level;
    std::string text;
  };
  DurableChange change;       // first
  std::vector<Send> sends;    // then these, in order
  std::vector<Close> closes;  // these after what was sent to them
  std::vector<LogLine> logs;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_COORDINATOR_EFFECTS_H_
