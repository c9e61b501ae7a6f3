#include "frontend/clustered.h"

#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "client_core/base/host_id.h"
#include "client_core/base/log.h"
#include "client_core/layout/region_layout.h"
#include "frontend/clustered_worker.h"

namespace onetrip {
namespace {

constexpr auto kTendEvery = std::chrono::milliseconds(200);
constexpr int kTendsPerUsage = 5;

ControlOptions ControlOptionsOf(const AgentOptions& options, const Secret& secret) {
  ControlOptions control;
  control.master = options.master;
  control.secret = secret.Copy();
  control.address =
      options.port != 0 ? options.bind + ":" + std::to_string(options.port) : options.unixsocket;
  control.connect_timeout_ms = options.connect_timeout_ms;
  return control;
}

[[noreturn]] void EndExpelled(const std::string& reason) {
  LogError("the cluster has taken this agent for dead, so it ends: " + reason);
  // At once: nothing that is under way may be acknowledged to a client any more.
  std::_Exit(kExpelledExitCode);
}

const char* NameOf(Clustered::FabricKind kind) {
  switch (kind) {
    case Clustered::FabricKind::kShm:
      return "shm";
    case Clustered::FabricKind::kTcp:
      return "tcp";
    default:
      return "undecided";
  }
}

// Why a node of the view cannot be reached over the fabric; empty if it can.
std::string WhyNotShm(const View& view) {
  const std::string host_id = HostId();
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    const NodeAddress& address = view.nodes[i].address;
    const std::string name = "memory node " + std::to_string(i);
    if (address.shm_path.empty()) return name + " does not serve shm";
    if (address.host_id != host_id) return name + " is on another host or sees other files";
  }
  return "";
}

std::string WhyNotTcp(const View& view) {
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    if (view.nodes[i].address.tcp_port == 0) {
      return "memory node " + std::to_string(i) + " does not serve tcp";
    }
  }
  return "";
}

}  // namespace

Clustered::Clustered(const AgentOptions& options, const Clock& clock, Secret secret)
    : options_(options), clock_(clock), secret_(std::move(secret)) {}

Clustered::~Clustered() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  if (tend_thread_.joinable()) tend_thread_.join();
  if (master_ != nullptr) master_->Stop();
}

Result<std::unique_ptr<Clustered>> Clustered::Create(const AgentOptions& options,
                                                     const Clock& clock, std::string* reason) {
  Secret secret;
  if (!options.secret_file.empty()) {
    Result<Secret> loaded = LoadSecretFile(options.secret_file, reason);
    if (!loaded.ok()) return loaded.status();
    secret = std::move(loaded.value());
  }
  std::unique_ptr<Clustered> cluster(new Clustered(options, clock, std::move(secret)));
  const Status status = cluster->Connect(reason);
  if (!status.ok()) return status;
  return cluster;
}

Status Clustered::Connect(std::string* reason) {
  Result<std::unique_ptr<GrpcMasterClient>> master =
      GrpcMasterClient::Connect(ControlOptionsOf(options_, secret_), EndExpelled, reason);
  if (!master.ok()) return master.status();
  master_ = std::move(master.value());
  tend_thread_ = std::thread([this] { Tend(); });
  return Status::Ok();
}

void Clustered::Tend() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (int round = 0; !stop_; ++round) {
    lock.unlock();
    if (round % kTendsPerUsage == 0) AskUsage();
    if (fabric_.load() == FabricKind::kShm) shm_nodes_.Tend(*master_->view());
    lock.lock();
    wake_.wait_for(lock, kTendEvery, [this] { return stop_; });
  }
}

void Clustered::AskUsage() {
  if (!master_->attending()) return;
  master_->AskStatus([this](const ClusterStatusInfo* info) {
    if (info != nullptr) OnStatus(*info);
  });
}

void Clustered::OnStatus(const ClusterStatusInfo& info) {
  uint64_t blocks = 0;
  uint64_t granted = 0;
  for (const MemberStatusInfo& member : info.members) {
    if (member.kind != MemberKind::kMemoryNode || member.regions == 0) continue;
    blocks += member.blocks;
    granted += member.granted_blocks;
  }
  if (info.replicas == 0 || blocks == 0) return;
  capacity_bytes_ = blocks / info.replicas * kBlockBytes;
  granted_bytes_ = granted / info.replicas * kBlockBytes;
}

PoolUsage Clustered::pool_usage() const {
  const uint64_t told_bytes = capacity_bytes_.load();
  // Until the nodes have told how much of their regions is for objects.
  const uint64_t regions_bytes = master_->view()->regions.size() * kRegionBytes;
  return {told_bytes != 0 ? told_bytes : regions_bytes, granted_bytes_.load()};
}

void Clustered::Fail(std::string reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  join_error_ = std::move(reason);
}

std::string Clustered::join_error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return join_error_;
}

Status Clustered::DecideFabric(const View& view, std::string* reason) {
  const std::string not_shm = WhyNotShm(view);
  const std::string not_tcp = WhyNotTcp(view);
  const bool shm = options_.fabric != "tcp" && not_shm.empty();
  const bool tcp = options_.fabric != "shm" && not_tcp.empty();
  if (!shm && !tcp) {
    *reason = options_.fabric == "shm"   ? not_shm + "; give --fabric tcp"
              : options_.fabric == "tcp" ? not_tcp + "; give --fabric shm"
                                         : not_shm + ", and " + not_tcp;
    return Status(StatusCode::kInvalidArgument, "no fabric reaches every memory node");
  }
  // All workers alike, whatever the first one found.
  FabricKind undecided = FabricKind::kUndecided;
  fabric_.compare_exchange_strong(undecided, shm ? FabricKind::kShm : FabricKind::kTcp);
  return Status::Ok();
}

Task<Result<std::unique_ptr<WorkerStorage>>> Clustered::Join(LoopExecutor& executor) {
  auto worker = std::make_unique<ClusteredWorker>(executor, *this);
  std::string reason;
  const Status status = co_await worker->Start(&reason);
  if (!status.ok()) {
    Fail(std::move(reason));
    co_return status;
  }
  std::unique_ptr<WorkerStorage> joined = std::move(worker);
  co_return std::move(joined);
}

std::string Clustered::Describe() const {
  const std::shared_ptr<const View> view = master_->view();
  return "master " + options_.master + ", " + std::to_string(view->node_count) +
         " memory nodes over " + NameOf(fabric_.load());
}

std::vector<InfoField> Clustered::Info() const {
  const std::shared_ptr<const View> view = master_->view();
  const bool attending = master_->attending();
  const uint64_t away_ns = attending ? 0 : clock_.NowNs() - master_->away_since_ns();
  char cluster[20];
  std::snprintf(cluster, sizeof(cluster), "%016" PRIx64, view->cluster);
  return {{"master", options_.master},
          {"master_link_status", attending ? "up" : "down"},
          {"master_away_seconds", std::to_string(away_ns / 1'000'000'000)},
          {"cluster", cluster},
          {"cluster_member", std::to_string(master_->member())},
          {"cluster_epoch", std::to_string(view->epoch.value)},
          {"cluster_memory_nodes", std::to_string(view->node_count)},
          {"cluster_fabric", NameOf(fabric_.load())}};
}

}  // namespace onetrip
