#include "client_core/cluster/reach_watch.h"

#include <utility>

namespace onetrip {

ReachWatch::ReachWatch(Executor& executor, uint64_t look_ns, Calls calls)
    : executor_(executor), look_ns_(look_ns), calls_(std::move(calls)) {
  if (look_ns_ != 0) Arm();
}

ReachWatch::~ReachWatch() { timer_.Cancel(); }

void ReachWatch::Arm() { executor_.timers().Add(&timer_, executor_.NowNs() + look_ns_); }

void ReachWatch::LookTimer::Fire() {
  watch_.Look();
  watch_.Arm();
}

void ReachWatch::Look() {
  const std::shared_ptr<const View> view = calls_.view();
  if (nodes_.size() < view->nodes.size()) nodes_.resize(view->nodes.size());
  for (uint16_t id = 0; id < static_cast<uint16_t>(view->nodes.size()); ++id) {
    Node& node = nodes_[id];
    if (view->IsOut(NodeId{id})) {
      node = {};
    } else if (calls_.answers(NodeId{id})) {
      const bool told = std::exchange(node, {}).lost;
      if (told) calls_.tell(NodeId{id}, true);
    } else if (!node.lost && ++node.lost_looks >= kLooksToLose) {
      node.lost = true;
      calls_.tell(NodeId{id}, false);
    }
  }
}

}  // namespace onetrip
