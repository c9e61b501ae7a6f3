#include "memnode/node_process.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>
#include <utility>

#include "client_core/base/address.h"
#include "client_core/base/host_id.h"
#include "client_core/base/host_memory.h"
#include "client_core/base/log.h"
#include "client_core/base/parameter_values.h"
#include "client_core/base/version.h"

namespace onetrip {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kDetachPollMs = 5;
constexpr uint64_t kTellMarkMs = 10'000;
constexpr uint64_t kTellLastMarkMs = 500;
constexpr uint64_t kFormerKillMs = 10'000;  // until those that were killed have ended

std::string MiB(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

uint64_t MsUntil(SteadyClock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
  return left.count() > 0 ? static_cast<uint64_t>(left.count()) : 0;
}

void LogDamage(const std::string& path, const std::string& damage) {
  LogError("backing file " + path + " is damaged: " + damage +
           "; it is not served, and left as it is until the other memory nodes do without it: then "
           "all of its regions are copied from them");
}

// Names only the first and the last of many workers whose ids follow each other, as after the
// master's state was made anew.
std::string Names(const std::vector<WorkerId>& workers) {
  std::string names;
  for (size_t first = 0; first < workers.size();) {
    size_t last = first;
    while (last + 1 < workers.size() && workers[last + 1].value == workers[last].value + 1) ++last;
    names += (names.empty() ? "" : ", ") + std::to_string(workers[first].value);
    if (last > first)
      names += (last == first + 1 ? ", " : " to ") + std::to_string(workers[last].value);
    first = last + 1;
  }
  return names;
}

}  // namespace

NodeProcess::NodeProcess(MemnodeOptions options, Secret secret, MakeSession make_session)
    : options_(std::move(options)),
      secret_(std::move(secret)),
      make_session_(std::move(make_session)) {}

NodeProcess::~NodeProcess() { Stop(); }

Status NodeProcess::Start(std::string* reason) {
  Status status = OpenMemory(reason);
  if (status.ok()) status = Listen(reason);
  if (status.ok()) status = Join(reason);
  if (status.ok()) status = CheckMemory(reason);
  if (status.ok()) status = TakePlace(reason);
  if (status.ok()) status = TellMark(reason);
  if (status.ok()) status = Serve(reason);
  if (!status.ok()) Stop();
  return status;
}

Status NodeProcess::OpenMemory(std::string* reason) {
  // First, for it costs nothing, and a file is made with all its room.
  if (has_tcp() && !MayTalk(!secret_.empty(), IsLoopbackAddress(options_.listen))) {
    *reason = "will not listen on " + options_.listen +
              " without a secret; give --secret-file, or --listen with a loopback address";
    return Status(StatusCode::kInvalidArgument, "no secret");
  }
  const Status device = has_verbs() ? OpenDevice(reason) : Status::Ok();
  if (!device.ok()) return device;
  BackingOptions backing;
  backing.bytes = options_.memory_bytes / kRegionBytes * kRegionBytes;
  backing.path = options_.backing;
  if (!options_.backing.empty()) {
    backing.kind = BackingOptions::Kind::kFile;
  } else {
    backing.kind = has_shm() ? BackingOptions::Kind::kSegment : BackingOptions::Kind::kPrivate;
    const uint64_t usable_bytes = UsableMemoryBytes();
    if (backing.bytes > usable_bytes) {
      *reason = "a memory of " + MiB(backing.bytes) + " is more than this host's " +
                MiB(usable_bytes) + "; give a smaller --memory";
      return Status(StatusCode::kOutOfMemory, "more than the host has");
    }
  }
  Result<std::unique_ptr<Backing>> opened = Backing::Open(backing, reason);
  if (!opened.ok()) return opened.status();
  backing_ = std::move(*opened);
  pages_ = backing_->pages();
  LogInfo(PagesText(backing.kind, backing.bytes, pages_, ReadHugePageReserve()));
  accepts_old_ = options_.accept_damaged == "yes";
  const std::string damage = backing_->damage();
  if (damage.empty()) return Status::Ok();
  if (options_.accept_damaged == "yes") {
    LogWarning("backing file " + backing.path + " is damaged: " + damage +
               "; --accept-damaged says that it is served as it is");
    accepts_damage_ = true;
    backing_->AcceptDamage();
  } else {
    LogDamage(backing.path, damage);
  }
  return Status::Ok();
}

Status NodeProcess::OpenDevice(std::string* reason) {
  if (!options_.backing.empty()) {
    *reason =
        "a memory in a file is not served over RDMA, for the kernel does not notice what a "
        "network card writes there; leave --backing away, or give --fabric tcp";
    return Status(StatusCode::kInvalidArgument, "a file");
  }
  Result<std::unique_ptr<VerbsDevice>> device = VerbsDevice::Open(
      {.name = options_.device, .gid_index = static_cast<int>(options_.gid_index)}, reason);
  if (!device.ok()) return device.status();
  device_ = std::move(*device);
  address_.rdma = device_->Describe();
  return Status::Ok();
}

Status NodeProcess::RegisterMemory(std::string* reason) {
  uint64_t seed = 0;
  FillRandom(std::as_writable_bytes(std::span(&seed, 1)));
  Result<std::unique_ptr<VerbsHost>> host =
      VerbsHost::Start(*device_, backing_->base(), backing_->bytes(), seed, reason);
  if (!host.ok()) return host.status();
  verbs_ = std::move(*host);
  tcp_options_.rdma = verbs_.get();
  LogInfo("rdma: " + MiB(backing_->bytes()) + " registered with " + address_.rdma);
  return Status::Ok();
}

Status NodeProcess::Listen(std::string* reason) {
  if (has_verbs()) {
    const Status status = RegisterMemory(reason);
    if (!status.ok()) return status;
  }
  if (has_tcp()) {
    const Status status = ListenTcp(reason);
    if (!status.ok()) return status;
  }
  return has_shm() ? ListenShm(reason) : Status::Ok();
}

Status NodeProcess::ListenTcp(std::string* reason) {
  // The option's text was looked at when it was read.
  CHECK(ParseHostPort(options_.listen, &tcp_options_.host, &tcp_options_.port));
  tcp_options_.busy_poll_us = options_.busy_poll_us;
  Result<UniqueFd> listener = TcpServer::Listen(tcp_options_, !secret_.empty(), reason);
  if (!listener.ok()) return listener.status();
  tcp_listener_ = std::move(*listener);
  CHECK(ParseHostPort(LocalAddress(tcp_listener_.get()), &address_.tcp_host, &address_.tcp_port));
  if (address_.tcp_host == "0.0.0.0" || address_.tcp_host == "::") {
    *reason = "--listen " + options_.listen +
              " is no address that agents could connect to; give one of this host's own";
    return Status(StatusCode::kInvalidArgument, "a wildcard address");
  }
  return Status::Ok();
}

Status NodeProcess::ListenShm(std::string* reason) {
  Result<SocketPlace> place = SocketPlace::Choose(options_.socket, backing_->incarnation(), reason);
  if (!place.ok()) return place.status();
  socket_ = *place;
  shm_options_.path = socket_.path();
  Result<UniqueFd> listener = ShmServer::Listen(shm_options_, reason);
  if (!listener.ok()) return listener.status();
  shm_listener_ = std::move(*listener);
  address_.shm_path = socket_.path();
  address_.host_id = HostId();
  return Status::Ok();
}

Status NodeProcess::Join(std::string* reason) {
  std::string address = address_.shm_path;
  if (has_tcp()) address = LocalAddress(tcp_listener_.get());
  const std::shared_ptr<NodeMasterClient> session = make_session_(address);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    session_ = session;
    if (interrupted_) {
      *reason = "interrupted";
      return Status(StatusCode::kUnavailable, "interrupted");
    }
  }
  NodeOffer offer{.bytes = backing_->bytes(), .incarnation = backing_->incarnation()};
  offer.damage = backing_->damage();
  offer.accepted = accepts_damage_;
  offer.age = NodeProcess::Age();
  offer.accepts_old = accepts_old_;
  if (!options_.backing.empty()) {
    std::ifstream file(ImageKeeper::StatePath(options_.backing), std::ios::binary);
    offer.state.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (backing_->is_adopted() && backing_->owner().has_value()) {
    offer.adopted = true;
    offer.owner_cluster = backing_->owner()->cluster;
    offer.owner_node = backing_->owner()->node;
  }
  Result<NodePlace> place = session->Join(offer, reason);
  if (!place.ok()) return place.status();
  place_ = std::move(*place);
  return backing_->SetOwner({.cluster = place_.cluster, .node = place_.node}, reason);
}

Status NodeProcess::CheckMemory(std::string* reason) {
  // Only now: they may be those of a cluster that this node is no part of.
  const Status ended = backing_->EndClients(options_.former_grace_ms, kFormerKillMs, reason);
  // Memory that was damaged before the node joined has a place that does not count on it.
  if (!ended.ok() || !backing_->damage().empty()) return ended;
  if (!place_.outdated.empty()) {
    // The view does without it already.
    const Status outdated = backing_->MarkDamaged(place_.outdated, reason);
    if (outdated.ok()) LogDamage(options_.backing, place_.outdated);
    return outdated;
  }
  const std::string wrong = MemoryNode::WhyNotAdopted(place_.node, place_.view, *backing_);
  if (wrong.empty()) return Status::Ok();
  if (accepts_damage_) {
    *reason = "backing file " + options_.backing + " cannot be accepted as it is: " + wrong +
              "; without --accept-damaged its regions are copied from other memory nodes";
    return Status(StatusCode::kCorrupt, "the image cannot be adopted");
  }
  const Status marked = backing_->MarkDamaged(wrong, reason);
  if (!marked.ok()) return marked;
  LogDamage(options_.backing, wrong);
  session_->Stop(/*leave=*/true);
  return Join(reason);
}

Status NodeProcess::TakePlace(std::string* reason) {
  const bool is_adopted = backing_->is_adopted() && backing_->damage().empty();
  backing_->RaiseMark(place_.mark);
  backing_->NoteEpoch(place_.view.epoch);
  Result<std::unique_ptr<MemoryNode>> node =
      MemoryNode::Create(place_.node, place_.view, std::move(backing_), reason);
  if (!node.ok()) return node.status();
  node_ = std::move(*node);
  node_->TouchAhead();
  if (is_adopted) {
    LogInfo("adopted the memory of an earlier life: " +
            std::to_string(node_->status().granted_blocks) + " blocks are granted");
  }
  return Status::Ok();
}

Status NodeProcess::TellMark(std::string* reason) {
  const uint64_t mark = node_->backing().age().mark;
  const Status status = session_->NoteMark(mark, kTellMarkMs, reason);
  if (!status.ok()) return status;
  node_->backing().NoteTold(mark);
  if (!options_.backing.empty()) keeper_ = std::make_unique<ImageKeeper>(node_->backing());
  return Status::Ok();
}

Status NodeProcess::Serve(std::string* reason) {
  const Epoch epoch = place_.view.epoch;
  if (has_tcp()) {
    tcp_options_.cluster = place_.cluster;
    tcp_options_.node = place_.node;
    tcp_options_.epoch = epoch;
    tcp_ = TcpServer::Serve(*node_, secret_.Copy(), tcp_options_, std::move(tcp_listener_));
  }
  if (has_shm()) {
    shm_options_.cluster = place_.cluster;
    shm_options_.node = place_.node;
    shm_options_.epoch = epoch;
    shm_ =
        ShmServer::Serve(*node_, node_->backing(), shm_options_, nullptr, std::move(shm_listener_));
  }
  Status status = Fence(place_.expelled, epoch, reason);
  if (!status.ok()) return status;
  status = session_->Serve(address_, this, reason);
  if (!status.ok()) return status;
  const std::lock_guard<std::mutex> lock(mutex_);
  serving_ = true;
  return Status::Ok();
}

void NodeProcess::Wait() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return interrupted_; });
}

void NodeProcess::Interrupt() {
  std::shared_ptr<NodeMasterClient> joining;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    interrupted_ = true;
    if (!serving_) joining = session_;
  }
  changed_.notify_all();
  if (joining != nullptr) joining->Stop(/*leave=*/true);
}

bool NodeProcess::is_interrupted() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return interrupted_;
}

void NodeProcess::Stop() {
  if (std::exchange(stopped_, true)) return;
  std::shared_ptr<NodeMasterClient> session;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    session = session_;
  }
  if (keeper_ != nullptr) {
    // Marks the writes since the last mark, too, so that an older copy that is put back is noticed.
    NoteWorkers();
    keeper_->Stop();
    std::string ignored;
    (void)node_->backing().Beat(&ignored);
    const uint64_t mark = node_->backing().age().mark;
    if (session->NoteMark(mark, kTellLastMarkMs, &ignored).ok()) {
      node_->backing().NoteTold(mark);
    }
  }
  // First: agents learn that the node goes, and no duty comes any more.
  if (session != nullptr) session->Stop(/*leave=*/true);
  if (shm_ != nullptr) shm_->Stop();
  if (tcp_ != nullptr) tcp_->Stop();
  if (shm_listener_.valid()) unlink(socket_.path().c_str());
  socket_.Leave();
  if (node_ != nullptr) MarkClean();
  // Another process may have the memory now.
  shm_.reset();
  tcp_.reset();
  verbs_.reset();
  keeper_.reset();
  node_.reset();
  backing_.reset();
}

void NodeProcess::MarkClean() {
  // Agents give their mappings up as soon as they see the end of their connections.
  const auto end = SteadyClock::now() + std::chrono::milliseconds(options_.detach_timeout_ms);
  while (node_->backing().HasClients() && SteadyClock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(kDetachPollMs));
  }
  std::string reason;
  if (!node_->backing().MarkClean(&reason).ok()) LogWarning(reason);
}

Status NodeProcess::Fence(const std::vector<WorkerId>& workers, Epoch epoch, std::string* reason) {
  epoch_ = std::max(epoch_, epoch);
  if (tcp_ != nullptr) {
    tcp_->SetEpoch(epoch_);
    for (const WorkerId worker : workers) tcp_->Fence(worker);
  }
  if (shm_ != nullptr) {
    shm_->SetEpoch(epoch_);
    // All are killed before one is waited for.
    for (const WorkerId worker : workers) (void)shm_->Fence(worker, /*timeout_ms=*/0);
    const auto end = SteadyClock::now() + std::chrono::milliseconds(options_.fence_timeout_ms);
    for (const WorkerId worker : workers) {
      const Status status = shm_->Fence(worker, MsUntil(end));
      if (status.ok()) continue;
      *reason = "worker " + std::to_string(worker.value) + " is not fenced: " + status.message();
      LogWarning(*reason);
      return status;
    }
  }
  if (!workers.empty()) {
    LogWarning("fenced workers " + Names(workers) + " at epoch " + std::to_string(epoch.value));
  }
  return Status::Ok();
}

void NodeProcess::OnView(const std::shared_ptr<const View>& view) {
  // Agents have given the node up, and what they had sent must not come to anything any more: the
  // node's memory is made good before they use it again.
  if (view->IsOut(place_.node) && tcp_ != nullptr) tcp_->CloseChannels();
  node_->backing().NoteEpoch(view->epoch);
  if (keeper_ != nullptr) keeper_->WriteSoon();
  std::string reason;
  if (!node_->UseView(*view, &reason).ok()) LogError(reason + "; its roles stay as they were");
}

void NodeProcess::OnMarkStored(uint64_t mark) { node_->backing().NoteTold(mark); }

NodeAge NodeProcess::Age() {
  NoteWorkers();
  const ImageAge age = node_ != nullptr ? node_->backing().age() : backing_->age();
  return {.mark = age.mark, .told = age.told, .epoch = age.epoch, .next_worker = age.next_worker};
}

void NodeProcess::OnState(const std::string& file) {
  if (keeper_ != nullptr) keeper_->KeepState(file);
}

void NodeProcess::NoteWorkers() {
  if (node_ == nullptr) return;
  if (tcp_ != nullptr) node_->backing().NoteWorkersBelow(tcp_->next_worker());
  if (shm_ != nullptr) node_->backing().NoteWorkersBelow(shm_->next_worker());
}

NodeReport NodeProcess::Report() {
  const MemoryNodeStatus status = node_->status();
  NodeReport report{.blocks = status.blocks, .granted_blocks = status.granted_blocks};
  report.page_bytes = pages_.page_bytes;
  report.usage = node_->Usage();
  NoteWorkers();
  // Memory that ends with the process has no image to keep up; its mark still tells an older copy
  // of the master's state.
  std::string ignored;
  if (keeper_ == nullptr) (void)node_->backing().Beat(&ignored);
  report.mark = node_->backing().age().mark;
  // Over shm and RDMA agents do not ask this process, so it counts nothing.
  if (tcp_ != nullptr) report.operations = tcp_->stats().operations;
  return report;
}

std::string NodeProcess::ReadyLine() const {
  const uint64_t regions = node_->status().regions;
  std::string line = "onetrip-memnode " ONETRIP_VERSION " is ready: node " +
                     std::to_string(place_.node.value) + " of cluster " + HexName(place_.cluster) +
                     ", " + MiB(node_->backing().bytes()) + " (" + std::to_string(regions) +
                     (regions == 1 ? " region" : " regions") + ")";
  if (tcp_ != nullptr) {
    const bool is_v6 = address_.tcp_host.find(':') != std::string::npos;
    line += ", tcp " + (is_v6 ? "[" + address_.tcp_host + "]" : address_.tcp_host) + ":" +
            std::to_string(address_.tcp_port);
  }
  if (shm_ != nullptr) line += ", shm " + address_.shm_path;
  if (verbs_ != nullptr) line += ", RDMA " + address_.rdma;
  return line + ", master " + options_.master;
}

}  // namespace onetrip
