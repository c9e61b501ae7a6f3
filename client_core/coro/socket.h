// Sockets on a LoopExecutor: descriptors with an owner, listeners, readiness.
//
// Nothing here blocks, but for the two Listen functions at the start of a process. Errors that a
// person caused (a port that is taken, a path that cannot be written) come with one line that says
// what and what to do.
#ifndef ONETRIP_CLIENT_CORE_CORO_SOCKET_H_
#define ONETRIP_CLIENT_CORE_CORO_SOCKET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "client_core/base/status.h"
#include "client_core/coro/loop_executor.h"

struct event;

namespace onetrip {

// A file descriptor that is closed with its owner.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) {
      Reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~UniqueFd() { Reset(); }

  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  int Release() { return std::exchange(fd_, -1); }
  void Reset();

 private:
  int fd_ = -1;
};

// A non-blocking listening TCP socket on a numeric address or a host name. Port 0 takes a free one
// (see LocalPort). On failure `reason` says in one line what is wrong and what to do. While another
// process has the port, as a killed predecessor may for a moment, it blocks for up to 2 s, and so
// does ListenUnix.
Result<UniqueFd> ListenTcp(const std::string& host, uint16_t port, int backlog,
                           std::string* reason);

// A non-blocking listening unix socket. A stale socket file is replaced; anything else at `path`,
// or a server that still answers there, is an error. `mode` are the file's permissions, 0 leaves
// the umask's.
Result<UniqueFd> ListenUnix(const std::string& path, unsigned mode, int backlog,
                            std::string* reason);

// Port a TCP socket is bound to, 0 on error.
uint16_t LocalPort(int fd);

// "127.0.0.1:1234" or "[::1]:1234"; a unix socket gives "unix". Of the peer, or of this side.
std::string PeerAddress(int fd);
std::string LocalAddress(int fd);

// Accepts one connection as a non-blocking, close-on-exec descriptor. An invalid descriptor when
// no client waits, or when the process is out of descriptors: then `*exhausted` is set, and the
// caller must not try again before something was closed or a moment has passed.
UniqueFd Accept(int listener, bool* exhausted);

// Sets TCP_NODELAY, and keepalive probes after `keepalive_s` seconds of silence (0: none). No
// effect on unix sockets.
void TuneTcp(int fd, uint32_t keepalive_s);

// Calls back when a descriptor is readable (always, while watched for it) or writable (only between
// WatchWrites(true) and WatchWrites(false)). Level-triggered. Borrows the descriptor, which must
// stay open until the watcher has gone; the callback may destroy its own watcher.
class FdWatcher {
 public:
  using Callback = void (*)(void* arg);

  FdWatcher(LoopExecutor& executor, int fd, Callback on_readable, Callback on_writable, void* arg);
  FdWatcher(const FdWatcher&) = delete;
  FdWatcher& operator=(const FdWatcher&) = delete;
  ~FdWatcher();

  // Idempotent; a call that changes something costs one system call.
  void WatchReads(bool on);
  void WatchWrites(bool on);

 private:
  static void Dispatch(int fd, short what, void* self);

  Callback on_readable_;
  Callback on_writable_;
  void* arg_;
  event* read_event_;
  event* write_event_;
  bool reads_ = false;
  bool writes_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CORO_SOCKET_H_
