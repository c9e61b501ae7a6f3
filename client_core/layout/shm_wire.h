// Bytes that processes of one host share besides a node's memory itself: the header of a memory
// image, and the frames on the unix socket over which the image is handed to agents.
//
// Every frame has 64 bytes. The node greets, the agent says HELLO with the greeting's nonce, the
// node answers with a verdict that carries the image's descriptor; then requests and replies of the
// agent, one at a time. What a peer claims is looked at before it is believed. Pure; any thread.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_SHM_WIRE_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_SHM_WIRE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace onetrip {

static_assert(std::endian::native == std::endian::little, "images are little-endian memory");

// ---- The image: header, checksums, unused room, a copy of the header, then the memory

inline constexpr uint64_t kImageMagic = 0x0a474d4950495254;  // "TRIPIMG\n"
inline constexpr uint32_t kImageVersion = 3;
inline constexpr uint32_t kImageVersionWithoutAge = 2;   // the same, ImageAge all zero
inline constexpr uint32_t kImageVersionWithoutSums = 1;  // ... and without checksums
// The memory begins on a huge page of its own, so that it can be mapped with huge pages.
inline constexpr uint64_t kImageMemoryOffset = 2ULL << 20;
// Written with every header, behind it: counts only where the header itself is damaged.
inline constexpr uint64_t kImageHeaderCopyOffset = kImageMemoryOffset - 4096;

// How far an image has come. All others are refused.
enum class ImageState : uint32_t {
  kForming = 1,  // no agent has been given it yet: the node that finds it so starts over
  kInUse = 2,    // by a node; left so when the node died
  kClean = 3,    // the node stopped in order and everything has reached the file
  kDamaged = 4,  // the memory cannot be trusted, and no other has been put there yet
};

struct ImageHeader {
  uint64_t magic = kImageMagic;
  uint32_t image_version = kImageVersion;
  uint32_t layout_version = 0;  // the regions' (region_layout.h)
  uint64_t cluster = 0;
  uint64_t memory_bytes = 0;
  uint64_t incarnation = 0;  // the memory's: drawn when it is made, another one if it is lost
  uint64_t life = 0;         // how many nodes have begun on it
  ImageState state = ImageState::kForming;
  uint16_t node = 0;
  uint16_t zero = 0;
  std::array<std::byte, 16> boot{};  // the host's boot during which it was last opened
  uint64_t checksum = 0;             // XXH3 of all that precedes
};
static_assert(sizeof(ImageHeader) == 80 && offsetof(ImageHeader, boot) == 56);
static_assert(offsetof(ImageHeader, checksum) == 72);

// How old the image is, right behind its header and written with it. An image whose mark is below
// the one that the master remembers is an older copy: others have been told of later writes.
struct ImageAge {
  uint64_t mark = 0;   // grows with every life, and every few seconds while one lasts; 0: not kept
  uint64_t told = 0;   // the largest mark that the master has said to have stored
  uint64_t epoch = 0;  // the newest view's that the node has taken
  uint32_t next_worker = 0;  // larger than every worker id that the node has seen
  uint32_t zero = 0;
  uint64_t checksum = 0;  // XXH3 of all that precedes
};
static_assert(sizeof(ImageAge) == 40 && offsetof(ImageAge, checksum) == 32);

// Checksums of the memory, as of an end in order: `count` words behind the header of their own, one
// for each chunk. They hold for a clean image of the same incarnation and life.
inline constexpr uint64_t kImageSumsMagic = 0x0a4d555350495254;  // "TRIPSUM\n"
inline constexpr uint64_t kImageSumsOffset = 4096;
struct ImageSumsHeader {
  uint64_t magic = kImageSumsMagic;
  uint64_t incarnation = 0;
  uint64_t life = 0;
  uint64_t chunk_bytes = 0;  // memory that one word covers
  uint64_t count = 0;
  uint64_t checksum = 0;  // XXH3 of all that precedes, and of the words
};
static_assert(sizeof(ImageSumsHeader) == 48 && offsetof(ImageSumsHeader, checksum) == 40);
inline constexpr uint64_t kImageSumsMax =
    (kImageHeaderCopyOffset - kImageSumsOffset - sizeof(ImageSumsHeader)) / sizeof(uint64_t);

// ---- Frames

inline constexpr uint64_t kShmMagic = 0x0a4d485350495254;  // "TRIPSHM\n"
inline constexpr uint16_t kShmVersion = 5;
inline constexpr size_t kShmFrameBytes = 64;

enum class ShmFrameKind : uint8_t {
  kGreeting = 1,
  kHello = 2,
  kVerdict = 3,
  kControl = 4,
  kReply = 5,
  kWorker = 6,  // one more worker of the same process; answered with a verdict without memory
  kDetach = 7,  // the agent has given up its mapping; no answer
};

// Why a node, or an agent, does not go on. Travels in the verdict.
enum class ShmRefusal : uint8_t {
  kNone,
  kNotOnetrip,   // other bytes than these frames
  kVersion,      // another version of the protocol
  kMalformed,    // a frame of the wrong kind, or with values that none has
  kCredentials,  // the peer runs as another user
  kUnfenceable,  // the peer's process cannot be named, so it could not be ended
  kCluster,      // another cluster
  kNode,         // the node at this socket is another one
  kIncarnation,  // the node has not the memory any more that the worker's map names
  kStaleEpoch,   // the worker's map is older than what the node accepts
  kFenced,       // the worker was expelled
  kTaken,        // another live process has this worker id
  kFull,         // too many agents
  kStopping,     // the node ends
  kSilent,       // the peer said nothing for too long
};
inline constexpr uint8_t kShmRefusalCount = 15;

constexpr const char* ShmRefusalText(ShmRefusal refusal) {
  constexpr const char* kTexts[kShmRefusalCount] = {
      "welcome",
      "the peer does not speak this protocol",
      "the peer speaks another version of the protocol",
      "a frame is malformed",
      "the peer runs as another user; run agents and memory nodes of a host as the same one",
      "the node could not end the peer's process; connect from where the memory is to be mapped",
      "the clusters differ",
      "another memory node is at this socket",
      "the memory node lost the memory that the worker's cluster map names",
      "the worker's cluster map is too old",
      "the worker was fenced",
      "another live process has this worker id",
      "too many agents",
      "the memory node is stopping",
      "the peer said nothing for too long",
  };
  const auto index = static_cast<size_t>(refusal);
  return index < kShmRefusalCount ? kTexts[index] : "unknown reason";
}

// Ahead of every frame, in every version.
struct ShmPrefix {
  uint64_t magic = kShmMagic;
  uint16_t version = kShmVersion;
  uint8_t kind = 0;  // ShmFrameKind
  uint8_t zero = 0;
  uint32_t sequence = 0;  // numbers requests; an answer gives its request's back
};
static_assert(sizeof(ShmPrefix) == 16);

// Enums travel as plain numbers: a peer's bytes are a value of the enum only once compared.
struct ShmGreeting {
  static constexpr ShmFrameKind kKind = ShmFrameKind::kGreeting;
  ShmPrefix prefix{};
  uint64_t nonce = 0;
  std::array<std::byte, 40> zero{};
};

// HELLO and kWorker.
struct ShmHello {
  static constexpr ShmFrameKind kKind = ShmFrameKind::kHello;
  ShmPrefix prefix{};
  uint64_t nonce = 0;  // the greeting's: the sender lived after it
  uint64_t cluster = 0;
  uint64_t epoch = 0;
  uint32_t worker = 0;
  uint16_t node = 0;  // that the agent believes to be at this socket
  uint16_t zero = 0;
  uint64_t incarnation = 0;  // the memory's, as the worker's map names it; 0: any
  std::array<std::byte, 8> zeros{};
};

struct ShmVerdict {
  static constexpr ShmFrameKind kKind = ShmFrameKind::kVerdict;
  ShmPrefix prefix{};
  uint8_t refusal = 0;  // ShmRefusal
  std::array<std::byte, 7> zero{};
  uint64_t memory_bytes = 0;
  uint64_t memory_offset = 0;  // in the descriptor that comes along
  uint64_t incarnation = 0;    // the memory's
  uint64_t epoch = 0;          // the oldest that the node accepts
  std::array<std::byte, 8> zeros{};
};

// The numbers are those of fabric/control.h.
struct ShmControl {
  static constexpr ShmFrameKind kKind = ShmFrameKind::kControl;
  ShmPrefix prefix{};
  uint8_t kind = 0;
  uint8_t size_class = 0;
  uint16_t zero = 0;
  uint32_t owner = 0;
  uint64_t block = 0;
  uint32_t from = 0;
  std::array<std::byte, 28> zeros{};
};
inline constexpr uint8_t kShmUnavailable = 0xff;  // an outcome: the node is lost, nothing done
struct ShmReply {
  static constexpr ShmFrameKind kKind = ShmFrameKind::kReply;
  ShmPrefix prefix{};
  uint8_t outcome = 0;
  uint8_t size_class = 0;
  uint8_t is_tight = 0;
  std::array<std::byte, 5> zero{};
  uint64_t block = 0;
  std::array<std::byte, 32> zeros{};
};

struct ShmDetach {
  static constexpr ShmFrameKind kKind = ShmFrameKind::kDetach;
  ShmPrefix prefix{};
  std::array<std::byte, 48> zero{};
};

using ShmFrame = std::array<std::byte, kShmFrameBytes>;

// The frame with its kind filled in; `kind` where one struct serves two.
template <typename Frame>
constexpr ShmFrame EncodeShm(Frame frame, ShmFrameKind kind = Frame::kKind) {
  static_assert(sizeof(Frame) == kShmFrameBytes);
  frame.prefix.kind = static_cast<uint8_t>(kind);
  return std::bit_cast<ShmFrame>(frame);
}

constexpr ShmPrefix DecodeShmPrefix(const ShmFrame& bytes) {
  return std::bit_cast<ShmGreeting>(bytes).prefix;
}

// Reads a frame that must be of `kind`.
template <typename Frame>
constexpr ShmRefusal DecodeShm(const ShmFrame& bytes, Frame* frame,
                               ShmFrameKind kind = Frame::kKind) {
  static_assert(sizeof(Frame) == kShmFrameBytes);
  const ShmPrefix prefix = DecodeShmPrefix(bytes);
  if (prefix.magic != kShmMagic) return ShmRefusal::kNotOnetrip;
  if (prefix.version != kShmVersion) return ShmRefusal::kVersion;
  if (prefix.kind != static_cast<uint8_t>(kind)) return ShmRefusal::kMalformed;
  *frame = std::bit_cast<Frame>(bytes);
  return ShmRefusal::kNone;
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_SHM_WIRE_H_
