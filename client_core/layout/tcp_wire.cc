#include "client_core/layout/tcp_wire.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace onetrip {
namespace {

constexpr size_t kChecksumFrom = offsetof(TcpFrameHeader, sequence);

template <typename T>
T Load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
std::byte* Store(T value, std::byte* to) {
  std::memcpy(to, &value, sizeof(value));
  return to + sizeof(value);
}

// Structs with enums in them are copied only once their bytes are known to be values of the enums.
bool IsSoundHeader(const std::byte* at) {
  const auto kind = Load<uint8_t>(at + offsetof(TcpFrameHeader, kind));
  const auto ops = Load<uint8_t>(at + offsetof(TcpFrameHeader, ops));
  const auto error = Load<uint8_t>(at + offsetof(TcpFrameHeader, error));
  if (Load<uint8_t>(at + offsetof(TcpFrameHeader, zero)) != 0) return false;
  if (ops > kTcpOpsMax) return false;
  if (kind == static_cast<uint8_t>(TcpFrameKind::kGoodbye)) {
    return error != 0 && error < kTcpErrorCount && ops == 0;
  }
  return error == 0 && (kind == static_cast<uint8_t>(TcpFrameKind::kBatch) ||
                        kind == static_cast<uint8_t>(TcpFrameKind::kControl) ||
                        kind == static_cast<uint8_t>(TcpFrameKind::kQueuePair));
}

TcpRefusal CheckMessage(std::span<const std::byte> bytes, TcpMessage wanted, size_t wanted_bytes) {
  TcpMessage message{};
  size_t message_bytes = 0;
  const TcpRefusal refusal = DecodeTcpPrefix(bytes, &message, &message_bytes);
  if (refusal != TcpRefusal::kNone) return refusal;
  const bool fits =
      message == wanted && message_bytes == wanted_bytes && bytes.size() == wanted_bytes;
  return fits ? TcpRefusal::kNone : TcpRefusal::kMalformed;
}

}  // namespace

const char* TcpErrorText(TcpError error) {
  static constexpr const char* kTexts[kTcpErrorCount] = {
      "no error",
      "a frame does not parse",
      "a frame is too long",
      "a frame's checksum is wrong",
      "a frame is missing, repeated or of another connection",
      "an address lies outside the node's memory",
      "a CAS, FAA or MAX is not aligned to 8 bytes",
      "the worker has connected anew",
      "the worker was fenced",
      "the memory node is stopping",
      "the memory node's memory is reached over RDMA alone",
      "the memory node does not serve RDMA",
  };
  const auto index = static_cast<size_t>(error);
  return index < kTcpErrorCount ? kTexts[index] : "unknown error";
}

const char* TcpRefusalText(TcpRefusal refusal) {
  static constexpr const char* kTexts[kTcpRefusalCount] = {
      "welcome",
      "the peer does not speak this protocol",
      "the peer speaks another version of the protocol",
      "a handshake message is malformed",
      "the clusters differ",
      "another memory node is at this address",
      "the secrets differ",
      "without a secret only loopback addresses are served; give --secret-file",
      "the worker's cluster map is too old",
      "the worker has connected anew since",
      "the worker was fenced",
      "too many connections",
      "the memory node is stopping",
      "the peer said nothing for too long",
  };
  const auto index = static_cast<size_t>(refusal);
  return index < kTcpRefusalCount ? kTexts[index] : "unknown reason";
}

std::byte* EncodeTcpOp(const TcpOp& op, std::byte* to) {
  to = Store(op.offset, to);
  to = Store(op.bytes, to);
  to = Store(static_cast<uint32_t>(op.kind), to);
  if (op.kind == TcpOpKind::kCas) to = Store(op.expected, to);
  if (IsOnWord(op.kind)) to = Store(op.operand, to);
  return to;
}

TcpError DecodeTcpOps(std::span<const std::byte> body, size_t count, TcpOp* ops) {
  const std::byte* at = body.data();
  size_t left = body.size();
  size_t reply_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    if (left < kTcpDescriptorBytes) return TcpError::kMalformed;
    const auto kind = Load<uint32_t>(at + 12);
    if (kind > static_cast<uint32_t>(TcpOpKind::kMax)) return TcpError::kMalformed;
    TcpOp& op = ops[i];
    op.kind = static_cast<TcpOpKind>(kind);
    op.offset = Load<uint64_t>(at);
    op.bytes = Load<uint32_t>(at + 8);
    const bool is_word = IsOnWord(op.kind);
    if (is_word && op.bytes != 8) return TcpError::kMalformed;
    const size_t op_bytes = TcpRequestBytes(op.kind, op.bytes);
    if (left < op_bytes) return TcpError::kMalformed;
    if (op.kind == TcpOpKind::kCas) op.expected = Load<uint64_t>(at + kTcpDescriptorBytes);
    if (is_word) op.operand = Load<uint64_t>(at + op_bytes - 8);
    op.data = op.kind == TcpOpKind::kWrite ? at + kTcpDescriptorBytes : nullptr;
    reply_bytes += TcpReplyBytes(op.kind, op.bytes);
    if (reply_bytes > kTcpBodyBytesMax) return TcpError::kTooLong;
    at += op_bytes;
    left -= op_bytes;
  }
  return left == 0 ? TcpError::kNone : TcpError::kMalformed;
}

uint64_t TcpChecksum(std::span<const std::span<const std::byte>> pieces) {
  const std::span<const std::byte> first = pieces[0].subspan(kChecksumFrom);
  if (pieces.size() == 1) return XXH3_64bits(first.data(), first.size());
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  XXH3_64bits_update(&state, first.data(), first.size());
  for (const std::span<const std::byte> piece : pieces.subspan(1)) {
    XXH3_64bits_update(&state, piece.data(), piece.size());
  }
  return XXH3_64bits_digest(&state);
}

void SealTcpFrame(TcpFrameHeader header, std::byte* frame) {
  Store(header, frame);
  const std::span<const std::byte> whole(frame, kTcpHeaderBytes + header.body_bytes);
  header.checksum = TcpChecksum({&whole, 1});
  Store(header.checksum, frame);
}

TcpError DecodeTcpFrame(std::span<const std::byte> bytes, uint64_t sequence, TcpFrame* frame,
                        size_t* frame_bytes) {
  *frame_bytes = 0;
  if (bytes.size() < kTcpHeaderBytes) return TcpError::kNone;
  const auto body_bytes = Load<uint32_t>(bytes.data() + offsetof(TcpFrameHeader, body_bytes));
  if (body_bytes > kTcpBodyBytesMax) return TcpError::kTooLong;
  const size_t whole_bytes = kTcpHeaderBytes + body_bytes;
  if (bytes.size() < whole_bytes) return TcpError::kNone;
  const std::span<const std::byte> whole = bytes.first(whole_bytes);
  if (Load<uint64_t>(bytes.data()) != TcpChecksum({&whole, 1})) return TcpError::kChecksum;
  if (!IsSoundHeader(bytes.data())) return TcpError::kMalformed;
  frame->header = Load<TcpFrameHeader>(bytes.data());
  if (frame->header.sequence != sequence) return TcpError::kSequence;
  frame->body = whole.subspan(kTcpHeaderBytes);
  *frame_bytes = whole_bytes;
  return TcpError::kNone;
}

TcpRefusal DecodeTcpPrefix(std::span<const std::byte> bytes, TcpMessage* message,
                           size_t* message_bytes) {
  *message_bytes = 0;
  // The first wrong byte is enough: a peer of another protocol may never send sixteen.
  const uint64_t magic = kTcpMagic;
  const size_t seen = bytes.size() < sizeof(magic) ? bytes.size() : sizeof(magic);
  if (std::memcmp(bytes.data(), &magic, seen) != 0) return TcpRefusal::kNotOnetrip;
  if (bytes.size() < sizeof(TcpPrefix)) return TcpRefusal::kNone;
  if (Load<uint16_t>(bytes.data() + offsetof(TcpPrefix, version)) != kTcpVersion) {
    return TcpRefusal::kVersion;
  }
  const auto kind = Load<uint8_t>(bytes.data() + offsetof(TcpPrefix, message));
  const auto length = Load<uint32_t>(bytes.data() + offsetof(TcpPrefix, bytes));
  const bool sound = kind >= static_cast<uint8_t>(TcpMessage::kHello) &&
                     kind <= static_cast<uint8_t>(TcpMessage::kVerdict) &&
                     Load<uint8_t>(bytes.data() + offsetof(TcpPrefix, zero)) == 0 &&
                     length >= sizeof(TcpPrefix) && length <= kTcpMessageBytesMax;
  if (!sound) return TcpRefusal::kMalformed;
  *message = static_cast<TcpMessage>(kind);
  *message_bytes = length;
  return TcpRefusal::kNone;
}

TcpRefusal DecodeTcpHello(std::span<const std::byte> bytes, TcpHello* hello) {
  const TcpRefusal refusal = CheckMessage(bytes, TcpMessage::kHello, sizeof(TcpHello));
  if (refusal != TcpRefusal::kNone) return refusal;
  const auto role = Load<uint8_t>(bytes.data() + offsetof(TcpHello, role));
  if (role != static_cast<uint8_t>(TcpRole::kWorker) ||
      Load<uint8_t>(bytes.data() + offsetof(TcpHello, zero)) != 0) {
    return TcpRefusal::kMalformed;
  }
  *hello = Load<TcpHello>(bytes.data());
  return TcpRefusal::kNone;
}

TcpRefusal DecodeTcpChallenge(std::span<const std::byte> bytes, TcpChallenge* challenge) {
  const TcpRefusal refusal = CheckMessage(bytes, TcpMessage::kChallenge, sizeof(TcpChallenge));
  if (refusal == TcpRefusal::kNone) *challenge = Load<TcpChallenge>(bytes.data());
  return refusal;
}

TcpRefusal DecodeTcpProof(std::span<const std::byte> bytes, TcpProof* proof) {
  const TcpRefusal refusal = CheckMessage(bytes, TcpMessage::kProof, sizeof(TcpProof));
  if (refusal == TcpRefusal::kNone) *proof = Load<TcpProof>(bytes.data());
  return refusal;
}

TcpRefusal DecodeTcpVerdict(std::span<const std::byte> bytes, TcpVerdict* verdict) {
  const TcpRefusal refusal = CheckMessage(bytes, TcpMessage::kVerdict, sizeof(TcpVerdict));
  if (refusal != TcpRefusal::kNone) return refusal;
  const auto* at = bytes.data();
  if (Load<uint8_t>(at + offsetof(TcpVerdict, refusal)) >= kTcpRefusalCount) {
    return TcpRefusal::kMalformed;
  }
  for (size_t i = 0; i < sizeof(TcpVerdict::zero); ++i) {
    if (at[offsetof(TcpVerdict, zero) + i] != std::byte{0}) return TcpRefusal::kMalformed;
  }
  *verdict = Load<TcpVerdict>(at);
  return TcpRefusal::kNone;
}

}  // namespace onetrip
