#include "tests/sim/control_text.h"

#include <iterator>

namespace onetrip {
namespace {

// One overload for each message.
struct Describer {
  std::string operator()(const RenewMessage& /*renew*/) const { return "renew"; }
  std::string operator()(const ViewHeldMessage& held) const {
    return "held for view " + std::to_string(held.epoch.value);
  }
  std::string operator()(const ViewInForceMessage& message) const {
    return "view " + std::to_string(message.epoch.value) + " is in force";
  }
  std::string operator()(const FencedMessage& fenced) const {
    return "fence " + std::to_string(fenced.id) + (fenced.done ? " is done" : " is not done yet");
  }
  std::string operator()(const RepairedMessage& repaired) const {
    return "repair " + std::to_string(repaired.id) + (repaired.done ? " is done" : " is not done");
  }
  std::string operator()(const ReachedMessage& reached) const {
    return "question " + std::to_string(reached.id) + ": the node is reached";
  }
  std::string operator()(const UnreachedMessage& unreached) const {
    std::string text = "unreached:";
    for (const UnreachedMessage::Node& one : unreached.nodes) {
      text += " node " + std::to_string(one.node.value);
    }
    return text;
  }
  std::string operator()(const RequestMessage& request) const {
    const std::string number = "request " + std::to_string(request.id) + ": ";
    return number + std::visit(*this, request.body);
  }
  std::string operator()(const std::monostate& /*nothing*/) const { return "nothing known"; }
  std::string operator()(const JoinWorkerRequest& /*join*/) const { return "a worker joins"; }
  std::string operator()(const LeaveWorkerRequest& leave) const {
    return "worker " + std::to_string(leave.worker.value) + " leaves";
  }
  std::string operator()(const SwapRequest& swap) const {
    return "swap " + std::to_string(swap.first) + " and " + std::to_string(swap.second);
  }
  std::string operator()(const FlushRequest& flush) const {
    return "flush " +
           (flush.database.has_value() ? "database " + std::to_string(*flush.database) : "all");
  }
  std::string operator()(const JoinNodeRequest& /*join*/) const { return "a node joins"; }
  std::string operator()(const NoteMarkRequest& note) const {
    return "the memory has mark " + std::to_string(note.mark);
  }
  std::string operator()(const BackupRequest& /*backup*/) const { return "a copy of the state"; }
  std::string operator()(const ServeNodeRequest& /*serve*/) const { return "the node serves"; }
  std::string operator()(const MoveRegionsRequest& move) const {
    static constexpr const char* kWhat[] = {" keeps its regions", " is to have its share",
                                            " is to drain"};
    return "node " + std::to_string(move.node) + kWhat[static_cast<int>(move.wish)];
  }
  std::string operator()(const AcceptLossRequest& accept) const {
    return accept.confirmed ? "the loss is accepted" : "what would be lost";
  }
  std::string operator()(const StatusRequest& /*status*/) const { return "the status"; }
  std::string operator()(const LeaveRequest& /*leave*/) const { return "goodbye"; }

  std::string operator()(const RenewedMessage& /*renewed*/) const { return "renewed"; }
  std::string operator()(const ReplyMessage& reply) const {
    std::string text = "reply " + std::to_string(reply.id);
    if (const auto* joined = std::get_if<WorkerJoined>(&reply.body)) {
      text += ": worker " + std::to_string(joined->worker.value) + " in seat " +
              std::to_string(joined->index.value);
    }
    return text + (reply.code == StatusCode::kOk ? "" : ": no, " + reply.reason);
  }
  std::string operator()(const HoldForViewMessage& hold) const {
    static constexpr const char* kWhat[] = {"", ", slots", ", all"};
    std::string text = "hold for view " + std::to_string(hold.epoch.value);
    text += kWhat[static_cast<int>(hold.kind)];
    for (const NodeId node : hold.leave) text += ", leave node " + std::to_string(node.value);
    return text;
  }
  std::string operator()(const RepairMessage& repair) const {
    static constexpr const char* kWhat[] = {"resolve slots",    "scrub registers", "copy region",
                                            "take over blocks", "end registers",   "move region",
                                            "format regions",   "move subtables"};
    static_assert(std::size(kWhat) == static_cast<size_t>(RepairKind::kMoveSubtables) + 1);
    return "repair " + std::to_string(repair.id) + ": " +
           kWhat[static_cast<int>(repair.order.kind)] + " " + std::to_string(repair.order.region);
  }
  std::string operator()(const UsageMessage& usage) const {
    return "used: " + std::to_string(usage.usage->used_bytes());
  }
  std::string operator()(const ReachMessage& reach) const {
    return "question " + std::to_string(reach.id) + ": say when node " +
           std::to_string(reach.node.value) + " is reached";
  }
  std::string operator()(const ViewCommittedMessage& committed) const {
    return "view " + std::to_string(committed.view->epoch.value) + ", keyspace " +
           std::to_string(committed.view->keyspaces[0].value) + ", seats " +
           std::to_string(committed.view->live_seats[0]) +
           (committed.view->records_only ? ", records only" : "") +
           (committed.view->leaving != 0
                ? ", " + std::to_string(committed.view->leaving) + " regions leave"
                : "") +
           (committed.view->directory != 0 ? ", the other directory" : "");
  }
  std::string operator()(const FenceMessage& fence) const {
    std::string text = "fence " + std::to_string(fence.id) + ", workers";
    for (const WorkerId worker : fence.workers) text += " " + std::to_string(worker.value);
    return text;
  }
  std::string operator()(const ExpelledMessage& expelled) const {
    return "expelled: " + expelled.reason;
  }
};

}  // namespace

std::string DescribeControl(const MemberMessage& message) {
  return std::visit(Describer(), message);
}

std::string DescribeControl(const MasterMessage& message) {
  return std::visit(Describer(), message);
}

}  // namespace onetrip
