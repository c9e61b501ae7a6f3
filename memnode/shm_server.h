// ShmServer: hands a memory node's memory to the agents of its host, over a unix socket.
//
// An agent that says the right HELLO is given a descriptor and from then on reads and writes
// without asking the node; over the socket it asks for blocks only. A mapping cannot be revoked, so
// the node keeps a descriptor of every agent's process and fences a worker by ending that process
// (PROTOCOLS, "Fencing on the memory nodes"). A socket that closes means that its agent is gone;
// its process stays fenceable until it has ended or has said that it gave up its mapping. One
// thread serves all.
#ifndef ONETRIP_MEMNODE_SHM_SERVER_H_
#define ONETRIP_MEMNODE_SHM_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/socket.h"
#include "client_core/fabric/control.h"
#include "client_core/layout/types.h"
#include "memnode/backing.h"
#include "memnode/server_thread.h"

namespace onetrip {

struct ShmServerOptions {
  std::string path;  // where the socket is, in a directory of mode 0700
  int backlog = 128;
  uint64_t cluster = 0;
  NodeId node{};
  Epoch epoch{};                         // workers with an older map are refused
  uint64_t handshake_timeout_ms = 2000;  // a peer without a HELLO by then is dropped
  uint64_t agents_max = 1024;            // beyond them, peers are refused
};

struct ShmServerStats {
  uint64_t connections = 0;  // open now, handshakes included
  uint64_t processes = 0;    // that may have the memory mapped now
  uint64_t welcomed = 0;
  uint64_t refused = 0;
  uint64_t requests = 0;
  uint64_t errors = 0;  // connections ended for a fault of the peer
};

// An agent that is gone, and what it leaves behind.
struct ShmDeparture {
  pid_t process = 0;
  std::vector<WorkerId> workers;
  bool detached = false;  // in order: it has no mapping any more
};

struct ShmServerCore;

class ShmServer {
 public:
  // Called on the server's thread; must not call the server.
  using OnDeparture = std::function<void(const ShmDeparture&)>;

  // The socket that a server will accept on: agents may come from now on, and wait. One that a dead
  // process left at the path is replaced, one that answers is refused. On failure *reason says in
  // one line what is wrong.
  static Result<UniqueFd> Listen(const ShmServerOptions& options, std::string* reason);
  // Hands out `backing`, whose memory `endpoint` serves; both outlive the server. `listener` is
  // Listen()'s. REQUIRES: the memory is not private.
  static std::unique_ptr<ShmServer> Serve(MemoryEndpoint& endpoint, const Backing& backing,
                                          const ShmServerOptions& options, OnDeparture on_departure,
                                          UniqueFd listener);
  // Both.
  static Result<std::unique_ptr<ShmServer>> Start(MemoryEndpoint& endpoint, const Backing& backing,
                                                  const ShmServerOptions& options,
                                                  OnDeparture on_departure, std::string* reason);
  // Stops.
  ~ShmServer();

  // Closes every connection and removes the socket. Agents keep their mappings. Any thread, more
  // than once.
  void Stop();

  // Ends the process of `worker`, if it may have the memory mapped, and refuses the worker from now
  // on. Ok: nothing of it will touch the memory any more. kUnknownOutcome: the process has not
  // ended within `timeout_ms`, or is this one. kUnavailable: the server has stopped, nothing was
  // done. Any thread but the server's own.
  Status Fence(WorkerId worker, uint64_t timeout_ms);
  // Refuses workers with a map older than `epoch` from now on; attached ones stay. As Fence.
  void SetEpoch(Epoch epoch);

  // Any thread.
  [[nodiscard]] ShmServerStats stats() const;
  // Larger than every worker's id that has been admitted. Any thread.
  [[nodiscard]] uint32_t next_worker() const;

 private:
  explicit ShmServer(std::unique_ptr<ShmServerCore> core);

  const std::unique_ptr<ShmServerCore> core_;
  ServerThread thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_SHM_SERVER_H_
