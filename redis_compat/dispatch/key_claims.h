// KeyClaims: keys that commands of one worker claim for themselves, for as long as they take.
//
// For commands that move an element between two keys in several steps: two of one worker's clients
// do not take the same element out of one key. Clients of other workers know nothing of it.
// Single-threaded.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_KEY_CLAIMS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_KEY_CLAIMS_H_

#include <absl/container/flat_hash_set.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace onetrip {

class KeyClaims {
 public:
  // A claim, given up with it.
  class Claim {
   public:
    Claim() = default;
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;
    ~Claim() {
      if (claims_ != nullptr) claims_->claimed_.erase(key_);
    }

   private:
    friend class KeyClaims;
    KeyClaims* claims_ = nullptr;
    std::pair<uint32_t, std::string> key_;
  };

  // False: another claim is there. REQUIRES: `claim`, which this outlives, has none.
  bool Take(uint32_t database, std::string_view key, Claim* claim) {
    auto [place, is_new] = claimed_.emplace(database, key);
    if (!is_new) return false;
    claim->claims_ = this;
    claim->key_ = *place;
    return true;
  }

 private:
  absl::flat_hash_set<std::pair<uint32_t, std::string>> claimed_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_KEY_CLAIMS_H_
