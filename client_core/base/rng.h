// Rng: the only source of randomness of the data path (xoshiro256**, seeded by splitmix64).
//
// Injected through the executor, so that one seed replays a whole simulation. Not thread-safe; not
// for secrets.
#ifndef ONETRIP_CLIENT_CORE_BASE_RNG_H_
#define ONETRIP_CLIENT_CORE_BASE_RNG_H_

#include <bit>
#include <cstdint>

namespace onetrip {

class Rng {
 public:
  explicit Rng(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15ULL;
      uint64_t z = seed;
      z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
      z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
      word = z ^ (z >> 31);
    }
  }

  // Uniform over all 64-bit values.
  uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, bound); 0 when bound is 0. The bias of the multiply-shift is below 2^-32 for
  // bounds that fit 32 bits.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }

  // Uniform in [0, 1).
  double NextDouble() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_[4];
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_RNG_H_
