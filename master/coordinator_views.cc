// Changes of the view: one after the other, several in one view where they wait together.
#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "master/coordinator.h"

namespace onetrip {

std::string Coordinator::AgentText(const Member& member) {
  return "agent " + std::to_string(member.id) + " (process " + std::to_string(member.info.pid) +
         " on " + member.info.host + ")";
}

void Coordinator::Enqueue(const Member& member, uint64_t now_us, Change change) {
  if (queue_.size() + due_.size() >= options_.requests_max) {
    Reply(change.stream, change.request, StatusCode::kUnavailable,
          "the master has " + std::to_string(options_.requests_max) +
              " requests waiting already; try again");
    return;
  }
  change.member = member.id;
  change.since_us = now_us;
  queue_.push_back(change);
}

void Coordinator::EnqueueOwn(Change change) {
  change.stream = 0;
  queue_.push_back(change);
}

bool Coordinator::Counts(const Member& member) {
  return member.kind == MemberKind::kAgent && member.standing != Standing::kFenced &&
         (!member.seats.empty() || (member.stream != 0 && member.sent != 0));
}

bool Coordinator::SomebodyAttendingIsLate() const {
  return std::any_of(members_.begin(), members_.end(), [](const auto& entry) {
    const Member& member = entry.second;
    return Counts(member) && member.stream != 0 && member.in_force < member.sent;
  });
}

bool Coordinator::HasQueued(ChangeKind kind) const {
  return std::any_of(queue_.begin(), queue_.end(),
                     [kind](const Change& change) { return change.kind == kind; });
}

std::string Coordinator::WhoIsAway(const std::vector<NodeId>& leave) const {
  if (!AddressesKnown()) return "not all memory nodes have served yet";
  for (const auto& [id, member] : members_) {
    if (!Counts(member)) continue;
    if (member.standing == Standing::kAway && !Planted(Bug::kHoldForgetsAway)) {
      return AgentText(member) + " has not come back yet";
    }
    if (member.standing == Standing::kExpelled && !IsHarmless(member, leave) &&
        !Planted(Bug::kHoldForgetsExpelled)) {
      return AgentText(member) + " is expelled and not fenced on every memory node";
    }
  }
  return "";
}

std::string Coordinator::WhoDoesNotHold(const Hold& hold) const {
  bool some_hold = false;
  std::string who;
  for (const auto& [id, member] : members_) {
    if (!Counts(member)) continue;
    if (member.standing == Standing::kAway && Planted(Bug::kHoldForgetsAway)) continue;
    if (member.standing == Standing::kExpelled && Planted(Bug::kHoldForgetsExpelled)) continue;
    const bool holds = member.held >= hold.epoch ||
                       (hold.work == Work::kNodeOut && IsHarmless(member, hold.leave));
    some_hold |= holds;
    if (!holds && who.empty()) who = AgentText(member);
  }
  if (some_hold && Planted(Bug::kCommitsBeforeAllHold)) return "";
  return who;
}

void Coordinator::Pump(uint64_t now_us) {
  const uint64_t wait_us = options_.flush_wait_ms * 1000;
  if (!hold_.has_value() && now_us >= wait_us && HasQueuedOfKeyspaces()) {
    const std::string who = WhoIsAway({});
    FailChangesOfKeyspaces(now_us - wait_us, who.empty() ? "the map changes too slowly" : who);
  }
  // Not before the time is needed: somebody who knows it may still come back.
  if (HasQueued(ChangeKind::kJoin)) LetWallClockDecide(now_us);
  // Every turn but the last commits a view, and by that empties the queue or makes somebody late.
  while (has_map()) {
    CheckFenced();
    CheckFormerRepairer(now_us);
    CheckRepairer(now_us);
    if (hold_.has_value()) SettleHold(now_us);
    if (hold_.has_value() || SomebodyAttendingIsLate() || former_repairer_ != 0) break;
    // A worker knows that it has joined before it is asked to hold.
    SendDueReplies(now_us);
    TryStartHold(now_us);
    if (hold_.has_value()) continue;
    EnqueueReplacements(now_us);
    EnqueueMoveChanges(now_us);
    EnqueueNodesIn(now_us);
    const bool any = std::any_of(queue_.begin(), queue_.end(), [this](const Change& change) {
      return MayCommit(change, std::nullopt);
    });
    if (!any) break;
    Commit(now_us);
  }
  if (has_map()) AskWhoReaches();
  if (has_map()) WalkAgainForLeaving(now_us);
  if (has_map() && former_repairer_ == 0) StartBackgroundRepair(now_us);
  PlaceDamaged();
  SendDueReplies(now_us);
  TellWhatJoinsWaitFor();
  TellWhatDamagedWaitFor();
}

void Coordinator::TryStartHold(uint64_t now_us) {
  std::optional<Hold> next = NextRepairHold(now_us);
  if (!next.has_value() && MaySwap(now_us)) next = Hold{.work = Work::kSwap};
  if (!next.has_value() && HasQueued(ChangeKind::kFlush)) next = Hold();
  if (!next.has_value()) next = NextCopy(now_us);
  if (!next.has_value()) next = NextMove(now_us);
  // Held agents answer nobody: nothing that could take long may happen before the commit.
  if (next.has_value() && WhoIsAway(next->leave).empty()) StartHold(now_us, std::move(*next));
}

// What a lost node or agent has left half done must not come to its end in the other database; and
// what is under way on a lost node takes too long to end.
bool Coordinator::MaySwap(uint64_t now_us) const {
  return HasQueued(ChangeKind::kSwap) && !HasQueued(ChangeKind::kFenced) && !record_.resolve_due &&
         Leaving(now_us).empty();
}

uint64_t Coordinator::HoldTimeoutMs(Work work) const {
  if (!IsOfRegion(work)) return options_.hold_timeout_ms;
  uint64_t timeout_ms = options_.copy_hold_timeout_ms;
  for (uint32_t i = 0; i < copies_given_up_ && timeout_ms < options_.hold_timeout_ms; ++i) {
    timeout_ms *= 2;
  }
  return std::min(timeout_ms, options_.hold_timeout_ms);
}

void Coordinator::StartHold(uint64_t now_us, Hold hold) {
  hold.epoch = membership_.view().epoch.value + 1;
  hold.since_us = now_us;
  hold.end_us = now_us + HoldTimeoutMs(hold.work) * 1000;
  hold_ = std::move(hold);
  for (auto& [id, member] : members_) {
    if (member.kind == MemberKind::kAgent && member.stream != 0 && member.sent != 0) {
      Send(member.stream, HoldMessage());
    }
  }
}

HoldForViewMessage Coordinator::HoldMessage() const {
  HoldForViewMessage message{Epoch{hold_->epoch}, HoldKind::kStart, hold_->leave};
  if (hold_->work == Work::kNodeOut || hold_->work == Work::kResolve) {
    message.kind = HoldKind::kSlots;
  } else if ((hold_->work == Work::kMove && Planted(Bug::kMoveUnderWrites)) ||
             (hold_->work == Work::kGrow && Planted(Bug::kGrownUnderOperations)) ||
             (hold_->work == Work::kSwap && Planted(Bug::kSwapUnderOperations))) {
    message.kind = HoldKind::kStart;
  } else if (hold_->work != Work::kFlush) {
    message.kind = HoldKind::kAll;
  }
  return message;
}

void Coordinator::SettleHold(uint64_t now_us) {
  const Work work = hold_->work;
  if (work != Work::kFlush && work != Work::kSwap) return SettleRepairHold(now_us);
  // Another hold comes first now.
  if (work == Work::kSwap && !MaySwap(now_us)) return EndHold(now_us, "");
  const std::string missing = WhoDoesNotHold(*hold_);
  if (missing.empty()) {
    hold_.reset();
    Commit(now_us, work);
    return;
  }
  if (now_us < hold_->end_us) return;
  Log(LogLevel::kWarning, std::string(work == Work::kSwap ? "a swap of databases" : "a flush") +
                              " was given up: " + missing + " did not stop its operations within " +
                              std::to_string(options_.hold_timeout_ms) + " ms");
  FailChangesOfKeyspaces(now_us, missing + " did not stop its operations in time");
  EndHold(now_us, "");
}

void Coordinator::FailChangesOfKeyspaces(uint64_t since_us, const std::string& why) {
  std::erase_if(queue_, [&](const Change& change) {
    const bool swap = change.kind == ChangeKind::kSwap;
    if ((!swap && change.kind != ChangeKind::kFlush) || change.since_us > since_us) return false;
    Reply(change.stream, change.request, StatusCode::kUnavailable,
          (swap ? "nothing was swapped: " : "nothing was flushed: ") + why);
    return true;
  });
}

bool Coordinator::MayCommit(const Change& change, std::optional<Work> held) const {
  if (change.kind == ChangeKind::kSwap) return held == Work::kSwap;
  if (change.kind == ChangeKind::kFlush) return held == Work::kSwap || held == Work::kFlush;
  return change.kind != ChangeKind::kJoin || (AllServe() && time_is_known_);
}

void Coordinator::Commit(uint64_t now_us, std::optional<Work> held) {
  std::vector<Due> due;
  const std::deque<Change> queued = std::exchange(queue_, {});
  for (const Change& change : queued) {
    if (MayCommit(change, held)) {
      Apply(change, &due);
    } else {
      queue_.push_back(change);
    }
  }
  membership_.NextEpoch();
  view_ = std::make_shared<const View>(membership_.view());
  if (!Planted(Bug::kViewNotDurable)) SaveCluster();
  for (Due& one : due) {
    one.epoch = view_->epoch.value;
    due_.push_back(std::move(one));
  }
  const bool for_agents = AddressesKnown();
  for (auto& [id, member] : members_) {
    if (member.stream == 0) continue;
    if (member.kind == MemberKind::kAgent ? for_agents && MaySendView(member)
                                          : member.node.has_value() && !member.join_request) {
      SendView(member, now_us);
    }
  }
}

void Coordinator::Apply(const Change& change, std::vector<Due>* due) {
  Due one;
  one.member = change.member;
  one.stream = change.stream;
  one.reply.id = change.request;
  const auto fail = [&](StatusCode code, std::string reason) {
    if (change.stream != 0) Reply(change.stream, change.request, code, std::move(reason));
  };
  switch (change.kind) {
    case ChangeKind::kJoin: {
      Member& member = members_.at(change.member);
      if (auto refusal = RefuseEngine(member.engine)) {
        return fail(StatusCode::kInvalidArgument, std::move(*refusal));
      }
      const Result<Membership> seat = membership_.TakeSeat();
      if (!seat.ok()) return fail(seat.status().code(), seat.status().message());
      const uint16_t index = seat.value().index.value;
      seats_[index] = {seat.value().id, change.member, false};
      if (!Planted(Bug::kSeatNotDurable)) effects_.change.seats[index] = seats_[index];
      member.seats.insert(index);
      record_.engines = EngineFamilyOf(member.engine);
      one.reply.body = WorkerJoined{seat.value().id, seat.value().index};
      break;
    }
    case ChangeKind::kLeave: {
      const auto found = seats_.find(static_cast<uint16_t>(change.leave.index));
      if (change.leave.index >= kMaxWorkers || found == seats_.end() ||
          found->second.worker != change.leave.worker || found->second.member != change.member ||
          found->second.expelled) {
        return fail(StatusCode::kInvalidArgument,
                    "worker " + std::to_string(change.leave.worker.value) + " at index " +
                        std::to_string(change.leave.index) + " is none of this agent's");
      }
      const WorkerIndex index{found->first};
      CHECK(membership_.FreeSeat({found->second.worker, index}).ok());
      members_.at(change.member).seats.erase(index.value);
      seats_.erase(found);
      effects_.change.seats[index.value] = std::nullopt;
      OrphanBlocks();
      break;
    }
    case ChangeKind::kFlush: {
      const ::onetrip::Status status = membership_.FreshKeyspaces(change.database);
      if (!status.ok()) return fail(status.code(), status.message());
      break;
    }
    case ChangeKind::kSwap: {
      const ::onetrip::Status status =
          membership_.ExchangeKeyspaces(change.swap.first, change.swap.second);
      if (!status.ok()) return fail(status.code(), status.message());
      break;
    }
    case ChangeKind::kAddress: {
      const NodeRecord& node = nodes_[change.node].record;
      return membership_.SetNode(NodeId{change.node}, node.incarnation, node.address);
    }
    case ChangeKind::kFenced: {
      const std::set<uint16_t> seats = members_.at(change.member).seats;
      for (const uint16_t index : seats) {
        const WorkerId worker = seats_.at(index).worker;
        CHECK(membership_.FreeSeat({worker, WorkerIndex{index}}).ok());
        seats_.erase(index);
        effects_.change.seats[index] = std::nullopt;
        // Whoever has not fenced it is out now, and does so before it comes back.
        former_.insert(worker.value);
        effects_.change.former[worker.value] = true;
        ForgetFormer(worker);
      }
      if (!seats.empty()) {
        record_.resolve_due = true;
        if (missing_regions_ != 0) ScrubAnew();
      }
      OrphanBlocks();
      Log(LogLevel::kInfo, "agent " + std::to_string(change.member) +
                               " is fenced on every memory node; its " +
                               std::to_string(seats.size()) + " seats are free");
      ForgetAgent(change.member);
      return;
    }
    case ChangeKind::kNodeIn:
      return NodeIn(change.node);
    case ChangeKind::kReplace:
      return ReplaceNode(change.node);
    case ChangeKind::kNameNodes:
      return NameNodes(change.node);
    case ChangeKind::kIdleOut:
      return IdleOut(change.node);
    case ChangeKind::kMovesOver:
      return MovesOver();
    case ChangeKind::kRefresh:
      return;
  }
  if (change.stream != 0) due->push_back(std::move(one));
}

bool Coordinator::MaySendView(const Member& member) const {
  return former_repairer_ == 0 || former_repairer_ == member.id;
}

void Coordinator::SendView(Member& member, uint64_t now_us) {
  Send(member.stream, ViewCommittedMessage{view_});
  if (member.kind != MemberKind::kAgent) return;
  member.sent = view_->epoch.value;
  if (member.late_since_us == 0) member.late_since_us = now_us;
}

void Coordinator::OnViewInForce(Member& member, uint64_t now_us, Epoch epoch) {
  if (member.kind != MemberKind::kAgent || epoch.value > member.sent) return;
  member.in_force = std::max(member.in_force, epoch.value);
  member.late_since_us = member.in_force < member.sent ? now_us : 0;
}

void Coordinator::SendDueReplies(uint64_t now_us) {
  if (due_.empty()) return;
  uint64_t in_force = UINT64_MAX;
  for (const auto& [id, member] : members_) {
    if (Counts(member)) in_force = std::min(in_force, member.in_force);
  }
  std::erase_if(due_, [&](Due& due) {
    if (due.epoch > in_force && !Planted(Bug::kAnswersBeforeInForce)) return false;
    // Nothing is told that the store does not cover.
    auto* const joined = std::get_if<WorkerJoined>(&due.reply.body);
    if (joined != nullptr) joined->time_us = std::min(TimeUs(now_us), record_.time_us);
    Send(due.stream, std::move(due.reply));
    return true;
  });
}

void Coordinator::TellWhatJoinsWaitFor() {
  if ((AllServe() && time_is_known_) || !HasQueued(ChangeKind::kJoin)) {
    told_waiting_for_.clear();
    return;
  }
  const std::string what = WaitingFor();
  if (what == told_waiting_for_) return;
  Log(LogLevel::kInfo, "workers that join have to wait: " + what);
  told_waiting_for_ = what;
}

void Coordinator::TellWhatDamagedWaitFor() {
  std::string what = WhatDamagedWaitFor();
  if (what == told_damaged_) return;
  if (!what.empty()) Log(LogLevel::kWarning, what);
  told_damaged_ = std::move(what);
}

}  // namespace onetrip
