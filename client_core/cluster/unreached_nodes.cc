#include "client_core/cluster/unreached_nodes.h"

namespace onetrip {

bool UnreachedNodes::EraseReached() {
  return std::erase_if(entries_, [](const auto& entry) {
           return entry.second.workers.empty() && !entry.second.probed;
         }) != 0;
}

bool UnreachedNodes::WorkerSays(WorkerId worker, NodeId node, bool reached, uint64_t now_ns) {
  if (reached) {
    const auto found = entries_.find(node.value);
    if (found != entries_.end()) found->second.workers.erase(worker.value);
    return EraseReached();
  }
  const auto [entry, fresh] = entries_.try_emplace(node.value);
  // The worker may have said so when it did not know yet that the node is out.
  if (out_.contains(node.value)) {
    entry->second.probed = true;
  } else {
    entry->second.workers.insert(worker.value);
  }
  if (!fresh) return false;
  entry->second.worker = worker;
  entry->second.since_ns = now_ns;
  return true;
}

bool UnreachedNodes::WorkerGone(WorkerId worker) {
  for (auto& [node, entry] : entries_) entry.workers.erase(worker.value);
  return EraseReached();
}

bool UnreachedNodes::Probed(NodeId node, bool reached, uint64_t now_ns) {
  if (reached) {
    const auto found = entries_.find(node.value);
    if (found != entries_.end()) found->second.probed = false;
    return EraseReached();
  }
  const auto [entry, fresh] = entries_.try_emplace(node.value);
  entry->second.probed = true;
  if (fresh) entry->second.since_ns = now_ns;
  return fresh;
}

void UnreachedNodes::UseView(const View& view) {
  out_.clear();
  for (uint16_t id = 0; id < static_cast<uint16_t>(view.nodes.size()); ++id) {
    if (view.IsOut(NodeId{id})) out_.insert(id);
  }
  for (auto& [node, entry] : entries_) {
    if (!out_.contains(node) || entry.workers.empty()) continue;
    entry.workers.clear();
    entry.probed = true;
  }
}

std::vector<NodeId> UnreachedNodes::ToProbe() const {
  std::vector<NodeId> nodes;
  for (const auto& [node, entry] : entries_) {
    if (entry.probed) nodes.push_back(NodeId{node});
  }
  return nodes;
}

}  // namespace onetrip
