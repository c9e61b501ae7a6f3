// Secret: bytes that the processes of a cluster share and no other process knows, and the few
// cryptographic steps that rest on them. OpenSSL stays in secret.cc.
//
// A secret is read once at start, from a file that only its owner may read, and is wiped when it
// dies. Any thread may use a const Secret.
#ifndef ONETRIP_CLIENT_CORE_BASE_SECRET_H_
#define ONETRIP_CLIENT_CORE_BASE_SECRET_H_

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "client_core/base/status.h"

namespace onetrip {

class Secret {
 public:
  static constexpr size_t kMinBytes = 16;
  static constexpr size_t kMaxBytes = 4096;

  // The empty secret, which proves nothing: for processes that meet on a loopback address.
  Secret() = default;
  explicit Secret(std::string bytes) : bytes_(std::move(bytes)) {}
  Secret(Secret&& other) noexcept : bytes_(std::move(other.bytes_)) { other.Wipe(); }
  Secret& operator=(Secret&& other) noexcept;
  ~Secret() { Wipe(); }

  [[nodiscard]] Secret Copy() const { return Secret(bytes_); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::span<const std::byte> bytes() const {
    return {reinterpret_cast<const std::byte*>(bytes_.data()), bytes_.size()};
  }

 private:
  void Wipe();
  std::string bytes_;
};

// The secret in the file at `path`, without the white space at its end. Refuses what is no regular
// file, what others than its owner may touch (mode 0600 or less), and fewer than kMinBytes or more
// than kMaxBytes; `reason` then says in one line what is wrong and what to do.
Result<Secret> LoadSecretFile(const std::string& path, std::string* reason);

using Mac = std::array<std::byte, 32>;

// HMAC-SHA-256 of `message` under `secret`.
Mac HmacSha256(const Secret& secret, std::span<const std::byte> message);

// True if both are equal, in a time that tells nothing about where they differ.
bool EqualInConstantTime(std::span<const std::byte> a, std::span<const std::byte> b);

// Fills `bytes` from the kernel's generator; for nonces, never for the data path.
void FillRandom(std::span<std::byte> bytes);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_SECRET_H_
