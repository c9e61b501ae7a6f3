#include "client_core/control/control_mac.h"

#include <array>
#include <cstring>
#include <span>

#include "client_core/control/control.pb.h"

namespace onetrip {
namespace {

void AppendNumber(uint64_t number, std::string* message) {
  for (int shift = 0; shift < 64; shift += 8) {
    message->push_back(static_cast<char>((number >> shift) & 0xff));
  }
}

// With its length, so that no two claims make one message.
void AppendText(std::string_view text, std::string* message) {
  AppendNumber(text.size(), message);
  *message += text;
}

std::string Claim(std::string_view purpose, std::string_view master_nonce,
                  const control::Hello& hello) {
  std::string message;
  const std::string_view nonce = hello.nonce();
  const std::string_view engine = hello.engine();
  for (const std::string_view part : {purpose, nonce, master_nonce, engine}) {
    AppendText(part, &message);
  }
  for (const uint64_t number :
       {uint64_t{kControlProtocol}, static_cast<uint64_t>(hello.role()), hello.cluster(),
        hello.member(), hello.epoch(), hello.life(), hello.time_us(), hello.wall_us()}) {
    AppendNumber(number, &message);
  }
  return message;
}

std::string MacOver(const Secret& secret, const std::string& message) {
  const Mac mac = HmacSha256(secret, std::as_bytes(std::span(message)));
  return {reinterpret_cast<const char*>(mac.data()), mac.size()};
}

}  // namespace

std::string ControlNonce() {
  std::string nonce(kControlNonceBytes, '\0');
  FillRandom(std::as_writable_bytes(std::span(nonce)));
  return nonce;
}

std::string MemberMac(const Secret& secret, std::string_view master_nonce,
                      const control::Hello& hello) {
  return MacOver(secret, Claim("onetrip control member", master_nonce, hello));
}

std::string MasterMac(const Secret& secret, std::string_view master_nonce,
                      const control::Hello& hello, const control::Verdict& verdict) {
  std::string message = Claim("onetrip control master", master_nonce, hello);
  AppendText(verdict.reason(), &message);
  for (const uint64_t number :
       {uint64_t{verdict.welcome()}, uint64_t{verdict.retry()}, uint64_t{verdict.expelled()},
        verdict.cluster(), verdict.member(), uint64_t{verdict.lease_ms()}, verdict.time_us(),
        verdict.epoch(), verdict.life()}) {
    AppendNumber(number, &message);
  }
  return MacOver(secret, message);
}

bool ControlMacMatches(std::string_view mac, std::string_view expected) {
  return EqualInConstantTime(std::as_bytes(std::span(mac)), std::as_bytes(std::span(expected)));
}

}  // namespace onetrip
