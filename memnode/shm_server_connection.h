// One connection of the shm server, and what all of them share. Internal to the server; everything
// runs on its thread, but for reading counters.
#ifndef ONETRIP_MEMNODE_SHM_SERVER_CONNECTION_H_
#define ONETRIP_MEMNODE_SHM_SERVER_CONNECTION_H_

#include <absl/container/flat_hash_map.h>

#include <memory>
#include <string>
#include <vector>

#include "client_core/base/metrics.h"
#include "client_core/coro/acceptor.h"
#include "client_core/coro/socket.h"
#include "client_core/coro/timer_heap.h"
#include "client_core/layout/shm_wire.h"
#include "memnode/peer_log.h"
#include "memnode/shm_server.h"

namespace onetrip {

class ShmConnection;

// A process that may have the memory mapped.
struct ShmProcess {
  pid_t pid = 0;
  UniqueFd descriptor;
  std::unique_ptr<FdWatcher> watcher;
  std::vector<WorkerId> workers;
  uint64_t connections = 0;
  uint64_t mappings = 0;  // handed out and not given up
  ShmServerCore* core = nullptr;
};

struct ShmServerCore {
  ShmServerCore(const Clock& clock, MemoryEndpoint& served, const Backing& memory,
                const ShmServerOptions& given, ShmServer::OnDeparture departure)
      : executor(clock, /*seed=*/0),
        endpoint(served),
        backing(memory),
        options(given),
        on_departure(std::move(departure)),
        epoch(given.epoch) {}

  // A process has connected.
  void Accept(UniqueFd fd);
  // The answer to a HELLO of the process `pid`, `*process` what stands for it; one that is welcome
  // is entered.
  ShmRefusal Admit(const ShmHello& hello, pid_t pid, UniqueFd* descriptor, ShmProcess** process);
  ShmRefusal CheckWorker(const ShmHello& hello, const ShmProcess* process);
  void EnterWorker(WorkerId worker, ShmProcess* process);
  void Remove(ShmConnection* connection);
  // A connection of the process has gone.
  void Leave(ShmProcess* process);
  void OnEnded(ShmProcess* process);
  void Forget(ShmProcess* process);
  void Depart(ShmProcess* process);
  // Refuses the worker from now on and kills its process. kOk: there is none, or `*process` tells
  // of its end.
  Status Fence(WorkerId worker, UniqueFd* process);

  LoopExecutor executor;
  MemoryEndpoint& endpoint;
  const Backing& backing;
  const ShmServerOptions options;
  const ShmServer::OnDeparture on_departure;
  Epoch epoch;

  Counter connection_count;
  Counter next_worker;  // larger than every id that was admitted
  Counter process_count;
  Counter welcomed;
  Counter refused;
  Counter requests;
  Counter errors;

  struct Worker {
    ShmProcess* process = nullptr;
    bool fenced = false;
  };
  absl::flat_hash_map<uint32_t, Worker> workers;
  std::vector<std::unique_ptr<ShmProcess>> processes;
  std::vector<std::unique_ptr<ShmConnection>> connections;
  PeerLog log;
  std::unique_ptr<Acceptor> acceptor;
};

class ShmConnection {
 public:
  ShmConnection(ShmServerCore& core, UniqueFd fd)
      : core_(core),
        fd_(std::move(fd)),
        alarm_(*this),
        watcher_(
            core.executor, fd_.get(),
            [](void* self) { static_cast<ShmConnection*>(self)->OnReadable(); }, nullptr, this) {}

  // Looks at the process that connects and greets it, or refuses it and returns false.
  bool Open();
  // May remove the connection.
  void OnReadable();
  [[nodiscard]] ShmProcess* process() const { return process_; }

 private:
  class Alarm final : public Timer {
   public:
    explicit Alarm(ShmConnection& connection) : connection_(connection) {}
    void Fire() override {
      connection_.Refuse(ShmRefusal::kSilent, 0);
      connection_.core_.Remove(&connection_);
    }

   private:
    ShmConnection& connection_;
  };

  // Each returns whether the connection goes on.
  bool OnFrame();
  bool OnHello(const ShmHello& hello);
  bool OnWorker(const ShmHello& hello);
  bool OnControl(const ShmControl& control);
  bool OnDetach();
  bool Malformed();
  bool Refuse(ShmRefusal refusal, uint32_t worker);
  void LogRefusal(ShmRefusal refusal, uint32_t worker);
  [[nodiscard]] std::string Name() const { return "process " + std::to_string(pid_); }

  ShmServerCore& core_;
  UniqueFd fd_;
  pid_t pid_ = 0;
  UniqueFd descriptor_;  // names the peer's process, until it is welcome
  uint64_t nonce_ = 0;
  ShmProcess* process_ = nullptr;
  ShmFrame input_{};
  size_t input_bytes_ = 0;
  pid_t sender_ = 0;  // sent the frame's last bytes
  Alarm alarm_;
  FdWatcher watcher_;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_SHM_SERVER_CONNECTION_H_
