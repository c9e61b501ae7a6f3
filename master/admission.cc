#include "master/admission.h"

#include <algorithm>

#include "client_core/base/check.h"
#include "client_core/control/control.pb.h"
#include "client_core/control/control_mac.h"

namespace onetrip {
namespace {

constexpr size_t kTextBytesMax = 256;

// Strangers' words end up in log lines and on people's screens.
std::string Plain(const std::string& text) {
  std::string plain = text.substr(0, kTextBytesMax);
  std::replace_if(
      plain.begin(), plain.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return plain;
}

bool KindOf(uint32_t role, MemberKind* kind) {
  switch (role) {
    case control::ROLE_AGENT:
      *kind = MemberKind::kAgent;
      return true;
    case control::ROLE_MEMORY_NODE:
      *kind = MemberKind::kMemoryNode;
      return true;
    case control::ROLE_TOOL:
      *kind = MemberKind::kOther;
      return true;
    default:
      return false;
  }
}

}  // namespace

Admission::Admission(const Secret& secret) : secret_(secret), nonce_(ControlNonce()) {}
Admission::~Admission() = default;

std::optional<std::string> Admission::OnHello(const control::FromMember& message) {
  if (message.kind_case() != control::FromMember::kHello) {
    return "its first message is no HELLO: it is no process of a cluster";
  }
  const control::Hello& hello = message.hello();
  if (hello.protocol() != kControlProtocol) {
    return "it speaks version " + std::to_string(hello.protocol()) +
           " of the control protocol, this master version " + std::to_string(kControlProtocol) +
           "; install one version everywhere";
  }
  if (hello.nonce().size() != kControlNonceBytes) {
    return "its HELLO has a nonce of " + std::to_string(hello.nonce().size()) + " bytes";
  }
  if (!KindOf(hello.role(), &hello_.kind)) return "its HELLO names no role that there is";
  hello_.cluster = hello.cluster();
  hello_.member = hello.member();
  hello_.epoch = hello.epoch();
  hello_.version = Plain(hello.version());
  hello_.pid = hello.pid();
  hello_.host = Plain(hello.host());
  hello_.address = Plain(hello.address());
  hello_.engine = Plain(hello.engine());
  hello_.life = hello.life();
  hello_.time_us = hello.time_us();
  hello_.wall_us = hello.wall_us();
  hello_.host_id = Plain(hello.host_id());
  said_ = std::make_unique<control::Hello>(hello);
  state_ = State::kProof;
  return std::nullopt;
}

std::optional<std::string> Admission::OnMessage(const control::FromMember& message) {
  CHECK(state_ == State::kHello || state_ == State::kProof);
  std::optional<std::string> refusal;
  if (state_ == State::kHello) {
    refusal = OnHello(message);
  } else if (message.kind_case() != control::FromMember::kProof) {
    refusal = "its second message is no PROOF";
  } else if (!ControlMacMatches(message.proof().mac(), MemberMac(secret_, nonce_, *said_))) {
    refusal = "it does not know the cluster's secret; give both the same --secret-file";
  } else {
    state_ = State::kProved;
  }
  if (refusal.has_value()) state_ = State::kRefused;
  return refusal;
}

std::string Admission::MasterProof(const control::Verdict& verdict) const {
  CHECK(state_ == State::kProved);
  return MasterMac(secret_, nonce_, *said_, verdict);
}

}  // namespace onetrip
