// ClientSocket: a client's socket, and what has moved over it. The worker's thread.
#ifndef ONETRIP_FRONTEND_CLIENT_SOCKET_H_
#define ONETRIP_FRONTEND_CLIENT_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "client_core/base/large_memory.h"
#include "client_core/coro/socket.h"
#include "frontend/metrics/worker_metrics.h"
#include "redis_compat/protocol/output_buffer.h"

namespace onetrip {

class ClientSocket {
 public:
  // One read or one write moves at most this: a turn of the loop stays short.
  static constexpr size_t kMoveMaxBytes = kTurnBytes;

  // Takes over a connected, non-blocking socket. `traffic` outlives it.
  ClientSocket(UniqueFd fd, TrafficMetrics& traffic) : fd_(std::move(fd)), traffic_(traffic) {}

  enum class Received : uint8_t { kBytes, kNothing, kGone };
  // Reads once into `room`, which is not empty. kBytes: `*bytes` of it are filled; kGone: the
  // client has closed the connection, or it is broken.
  Received Receive(std::span<char> room, size_t* bytes);
  // Sends as much of `output` as the socket takes in this turn, at `now_ns`, and removes it there.
  // False: the connection is broken.
  bool Send(OutputBuffer& output, uint64_t now_ns);

  [[nodiscard]] int fd() const { return fd_.get(); }
  // When the client last took something; 0: never.
  [[nodiscard]] uint64_t last_sent_ns() const { return last_sent_ns_; }
  // Received and sent.
  [[nodiscard]] uint64_t moved_bytes() const { return moved_bytes_; }

 private:
  UniqueFd fd_;
  TrafficMetrics& traffic_;
  uint64_t last_sent_ns_ = 0;
  uint64_t moved_bytes_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_CLIENT_SOCKET_H_
