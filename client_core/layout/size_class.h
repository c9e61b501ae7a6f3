// Size classes of remote objects: quarter steps between powers of two from 64 bytes to 112 KiB,
// eighths between 128 and 512 bytes, where most registers and records are; then whole spans of 1..6
// blocks, then four of roots. Six bits name one, which lets a slot word tell a reader how many
// bytes to READ, and a writer that replaces the word unread whether extents go with the object
// (layout/extent.h).
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_SIZE_CLASS_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_SIZE_CLASS_H_

#include <array>
#include <bit>
#include <cstdint>

#include "client_core/layout/global_addr.h"

namespace onetrip {

// Ahead of the objects of every block: the free bitmap, one bit per object (FUSEE 4.4).
inline constexpr uint64_t kBlockHeaderBytes = 512;
inline constexpr uint32_t kBitmapWords = kBlockHeaderBytes / 8;
// Ahead of block 0 of every region: the region header with the block table.
inline constexpr uint64_t kRegionHeaderBytes = 4096;

class SizeClass {
 public:
  static constexpr uint8_t kSlabClasses = 52;                       // 64 B .. 112 KiB
  static constexpr uint8_t kSpanBlocksMax = 6;                      // then 1..6 whole blocks
  static constexpr uint8_t kSizes = kSlabClasses + kSpanBlocksMax;  // classes by size alone
  static constexpr uint8_t kRootClasses = 4;  // 1 to 8 KiB, and 80 KiB for long keys
  static constexpr uint8_t kCount = kSizes + kRootClasses;
  static constexpr uint8_t kNone = 63;

  constexpr SizeClass() = default;
  constexpr explicit SizeClass(uint8_t index) : index_(index) {}

  // The smallest class of roots that holds `bytes`; kNone when none does.
  static constexpr SizeClass ForRoot(uint64_t bytes) {
    for (uint8_t index = kSizes; index < kCount; ++index) {
      if (bytes <= RootBytes(index)) return SizeClass(index);
    }
    return SizeClass(kNone);
  }

  // The smallest class that holds `bytes`, but for roots; kNone when none does.
  static constexpr SizeClass For(uint64_t bytes) {
    if (bytes <= 64) return SizeClass(0);
    if (bytes <= SlabBytes(kSlabClasses - 1)) {
      const auto log2 = static_cast<uint8_t>(std::bit_width(bytes - 1) - 1);  // bytes - 1 >= 64
      const uint64_t step_bytes = 1ULL << (log2 - StepBits(log2));
      const uint64_t steps = (bytes - (1ULL << log2) + step_bytes - 1) / step_bytes;  // 1..2^bits
      return SizeClass(static_cast<uint8_t>(IndexOf(log2) + steps));
    }
    if (bytes > kSpanBlocksMax * kBlockBytes - kBlockHeaderBytes) return SizeClass(kNone);
    const uint64_t blocks = (bytes + kBlockHeaderBytes + kBlockBytes - 1) / kBlockBytes;
    return SizeClass(static_cast<uint8_t>(kSlabClasses + blocks - 1));
  }

  [[nodiscard]] constexpr uint8_t index() const { return index_; }
  [[nodiscard]] constexpr bool is_valid() const { return index_ < kCount; }
  [[nodiscard]] constexpr bool is_span() const { return index_ >= kSlabClasses && !is_root(); }
  // Its objects are roots, and no others are.
  [[nodiscard]] constexpr bool is_root() const { return index_ >= kSizes && index_ < kCount; }
  // Blocks that one allocation unit of this class takes from a memory node.
  [[nodiscard]] constexpr uint32_t blocks() const {
    return is_span() ? index_ - kSlabClasses + 1U : 1U;
  }
  // Bytes of one object, its slack included.
  [[nodiscard]] constexpr uint64_t bytes() const {
    if (is_root()) return RootBytes(index_);
    return is_span() ? blocks() * kBlockBytes - kBlockHeaderBytes : SlabBytes(index_);
  }

  friend constexpr bool operator==(const SizeClass&, const SizeClass&) = default;

 private:
  static constexpr uint64_t RootBytes(uint8_t index) {
    constexpr std::array<uint64_t, kRootClasses> kBytes{1024, 2048, 8 * 1024, 80 * 1024};
    return kBytes[index - kSizes];
  }
  // From 2^log2 up to the double there are 2^StepBits(log2) classes, the first of which is
  // IndexOf(log2).
  static constexpr uint8_t kLog2Min = 6;
  static constexpr uint8_t StepBits(uint8_t log2) { return log2 == 7 || log2 == 8 ? 3 : 2; }
  static constexpr uint8_t IndexOf(uint8_t log2) {
    uint8_t index = 0;
    for (uint8_t below = kLog2Min; below < log2; ++below) index += 1 << StepBits(below);
    return index;
  }
  static constexpr uint64_t SlabBytes(uint8_t index) { return kSlabBytes[index]; }
  static const std::array<uint32_t, kSlabClasses> kSlabBytes;

  uint8_t index_ = kNone;
};

inline constexpr std::array<uint32_t, SizeClass::kSlabClasses> SizeClass::kSlabBytes = [] {
  std::array<uint32_t, kSlabClasses> bytes{};
  for (uint8_t log2 = kLog2Min; IndexOf(log2) < kSlabClasses; ++log2) {
    for (uint8_t i = IndexOf(log2); i < IndexOf(log2 + 1) && i < kSlabClasses; ++i) {
      bytes[i] = (1U << log2) + (i - IndexOf(log2)) * (1U << (log2 - StepBits(log2)));
    }
  }
  return bytes;
}();

// Where the first object of a block lies: block 0 of a region also holds the region header.
constexpr uint64_t FirstObjectOffset(uint32_t block_in_region) {
  return kBlockHeaderBytes + (block_in_region == 0 ? kRegionHeaderBytes : 0);
}

// Offset of the free bitmap within its block.
constexpr uint64_t BitmapOffset(uint32_t block_in_region) {
  return block_in_region == 0 ? kRegionHeaderBytes : 0;
}

// Objects of class `size_class` that one of its blocks holds.
constexpr uint32_t ObjectsPerBlock(SizeClass size_class, uint32_t block_in_region) {
  if (size_class.is_span()) return 1;
  return static_cast<uint32_t>((kBlockBytes - FirstObjectOffset(block_in_region)) /
                               size_class.bytes());
}

static_assert(SizeClass::For(1).bytes() == 64 && SizeClass::For(64).bytes() == 64);
static_assert(SizeClass::For(65).bytes() == 80 && SizeClass::For(80).bytes() == 80);
static_assert(SizeClass::For(81).bytes() == 96 && SizeClass::For(128).bytes() == 128);
static_assert(SizeClass::For(129).bytes() == 144 && SizeClass::For(161).bytes() == 176);
static_assert(SizeClass::For(257).bytes() == 288 && SizeClass::For(513).bytes() == 640 &&
              SizeClass::For(24576).bytes() == 24576);
static_assert(SizeClass::For(114688).index() == SizeClass::kSlabClasses - 1);
static_assert(SizeClass::For(114689).blocks() == 1 && SizeClass::For(114689).is_span());
static_assert(!SizeClass::For(SizeClass::kSpanBlocksMax * kBlockBytes).is_valid());
static_assert(SizeClass::ForRoot(1025).bytes() == 2048 &&
              SizeClass::ForRoot(8192).bytes() == 8192 && SizeClass::ForRoot(8193).is_root());
static_assert(!SizeClass::ForRoot(81921).is_valid() && !SizeClass().is_root());
static_assert(SizeClass::kCount <= 63, "six bits name a class, 63 means none");
static_assert(ObjectsPerBlock(SizeClass(0), 1) <= kBitmapWords * 64, "a bit for every object");

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_SIZE_CLASS_H_
