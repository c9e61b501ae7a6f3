// The handshake of a tcp channel, as two state machines without I/O.
//
// Worker and node prove to each other that they know the cluster's secret: each contributes a fresh
// nonce and answers with an HMAC over both messages so far, so that a recorded handshake is worth
// nothing. The worker proves itself first: a stranger learns a nonce and no more. Only then does
// the node look at epoch and incarnation and fence the worker's earlier channel. Neither side
// allocates anything for a peer that has not proved itself. One thread per object.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_HANDSHAKE_H_
#define ONETRIP_CLIENT_CORE_FABRIC_HANDSHAKE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "client_core/base/secret.h"
#include "client_core/layout/tcp_wire.h"
#include "client_core/layout/types.h"

namespace onetrip {

// Where the sequence numbers of a connection's frames start; from the secret and both nonces.
struct TcpSequences {
  uint64_t request = 0;
  uint64_t reply = 0;
};

// The part that both machines share: bytes go in, at most one message comes out, then a verdict.
class Handshake {
 public:
  enum class State : uint8_t {
    kWaiting,  // for bytes of the peer
    kProved,   // node only: the worker has proved itself; decide with Welcome() or Refuse()
    kWelcome,  // the channel is open
    kRefused,  // by the peer or by this side: refusal()
  };

  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] TcpRefusal refusal() const { return refusal_; }
  // True if the refusal came in a message of the peer.
  [[nodiscard]] bool refused_by_peer() const { return refused_by_peer_; }
  [[nodiscard]] const TcpSequences& sequences() const { return sequences_; }

  // Takes bytes of the peer, no more than the message it waits for; returns how many. What follows
  // a verdict belongs to frames. REQUIRES: kWaiting.
  size_t Feed(std::span<const std::byte> bytes);

  // The bytes to be sent now; valid until the next call.
  [[nodiscard]] std::span<const std::byte> output() const {
    return {output_.data(), output_bytes_};
  }
  void ClearOutput() { output_bytes_ = 0; }

 protected:
  // `secret` outlives the object.
  explicit Handshake(const Secret& secret) : secret_(secret) {}
  ~Handshake() = default;

  // One whole message, whose prefix is sound, is in `message`.
  virtual void OnMessage(std::span<const std::byte> message) = 0;
  // This side has seen enough; a node also tells the worker why.
  virtual void OnBadPeer(TcpRefusal refusal) = 0;

  template <typename Message>
  void Send(const Message& message) {
    const auto bytes = EncodeTcpMessage(message);
    std::copy(bytes.begin(), bytes.end(), output_.begin());
    output_bytes_ = bytes.size();
  }
  void End(TcpRefusal refusal, bool by_peer);
  // Remembers what was said, for the proofs.
  void RememberHello(std::span<const std::byte> message);
  void RememberChallenge(std::span<const std::byte> message);
  [[nodiscard]] TcpMac Prove(std::string_view purpose, std::span<const std::byte> more) const;
  [[nodiscard]] TcpMac VerdictMac(const TcpVerdict& verdict) const;
  void StartSequences();

  State state_ = State::kWaiting;
  std::array<std::byte, kTcpMessageBytesMax> output_{};
  size_t output_bytes_ = 0;

 private:
  const Secret& secret_;
  TcpRefusal refusal_ = TcpRefusal::kNone;
  bool refused_by_peer_ = false;
  TcpSequences sequences_;
  std::array<std::byte, sizeof(TcpHello) + sizeof(TcpChallenge)> said_{};
  std::array<std::byte, kTcpMessageBytesMax> input_{};
  size_t input_bytes_ = 0;
};

// The worker's side. Its HELLO is in output() from the start.
class WorkerHandshake final : public Handshake {
 public:
  // `hello` carries everything but prefix and nonce.
  WorkerHandshake(TcpHello hello, const TcpNonce& nonce, const Secret& secret);

  // From the node's welcome.
  [[nodiscard]] uint64_t memory_bytes() const { return memory_bytes_; }
  [[nodiscard]] Epoch epoch() const { return epoch_; }

 private:
  void OnMessage(std::span<const std::byte> message) override;
  void OnBadPeer(TcpRefusal refusal) override;
  void OnChallenge(std::span<const std::byte> message);
  void OnVerdict(std::span<const std::byte> message);

  bool proved_ = false;
  uint64_t memory_bytes_ = 0;
  Epoch epoch_;
};

// The node's side.
class NodeHandshake final : public Handshake {
 public:
  struct Policy {
    uint64_t cluster = 0;
    NodeId node{};
  };
  NodeHandshake(const Policy& policy, const TcpNonce& nonce, const Secret& secret);

  // The worker's HELLO; proved from kProved on.
  [[nodiscard]] const TcpHello& hello() const { return hello_; }

  // The answer to a worker that has proved itself. REQUIRES: kProved, and for Welcome that the
  // worker's earlier channels are at an end.
  void Welcome(uint64_t memory_bytes, Epoch epoch);
  // An end at any time before the welcome.
  void Refuse(TcpRefusal refusal);

 private:
  void OnMessage(std::span<const std::byte> message) override;
  void OnBadPeer(TcpRefusal refusal) override { Refuse(refusal); }
  TcpRefusal OnHello(std::span<const std::byte> message);
  TcpRefusal OnProof(std::span<const std::byte> message);

  Policy policy_;
  TcpNonce nonce_;
  bool challenged_ = false;
  TcpHello hello_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_HANDSHAKE_H_
