#include "master/view_changes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"
#include "master/attendance.h"
#include "master/cluster_time.h"
#include "master/emit.h"
#include "master/facts.h"
#include "master/fencing.h"
#include "master/lost_nodes.h"
#include "master/records.h"
#include "master/region_moves.h"
#include "master/repairs.h"
#include "master/status.h"

namespace onetrip::master {
namespace {

// The steps of a change; each says in `reply` what has become of it.

void TakeSeat(ClusterState& state, Effects& effects, const Change& change, ReplyMessage* reply) {
  Member& member = state.members.at(change.member);
  if (auto refusal = RefuseEngine(state, member.engine)) {
    reply->code = StatusCode::kInvalidArgument;
    reply->reason = std::move(*refusal);
    return;
  }
  const Result<Membership> seat = state.membership.TakeSeat();
  if (!seat.ok()) {
    reply->code = seat.status().code();
    reply->reason = seat.status().message();
    return;
  }
  const uint16_t index = seat.value().index.value;
  state.seats[index] = {seat.value().id, change.member, false};
  if (!Planted(Bug::kSeatNotDurable)) effects.change.seats[index] = state.seats[index];
  member.seats.insert(index);
  state.record.engines = EngineFamilyOf(member.engine);
  reply->body = WorkerJoined{seat.value().id, seat.value().index};
}

void GiveSeatBack(ClusterState& state, Effects& effects, const Change& change,
                  ReplyMessage* reply) {
  const auto found = state.seats.find(static_cast<uint16_t>(change.leave.index));
  if (change.leave.index >= kMaxWorkers || found == state.seats.end() ||
      found->second.worker != change.leave.worker || found->second.member != change.member ||
      found->second.expelled) {
    reply->code = StatusCode::kInvalidArgument;
    reply->reason = "worker " + std::to_string(change.leave.worker.value) + " at index " +
                    std::to_string(change.leave.index) + " is none of this agent's";
    return;
  }
  const WorkerIndex index{found->first};
  CHECK(state.membership.FreeSeat({found->second.worker, index}).ok());
  state.members.at(change.member).seats.erase(index.value);
  state.seats.erase(found);
  effects.change.seats[index.value] = std::nullopt;
  OrphanBlocks(state);
}

void FreeFencedSeats(ClusterState& state, Effects& effects, uint64_t agent) {
  const std::set<uint16_t> seats = state.members.at(agent).seats;
  for (const uint16_t index : seats) {
    const WorkerId worker = state.seats.at(index).worker;
    CHECK(state.membership.FreeSeat({worker, WorkerIndex{index}}).ok());
    state.seats.erase(index);
    effects.change.seats[index] = std::nullopt;
    // A node that has not fenced it is out now, and does so before it comes back.
    state.former.insert(worker.value);
    effects.change.former[worker.value] = true;
    ForgetFormer(state, effects, worker);
  }
  if (!seats.empty()) {
    state.record.resolve_due = true;
    if (state.missing_regions != 0) ScrubAnew(state);
  }
  OrphanBlocks(state);
  Log(effects, LogLevel::kInfo,
      "agent " + std::to_string(agent) + " is fenced on every memory node; its " +
          std::to_string(seats.size()) + " seats are free");
  ForgetAgent(state, effects, agent);
}

void ChangeKeyspaces(ClusterState& state, const Change& change, ReplyMessage* reply) {
  const Status status =
      change.kind == ChangeKind::kFlush
          ? state.membership.FreshKeyspaces(change.database)
          : state.membership.ExchangeKeyspaces(change.swap.first, change.swap.second);
  reply->code = status.code();
  if (!status.ok()) reply->reason = status.message();
}

// A reply to a change that is in the view goes to `due`, one to another goes out at once.
void Apply(ClusterState& state, Effects& effects, const Change& change, std::vector<Due>* due) {
  Due one;
  one.member = change.member;
  one.stream = change.stream;
  one.reply.id = change.request;
  switch (change.kind) {
    case ChangeKind::kJoin:
      TakeSeat(state, effects, change, &one.reply);
      break;
    case ChangeKind::kLeave:
      GiveSeatBack(state, effects, change, &one.reply);
      break;
    case ChangeKind::kFlush:
    case ChangeKind::kSwap:
      ChangeKeyspaces(state, change, &one.reply);
      break;
    case ChangeKind::kAddress: {
      const NodeRecord& node = state.nodes[change.node].record;
      return state.membership.SetNode(NodeId{change.node}, node.incarnation, node.address);
    }
    case ChangeKind::kFenced:
      return FreeFencedSeats(state, effects, change.member);
    case ChangeKind::kNodeIn:
      return NodeIn(state, effects, change.node);
    case ChangeKind::kReplace:
      return ReplaceNode(state, effects, change.node);
    case ChangeKind::kNameNodes:
      return NameNodes(state, effects, change.node);
    case ChangeKind::kIdleOut:
      return IdleOut(state, effects, change.node);
    case ChangeKind::kMovesOver:
      return MovesOver(state, effects);
    case ChangeKind::kRefresh:
      return;
  }
  if (change.stream == 0) return;
  if (one.reply.code == StatusCode::kOk) {
    due->push_back(std::move(one));
  } else {
    Send(effects, change.stream, std::move(one.reply));
  }
}

}  // namespace

void Enqueue(ClusterState& state, Effects& effects, const Member& member, uint64_t now_us,
             Change change) {
  if (state.queue.size() + state.due.size() >= state.options.requests_max) {
    Reply(effects, change.stream, change.request, StatusCode::kUnavailable,
          "the master has " + std::to_string(state.options.requests_max) +
              " requests waiting already; try again");
    return;
  }
  change.member = member.id;
  change.since_us = now_us;
  state.queue.push_back(change);
}

void EnqueueOwn(ClusterState& state, Change change) {
  change.stream = 0;
  state.queue.push_back(change);
}

void FailChangesOfKeyspaces(ClusterState& state, Effects& effects, uint64_t since_us,
                            const std::string& why) {
  std::erase_if(state.queue, [&](const Change& change) {
    const bool swap = change.kind == ChangeKind::kSwap;
    if ((!swap && change.kind != ChangeKind::kFlush) || change.since_us > since_us) return false;
    Reply(effects, change.stream, change.request, StatusCode::kUnavailable,
          (swap ? "nothing was swapped: " : "nothing was flushed: ") + why);
    return true;
  });
}

bool MayCommit(const ClusterState& state, const Change& change, std::optional<Work> held) {
  if (change.kind == ChangeKind::kSwap) return held == Work::kSwap;
  if (change.kind == ChangeKind::kFlush) return held == Work::kSwap || held == Work::kFlush;
  return change.kind != ChangeKind::kJoin || (AllServe(state) && state.time_is_known);
}

void Commit(ClusterState& state, Effects& effects, uint64_t now_us, std::optional<Work> held) {
  std::vector<Due> due;
  const std::deque<Change> queued = std::exchange(state.queue, {});
  for (const Change& change : queued) {
    if (MayCommit(state, change, held)) {
      Apply(state, effects, change, &due);
    } else {
      state.queue.push_back(change);
    }
  }
  state.membership.NextEpoch();
  state.view = std::make_shared<const View>(state.membership.view());
  if (!Planted(Bug::kViewNotDurable)) SaveCluster(state, effects);
  for (Due& one : due) {
    one.epoch = state.view->epoch.value;
    state.due.push_back(std::move(one));
  }
  const bool for_agents = AddressesKnown(state);
  for (auto& [id, member] : state.members) {
    if (member.stream == 0) continue;
    if (member.kind == MemberKind::kAgent ? for_agents && MaySendView(state, member)
                                          : member.node.has_value() && !member.join_request) {
      SendView(state, effects, member, now_us);
    }
  }
}

bool MaySendView(const ClusterState& state, const Member& member) {
  return state.former_repairer == 0 || state.former_repairer == member.id;
}

void SendView(ClusterState& state, Effects& effects, Member& member, uint64_t now_us) {
  Send(effects, member.stream, ViewCommittedMessage{state.view});
  if (member.kind != MemberKind::kAgent) return;
  member.sent = state.view->epoch.value;
  if (member.late_since_us == 0) member.late_since_us = now_us;
}

void OnViewInForce(Member& member, uint64_t now_us, Epoch epoch) {
  if (member.kind != MemberKind::kAgent || epoch.value > member.sent) return;
  member.in_force = std::max(member.in_force, epoch.value);
  member.late_since_us = member.in_force < member.sent ? now_us : 0;
}

void SendDueReplies(ClusterState& state, Effects& effects, uint64_t now_us) {
  if (state.due.empty()) return;
  uint64_t in_force = UINT64_MAX;
  for (const auto& [id, member] : state.members) {
    if (Counts(member)) in_force = std::min(in_force, member.in_force);
  }
  std::erase_if(state.due, [&](Due& due) {
    if (due.epoch > in_force && !Planted(Bug::kAnswersBeforeInForce)) return false;
    // Nothing is told that the store does not cover.
    auto* const joined = std::get_if<WorkerJoined>(&due.reply.body);
    if (joined != nullptr) joined->time_us = std::min(TimeUs(state, now_us), state.record.time_us);
    Send(effects, due.stream, std::move(due.reply));
    return true;
  });
}

void TellWhatJoinsWaitFor(ClusterState& state, Effects& effects) {
  if ((AllServe(state) && state.time_is_known) || !HasQueued(state, ChangeKind::kJoin)) {
    state.told_waiting_for.clear();
    return;
  }
  const std::string what = WaitingFor(state);
  if (what == state.told_waiting_for) return;
  Log(effects, LogLevel::kInfo, "workers that join have to wait: " + what);
  state.told_waiting_for = what;
}

void TellWhatDamagedWaitFor(ClusterState& state, Effects& effects) {
  std::string what = WhatDamagedWaitFor(state);
  if (what == state.told_damaged) return;
  if (!what.empty()) Log(effects, LogLevel::kWarning, what);
  state.told_damaged = std::move(what);
}

}  // namespace onetrip::master
