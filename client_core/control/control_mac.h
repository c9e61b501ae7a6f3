// What both ends of the control plane compute in the handshake (control.proto).
//
// Each side contributes a nonce and answers with an HMAC-SHA-256 over both and over what it claims,
// so that a recorded handshake is worth nothing. Pure; any thread.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_CONTROL_MAC_H_
#define ONETRIP_CLIENT_CORE_CONTROL_CONTROL_MAC_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "client_core/base/secret.h"

namespace onetrip {

// Changes when old and new processes would misunderstand each other.
inline constexpr uint32_t kControlProtocol = 4;
inline constexpr size_t kControlNonceBytes = 32;

// What a member claims in its HELLO.
struct ControlClaim {
  uint32_t role = 0;  // control.proto's Role
  uint64_t cluster = 0;
  uint64_t member = 0;
  uint64_t epoch = 0;
};

// Fresh random bytes.
std::string ControlNonce();

// The member's proof, over its claim and both nonces.
std::string MemberMac(const Secret& secret, std::string_view member_nonce,
                      std::string_view master_nonce, const ControlClaim& claim);
// The master's: over what it tells the member to be, which is the claim with the verdict's cluster
// and member in place of the member's own.
std::string MasterMac(const Secret& secret, std::string_view member_nonce,
                      std::string_view master_nonce, const ControlClaim& claim);

// Whether `mac` is `expected`, in a time that tells nothing.
bool ControlMacMatches(std::string_view mac, std::string_view expected);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_CONTROL_MAC_H_
