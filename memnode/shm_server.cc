#include "memnode/shm_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "client_core/base/log.h"
#include "client_core/layout/worker_id.h"
#include "memnode/shm_server_connection.h"

namespace onetrip {
namespace {

bool HasEnded(int process) {
  pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
  return poll(&ended, 1, 0) > 0;
}

}  // namespace

void ShmServerCore::Accept(UniqueFd fd) {
  connections.push_back(std::make_unique<ShmConnection>(*this, std::move(fd)));
  connection_count.Set(connections.size());
  ShmConnection* opened = connections.back().get();
  if (!opened->Open()) Remove(opened);
}

ShmRefusal ShmServerCore::CheckWorker(const ShmHello& hello, const ShmProcess* process) {
  if (hello.worker > kMaxWorkerId) return ShmRefusal::kMalformed;
  if (hello.cluster != options.cluster) return ShmRefusal::kCluster;
  if (hello.node != options.node.value) return ShmRefusal::kNode;
  if (hello.incarnation != 0 && hello.incarnation != backing.incarnation()) {
    return ShmRefusal::kIncarnation;
  }
  if (hello.epoch < epoch.value) return ShmRefusal::kStaleEpoch;
  const auto at = workers.find(hello.worker);
  if (at == workers.end()) return ShmRefusal::kNone;
  if (at->second.fenced) return ShmRefusal::kFenced;
  const ShmProcess* holder = at->second.process;
  const bool is_taken =
      holder != nullptr && holder != process && !HasEnded(holder->descriptor.get());
  return is_taken ? ShmRefusal::kTaken : ShmRefusal::kNone;
}

ShmRefusal ShmServerCore::Admit(const ShmHello& hello, pid_t pid, UniqueFd* descriptor,
                                ShmProcess** process) {
  ShmProcess* known = nullptr;
  for (const auto& candidate : processes) {
    if (candidate->pid == pid && !HasEnded(candidate->descriptor.get())) known = candidate.get();
  }
  const ShmRefusal refusal = CheckWorker(hello, known);
  if (refusal != ShmRefusal::kNone) return refusal;
  if (known == nullptr) {
    processes.push_back(std::make_unique<ShmProcess>());
    process_count.Set(processes.size());
    known = processes.back().get();
    known->pid = pid;
    known->core = this;
    known->descriptor = std::move(*descriptor);
    known->watcher = std::make_unique<FdWatcher>(
        executor, known->descriptor.get(),
        [](void* ended) {
          auto* self = static_cast<ShmProcess*>(ended);
          self->core->OnEnded(self);
        },
        nullptr, known);
    known->watcher->WatchReads(true);
  }
  ++known->connections;
  ++known->mappings;
  EnterWorker(WorkerId{hello.worker}, known);
  *process = known;
  return ShmRefusal::kNone;
}

void ShmServerCore::EnterWorker(WorkerId worker, ShmProcess* process) {
  next_worker.Set(std::max<uint64_t>(next_worker.Value(), uint64_t{worker.value} + 1));
  ShmProcess*& holder = workers[worker.value].process;
  if (holder == process) return;
  // The process that had it has ended, which its descriptor is about to say.
  if (holder != nullptr) std::erase(holder->workers, worker);
  holder = process;
  process->workers.push_back(worker);
}

void ShmServerCore::Remove(ShmConnection* connection) {
  const auto at = std::find_if(connections.begin(), connections.end(),
                               [connection](const auto& held) { return held.get() == connection; });
  const std::unique_ptr<ShmConnection> removed = std::move(*at);
  *at = std::move(connections.back());
  connections.pop_back();
  connection_count.Set(connections.size());
  if (removed->process() != nullptr) Leave(removed->process());
}

void ShmServerCore::Leave(ShmProcess* process) {
  if (--process->connections > 0) return;
  Depart(process);
  if (process->mappings == 0) Forget(process);
}

void ShmServerCore::Depart(ShmProcess* process) {
  const bool detached = process->mappings == 0;
  if (!detached) {
    LogWarning("shm: process " + std::to_string(process->pid) + " with " +
               std::to_string(process->workers.size()) + " workers is gone");
  }
  if (on_departure) {
    on_departure({.process = process->pid, .workers = process->workers, .detached = detached});
  }
}

void ShmServerCore::OnEnded(ShmProcess* process) {
  std::vector<ShmConnection*> open;
  for (const auto& connection : connections) {
    if (connection->process() == process) open.push_back(connection.get());
  }
  // Its last words first: it may have detached. Each removes itself at most.
  for (ShmConnection* connection : open) connection->OnReadable();
  const auto at = std::find_if(processes.begin(), processes.end(),
                               [process](const auto& held) { return held.get() == process; });
  if (at == processes.end()) return;
  // Sockets that it left to others are worth nothing.
  std::erase_if(connections,
                [process](const auto& connection) { return connection->process() == process; });
  connection_count.Set(connections.size());
  if (process->connections > 0) Depart(process);
  Forget(process);
}

void ShmServerCore::Forget(ShmProcess* process) {
  for (const WorkerId id : process->workers) {
    Worker& worker = workers[id.value];
    worker.process = nullptr;
    if (!worker.fenced) workers.erase(id.value);
  }
  std::erase_if(processes, [process](const auto& held) { return held.get() == process; });
  process_count.Set(processes.size());
}

Status ShmServerCore::Fence(WorkerId id, UniqueFd* process) {
  Worker& worker = workers[id.value];
  worker.fenced = true;
  if (worker.process == nullptr) return Status::Ok();
  if (worker.process->pid == getpid()) {
    return Status(StatusCode::kUnknownOutcome, "the worker is in the memory node's own process");
  }
  const int descriptor = worker.process->descriptor.get();
  syscall(SYS_pidfd_send_signal, descriptor, SIGKILL, nullptr, 0);
  // A duplicate: the process is forgotten as soon as it has ended.
  *process = UniqueFd(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (process->valid()) return Status::Ok();
  return Status(StatusCode::kUnknownOutcome, "no descriptor to wait for the worker's end with");
}

ShmServer::ShmServer(std::unique_ptr<ShmServerCore> core)
    : core_(std::move(core)), thread_(core_->executor) {}

Result<UniqueFd> ShmServer::Listen(const ShmServerOptions& options, std::string* reason) {
  const Status directory = EnsurePrivateDirectory(options.path, reason);
  if (!directory.ok()) return directory;
  return ListenUnix(options.path, 0600, options.backlog, reason);
}

std::unique_ptr<ShmServer> ShmServer::Serve(MemoryEndpoint& endpoint, const Backing& backing,
                                            const ShmServerOptions& options,
                                            OnDeparture on_departure, UniqueFd listener) {
  CHECK(backing.options().kind != BackingOptions::Kind::kPrivate);
  static const SystemClock clock;
  auto core =
      std::make_unique<ShmServerCore>(clock, endpoint, backing, options, std::move(on_departure));
  core->acceptor =
      std::make_unique<Acceptor>(core->executor, std::move(listener),
                                 [core = core.get()](UniqueFd fd) { core->Accept(std::move(fd)); });
  return std::unique_ptr<ShmServer>(new ShmServer(std::move(core)));
}

Result<std::unique_ptr<ShmServer>> ShmServer::Start(MemoryEndpoint& endpoint,
                                                    const Backing& backing,
                                                    const ShmServerOptions& options,
                                                    OnDeparture on_departure, std::string* reason) {
  if (backing.options().kind == BackingOptions::Kind::kPrivate) {
    *reason = "a memory node with private memory cannot serve shm";
    return Status(StatusCode::kInvalidArgument, "private memory");
  }
  Result<UniqueFd> listener = Listen(options, reason);
  if (!listener.ok()) return listener.status();
  return Serve(endpoint, backing, options, std::move(on_departure), std::move(*listener));
}

ShmServer::~ShmServer() { Stop(); }

void ShmServer::Stop() {
  thread_.Stop([] {},
               [this] {
                 core_->acceptor.reset();
                 unlink(core_->options.path.c_str());
                 core_->connections.clear();
                 core_->processes.clear();
                 core_->connection_count.Set(0);
                 core_->process_count.Set(0);
               });
}

Status ShmServer::Fence(WorkerId worker, uint64_t timeout_ms) {
  UniqueFd process;
  Status status(StatusCode::kUnavailable, "the shm server has stopped");
  thread_.Run([&] { status = core_->Fence(worker, &process); });
  if (!status.ok() || !process.valid()) return status;
  pollfd ended{.fd = process.get(), .events = POLLIN, .revents = 0};
  const uint64_t end_ns = core_->executor.NowNs() + timeout_ms * 1'000'000;
  while (true) {
    const uint64_t now_ns = core_->executor.NowNs();
    const int wait_ms = now_ns < end_ns ? static_cast<int>((end_ns - now_ns) / 1'000'000 + 1) : 0;
    const int result = poll(&ended, 1, wait_ms);
    if (result > 0) return Status::Ok();
    if (result == 0 || errno != EINTR) break;
  }
  return Status(StatusCode::kUnknownOutcome, "the worker's process has not ended");
}

void ShmServer::SetEpoch(Epoch epoch) {
  thread_.Run([this, epoch] { core_->epoch = epoch; });
}

uint32_t ShmServer::next_worker() const {
  return static_cast<uint32_t>(core_->next_worker.Value());
}

ShmServerStats ShmServer::stats() const {
  return {.connections = core_->connection_count.Value(),
          .processes = core_->process_count.Value(),
          .welcomed = core_->welcomed.Value(),
          .refused = core_->refused.Value(),
          .requests = core_->requests.Value(),
          .errors = core_->errors.Value()};
}

}  // namespace onetrip
