#include "client_core/cluster/agent_session.h"

#include <algorithm>
#include <utility>

namespace onetrip {
namespace {

// Empty if `view` may come after `before`, else why not: regions are added, and none goes away but
// those that were leaving, for what lies in others is in use.
std::string WhyNotAfter(const View& before, const View& view) {
  if (view.regions.size() + before.leaving >= before.regions.size()) return "";
  return "the master sent a cluster map that makes no sense: " +
         std::to_string(view.regions.size()) + " regions where there were " +
         std::to_string(before.regions.size()) + ", of which " + std::to_string(before.leaving) +
         " were to go";
}

}  // namespace

std::vector<AgentEffect> AgentSession::TakeEffects() { return std::exchange(effects_, {}); }

// ---- Workers ----

void AgentSession::OnJoined(WorkerId worker) {
  workers_.push_back(worker);
  // One that is under way it has missed.
  if (hold_epoch_ != 0) effects_.emplace_back(agent_effect::StartQuiesced{worker, hold_kind_});
}

void AgentSession::OnLeft(WorkerId worker, uint64_t now_ns) {
  std::erase(workers_, worker);
  if (unreached_.WorkerGone(worker)) SendUnreached(now_ns);
}

void AgentSession::TellWorkers(WorkerOrder order, AgentMessage answer) {
  if (workers_.empty()) return Send(std::move(answer));
  const uint64_t ticket = next_ticket_++;
  answers_.emplace(ticket, std::move(answer));
  effects_.emplace_back(agent_effect::TellWorkers{workers_, std::move(order), ticket});
}

void AgentSession::OnCarriedOut(uint64_t ticket) {
  const auto found = answers_.find(ticket);
  if (found == answers_.end()) return;
  AgentMessage answer = std::move(found->second);
  answers_.erase(found);
  // A later order to quiesce takes this one's place at the workers, and what goes away with it
  // there is no acknowledgement: the master may just have asked again, on a new stream.
  if (std::holds_alternative<ViewHeldMessage>(answer) && ticket != hold_ticket_) return;
  Send(std::move(answer));
}

// ---- Quiesce, view, reach ----

void AgentSession::OnHold(const HoldForViewMessage& message) {
  hold_epoch_ = message.epoch.value;
  hold_kind_ = message.kind;
  hold_ticket_ = next_ticket_;
  TellWorkers(QuiesceOrder{message.kind, message.leave}, ViewHeldMessage{message.epoch});
}

void AgentSession::OnReach(const ReachMessage& message) {
  TellWorkers(ReachOrder{message.node}, ReachedMessage{message.id});
}

void AgentSession::OnView(std::shared_ptr<const View> view) {
  // No worker goes on while a repair for which others quiesce still runs here.
  if (!still_repairing_.empty()) {
    next_view_ = std::move(view);
    return;
  }
  const Epoch epoch = view->epoch;
  if (epoch > view_->epoch) {
    // Without workers nothing lies anywhere for it, and it may have missed views.
    std::string why = workers_.empty() ? "" : WhyNotAfter(*view_, *view);
    if (!why.empty()) {
      effects_.emplace_back(agent_effect::Complain{std::move(why)});
      return;
    }
    view_ = std::move(view);
    unreached_.UseView(*view_);
    effects_.emplace_back(agent_effect::UseView{view_});
  }
  // An older view is one that was under way when a stream broke; workers quiesce for a newer one.
  const bool ends_quiesce = hold_epoch_ != 0 && epoch.value >= hold_epoch_;
  if (ends_quiesce) hold_epoch_ = hold_ticket_ = 0;
  TellWorkers(ViewOrder{view_, ends_quiesce}, ViewInForceMessage{epoch});
}

// ---- Repairs ----

// One worker does it: each has all that it takes. Only the end of registers may need the memory of
// every worker, so each gets its turn.
void AgentSession::OnRepair(const RepairMessage& message) {
  if (message.id == repair_.id) {
    // Asked again, on a new stream.
    if (repair_.end.has_value()) AnswerRepair();
    return;
  }
  repair_ = {message.id, std::nullopt};
  if (message.order.view == nullptr || workers_.empty()) {
    return OnRepairEnded(message.id, Status(StatusCode::kUnavailable, "no worker can do it"));
  }
  size_t turn = 0;
  if (message.order.kind == RepairKind::kEndRegisters) {
    turn = end_registers_turn_++ % workers_.size();
  }
  if (IsUnderHold(message.order.kind)) still_repairing_.insert(message.id);
  effects_.emplace_back(agent_effect::StartRepair{workers_[turn], message.id, message.order});
}

void AgentSession::OnRepairEnded(uint64_t id, Status status) {
  still_repairing_.erase(id);
  if (repair_.id == id) {
    repair_.end = status;
    AnswerRepair();
  }
  if (still_repairing_.empty() && next_view_ != nullptr) OnView(std::exchange(next_view_, nullptr));
}

void AgentSession::AnswerRepair() {
  Send(RepairedMessage{repair_.id, repair_.end->ok(), repair_.end->message()});
}

// ---- Memory nodes that are not reached ----

void AgentSession::OnWelcome(uint64_t now_ns) {
  if (!unreached_.entries().empty()) SendUnreached(now_ns);
}

void AgentSession::OnReachOf(WorkerId worker, NodeId node, bool reached, uint64_t now_ns) {
  if (unreached_.WorkerSays(worker, node, reached, now_ns)) SendUnreached(now_ns);
}

void AgentSession::OnProbed(NodeId node, bool reached, uint64_t now_ns) {
  if (unreached_.Probed(node, reached, now_ns)) SendUnreached(now_ns);
}

void AgentSession::SendUnreached(uint64_t now_ns) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  UnreachedMessage message;
  for (const auto& [node, entry] : unreached_.entries()) {
    message.nodes.push_back({NodeId{node}, entry.worker.value_or(WorkerId{0}).value,
                             (now_ns - entry.since_ns) / kNsPerMs});
  }
  Send(std::move(message));
}

}  // namespace onetrip
