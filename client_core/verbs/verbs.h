// The verbs backend: memory nodes over RDMA, one queue pair per worker and node.
//
// Operations of a round trip on one node are one chain of requests, posted with one call, of which
// the last asks for a completion. A queue pair keeps them in order but for what stands behind a
// READ (FabricTraits::reads_first). One that fails takes down all that is under way on it: their
// outcome is unknown, and nothing is posted to the node before it is connected anew.
// Round trips lie in registered memory; what is read to elsewhere is copied there on completion.
// Everything on the worker's executor; not thread-safe.
#ifndef ONETRIP_CLIENT_CORE_VERBS_VERBS_H_
#define ONETRIP_CLIENT_CORE_VERBS_VERBS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client_core/coro/loop_executor.h"
#include "client_core/coro/socket.h"
#include "client_core/fabric/fabric.h"
#include "client_core/verbs/arena.h"
#include "client_core/verbs/host.h"
#include "client_core/verbs/queue_pair.h"

namespace onetrip {

struct VerbsFabricOptions {
  uint32_t requests_max = 256;  // under way on a queue pair; what is more waits
  uint32_t inline_bytes = 128;  // a WRITE up to this goes with its request
  // Looks for completions without sleeping for so long after the last one.
  uint64_t busy_poll_us = 50;
};

// Since the fabric was made.
struct VerbsFabricStats {
  uint64_t requests = 0;     // posted
  uint64_t chains = 0;       // calls that posted them
  uint64_t completions = 0;  // reaped
  uint64_t flushed = 0;      // chains whose outcome is unknown
  uint64_t unsent = 0;       // chains that were refused before anything was posted
  uint64_t wakeups = 0;      // out of a sleep, by a completion
};

// Gives back or asks for blocks of a node's memory, over a channel of its own.
using VerbsControl = std::function<Task<Result<ControlReply>>(NodeId, ControlRequest)>;

// Goes ahead of Fabric among the bases: the pool of round trips gives back what it took there.
struct VerbsArenaOwner {
  explicit VerbsArenaOwner(VerbsDevice& device) : arena(device) {}
  VerbsArena arena;
};

class VerbsFabric final : private VerbsArenaOwner, public Fabric, private Poller {
 public:
  // `executor` and `device` outlive it. *reason, if it fails: one line.
  static Result<std::unique_ptr<VerbsFabric>> Make(LoopExecutor& executor, VerbsDevice& device,
                                                   VerbsFabricOptions options, VerbsControl control,
                                                   std::string* reason);
  // Requests under way are never completed: their waiters must not be waiting any more.
  ~VerbsFabric() override;

  // A queue pair for `node`, whose end the node has to know before Connect(). What was under way on
  // an older one fails. *reason, if it fails: one line.
  Result<VerbsAddress> Offer(NodeId node, std::string* reason);
  Status Connect(NodeId node, const VerbsTarget& target, std::string* reason);

  Task<Result<ControlReply>> Control(NodeId node, ControlRequest request) override;
  // An evicted node's queue pair fails at once. A readmitted one is to be connected anew.
  void SetEvicted(NodeId node, bool evicted) override;
  [[nodiscard]] bool Reaches(NodeId node) const override;
  // A request that has failed may take effect until the node has destroyed its end of the queue
  // pair, which it has when the next one is connected.
  [[nodiscard]] bool settled() const override;
  [[nodiscard]] const VerbsFabricStats& stats() const { return stats_; }

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
    std::vector<Bounce> bounces;
  };
  struct Channel {
    NodeId node;
    std::unique_ptr<VerbsQueuePair> pair;
    VerbsTarget target;
    bool connected = false;
    bool evicted = false;
    bool unsettled = false;     // something has failed, and the node has not ended it yet
    std::deque<Chain> posted;   // in the order of their completions
    std::deque<Chain> waiting;  // for room in the queue pair
    uint64_t sequence = 0;      // the last chain's
    uint32_t under_way = 0;     // requests
  };

  VerbsFabric(LoopExecutor& executor, VerbsDevice& device, VerbsFabricOptions options,
              VerbsControl control);

  bool Poll() override;
  static void OnEvent(void* self);
  // Takes completions; returns how many there were.
  int Reap();
  void OnCompletion(const ibv_wc& completion);
  Channel* Find(NodeId node) const;
  Channel& At(NodeId node);
  void PostChain(Channel& channel, const RoundTripPtr& round_trip, uint64_t ops);
  void PostWaiting(Channel& channel);
  // Fails all that is under way, and gives the queue pair up.
  void Break(Channel& channel);
  // All nodes of the round trip have answered with this one: resumes who waits.
  void Answer(const Chain& chain, bool done);
  // Fills `wr` and `sge` in; false if the operation lies outside the node's memory.
  bool Encode(const Channel& channel, Chain* chain, FabricOp& op, ibv_send_wr* wr, ibv_sge* sge);
  // The arena's place for `op`, whose own memory the device does not know.
  std::byte* PlaceThrough(Chain* chain, const FabricOp& op);

  LoopExecutor& executor_;
  VerbsDevice& device_;
  const VerbsFabricOptions options_;
  const VerbsControl control_;
  ibv_comp_channel* events_ = nullptr;
  ibv_cq* completions_ = nullptr;
  std::unique_ptr<FdWatcher> watcher_;
  std::vector<std::unique_ptr<Channel>> channels_;  // by node
  VerbsFabricStats stats_;
  uint64_t last_active_ns_ = 0;  // something was posted or completed
  uint64_t under_way_ = 0;       // chains, posted or waiting
  bool armed_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_VERBS_VERBS_H_
