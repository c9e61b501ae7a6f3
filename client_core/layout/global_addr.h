// GlobalAddr: one 48-bit name for all replicas of an object (MEMORY_LAYOUT, "Addresses";
// FUSEE 4.4).
//
// The upper 24 bits name a region, the lower 24 the byte within it. The cluster map places each
// region on r memory nodes; the offset in the region is the same on all of them.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_GLOBAL_ADDR_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_GLOBAL_ADDR_H_

#include <compare>
#include <cstdint>

namespace onetrip {

inline constexpr uint32_t kRegionBits = 24;
inline constexpr uint64_t kRegionBytes = 1ULL << kRegionBits;  // 16 MiB
inline constexpr uint64_t kBlockBytes = 256 * 1024;
inline constexpr uint32_t kBlocksPerRegion = kRegionBytes / kBlockBytes;
inline constexpr uint32_t kAddrBits = 48;
// Objects start on multiples of this; it buys four bits of every slot word.
inline constexpr uint64_t kObjectAlignBytes = 16;

static_assert(kRegionBytes % kBlockBytes == 0, "blocks tile a region");

class GlobalAddr {
 public:
  constexpr GlobalAddr() = default;
  constexpr explicit GlobalAddr(uint64_t bits) : bits_(bits) {}
  constexpr GlobalAddr(uint32_t region, uint64_t offset)
      : bits_((static_cast<uint64_t>(region) << kRegionBits) | offset) {}

  [[nodiscard]] constexpr uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr uint32_t region() const {
    return static_cast<uint32_t>(bits_ >> kRegionBits);
  }
  [[nodiscard]] constexpr uint64_t offset() const { return bits_ & (kRegionBytes - 1); }
  // The block of the region that holds this byte.
  [[nodiscard]] constexpr uint32_t block() const {
    return static_cast<uint32_t>(offset() / kBlockBytes);
  }
  [[nodiscard]] constexpr GlobalAddr block_start() const {
    return GlobalAddr(bits_ & ~(kBlockBytes - 1));
  }
  // Byte 0 of region 0 is the root area's header, so no object is ever there.
  [[nodiscard]] constexpr bool is_null() const { return bits_ == 0; }

  [[nodiscard]] constexpr GlobalAddr operator+(uint64_t bytes) const {
    return GlobalAddr(bits_ + bytes);
  }
  friend constexpr auto operator<=>(const GlobalAddr&, const GlobalAddr&) = default;

 private:
  uint64_t bits_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_GLOBAL_ADDR_H_
