// Bytes between a worker and a memory node over TCP: handshake messages, then frames.
//
// A request frame is a batch of one round trip to one node, a control request, or a queue pair of
// RDMA that batches will go over instead; its answer is a frame of the same sequence number. The
// checksum covers everything behind it, header and body, and sequence numbers start at a secret of
// the connection: a frame that was cut, changed, repeated or meant for another connection is
// refused. Both sides bound a frame before they have it, so a length that a peer claims never
// becomes an allocation. Pure; any thread.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_TCP_WIRE_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_TCP_WIRE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace onetrip {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian memory");

// ---- Frames

inline constexpr uint32_t kTcpBodyBytesMax = 64 * 1024;  // a frame's, either way
inline constexpr size_t kTcpOpsMax = 64;                 // a frame's

enum class TcpFrameKind : uint8_t { kBatch = 1, kControl = 2, kGoodbye = 3, kQueuePair = 4 };

// Why a channel ends. Travels in a goodbye frame and appears in the log of both sides.
enum class TcpError : uint8_t {
  kNone,
  kMalformed,    // a frame that does not parse
  kTooLong,      // a length beyond kTcpBodyBytesMax
  kChecksum,     // bytes were changed under way
  kSequence,     // a frame is missing, repeated or of another connection
  kOutOfBounds,  // an address outside the node's memory
  kMisaligned,   // CAS, FAA or MAX off its alignment
  kSuperseded,   // the worker has connected anew
  kFenced,       // the worker was expelled
  kStopping,     // the node ends
  kOverRdma,     // a batch, at a node whose memory is reached over RDMA alone
  kNotOverRdma,  // a queue pair, at a node that serves none
};
inline constexpr uint8_t kTcpErrorCount = 12;
const char* TcpErrorText(TcpError error);

struct TcpFrameHeader {
  uint64_t checksum = 0;  // XXH3 of all that follows
  uint64_t sequence = 0;
  uint32_t body_bytes = 0;
  TcpFrameKind kind = TcpFrameKind::kBatch;
  uint8_t ops = 0;  // request: operations; reply: how many of them took effect, from the first on
  TcpError error = TcpError::kNone;  // kGoodbye only
  uint8_t zero = 0;
};
static_assert(sizeof(TcpFrameHeader) == 24 && offsetof(TcpFrameHeader, sequence) == 8);
static_assert(offsetof(TcpFrameHeader, kind) == 20);
inline constexpr size_t kTcpHeaderBytes = sizeof(TcpFrameHeader);
inline constexpr size_t kTcpFrameBytesMax = kTcpHeaderBytes + kTcpBodyBytesMax;

// One operation as it travels. A request body is a row of them: a descriptor, then what CAS (16
// bytes), FAA and MAX (8) or WRITE (its bytes) need. A reply body holds what READ (its bytes), CAS,
// FAA and MAX (8) give.
enum class TcpOpKind : uint8_t { kRead, kWrite, kCas, kFaa, kMax };
struct TcpOp {
  TcpOpKind kind = TcpOpKind::kRead;
  uint32_t bytes = 0;
  uint64_t offset = 0;
  uint64_t expected = 0;            // CAS
  uint64_t operand = 0;             // CAS, MAX: desired; FAA: addend
  const std::byte* data = nullptr;  // WRITE: its bytes, within the frame
};
inline constexpr size_t kTcpDescriptorBytes = 16;
// Takes one word, and gives what it was.
constexpr bool IsOnWord(TcpOpKind kind) {
  return kind != TcpOpKind::kRead && kind != TcpOpKind::kWrite;
}

// Bytes of a request body that the operation takes, a WRITE's own included.
constexpr size_t TcpRequestBytes(TcpOpKind kind, uint32_t bytes) {
  switch (kind) {
    case TcpOpKind::kWrite:
      return kTcpDescriptorBytes + bytes;
    case TcpOpKind::kCas:
      return kTcpDescriptorBytes + 16;
    case TcpOpKind::kFaa:
    case TcpOpKind::kMax:
      return kTcpDescriptorBytes + 8;
    case TcpOpKind::kRead:
      break;
  }
  return kTcpDescriptorBytes;
}
// Bytes of a reply body that it takes.
constexpr size_t TcpReplyBytes(TcpOpKind kind, uint32_t bytes) {
  if (kind == TcpOpKind::kRead) return bytes;
  return kind == TcpOpKind::kWrite ? 0 : 8;
}

// Writes descriptor and operands, not the bytes of a WRITE; returns what comes behind.
// REQUIRES: kTcpDescriptorBytes + 16 bytes at `to`.
std::byte* EncodeTcpOp(const TcpOp& op, std::byte* to);

// Reads `count` operations that fill `body` exactly and whose answer fits a frame.
// REQUIRES: count <= kTcpOpsMax.
TcpError DecodeTcpOps(std::span<const std::byte> body, size_t count, TcpOp* ops);

// A worker's request to the node's process; the numbers are those of fabric/control.h.
struct TcpControlRequest {
  uint8_t kind = 0;
  uint8_t size_class = 0;
  uint16_t zero = 0;
  uint32_t owner = 0;
  uint64_t block = 0;
  uint32_t from = 0;
  uint32_t zeros = 0;
};
static_assert(sizeof(TcpControlRequest) == 24);
struct TcpControlReply {
  uint8_t outcome = 0;
  uint8_t size_class = 0;
  uint8_t is_tight = 0;
  uint8_t zero[5] = {};
  uint64_t block = 0;
};
static_assert(sizeof(TcpControlReply) == 16);
inline constexpr uint8_t kTcpControlUnavailable =
    0xff;  // an outcome: the node is lost, nothing done

// One end of a queue pair of RDMA, as the other end has to know it. The worker offers its own; the
// node answers with its own and with where its memory lies. A second offer replaces the first; the
// node's end is gone with the connection, before the worker is welcomed anew.
struct TcpQueuePair {
  std::array<uint8_t, 16> gid{};
  uint32_t number = 0;    // the queue pair's
  uint32_t sequence = 0;  // its first packet's
  uint8_t mtu = 0;        // as ibv_mtu
  uint8_t reads_max = 0;  // READs and atomics under way
  uint16_t lid = 0;       // the port's, on InfiniBand
  uint8_t zero[4] = {};
};
static_assert(sizeof(TcpQueuePair) == 32);
struct TcpQueuePairReply {
  TcpQueuePair pair;
  uint64_t base = 0;   // where the memory begins, in the node's address space
  uint64_t bytes = 0;  // the memory's
  uint32_t key = 0;
  uint8_t made = 0;  // 0: the node could not make one; the rest says nothing
  uint8_t zero[3] = {};
};
static_assert(sizeof(TcpQueuePairReply) == 56);

// The checksum of a frame whose header (its checksum apart) is at the start of the first piece.
uint64_t TcpChecksum(std::span<const std::span<const std::byte>> pieces);
// Fills in the checksum of the contiguous frame at `frame` and writes its header.
void SealTcpFrame(TcpFrameHeader header, std::byte* frame);

struct TcpFrame {
  TcpFrameHeader header;
  std::span<const std::byte> body;
};

// Looks for a frame at the start of `bytes`, which should be number `sequence`. Sets *frame_bytes
// to its length once it is all there, and to 0 when more must come.
TcpError DecodeTcpFrame(std::span<const std::byte> bytes, uint64_t sequence, TcpFrame* frame,
                        size_t* frame_bytes);

// ---- Handshake: worker HELLO, node CHALLENGE, worker PROOF, node VERDICT

inline constexpr uint64_t kTcpMagic = 0x0a50435450495254;  // "TRIPTCP\n"
inline constexpr uint16_t kTcpVersion = 6;

enum class TcpMessage : uint8_t { kHello = 1, kChallenge = 2, kProof = 3, kVerdict = 4 };

// The role of the peer that connects: part of the proof, so that none serves another purpose.
enum class TcpRole : uint8_t { kWorker = 1 };

// Why a node, or a worker, does not go on. Travels in the verdict.
enum class TcpRefusal : uint8_t {
  kNone,
  kNotOnetrip,        // other bytes than a handshake
  kVersion,           // another version of the protocol
  kMalformed,         // a message of the wrong kind or length
  kCluster,           // another cluster
  kNode,              // the node at this address is another one
  kSecret,            // another secret, or a replay
  kSecretNeeded,      // no secret, and the address is not loopback
  kStaleEpoch,        // the worker's map is older than what the node accepts
  kStaleIncarnation,  // the worker has connected anew since
  kFenced,            // the worker was expelled
  kFull,              // too many channels
  kStopping,          // the node ends
  kSilent,            // the peer said nothing for too long
};
inline constexpr uint8_t kTcpRefusalCount = 14;
const char* TcpRefusalText(TcpRefusal refusal);

using TcpNonce = std::array<std::byte, 32>;
using TcpMac = std::array<std::byte, 32>;

// Ahead of every message, in every version.
struct TcpPrefix {
  uint64_t magic = kTcpMagic;
  uint16_t version = kTcpVersion;
  TcpMessage message = TcpMessage::kHello;
  uint8_t zero = 0;
  uint32_t bytes = 0;  // size of the message, this prefix included
};
static_assert(sizeof(TcpPrefix) == 16);

struct TcpHello {
  static constexpr TcpMessage kMessage = TcpMessage::kHello;
  TcpPrefix prefix{};
  uint64_t cluster = 0;
  uint64_t incarnation = 0;  // rises with every connection of the worker
  uint64_t epoch = 0;
  uint32_t worker = 0;
  uint16_t node = 0;  // that the worker believes to be at this address
  TcpRole role = TcpRole::kWorker;
  uint8_t zero = 0;
  TcpNonce nonce{};
};
static_assert(sizeof(TcpHello) == 80 && offsetof(TcpHello, nonce) == 48);

struct TcpChallenge {
  static constexpr TcpMessage kMessage = TcpMessage::kChallenge;
  TcpPrefix prefix{};
  TcpNonce nonce{};
};
static_assert(sizeof(TcpChallenge) == 48);

struct TcpProof {
  static constexpr TcpMessage kMessage = TcpMessage::kProof;
  TcpPrefix prefix{};
  TcpMac mac{};
};
static_assert(sizeof(TcpProof) == 48);

// A welcome (refusal kNone) says that nothing of the worker's earlier channels is or will be
// executed any more.
struct TcpVerdict {
  static constexpr TcpMessage kMessage = TcpMessage::kVerdict;
  TcpPrefix prefix{};
  TcpRefusal refusal = TcpRefusal::kNone;
  uint8_t zero[7] = {};
  uint64_t memory_bytes = 0;
  uint64_t epoch = 0;
  TcpMac mac{};  // all zero when the worker has not proved itself
};
static_assert(sizeof(TcpVerdict) == 72 && offsetof(TcpVerdict, mac) == 40);

inline constexpr size_t kTcpMessageBytesMax = sizeof(TcpHello);

// Looks at the prefix of a message of which `bytes` are there: kNone and *message_bytes = 0 when
// more must come, its length when the prefix is sound.
TcpRefusal DecodeTcpPrefix(std::span<const std::byte> bytes, TcpMessage* message,
                           size_t* message_bytes);

TcpRefusal DecodeTcpHello(std::span<const std::byte> bytes, TcpHello* hello);
TcpRefusal DecodeTcpChallenge(std::span<const std::byte> bytes, TcpChallenge* challenge);
TcpRefusal DecodeTcpProof(std::span<const std::byte> bytes, TcpProof* proof);
TcpRefusal DecodeTcpVerdict(std::span<const std::byte> bytes, TcpVerdict* verdict);

// The bytes of a message with its prefix filled in.
template <typename Message>
std::array<std::byte, sizeof(Message)> EncodeTcpMessage(Message message) {
  message.prefix = TcpPrefix{.message = Message::kMessage, .bytes = sizeof(Message)};
  return std::bit_cast<std::array<std::byte, sizeof(Message)>>(message);
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_TCP_WIRE_H_
