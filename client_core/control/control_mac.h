// The computations of both ends of the control plane in the handshake (control.proto).
//
// Each side contributes a nonce and answers with an HMAC-SHA-256 over both and over what is said,
// so that a recorded handshake is worth nothing, and a refusal counts for no more than who proves
// it. Pure; any thread.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_CONTROL_MAC_H_
#define ONETRIP_CLIENT_CORE_CONTROL_CONTROL_MAC_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "client_core/base/secret.h"

namespace onetrip {

namespace control {
class Hello;
class Verdict;
}  // namespace control

// Changes when old and new processes would misunderstand each other.
inline constexpr uint32_t kControlProtocol = 5;
inline constexpr size_t kControlNonceBytes = 32;

// Fresh random bytes.
std::string ControlNonce();

// The member's proof, over both nonces and what it claims in its HELLO.
std::string MemberMac(const Secret& secret, std::string_view master_nonce,
                      const control::Hello& hello);
// The master's: over the same and its verdict, whatever that is, but for the verdict's own MAC.
std::string MasterMac(const Secret& secret, std::string_view master_nonce,
                      const control::Hello& hello, const control::Verdict& verdict);

// True if `mac` is `expected`, in a time that tells nothing.
bool ControlMacMatches(std::string_view mac, std::string_view expected);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_CONTROL_MAC_H_
