#include "master/rebuild.h"

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/control/control.pb.h"
#include "client_core/layout/worker_id.h"
#include "master/coordinator.h"
#include "master/durable_change.h"

namespace onetrip {
namespace {

// How far processes that were not asked can have gone on.
constexpr uint64_t kEpochsAhead = 1 << 16;
constexpr uint64_t kMembersAhead = 1 << 16;
constexpr uint32_t kWorkersAhead = 256;
constexpr uint32_t kKeyspacesAhead = 256;

}  // namespace

Status Rebuild::Take(const control::Recalled& recalled, std::string* reason) {
  if (recalled.next_worker() > kMaxWorkerId + 1) {
    *reason = "it has seen a worker with a number that none can have";
    return Status(StatusCode::kCorrupt, "no worker's number");
  }
  if (recalled.version() == 0 || recalled.changes().empty()) return Status::Ok();
  DurableState state;
  for (const std::string& bytes : recalled.changes()) {
    const Result<DurableChange> change = DecodeChange(bytes);
    if (!change.ok() || !Follows(*change, state)) {
      *reason = "its copy of the master's state makes no sense, or is another version's";
      return Status(StatusCode::kCorrupt, "not a copy of a master's state");
    }
    ApplyChange(*change, &state);
  }
  if (state.cluster.cluster == 0) {
    *reason = "its copy of the master's state is of no cluster";
    return Status(StatusCode::kCorrupt, "of no cluster");
  }
  if (state_.cluster.cluster != 0 && state_.cluster.cluster != state.cluster.cluster) {
    *reason = "it is a member of cluster " + ClusterText(state.cluster.cluster) +
              ", others are of cluster " + ClusterText(state_.cluster.cluster);
    return Status(StatusCode::kInvalidArgument, "another cluster");
  }
  if (recalled.version() <= version_) return Status::Ok();
  version_ = recalled.version();
  state_ = std::move(state);
  return Status::Ok();
}

Status Rebuild::Add(const MemberHello& hello, const control::Recalled& recalled,
                    std::string* reason) {
  const Status taken = Take(recalled, reason);
  if (!taken.ok()) return taken;
  epoch_ = std::max(epoch_, hello.epoch);
  member_ = std::max(member_, hello.member);
  next_worker_ = std::max(next_worker_, recalled.next_worker());
  if (hello.kind == MemberKind::kAgent) {
    agents_.insert(hello.member);
    // One that was never a member has written nothing.
    if (hello.member != 0 && !hello.engine.empty()) engines_ = EngineFamilyOf(hello.engine);
  }
  if (recalled.incarnation() != 0) marks_[recalled.incarnation()] = recalled.mark();
  return Status::Ok();
}

Status Rebuild::AddFile(const control::Recalled& recalled, std::string* reason) {
  const Status taken = Take(recalled, reason);
  if (!taken.ok()) return taken;
  next_worker_ = std::max(next_worker_, recalled.next_worker());
  // Its mark went on behind the file: any is believed.
  if (recalled.incarnation() != 0) marks_.emplace(recalled.incarnation(), 0);
  return Status::Ok();
}

Rebuild::Answered Rebuild::CountNodes() const {
  Answered answered;
  for (const NodeRecord& node : state_.nodes) {
    if (node.out) continue;
    ++answered.of;
    if (marks_.contains(node.incarnation)) ++answered.nodes;
  }
  return answered;
}

std::string Rebuild::MissingText() const {
  if (version_ == 0) return "nobody who keeps a copy has answered yet";
  std::string nodes;
  for (size_t id = 0; id < state_.nodes.size(); ++id) {
    const NodeRecord& node = state_.nodes[id];
    if (node.out || marks_.contains(node.incarnation)) continue;
    nodes += (nodes.empty() ? "" : ", ") + std::to_string(id);
  }
  std::string agents;
  for (const auto& [id, agent] : state_.agents) {
    if (agents_.contains(id)) continue;
    agents += (agents.empty() ? "" : ", ") + std::to_string(id) + " (process " +
              std::to_string(agent.pid) + " on " + agent.host + ")";
  }
  if (nodes.empty() && agents.empty()) return "";
  return "no answer yet from" + (nodes.empty() ? "" : " memory nodes " + nodes) +
         (nodes.empty() || agents.empty() ? "" : ", and from") +
         (agents.empty() ? "" : " agents " + agents);
}

Result<DurableState> Rebuild::Make(uint64_t unix_us, bool force, std::string* reason) const {
  if (version_ == 0) {
    *reason = "nobody who keeps a copy of the master's state has answered";
    return Status(StatusCode::kUnavailable, "no copy");
  }
  const Answered answered = CountNodes();
  if (2 * answered.nodes <= answered.of && !force) {
    *reason = "only " + std::to_string(answered.nodes) + " of " + std::to_string(answered.of) +
              " memory nodes have answered, so that the others may keep a newer state: start them, "
              "or name the files beside their images by --state";
    return Status(StatusCode::kUnavailable, "too few");
  }
  DurableState state = state_;
  ClusterRecord& cluster = state.cluster;
  cluster.epoch = std::max(cluster.epoch, epoch_) + kEpochsAhead;
  cluster.next_member = std::max(cluster.next_member, member_ + 1) + kMembersAhead;
  cluster.next_keyspace += kKeyspacesAhead;
  if (!Planted(Bug::kIdsStartOver)) {
    const uint32_t next =
        std::min(std::max(cluster.next_worker, next_worker_) + kWorkersAhead, kMaxWorkerId + 1);
    for (uint32_t worker = cluster.next_worker; worker < next; ++worker) {
      state.former.insert(worker);
    }
    cluster.next_worker = next;
  }
  // The copy may be of before the first worker joined.
  if (cluster.engines == EngineFamily::kNone) cluster.engines = engines_;
  cluster.resolve_due = true;
  cluster.scrub_due = true;
  cluster.time_us = std::max(cluster.time_us, unix_us);
  for (NodeRecord& node : state.nodes) {
    const auto mark = marks_.find(node.incarnation);
    node.mark = mark == marks_.end() ? 0 : mark->second;
  }
  return state;
}

}  // namespace onetrip
