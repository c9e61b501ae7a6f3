// TcpFrameWriter: the frames of one channel on their way into the socket.
//
// Descriptors and short payloads are gathered in one fixed buffer; long payloads are sent from
// where they are, the arena of their round trip, which the channel keeps until the answer. Nothing
// is allocated after the first frames. One thread.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_TCP_FRAME_WRITER_H_
#define ONETRIP_CLIENT_CORE_FABRIC_TCP_FRAME_WRITER_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client_core/layout/tcp_wire.h"

namespace onetrip {

class TcpFrameWriter {
 public:
  // Payloads from this length on are not copied. Shorter ones cost as much either way, for another
  // entry of the vector costs about what their copy does.
  static constexpr size_t kReferenceFromBytes = 16 * 1024;
  // With more bytes than this under way the channel waits for the socket.
  static constexpr size_t kQueuedBytesMax = 256 * 1024;

  TcpFrameWriter();

  // True if a frame of any size may be begun.
  [[nodiscard]] bool HasRoom() const {
    return gathered_bytes_ + kTcpFrameBytesMax <= kGatherBytes && queued_bytes_ < kQueuedBytesMax;
  }
  [[nodiscard]] bool empty() const { return queued_bytes_ == 0; }

  // A frame: Begin, Add for each operation or AddRaw for a control body, End. REQUIRES: HasRoom,
  // and that the body stays within kTcpBodyBytesMax. What op.data refers to must stay until the
  // frame is answered.
  void Begin();
  void Add(const TcpOp& op);
  void AddRaw(std::span<const std::byte> bytes);
  void End(TcpFrameKind kind, uint8_t ops, uint64_t sequence);

  enum class Progress : uint8_t { kEmpty, kBlocked, kBroken };
  // Writes as much as the socket takes.
  Progress WriteTo(int fd);
  // Forgets everything that has not been written.
  void Clear();

 private:
  static constexpr size_t kGatherBytes = 2 * kTcpFrameBytesMax;

  void ClosePiece();

  std::unique_ptr<std::byte[]> gather_;
  size_t gathered_bytes_ = 0;
  size_t queued_bytes_ = 0;
  std::vector<iovec> queue_;
  size_t queue_head_ = 0;

  // The frame that has begun:
  std::byte* frame_ = nullptr;
  std::byte* piece_ = nullptr;  // in gather_, behind the last closed piece
  std::array<std::span<const std::byte>, 2 * kTcpOpsMax + 1> pieces_;
  size_t piece_count_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_TCP_FRAME_WRITER_H_
