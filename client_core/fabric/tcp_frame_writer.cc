#include "client_core/fabric/tcp_frame_writer.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr size_t kVectorMax = 64;  // entries per system call

}  // namespace

TcpFrameWriter::TcpFrameWriter() : gather_(new std::byte[kGatherBytes]) {}

void TcpFrameWriter::Begin() {
  CHECK(HasRoom());
  frame_ = gather_.get() + gathered_bytes_;
  piece_ = frame_;
  piece_count_ = 0;
  gathered_bytes_ += kTcpHeaderBytes;
}

void TcpFrameWriter::ClosePiece() {
  std::byte* end = gather_.get() + gathered_bytes_;
  if (end == piece_) return;
  pieces_[piece_count_++] = {piece_, end};
  piece_ = end;
}

void TcpFrameWriter::Add(const TcpOp& op) {
  std::byte* end = EncodeTcpOp(op, gather_.get() + gathered_bytes_);
  gathered_bytes_ = static_cast<size_t>(end - gather_.get());
  if (op.kind != TcpOpKind::kWrite) return;
  if (op.bytes < kReferenceFromBytes) return AddRaw({op.data, op.bytes});
  ClosePiece();
  CHECK(piece_count_ < pieces_.size());
  pieces_[piece_count_++] = {op.data, op.bytes};
}

void TcpFrameWriter::AddRaw(std::span<const std::byte> bytes) {
  if (!bytes.empty()) std::memcpy(gather_.get() + gathered_bytes_, bytes.data(), bytes.size());
  gathered_bytes_ += bytes.size();
}

void TcpFrameWriter::End(TcpFrameKind kind, uint8_t ops, uint64_t sequence) {
  ClosePiece();
  size_t bytes = 0;
  for (size_t i = 0; i < piece_count_; ++i) bytes += pieces_[i].size();
  CHECK(bytes <= kTcpFrameBytesMax);
  TcpFrameHeader header{.sequence = sequence,
                        .body_bytes = static_cast<uint32_t>(bytes - kTcpHeaderBytes),
                        .kind = kind,
                        .ops = ops};
  std::memcpy(frame_, &header, sizeof(header));
  header.checksum = TcpChecksum({pieces_.data(), piece_count_});
  std::memcpy(frame_, &header.checksum, sizeof(header.checksum));
  for (size_t i = 0; i < piece_count_; ++i) {
    auto* from = const_cast<std::byte*>(pieces_[i].data());
    const size_t length = pieces_[i].size();
    if (queue_.size() > queue_head_) {
      iovec& last = queue_.back();
      if (static_cast<std::byte*>(last.iov_base) + last.iov_len == from) {
        last.iov_len += length;
        continue;
      }
    }
    queue_.push_back({from, length});
  }
  queued_bytes_ += bytes;
}

TcpFrameWriter::Progress TcpFrameWriter::WriteTo(int fd) {
  while (queued_bytes_ > 0) {
    msghdr message{};
    message.msg_iov = queue_.data() + queue_head_;
    message.msg_iovlen = std::min(queue_.size() - queue_head_, kVectorMax);
    const ssize_t sent = sendmsg(fd, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      const bool full = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
      return full ? Progress::kBlocked : Progress::kBroken;
    }
    auto left = static_cast<size_t>(sent);
    queued_bytes_ -= left;
    while (left > 0) {
      iovec& head = queue_[queue_head_];
      const size_t taken = std::min(left, head.iov_len);
      head.iov_base = static_cast<std::byte*>(head.iov_base) + taken;
      head.iov_len -= taken;
      left -= taken;
      if (head.iov_len == 0) ++queue_head_;
    }
  }
  Clear();
  return Progress::kEmpty;
}

void TcpFrameWriter::Clear() {
  queue_.clear();
  queue_head_ = 0;
  queued_bytes_ = 0;
  gathered_bytes_ = 0;
}

}  // namespace onetrip
