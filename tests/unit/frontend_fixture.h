// An agent in the test's process and blocking sockets to talk to it.
#ifndef ONETRIP_TESTS_UNIT_FRONTEND_FIXTURE_H_
#define ONETRIP_TESTS_UNIT_FRONTEND_FIXTURE_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "client_core/base/check.h"
#include "client_core/base/clock.h"
#include "client_core/base/options.h"
#include "client_core/coro/socket.h"
#include "frontend/admin/admin.h"
#include "frontend/server.h"
#include "frontend/storage/embedded.h"

namespace onetrip {

// "*2\r\n$3\r\nGET\r\n..." of the given arguments.
inline std::string Resp(std::initializer_list<std::string_view> argv) {
  std::string text = "*" + std::to_string(argv.size()) + "\r\n";
  for (const std::string_view argument : argv) {
    text += "$" + std::to_string(argument.size()) + "\r\n";
    text.append(argument).append("\r\n");
  }
  return text;
}

inline std::string BulkReply(std::string_view value) {
  return "$" + std::to_string(value.size()) + "\r\n" + std::string(value) + "\r\n";
}

// A blocking client that gives up after some seconds.
class TestClient {
 public:
  // `source`: the client's own address.
  explicit TestClient(uint16_t port, const std::string& source = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    CHECK(inet_pton(AF_INET, source.c_str(), &address.sin_addr) == 1);
    CHECK(bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    Connect(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }
  explicit TestClient(const std::string& unix_path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, unix_path.c_str(), sizeof(address.sun_path) - 1);
    Connect(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  }

  // Returns true if all of it could be sent.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }
  // Exactly `bytes` bytes, or as many as come before the end or the time-out.
  std::string Read(size_t bytes) {
    std::string text(bytes, '\0');
    size_t have = 0;
    while (have < bytes) {
      const ssize_t n = recv(fd_.get(), text.data() + have, bytes - have, 0);
      if (n <= 0) break;
      have += static_cast<size_t>(n);
    }
    text.resize(have);
    return text;
  }
  std::string ReadLine() {
    std::string line;
    char byte = 0;
    while (recv(fd_.get(), &byte, 1, 0) == 1) {
      line.push_back(byte);
      if (byte == '\n') break;
    }
    return line;
  }
  // The payload of one bulk reply.
  std::string ReadBulk() {
    const std::string header = ReadLine();
    if (header.empty() || (header[0] != '$' && header[0] != '=')) return "not a bulk: " + header;
    std::string payload = Read(std::stoul(header.substr(1)));
    Read(2);
    return payload;
  }
  // One reply of a known size.
  std::string Ask(std::initializer_list<std::string_view> argv, std::string_view expected) {
    if (!Send(Resp(argv))) return "cannot send";
    return Read(expected.size());
  }
  // Returns true if the server closes within the time-out, without another byte.
  bool Closed() {
    char byte = 0;
    return recv(fd_.get(), &byte, 1, 0) == 0 || errno == ECONNRESET;
  }
  [[nodiscard]] int fd() const { return fd_.get(); }
  void Close() { fd_.Reset(); }

 private:
  void Connect(const sockaddr* address, socklen_t size) {
    const timeval patience{20, 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    setsockopt(fd_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    CHECK(connect(fd_.get(), address, size) == 0);
  }
  UniqueFd fd_;
};

class TestAgent {
 public:
  static AgentOptions SmallOptions() {
    AgentOptions options = DefaultAgentOptions();
    options.memory_bytes = 64ULL << 20;
    options.cache_bytes = 64ULL << 20;
    return options;
  }

  explicit TestAgent(const AgentOptions& options = SmallOptions()) {
    std::string reason;
    Result<std::unique_ptr<Embedded>> cluster = Embedded::Create(options, clock_, &reason);
    CHECK(cluster.ok());
    cluster_ = std::move(cluster.value());
    server_ = std::make_unique<Server>(options, clock_, *cluster_, MakeWorkerHooks);
    server_->TEST_UseFreePort();
    CHECK(server_->Start(&reason).ok());
  }
  ~TestAgent() { Stop(); }

  void Stop() {
    if (!std::exchange(running_, false)) return;
    server_->Stop();
  }
  [[nodiscard]] uint16_t port() const { return server_->tcp_port(); }
  Server& server() { return *server_; }

 private:
  SystemClock clock_;
  std::unique_ptr<Embedded> cluster_;
  std::unique_ptr<Server> server_;
  bool running_ = true;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_FRONTEND_FIXTURE_H_
