// Admission: the master's side of the control plane's handshake, without I/O (control.proto).
//
// A stranger learns a nonce and no more: what the master thinks of its claims (cluster, member,
// epoch) is told only to a process that has proved that it knows the secret. One thread per object.
#ifndef ONETRIP_MASTER_ADMISSION_H_
#define ONETRIP_MASTER_ADMISSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "client_core/base/secret.h"
#include "master/messages.h"

namespace onetrip {

namespace control {
class FromMember;
class Hello;
class Verdict;
}  // namespace control

class Admission {
 public:
  enum class State : uint8_t { kHello, kProof, kProved, kRefused };

  // `secret` outlives the object.
  explicit Admission(const Secret& secret);
  ~Admission();

  // Takes the next message. Refused: one line that says why and what to do. Nothing: go on; in
  // kProof the challenge is to be sent, in kProved the verdict. REQUIRES: kHello or kProof.
  std::optional<std::string> OnMessage(const control::FromMember& message);

  [[nodiscard]] State state() const { return state_; }
  // The challenge's nonce; fresh.
  [[nodiscard]] const std::string& nonce() const { return nonce_; }
  // The process's claims; proved from kProved on.
  [[nodiscard]] const MemberHello& hello() const { return hello_; }
  // The master's proof of its verdict. REQUIRES: kProved.
  [[nodiscard]] std::string MasterProof(const control::Verdict& verdict) const;

 private:
  std::optional<std::string> OnHello(const control::FromMember& message);

  const Secret& secret_;
  State state_ = State::kHello;
  std::string nonce_;
  std::unique_ptr<control::Hello> said_;
  MemberHello hello_;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_ADMISSION_H_
