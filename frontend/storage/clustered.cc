#include "frontend/storage/clustered.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "client_core/base/host_id.h"
#include "client_core/base/log.h"
#include "client_core/control/cluster_status.h"
#include "client_core/fabric/reach_probe.h"
#include "client_core/layout/region_layout.h"
#include "frontend/storage/clustered_worker.h"

namespace onetrip {
namespace {

constexpr auto kTendEvery = std::chrono::seconds(1);
constexpr auto kTendLostEvery = std::chrono::milliseconds(100);  // while a segment is lost
constexpr uint64_t kProbeMs = 300;  // that a connection may take, there and back

ControlOptions ControlOptionsOf(const AgentOptions& options, const Secret& secret) {
  ControlOptions control;
  control.master = options.master;
  control.secret = secret.Copy();
  control.address =
      options.port != 0 ? options.bind + ":" + std::to_string(options.port) : options.unixsocket;
  control.connect_timeout_ms = options.connect_timeout_ms;
  control.engine = options.engine;
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
    case Clustered::FabricKind::kVerbs:
      return "verbs";
    default:
      return "undecided";
  }
}

// Why a node of the view cannot be reached over the fabric; empty if it can.
std::string WhyNotShm(const View& view) {
  const std::string host_id = HostId();
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    if (view.nodes[i].out) continue;
    const NodeAddress& address = view.nodes[i].address;
    const std::string name = "memory node " + std::to_string(i);
    if (address.shm_path.empty()) return name + " does not serve shm";
    if (address.host_id != host_id) return name + " is on another host or sees other files";
  }
  return "";
}

std::string WhyNotTcp(const View& view) {
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    if (view.nodes[i].out) continue;
    const NodeAddress& address = view.nodes[i].address;
    const std::string name = "memory node " + std::to_string(i);
    if (address.tcp_port == 0) return name + " does not serve tcp";
    if (!address.rdma.empty()) return name + " serves RDMA alone";
  }
  return "";
}

std::string WhyNotVerbs(const View& view) {
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    if (!view.nodes[i].out && view.nodes[i].address.rdma.empty()) {
      return "memory node " + std::to_string(i) + " does not serve RDMA";
    }
  }
  return "";
}

}  // namespace

Clustered::Clustered(const AgentOptions& options, const Clock& clock, Secret secret)
    : Storage(options.large_value_bytes),
      options_(options),
      clock_(clock),
      secret_(std::move(secret)) {}

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
  Result<std::unique_ptr<GrpcMasterClient>> master = GrpcMasterClient::Connect(
      ControlOptionsOf(options_, secret_), EndExpelled, reason, [this] { OnNewView(); },
      [this] { return worker_usage(); });
  if (!master.ok()) return master.status();
  master_ = std::move(master.value());
  tend_thread_ = std::thread([this] { Tend(); });
  return Status::Ok();
}

// Over tcp the fabric connects again by itself, but not to nodes that are out.
void Clustered::Tend() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stop_) {
    bool lost = false;
    is_new_ = false;
    if (fabric_.load() == FabricKind::kShm) {
      lock.unlock();
      const uint64_t before = shm_nodes_.generation();
      lost = !shm_nodes_.Tend(*master_->view());
      if (shm_nodes_.generation() != before) TellWorkers();
      lock.lock();
    }
    lock.unlock();
    ProbeAgain();
    lock.lock();
    wake_.wait_for(lock, lost ? kTendLostEvery : kTendEvery, [this] { return stop_ || is_new_; });
  }
}

std::vector<NodeId> Clustered::CutOff(const View& view, std::string* reason) {
  std::vector<NodeId> nodes;
  for (uint16_t id = 0; id < view.node_count; ++id) {
    if (!view.IsOut(NodeId{id})) nodes.push_back(NodeId{id});
  }
  return ProbeNodes(view, nodes, reason);
}

std::vector<NodeId> Clustered::ProbeNodes(const View& view, const std::vector<NodeId>& nodes,
                                          std::string* reason) {
  // Where the host answers and no process listens, the node is not there, which the master sees,
  // too; the master puts the node out when a process wants to join. Over shm it may have taken its
  // socket's file with it, or the file alone is gone, which only the master can tell apart.
  const std::string not_there = std::strerror(ECONNREFUSED);
  const bool over_shm = fabric_.load() == FabricKind::kShm;
  std::vector<ProbeTarget> targets;
  targets.reserve(nodes.size());
  for (const NodeId node : nodes) {
    const NodeAddress& address = view.nodes[node.value].address;
    targets.push_back({address.tcp_host, static_cast<uint16_t>(address.tcp_port),
                       over_shm ? address.shm_path : std::string()});
  }
  const std::vector<std::string> errors = TryToConnect(targets, kProbeMs);
  std::vector<NodeId> unreached;
  for (size_t i = 0; i < nodes.size(); ++i) {
    master_->TellProbed(nodes[i], errors[i].empty());
    if (errors[i].empty() || errors[i] == not_there) continue;
    if (unreached.empty()) {
      *reason =
          "memory node " + std::to_string(nodes[i].value) + " at " +
          (over_shm ? targets[i].path : targets[i].host + ":" + std::to_string(targets[i].port)) +
          " cannot be reached: " + errors[i];
    }
    unreached.push_back(nodes[i]);
  }
  return unreached;
}

void Clustered::ProbeAgain() {
  const std::vector<NodeId> nodes = master_->to_probe();
  if (nodes.empty() || fabric_.load() == FabricKind::kUndecided) return;
  std::string reason;
  ProbeNodes(*master_->view(), nodes, &reason);
}

void Clustered::OnNewView() {
  TellWorkers();
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_new_ = true;
  }
  wake_.notify_all();
}

void Clustered::AddWorker(const std::shared_ptr<Quiesce::Mailbox>& mailbox,
                          std::function<void()> tend) {
  const std::lock_guard<std::mutex> lock(workers_mutex_);
  workers_.emplace_back(mailbox, std::move(tend));
}

void Clustered::TellWorkers() {
  const std::lock_guard<std::mutex> lock(workers_mutex_);
  for (const auto& worker : workers_) {
    worker.first->Post([tend = worker.second](Quiesce&) { tend(); });
  }
}

PoolUsage Clustered::pool_usage() const {
  if (const std::optional<PoolUsage> usage = master_->usage(); usage.has_value()) return *usage;
  PoolUsage usage;
  usage.capacity_bytes = master_->view()->regions.size() * kRegionBytes;
  return usage;
}

uint64_t Clustered::replicas() const { return static_cast<uint64_t>(master_->view()->replicas); }

void Clustered::Fail(std::string reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  join_error_ = std::move(reason);
}

std::string Clustered::join_error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return join_error_;
}

Status Clustered::DecideFabric(const View& view, std::string* reason) {
  struct Way {
    FabricKind kind;
    std::string why_not;
  };
  const Way ways[] = {{FabricKind::kShm, WhyNotShm(view)},
                      {FabricKind::kVerbs, WhyNotVerbs(view)},
                      {FabricKind::kTcp, WhyNotTcp(view)}};
  const std::string& wanted = options_.fabric;
  std::string refused;
  std::string instead;
  for (const auto& [kind, why_not] : ways) {
    const bool is_wanted = wanted == "auto" || wanted == NameOf(kind);
    if (is_wanted && why_not.empty()) {
      const Status status = kind == FabricKind::kVerbs ? OpenDevice(reason) : Status::Ok();
      if (!status.ok()) return status;
      // All workers alike, whatever the first one found.
      FabricKind undecided = FabricKind::kUndecided;
      fabric_.compare_exchange_strong(undecided, kind);
      return Status::Ok();
    }
    if (is_wanted) refused += (refused.empty() ? "" : ", and ") + why_not;
    if (!is_wanted && why_not.empty() && instead.empty()) instead = NameOf(kind);
  }
  *reason = refused + (instead.empty() ? "" : "; give --fabric " + instead);
  return Status(StatusCode::kInvalidArgument, "no fabric reaches every memory node");
}

Status Clustered::OpenDevice(std::string* reason) {
  const std::lock_guard<std::mutex> lock(device_mutex_);
  if (device_ != nullptr) return Status::Ok();
  Result<std::unique_ptr<VerbsDevice>> device = VerbsDevice::Open(
      {.name = options_.device, .gid_index = static_cast<int>(options_.gid_index)}, reason);
  if (!device.ok()) return device.status();
  device_ = std::move(device.value());
  LogInfo("rdma: " + device_->Describe());
  return Status::Ok();
}

Task<Result<std::unique_ptr<WorkerStorage>>> Clustered::Join(LoopExecutor& executor) {
  auto worker = std::make_unique<ClusteredWorker>(executor, *this);
  std::string reason;
  const Status status = co_await worker->Start(&reason);
  if (!status.ok()) {
    Fail(reason + WhatTheMasterWaitsFor());
    co_return status;
  }
  std::unique_ptr<WorkerStorage> joined = std::move(worker);
  co_return std::move(joined);
}

std::string Clustered::WhatTheMasterWaitsFor() const {
  constexpr uint64_t kPatienceMs = 1000;
  if (!master_->attending()) return "";
  ControlOptions control = ControlOptionsOf(options_, secret_);
  control.connect_timeout_ms = kPatienceMs;
  control.request_timeout_ms = kPatienceMs;
  std::string reason;
  const Result<ClusterStatusInfo> status = QueryStatus(control, &reason);
  if (!status.ok() || status.value().waiting_for.empty()) return "";
  return "; the cluster waits: " + status.value().waiting_for;
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
