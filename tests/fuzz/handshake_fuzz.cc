// Fuzz target: without the secret no bytes open a tcp channel, whichever side they are sent to and
// however they are cut; and a true handshake survives no change.
//
// The first two bytes of an input choose the cuts and what is attacked. The rest is sent as it is,
// or changes the bytes of a true handshake.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/fabric/handshake.h"

namespace onetrip {
namespace {

using Bytes = std::vector<std::byte>;
using State = Handshake::State;

// The result of a run of one side.
struct Outcome {
  State state;
  TcpRefusal refusal;
  Bytes said;
  bool operator==(const Outcome&) const = default;
};

TcpNonce Nonce(uint8_t fill) {
  TcpNonce nonce;
  nonce.fill(std::byte{fill});
  return nonce;
}

const Secret& TheSecret() {
  static const Secret secret("the secret of this cluster");
  return secret;
}

TcpHello TheHello() {
  TcpHello hello;
  hello.cluster = 1;
  hello.worker = 2;
  return hello;
}

void TakeOutput(Handshake& side, Bytes* said) {
  const auto output = side.output();
  CHECK(output.size() <= kTcpMessageBytesMax);
  said->insert(said->end(), output.begin(), output.end());
  side.ClearOutput();
}

// Gives `bytes` to `side`, at most `piece` at a time.
Outcome Drive(Handshake& side, NodeHandshake* node, std::span<const std::byte> bytes,
              size_t piece) {
  Bytes said;
  TakeOutput(side, &said);
  while (side.state() == State::kWaiting && !bytes.empty()) {
    const size_t given = std::min(piece, bytes.size());
    const size_t taken = side.Feed(bytes.first(given));
    CHECK(taken <= given);
    bytes = bytes.subspan(taken);
    if (side.state() == State::kProved) node->Welcome(4096, Epoch{1});
    TakeOutput(side, &said);
  }
  return {side.state(), side.refusal(), std::move(said)};
}

Outcome DriveNode(std::span<const std::byte> bytes, size_t piece) {
  NodeHandshake node({.cluster = 1, .node = NodeId{0}}, Nonce(7), TheSecret());
  return Drive(node, &node, bytes, piece);
}

Outcome DriveWorker(std::span<const std::byte> bytes, size_t piece) {
  WorkerHandshake worker(TheHello(), Nonce(8), TheSecret());
  return Drive(worker, nullptr, bytes, piece);
}

// The bytes that each side sends when both are true.
struct Truth {
  Bytes worker;
  Bytes node;
};

const Truth& TheTruth() {
  static const Truth truth = [] {
    Truth made;
    for (int i = 0; i < 2; ++i) {
      made.node = DriveNode(made.worker, 1000).said;
      made.worker = DriveWorker(made.node, 1000).said;
    }
    made.node = DriveNode(made.worker, 1000).said;
    CHECK(DriveNode(made.worker, 1000).state == State::kWelcome);
    CHECK(DriveWorker(made.node, 1000).state == State::kWelcome);
    return made;
  }();
  return truth;
}

// XORs `change` over the bytes from `at` on.
Bytes Changed(Bytes bytes, size_t at, std::span<const std::byte> change) {
  for (size_t i = 0; i < change.size() && at + i < bytes.size(); ++i) bytes[at + i] ^= change[i];
  return bytes;
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace onetrip;  // NOLINT(google-build-using-namespace)
  if (size < 3) return 0;
  const std::span<const std::byte> input(reinterpret_cast<const std::byte*>(data) + 3, size - 3);
  const size_t piece = 1 + data[0] % 100;
  const bool is_node = (data[1] & 1) != 0;
  const auto drive = is_node ? DriveNode : DriveWorker;
  Bytes bytes(input.begin(), input.end());
  bool is_true = false;
  if ((data[1] & 2) != 0) {
    const Bytes& truth = is_node ? TheTruth().worker : TheTruth().node;
    bytes = Changed(truth, data[2] % truth.size(), input);
    is_true = bytes == truth;
  }
  const Outcome whole = drive(bytes, SIZE_MAX);
  CHECK((whole.state == State::kWelcome) == is_true);
  CHECK(drive(bytes, piece) == whole);
  return 0;
}
