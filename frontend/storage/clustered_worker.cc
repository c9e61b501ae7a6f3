#include "frontend/storage/clustered_worker.h"

#include <algorithm>
#include <utility>

#include "client_core/base/log.h"
#include "client_core/fabric/tcp.h"
#include "client_core/verbs/verbs.h"
#include "frontend/storage/data_path.h"

namespace onetrip {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kAttachAgainNs = 20'000'000;
constexpr uint64_t kLookAgainMs = 200;

std::string Name(NodeId node, const View& view) {
  const NodeAddress& address = view.nodes[node.value].address;
  return "memory node " + std::to_string(node.value) + " at " + address.tcp_host + ":" +
         std::to_string(address.tcp_port);
}

}  // namespace

ClusteredWorker::ClusteredWorker(LoopExecutor& executor, Clustered& cluster)
    : executor_(executor), cluster_(cluster), hold_(executor) {}

ClusteredWorker::~ClusteredWorker() {
  if (kv_ != nullptr) cluster_.worker_usages().Remove(*kv_->metrics().allocator);
}

Task<Status> ClusteredWorker::Start(std::string* reason) {
  const Status network = co_await AwaitNetwork(reason);
  if (!network.ok()) co_return network;
  const Result<Membership> membership = co_await cluster_.master_->Join(hold_);
  if (!membership.ok()) {
    *reason = cluster_.master_->last_error();
    co_return membership.status();
  }
  membership_ = membership.value();
  const std::shared_ptr<const View> view = cluster_.master_->view();
  Status status = cluster_.DecideFabric(*view, reason);
  if (status.ok()) status = co_await ReachNodes(reason);
  if (status.ok()) {
    context_ =
        std::make_unique<WorkerContext>(executor_, fabric(), *cluster_.master_, hold_, membership_,
                                        DataPathOf(cluster_.options_, cluster_.large_values()));
    engine_ = MakeEngine(EngineOf(cluster_.options_), *context_);
    kv_ = std::make_unique<SlotStore>(*context_, *engine_);
    status = co_await kv_->Start();
    if (!status.ok()) *reason = status.message();
  }
  if (!status.ok()) {
    // Others may still hear of a store that has started: then the master must take this process
    // for dead.
    watch_.reset();
    if (kv_ == nullptr) co_await Leave();
    co_return status;
  }
  cluster_.worker_usages().Add(*kv_->metrics().allocator);
  if (watch_ == nullptr) Watch();
  cluster_.AddWorker(hold_.mailbox(), [this] { Tend(); });
  // For what has changed before that.
  Tend();
  co_return Status::Ok();
}

void ClusteredWorker::Watch() {
  GrpcMasterClient& master = *cluster_.master_;
  watch_ = std::make_unique<ReachWatch>(
      executor_, ReachWatch::kLookNs,
      ReachWatch::Calls{[&master] { return master.view(); },
                        [this](NodeId node) {
                          if (network_ == nullptr) return shm_->Reaches(node);
                          network_->Ping(node);
                          return network_->Answers(node);
                        },
                        [&master, id = membership_.id](NodeId node, bool reached) {
                          master.TellReach(id, node, reached);
                        }});
}

Task<Status> ClusteredWorker::AwaitNetwork(std::string* reason) {
  constexpr uint64_t kViewMs = 50;
  const uint64_t begin_ns = executor_.NowNs();
  // A cluster that is being formed has none; one that is there sends it with its welcome.
  while (cluster_.master_->view_version() == 0 &&
         executor_.NowNs() < begin_ns + kViewMs * kNsPerMs) {
    co_await executor_.SleepFor(kNsPerMs);
  }
  std::shared_ptr<const View> view = cluster_.master_->view();
  if (view->epoch.value == 0 || !cluster_.DecideFabric(*view, reason).ok()) co_return Status::Ok();
  std::vector<NodeId> unreached = cluster_.CutOff(*view, reason);
  if (!unreached.empty()) LogWarning("waits with joining the cluster: " + *reason);
  const uint64_t timeout_ms = cluster_.options_.connect_timeout_ms;
  while (!unreached.empty()) {
    if (executor_.NowNs() >= begin_ns + timeout_ms * kNsPerMs) {
      *reason += " (tried for " + std::to_string(timeout_ms) + " ms)";
      co_return Status(StatusCode::kUnavailable, "a memory node cannot be reached");
    }
    co_await executor_.SleepFor(kLookAgainMs * kNsPerMs);
    // Without a node that is out by now it can begin, too.
    view = cluster_.master_->view();
    unreached = cluster_.CutOff(*view, reason);
  }
  co_return Status::Ok();
}

Task<Status> ClusteredWorker::ReachNodes(std::string* reason) {
  return cluster_.fabric_.load() == Clustered::FabricKind::kShm ? ReachOverShm(reason)
                                                                : ReachOverNetwork(reason);
}

Task<Status> ClusteredWorker::ReachOverShm(std::string* reason) {
  const uint64_t deadline_ns = executor_.NowNs() + cluster_.options_.connect_timeout_ms * kNsPerMs;
  std::shared_ptr<const View> view;
  for (uint32_t attempts = 1;; ++attempts) {
    // A node that has just died is out of a newer one.
    view = cluster_.master_->view();
    // Blocks, which hurts no client: this worker serves none yet.
    const Status status = cluster_.shm_nodes_.AddWorker(membership_.id, *view, reason);
    if (status.ok()) break;
    if (status.code() != StatusCode::kUnavailable || executor_.NowNs() >= deadline_ns) {
      *reason += " (" + std::to_string(attempts) + " attempts)";
      co_return status;
    }
    if (attempts == 1) LogWarning("shm: " + *reason + "; trying again");
    co_await executor_.SleepFor(kAttachAgainNs);
  }
  generation_ = cluster_.shm_nodes_.generation();
  segments_ = cluster_.shm_nodes_.segments();
  std::vector<MemoryEndpoint*> endpoints;
  for (const ShmNodes::SegmentPtr& segment : segments_) endpoints.push_back(segment.get());
  shm_ = std::make_unique<ShmFabric>(executor_.clock(), endpoints, &executor_);
  co_return UseView(*view, reason);
}

Result<std::unique_ptr<NetworkFabric>> ClusteredWorker::MakeNetwork(uint64_t cluster,
                                                                    std::string* reason) {
  const TcpIdentity identity{cluster, membership_.id, /*incarnation=*/1};
  TcpFabricOptions options;
  if (cluster_.fabric_.load() != Clustered::FabricKind::kVerbs) {
    options.busy_poll_us = cluster_.options_.busy_poll_us;
    return std::unique_ptr<NetworkFabric>(
        std::make_unique<TcpFabric>(executor_, identity, cluster_.secret_.Copy(), options));
  }
  VerbsFabricOptions over_verbs;
  over_verbs.busy_poll_us = std::max(over_verbs.busy_poll_us, cluster_.options_.busy_poll_us);
  auto made = VerbsFabric::Make(executor_, *cluster_.device_, identity, cluster_.secret_.Copy(),
                                over_verbs, reason);
  if (!made.ok()) return made.status();
  return std::unique_ptr<NetworkFabric>(std::move(made.value()));
}

Task<Status> ClusteredWorker::ReachOverNetwork(std::string* reason) {
  std::shared_ptr<const View> view = cluster_.master_->view();
  auto network = MakeNetwork(view->cluster, reason);
  if (!network.ok()) co_return network.status();
  network_ = std::move(network.value());
  Status status = UseView(*view, reason);
  if (!status.ok()) co_return status;
  // The connections that were tried before joining say nothing of RDMA.
  if (cluster_.fabric_.load() == Clustered::FabricKind::kVerbs) Watch();
  const uint64_t timeout_ms = cluster_.options_.connect_timeout_ms;
  const uint64_t deadline_ns = executor_.NowNs() + timeout_ms * kNsPerMs;
  for (uint16_t i = 0; i < view->node_count;) {
    if (view->IsOut(NodeId{i})) {
      ++i;
      continue;
    }
    const uint64_t look_again_ns = executor_.NowNs() + kLookAgainMs * kNsPerMs;
    const Status connected = co_await network_->Connected(NodeId{i}, look_again_ns);
    if (connected.ok()) {
      ++i;
    } else if (executor_.NowNs() >= deadline_ns) {
      const std::string why = network_->ConnectError(NodeId{i});
      *reason = (why.empty() ? Name(NodeId{i}, *view) + ": no answer" : why) + " (tried for " +
                std::to_string(timeout_ms) + " ms)";
      co_return connected;
    } else {
      // A node that has just died is out of a newer one.
      view = cluster_.master_->view();
      status = UseView(*view, reason);
      if (!status.ok()) co_return status;
    }
  }
  co_return Status::Ok();
}

Status ClusteredWorker::UseView(const View& view, std::string* reason) {
  view_version_ = view.epoch.value;
  const LeaseGuard lease{LeaseGuard::kForever, view.epoch};
  fabric().set_lease(lease);
  Status first_failure;
  for (uint16_t i = 0; i < view.node_count; ++i) {
    const bool is_out = view.IsOut(NodeId{i});
    // In this order: the fabric does not connect to where the node once was.
    if (is_out) fabric().SetEvicted(NodeId{i}, true);
    if (network_ != nullptr && !is_out) {
      const NodeAddress& address = view.nodes[i].address;
      // The address may be the old one: then nothing happens.
      const Status status =
          network_->SetNode(NodeId{i}, address.tcp_host, address.tcp_port, reason);
      if (!status.ok()) first_failure = status;
    }
    if (!is_out) fabric().SetEvicted(NodeId{i}, false);
  }
  return first_failure;
}

void ClusteredWorker::Tend() {
  if (cluster_.master_->view_version() != view_version_) {
    std::string reason;
    if (!UseView(*cluster_.master_->view(), &reason).ok()) LogWarning("network: " + reason);
  }
  if (shm_ != nullptr && cluster_.shm_nodes_.generation() != generation_) TakeSegments();
}

void ClusteredWorker::TakeSegments() {
  generation_ = cluster_.shm_nodes_.generation();
  std::vector<ShmNodes::SegmentPtr> segments = cluster_.shm_nodes_.segments();
  for (uint16_t i = 0; i < static_cast<uint16_t>(segments.size()); ++i) {
    const bool is_new = i >= segments_.size() || segments[i] != segments_[i];
    if (is_new && segments[i] != nullptr) shm_->SetEndpoint(NodeId{i}, segments[i].get());
  }
  // The old ones go only now that the fabric uses them no more.
  segments_ = std::move(segments);
}

Task<void> ClusteredWorker::Leave() {
  const Status status = co_await cluster_.master_->Leave(hold_, membership_);
  if (!status.ok()) {
    LogWarning("control: worker " + std::to_string(membership_.id.value) +
               " could not say goodbye: " + status.message());
  }
  cluster_.shm_nodes_.RemoveWorker(membership_.id);
}

Task<void> ClusteredWorker::Stop() {
  watch_.reset();
  const Status status = co_await kv_->Stop();
  if (status.ok()) {
    co_await Leave();
  } else {
    LogWarning(
        "worker " + std::to_string(membership_.id.value) +
        " ends without a goodbye, for what it has sent may still take effect: " + status.message());
  }
}

}  // namespace onetrip
