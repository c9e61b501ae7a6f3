// LargeMemory: memory for one value, small or large.
//
// A large one is pages of its own: they cost nothing until they are touched, so a worker that fills
// it piece by piece pays piece by piece; and a thread beside gives them back, for some hundred
// megabytes take the kernel tens of milliseconds, in which no other client would be served.
#ifndef ONETRIP_CLIENT_CORE_BASE_LARGE_MEMORY_H_
#define ONETRIP_CLIENT_CORE_BASE_LARGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>

namespace onetrip {

// A worker works on this much of a large value in one turn: its other connections wait meanwhile.
// A turn that touches each of the pages for the first time takes the longest, half a millisecond.
inline constexpr uint32_t kTurnBytes = uint32_t{128} << 10;

class LargeMemory {
 public:
  LargeMemory() = default;
  // Not initialized. Ends the process when the host has no memory.
  explicit LargeMemory(size_t bytes);
  // The same, but default-constructed when the host has no memory.
  static LargeMemory TryMake(size_t bytes);
  LargeMemory(LargeMemory&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  LargeMemory& operator=(LargeMemory&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~LargeMemory();

  // Aligned to 8 bytes. Null if default-constructed.
  [[nodiscard]] std::byte* start() const { return start_; }
  [[nodiscard]] size_t bytes() const { return bytes_; }

 private:
  std::byte* start_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_LARGE_MEMORY_H_
