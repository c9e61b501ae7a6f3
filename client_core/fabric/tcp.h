// The tcp backend: memory nodes over any Ethernet, one connection per worker and node.
//
// Operations of a round trip to one node are one frame (longer ones are cut at 64 KiB); the frames
// of a loop turn leave in one system call, answers come back in order. The connection is the fence:
// when it breaks, what was under way has an unknown outcome, and a new one carries nothing before
// the node has said that the old one is at an end. Connections are made and made again in the
// background; what is posted meanwhile waits for the attempt that is under way, and fails unsent
// when there is none. Everything on the worker's executor; not thread-safe.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_TCP_H_
#define ONETRIP_CLIENT_CORE_FABRIC_TCP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_core/base/secret.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/fabric/network_fabric.h"
#include "client_core/layout/tcp_wire.h"

namespace onetrip {

struct TcpFabricOptions {
  uint64_t connect_timeout_ms = 1000;  // limits an attempt, handshake included
  uint64_t reply_timeout_ms = 5000;    // a node that answers nothing for so long is lost
  uint64_t backoff_min_ms = 1;         // between attempts, doubling
  uint64_t backoff_max_ms = 1000;
  // Looks for answers without sleeping for so long after the last one; 0: sleeps at once.
  uint64_t busy_poll_us = 0;
};

// The worker's name to memory nodes. Of two connections of one worker the one with the larger
// incarnation counts; a fabric counts its connections itself, so that a worker which makes a second
// fabric needs a larger `incarnation` for it.
struct TcpIdentity {
  uint64_t cluster = 0;
  WorkerId worker{};
  uint32_t incarnation = 0;
};

// Since the fabric was made.
struct TcpFabricStats {
  uint64_t frames = 0;        // sent
  uint64_t connections = 0;   // that were welcomed
  uint64_t lost_unknown = 0;  // requests sent and not answered
  uint64_t lost_unsent = 0;   // requests refused before anything was sent
};

class TcpChannel;

// A passenger on the channels of a TcpFabric: batches that go over another network, under the
// channels' handshake and fence. Called from the executor.
class TcpRider {
 public:
  virtual ~TcpRider() = default;
  // The node has welcomed this worker: nothing of earlier channels takes effect any more.
  virtual void OnChannelUp(NodeId node) = 0;
  // The answer to OfferQueuePair(). False, and why: the channel ends.
  virtual bool OnQueuePair(NodeId node, const TcpQueuePairReply& reply, std::string* reason) = 0;
  // The channel has ended, or an attempt to make one has failed.
  virtual void OnChannelDown(NodeId node) = 0;
};

class TcpFabric final : public NetworkFabric, private Poller {
 public:
  // `executor` outlives the fabric. No node is known yet.
  TcpFabric(LoopExecutor& executor, TcpIdentity identity, Secret secret, TcpFabricOptions options);
  // Requests under way are never completed: their waiters must not be waiting any more.
  ~TcpFabric() override;

  Status SetNode(NodeId node, const std::string& host, uint16_t port, std::string* reason) override;
  [[nodiscard]] std::string ConnectError(NodeId node) const override;

  Task<Result<ControlReply>> Control(NodeId node, ControlRequest request) override;
  void SetEvicted(NodeId node, bool evicted) override;
  [[nodiscard]] bool Reaches(NodeId node) const override;
  [[nodiscard]] bool Answers(NodeId node) const override;
  void Ping(NodeId node) override;

  // For a rider, which outlives the fabric; before the first SetNode().
  void SetRider(TcpRider* rider) { rider_ = rider; }
  // Tells the node of a queue pair, on the channel that is open: the rider gets the answer.
  void OfferQueuePair(NodeId node, const TcpQueuePair& own);
  // Ends the channel to `node`, if there is one, as if the connection had broken.
  void Break(NodeId node, const std::string& reason);
  // The rider has been answered over the channel: until then a loss is a failure to connect.
  void NoteAnswer(NodeId node);
  // True if a channel to `node` is open, or an attempt to make one is under way.
  [[nodiscard]] bool MayWait(NodeId node) const;

  [[nodiscard]] bool settled() const override;
  [[nodiscard]] const TcpFabricStats& stats() const { return stats_; }

 protected:
  bool Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) override;

 private:
  friend class TcpChannel;

  bool Poll() override;
  TcpChannel* Find(NodeId node) const;
  TcpChannel& At(NodeId node);
  // Channels with something new to send; they leave in Poll().
  void MarkDirty(TcpChannel* channel) { dirty_.push_back(channel); }

  LoopExecutor& executor_;
  const TcpIdentity identity_;
  const Secret secret_;
  const TcpFabricOptions options_;
  TcpRider* rider_ = nullptr;
  TcpFabricStats stats_;
  std::vector<std::unique_ptr<TcpChannel>> channels_;  // by node
  std::vector<TcpChannel*> dirty_;
  uint64_t waiting_frames_ = 0;  // sent and not answered, over all channels
  uint64_t last_answer_ns_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_TCP_H_
