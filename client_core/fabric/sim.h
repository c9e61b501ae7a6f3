// The sim backend: memory nodes at a distance in virtual time, deterministic for a seed.
//
// Every batch takes a drawn latency to its node, is applied there piece by piece (bulk operations
// in steps of a few words, so that others see them torn), and takes another latency back. Channels
// are FIFO; nothing orders two channels. Applying and answering are separate events: between them a
// node may be lost, a channel may break, and an operation whose poster has died still takes effect.
// Options take away what the contract does not promise, as networks of RDMA do.
// SimNetwork is what the fabrics of one world share; faults are asked of it and of the fabrics.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_SIM_H_
#define ONETRIP_CLIENT_CORE_FABRIC_SIM_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "client_core/coro/executor.h"
#include "client_core/coro/sim_executor.h"
#include "client_core/fabric/fabric.h"

namespace onetrip {

struct SimFabricOptions {
  uint64_t latency_min_ns = 800;  // one way
  uint64_t latency_max_ns = 1200;
  // The number of messages in a thousand that take tail_factor times as long.
  uint32_t tail_permille = 0;
  uint32_t tail_factor = 20;
  // Bulk operations are applied in steps of 8..64 bytes this far apart; 0: in one step.
  uint64_t step_ns = 5;
  // How long a batch to a lost node takes to fail.
  uint64_t failure_ns = 10'000;

  // A node that a worker knows of, or takes back, is reached so long after that at most; what is
  // posted meanwhile fails unsent. 0: it is reached at once.
  uint64_t open_ns_max = 0;

  // Workers whose operations complete inline see every READ first all the same.
  FabricTraits traits = {};
  // A CAS, FAA or MAX reads its word and later writes it, and what a WRITE puts there meanwhile is
  // lost. Atomics of one node exclude each other. REQUIRES: no worker's operations complete inline.
  bool atomics_tear = false;
  // The steps of some WRITEs go from the last byte to the first.
  bool writes_backwards = false;

  // The options below model a real network more closely; their defaults add nothing.
  // A worker's core hands one node after the other its part of a batch, this long for each.
  uint64_t post_ns = 0;
  // Picoseconds that a byte of a WRITE adds on its way to the node, and one of a READ on its way
  // back.
  uint64_t byte_ps = 0;
  // An answer that brings something from memory (READ, CAS, FAA, MAX) leaves this much later than
  // one that only confirms WRITEs.
  uint64_t fetch_ns = 0;
};

class SimFabric;

// Sees what happens between workers and memory nodes, in the order in which it happens.
class SimObserver {
 public:
  virtual ~SimObserver() = default;
  // `fabric` posted a batch with the operations of `ops` on `node`; bit i: operation i.
  virtual void Posted(const SimFabric& fabric, NodeId node, const RoundTrip& round_trip,
                      uint64_t ops) = 0;
  // One operation has taken effect, `op.result` included.
  virtual void Applied(const SimFabric& fabric, NodeId node, const FabricOp& op) = 0;
  // The answer has reached the worker: whether every operation of `ops` is known to be done.
  virtual void Answered(const SimFabric& fabric, NodeId node, bool ok) = 0;
};

class SimNetwork {
 public:
  // `executor` (its timers carry the messages) and the endpoints outlive it.
  SimNetwork(Executor& executor, const std::vector<MemoryEndpoint*>& endpoints,
             SimFabricOptions options)
      : executor_(executor), options_(options) {
    for (MemoryEndpoint* endpoint : endpoints) nodes_.push_back({endpoint, 1, false});
  }
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;
  // REQUIRES: its fabrics are gone.
  ~SimNetwork();

  Executor& executor() { return executor_; }
  [[nodiscard]] const SimFabricOptions& options() const { return options_; }
  [[nodiscard]] size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] MemoryEndpoint& endpoint(NodeId node) const {
    return *nodes_.at(node.value).endpoint;
  }
  void set_observer(SimObserver* observer) { observer_ = observer; }

  // The node applies nothing until it is resumed; what is sent to it waits.
  void PauseNode(NodeId node) { nodes_.at(node.value).paused = true; }
  void ResumeNode(NodeId node);
  // Messages to and from the node take `factor` times as long from now on.
  void SetSlowness(NodeId node, uint32_t factor) { nodes_.at(node.value).slowness = factor; }

  // While true, batches take effect when they are posted and take no time: for setting up a world.
  // No observer sees them. REQUIRES: nothing is on its way, and no node is lost.
  void set_instant(bool instant) { instant_ = instant; }

  // The node closes all channels, as one that comes back does before it serves: nothing that was
  // sent to it and has failed takes effect any more.
  void CloseChannels(NodeId node);

  // Operations applied so far, of all fabrics.
  [[nodiscard]] uint64_t applied_ops() const { return applied_ops_; }

 private:
  friend class SimFabric;
  struct Node {
    MemoryEndpoint* endpoint;
    uint32_t slowness;
    bool paused;
    const void* amid_atomic = nullptr;  // the channel of the one that the node is amid
  };
  uint64_t DrawLatency(NodeId node);
  // Calls fn(channel) then, even while a worker is amid a turn.
  void At(uint64_t time_ns, void (*fn)(void*), void* channel);

  Executor& executor_;
  const SimFabricOptions options_;
  std::vector<Node> nodes_;
  std::vector<SimFabric*> fabrics_;
  SimObserver* observer_ = nullptr;
  uint64_t applied_ops_ = 0;
  bool instant_ = false;
};

class SimFabric final : public Fabric {
 public:
  // One worker's fabric; `worker` is the executor it runs on. Both outlive it.
  SimFabric(Executor& worker, SimNetwork& network);
  // The fabric of a worker on the host of the memory nodes, as over shm: operations complete inside
  // Post(), step by step, and other processes of `world`, which runs `worker`, go on between two
  // steps. A request of Control() takes its time.
  SimFabric(SimProcess& worker, SimExecutor& world, SimNetwork& network);
  // A worker with a network of its own, on its own executor.
  SimFabric(Executor& worker, const std::vector<MemoryEndpoint*>& endpoints,
            SimFabricOptions options);
  ~SimFabric() override;

  Task<Result<ControlReply>> Control(NodeId node, ControlRequest request) override;

  // An evicted node's channel breaks; a readmitted node welcomes the worker on a new one.
  void SetEvicted(NodeId node, bool evicted) override;
  [[nodiscard]] bool Reaches(NodeId node) const override;

  // The connection to `node` is lost: all that is on its way fails soon, with its outcome unknown,
  // and of it a prefix, drawn at random, still takes effect, even later. What is posted from then
  // on comes after that, for a new connection is made only when the node has fenced the old one.
  void BreakChannel(NodeId node);
  // The network between this worker and `node` is cut, or whole again. What was on its way is lost
  // as in BreakChannel, and what is posted meanwhile fails unsent.
  void SetCut(NodeId node, bool cut);
  [[nodiscard]] bool is_cut(NodeId node) const { return channels_.at(node.value)->cut; }
  // Messages between this worker and `node` take `factor` times as long from now on.
  void SetSlowness(NodeId node, uint32_t factor) { channels_.at(node.value)->slowness = factor; }
  // The node refuses this worker from now on: nothing more of it takes effect there.
  void Fence(NodeId node);

  [[nodiscard]] bool settled() const override;
  // True while no request waits for a node: operations may take no time from now on (set_instant).
  [[nodiscard]] bool idle() const;

  // When the worker's core has handed over all that was posted; see SimFabricOptions::post_ns.
  [[nodiscard]] uint64_t core_free_ns() const { return core_free_ns_; }

  // The worker dies amid a batch: `die`, which kills its process, is called after `ops` more
  // operations of the worker, 1 or more. REQUIRES: completes_inline().
  void DieAfter(uint32_t ops, std::function<void()> die);

  // For observers: which of the network's fabrics this is, in the order of their making.
  [[nodiscard]] uint32_t index() const { return index_; }

 protected:
  bool Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) override;

 private:
  // A control request, and the coroutine that waits for its answer; null once that is gone.
  struct ControlCall {
    ControlRequest request;
    Result<ControlReply> reply = Status(StatusCode::kUnavailable, "the memory node is lost");
    std::coroutine_handle<> waiter;
  };
  class ControlAwaiter;
  // The part of a round trip that goes to one node, or a control request.
  struct Request {
    RoundTripPtr round_trip;
    uint64_t ops = 0;  // bit i: operation i of the round trip
    std::shared_ptr<ControlCall> control;
    uint64_t arrival_ns = 0;
    bool broken = false;   // its answer is lost
    bool dropped = false;  // the rest of it is never applied
    bool failed = false;   // its poster knows already
  };
  // A queue pair: requests on their way, one being applied, replies on their way back.
  struct Channel {
    SimFabric* fabric = nullptr;
    NodeId node;
    uint32_t slowness = 1;
    std::deque<Request> requests;
    std::deque<Request> replies;
    uint64_t left = 0;           // operations of requests.front() not yet applied
    uint64_t applied_bytes = 0;  // within the first of them but `late`
    bool backwards = false;      // that is a WRITE whose last bytes go first
    uint64_t amid_word = 0;      // found by that, an atomic that the node is amid
    bool will_be_late = false;   // it is a READ, and soon will be `late`
    uint64_t late = 0;           // the READs among them that others overtake, as bits
    uint64_t late_bytes = 0;     // within the first of those
    uint64_t late_until_ns = 0;
    bool rests = false;  // until then
    uint64_t last_arrival_ns = 0;
    uint64_t last_reply_ns = 0;
    bool applying = false;
    bool stalled = false;  // found its node paused
    bool fenced = false;
    bool evicted = false;
    bool cut = false;
    bool cut_short = false;  // something failed by the cut, and the node has not said so yet
    uint64_t opens_ns = 0;   // nothing is posted before
  };
  static_assert(RoundTrip::kMaxOps <= 64, "operations are bits of a word");

  // Takes `own_network`, if there is one.
  SimFabric(Executor& worker, SimNetwork* own_network, SimNetwork* shared_network,
            SimExecutor* inline_world);
  static void ApplyNext(void* channel);
  static void DeliverReply(void* channel);
  void StartApplying(Channel& channel);
  // Applies one step; returns whether the request is finished.
  bool ApplyStep(Channel& channel);
  // The operation, as a bit, of which the next step is: the first, but for READs that are late.
  uint64_t NextOp(Channel& channel);
  // Draws if a READ, which is next, will be late from here on.
  bool DrawLate(Channel& channel);
  // Applies a step to `op` behind its first `*applied_bytes`; returns whether that was the last.
  bool ApplyPiece(Channel& channel, FabricOp& op, uint64_t* applied_bytes);
  // The same of an atomic of a network whose atomics tear.
  bool ApplyTornAtomic(Channel& channel, FabricOp& op);
  [[nodiscard]] bool IsOpen(const Channel& channel) const;
  // The node has refused the rest of what has failed.
  static void CloseChannel(Channel& channel);
  void Enqueue(Channel& channel, const RoundTripPtr& round_trip, uint64_t ops);
  void EnqueueControl(Channel& channel, std::shared_ptr<ControlCall> call);
  // When what is sent now, and ready at `ready_ns`, arrives: nothing overtakes on a channel.
  uint64_t DrawArrival(Channel& channel, uint64_t ready_ns);
  static void DeliverControlReply(Channel& channel, const Request& reply);
  void ApplyInstantly(std::span<FabricOp> ops);
  // Returns the piece of a bulk operation that a step applies after `applied_bytes`, from the
  // other end if `backwards`; else all of `op`.
  FabricOp NextPiece(const FabricOp& op, uint64_t applied_bytes, bool backwards);
  void CompleteInline(RoundTrip& round_trip);
  // Returns whether the operation is known to be done.
  bool CompleteInline(const Channel& channel, FabricOp& op);
  // `is_first`: of an operation.
  void StandStillBeforeStep(bool is_first);

  friend class SimNetwork;

  Executor& worker_;
  SimExecutor* const inline_world_;  // null: operations complete later
  std::unique_ptr<SimNetwork> own_network_;
  SimNetwork& network_;
  SimProcess* process_ = nullptr;  // the worker, where they complete inline
  uint32_t dies_after_ops_ = 0;    // 0: it does not
  std::function<void()> die_;
  uint32_t index_ = 0;
  uint64_t core_free_ns_ = 0;
  std::vector<std::unique_ptr<Channel>> channels_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_SIM_H_
