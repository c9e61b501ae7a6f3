// Fuzz target: no bytes on a tcp channel crash the decoders, reach outside a node's memory or make
// it answer more than a frame holds; and what they accept is what the encoders write.
//
// The input is taken as a stream of frames, and as the body of a frame that is otherwise sound.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/fabric/memory_ops.h"
#include "client_core/layout/tcp_wire.h"

namespace onetrip {
namespace {

constexpr size_t kMemoryWords = 64;

// Executes what is in bounds, as a memory node does, on a memory with nothing around it.
void Execute(std::span<const TcpOp> ops) {
  alignas(8) static std::array<std::byte, kMemoryWords * 8> memory;
  const auto reply = std::make_unique<std::byte[]>(kTcpBodyBytesMax);
  std::byte* to = reply.get();
  for (const TcpOp& op : ops) {
    FabricOp executed;
    executed.kind = static_cast<FabricOpKind>(op.kind);
    executed.bytes = op.bytes;
    executed.offset = op.offset;
    executed.operand = op.operand;
    executed.local = op.kind == TcpOpKind::kRead ? to : const_cast<std::byte*>(op.data);
    if (!InBounds(executed, memory.size())) return;
    ExecuteOp(executed, memory.data());
    to += TcpReplyBytes(op.kind, op.bytes);
    CHECK(to <= reply.get() + kTcpBodyBytesMax);
  }
}

void CheckBody(std::span<const std::byte> body, size_t count) {
  std::array<TcpOp, kTcpOpsMax> ops;
  if (DecodeTcpOps(body, count, ops.data()) != TcpError::kNone) return;
  std::vector<std::byte> again(body.size() + 16);
  std::byte* to = again.data();
  for (size_t i = 0; i < count; ++i) {
    const TcpOp& op = ops[i];
    to = EncodeTcpOp(op, to);
    if (op.kind != TcpOpKind::kWrite) continue;
    CHECK(op.data >= body.data() && op.data + op.bytes <= body.data() + body.size());
    std::memcpy(to, op.data, op.bytes);
    to += op.bytes;
  }
  CHECK(to == again.data() + body.size());
  CHECK(std::memcmp(again.data(), body.data(), body.size()) == 0);
  Execute({ops.data(), count});
}

void CheckStream(std::span<const std::byte> bytes) {
  // A stream starts with the number of its first frame, as if the handshake had agreed on it.
  uint64_t sequence = 0;
  if (bytes.size() >= kTcpHeaderBytes) std::memcpy(&sequence, bytes.data() + 8, 8);
  while (true) {
    TcpFrame frame;
    size_t frame_bytes = 0;
    if (DecodeTcpFrame(bytes, sequence++, &frame, &frame_bytes) != TcpError::kNone) return;
    if (frame_bytes == 0) {
      CHECK(bytes.size() < kTcpFrameBytesMax);
      return;
    }
    CHECK(frame_bytes <= bytes.size() && frame.body.size() <= kTcpBodyBytesMax);
    CHECK(frame.header.ops <= kTcpOpsMax);
    CheckBody(frame.body, frame.header.ops);
    bytes = bytes.subspan(frame_bytes);
  }
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onetrip;  // NOLINT(google-build-using-namespace)
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data), size);
  CheckStream(input);
  if (size == 0 || size - 1 > kTcpBodyBytesMax) return 0;
  const size_t count = data[0] % (kTcpOpsMax + 1);
  const std::span<const std::byte> body = input.subspan(1);
  CheckBody(body, count);

  // In a sealed frame the same body must come through, and no changed bit with it.
  std::vector<std::byte> frame(kTcpHeaderBytes + body.size());
  if (!body.empty()) std::memcpy(frame.data() + kTcpHeaderBytes, body.data(), body.size());
  SealTcpFrame({.sequence = 3,
                .body_bytes = static_cast<uint32_t>(body.size()),
                .kind = TcpFrameKind::kBatch,
                .ops = static_cast<uint8_t>(count)},
               frame.data());
  TcpFrame decoded;
  size_t frame_bytes = 0;
  CHECK(DecodeTcpFrame(frame, 3, &decoded, &frame_bytes) == TcpError::kNone);
  CHECK(frame_bytes == frame.size() && decoded.header.ops == count);
  const size_t flipped = (data[0] * 131U) % frame.size();
  frame[flipped] ^= std::byte{1};
  const TcpError error = DecodeTcpFrame(frame, 3, &decoded, &frame_bytes);
  CHECK(error != TcpError::kNone || frame_bytes == 0);
  return 0;
}
