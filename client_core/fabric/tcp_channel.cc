#include "client_core/fabric/tcp_channel.h"

#include <algorithm>
#include <cstring>

#include "client_core/fabric/memory_ops.h"

namespace onetrip {
namespace {

// Longer operations are cut where a multiple of this begins in remote memory, which keeps words
// whole. Two pieces and their descriptors fit a frame.
constexpr uint32_t kPieceBytes = (kTcpBodyBytesMax - 1024) / 2;
static_assert(kPieceBytes % 8 == 0, "a cut must not divide a word");
static_assert(2 * (kPieceBytes + kTcpDescriptorBytes) <= kTcpBodyBytesMax);
static_assert(RoundTrip::kMaxOps <= 255, "a cursor counts operations in a byte");
static_assert(static_cast<int>(FabricOpKind::kRead) == static_cast<int>(TcpOpKind::kRead) &&
                  static_cast<int>(FabricOpKind::kWrite) == static_cast<int>(TcpOpKind::kWrite) &&
                  static_cast<int>(FabricOpKind::kCas) == static_cast<int>(TcpOpKind::kCas) &&
                  static_cast<int>(FabricOpKind::kFaa) == static_cast<int>(TcpOpKind::kFaa) &&
                  static_cast<int>(FabricOpKind::kMax) == static_cast<int>(TcpOpKind::kMax),
              "an operation keeps its number on the wire");

TcpOp OnWire(const FabricOp& op, uint32_t from_byte, uint32_t bytes) {
  TcpOp result;
  result.kind = static_cast<TcpOpKind>(op.kind);
  result.bytes = bytes;
  result.offset = op.offset + from_byte;
  result.expected = op.expected;
  result.operand = op.operand;
  if (op.kind == FabricOpKind::kWrite) result.data = op.local + from_byte;
  return result;
}

}  // namespace

void TcpChannel::Post(const RoundTripPtr& round_trip) {
  if (!CanWait()) {
    ++fabric_.stats_.lost_unsent;
    return Answer(round_trip);
  }
  Enqueue({round_trip, nullptr, {}});
}

bool TcpChannel::PostCall(TcpCall* call) {
  if (!CanWait()) {
    ++fabric_.stats_.lost_unsent;
    call->state = TcpCall::State::kUnavailable;
    return false;
  }
  call->channel = this;
  Enqueue({{}, call, {}});
  return true;
}

void TcpChannel::OfferQueuePair(const TcpQueuePair& own) {
  offer_ = TcpCall();
  offer_.kind = TcpFrameKind::kQueuePair;
  offer_.pair = own;
  if (!PostCall(&offer_)) Lose("too many requests wait");
}

void TcpChannel::Enqueue(Request request) {
  pending_.Push(std::move(request));
  if (is_dirty_) return;
  is_dirty_ = true;
  fabric_.MarkDirty(this);
}

void TcpChannel::Forget(const TcpCall* call) {
  for (size_t i = 0; i < pending_.size(); ++i) {
    if (pending_.at(i).call == call) pending_.at(i).call = nullptr;
  }
  for (size_t i = 0; i < sent_.size(); ++i) {
    if (sent_.at(i).call == call) sent_.at(i).call = nullptr;
  }
}

bool TcpChannel::NextPiece(RoundTrip& round_trip, Cursor* cursor, Piece* piece) const {
  const auto ops = round_trip.ops();
  for (; cursor->op < ops.size(); ++cursor->op, cursor->byte = 0) {
    FabricOp& op = ops[cursor->op];
    // Addresses may come out of remote memory: a bad one fails here, and the channel stays open.
    if (op.node != node_ || !InBounds(op, memory_bytes_)) continue;
    const auto room = static_cast<uint32_t>(kPieceBytes - (op.offset + cursor->byte) % kPieceBytes);
    piece->op = &op;
    piece->from_byte = cursor->byte;
    piece->bytes = std::min(op.bytes - cursor->byte, room);
    cursor->byte += piece->bytes;
    piece->ends_op = cursor->byte == op.bytes;
    if (piece->ends_op) *cursor = {.op = static_cast<uint8_t>(cursor->op + 1)};
    return true;
  }
  return false;
}

void TcpChannel::SendOne() {
  Request& request = pending_.front();
  if (!request.round_trip) return SendCall();
  Piece piece;
  Cursor at = request.cursor;
  if (!NextPiece(*request.round_trip, &at, &piece)) {
    Answer(pending_.Pop().round_trip);
    return;
  }
  writer_.Begin();
  size_t request_bytes = 0;
  size_t reply_bytes = 0;
  Sent sent;
  sent.round_trip = request.round_trip;
  sent.cursor = request.cursor;
  bool has_more = true;
  at = request.cursor;
  while (has_more) {
    const Cursor before = at;
    has_more = NextPiece(*request.round_trip, &at, &piece);
    if (!has_more) break;
    const TcpOp op = OnWire(*piece.op, piece.from_byte, piece.bytes);
    request_bytes += TcpRequestBytes(op.kind, op.bytes);
    reply_bytes += TcpReplyBytes(op.kind, op.bytes);
    if (request_bytes > kTcpBodyBytesMax || reply_bytes > kTcpBodyBytesMax ||
        sent.pieces == kTcpOpsMax) {
      at = before;
      break;
    }
    writer_.Add(op);
    ++sent.pieces;
    sent.reply_bytes = static_cast<uint32_t>(reply_bytes);
  }
  writer_.End(TcpFrameKind::kBatch, sent.pieces, next_.request++);
  sent.is_last = !has_more;
  request.cursor = at;
  if (sent.is_last) pending_.Pop();
  Remember(std::move(sent));
}

void TcpChannel::SendCall() {
  TcpCall* call = pending_.Pop().call;
  if (call == nullptr) return;
  const TcpControlRequest body{.kind = static_cast<uint8_t>(call->request.kind),
                               .size_class = call->request.size_class.index(),
                               .owner = call->request.owner.value,
                               .block = call->request.block.bits(),
                               .from = call->request.from.value};
  const bool is_pair = call->kind == TcpFrameKind::kQueuePair;
  writer_.Begin();
  writer_.AddRaw(is_pair ? std::as_bytes(std::span(&call->pair, 1))
                         : std::as_bytes(std::span(&body, 1)));
  writer_.End(call->kind, 0, next_.request++);
  Sent sent;
  sent.call = call;
  sent.kind = call->kind;
  Remember(std::move(sent));
}

void TcpChannel::Remember(Sent sent) {
  sent_.Push(std::move(sent));
  ++fabric_.stats_.frames;
  ++fabric_.waiting_frames_;
}

void TcpChannel::Flush() {
  is_dirty_ = false;
  if (state_ != State::kUp) return;
  const LeaseGuard& lease = fabric_.lease();
  if (lease.deadline_ns != LeaseGuard::kForever && fabric_.executor_.NowNs() >= lease.deadline_ns) {
    // Requests that waited here until the lease ran out must not be sent; sent ones come to an end.
    const bool offers = offer_.channel != nullptr;
    while (!pending_.empty()) FailRequest(pending_.Pop());
    if (offers && offer_.channel == nullptr) return Lose("the lease has run out");
  }
  auto progress = TcpFrameWriter::Progress::kEmpty;
  do {
    while (!pending_.empty() && sent_.size() < kSentMax && writer_.HasRoom()) SendOne();
    progress = writer_.WriteTo(fd_.get());
    if (progress == TcpFrameWriter::Progress::kBroken) return Lose("the connection broke");
  } while (progress == TcpFrameWriter::Progress::kEmpty && !pending_.empty() &&
           sent_.size() < kSentMax);
  watcher_->WatchWrites(progress == TcpFrameWriter::Progress::kBlocked);
  if (!sent_.empty() && !alarm_.pending()) SetReplyAlarm();
}

void TcpChannel::ReadFrames() {
  while (true) {
    TcpFrame frame;
    size_t frame_bytes = 0;
    const TcpError error = DecodeTcpFrame({input_.get() + input_begin_, input_end_ - input_begin_},
                                          next_.reply, &frame, &frame_bytes);
    if (error != TcpError::kNone) return Lose(TcpErrorText(error));
    if (frame_bytes == 0) break;
    ++next_.reply;
    if (frame.header.kind == TcpFrameKind::kGoodbye) {
      return Lose(std::string("the node closed it: ") + TcpErrorText(frame.header.error));
    }
    std::string reason;
    if (!OnFrame(frame, &reason)) {
      return Lose(reason.empty() ? "an answer does not fit its request" : reason);
    }
    input_begin_ += frame_bytes;
  }
  if (input_begin_ == input_end_) {
    input_begin_ = input_end_ = 0;
  } else if (kInputBytes - input_begin_ < kTcpFrameBytesMax) {
    // Less than a frame is left, or it would have been read.
    std::memmove(input_.get(), input_.get() + input_begin_, input_end_ - input_begin_);
    input_end_ -= std::exchange(input_begin_, 0);
  }
  if (!pending_.empty() && !is_dirty_) {
    is_dirty_ = true;
    fabric_.MarkDirty(this);
  }
}

bool TcpChannel::OnFrame(const TcpFrame& frame, std::string* reason) {
  if (sent_.empty()) return false;
  Sent& sent = sent_.front();
  const TcpFrameKind kind = frame.header.kind;
  if (kind != sent.kind) return false;
  const bool fits = kind == TcpFrameKind::kBatch     ? OnBatchReply(frame, sent)
                    : kind == TcpFrameKind::kControl ? OnControlReply(frame, sent.call)
                                                     : OnQueuePairReply(frame, sent.call, reason);
  if (!fits) return false;
  sent_.Pop();
  --fabric_.waiting_frames_;
  ++answered_;
  silent_alarms_ = 0;
  // A rider says itself when something has come.
  if (fabric_.rider_ == nullptr) NoteAnswer();
  return true;
}

void TcpChannel::NoteAnswer() {
  if (std::exchange(has_answered_, true)) return;
  connect_error_.clear();
  backoff_ms_ = fabric_.options_.backoff_min_ms;
}

size_t TcpChannel::ReplyBytes(const Sent& sent, int pieces) const {
  size_t bytes = 0;
  Cursor at = sent.cursor;
  Piece piece;
  for (int i = 0; i < pieces; ++i) {
    CHECK(NextPiece(*sent.round_trip, &at, &piece));
    bytes += TcpReplyBytes(static_cast<TcpOpKind>(piece.op->kind), piece.bytes);
  }
  return bytes;
}

bool TcpChannel::OnBatchReply(const TcpFrame& frame, Sent& sent) {
  const int done = frame.header.ops;
  if (done > sent.pieces) return false;
  // Before anything is believed of it.
  const size_t bytes_due = done == sent.pieces ? sent.reply_bytes : ReplyBytes(sent, done);
  if (frame.body.size() != bytes_due) return false;
  const std::byte* from = frame.body.data();
  Cursor at = sent.cursor;
  Piece piece;
  for (int i = 0; i < done; ++i) {
    CHECK(NextPiece(*sent.round_trip, &at, &piece));
    FabricOp& op = *piece.op;
    const size_t bytes = TcpReplyBytes(static_cast<TcpOpKind>(op.kind), piece.bytes);
    if (op.kind == FabricOpKind::kRead) {
      std::memcpy(op.local + piece.from_byte, from, bytes);
    } else if (bytes != 0) {
      std::memcpy(&op.result, from, bytes);
    }
    from += bytes;
    if (piece.ends_op && !round_trip_failed_) op.ok = true;
  }
  // The node was told that it is lost, and stopped there.
  if (frame.header.ops < sent.pieces) round_trip_failed_ = true;
  if (!sent.is_last) return true;
  round_trip_failed_ = false;
  Answer(sent.round_trip);
  return true;
}

bool TcpChannel::OnControlReply(const TcpFrame& frame, TcpCall* call) {
  TcpControlReply body;
  if (frame.body.size() != sizeof(body)) return false;
  std::memcpy(&body, frame.body.data(), sizeof(body));
  const bool unavailable = body.outcome == kTcpControlUnavailable;
  if (!unavailable && body.outcome > static_cast<uint8_t>(ControlReply::kLastOutcome)) {
    return false;
  }
  if (call == nullptr) return true;
  if (!unavailable) {
    call->reply = {static_cast<ControlReply::Outcome>(body.outcome), GlobalAddr(body.block),
                   SizeClass(body.size_class), body.is_tight != 0};
  }
  AnswerCall(call, unavailable ? TcpCall::State::kUnavailable : TcpCall::State::kDone);
  return true;
}

bool TcpChannel::OnQueuePairReply(const TcpFrame& frame, TcpCall* call, std::string* reason) {
  if (frame.body.size() != sizeof(TcpQueuePairReply)) return false;
  if (call == nullptr) return true;
  std::memcpy(&call->pair_reply, frame.body.data(), sizeof(TcpQueuePairReply));
  AnswerCall(call, TcpCall::State::kDone);
  return fabric_.rider_->OnQueuePair(node_, call->pair_reply, reason);
}

void TcpChannel::Answer(const RoundTripPtr& round_trip) {
  const std::coroutine_handle<> waiter = round_trip->NodeAnswered();
  if (waiter) fabric_.executor_.Schedule(waiter);
}

void TcpChannel::AnswerCall(TcpCall* call, TcpCall::State state) {
  call->state = state;
  call->channel = nullptr;
  if (call->waiter) fabric_.executor_.Schedule(call->waiter);
}

void TcpChannel::FailRequest(const Request& request) {
  ++fabric_.stats_.lost_unsent;
  if (request.round_trip) {
    Answer(request.round_trip);
  } else if (request.call != nullptr) {
    AnswerCall(request.call, TcpCall::State::kUnavailable);
  }
}

void TcpChannel::FailAll() {
  while (!sent_.empty()) {
    const Sent sent = sent_.Pop();
    --fabric_.waiting_frames_;
    ++fabric_.stats_.lost_unknown;
    unsettled_ = true;
    if (sent.call != nullptr) AnswerCall(sent.call, TcpCall::State::kUnknownOutcome);
    if (sent.is_last) Answer(sent.round_trip);
  }
  // The first of them may have been sent in part: its operations are not ok, which is all that its
  // poster may conclude.
  while (!pending_.empty()) FailRequest(pending_.Pop());
  round_trip_failed_ = false;
}

}  // namespace onetrip
