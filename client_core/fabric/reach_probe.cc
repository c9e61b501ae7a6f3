#include "client_core/fabric/reach_probe.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "client_core/coro/socket.h"

namespace onetrip {
namespace {

struct Attempt {
  UniqueFd fd;
  std::string error;  // empty while it is under way, and if it came about
};

Attempt StartTo(const sockaddr* address, socklen_t bytes) {
  Attempt attempt;
  attempt.fd = UniqueFd(socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const bool fails = !attempt.fd.valid() ||
                     (connect(attempt.fd.get(), address, bytes) != 0 && errno != EINPROGRESS);
  if (fails) attempt.error = std::strerror(errno);
  return attempt;
}

Attempt Start(const ProbeTarget& target) {
  if (!target.path.empty()) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const size_t room = sizeof(address.sun_path) - 1;
    target.path.copy(address.sun_path, std::min(room, target.path.size()));
    return StartTo(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error =
      getaddrinfo(target.host.c_str(), std::to_string(target.port).c_str(), &hints, &found);
  if (error != 0) {
    Attempt attempt;
    attempt.error = gai_strerror(error);
    return attempt;
  }
  Attempt attempt = StartTo(found->ai_addr, found->ai_addrlen);
  freeaddrinfo(found);
  return attempt;
}

}  // namespace

std::vector<std::string> TryToConnect(const std::vector<ProbeTarget>& targets,
                                      uint64_t timeout_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  std::vector<Attempt> attempts;
  attempts.reserve(targets.size());
  for (const ProbeTarget& target : targets) attempts.push_back(Start(target));
  std::vector<std::string> errors;
  errors.reserve(attempts.size());
  for (Attempt& attempt : attempts) {
    if (attempt.error.empty()) {
      const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                               end - std::chrono::steady_clock::now())
                               .count();
      pollfd poll_fd{attempt.fd.get(), POLLOUT, 0};
      int error = ETIMEDOUT;
      socklen_t bytes = sizeof(error);
      if (poll(&poll_fd, 1, static_cast<int>(std::max<int64_t>(left_ms, 0))) > 0) {
        getsockopt(attempt.fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
      }
      if (error != 0) attempt.error = std::strerror(error);
    }
    errors.push_back(attempt.error);
  }
  return errors;
}

}  // namespace onetrip
