// The two ends and the middle of a tcp channel under a test's control: a peer that speaks raw
// frames, a proxy that spoils what passes, and fabrics with short time limits.
#ifndef ONETRIP_TESTS_UNIT_TCP_PEER_H_
#define ONETRIP_TESTS_UNIT_TCP_PEER_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client_core/coro/socket.h"
#include "client_core/fabric/handshake.h"
#include "client_core/fabric/tcp.h"
#include "memnode/tcp_server.h"
#include "tests/support/fabric_backends.h"

namespace onetrip {

inline constexpr uint64_t kTestCluster = 7;
inline constexpr const char* kTestSecret = "a secret of some length";

inline bool ConnectSocket(int fd, uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// A connection to a port of this host. With a tiny receive buffer, when `receive_bytes` is given.
inline UniqueFd ConnectTo(uint16_t port, int receive_bytes = 0) {
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (receive_bytes > 0) {
    setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
  }
  CHECK(ConnectSocket(fd.get(), port));
  TuneTcp(fd.get(), 0);
  return fd;
}

// Everything a peer sends until it closes or `timeout_ms` pass without a byte; *closed tells which.
inline std::vector<std::byte> ReadToEnd(int fd, int timeout_ms, bool* closed) {
  std::vector<std::byte> bytes;
  std::array<std::byte, 4096> chunk;
  *closed = false;
  pollfd readable{.fd = fd, .events = POLLIN, .revents = 0};
  while (poll(&readable, 1, timeout_ms) > 0) {
    const ssize_t got = recv(fd, chunk.data(), chunk.size(), 0);
    if (got <= 0) {
      *closed = true;
      break;
    }
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + got);
  }
  return bytes;
}

// A worker that sends what it is told to, byte for byte.
class RawWorker {
 public:
  RawWorker(uint16_t port, TcpHello hello, const char* secret = "", int receive_bytes = 0)
      : secret_(secret), fd_(ConnectTo(port, receive_bytes)) {
    TcpNonce nonce;
    FillRandom(nonce);
    handshake_ = std::make_unique<WorkerHandshake>(hello, nonce, secret_);
    std::array<std::byte, 256> bytes;
    while (true) {
      const auto output = handshake_->output();
      CHECK(send(fd_.get(), output.data(), output.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(output.size()));
      handshake_->ClearOutput();
      if (handshake_->state() != Handshake::State::kWaiting) break;
      const ssize_t got = recv(fd_.get(), bytes.data(), bytes.size(), 0);
      if (got <= 0) break;
      std::span<const std::byte> rest(bytes.data(), static_cast<size_t>(got));
      while (!rest.empty() && handshake_->state() == Handshake::State::kWaiting) {
        rest = rest.subspan(handshake_->Feed(rest));
      }
    }
    next_ = handshake_->sequences();
  }

  [[nodiscard]] bool welcome() const { return handshake_->state() == Handshake::State::kWelcome; }
  [[nodiscard]] TcpRefusal refusal() const { return handshake_->refusal(); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  TcpSequences& next() { return next_; }

  // The next request frame, with the operations of `ops`.
  std::vector<std::byte> Frame(const std::vector<TcpOp>& ops) {
    std::vector<std::byte> frame(kTcpFrameBytesMax);
    std::byte* to = frame.data() + kTcpHeaderBytes;
    for (const TcpOp& op : ops) {
      to = EncodeTcpOp(op, to);
      if (op.kind != TcpOpKind::kWrite) continue;
      std::memset(to, 0x5a, op.bytes);
      to += op.bytes;
    }
    frame.resize(static_cast<size_t>(to - frame.data()));
    SealTcpFrame({.sequence = next_.request++,
                  .body_bytes = static_cast<uint32_t>(frame.size() - kTcpHeaderBytes),
                  .kind = TcpFrameKind::kBatch,
                  .ops = static_cast<uint8_t>(ops.size())},
                 frame.data());
    return frame;
  }
  void Send(std::span<const std::byte> bytes) const {
    CHECK(send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
  }
  // The answers until the node closes the channel; the last one should be a goodbye.
  std::vector<TcpFrameHeader> Answers(int timeout_ms = 2000) {
    bool closed = false;
    const std::vector<std::byte> bytes = ReadToEnd(fd_.get(), timeout_ms, &closed);
    EXPECT_TRUE(closed) << "the node keeps the channel";
    std::vector<TcpFrameHeader> headers;
    std::span<const std::byte> rest(bytes);
    TcpFrame frame;
    size_t frame_bytes = 0;
    while (DecodeTcpFrame(rest, next_.reply, &frame, &frame_bytes) == TcpError::kNone &&
           frame_bytes != 0) {
      ++next_.reply;
      headers.push_back(frame.header);
      rest = rest.subspan(frame_bytes);
    }
    EXPECT_TRUE(rest.empty()) << rest.size() << " bytes that are no frame";
    return headers;
  }

 private:
  Secret secret_;
  UniqueFd fd_;
  std::unique_ptr<WorkerHandshake> handshake_;
  TcpSequences next_;
};

// Stands between workers and a node, one connection at a time, and spoils one direction once.
class SpoilingProxy {
 public:
  enum class Fault : uint8_t { kNone, kCut, kFlip, kRepeat, kSwallow };
  struct Plan {
    Fault fault = Fault::kNone;
    bool to_node = true;       // the direction that is spoiled
    uint64_t after_bytes = 0;  // in that direction, on the first connection after SetPlan
  };

  explicit SpoilingProxy(uint16_t node_port) : node_port_(node_port) {
    std::string reason;
    Result<UniqueFd> listener = ListenTcp("127.0.0.1", 0, 16, &reason);
    CHECK(listener.ok());
    listener_ = std::move(*listener);
    thread_ = std::thread([this] { Run(); });
  }
  ~SpoilingProxy() {
    stop_ = true;
    thread_.join();
  }

  [[nodiscard]] uint16_t port() const { return LocalPort(listener_.get()); }
  void SetPlan(Plan plan) {
    const std::lock_guard<std::mutex> lock(mutex_);
    plan_ = plan;
  }
  // While paused, connections are made and nothing passes.
  void SetPaused(bool paused) { paused_ = paused; }

 private:
  void Run() {
    while (!stop_) {
      if (paused_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      pollfd waiting{.fd = listener_.get(), .events = POLLIN, .revents = 0};
      if (poll(&waiting, 1, 5) <= 0 || paused_) continue;
      bool exhausted = false;
      const UniqueFd worker = Accept(listener_.get(), &exhausted);
      if (!worker.valid()) continue;
      Serve(worker.get());
    }
  }

  void Serve(int worker) {
    const UniqueFd node = ConnectTo(node_port_);
    TuneTcp(worker, 0);
    uint64_t passed[2] = {0, 0};
    const int from[2] = {worker, node.get()};
    while (!stop_) {
      pollfd readable[2] = {{.fd = worker, .events = POLLIN, .revents = 0},
                            {.fd = node.get(), .events = POLLIN, .revents = 0}};
      if (poll(readable, 2, 5) <= 0) continue;
      for (int side = 0; side < 2; ++side) {
        if (readable[side].revents == 0) continue;
        std::array<std::byte, 16'384> bytes;
        const ssize_t got = recv(from[side], bytes.data(), bytes.size(), MSG_DONTWAIT);
        if (got <= 0) return;
        const auto length = static_cast<size_t>(got);
        if (!Pass(from[1 - side], side == 0, {bytes.data(), length}, passed[side])) return;
        passed[side] += length;
      }
    }
  }

  // False when the connection is cut.
  bool Pass(int to, bool to_node, std::span<std::byte> bytes, uint64_t passed) {
    const Plan plan = Take(to_node, passed + bytes.size());
    const auto at = static_cast<size_t>(plan.after_bytes - std::min(plan.after_bytes, passed));
    switch (plan.fault) {
      case Fault::kNone:
        break;
      case Fault::kCut:
        Write(to, bytes.first(at));
        return false;
      case Fault::kFlip:
        bytes[at] ^= std::byte{0x10};
        break;
      case Fault::kRepeat:
        Write(to, bytes.first(at + 1));
        bytes = bytes.subspan(at);
        break;
      case Fault::kSwallow:
        return true;
    }
    Write(to, bytes);
    return true;
  }

  // The plan, if its place is among the next bytes. Swallowing goes on, everything else is once.
  Plan Take(bool to_node, uint64_t until) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (plan_.fault == Fault::kNone || plan_.to_node != to_node || plan_.after_bytes >= until) {
      return {};
    }
    const Plan plan = plan_;
    if (plan.fault != Fault::kSwallow) plan_ = {};
    return plan;
  }

  static void Write(int to, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno != EAGAIN) return;
      if (sent > 0) bytes = bytes.subspan(static_cast<size_t>(sent));
    }
  }

  const uint16_t node_port_;
  UniqueFd listener_;
  std::mutex mutex_;
  Plan plan_;  // guarded by mutex_
  std::atomic<bool> stop_{false};
  std::atomic<bool> paused_{false};
  std::thread thread_;
};

// A memory of 64 KiB, a server for it, and fabrics on one executor.
class TcpNodeTest : public testing::Test {
 protected:
  static constexpr uint64_t kMemoryBytes = 64 * 1024;
  static constexpr NodeId kNode{0};

  static TcpServerOptions ServerOptions() { return {.cluster = kTestCluster}; }
  static TcpFabricOptions FabricOptions() {
    return {.connect_timeout_ms = 500, .reply_timeout_ms = 2000, .backoff_max_ms = 20};
  }

  void StartServer(const TcpServerOptions& options = ServerOptions(), const char* secret = "") {
    std::string reason;
    auto started = TcpServer::Start(endpoint_, Secret(secret), options, &reason);
    ASSERT_TRUE(started.ok()) << reason;
    server_ = std::move(*started);
  }
  std::unique_ptr<TcpFabric> NewFabric(uint32_t worker, uint16_t port,
                                       TcpFabricOptions options = FabricOptions(),
                                       const char* secret = "", TcpIdentity identity = {}) {
    if (identity.cluster == 0) identity.cluster = kTestCluster;
    identity.worker = WorkerId{worker};
    auto fabric = std::make_unique<TcpFabric>(executor_, identity, Secret(secret), options);
    std::string reason;
    EXPECT_TRUE(fabric->SetNode(kNode, "127.0.0.1", port, &reason).ok()) << reason;
    return fabric;
  }
  std::unique_ptr<TcpFabric> NewFabric(uint32_t worker) {
    return NewFabric(worker, server_->port());
  }
  static TcpHello Hello(uint32_t worker, uint64_t incarnation = 1) {
    TcpHello hello;
    hello.cluster = kTestCluster;
    hello.worker = worker;
    hello.incarnation = incarnation;
    return hello;
  }

  bool Connects(TcpFabric& fabric, uint64_t within_ms = 3000) {
    const uint64_t deadline_ns = executor_.NowNs() + within_ms * 1'000'000;
    return BlockOn(executor_, fabric.Connected(kNode, deadline_ns)).ok();
  }
  // Adds one to the word at `offset`.
  Status Add(TcpFabric& fabric, uint64_t offset = 0) {
    const RoundTripPtr rt = fabric.NewRoundTrip();
    rt->Faa({kNode, offset}, 1);
    return BlockOn(executor_, PostOne(&fabric, rt));
  }
  void Sleep(uint64_t ms) {
    BlockOn(executor_, [](Executor* executor, uint64_t ns) -> Task<void> {
      co_await executor->SleepFor(ns);
    }(&executor_, ms * 1'000'000));
  }
  template <typename Condition>
  bool Eventually(Condition condition, uint64_t within_ms = 3000) {
    for (uint64_t ms = 0; ms < within_ms; ++ms) {
      if (condition()) return true;
      Sleep(1);
    }
    return condition();
  }
  uint64_t Word(uint64_t offset) const {
    return __atomic_load_n(reinterpret_cast<const uint64_t*>(endpoint_.base() + offset),
                           __ATOMIC_ACQUIRE);
  }

  SystemClock clock_;
  LoopExecutor executor_{clock_, 1};
  BareEndpoint endpoint_{kMemoryBytes};
  std::unique_ptr<TcpServer> server_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_TCP_PEER_H_
