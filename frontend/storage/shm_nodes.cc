#include "frontend/storage/shm_nodes.h"

#include <algorithm>
#include <utility>

#include "client_core/base/log.h"

namespace onetrip {

std::vector<ShmNodes::SegmentPtr> ShmNodes::segments() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return segments_;
}

Status ShmNodes::Attach(NodeId node, const View& view, std::string* reason) {
  ShmAttachOptions options;
  options.path = view.nodes[node.value].address.shm_path;
  options.cluster = view.cluster;
  options.node = node;
  options.worker = workers_.front();
  options.epoch = view.epoch;
  options.incarnation = view.nodes[node.value].incarnation;
  options.release_when_lost = true;
  Result<std::unique_ptr<ShmSegment>> attached = ShmSegment::Attach(options, reason);
  if (!attached.ok()) return attached.status();
  const SegmentPtr segment = std::move(attached.value());
  for (size_t i = 1; i < workers_.size(); ++i) {
    const Status status = segment->AddWorker(workers_[i], view.epoch, reason);
    if (!status.ok()) return status;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (segments_.size() <= node.value) segments_.resize(node.value + 1U);
  segments_[node.value] = segment;
  generation_.fetch_add(1, std::memory_order_release);
  return Status::Ok();
}

Status ShmNodes::AddWorker(WorkerId worker, const View& view, std::string* reason) {
  const std::lock_guard<std::mutex> lock(change_mutex_);
  std::erase(workers_, worker);
  workers_.push_back(worker);
  for (uint16_t i = 0; i < view.node_count; ++i) {
    const bool is_out = view.IsOut(NodeId{i});
    const std::vector<SegmentPtr> have = segments();
    const bool is_there = i < have.size() && have[i] != nullptr && have[i]->reachable();
    if (!is_there && is_out) continue;
    // Also one that is out but still attached: it may come back as it is, and must know whom to
    // fence.
    const Status status =
        is_there ? have[i]->AddWorker(worker, view.epoch, reason) : Attach(NodeId{i}, view, reason);
    if (status.ok() || (is_out && status.code() == StatusCode::kUnavailable)) continue;
    std::erase(workers_, worker);
    return status;
  }
  return Status::Ok();
}

void ShmNodes::RemoveWorker(WorkerId worker) {
  const std::lock_guard<std::mutex> lock(change_mutex_);
  std::erase(workers_, worker);
}

bool ShmNodes::Tend(const View& view) {
  const std::lock_guard<std::mutex> lock(change_mutex_);
  if (workers_.empty()) return true;
  bool all_there = true;
  const std::vector<SegmentPtr> have = segments();
  for (uint16_t i = 0; i < static_cast<uint16_t>(view.nodes.size()); ++i) {
    if (view.IsOut(NodeId{i})) continue;
    const bool is_new = i >= have.size() || have[i] == nullptr;
    if (!is_new && have[i]->reachable()) continue;
    std::string reason;
    // Why it is not there has been said when it was lost; it is tried again.
    if (Attach(NodeId{i}, view, &reason).ok()) {
      LogInfo("shm: memory node " + std::to_string(i) + (is_new ? " is here" : " is back"));
    } else {
      all_there = false;
      LogDebug("shm: " + reason);
    }
  }
  return all_there;
}

}  // namespace onetrip
