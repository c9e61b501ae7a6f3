#include "client_core/coro/socket.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "client_core/base/held_by_predecessor.h"

namespace onetrip {
namespace {

Status Refuse(std::string* reason, std::string text) {
  *reason = std::move(text);
  return Status(StatusCode::kUnavailable, "cannot listen");
}

std::string ErrnoText() { return std::strerror(errno); }

std::string Describe(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text));
    return std::string(text) + ":" + std::to_string(ntohs(in.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text));
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(in6.sin6_port));
  }
  return "unix";
}

// True if a server answers on the unix socket at `address`.
bool SomebodyListens(const sockaddr_un& address) {
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return false;
  const int result =
      connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  return result == 0 || errno == EAGAIN || errno == EINPROGRESS;
}

}  // namespace

void UniqueFd::Reset() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

Result<UniqueFd> ListenTcp(const std::string& host, uint16_t port, int backlog,
                           std::string* reason) {
  const std::string where = host + " port " + std::to_string(port);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    return Refuse(reason, "cannot resolve " + host + ": " + gai_strerror(error) +
                              "; give an address of this host");
  }
  UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  bool ok = fd.valid();
  if (ok) {
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (found->ai_family == AF_INET6) {
      setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    int bound = -1;
    (void)TryUntilPredecessorEnds([&] {
      bound = bind(fd.get(), found->ai_addr, found->ai_addrlen);
      return bound == 0 || errno != EADDRINUSE;
    });
    ok = bound == 0 && listen(fd.get(), backlog) == 0;
  }
  freeaddrinfo(found);
  if (ok) return fd;
  if (errno == EADDRINUSE) {
    return Refuse(reason, where + " is taken by another process; stop it or choose another port");
  }
  if (errno == EACCES) {
    return Refuse(reason, "no permission to listen on " + where + "; choose a port above 1023");
  }
  if (errno == EADDRNOTAVAIL) {
    return Refuse(reason, host + " is not an address of this host; choose another to bind");
  }
  return Refuse(reason, "cannot listen on " + where + ": " + ErrnoText());
}

Result<UniqueFd> ListenUnix(const std::string& path, unsigned mode, int backlog,
                            std::string* reason) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Refuse(reason, "unix socket path is longer than " +
                              std::to_string(sizeof(address.sun_path) - 1) +
                              " bytes; choose a shorter one: " + path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  struct stat info {};
  if (stat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode)) {
      return Refuse(reason, path + " exists and is not a socket; choose another path");
    }
    if (!TryUntilPredecessorEnds([&] { return !SomebodyListens(address); })) {
      return Refuse(reason, path + " is taken by another process; stop it or choose another path");
    }
    unlink(path.c_str());
  }
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Refuse(reason, "cannot open a unix socket: " + ErrnoText());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    return Refuse(reason, "cannot create unix socket " + path + ": " + ErrnoText() +
                              "; choose a path in a directory that exists and can be written");
  }
  if (mode != 0 && chmod(path.c_str(), mode) != 0) {
    return Refuse(reason, "cannot set permissions of " + path + ": " + ErrnoText());
  }
  if (listen(fd.get(), backlog) != 0) {
    return Refuse(reason, "cannot listen on " + path + ": " + ErrnoText());
  }
  return fd;
}

uint16_t LocalPort(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return 0;
  if (address.ss_family == AF_INET) {
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  }
  if (address.ss_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  }
  return 0;
}

std::string PeerAddress(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "?:0";
  return Describe(address);
}

std::string LocalAddress(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return "?:0";
  return Describe(address);
}

UniqueFd Accept(int listener, bool* exhausted) {
  *exhausted = false;
  for (;;) {
    const int fd = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) return UniqueFd(fd);
    // The peer gave up before it was accepted: the next one may still be there.
    if (errno == EINTR || errno == ECONNABORTED) continue;
    *exhausted = errno != EAGAIN && errno != EWOULDBLOCK;
    return UniqueFd();
  }
}

void TuneTcp(int fd, uint32_t keepalive_s) {
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) != 0 || keepalive_s == 0) return;
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  const int idle_s = static_cast<int>(keepalive_s);
  const int interval_s = idle_s / 3 > 0 ? idle_s / 3 : 1;
  const int probes = 3;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

FdWatcher::FdWatcher(LoopExecutor& executor, int fd, Callback on_readable, Callback on_writable,
                     void* arg)
    : on_readable_(on_readable),
      on_writable_(on_writable),
      arg_(arg),
      read_event_(event_new(executor.base(), fd, EV_READ | EV_PERSIST, &Dispatch, this)),
      write_event_(event_new(executor.base(), fd, EV_WRITE | EV_PERSIST, &Dispatch, this)) {
  CHECK(read_event_ != nullptr);
  CHECK(write_event_ != nullptr);
}

FdWatcher::~FdWatcher() {
  event_free(read_event_);
  event_free(write_event_);
}

// One direction per call, and nothing after the callback: it may have destroyed the watcher.
void FdWatcher::Dispatch(int /*fd*/, short what, void* self) {
  auto* watcher = static_cast<FdWatcher*>(self);
  if ((what & EV_WRITE) != 0) {
    watcher->on_writable_(watcher->arg_);
  } else {
    watcher->on_readable_(watcher->arg_);
  }
}

void FdWatcher::WatchReads(bool on) {
  if (on == reads_) return;
  reads_ = on;
  (void)(on ? event_add(read_event_, nullptr) : event_del(read_event_));
}

void FdWatcher::WatchWrites(bool on) {
  if (on == writes_) return;
  writes_ = on;
  (void)(on ? event_add(write_event_, nullptr) : event_del(write_event_));
}

}  // namespace onetrip
