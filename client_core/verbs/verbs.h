// The verbs backend: memory nodes over RDMA, one queue pair per worker and node.
//
// A queue pair rides on a tcp channel, which makes the handshake, carries requests for blocks, and
// is the fence: it ends with the channel, the channel with it, and the node has destroyed its end
// before it welcomes the worker anew.
// Operations of a round trip on one node are one chain of requests, posted with one call, of which
// the last asks for a completion. A queue pair keeps them in order but for what stands behind a
// READ (FabricTraits::reads_first). One that fails takes down all that is under way on it: their
// outcome is unknown.
// Round trips lie in registered memory; what is read to elsewhere is copied there on completion.
// Everything on the worker's executor; not thread-safe.
#ifndef ONETRIP_CLIENT_CORE_VERBS_VERBS_H_
#define ONETRIP_CLIENT_CORE_VERBS_VERBS_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "client_core/coro/loop_executor.h"
#include "client_core/coro/socket.h"
#include "client_core/fabric/network_fabric.h"
#include "client_core/fabric/tcp.h"
#include "client_core/verbs/arena.h"
#include "client_core/verbs/queue_pair.h"

namespace onetrip {

struct VerbsFabricOptions {
  uint32_t requests_max = 256;  // under way on a queue pair; what is more waits
  uint32_t inline_bytes = 128;  // a WRITE up to this goes with its request
  // Looks for completions without sleeping for so long after the last one.
  uint64_t busy_poll_us = 50;
  TcpFabricOptions channel = {};
};

// Goes ahead of Fabric among the bases: the pool of round trips gives back what it took there.
struct VerbsArenaOwner {
  explicit VerbsArenaOwner(VerbsDevice& device) : arena(device) {}
  VerbsArena arena;
};

class VerbsFabric final : private VerbsArenaOwner,
                          public NetworkFabric,
                          private Poller,
                          private TcpRider {
 public:
  // `executor` and `device` outlive it. *reason, if it fails: one line.
  static Result<std::unique_ptr<VerbsFabric>> Make(LoopExecutor& executor, VerbsDevice& device,
                                                   TcpIdentity identity, Secret secret,
                                                   VerbsFabricOptions options, std::string* reason);
  // Requests under way are never completed: their waiters must not be waiting any more.
  ~VerbsFabric() override;

  Status SetNode(NodeId node, const std::string& host, uint16_t port, std::string* reason) override;
  [[nodiscard]] std::string ConnectError(NodeId node) const override;
  Task<Result<ControlReply>> Control(NodeId node, ControlRequest request) override;
  // An evicted node's queue pair fails at once.
  void SetEvicted(NodeId node, bool evicted) override;
  [[nodiscard]] bool Reaches(NodeId node) const override;
  [[nodiscard]] bool Answers(NodeId node) const override;
  void Ping(NodeId node) override;
  [[nodiscard]] bool settled() const override;
  void set_lease(LeaseGuard lease) override;
  RdmaMetrics* rdma_metrics() override { return &metrics_; }

 protected:
  bool Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) override;

 private:
  // Memory that the device does not know, and what is read or written in its place.
  struct Bounce {
    std::byte* to;  // null: a WRITE
    std::byte* through;
    uint32_t bytes;
  };
  // The part of a round trip that goes to one node.
  struct Chain {
    RoundTripPtr round_trip;
    uint64_t ops = 0;  // bit i: operation i of the round trip
    uint32_t requests = 0;
    uint64_t sequence = 0;
    uint64_t posted_ns = 0;
    std::vector<Bounce> bounces;
  };
  struct Channel {
    NodeId node;
    std::unique_ptr<VerbsQueuePair> pair;
    TcpQueuePairReply target;
    bool proved = false;        // something has come over it
    bool unsettled = false;     // something has failed, and the node has not ended it yet
    std::deque<Chain> posted;   // in the order of their completions
    std::deque<Chain> waiting;  // for room in the queue pair, or for one
    uint64_t sequence = 0;      // the last chain's
    uint32_t under_way = 0;     // requests
    uint64_t answered = 0;      // chains
    uint64_t answered_at_look = 0;
  };

  VerbsFabric(LoopExecutor& executor, VerbsDevice& device, TcpIdentity identity, Secret secret,
              const VerbsFabricOptions& options);

  void OnChannelUp(NodeId node) override;
  bool OnQueuePair(NodeId node, const TcpQueuePairReply& reply, std::string* reason) override;
  void OnChannelDown(NodeId node) override;
  bool Poll() override;
  static void OnEvent(void* self);
  // Takes completions; returns how many there were.
  int Reap();
  void OnCompletion(const ibv_wc& completion);
  Channel* Find(NodeId node) const;
  Channel& At(NodeId node);
  void PostChain(Channel& channel, const RoundTripPtr& round_trip, uint64_t ops);
  void PostWaiting(Channel& channel);
  // False, and why: the device does not take it, and the channel has to end.
  bool PostNow(Channel& channel, Chain chain, std::string* reason);
  void Fail(std::deque<Chain>* chains);
  // All nodes of the round trip have answered with this one: resumes who waits.
  void Answer(const Chain& chain, bool done);
  // Fills `wr` and `sge` in; false if the operation lies outside the node's memory.
  bool Encode(const Channel& channel, Chain* chain, FabricOp& op, ibv_send_wr* wr, ibv_sge* sge);
  // The arena's place for `op`, whose own memory the device does not know.
  std::byte* PlaceThrough(Chain* chain, const FabricOp& op);

  LoopExecutor& executor_;
  VerbsDevice& device_;
  const VerbsFabricOptions options_;
  TcpFabric tcp_;  // posts no batch
  ibv_comp_channel* events_ = nullptr;
  ibv_cq* completions_ = nullptr;
  std::unique_ptr<FdWatcher> watcher_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by node
  RdmaMetrics metrics_;
  uint64_t last_active_ns_ = 0;  // something was posted or completed
  uint64_t under_way_ = 0;       // chains, posted or waiting
  bool armed_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_VERBS_VERBS_H_
