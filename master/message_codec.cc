#include "master/message_codec.h"

#include <utility>

#include "client_core/control/control.pb.h"
#include "client_core/control/usage_codec.h"
#include "client_core/control/view_codec.h"

namespace onetrip {
namespace {

MemberReport DecodeReport(const control::Report& report) {
  return {report.blocks(),         report.granted_blocks(),  report.operations(),
          report.workers(),        report.page_bytes(),      report.mark(),
          DecodeNodeUsage(report), DecodeWorkerUsage(report)};
}

RequestMessage DecodeRequest(const control::Request& message) {
  RequestMessage request;
  request.id = message.id();
  switch (message.kind_case()) {
    case control::Request::kJoinWorker:
      request.body = JoinWorkerRequest();
      break;
    case control::Request::kLeaveWorker:
      request.body = LeaveWorkerRequest{WorkerId{message.leave_worker().worker()},
                                        message.leave_worker().index()};
      break;
    case control::Request::kFlush: {
      FlushRequest flush;
      if (!message.flush().all()) flush.database = message.flush().database();
      request.body = flush;
      break;
    }
    case control::Request::kSwap:
      request.body = SwapRequest{message.swap().first(), message.swap().second()};
      break;
    case control::Request::kJoinNode: {
      const control::JoinNode& join = message.join_node();
      request.body = JoinNodeRequest{join.bytes(),         join.incarnation(), join.adopted(),
                                     join.owner_cluster(), join.owner_node(),  join.damage(),
                                     join.accepted(),      join.mark(),        join.told(),
                                     join.epoch(),         join.next_worker(), join.accepts_old()};
      break;
    }
    case control::Request::kNoteMark:
      request.body = NoteMarkRequest{message.note_mark().mark()};
      break;
    case control::Request::kServeNode: {
      ServeNodeRequest serve;
      NodeAddress address;
      if (DecodeNodeAddress(message.serve_node().address(), &address)) serve.address = address;
      request.body = std::move(serve);
      break;
    }
    case control::Request::kMoveRegions: {
      const control::MoveRegions& move = message.move_regions();
      // Another wish is one that this master does not know.
      if (control::MoveRegions::Wish_IsValid(move.wish())) {
        request.body = MoveRegionsRequest{move.node(), static_cast<NodeWish>(move.wish())};
      }
      break;
    }
    case control::Request::kAcceptLoss:
      request.body = AcceptLossRequest{message.accept_loss().confirmed()};
      break;
    case control::Request::kGetStatus:
      request.body = StatusRequest();
      break;
    case control::Request::kBackup:
      request.body = BackupRequest();
      break;
    case control::Request::kLeave:
      request.body = LeaveRequest();
      break;
    case control::Request::KIND_NOT_SET:
      break;
  }
  return request;
}

control::Role RoleOf(MemberKind kind) {
  switch (kind) {
    case MemberKind::kAgent:
      return control::ROLE_AGENT;
    case MemberKind::kMemoryNode:
      return control::ROLE_MEMORY_NODE;
    case MemberKind::kOther:
      break;
  }
  return control::ROLE_TOOL;
}

void EncodeMemberStatus(const MemberStatusInfo& member, control::MemberStatus* out) {
  out->set_role(RoleOf(member.kind));
  out->set_member(member.member);
  out->set_node(member.node);
  out->set_state(member.state);
  out->set_pid(member.pid);
  out->set_host(member.host);
  out->set_address(member.address);
  out->set_version(member.version);
  out->set_bytes(member.bytes);
  out->set_unusable_bytes(member.unusable_bytes);
  out->set_regions(member.regions);
  out->set_lease_left_ms(member.lease_left_ms);
  out->set_rdma(member.rdma);
  out->mutable_report()->set_blocks(member.blocks);
  out->mutable_report()->set_granted_blocks(member.granted_blocks);
  out->mutable_report()->set_operations(member.operations);
  out->mutable_report()->set_workers(member.workers);
  out->mutable_report()->set_page_bytes(member.page_bytes);
}

void EncodeStatus(const StatusReply& reply, control::ClusterStatus* out) {
  const ClusterStatusInfo& status = reply.status;
  out->set_cluster(status.cluster);
  out->set_epoch(status.epoch);
  out->set_replicas(status.replicas);
  out->set_nodes_expected(status.nodes_expected);
  out->set_regions(status.regions);
  out->set_region_bytes(status.region_bytes);
  out->set_regions_fully_redundant(status.regions_fully_redundant);
  out->set_state(status.state);
  out->set_pid(status.master_pid);
  out->set_uptime_s(status.master_uptime_s);
  out->set_waiting_for(reply.waiting_for);
  out->set_moving(reply.moving);
  out->set_unreached(reply.unreached);
  if (status.usage.has_value()) EncodeUsage(*status.usage, out->mutable_usage());
  out->set_short_of_memory(status.short_of_memory);
  for (const MemberStatusInfo& member : status.members) {
    EncodeMemberStatus(member, out->add_members());
  }
}

// One overload for each message of the master.
class Encoder {
 public:
  explicit Encoder(control::FromMaster* out) : out_(out) {}

  void operator()(const RenewedMessage& message) const {
    control::Renewed* const renewed = out_->mutable_renewed();
    renewed->set_sequence(message.sequence);
    renewed->set_time_us(message.time_us);
    renewed->set_mark(message.mark);
  }
  void operator()(const ReplyMessage& message) const {
    control::Reply* const reply = out_->mutable_reply();
    reply->set_id(message.id);
    reply->set_code(static_cast<uint32_t>(message.code));
    reply->set_reason(message.reason);
    if (const auto* worker = std::get_if<WorkerJoined>(&message.body)) {
      reply->mutable_worker_joined()->set_worker(worker->worker.value);
      reply->mutable_worker_joined()->set_index(worker->index.value);
      reply->mutable_worker_joined()->set_time_us(worker->time_us);
    } else if (const auto* node = std::get_if<NodeJoined>(&message.body)) {
      control::NodeJoined* const joined = reply->mutable_node_joined();
      joined->set_node(node->node.value);
      EncodeView(*node->view, joined->mutable_view());
      for (const WorkerId expelled : node->expelled) joined->add_expelled_workers(expelled.value);
      joined->set_mark(node->mark);
      joined->set_outdated(node->outdated);
    } else if (const auto* status = std::get_if<StatusReply>(&message.body)) {
      EncodeStatus(*status, reply->mutable_status());
    } else if (const auto* backup = std::get_if<BackupReply>(&message.body)) {
      reply->set_backup(backup->bytes);
    }
  }
  void operator()(const HoldForViewMessage& message) const {
    control::HoldForView* const hold = out_->mutable_hold_for_view();
    hold->set_epoch(message.epoch.value);
    hold->set_kind(static_cast<control::HoldForView::Kind>(message.kind));
    for (const NodeId node : message.leave) hold->add_leave(node.value);
  }
  void operator()(const ViewCommittedMessage& message) const {
    EncodeView(*message.view, out_->mutable_view_committed()->mutable_view());
  }
  void operator()(const FenceMessage& message) const {
    control::Fence* const fence = out_->mutable_fence();
    fence->set_id(message.id);
    fence->set_epoch(message.epoch.value);
    for (const WorkerId worker : message.workers) fence->add_workers(worker.value);
  }
  void operator()(const ExpelledMessage& message) const {
    out_->mutable_expelled()->set_reason(message.reason);
  }
  void operator()(const RepairMessage& message) const {
    control::Repair* const repair = out_->mutable_repair();
    repair->set_id(message.id);
    repair->set_kind(static_cast<control::Repair::Kind>(message.order.kind));
    EncodeView(*message.order.view, repair->mutable_view());
    repair->set_region(message.order.region);
    for (const WorkerId id : message.order.living.ids) repair->add_living(id.value);
    repair->set_next_worker(message.order.living.next.value);
    repair->set_source(message.order.source.value);
    repair->set_target(message.order.target.node.value);
    repair->set_target_base(message.order.target.offset);
    repair->set_damaged(message.order.damaged);
    repair->set_walk(message.order.walk);
  }
  void operator()(const UsageMessage& message) const {
    EncodeUsage(*message.usage, out_->mutable_usage());
  }
  void operator()(const ReachMessage& message) const {
    out_->mutable_reach()->set_id(message.id);
    out_->mutable_reach()->set_node(message.node.value);
  }

 private:
  control::FromMaster* out_;
};

}  // namespace

std::optional<MemberMessage> DecodeMemberMessage(const control::FromMember& message) {
  switch (message.kind_case()) {
    case control::FromMember::kRenew:
      return RenewMessage{message.renew().sequence(), DecodeReport(message.renew().report()),
                          message.renew().quiet()};
    case control::FromMember::kRequest:
      return DecodeRequest(message.request());
    case control::FromMember::kViewHeld:
      return ViewHeldMessage{Epoch{message.view_held().epoch()}};
    case control::FromMember::kViewInForce:
      return ViewInForceMessage{Epoch{message.view_in_force().epoch()}};
    case control::FromMember::kFenced:
      return FencedMessage{message.fenced().id(), message.fenced().done(),
                           message.fenced().reason()};
    case control::FromMember::kRepaired:
      return RepairedMessage{message.repaired().id(), message.repaired().done(),
                             message.repaired().reason()};
    case control::FromMember::kReached:
      return ReachedMessage{message.reached().id()};
    case control::FromMember::kUnreached: {
      UnreachedMessage unreached;
      for (const control::Unreached::Node& one : message.unreached().nodes()) {
        if (one.node() > UINT16_MAX) continue;
        unreached.nodes.push_back(
            {NodeId{static_cast<uint16_t>(one.node())}, one.worker(), one.for_ms()});
      }
      return unreached;
    }
    case control::FromMember::kHello:
    case control::FromMember::kProof:
    case control::FromMember::kRecalled:
    case control::FromMember::KIND_NOT_SET:
      break;
  }
  return std::nullopt;
}

void EncodeMasterMessage(const MasterMessage& message, control::FromMaster* out) {
  std::visit(Encoder(out), message);
}

}  // namespace onetrip
