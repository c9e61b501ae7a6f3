// Extents: the pieces of a value that no record can hold, each an object of its own.
//
// The record of such a value is a *root*: an object of a class of its own (SizeClass::is_root),
// whose value is a list of the extents. Extents are immutable, written to every live replica before
// any slot names their root, and belong to that one root: the worker that takes the root out of the
// index retires them with it. Each carries its root's version and its place in the list, so that a
// reader never believes one that is torn, recycled or another root's.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_EXTENT_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_EXTENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/layout/global_addr.h"
#include "client_core/layout/record.h"
#include "client_core/layout/size_class.h"

namespace onetrip {

struct ExtentHeader {
  uint64_t checksum;  // XXH3 over the piece, seeded with a hash of what follows here
  uint64_t version;   // the root's
  uint32_t number;    // in the root's list
  uint32_t bytes;     // the size of the piece, which follows
};
static_assert(sizeof(ExtentHeader) == 24);
inline constexpr uint32_t kExtentHeaderBytes = sizeof(ExtentHeader);

// An extent takes four blocks at most: fifteen to a region, with little left over.
inline constexpr uint32_t kExtentBytesMax =
    static_cast<uint32_t>(SizeClass(SizeClass::kSlabClasses + 3).bytes()) - kExtentHeaderBytes;
inline constexpr uint32_t kExtentsMax = (kMaxValueBytes + kExtentBytesMax - 1) / kExtentBytesMax;

// Where an extent lies: class in bits 53..48, address in bits 47..0.
struct ExtentRef {
  GlobalAddr addr;
  SizeClass size_class;
};

// The value of a root: value bytes (8 bytes), bytes in each extent but the last (4), extents (4),
// then a word for each.
struct ExtentList {
  uint64_t value_bytes = 0;
  uint32_t extent_bytes = 0;
  std::vector<ExtentRef> extents;

  // Bytes of the value that extent `number` holds.
  [[nodiscard]] uint32_t BytesOf(size_t number) const;
};
inline constexpr uint64_t kExtentListHeaderBytes = 16;
constexpr uint64_t ExtentListBytes(uint64_t extents) {
  return kExtentListHeaderBytes + 8 * extents;
}
static_assert(
    SizeClass::ForRoot(kRecordHeaderBytes + kMaxKeyBytes + ExtentListBytes(kExtentsMax)).is_valid(),
    "a root holds any key and the extents of any value");

// Divides `value_bytes` into extents of `extent_bytes`, which have no place yet.
ExtentList PlanExtents(uint64_t value_bytes, uint32_t extent_bytes);
std::string EncodeExtentList(const ExtentList& list);
// False for what no EncodeExtentList has made.
bool LoadExtentList(std::string_view value, ExtentList* list);

// The header of a piece.
ExtentHeader MakeExtentHeader(uint64_t version, uint32_t number, const std::byte* piece,
                              uint32_t bytes);
// True if `piece` is what `header` says: extent `number` of the root of `version`.
bool ExtentIsIntact(const ExtentHeader& header, uint64_t version, uint32_t number,
                    const std::byte* piece, uint32_t bytes);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_EXTENT_H_
