#include "master/coordinator.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "master/attendance.h"
#include "master/cluster_time.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/fencing.h"
#include "master/holds.h"
#include "master/leases.h"
#include "master/lost_nodes.h"
#include "master/node_joins.h"
#include "master/reach.h"
#include "master/records.h"
#include "master/region_moves.h"
#include "master/repairs.h"
#include "master/restore.h"
#include "master/shrinking.h"
#include "master/status.h"
#include "master/usage.h"
#include "master/view_changes.h"
#include "master/work/work_table.h"

namespace onetrip {

using namespace master;  // NOLINT

Result<Coordinator> Coordinator::Create(const CoordinatorOptions& options,
                                        const DurableState& durable, uint64_t fresh_cluster,
                                        uint64_t fresh_life, uint64_t now_us, uint64_t unix_us,
                                        std::string* reason) {
  Coordinator made;
  const onetrip::Status status =
      Restore(options, durable, {fresh_cluster, fresh_life, now_us, unix_us}, &made.state_,
              &made.effects_, reason);
  if (!status.ok()) return status;
  return made;
}

uint64_t Coordinator::TimeUs(uint64_t now_us) const { return master::TimeUs(state_, now_us); }

StatusReply Coordinator::Status(uint64_t now_us) const { return MakeStatus(state_, now_us); }

uint64_t Coordinator::TickMs() const {
  const uint64_t tick_ms = std::clamp<uint64_t>(state_.options.lease_ms / 6, 10, 200);
  // Holds for copies are short, and so are the pauses between them and the time that a member has
  // to come back; what else a copy or a move waits for is told.
  const bool is_short =
      state_.hold.has_value()
          ? KindOf(state_.hold->work).is_of_region()
          : state_.last_tick_us < std::max(state_.copy_not_before_us, state_.away_until_us);
  return is_short ? std::min(tick_ms, std::max<uint64_t>(state_.options.copy_pause_ms, 10))
                  : tick_ms;
}

// ---- Events ----

Attendance Coordinator::Attend(uint64_t now_us, StreamId stream, const MemberHello& hello) {
  Attendance attendance;
  if (TurnsAway(state_, effects_, hello, &attendance)) return attendance;
  // Tools are told no time: nothing of them is durable, so that they are welcome on a full disk.
  if (hello.kind == MemberKind::kOther) {
    state_.streams[stream] = 0;
    attendance.welcome = true;
    return attendance;
  }
  attendance = AttendAsMember(state_, effects_, now_us, stream, hello);
  if (attendance.welcome) {
    // After the master has stood still the last tick may be long ago.
    AdvanceDurableTime(state_, effects_, now_us);
    attendance.time_us_max = state_.time_is_known ? state_.record.time_us : 0;
  }
  Pump(now_us);
  return attendance;
}

void Coordinator::OnMessage(uint64_t now_us, StreamId stream, const MemberMessage& message) {
  if (!state_.streams.contains(stream)) return;
  Member* const member = MemberOn(state_, stream);
  if (const auto* request = std::get_if<RequestMessage>(&message)) {
    OnRequest(member, now_us, stream, *request);
  } else if (member == nullptr) {
    return;
  } else if (const auto* renew = std::get_if<RenewMessage>(&message)) {
    OnRenew(state_, effects_, *member, now_us, *renew);
    return;
  } else if (const auto* held = std::get_if<ViewHeldMessage>(&message)) {
    if (state_.hold.has_value() && held->epoch.value == state_.hold->epoch)
      member->held = state_.hold->epoch;
  } else if (const auto* in_force = std::get_if<ViewInForceMessage>(&message)) {
    OnViewInForce(*member, now_us, in_force->epoch);
  } else if (const auto* fenced = std::get_if<FencedMessage>(&message)) {
    OnFenced(state_, effects_, *member, now_us, *fenced);
  } else if (const auto* repaired = std::get_if<RepairedMessage>(&message)) {
    OnRepaired(state_, effects_, *member, now_us, *repaired);
  } else if (const auto* reached = std::get_if<ReachedMessage>(&message)) {
    OnReached(*member, *reached);
  } else if (const auto* unreached = std::get_if<UnreachedMessage>(&message)) {
    OnUnreached(state_, effects_, *member, now_us, *unreached);
  }
  Pump(now_us);
}

void Coordinator::OnHeard(uint64_t now_us, StreamId stream) {
  Member* const member = MemberOn(state_, stream);
  if (member != nullptr) ProlongLease(state_, *member, now_us);
}

void Coordinator::OnHandshake(uint64_t member) { master::OnHandshake(state_, member); }

void Coordinator::OnStreamClosed(uint64_t now_us, StreamId stream, bool has_ended) {
  const auto found = state_.streams.find(stream);
  if (found == state_.streams.end()) return;
  Member* const member = MemberOn(state_, stream);
  state_.streams.erase(found);
  if (member == nullptr) return;
  NoticeStall(state_, now_us);
  member->stream = 0;
  has_ended |= Planted(Bug::kResetIsDeath);
  if (member->kind == MemberKind::kMemoryNode) {
    NodeAway(state_, effects_, *member, now_us,
             has_ended ? "its process has ended" : "its stream ended",
             has_ended ? Away::kLost : Away::kMayReturn);
  } else if (has_ended) {
    Expel(state_, effects_, *member, "its process has ended");
  } else {
    AgentAway(state_, effects_, *member, now_us);
  }
  Pump(now_us);
}

void Coordinator::OnTick(uint64_t now_us) {
  NoticeStall(state_, now_us);
  state_.last_tick_us = now_us;
  std::vector<uint64_t> ids;
  ids.reserve(state_.members.size());
  for (const auto& [id, member] : state_.members) ids.push_back(id);
  for (const uint64_t id : ids) {
    const auto found = state_.members.find(id);
    if (found != state_.members.end()) OnMemberTick(state_, effects_, found->second, now_us);
  }
  for (size_t node = 0; node < state_.nodes.size(); ++node) {
    if (state_.nodes[node].fence_retry_us != 0 && now_us >= state_.nodes[node].fence_retry_us) {
      state_.nodes[node].fence_retry_us = 0;
      SendFences(state_, effects_, static_cast<uint16_t>(node));
    }
  }
  if (!state_.streams.empty()) AdvanceDurableTime(state_, effects_, now_us);
  if (!IsOutvoted(state_)) JudgeWhoIsReached(state_, effects_, now_us);
  TellUsage(state_, effects_);
  Pump(now_us);
}

void Coordinator::OnStop(uint64_t now_us) {
  // Then no member will come back that knows the time.
  state_.record.nobody_stayed =
      state_.members.empty() && std::all_of(state_.nodes.begin(), state_.nodes.end(),
                                            [](const Node& node) { return node.left; });
  state_.record.time_us = TimeUs(now_us);
  SaveMarks(state_, effects_);
  SaveCluster(state_, effects_);
}

// ---- The order of work ----

void Coordinator::Pump(uint64_t now_us) {
  const uint64_t wait_us = state_.options.flush_wait_ms * 1000;
  if (!state_.hold.has_value() && now_us >= wait_us && HasQueuedOfKeyspaces(state_)) {
    const std::string who = WhoIsAway(state_, {});
    FailChangesOfKeyspaces(state_, effects_, now_us - wait_us,
                           who.empty() ? "the map changes too slowly" : who);
  }
  // Not before the time is needed: a member that knows it may still come back.
  if (HasQueued(state_, ChangeKind::kJoin)) LetWallClockDecide(state_, effects_, now_us);
  // Every turn but the last commits a view, and by that empties the queue or makes a member late.
  while (state_.has_map()) {
    CheckFenced(state_);
    CheckFormerRepairer(state_, effects_, now_us);
    CheckRepairer(state_, effects_, now_us);
    if (state_.hold.has_value()) SettleHold(state_, effects_, now_us);
    if (state_.hold.has_value() || SomebodyAttendingIsLate(state_) || state_.former_repairer != 0)
      break;
    // A worker knows that it has joined before it is asked to hold.
    SendDueReplies(state_, effects_, now_us);
    TryStartHold(state_, effects_, now_us);
    if (state_.hold.has_value()) continue;
    EnqueueReplacements(state_, now_us);
    EnqueueMoveChanges(state_, now_us);
    EnqueueNodesIn(state_, now_us);
    const bool any = std::any_of(
        state_.queue.begin(), state_.queue.end(),
        [this](const Change& change) { return MayCommit(state_, change, std::nullopt); });
    if (!any) break;
    Commit(state_, effects_, now_us);
  }
  if (state_.has_map()) AskWhoReaches(state_, effects_);
  if (state_.has_map()) WalkAgainForLeaving(state_, now_us);
  if (state_.has_map() && state_.former_repairer == 0)
    StartBackgroundRepair(state_, effects_, now_us);
  PlaceDamaged(state_, effects_);
  SendDueReplies(state_, effects_, now_us);
  TellWhatJoinsWaitFor(state_, effects_);
  TellWhatDamagedWaitFor(state_, effects_);
}

// ---- Requests ----

void Coordinator::OnRequest(Member* member, uint64_t now_us, StreamId stream,
                            const RequestMessage& message) {
  if (std::holds_alternative<StatusRequest>(message.body)) {
    Send(effects_, stream,
         ReplyMessage{message.id, StatusCode::kOk, {}, MakeStatus(state_, now_us)});
    return;
  }
  if (std::holds_alternative<LeaveRequest>(message.body)) {
    Reply(effects_, stream, message.id, StatusCode::kOk);
    if (member != nullptr) {
      OnLeave(state_, effects_, *member, now_us);
    } else {
      Close(state_, effects_, stream, "");
    }
    return;
  }
  if (member == nullptr && std::holds_alternative<MoveRegionsRequest>(message.body)) {
    return OnMoveRegions(state_, effects_, stream, now_us, message.id,
                         std::get<MoveRegionsRequest>(message.body));
  }
  if (member == nullptr && std::holds_alternative<AcceptLossRequest>(message.body)) {
    return OnAcceptLoss(state_, effects_, stream, now_us, message.id,
                        std::get<AcceptLossRequest>(message.body));
  }
  const bool agent = member != nullptr && member->kind == MemberKind::kAgent;
  const bool node = member != nullptr && member->kind == MemberKind::kMemoryNode;
  Change change;
  change.stream = stream;
  change.request = message.id;
  if (node && std::holds_alternative<JoinNodeRequest>(message.body)) {
    OnJoinNode(state_, effects_, *member, now_us, message.id,
               std::get<JoinNodeRequest>(message.body));
  } else if (node && member->node.has_value() &&
             std::holds_alternative<NoteMarkRequest>(message.body)) {
    SaveMark(state_, effects_, *member->node, std::get<NoteMarkRequest>(message.body).mark);
    Reply(effects_, stream, message.id, StatusCode::kOk);
  } else if (node && std::holds_alternative<ServeNodeRequest>(message.body)) {
    OnServeNode(state_, effects_, *member, message.id, std::get<ServeNodeRequest>(message.body));
  } else if (agent && std::holds_alternative<JoinWorkerRequest>(message.body)) {
    change.kind = ChangeKind::kJoin;
    Enqueue(state_, effects_, *member, now_us, change);
  } else if (agent && std::holds_alternative<LeaveWorkerRequest>(message.body)) {
    change.kind = ChangeKind::kLeave;
    change.leave = std::get<LeaveWorkerRequest>(message.body);
    Enqueue(state_, effects_, *member, now_us, change);
  } else if (agent && std::holds_alternative<FlushRequest>(message.body)) {
    change.kind = ChangeKind::kFlush;
    change.database = std::get<FlushRequest>(message.body).database;
    Enqueue(state_, effects_, *member, now_us, change);
  } else if (agent && std::holds_alternative<SwapRequest>(message.body)) {
    change.kind = ChangeKind::kSwap;
    change.swap = std::get<SwapRequest>(message.body);
    Enqueue(state_, effects_, *member, now_us, change);
  } else {
    Reply(effects_, stream, message.id, StatusCode::kInvalidArgument,
          "that is no request that this kind of process may make, or this master does not know it");
  }
}

}  // namespace onetrip
