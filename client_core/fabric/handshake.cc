#include "client_core/fabric/handshake.h"

#include <algorithm>
#include <cstring>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr std::string_view kWorkerPurpose = "onetrip tcp worker";
constexpr std::string_view kNodePurpose = "onetrip tcp node";
constexpr std::string_view kFramesPurpose = "onetrip tcp frames";
constexpr size_t kPurposeBytesMax = 32;

std::span<const std::byte> UntilMac(const std::array<std::byte, sizeof(TcpVerdict)>& verdict) {
  return std::span(verdict).first(offsetof(TcpVerdict, mac));
}

}  // namespace

size_t Handshake::Feed(std::span<const std::byte> bytes) {
  CHECK(state_ == State::kWaiting);
  size_t taken = 0;
  while (state_ == State::kWaiting) {
    TcpMessage message{};
    size_t message_bytes = 0;
    const TcpRefusal refusal =
        DecodeTcpPrefix({input_.data(), input_bytes_}, &message, &message_bytes);
    if (refusal != TcpRefusal::kNone) {
      OnBadPeer(refusal);
      return taken;
    }
    if (message_bytes != 0 && input_bytes_ >= message_bytes) {
      input_bytes_ = 0;
      OnMessage({input_.data(), message_bytes});
      // One answer at a time: the caller sends it before it feeds more.
      return taken;
    }
    const size_t wanted = (message_bytes != 0 ? message_bytes : sizeof(TcpPrefix)) - input_bytes_;
    const size_t some = std::min(wanted, bytes.size() - taken);
    if (some == 0) return taken;
    std::memcpy(input_.data() + input_bytes_, bytes.data() + taken, some);
    input_bytes_ += some;
    taken += some;
  }
  return taken;
}

void Handshake::End(TcpRefusal refusal, bool by_peer) {
  state_ = State::kRefused;
  refusal_ = refusal;
  refused_by_peer_ = by_peer;
}

void Handshake::RememberHello(std::span<const std::byte> message) {
  std::copy(message.begin(), message.end(), said_.begin());
}

void Handshake::RememberChallenge(std::span<const std::byte> message) {
  std::copy(message.begin(), message.end(), said_.begin() + sizeof(TcpHello));
}

TcpMac Handshake::Prove(std::string_view purpose, std::span<const std::byte> more) const {
  // Purposes are padded to one length, so no two texts run into each other.
  std::array<std::byte, kPurposeBytesMax + sizeof(said_) + sizeof(TcpVerdict)> text{};
  CHECK(purpose.size() <= kPurposeBytesMax && more.size() <= sizeof(TcpVerdict));
  std::memcpy(text.data(), purpose.data(), purpose.size());
  std::memcpy(text.data() + kPurposeBytesMax, said_.data(), said_.size());
  if (!more.empty()) {
    std::memcpy(text.data() + kPurposeBytesMax + said_.size(), more.data(), more.size());
  }
  return HmacSha256(secret_, std::span(text).first(kPurposeBytesMax + said_.size() + more.size()));
}

TcpMac Handshake::VerdictMac(const TcpVerdict& verdict) const {
  return Prove(kNodePurpose, UntilMac(EncodeTcpMessage(verdict)));
}

void Handshake::StartSequences() {
  const TcpMac mac = Prove(kFramesPurpose, {});
  std::memcpy(&sequences_.request, mac.data(), 8);
  std::memcpy(&sequences_.reply, mac.data() + 8, 8);
}

WorkerHandshake::WorkerHandshake(TcpHello hello, const TcpNonce& nonce, const Secret& secret)
    : Handshake(secret) {
  hello.nonce = nonce;
  Send(hello);
  RememberHello(output());
}

void WorkerHandshake::OnBadPeer(TcpRefusal refusal) { End(refusal, /*by_peer=*/false); }

void WorkerHandshake::OnMessage(std::span<const std::byte> message) {
  TcpVerdict ignored;
  if (!proved_ && DecodeTcpVerdict(message, &ignored) != TcpRefusal::kNone) {
    OnChallenge(message);
  } else {
    OnVerdict(message);
  }
}

void WorkerHandshake::OnChallenge(std::span<const std::byte> message) {
  TcpChallenge challenge;
  const TcpRefusal refusal = DecodeTcpChallenge(message, &challenge);
  if (refusal != TcpRefusal::kNone) return End(refusal, /*by_peer=*/false);
  RememberChallenge(message);
  TcpProof proof;
  proof.mac = Prove(kWorkerPurpose, {});
  proved_ = true;
  Send(proof);
}

void WorkerHandshake::OnVerdict(std::span<const std::byte> message) {
  TcpVerdict verdict;
  const TcpRefusal refusal = DecodeTcpVerdict(message, &verdict);
  if (refusal != TcpRefusal::kNone) return End(refusal, /*by_peer=*/false);
  if (verdict.refusal != TcpRefusal::kNone) return End(verdict.refusal, /*by_peer=*/true);
  // A welcome counts only from a node that knows the secret and this handshake.
  if (!proved_) return End(TcpRefusal::kMalformed, /*by_peer=*/false);
  if (!EqualInConstantTime(VerdictMac(verdict), verdict.mac)) {
    return End(TcpRefusal::kSecret, /*by_peer=*/false);
  }
  memory_bytes_ = verdict.memory_bytes;
  epoch_ = Epoch{verdict.epoch};
  StartSequences();
  state_ = State::kWelcome;
}

NodeHandshake::NodeHandshake(const Policy& policy, const TcpNonce& nonce, const Secret& secret)
    : Handshake(secret), policy_(policy), nonce_(nonce) {}

void NodeHandshake::OnMessage(std::span<const std::byte> message) {
  const TcpRefusal refusal = challenged_ ? OnProof(message) : OnHello(message);
  if (refusal != TcpRefusal::kNone) Refuse(refusal);
}

TcpRefusal NodeHandshake::OnHello(std::span<const std::byte> message) {
  const TcpRefusal refusal = DecodeTcpHello(message, &hello_);
  if (refusal != TcpRefusal::kNone) return refusal;
  if (hello_.cluster != policy_.cluster) return TcpRefusal::kCluster;
  if (hello_.node != policy_.node.value) return TcpRefusal::kNode;
  RememberHello(message);
  TcpChallenge challenge;
  challenge.nonce = nonce_;
  Send(challenge);
  RememberChallenge(output());
  challenged_ = true;
  return TcpRefusal::kNone;
}

TcpRefusal NodeHandshake::OnProof(std::span<const std::byte> message) {
  TcpProof proof;
  const TcpRefusal refusal = DecodeTcpProof(message, &proof);
  if (refusal != TcpRefusal::kNone) return refusal;
  if (!EqualInConstantTime(Prove(kWorkerPurpose, {}), proof.mac)) return TcpRefusal::kSecret;
  state_ = State::kProved;
  return TcpRefusal::kNone;
}

void NodeHandshake::Welcome(uint64_t memory_bytes, Epoch epoch) {
  CHECK(state_ == State::kProved);
  TcpVerdict verdict;
  verdict.memory_bytes = memory_bytes;
  verdict.epoch = epoch.value;
  verdict.mac = VerdictMac(verdict);
  Send(verdict);
  StartSequences();
  state_ = State::kWelcome;
}

void NodeHandshake::Refuse(TcpRefusal refusal) {
  CHECK(state_ == State::kWaiting || state_ == State::kProved);
  TcpVerdict verdict;
  verdict.refusal = refusal;
  // Strangers get no proof to learn from.
  if (state_ == State::kProved) verdict.mac = VerdictMac(verdict);
  Send(verdict);
  End(refusal, /*by_peer=*/false);
}

}  // namespace onetrip
