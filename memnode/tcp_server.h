// TcpServer: a memory node's side of the tcp fabric. One thread serves all channels.
//
// Frames are executed in the order they arrive on a channel, with the atomics that shm workers use
// on the same memory. Because one thread reads, executes and answers, a channel that is closed has
// nothing half done: closing is fencing, and a worker's new channel is welcomed only after its old
// one was closed. The same holds for the queue pair of a worker that comes over RDMA: its batches
// do not pass through here, but it ends before its channel does. Runs no protocol.
#ifndef ONETRIP_MEMNODE_TCP_SERVER_H_
#define ONETRIP_MEMNODE_TCP_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "client_core/base/secret.h"
#include "client_core/base/status.h"
#include "client_core/coro/socket.h"
#include "client_core/fabric/control.h"
#include "client_core/layout/types.h"
#include "memnode/server_thread.h"
#include "memnode/verbs_host.h"

namespace onetrip {

struct TcpServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 0;  // 0: a free one
  int backlog = 1024;
  uint64_t cluster = 0;
  NodeId node{};
  Epoch epoch{};                         // workers with an older map are refused
  uint64_t handshake_timeout_ms = 2000;  // a peer that has not proved itself by then is dropped
  uint64_t stall_timeout_ms = 10'000;    // so is one that reads nothing of its answers
  uint64_t channels_max = 16'384;        // workers'; beyond them, workers are refused
  // Peers that have not proved themselves; beyond them, the one that came first is dropped. Apart
  // from the workers, so that strangers can keep none of them out; a whole cluster's workers come
  // at once when a node comes back.
  uint64_t strangers_max = 2048;
  uint64_t busy_poll_us = 0;  // looks for frames without sleeping, so long after the last
  // Not null: the memory is reached over RDMA alone, by queue pairs that end with their worker's
  // channel. Outlives the server, which alone uses it.
  VerbsHost* rdma = nullptr;
};

struct TcpServerStats {
  uint64_t channels = 0;  // open now, handshakes included
  uint64_t frames = 0;    // executed
  uint64_t operations = 0;
  uint64_t welcomed = 0;
  uint64_t refused = 0;  // handshakes
  uint64_t errors = 0;   // channels ended for a fault of the peer
};

struct TcpServerCore;

class TcpServer {
 public:
  // The socket that a server will accept on: workers may come from now on, and wait. Without a
  // secret the address must be loopback. On failure *reason says in one line what is wrong.
  static Result<UniqueFd> Listen(const TcpServerOptions& options, bool has_secret,
                                 std::string* reason);
  // Serves `endpoint`, which outlives the server, on a thread of its own. `listener` is Listen()'s.
  static std::unique_ptr<TcpServer> Serve(MemoryEndpoint& endpoint, Secret secret,
                                          const TcpServerOptions& options, UniqueFd listener);
  // Both.
  static Result<std::unique_ptr<TcpServer>> Start(MemoryEndpoint& endpoint, Secret secret,
                                                  const TcpServerOptions& options,
                                                  std::string* reason);
  // Stops.
  ~TcpServer();

  // Tells the peers and ends; what is not executed by then never is. Any thread, more than once.
  void Stop();

  // The port that workers connect to.
  [[nodiscard]] uint16_t port() const { return port_; }

  // Refuses `worker` from now on: when this returns, nothing it has sent will be executed any more.
  // Any thread but the server's own.
  void Fence(WorkerId worker);
  // Closes every channel: when this returns, nothing that was sent on them will be executed any
  // more. Workers may connect anew. As Fence.
  void CloseChannels();
  // Refuses workers with a map older than `epoch` from now on; open channels stay. As Fence.
  void SetEpoch(Epoch epoch);

  // Any thread.
  [[nodiscard]] TcpServerStats stats() const;
  // Larger than every worker's id that has been admitted. Any thread.
  [[nodiscard]] uint32_t next_worker() const;
  // CPU time that the thread has used. Any thread, until Stop().
  [[nodiscard]] uint64_t CpuNs();

 private:
  TcpServer(std::unique_ptr<TcpServerCore> core, uint16_t port);

  const std::unique_ptr<TcpServerCore> core_;
  const uint16_t port_;
  ServerThread thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_TCP_SERVER_H_
