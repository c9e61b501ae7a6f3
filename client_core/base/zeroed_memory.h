// ZeroedMemory: anonymous pages for large tables. They cost nothing until they are touched, and are
// huge ones, where the kernel has them, so that a random access does not walk page tables.
#ifndef ONETRIP_CLIENT_CORE_BASE_ZEROED_MEMORY_H_
#define ONETRIP_CLIENT_CORE_BASE_ZEROED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <utility>

namespace onetrip {

class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  // `bytes` > 0. Huge pages from `huge_from` bytes on: the first touch of each costs its zeroing.
  // Ends the process when the host has no memory.
  explicit ZeroedMemory(uint64_t bytes, uint64_t huge_from = kHugeFrom);
  // The same, but default-constructed when the host has no memory.
  static ZeroedMemory TryMake(uint64_t bytes, uint64_t huge_from = kHugeFrom);
  ZeroedMemory(ZeroedMemory&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  ZeroedMemory& operator=(ZeroedMemory&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~ZeroedMemory();

  // Aligned to a page at least. Null if default-constructed.
  [[nodiscard]] std::byte* start() const { return start_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  static constexpr uint64_t kHugeFrom = uint64_t{8} << 20;

  std::byte* start_ = nullptr;
  uint64_t bytes_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_ZEROED_MEMORY_H_
