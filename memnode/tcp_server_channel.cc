#include "memnode/tcp_server_channel.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "client_core/fabric/memory_ops.h"

namespace onetrip {
namespace {

constexpr uint32_t kKeepaliveS = 15;
// How long a peer may take to read why its channel ended, and how much it may still send.
constexpr uint64_t kClosingNs = 1'000'000'000;
constexpr size_t kDiscardedBytesMax = 4 << 20;
constexpr size_t kHandshakeReadBytes = 256;

bool WouldBlock() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

FabricOp ToFabricOp(const TcpOp& op) {
  FabricOp result;
  result.kind = static_cast<FabricOpKind>(op.kind);
  result.bytes = op.bytes;
  result.offset = op.offset;
  result.expected = op.expected;
  result.operand = op.operand;
  // A WRITE is only read through it.
  result.local = const_cast<std::byte*>(op.data);
  return result;
}

}  // namespace

TcpServerChannel::TcpServerChannel(TcpServerCore& core, UniqueFd fd, size_t at)
    : index(at),
      core_(core),
      fd_(std::move(fd)),
      peer_(PeerAddress(fd_.get())),
      arrival_(core.arrivals++),
      alarm_(*this),
      watcher_(
          core.executor, fd_.get(),
          [](void* self) { static_cast<TcpServerChannel*>(self)->OnReadable(); },
          [](void* self) { static_cast<TcpServerChannel*>(self)->OnWritable(); }, this) {
  TuneTcp(fd_.get(), kKeepaliveS);
  TcpNonce nonce;
  FillRandom(nonce);
  handshake_.emplace(
      NodeHandshake::Policy{.cluster = core.options.cluster, .node = core.options.node}, nonce,
      core.secret);
  core.strangers.emplace(arrival_, this);
  SetAlarm(core.options.handshake_timeout_ms * 1'000'000);
  watcher_.WatchReads(true);
}

TcpServerChannel::~TcpServerChannel() {
  EndQueuePair();
  core_.strangers.erase(arrival_);
  core_.GiveBack(std::move(input_));
  core_.GiveBack(std::move(pending_));
  if (!is_worker_) return;
  TcpServerCore::Worker& worker = core_.workers[worker_];
  if (worker.channel == this) worker.channel = nullptr;
}

void TcpServerChannel::SetAlarm(uint64_t delay_ns) {
  alarm_.Cancel();
  core_.executor.timers().Add(&alarm_, core_.executor.NowNs() + delay_ns);
}

void TcpServerChannel::OnAlarm() {
  if (state_ == State::kHandshake) return Refuse(TcpRefusal::kSilent);
  if (state_ == State::kUp) {
    core_.errors.Add();
    core_.log.Warn(uint64_t{worker_} << 8 | 0xffU, core_.executor.NowNs(),
                   "tcp: channel of worker " + std::to_string(worker_) + " at " + peer_ +
                       " closed: it does not read its answers");
  }
  core_.Remove(this);
}

void TcpServerChannel::OnReadable() {
  switch (state_) {
    case State::kHandshake:
      return ReadHandshake();
    case State::kUp:
      return ReadFrames();
    case State::kClosing:
      return Discard();
  }
}

void TcpServerChannel::ReadHandshake() {
  std::array<std::byte, kHandshakeReadBytes> bytes;
  const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0 && WouldBlock()) return;
  if (got <= 0) return core_.Remove(this);
  std::span<const std::byte> rest(bytes.data(), static_cast<size_t>(got));
  while (!rest.empty() && handshake_->state() == Handshake::State::kWaiting) {
    rest = rest.subspan(handshake_->Feed(rest));
    if (handshake_->state() == Handshake::State::kProved) {
      const TcpHello& hello = handshake_->hello();
      const TcpRefusal refusal = core_.Admit(hello, this);
      if (refusal == TcpRefusal::kNone) {
        worker_ = hello.worker;
        is_worker_ = true;
        core_.strangers.erase(arrival_);
        handshake_->Welcome(core_.endpoint.bytes(), core_.epoch);
      } else {
        handshake_->Refuse(refusal);
      }
    }
    if (handshake_->state() == Handshake::State::kRefused) return Refuse(handshake_->refusal());
    SendHandshake();
    if (broken_) return core_.Remove(this);
  }
  if (handshake_->state() != Handshake::State::kWelcome) return;
  // A worker sends nothing before it was welcomed.
  if (!rest.empty()) return core_.Remove(this);
  next_ = handshake_->sequences();
  handshake_.reset();
  alarm_.Cancel();
  state_ = State::kUp;
  core_.welcomed.Add();
}

void TcpServerChannel::SendHandshake() {
  const auto output = handshake_->output();
  // A fresh socket takes a message whole; one that does not is of no use.
  broken_ = !output.empty() && send(fd_.get(), output.data(), output.size(), MSG_NOSIGNAL) !=
                                   static_cast<ssize_t>(output.size());
  handshake_->ClearOutput();
}

void TcpServerChannel::Refuse(TcpRefusal refusal) {
  if (handshake_->state() != Handshake::State::kRefused) handshake_->Refuse(refusal);
  core_.refused.Add();
  // A node that stops says so once itself.
  if (refusal != TcpRefusal::kStopping) {
    const TcpHello& hello = handshake_->hello();
    core_.log.Warn(uint64_t{hello.worker} << 8 | static_cast<uint8_t>(refusal),
                   core_.executor.NowNs(),
                   "tcp: worker " + std::to_string(hello.worker) + " at " + peer_ +
                       " refused: " + TcpRefusalText(refusal));
  }
  SendHandshake();
  if (broken_) return core_.Remove(this);
  StartClosing();
}

void TcpServerChannel::ReadFrames() {
  std::byte* into = input_ != nullptr ? input_.get() : core_.input.get();
  const ssize_t got =
      recv(fd_.get(), into + input_bytes_, kTcpServerBufferBytes - input_bytes_, MSG_DONTWAIT);
  if (got < 0 && WouldBlock()) return;
  if (got <= 0) return core_.Remove(this);
  const std::span<const std::byte> bytes(into, input_bytes_ + static_cast<size_t>(got));
  if (core_.options.busy_poll_us > 0) core_.last_frame_ns = core_.executor.NowNs();
  const size_t done = Process(bytes);
  if (broken_) return core_.Remove(this);
  if (state_ == State::kUp) Keep(bytes.subspan(done));
}

void TcpServerChannel::Keep(std::span<const std::byte> rest) {
  if (rest.empty()) {
    core_.GiveBack(std::move(input_));
  } else {
    if (input_ == nullptr) input_ = core_.TakeBuffer();
    std::memmove(input_.get(), rest.data(), rest.size());
  }
  input_bytes_ = rest.size();
}

size_t TcpServerChannel::Process(std::span<const std::byte> bytes) {
  size_t done = 0;
  TcpError error = TcpError::kNone;
  while (!is_blocked() && !broken_ && error == TcpError::kNone) {
    TcpFrame frame;
    size_t frame_bytes = 0;
    error = DecodeTcpFrame(bytes.subspan(done), next_.request, &frame, &frame_bytes);
    if (error != TcpError::kNone || frame_bytes == 0) break;
    // Room for the longest answer first: a frame is executed once and answered, or not at all.
    if (Reply(kTcpBodyBytesMax) == nullptr) break;
    error = Execute(frame);
    done += frame_bytes;
    ++next_.request;
  }
  if (broken_) return done;
  if (error != TcpError::kNone) {
    core_.errors.Add();
    core_.log.Warn(uint64_t{worker_} << 8 | 0x80U | static_cast<uint8_t>(error),
                   core_.executor.NowNs(),
                   "tcp: channel of worker " + std::to_string(worker_) + " at " + peer_ +
                       " closed: " + TcpErrorText(error));
    Fail(error);
  } else {
    Send();
  }
  return done;
}

TcpError TcpServerChannel::Execute(const TcpFrame& frame) {
  switch (frame.header.kind) {
    case TcpFrameKind::kBatch:
      return ExecuteBatch(frame);
    case TcpFrameKind::kControl:
      return ExecuteControl(frame);
    case TcpFrameKind::kQueuePair:
      return ExecuteQueuePair(frame);
    case TcpFrameKind::kGoodbye:
      break;
  }
  return TcpError::kMalformed;
}

TcpError TcpServerChannel::ExecuteBatch(const TcpFrame& frame) {
  // A CAS of a device is atomic against no processor's.
  if (core_.options.rdma != nullptr) return TcpError::kOverRdma;
  std::array<TcpOp, kTcpOpsMax>& ops = core_.ops;
  const size_t count = frame.header.ops;
  const TcpError error = DecodeTcpOps(frame.body, count, ops.data());
  if (error != TcpError::kNone) return error;
  // All of them before any: a frame with one bad address touches nothing.
  for (size_t i = 0; i < count; ++i) {
    const FabricOp op = ToFabricOp(ops[i]);
    if (InBounds(op, core_.endpoint.bytes())) continue;
    FabricOp bytes_only = op;
    bytes_only.kind = FabricOpKind::kRead;
    return InBounds(bytes_only, core_.endpoint.bytes()) ? TcpError::kMisaligned
                                                        : TcpError::kOutOfBounds;
  }
  std::byte* const body = core_.output.get() + output_bytes_ + kTcpHeaderBytes;
  std::byte* to = body;
  uint8_t executed = 0;
  for (; executed < count && core_.endpoint.reachable(); ++executed) {
    FabricOp op = ToFabricOp(ops[executed]);
    if (op.kind == FabricOpKind::kRead) op.local = to;
    ExecuteOp(op, core_.endpoint.base());
    const size_t bytes = TcpReplyBytes(ops[executed].kind, op.bytes);
    if (op.kind != FabricOpKind::kRead && bytes != 0) std::memcpy(to, &op.result, bytes);
    to += bytes;
  }
  core_.frames.Add();
  core_.operations.Add(executed);
  EndReply(TcpFrameKind::kBatch, executed, static_cast<size_t>(to - body));
  return TcpError::kNone;
}

TcpError TcpServerChannel::ExecuteControl(const TcpFrame& frame) {
  TcpControlRequest body;
  if (frame.body.size() != sizeof(body) || frame.header.ops != 0) return TcpError::kMalformed;
  std::memcpy(&body, frame.body.data(), sizeof(body));
  if (body.kind > static_cast<uint8_t>(ControlRequest::kLastKind) || body.zero != 0 ||
      body.zeros != 0) {
    return TcpError::kMalformed;
  }
  TcpControlReply reply{.outcome = kTcpControlUnavailable};
  if (core_.endpoint.reachable()) {
    const ControlReply done =
        core_.endpoint.Handle({.kind = static_cast<ControlRequest::Kind>(body.kind),
                               .size_class = SizeClass(body.size_class),
                               .owner = WorkerId{body.owner},
                               .block = GlobalAddr(body.block),
                               .from = WorkerId{body.from}});
    reply.outcome = static_cast<uint8_t>(done.outcome);
    reply.size_class = done.size_class.index();
    reply.is_tight = done.is_tight ? 1 : 0;
    reply.block = done.block.bits();
  }
  std::memcpy(core_.output.get() + output_bytes_ + kTcpHeaderBytes, &reply, sizeof(reply));
  core_.frames.Add();
  EndReply(TcpFrameKind::kControl, 0, sizeof(reply));
  return TcpError::kNone;
}

TcpError TcpServerChannel::ExecuteQueuePair(const TcpFrame& frame) {
  if (core_.options.rdma == nullptr) return TcpError::kNotOverRdma;
  TcpQueuePair peer;
  if (frame.body.size() != sizeof(peer) || frame.header.ops != 0) return TcpError::kMalformed;
  std::memcpy(&peer, frame.body.data(), sizeof(peer));
  std::string reason;
  const Result<TcpQueuePairReply> made =
      core_.options.rdma->Welcome(WorkerId{worker_}, peer, &reason);
  has_queue_pair_ = made.ok();
  if (!made.ok()) {
    core_.log.Warn(uint64_t{worker_} << 8 | 0x7fU, core_.executor.NowNs(),
                   "rdma: worker " + std::to_string(worker_) + " at " + peer_ +
                       " gets no queue pair: " + reason);
  }
  const TcpQueuePairReply reply = made.ok() ? *made : TcpQueuePairReply();
  std::memcpy(core_.output.get() + output_bytes_ + kTcpHeaderBytes, &reply, sizeof(reply));
  core_.frames.Add();
  EndReply(TcpFrameKind::kQueuePair, 0, sizeof(reply));
  return TcpError::kNone;
}

void TcpServerChannel::EndQueuePair() {
  if (std::exchange(has_queue_pair_, false)) core_.options.rdma->Fence(WorkerId{worker_});
}

std::byte* TcpServerChannel::Reply(size_t body_bytes) {
  if (output_bytes_ + kTcpHeaderBytes + body_bytes > kTcpServerBufferBytes) Send();
  return is_blocked() || broken_ ? nullptr : core_.output.get() + output_bytes_;
}

void TcpServerChannel::EndReply(TcpFrameKind kind, uint8_t ops, size_t body_bytes) {
  SealTcpFrame({.sequence = next_.reply++,
                .body_bytes = static_cast<uint32_t>(body_bytes),
                .kind = kind,
                .ops = ops},
               core_.output.get() + output_bytes_);
  output_bytes_ += kTcpHeaderBytes + body_bytes;
}

void TcpServerChannel::Send() {
  const size_t bytes = std::exchange(output_bytes_, 0);
  size_t sent = 0;
  while (sent < bytes) {
    const ssize_t some =
        send(fd_.get(), core_.output.get() + sent, bytes - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (some < 0 && errno == EINTR) continue;
    if (some < 0) break;
    sent += static_cast<size_t>(some);
  }
  if (sent == bytes) return;
  if (!WouldBlock()) {
    broken_ = true;
    return;
  }
  pending_ = core_.TakeBuffer();
  pending_begin_ = 0;
  pending_end_ = bytes - sent;
  std::memcpy(pending_.get(), core_.output.get() + sent, pending_end_);
  // A peer that does not read its answers may not send more.
  watcher_.WatchReads(false);
  watcher_.WatchWrites(true);
  SetAlarm(core_.options.stall_timeout_ms * 1'000'000);
}

void TcpServerChannel::OnWritable() {
  if (!is_blocked()) return;
  const ssize_t some = send(fd_.get(), pending_.get() + pending_begin_,
                            pending_end_ - pending_begin_, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (some < 0 && WouldBlock()) return;
  if (some <= 0) return core_.Remove(this);
  pending_begin_ += static_cast<size_t>(some);
  if (pending_begin_ < pending_end_) {
    if (state_ == State::kUp) SetAlarm(core_.options.stall_timeout_ms * 1'000'000);
    return;
  }
  core_.GiveBack(std::move(pending_));
  alarm_.Cancel();
  watcher_.WatchWrites(false);
  watcher_.WatchReads(true);
  if (state_ == State::kClosing) return StartClosing();
  if (input_ == nullptr) return;
  // Frames that came before the socket was full.
  const std::span<const std::byte> bytes(input_.get(), input_bytes_);
  const size_t done = Process(bytes);
  if (broken_) return core_.Remove(this);
  if (state_ == State::kUp) Keep(bytes.subspan(done));
}

void TcpServerChannel::Fail(TcpError error) {
  if (state_ == State::kHandshake) return Refuse(TcpRefusal::kStopping);
  if (state_ == State::kClosing) return;
  state_ = State::kClosing;
  EndQueuePair();
  // A full socket gets no goodbye: the peer was not reading anyway.
  if (!is_blocked() && Reply(0) != nullptr) {
    SealTcpFrame({.sequence = next_.reply++, .kind = TcpFrameKind::kGoodbye, .error = error},
                 core_.output.get() + output_bytes_);
    output_bytes_ += kTcpHeaderBytes;
    Send();
  }
  core_.GiveBack(std::move(input_));
  input_bytes_ = 0;
  is_blocked() ? SetAlarm(kClosingNs) : StartClosing();
}

void TcpServerChannel::StartClosing() {
  state_ = State::kClosing;
  // Not closed at once: with unread bytes the kernel would reset the connection and the peer would
  // lose what it was told.
  shutdown(fd_.get(), SHUT_WR);
  SetAlarm(kClosingNs);
}

void TcpServerChannel::Discard() {
  const ssize_t got = recv(fd_.get(), core_.input.get(), kTcpServerBufferBytes, MSG_DONTWAIT);
  if (got < 0 && WouldBlock()) return;
  if (got > 0) discarded_bytes_ += static_cast<size_t>(got);
  if (got <= 0 || discarded_bytes_ > kDiscardedBytesMax) core_.Remove(this);
}

}  // namespace onetrip
