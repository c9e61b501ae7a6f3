#include "master/leases.h"

#include <algorithm>
#include <string>
#include <utility>

#include "client_core/layout/global_addr.h"
#include "master/cluster_time.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/fencing.h"
#include "master/node_joins.h"
#include "master/status.h"
#include "master/texts.h"
#include "master/view_changes.h"

namespace onetrip::master {
namespace {

constexpr uint64_t kUsPerMs = 1000;
// A member whose stream ended has this part of a lease to come back: a member renews three times
// in a lease, and may hear of the end only by that.
constexpr uint64_t kAwayPerLease = 2;
// A handshake takes two messages. Each is handled in the driver's turn after the one in which it
// comes, and a turn takes half a lease at most: a longer one is a stall, after which all leases
// start anew. So a member that dials a third of a lease after its stream has ended, when its next
// renewal fails, has proved itself three turns later, 11/6 of a lease after that end. Its lease
// lasts half a lease beyond that end, or longer: 4/3 of a lease are enough.
constexpr uint64_t kHandshakeLeases = 2;

}  // namespace

void FreeUnclaimedSeats(ClusterState& state, const Member& member) {
  for (const Due& due : state.due) {
    const auto* joined = std::get_if<WorkerJoined>(&due.reply.body);
    if (due.member != member.id || joined == nullptr) continue;
    Change change;
    change.kind = ChangeKind::kLeave;
    change.member = member.id;
    change.leave = {joined->worker, joined->index.value};
    EnqueueOwn(state, change);
  }
}

void DropRequests(ClusterState& state, const Member& member) {
  std::erase_if(state.queue, [&](const Change& change) {
    return change.member == member.id && change.stream != 0;
  });
  std::erase_if(state.due, [&](const Due& due) { return due.member == member.id; });
}

void ProlongLease(const ClusterState& state, Member& member, uint64_t now_us) {
  member.lease_end_us = std::max(member.lease_end_us, now_us + state.options.lease_ms * kUsPerMs);
}

void OnHandshake(ClusterState& state, uint64_t member) {
  const auto found = state.members.find(member);
  if (found != state.members.end()) found->second.in_handshake = true;
}

void OnRenew(ClusterState& state, Effects& effects, Member& member, uint64_t now_us,
             const RenewMessage& message) {
  member.lease_end_us = now_us + state.options.lease_ms * kUsPerMs;
  member.renewed_us = now_us;
  member.report = message.report;
  member.report.is_told = true;
  if (member.node.has_value()) {
    Node& node = state.nodes[*member.node];
    node.report = member.report;
    // Stored with the next tick that stores the time.
    if (node.serving) node.mark = std::max(node.mark, message.report.mark);
  }
  // A time that the store does not cover, after this process stood still, must not be told; the
  // next tick makes it durable.
  if (message.quiet || TimeUs(state, now_us) > state.record.time_us) return;
  RenewedMessage renewed{message.sequence, state.time_is_known ? TimeUs(state, now_us) : 0};
  if (member.node.has_value()) renewed.mark = state.nodes[*member.node].record.mark;
  Send(effects, member.stream, renewed);
}

void OnLeave(ClusterState& state, Effects& effects, Member& member, uint64_t now_us) {
  const StreamId stream = member.stream;
  member.stream = 0;
  Close(state, effects, stream, "");
  if (member.kind == MemberKind::kMemoryNode) {
    NodeAway(state, effects, member, now_us, "left", Away::kLeft);
  } else {
    member.left = true;
    Expel(state, effects, member, "it left before its workers had");
  }
}

uint64_t AwayUntil(ClusterState& state, uint64_t now_us) {
  const uint64_t until_us =
      std::max(state.stall_over_us, now_us + state.options.lease_ms * kUsPerMs / kAwayPerLease);
  state.away_until_us = std::max(state.away_until_us, until_us);
  return until_us;
}

// It may live as well as before, on the other side of a connection that broke: then it is back at
// once, or when it hears of that with its next renewal.
void AgentAway(ClusterState& state, Effects& effects, Member& member, uint64_t now_us) {
  FreeUnclaimedSeats(state, member);
  DropRequests(state, member);
  member.standing = Standing::kAway;
  member.lease_end_us = std::min(member.lease_end_us, AwayUntil(state, now_us));
  const uint64_t left_us = member.lease_end_us - std::min(now_us, member.lease_end_us);
  Log(effects, LogLevel::kInfo,
      AgentText(member) + " is away: its stream ended; it has " +
          std::to_string(left_us / kUsPerMs) + " ms to come back");
}

void NoticeStall(ClusterState& state, uint64_t now_us) {
  const uint64_t lease_us = state.options.lease_ms * kUsPerMs;
  if (now_us - state.last_tick_us <= lease_us / 2) return;
  // No member's renewals can be judged by the clock, and connections may have broken unheard.
  for (auto& [id, member] : state.members) {
    member.lease_end_us = std::max(member.lease_end_us, now_us + lease_us);
    if (member.late_since_us != 0) member.late_since_us = now_us;
  }
  state.last_tick_us = now_us;
  state.stall_over_us = now_us + lease_us;
}

void OnMemberTick(ClusterState& state, Effects& effects, Member& member, uint64_t now_us) {
  const std::string lease =
      "its lease of " + std::to_string(state.options.lease_ms) + " ms ran out";
  const uint64_t room_us = std::exchange(member.in_handshake, false)
                               ? kHandshakeLeases * state.options.lease_ms * kUsPerMs
                               : 0;
  const bool is_over = now_us >= member.lease_end_us + room_us;
  if (member.kind == MemberKind::kMemoryNode) {
    if (!is_over) return;
    Close(state, effects, member.stream, lease);
    NodeAway(state, effects, member, now_us, lease, Away::kLost);
    return;
  }
  if (IsOutvoted(state)) return;
  if (member.standing == Standing::kAway && is_over) {
    Expel(state, effects, member, "it has lost its stream and did not come back in time");
  } else if (member.standing == Standing::kUp && is_over) {
    Expel(state, effects, member, lease);
  } else if (member.standing == Standing::kUp && member.late_since_us != 0 &&
             now_us - member.late_since_us >= state.options.ack_timeout_ms * kUsPerMs) {
    Expel(state, effects, member,
          "it did not put the newest cluster map in force within " +
              std::to_string(state.options.ack_timeout_ms) + " ms");
  }
}

}  // namespace onetrip::master
