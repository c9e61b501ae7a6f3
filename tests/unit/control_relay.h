// Relay: a TCP port in front of a server, whose connections a test can reset: both ends are told
// that the connection broke, and both processes live on.
#ifndef ONETRIP_TESTS_UNIT_CONTROL_RELAY_H_
#define ONETRIP_TESTS_UNIT_CONTROL_RELAY_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client_core/base/check.h"

namespace onetrip {

class Relay {
 public:
  // In front of 127.0.0.1:`port`.
  explicit Relay(uint16_t port) : port_(port), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = Loopback(0);
    socklen_t size = sizeof(address);
    CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    CHECK(listen(listener_, 64) == 0);
    CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { Run(); });
  }
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  ~Relay() {
    stop_ = true;
    thread_.join();
    Reset();
    close(listener_);
  }

  [[nodiscard]] const std::string& address() const { return address_; }
  // Resets every connection that there is; new ones are relayed as before.
  void Cut() {
    const int before = cuts_;
    cut_ = true;
    while (cuts_ == before) std::this_thread::yield();
  }

 private:
  static sockaddr_in Loopback(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }

  void Run() {
    while (!stop_) {
      std::vector<pollfd> waits = {{listener_, POLLIN, 0}};
      for (const auto& [from, to] : pairs_) waits.push_back({from, POLLIN, 0});
      poll(waits.data(), waits.size(), /*timeout_ms=*/5);
      if (cut_.exchange(false)) {
        Reset();
        ++cuts_;
        continue;
      }
      for (size_t i = 1; i < waits.size(); ++i) {
        if (waits[i].revents != 0) Forward(pairs_[i - 1].first, pairs_[i - 1].second);
      }
      CloseEnded();
      if (waits[0].revents != 0) Accept();
    }
  }
  void Accept() {
    const int near = accept(listener_, nullptr, nullptr);
    const int far = socket(AF_INET, SOCK_STREAM, 0);
    const sockaddr_in address = Loopback(port_);
    if (near < 0 ||
        connect(far, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      if (near >= 0) close(near);
      close(far);
      return;
    }
    pairs_.emplace_back(near, far);
    pairs_.emplace_back(far, near);
  }
  void Forward(int from, int to) {
    char bytes[65536];
    const ssize_t count = read(from, bytes, sizeof(bytes));
    if (count > 0) {
      for (ssize_t done = 0; done < count;) {
        const ssize_t sent =
            send(to, bytes + done, static_cast<size_t>(count - done), MSG_NOSIGNAL);
        if (sent <= 0) return;
        done += sent;
      }
      return;
    }
    ended_.insert({from, to});
  }
  // One end is gone: so is the connection.
  void CloseEnded() {
    for (const auto& [from, to] : std::exchange(ended_, {})) {
      if (std::erase(pairs_, std::pair(from, to)) == 0) continue;
      std::erase(pairs_, std::pair(to, from));
      close(from);
      close(to);
    }
  }
  void Reset() {
    const linger at_once{1, 0};
    for (const auto& pair : pairs_) {
      setsockopt(pair.first, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
      close(pair.first);
    }
    pairs_.clear();
  }

  const uint16_t port_;
  const int listener_;
  std::string address_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> cut_{false};
  std::atomic<int> cuts_{0};
  // Relay's thread.
  std::vector<std::pair<int, int>> pairs_;  // the relay copies from the first to the second
  std::set<std::pair<int, int>> ended_;
  std::thread thread_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_CONTROL_RELAY_H_
