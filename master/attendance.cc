#include "master/attendance.h"

#include <optional>
#include <string>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "master/cluster_time.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/holds.h"
#include "master/leases.h"
#include "master/node_joins.h"
#include "master/records.h"
#include "master/view_changes.h"

namespace onetrip::master {
namespace {

constexpr uint64_t kUsPerMs = 1000;

// That a member which was welcomed by that life may have heard of.
uint64_t NewestEpochOf(const ClusterState& state, uint64_t life) {
  if (life == 0 || life == state.record.life) return state.membership.view().epoch.value;
  auto known = state.lives->find(life);
  if (known == state.lives->end()) known = state.lives->find(0);
  return known == state.lives->end() ? 0 : known->second;
}

// True if the member has seen a newer state of the cluster than this master's.
bool KnowsNewer(const ClusterState& state, const MemberHello& hello) {
  return hello.epoch > NewestEpochOf(state, hello.life);
}

std::optional<std::string> RefuseHello(const ClusterState& state, const MemberHello& hello,
                                       bool* retry) {
  *retry = false;
  if (hello.cluster != 0 && hello.cluster != state.record.cluster) {
    return "this is the master of another cluster (" + ClusterText(state.record.cluster) +
           ", not " + ClusterText(hello.cluster) +
           "); check the master's address and its data directory, which may be empty or not its "
           "own";
  }
  if (KnowsNewer(state, hello) && !Planted(Bug::kOldStateWelcomes)) {
    return "it has the cluster map of epoch " + std::to_string(hello.epoch) +
           ", but this master knows only " + std::to_string(NewestEpochOf(state, hello.life)) +
           " of what it was told then: " +
           "the master's data directory is an old copy; restore the newest one, or make one by "
           "`onetrip master rebuild`";
  }
  if (hello.kind == MemberKind::kAgent) {
    if (auto refusal = RefuseEngine(state, hello.engine)) return refusal;
  }
  if (hello.kind != MemberKind::kOther && hello.member == 0 &&
      state.members.size() >= state.options.members_max) {
    *retry = true;
    return "the cluster has " + std::to_string(state.members.size()) +
           " members, as many as can be";
  }
  return std::nullopt;
}

void StartAttending(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
                    StreamId stream, const MemberHello& hello) {
  member.kind = hello.kind;
  member.info = {hello.pid, hello.host, hello.address, hello.version};
  member.stream = stream;
  member.standing = Standing::kUp;
  member.lease_end_us = now_us + state.options.lease_ms * kUsPerMs;
  member.renewed_us = now_us;
  member.engine = hello.engine;
  member.wall_origin_us = hello.wall_us == 0 ? 0 : hello.wall_us - now_us;
  if (state.members.size() == 1)
    state.last_tick_us = now_us;  // without members there were no ticks
  state.streams[stream] = member.id;
  if (member.kind != MemberKind::kAgent) return;
  effects.change.agents[member.id] = member.info;
  member.sent = 0;
  member.told_usage = 0;
  member.late_since_us = 0;
  member.reaches.clear();
  // A process says so anew on every stream.
  for (auto& [node, unreached] : member.unreached) {
    if (unreached.over_us == 0) unreached.over_us = now_us;
  }
  if (AddressesKnown(state) && MaySendView(state, member)) SendView(state, effects, member, now_us);
  if (state.hold.has_value() && member.sent != 0) Send(effects, stream, HoldMessage(state));
  // It may not have got it; the id tells.
  if (state.repair.has_value() && state.repair->member == member.id && member.sent != 0) {
    Send(effects, stream, state.repair->message);
  }
}

Attendance AttendAgain(ClusterState& state, Effects& effects, uint64_t now_us, StreamId stream,
                       const MemberHello& hello) {
  Attendance attendance;
  const auto found = state.members.find(hello.member);
  const std::string name = "member " + std::to_string(hello.member);
  if (hello.member >= state.record.next_member) {
    attendance.reason = name + " is not known: that number was never given out";
    return attendance;
  }
  if (found == state.members.end() && hello.kind == MemberKind::kAgent) {
    attendance.expelled = true;
    attendance.reason = name + " was taken for dead and expelled; start the process again";
    return attendance;
  }
  if (found != state.members.end()) {
    Member& member = found->second;
    if (member.kind != hello.kind) {
      attendance.reason = name + " is a process of another kind";
      return attendance;
    }
    if (member.standing == Standing::kExpelled || member.standing == Standing::kFenced) {
      attendance.expelled = true;
      attendance.reason = name + " was taken for dead and expelled; start the process again";
      return attendance;
    }
    // The process has noticed sooner than the master that its earlier stream is broken.
    if (member.stream != 0) {
      Close(state, effects, member.stream, "the process has opened a newer stream");
      if (member.kind == MemberKind::kMemoryNode) {
        NodeAway(state, effects, member, now_us, "its stream was replaced", Away::kMayReturn);
      } else {
        FreeUnclaimedSeats(state, member);
        DropRequests(state, member);
      }
    }
  }
  Member& member = state.members[hello.member];
  member.id = hello.member;
  StartAttending(state, effects, member, now_us, stream, hello);
  attendance.welcome = true;
  attendance.member = hello.member;
  return attendance;
}

}  // namespace

std::optional<std::string> RefuseEngine(const ClusterState& state, const std::string& engine) {
  const EngineFamily family = EngineFamilyOf(engine);
  if (family == EngineFamily::kSingleCopy && state.record.replicas != 1) {
    return "engine raw writes one copy of everything, and this cluster keeps " +
           std::to_string(state.record.replicas) +
           " replicas; start the agent with --engine swarm or snapshot, or make a cluster of "
           "--replicas 1";
  }
  if (state.record.engines == EngineFamily::kNone || state.record.engines == family)
    return std::nullopt;
  return family == EngineFamily::kSingleCopy
             ? "engine raw shares a cluster with no other, and this one's keys were written by "
               "swarm, snapshot or abd; start the agent with one of these, or make a cluster for it"
             : "engine " + engine +
                   " shares no cluster with raw, which wrote this one's keys; start the agent with "
                   "--engine raw, or make a cluster for it";
}

bool TurnsAway(ClusterState& state, Effects& effects, const MemberHello& hello,
               Attendance* attendance) {
  auto refusal = RefuseHello(state, hello, &attendance->retry);
  if (!refusal.has_value()) {
    state.knows_newer.erase(hello.member);
    return false;
  }
  attendance->reason = std::move(*refusal);
  if (hello.kind != MemberKind::kMemoryNode || hello.member == 0 || !KnowsNewer(state, hello)) {
    return true;
  }
  const bool was_outvoted = IsOutvoted(state);
  state.knows_newer.insert(hello.member);
  if (IsOutvoted(state) && !was_outvoted) {
    Log(effects, LogLevel::kWarning,
        "more than half of the memory nodes know a newer state of the cluster: the data "
        "directory is an old copy, and nobody is taken for dead on its account; restore the "
        "newest one, or make one by `onetrip master rebuild`");
  }
  return true;
}

Attendance AttendAsMember(ClusterState& state, Effects& effects, uint64_t now_us, StreamId stream,
                          const MemberHello& hello) {
  HearTime(state, now_us, hello);
  AdvanceDurableTime(state, effects, now_us);
  if (hello.member != 0) return AttendAgain(state, effects, now_us, stream, hello);
  Attendance attendance;
  attendance.welcome = true;
  attendance.member = state.record.next_member++;
  SaveCluster(state, effects);
  Member& member = state.members[attendance.member];
  member.id = attendance.member;
  StartAttending(state, effects, member, now_us, stream, hello);
  return attendance;
}

}  // namespace onetrip::master
