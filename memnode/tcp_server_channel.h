// One connection of the tcp server, and what all of them share. Internal to the server; everything
// runs on its thread, but for reading counters.
#ifndef ONETRIP_MEMNODE_TCP_SERVER_CHANNEL_H_
#define ONETRIP_MEMNODE_TCP_SERVER_CHANNEL_H_

#include <absl/container/flat_hash_map.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client_core/base/metrics.h"
#include "client_core/coro/socket.h"
#include "client_core/coro/timer_heap.h"
#include "client_core/fabric/handshake.h"
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

  // What a worker's proved HELLO is answered with; kNone: its earlier channel was closed and
  // `channel` is its channel now.
  TcpRefusal Admit(const TcpHello& hello, TcpServerChannel* channel);
  // Destroys `channel`.
  void Remove(TcpServerChannel* channel);
  void Fence(WorkerId worker);
  void GoodbyeToAll();
  void Accept();

  // Buffers for what a channel cannot process or send at once; most channels have none.
  TcpServerBuffer TakeBuffer();
  void GiveBack(TcpServerBuffer buffer);

  // Logs a refusal or fault, but the same one of the same peer only once in a while.
  void LogPeer(uint64_t what, const std::string& line);

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
  UniqueFd listener;
  std::unique_ptr<FdWatcher> listener_watcher;

 private:
  static constexpr size_t kSpareBuffersMax = 64;
  struct LoggedLine {
    uint64_t what = 0;
    uint64_t time_ns = 0;
  };

  bool Poll() override;

  std::vector<TcpServerBuffer> spare_buffers_;
  std::array<LoggedLine, 64> logged_{};
  size_t next_logged_ = 0;
};

class TcpServerChannel {
 public:
  TcpServerChannel(TcpServerCore& core, UniqueFd fd);
  ~TcpServerChannel();

  // Says why and executes nothing more; the connection goes when the peer has had time to read it.
  void Fail(TcpError error);
  // Answers the peer, whatever it says, with a refusal.
  void Refuse(TcpRefusal refusal);

  size_t index = 0;  // in TcpServerCore::channels

 private:
  enum class State : uint8_t { kHandshake, kUp, kClosing };
  class Alarm final : public Timer {
   public:
    explicit Alarm(TcpServerChannel& channel) : channel_(channel) {}
    void Fire() override { channel_.OnAlarm(); }

   private:
    TcpServerChannel& channel_;
  };

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
  State state_ = State::kHandshake;
  std::optional<NodeHandshake> handshake_;
  Alarm alarm_;
  uint32_t worker_ = 0;
  bool is_worker_ = false;  // has been welcomed
  TcpSequences next_;

  TcpServerBuffer input_;  // the beginning of a frame, or frames that wait for the socket
  size_t input_bytes_ = 0;
  size_t output_bytes_ = 0;  // in core_.output, only while a read is being served
  TcpServerBuffer pending_;  // what the socket did not take
  size_t pending_begin_ = 0;
  size_t pending_end_ = 0;
  bool broken_ = false;
  size_t discarded_bytes_ = 0;
  FdWatcher watcher_;
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_TCP_SERVER_CHANNEL_H_
