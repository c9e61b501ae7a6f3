// Fingerprint: 64 bits that stand for a state of the exploration. Two of n states share theirs with
// a probability below n * n / 2^65: one in a million at six million states.
#ifndef ONETRIP_TESTS_EXPLORE_FINGERPRINT_H_
#define ONETRIP_TESTS_EXPLORE_FINGERPRINT_H_

#include <cstdint>

namespace onetrip {

class Fingerprint {
 public:
  void Add(uint64_t word) { value_ = Fold(value_ ^ word, 0xa0761d6478bd642fULL) + 1; }
  [[nodiscard]] uint64_t value() const { return Fold(value_, 0xe7037ed1a0b428dbULL); }

 private:
  static uint64_t Fold(uint64_t a, uint64_t b) {
    const auto product = static_cast<unsigned __int128>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  }
  uint64_t value_ = 0x8ebc6af09c88c6e3ULL;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_FINGERPRINT_H_
