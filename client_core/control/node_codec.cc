#include "client_core/control/node_codec.h"

#include <utility>

#include "client_core/control/control.pb.h"
#include "client_core/control/view_codec.h"

namespace onetrip {

void EncodeJoinNode(const JoinNodeRequest& request, control::JoinNode* out) {
  out->set_bytes(request.bytes);
  out->set_incarnation(request.incarnation);
  out->set_adopted(request.adopted);
  out->set_owner_cluster(request.owner_cluster);
  out->set_owner_node(request.owner_node);
  out->set_damage(request.damage);
  out->set_accepted(request.accepted);
  out->set_mark(request.mark);
  out->set_told(request.told);
  out->set_epoch(request.epoch);
  out->set_next_worker(request.next_worker);
  out->set_accepts_old(request.accepts_old);
}

void EncodeFenced(const FencedMessage& message, control::FromMember* out) {
  out->mutable_fenced()->set_id(message.id);
  out->mutable_fenced()->set_done(message.done);
  out->mutable_fenced()->set_reason(message.reason);
}

Result<NodePlace> DecodePlace(const control::NodeJoined& message, std::string* reason) {
  Result<View> view = DecodeView(message.view(), reason);
  if (!view.ok()) return view.status();
  if (message.node() > UINT16_MAX) {
    *reason = "the master sent a node number that is none";
    return Status(StatusCode::kCorrupt, "not a place");
  }
  NodePlace place;
  place.cluster = view->cluster;
  place.node = NodeId{static_cast<uint16_t>(message.node())};
  place.view = std::move(view.value());
  for (const uint32_t worker : message.expelled_workers()) place.expelled.push_back({worker});
  place.mark = message.mark();
  place.outdated = message.outdated();
  return place;
}

FenceMessage DecodeFence(const control::Fence& message) {
  FenceMessage fence;
  fence.id = message.id();
  fence.epoch = Epoch{message.epoch()};
  for (const uint32_t worker : message.workers()) fence.workers.push_back({worker});
  return fence;
}

}  // namespace onetrip
