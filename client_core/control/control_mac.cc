#include "client_core/control/control_mac.h"

#include <array>
#include <cstring>
#include <span>

namespace onetrip {
namespace {

void AppendNumber(uint64_t number, std::string* message) {
  for (int shift = 0; shift < 64; shift += 8) {
    message->push_back(static_cast<char>((number >> shift) & 0xff));
  }
}

// Every part with its length, so that no two claims make one message.
std::string MacOver(const Secret& secret, std::string_view purpose, std::string_view member_nonce,
                    std::string_view master_nonce, const ControlClaim& claim) {
  std::string message;
  for (const std::string_view part : {purpose, member_nonce, master_nonce}) {
    AppendNumber(part.size(), &message);
    message += part;
  }
  for (const uint64_t number : {uint64_t{kControlProtocol}, uint64_t{claim.role}, claim.cluster,
                                claim.member, claim.epoch}) {
    AppendNumber(number, &message);
  }
  const Mac mac = HmacSha256(secret, std::as_bytes(std::span(message)));
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

}  // namespace

std::string ControlNonce() {
  std::string nonce(kControlNonceBytes, '\0');
  FillRandom(std::as_writable_bytes(std::span(nonce)));
  return nonce;
}

std::string MemberMac(const Secret& secret, std::string_view member_nonce,
                      std::string_view master_nonce, const ControlClaim& claim) {
  return MacOver(secret, "onetrip control member", member_nonce, master_nonce, claim);
}

std::string MasterMac(const Secret& secret, std::string_view member_nonce,
                      std::string_view master_nonce, const ControlClaim& claim) {
  return MacOver(secret, "onetrip control master", member_nonce, master_nonce, claim);
}

bool ControlMacMatches(std::string_view mac, std::string_view expected) {
  return EqualInConstantTime(std::as_bytes(std::span(mac)), std::as_bytes(std::span(expected)));
}

}  // namespace onetrip
