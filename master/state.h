// ClusterState: all that the master knows of its cluster, as plain values. The store has the part
// that must outlive the process (durable_state.h); everything else is learnt anew from the members.
//
// Copyable. The parts of the coordinator take it by reference, and change it within one event; what
// must hold after every event is in WhatDoesNotHold().
#ifndef ONETRIP_MASTER_STATE_H_
#define ONETRIP_MASTER_STATE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "master/coordinator_effects.h"
#include "master/durable_state.h"
#include "master/membership.h"
#include "master/messages.h"
#include "master/usage_watch.h"

namespace onetrip {

// How people read and write a cluster's name.
std::string ClusterText(uint64_t cluster);

namespace master {

using Effects = CoordinatorEffects;

enum class Standing : uint8_t {
  kUp,
  kAway,      // an agent of before a restart, or whose stream ended: it may come back for a while
  kExpelled,  // must be fenced on every node that is not out
  kFenced,    // was; its seats will be free in the next view
};

struct ReachQuestion {
  uint64_t id = 0;
  bool reached = false;
};

// A node that an agent does not reach.
struct Unreached {
  uint32_t worker = 0;     // that noticed; 0: none, it has not joined yet
  uint64_t since_us = 0;   // for people
  uint64_t counts_us = 0;  // the report counts as of then
  uint64_t over_us = 0;    // it is reached again since; 0: it is not
};

struct Member {
  uint64_t id = 0;
  MemberKind kind = MemberKind::kAgent;
  AgentRecord info;
  StreamId stream = 0;  // 0: does not attend
  uint64_t lease_end_us = 0;
  // A process that says it is this member has a handshake under way, not proved yet; until the next
  // tick.
  bool in_handshake = false;
  uint64_t renewed_us = 0;
  MemberReport report;
  uint64_t told_usage = 0;      // UsageWatch::version() of what it was told
  uint64_t wall_origin_us = 0;  // its host's wall clock less this one's steady clock; 0: unknown
  // Agents.
  std::string engine;
  Standing standing = Standing::kUp;
  bool left = false;
  std::set<uint16_t> seats;  // worker indices
  uint64_t sent = 0;         // epoch of the newest view that it was sent; 0: none
  uint64_t in_force = 0;
  uint64_t held = 0;
  uint64_t late_since_us = 0;  // it owes a ViewInForce since; 0: it owes none
  // By node: the question whether it reaches the node as that is now, and whether it has said so.
  std::map<uint16_t, ReachQuestion> reaches;
  std::map<uint16_t, Unreached> unreached;  // by node
  // Memory nodes.
  std::optional<uint16_t> node;
  std::optional<uint64_t> join_request;  // waits for the map, or until its node is out
  JoinNodeRequest offer;
};

struct Node {
  NodeRecord record;
  uint64_t member = 0;  // that attends for it; 0: none
  bool serving = false;
  std::string damage;  // in the memory that `member` brings, until the node is out; empty: none
  bool left = false;   // in order, when it does not attend
  AgentRecord info;    // the process that was there last
  MemberReport report;
  std::set<uint32_t> fenced;  // expelled workers that it has confirmed
  uint64_t fence = 0;         // the one it has not answered; 0: none
  std::vector<WorkerId> fence_workers;
  uint64_t fence_retry_us = 0;  // 0: nothing to repeat
  bool fence_complained = false;
  uint64_t lost_at_us = 0;  // it counts as lost then, unless it serves
  uint64_t out_epoch = 0;   // the view's, or a later one's, in which it went out
  uint64_t mark = 0;        // the newest one of its memory; the record has what is stored
  // It serves, and yet is to be put out: too many agents do not reach it.
  bool cut_off = false;
  uint64_t reach_since_us = 0;  // agents may have a channel to it since
  uint32_t cuts = 0;            // for which it was put out, one soon after the other
  uint64_t last_cut_us = 0;
  uint64_t not_back_before_us = 0;
};

enum class ChangeKind : uint8_t {
  kJoin,
  kLeave,
  kFlush,
  kSwap,
  kAddress,
  kFenced,
  kNodeIn,
  kReplace,
  kNameNodes,
  kIdleOut,
  kMovesOver,
  kRefresh
};
// A change of the view that waits for its turn.
struct Change {
  ChangeKind kind = ChangeKind::kRefresh;
  uint64_t member = 0;  // who asked, or was fenced
  StreamId stream = 0;  // where the reply goes; 0: no caller waits
  uint64_t request = 0;
  LeaveWorkerRequest leave;
  std::optional<uint32_t> database;
  SwapRequest swap;
  uint16_t node = 0;
  uint64_t since_us = 0;
};
// A reply that goes out once everybody is under the view of `epoch`.
struct Due {
  uint64_t epoch = 0;
  uint64_t member = 0;
  StreamId stream = 0;
  ReplyMessage reply;
};
// The work that a quiesce is for: the rows of work/work_table.cc. A flush lets go on what has
// started: no agent looks into the old keyspace. A swap waits for it: its other database would see
// it come.
enum class Work : uint8_t {
  kFlush,
  kSwap,
  kNodeOut,
  kResolve,
  kCopy,
  kRecordsOnly,
  kMove,
  kGrow,
  kLeave,      // regions leave, others than before
  kMoveIndex,  // ... and the index leaves them
  kCut         // ... and are gone
};
struct Hold {
  uint64_t epoch = 0;
  uint64_t end_us = 0;
  uint64_t since_us = 0;
  Work work = Work::kFlush;
  std::vector<NodeId> leave = {};  // for kNodeOut
  uint32_t region = 0;             // for kCopy
  NodeId target{};
  RegionMove move = {};                     // for kMove
  std::vector<RegionPlacement> grown = {};  // for kGrow: behind the regions that there are
  uint16_t leaving = 0;                     // for kLeave
  bool repaired = false;
  bool failed = false;
};
// The work that an agent was asked for and has not answered; at most one.
struct Repair {
  uint64_t id = 0;
  RepairKind kind = RepairKind::kResolveSlots;
  uint64_t member = 0;
  uint64_t since_us = 0;
  // A scrub of before a node went out, or a look for blocks of before a worker's end: done, it
  // counts for nothing.
  bool overtaken = false;
  RepairMessage message;
};

// How a memory node went, or whether it has gone at all.
enum class Away : uint8_t { kLeft, kLost, kMayReturn };

struct ClusterState {
  CoordinatorOptions options;
  ClusterRecord record;
  std::vector<Node> nodes;  // by id; empty before there is a map
  MembershipState membership;
  std::shared_ptr<const View> view;      // the one that members were sent last
  std::map<uint16_t, SeatRecord> seats;  // by worker index
  std::map<uint64_t, Member> members;
  std::map<StreamId, uint64_t> streams;  // to the member; 0: a tool
  std::vector<uint64_t> forming;         // members that wait for the map, in the order they joined
  std::deque<Change> queue;
  std::vector<Due> due;
  std::optional<Hold> hold;
  std::optional<Repair> repair;
  std::set<uint32_t> former;      // DurableState::former
  size_t missing_regions = 0;     // regions that lack a replica
  std::vector<uint32_t> held;     // by node: replicas that are there, or missing there
  std::vector<uint32_t> lacking;  // by node: those that are missing there
  // Nodes that an operator has given up, until they are out. Not durable: it is asked for again.
  std::vector<NodeId> accepted_loss;
  uint64_t placement_epoch = 0;  // the view's, or a later one's, that changed places last
  uint64_t repair_not_before_us = 0;
  uint64_t copy_not_before_us = 0;
  uint32_t copies_given_up = 0;  // in a row: an agent did not quiesce in time
  uint64_t move_not_before_us = 0;
  uint64_t leave_again_us = 0;
  // Since the view says records_only, and slots were last resolved; not durable.
  bool registers_ended = false;
  uint64_t walk = 0;
  uint32_t walk_tries = 0;            // by the agent that was asked last, cut short by quiesces
  bool ended_registers_last = false;  // among the work that is done beside other work
  uint64_t failed_repairer = 0;       // the one whose turn is over; 0: none
  uint64_t former_repairer = 0;       // the life before's: released before all others; 0: none
  uint64_t next_repair = 1;
  uint64_t next_reach = 1;
  bool take_over_due = false;  // not durable: a restarted master has it done once
  bool take_over_cut = false;  // whoever was asked last came to no end
  std::shared_ptr<const std::map<uint64_t, uint64_t>> lives;  // DurableState::lives
  std::set<uint64_t> knows_newer;  // memory nodes, by member, that were refused for that
  uint64_t time_origin_us = 0;     // cluster time less steady time
  // Some process has told it: before that no worker joins, and no member is told it.
  bool time_is_known = false;
  uint64_t wall_decides_us = 0;  // then no member is waited for that might know it
  uint64_t wall_origin_us = 0;   // this host's wall clock less steady time
  uint64_t last_tick_us = 0;
  // Until then a stream may have ended because this process stood still, not the one behind it.
  uint64_t stall_over_us = 0;
  uint64_t away_until_us = 0;  // a member whose stream ended may come back until then
  uint64_t next_fence = 1;
  std::string told_waiting_for;
  std::string told_unreached;        // the node without which no agent can be helped
  uint64_t nobody_helped_us = 0;     // when that was so last
  bool nobody_helped_again = false;  // it had been so a short while before, too
  std::string told_damaged;
  std::string told_not_done;  // a repair's reason; empty since one was done
  UsageWatch usage_watch;

  [[nodiscard]] bool has_map() const { return record.epoch != 0; }
  // Nodes that the view names; spares may have higher ids.
  [[nodiscard]] uint16_t NodesInView() const {
    return static_cast<uint16_t>(membership.view().nodes.size());
  }
};

// One line of what contradicts itself in the state between two events; empty: nothing.
std::string WhatDoesNotHold(const ClusterState& state);

}  // namespace master
}  // namespace onetrip

#endif  // ONETRIP_MASTER_STATE_H_
