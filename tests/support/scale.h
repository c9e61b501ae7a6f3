// How much of a long test runs: all of it plainly, a part of it under a sanitizer.
#ifndef ONETRIP_TESTS_SUPPORT_SCALE_H_
#define ONETRIP_TESTS_SUPPORT_SCALE_H_

#include <cstddef>
#include <cstdint>

namespace onetrip {

#if defined(__SANITIZE_THREAD__)
inline constexpr int kSlowdown = 10;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr int kSlowdown = 12;
#else
inline constexpr int kSlowdown = 1;
#endif

// Bytes of a value by which a pool is filled: longer ones in such a build, so that fewer do.
constexpr size_t FillerBytes(size_t bytes) { return kSlowdown > 1 ? 4 * bytes : bytes; }

// `count` rounds of a test, or as many of them as this build runs in about the same time.
constexpr int Scaled(int count) { return count / kSlowdown > 0 ? count / kSlowdown : 1; }

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_SCALE_H_
