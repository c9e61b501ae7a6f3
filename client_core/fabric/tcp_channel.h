// TcpChannel: a worker's ordered channel to one memory node, over one connection after another.
//
//   kConnecting -> kHandshake -> kUp -> (lost) -> kConnecting, or kDown until the back-off ends, or
//   the node is readmitted
//
// Requests wait in `pending_`, become frames, and wait in `sent_` for their answers, first in first
// out. A round trip is answered once per channel: by the answer of its last frame, or by the loss
// of the connection. Internal to the tcp backend; runs on the fabric's executor.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_TCP_CHANNEL_H_
#define ONETRIP_CLIENT_CORE_FABRIC_TCP_CHANNEL_H_

#include <sys/socket.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client_core/coro/socket.h"
#include "client_core/coro/timer_heap.h"
#include "client_core/fabric/handshake.h"
#include "client_core/fabric/tcp.h"
#include "client_core/fabric/tcp_frame_writer.h"

namespace onetrip {

// A queue that keeps its memory.
template <typename T>
class Ring {
 public:
  [[nodiscard]] bool empty() const { return head_ == tail_; }
  [[nodiscard]] size_t size() const { return tail_ - head_; }
  T& front() { return slots_[head_ & (slots_.size() - 1)]; }
  T& at(size_t index) { return slots_[(head_ + index) & (slots_.size() - 1)]; }
  void Push(T value) {
    if (size() == slots_.size()) Grow();
    slots_[tail_++ & (slots_.size() - 1)] = std::move(value);
  }
  T Pop() { return std::exchange(slots_[head_++ & (slots_.size() - 1)], T()); }

 private:
  void Grow() {
    std::vector<T> larger(slots_.empty() ? 16 : 2 * slots_.size());
    const size_t count = size();
    for (size_t i = 0; i < count; ++i) larger[i] = std::move(at(i));
    slots_ = std::move(larger);
    head_ = 0;
    tail_ = count;
  }

  std::vector<T> slots_;  // a power of two of them
  size_t head_ = 0;
  size_t tail_ = 0;
};

// A request to the node's process under way. Lives in the frame that awaits it.
struct TcpCall {
  enum class State : uint8_t { kUnderWay, kDone, kUnavailable, kUnknownOutcome };
  TcpFrameKind kind = TcpFrameKind::kControl;  // or kQueuePair
  ControlRequest request;
  TcpQueuePair pair;
  State state = State::kUnderWay;
  ControlReply reply;
  TcpQueuePairReply pair_reply;
  std::coroutine_handle<> waiter;  // none: the fabric's rider
  TcpChannel* channel = nullptr;   // while under way
};

class TcpChannel {
 public:
  TcpChannel(TcpFabric& fabric, NodeId node);
  ~TcpChannel();

  // Where the node is; drops a connection to elsewhere and connects.
  void SetAddress(const sockaddr_storage& address, socklen_t address_bytes, std::string name);

  // With `evicted` the connection ends, and none is made until it is called without.
  void SetEvicted(bool evicted);

  void Post(const RoundTripPtr& round_trip);
  // False when the call has failed at once.
  bool PostCall(TcpCall* call);
  // The waiter of `call` is gone: drops the answer.
  void Forget(const TcpCall* call);

  // Turns what is pending into frames and writes them.
  void Flush();
  // The channel has ended.
  void Lose(const std::string& reason);
  // The node has answered this connection.
  void NoteAnswer();
  // REQUIRES: is_up(); once for a connection.
  void OfferQueuePair(const TcpQueuePair& own);

  [[nodiscard]] bool is_up() const { return state_ == State::kUp; }
  [[nodiscard]] bool may_wait() const { return state_ != State::kDown; }
  // True if it is up, nothing is under way, and nothing was answered since the last call.
  bool TakeQuiet() {
    return std::exchange(answered_at_look_, answered_) == answered_ && is_up() && sent_.empty() &&
           pending_.empty();
  }
  // True if sent requests have waited for a good while, and the node has answered nothing.
  [[nodiscard]] bool is_silent() const { return silent_alarms_ != 0; }
  // Frames have failed after they were sent, and the node has not welcomed this worker since.
  [[nodiscard]] bool unsettled() const { return unsettled_; }
  [[nodiscard]] const std::string& connect_error() const { return connect_error_; }

 private:
  // Frames under way before the channel waits for answers; bounds what a node must hold for it.
  static constexpr size_t kSentMax = 1024;
  // Requests that wait; a worker has far fewer operations, unless it leaks them.
  static constexpr size_t kPendingMax = 64 * 1024;
  static constexpr size_t kInputBytes = 2 * kTcpFrameBytesMax;
  // Alarms in a row without an answer, after which the channel is lost; together reply_timeout_ms.
  static constexpr uint32_t kSilentAlarmsMax = 4;

  enum class State : uint8_t { kDown, kConnecting, kHandshake, kUp };

  // Where a frame starts within its round trip.
  struct Cursor {
    uint8_t op = 0;
    uint32_t byte = 0;
  };
  // The part of one operation of the round trip that one operation on the wire does.
  struct Piece {
    FabricOp* op = nullptr;
    uint32_t from_byte = 0;
    uint32_t bytes = 0;
    bool ends_op = false;
  };
  struct Request {
    RoundTripPtr round_trip;
    TcpCall* call = nullptr;
    Cursor cursor;
  };
  struct Sent {
    RoundTripPtr round_trip;
    TcpCall* call = nullptr;  // nullptr in both: its waiter is gone
    Cursor cursor;
    uint8_t pieces = 0;
    uint32_t reply_bytes = 0;
    TcpFrameKind kind = TcpFrameKind::kBatch;
    bool is_last = false;  // ends the round trip on this channel
  };
  class Alarm final : public Timer {
   public:
    explicit Alarm(TcpChannel& channel) : channel_(channel) {}
    void Fire() override { channel_.OnAlarm(); }

   private:
    TcpChannel& channel_;
  };

  void Connect();
  void OnConnected();
  void OnReadable();
  void OnWritable();
  void OnAlarm();
  void SetAlarm(uint64_t delay_ns);
  void SetReplyAlarm();
  void ReadHandshake();
  void ReadFrames();
  // False, and why: the channel is of no use.
  bool OnFrame(const TcpFrame& frame, std::string* reason);
  bool OnBatchReply(const TcpFrame& frame, Sent& sent);
  bool OnControlReply(const TcpFrame& frame, TcpCall* call);
  bool OnQueuePairReply(const TcpFrame& frame, TcpCall* call, std::string* reason);

  bool NextPiece(RoundTrip& round_trip, Cursor* cursor, Piece* piece) const;
  // Bytes of an answer that covers the first `pieces` of the frame.
  [[nodiscard]] size_t ReplyBytes(const Sent& sent, int pieces) const;
  // Makes one frame of the first pending request, or completes it when nothing of it can be sent.
  void SendOne();
  void SendCall();
  [[nodiscard]] bool CanWait() const { return may_wait() && pending_.size() < kPendingMax; }
  void Enqueue(Request request);
  void Remember(Sent sent);

  // Ends an attempt that did not lead to a channel, or the channel; `reason` is logged once.
  void FailAttempt(const std::string& reason, bool a_human_must_act);
  // Ends the connection, and all that waits for it.
  void Disconnect();
  void FailAll();
  void FailRequest(const Request& request);
  void Answer(const RoundTripPtr& round_trip);
  void AnswerCall(TcpCall* call, TcpCall::State state);

  TcpFabric& fabric_;
  const NodeId node_;
  sockaddr_storage address_{};
  socklen_t address_bytes_ = 0;
  std::string name_;

  State state_ = State::kDown;
  UniqueFd fd_;
  std::unique_ptr<FdWatcher> watcher_;
  std::optional<WorkerHandshake> handshake_;
  Alarm alarm_;
  uint32_t connections_ = 0;  // attempts so far
  uint64_t backoff_ms_;
  std::string connect_error_;
  bool has_answered_ = false;  // this connection, at least once

  uint64_t memory_bytes_ = 0;
  TcpSequences next_;
  uint64_t answered_ = 0;
  uint64_t answered_at_alarm_ = 0;
  uint32_t silent_alarms_ = 0;
  uint64_t answered_at_look_ = 0;
  bool is_dirty_ = false;
  // A frame of the round trip whose frames are being answered was executed in part only.
  bool round_trip_failed_ = false;
  bool unsettled_ = false;
  bool evicted_ = false;
  TcpCall offer_;  // a queue pair's
  Ring<Request> pending_;
  Ring<Sent> sent_;
  TcpFrameWriter writer_;
  std::unique_ptr<std::byte[]> input_;
  size_t input_begin_ = 0;
  size_t input_end_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_TCP_CHANNEL_H_
