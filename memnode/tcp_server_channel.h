// One connection of the tcp server, and what all of them share. Internal to the server; everything
// runs on its thread, but for reading counters.
#ifndef ONETRIP_MEMNODE_TCP_SERVER_CHANNEL_H_
#define ONETRIP_MEMNODE_TCP_SERVER_CHANNEL_H_

#include <absl/container/flat_hash_map.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client_core/base/metrics.h"
#include "client_core/coro/acceptor.h"
#include "client_core/coro/socket.h"
#include "client_core/coro/timer_heap.h"
#include "client_core/fabric/handshake.h"
#include "memnode/peer_log.h"
#include "memnode/tcp_server.h"

namespace onetrip {

class TcpServerChannel;

// Two frames: after the rest of one there is room for another.
inline constexpr size_t kTcpServerBufferBytes = 2 * kTcpFrameBytesMax;
using TcpServerBuffer = std::unique_ptr<std::byte[]>;

struct TcpServerCore final : private Poller {
  TcpServerCore(const Clock& clock, MemoryEndpoint& served, Secret shared_secret,
                const TcpServerOptions& given);
  ~TcpServerCore() override;

  // Returns the answer to a worker's proved HELLO; kNone: the worker's earlier channel was closed
  // and `channel` is its channel now.
  TcpRefusal Admit(const TcpHello& hello, TcpServerChannel* channel);
  // Destroys `channel`.
  void Remove(TcpServerChannel* channel);
  void Fence(WorkerId worker);
  void CloseChannels();
  void GoodbyeToAll();
  // A peer has connected.
  void Accept(UniqueFd fd);

  // Buffers for what a channel cannot process or send at once; most channels have none.
  TcpServerBuffer TakeBuffer();
  void GiveBack(TcpServerBuffer buffer);

  LoopExecutor executor;
  MemoryEndpoint& endpoint;
  const Secret secret;
  const TcpServerOptions options;
  Epoch epoch;
  bool stopping = false;

  // Where frames are read and answers are built, one channel at a time.
  TcpServerBuffer input;
  TcpServerBuffer output;
  std::array<TcpOp, kTcpOpsMax> ops;
  uint64_t last_frame_ns = 0;

  Counter channel_count;
  Counter next_worker;  // larger than every id that was admitted
  Counter frames;
  Counter operations;
  Counter welcomed;
  Counter refused;
  Counter errors;

  struct Worker {
    uint64_t incarnation = 0;
    TcpServerChannel* channel = nullptr;
    bool fenced = false;
  };
  // Every worker that ever proved itself; ids have 22 bits and cost a proof, which bounds it.
  absl::flat_hash_map<uint32_t, Worker> workers;
  std::vector<std::unique_ptr<TcpServerChannel>> channels;
  // Those of them whose peer has not proved itself, in the order they came, refused ones included.
  std::map<uint64_t, TcpServerChannel*> strangers;
  uint64_t arrivals = 0;
  PeerLog log;
  std::unique_ptr<Acceptor> acceptor;

 private:
  static constexpr size_t kSpareBuffersMax = 64;

  bool Poll() override;

  std::vector<TcpServerBuffer> spare_buffers_;
};

class TcpServerChannel {
 public:
  // Begins as a stranger's. Will be at `at` in TcpServerCore::channels.
  TcpServerChannel(TcpServerCore& core, UniqueFd fd, size_t at);
  ~TcpServerChannel();

  // Says why and executes nothing more; the connection goes when the peer has had time to read it.
  void Fail(TcpError error);

  size_t index;  // in TcpServerCore::channels

 private:
  enum class State : uint8_t { kHandshake, kUp, kClosing };
  class Alarm final : public Timer {
   public:
    explicit Alarm(TcpServerChannel& channel) : channel_(channel) {}
    void Fire() override { channel_.OnAlarm(); }

   private:
    TcpServerChannel& channel_;
  };

  // Answers the peer, whatever it says, with a refusal.
  void Refuse(TcpRefusal refusal);
  void OnReadable();
  void OnWritable();
  void OnAlarm();
  void ReadHandshake();
  void ReadFrames();
  void Discard();
  void SendHandshake();
  // Executes the frames at the start of `bytes` until one is missing, the socket is full or the
  // channel ends; returns how many bytes that took.
  size_t Process(std::span<const std::byte> bytes);
  // Keeps what Process left of the bytes that begin at `rest`.
  void Keep(std::span<const std::byte> rest);
  TcpError Execute(const TcpFrame& frame);
  TcpError ExecuteBatch(const TcpFrame& frame);
  TcpError ExecuteControl(const TcpFrame& frame);
  TcpError ExecuteQueuePair(const TcpFrame& frame);
  // Nothing of the worker takes effect over RDMA any more.
  void EndQueuePair();
  // Room for a frame with `body_bytes` in the output; nullptr when the socket is full.
  std::byte* Reply(size_t body_bytes);
  void EndReply(TcpFrameKind kind, uint8_t ops, size_t body_bytes);
  // Writes the output; what the socket does not take stays with the channel.
  void Send();
  void StartClosing();
  void SetAlarm(uint64_t delay_ns);
  [[nodiscard]] bool is_blocked() const { return pending_ != nullptr; }

  TcpServerCore& core_;
  UniqueFd fd_;
  const std::string peer_;
  const uint64_t arrival_;  // its key in TcpServerCore::strangers, until it is a worker's
  State state_ = State::kHandshake;
  std::optional<NodeHandshake> handshake_;
  Alarm alarm_;
  uint32_t worker_ = 0;
  bool is_worker_ = false;  // has been welcomed
  bool has_queue_pair_ = false;
  TcpSequences next_;

  TcpServerBuffer input_;  // the beginning of a frame, or frames that wait for the socket
  size_t input_bytes_ = 0;
  size_t output_bytes_ = 0;  // in core_.output, only while a read is being served
  TcpServerBuffer pending_;  // bytes that the socket did not take
  size_t pending_begin_ = 0;
  size_t pending_end_ = 0;
  bool broken_ = false;
  size_t discarded_bytes_ = 0;
  FdWatcher watcher_;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_TCP_SERVER_CHANNEL_H_
