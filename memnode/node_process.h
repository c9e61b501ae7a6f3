// NodeProcess: the life of a memory node's process: its memory, its place in the cluster, its
// servers.
//
// The node finds faults that need no master before it asks the master: a place, once given, is the
// node's for good. The order is the protocol (PROTOCOLS, "Fencing on the memory nodes"): the node
// serves no agent before it has fenced the expelled ones and the processes of its former life have
// ended; no agent is told of the node before it serves.
#ifndef ONETRIP_MEMNODE_NODE_PROCESS_H_
#define ONETRIP_MEMNODE_NODE_PROCESS_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client_core/base/options.h"
#include "client_core/base/secret.h"
#include "client_core/base/status.h"
#include "client_core/control/node_master_client.h"
#include "memnode/backing.h"
#include "memnode/image_keeper.h"
#include "memnode/memory_node.h"
#include "memnode/shm_server.h"
#include "memnode/socket_place.h"
#include "memnode/tcp_server.h"

namespace onetrip {

class NodeProcess final : private NodeDuties {
 public:
  // `address` tells people where the node will serve.
  using MakeSession = std::function<std::unique_ptr<NodeMasterClient>(const std::string& address)>;

  NodeProcess(MemnodeOptions options, Secret secret, MakeSession make_session);
  // Stops.
  ~NodeProcess() override;

  // Opens the memory, joins and serves; blocks until then, or until Interrupt(). Damaged memory
  // serves once the master has given it up, which may take as long as other nodes are away. On
  // failure *reason says in one line what is wrong and what to do, and the node has left. Once.
  Status Start(std::string* reason);
  // Blocks while the node serves, which is until Interrupt(): its memory may be the last copy, so
  // no master ends it. REQUIRES: Start() was ok.
  void Wait();
  // Makes Start() and Wait() return. Any thread, more than once.
  void Interrupt();
  [[nodiscard]] bool is_interrupted();
  // Leaves the cluster, stops serving, marks a file's memory as whole if no process can write it
  // any more, and lets go of it. By the thread that called Start().
  void Stop();

  // One line that says who and where the node is. REQUIRES: it serves.
  [[nodiscard]] std::string ReadyLine() const;
  // REQUIRES: as above.
  [[nodiscard]] const NodeAddress& address() const { return address_; }
  [[nodiscard]] const MemoryNode& node() const { return *node_; }

 private:
  Status Fence(const std::vector<WorkerId>& workers, Epoch epoch, std::string* reason) override;
  void OnView(const std::shared_ptr<const View>& view) override;
  void OnMarkStored(uint64_t mark) override;
  NodeAge Age() override;
  void OnState(const std::string& file) override;
  NodeReport Report() override;

  // The steps of Start(), in their order.
  Status OpenMemory(std::string* reason);
  Status Listen(std::string* reason);
  Status ListenTcp(std::string* reason);
  Status ListenShm(std::string* reason);
  Status OpenDevice(std::string* reason);
  Status RegisterMemory(std::string* reason);
  Status Join(std::string* reason);
  // Memory that says what it cannot is damaged, which only the map can tell: the node joins again.
  Status CheckMemory(std::string* reason);
  Status TakePlace(std::string* reason);
  // The master stores that a new life has begun, before any agent can write in it.
  Status TellMark(std::string* reason);
  Status Serve(std::string* reason);

  void NoteWorkers();
  void MarkClean();
  [[nodiscard]] bool has_shm() const {
    return options_.fabric == "shm" || options_.fabric == "both";
  }
  // Over verbs, too: channels of workers are tcp's.
  [[nodiscard]] bool has_tcp() const { return options_.fabric != "shm"; }
  [[nodiscard]] bool has_verbs() const { return options_.fabric == "verbs"; }

  const MemnodeOptions options_;
  const Secret secret_;
  const MakeSession make_session_;

  std::unique_ptr<Backing> backing_;  // until there is a node
  MemoryPages pages_;                 // the memory's
  bool accepts_damage_ = false;       // has taken damaged memory for sound
  bool accepts_old_ = false;          // takes memory that is an older copy for sound
  SocketPlace socket_;
  UniqueFd tcp_listener_;  // until there is a server; so is the next
  UniqueFd shm_listener_;
  NodeAddress address_;
  TcpServerOptions tcp_options_;
  ShmServerOptions shm_options_;
  NodePlace place_;
  std::unique_ptr<MemoryNode> node_;
  std::unique_ptr<VerbsDevice> device_;
  std::unique_ptr<VerbsHost> verbs_;
  std::unique_ptr<TcpServer> tcp_;
  std::unique_ptr<ShmServer> shm_;
  std::unique_ptr<ImageKeeper> keeper_;  // keeps a file's image, while it is served
  Epoch epoch_;                          // workers with an older map are refused
  bool stopped_ = false;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<NodeMasterClient> session_;  // guarded by mutex_, like the rest
  bool serving_ = false;
  bool interrupted_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_NODE_PROCESS_H_
