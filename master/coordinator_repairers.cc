// Agents that repair: what one is asked, what it answers, and what follows if it does not
// (docs/MASTER.md).
#include <algorithm>
#include <utility>

#include "master/coordinator.h"

namespace onetrip {
namespace {

constexpr uint64_t kHealingFactor = 60;
// How often one agent is asked to go on with a walk before another is.
constexpr uint32_t kWalkTriesMax = 100;

bool IsWalk(RepairKind kind) {
  return kind == RepairKind::kScrubRegisters || kind == RepairKind::kEndRegisters;
}

const char* Text(RepairKind kind) {
  switch (kind) {
    case RepairKind::kResolveSlots:
      return "the repair of the index";
    case RepairKind::kScrubRegisters:
      return "the repair of registers";
    case RepairKind::kCopyRegion:
      return "the copy of a region";
    case RepairKind::kTakeOverBlocks:
      return "taking over the memory of workers that are gone";
    case RepairKind::kEndRegisters:
      return "the change of registers into records";
    case RepairKind::kMoveRegion:
      return "the move of a region";
    case RepairKind::kFormatRegions:
      return "the making of regions";
    case RepairKind::kMoveSubtables:
      return "the move of the index";
  }
  return "";
}

}  // namespace

void Coordinator::SendRepair(Member& agent, uint64_t now_us, RepairOrder order) {
  CHECK(!repair_.has_value());
  Repair repair;
  repair.id = next_repair_++;
  repair.kind = order.kind;
  order.damaged = order.kind == RepairKind::kResolveSlots && record_.heal_due;
  if (walk_ == 0) BeginWalkAnew();
  order.walk = walk_;
  repair.member = agent.id;
  repair.since_us = now_us;
  repair.message = {repair.id, std::move(order)};
  Send(agent.stream, repair.message);
  repair_ = std::move(repair);
  if (!IsUnderHold(repair_->kind)) return;
  record_.repairer = agent.id;
  SaveCluster();
}

void Coordinator::OnRepaired(Member& member, uint64_t now_us, const RepairedMessage& message) {
  if (!repair_.has_value() || message.id != repair_->id || member.id != repair_->member) return;
  const Repair repair = *std::exchange(repair_, std::nullopt);
  if (!message.done) {
    std::string text = std::string(Text(repair.kind)) + " by agent " + std::to_string(member.id) +
                       " is not done: " + message.reason + "; it is tried again";
    if (text != told_not_done_) Log(LogLevel::kWarning, text);
    told_not_done_ = std::move(text);
    repair_not_before_us_ = now_us + options_.repair_retry_ms * 1000;
    // A hold has cut a walk short: the same agent goes on where it was, or flushes that come again
    // and again would let nobody come to the end.
    const bool was_held =
        hold_.has_value() || repair.message.order.view->epoch != membership_.view().epoch;
    walk_tries_ = IsWalk(repair.kind) && was_held ? walk_tries_ + 1 : 0;
    const bool same_again = walk_tries_ % kWalkTriesMax != 0;
    failed_repairer_ = same_again ? member.id - 1 : member.id;
  } else {
    told_not_done_.clear();
    failed_repairer_ = 0;
    walk_tries_ = 0;
  }
  const bool counts = message.done && !repair.overtaken;
  if (repair.kind == RepairKind::kScrubRegisters) {
    if (counts) record_.scrub_due = false;
  } else if (repair.kind == RepairKind::kTakeOverBlocks) {
    if (counts) take_over_due_ = false;
    take_over_cut_ = !message.done;
  } else if (repair.kind == RepairKind::kEndRegisters) {
    registers_ended_ = counts;
    leave_again_us_ = now_us + options_.leave_again_ms * 1000;
    // The next agent has blocks of its own.
    if (counts && record_.leaving != 0) failed_repairer_ = member.id;
  } else {
    record_.repairer = 0;
    CHECK(hold_.has_value());
    (message.done ? hold_->repaired : hold_->failed) = true;
  }
  SaveCluster();
}

void Coordinator::CheckRepairer(uint64_t now_us) {
  if (!repair_.has_value()) return;
  const auto found = members_.find(repair_->member);
  const uint64_t since_us =
      hold_.has_value() ? std::max(repair_->since_us, hold_->since_us) : now_us;
  // Every key is read then, on every replica.
  const uint64_t timeout_ms =
      options_.repair_timeout_ms * (repair_->message.order.damaged ? kHealingFactor : 1);
  if (found != members_.end() && found->second.standing == Standing::kUp &&
      now_us - since_us >= timeout_ms * 1000) {
    Expel(found->second, "it did not end " + std::string(Text(repair_->kind)) + " within " +
                             std::to_string(timeout_ms) + " ms");
  }
  const auto still = members_.find(repair_->member);
  if (!IsUnderHold(repair_->kind)) {
    // It ends with the agent's last worker; beside another it does no harm.
    const bool over = still == members_.end() || still->second.seats.empty() ||
                      IsHarmless(still->second, Leaving(now_us));
    if (over) repair_.reset();
    return;
  }
  std::vector<NodeId> leave;
  if (still != members_.end() && !IsHarmless(still->second, {})) {
    // It may be at its repair on a node that is lost with it: without that node nobody need wait.
    leave = Leaving(now_us);
    if (leave.empty() || !IsHarmless(still->second, leave)) return;
    Hold hold = *hold_;
    hold.work = Work::kNodeOut;
    hold.leave = leave;
    if (!WhoDoesNotHold(hold).empty()) return;
    hold_ = std::move(hold);
  }
  // Nothing of it comes any more: another agent does it again.
  repair_.reset();
  record_.repairer = 0;
  SaveCluster();
  if (!leave.empty()) return CommitRepaired(now_us);
  hold_->end_us = now_us + options_.hold_timeout_ms * 1000;
}

void Coordinator::StartBackgroundRepair(uint64_t now_us) {
  // Slots first: operations wait for those.
  if (!(record_.scrub_due || take_over_due_ || RegistersAreToEnd()) || record_.resolve_due ||
      repair_.has_value() || hold_.has_value() || now_us < repair_not_before_us_ || !AllServe() ||
      !InForceEverywhere(placement_epoch_)) {
    return;
  }
  Member* const agent = Repairer();
  if (agent == nullptr) return;
  if (record_.scrub_due) {
    return SendRepair(*agent, now_us, {RepairKind::kScrubRegisters, view_, 0, {}});
  }
  // In turns: records may need the memory that is taken over, and that may have to wait for long.
  const bool ends_registers =
      RegistersAreToEnd() && !(take_over_due_ && std::exchange(ended_registers_last_, false));
  if (ends_registers) {
    ended_registers_last_ = true;
    return SendRepair(*agent, now_us, {RepairKind::kEndRegisters, view_});
  }
  // Copies wait for its end: where holds keep it from one, regions would lack replicas for long.
  if (take_over_cut_ && copies_given_up_ == 0 && DueCopy().has_value()) return;
  SendRepair(*agent, now_us, {RepairKind::kTakeOverBlocks, view_, 0, Living()});
}

void Coordinator::OrphanBlocks() {
  take_over_due_ = true;
  if (repair_.has_value() && repair_->kind == RepairKind::kTakeOverBlocks) {
    repair_->overtaken = true;
  }
}

// Those count that are expelled and not fenced yet.
LivingWorkers Coordinator::Living() const {
  LivingWorkers living;
  for (const auto& [index, seat] : seats_) living.ids.push_back(seat.worker);
  std::sort(living.ids.begin(), living.ids.end());
  living.next = WorkerId{membership_.next_worker()};
  return living;
}

// Agents that hold for a repair of the last life are not released while it may still be at it.
void Coordinator::CheckFormerRepairer(uint64_t now_us) {
  if (former_repairer_ == 0) return;
  const auto found = members_.find(former_repairer_);
  const bool over = found == members_.end() || IsHarmless(found->second, {}) ||
                    (found->second.sent != 0 && found->second.in_force >= found->second.sent);
  // All hold since the last life: nodes that were lost with it may be put out at once.
  const std::vector<NodeId> leave = over ? std::vector<NodeId>() : Leaving(now_us);
  if (!over && (leave.empty() || !IsHarmless(found->second, leave))) return;
  former_repairer_ = 0;
  record_.repairer = 0;
  SaveCluster();
  if (!leave.empty()) {
    PutOut(leave, now_us);
    return Commit(now_us);
  }
  if (!AddressesKnown()) return;
  for (auto& [id, member] : members_) {
    if (member.kind == MemberKind::kAgent && member.stream != 0 && member.sent == 0) {
      SendView(member, now_us);
    }
  }
}

}  // namespace onetrip
