#include "client_core/control/agent_codec.h"

#include <memory>
#include <utility>

#include "client_core/control/control.pb.h"
#include "client_core/control/view_codec.h"

namespace onetrip {
namespace {

RepairKind DecodeKind(control::Repair::Kind kind) {
  switch (kind) {
    case control::Repair::SCRUB_REGISTERS:
      return RepairKind::kScrubRegisters;
    case control::Repair::COPY_REGION:
      return RepairKind::kCopyRegion;
    case control::Repair::TAKE_OVER_BLOCKS:
      return RepairKind::kTakeOverBlocks;
    case control::Repair::END_REGISTERS:
      return RepairKind::kEndRegisters;
    case control::Repair::MOVE_REGION:
      return RepairKind::kMoveRegion;
    case control::Repair::FORMAT_REGIONS:
      return RepairKind::kFormatRegions;
    case control::Repair::MOVE_SUBTABLES:
      return RepairKind::kMoveSubtables;
    default:
      return RepairKind::kResolveSlots;
  }
}

// One overload for each message of an agent.
class AgentEncoder {
 public:
  explicit AgentEncoder(control::FromMember* out) : out_(out) {}

  void operator()(const ViewHeldMessage& message) const {
    out_->mutable_view_held()->set_epoch(message.epoch.value);
  }
  void operator()(const ViewInForceMessage& message) const {
    out_->mutable_view_in_force()->set_epoch(message.epoch.value);
  }
  void operator()(const RepairedMessage& message) const {
    out_->mutable_repaired()->set_id(message.id);
    out_->mutable_repaired()->set_done(message.done);
    out_->mutable_repaired()->set_reason(message.reason);
  }
  void operator()(const ReachedMessage& message) const {
    out_->mutable_reached()->set_id(message.id);
  }
  void operator()(const UnreachedMessage& message) const {
    control::Unreached* const unreached = out_->mutable_unreached();
    for (const UnreachedMessage::Node& node : message.nodes) {
      control::Unreached::Node* const one = unreached->add_nodes();
      one->set_node(node.node.value);
      one->set_worker(node.worker);
      one->set_for_ms(node.for_ms);
    }
  }

 private:
  control::FromMember* const out_;
};

}  // namespace

void EncodeAgentMessage(const AgentMessage& message, control::FromMember* out) {
  std::visit(AgentEncoder(out), message);
}

HoldForViewMessage DecodeHold(const control::HoldForView& message) {
  HoldForViewMessage hold;
  hold.epoch = Epoch{message.epoch()};
  hold.kind = message.kind() == control::HoldForView::ALL     ? HoldKind::kAll
              : message.kind() == control::HoldForView::SLOTS ? HoldKind::kSlots
                                                              : HoldKind::kStart;
  for (const uint32_t node : message.leave()) {
    hold.leave.push_back(NodeId{static_cast<uint16_t>(node)});
  }
  return hold;
}

ReachMessage DecodeReach(const control::Reach& message) {
  return {message.id(), NodeId{static_cast<uint16_t>(message.node())}};
}

RepairMessage DecodeRepair(const control::Repair& message, std::string* reason) {
  RepairMessage repair;
  repair.id = message.id();
  RepairOrder& order = repair.order;
  order.kind = DecodeKind(message.kind());
  Result<View> view = DecodeView(message.view(), reason);
  if (view.ok()) order.view = std::make_shared<const View>(std::move(view.value()));
  order.region = message.region();
  order.damaged = message.damaged();
  order.walk = message.walk();
  order.source = NodeId{static_cast<uint16_t>(message.source())};
  order.target = {NodeId{static_cast<uint16_t>(message.target())}, message.target_base()};
  for (const uint32_t id : message.living()) order.living.ids.push_back(WorkerId{id});
  order.living.next = WorkerId{message.next_worker()};
  return repair;
}

}  // namespace onetrip
