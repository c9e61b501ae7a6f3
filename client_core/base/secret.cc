#include "client_core/base/secret.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr unsigned kOthersMask = 077;

Status Refuse(std::string* reason, std::string text) {
  *reason = std::move(text);
  return Status(StatusCode::kInvalidArgument, "the secret cannot be used");
}

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// Reads at most `bytes_max` bytes; false on an error.
bool ReadAll(int fd, size_t bytes_max, std::string* text) {
  text->resize(bytes_max);
  size_t used = 0;
  while (used < bytes_max) {
    const ssize_t got = read(fd, text->data() + used, bytes_max - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;
    used += static_cast<size_t>(got);
  }
  text->resize(used);
  return true;
}

// Looks at the open file, not at the path, which could name another one by now.
Result<Secret> ReadSecret(int fd, const std::string& path, std::string* reason) {
  struct stat info {};
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return Refuse(reason, "secret file " + path + " is no regular file");
  }
  if ((info.st_mode & kOthersMask) != 0) {
    return Refuse(reason,
                  "secret file " + path + " is open to others than its owner; chmod 600 it");
  }
  // Room for white space at the end, and a byte to see that there is more.
  std::string text;
  if (!ReadAll(fd, Secret::kMaxBytes + 16, &text)) {
    return Refuse(reason, "cannot read secret file " + path + ": " + std::strerror(errno));
  }
  size_t bytes = text.size();
  while (bytes > 0 && IsSpace(text[bytes - 1])) --bytes;
  text.resize(bytes);
  Secret secret(std::move(text));
  if (bytes < Secret::kMinBytes || bytes > Secret::kMaxBytes) {
    return Refuse(
        reason, "secret file " + path + " must hold " + std::to_string(Secret::kMinBytes) + " to " +
                    std::to_string(Secret::kMaxBytes) + " bytes, not " + std::to_string(bytes));
  }
  return secret;
}

}  // namespace

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    Wipe();
    bytes_ = std::move(other.bytes_);
    other.Wipe();
  }
  return *this;
}

void Secret::Wipe() {
  // A moved-from short string may still hold its bytes in place.
  bytes_.resize(bytes_.capacity());
  OPENSSL_cleanse(bytes_.data(), bytes_.size());
  bytes_.clear();
}

Result<Secret> LoadSecretFile(const std::string& path, std::string* reason) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return Refuse(reason, "cannot open secret file " + path + ": " + std::strerror(errno));
  }
  Result<Secret> secret = ReadSecret(fd, path, reason);
  close(fd);
  return secret;
}

Mac HmacSha256(const Secret& secret, std::span<const std::byte> message) {
  Mac mac;
  unsigned bytes = 0;
  const auto key = secret.bytes();
  const unsigned char* done =
      HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(mac.data()), &bytes);
  CHECK(done != nullptr);
  CHECK(bytes == mac.size());
  return mac;
}

bool EqualInConstantTime(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

void FillRandom(std::span<std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = getrandom(bytes.data() + done, bytes.size() - done, 0);
    CHECK(got > 0 || errno == EINTR);
    if (got > 0) done += static_cast<size_t>(got);
  }
}

}  // namespace onetrip
