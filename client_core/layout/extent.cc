#include "client_core/layout/extent.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr int kClassShift = kAddrBits;
constexpr uint64_t kAddrMask = (1ULL << kAddrBits) - 1;

uint64_t WordOf(const ExtentRef& ref) {
  return uint64_t{ref.size_class.index()} << kClassShift | ref.addr.bits();
}

uint64_t Checksum(const ExtentHeader& header, const std::byte* piece) {
  constexpr size_t kFrom = offsetof(ExtentHeader, version);
  const uint64_t seed =
      XXH3_64bits(reinterpret_cast<const std::byte*>(&header) + kFrom, sizeof(header) - kFrom);
  return XXH3_64bits_withSeed(piece, header.bytes, seed);
}

}  // namespace

uint32_t ExtentList::BytesOf(size_t number) const {
  const uint64_t before = number * uint64_t{extent_bytes};
  return static_cast<uint32_t>(std::min<uint64_t>(extent_bytes, value_bytes - before));
}

ExtentList PlanExtents(uint64_t value_bytes, uint32_t extent_bytes) {
  CHECK(extent_bytes > 0 && extent_bytes <= kExtentBytesMax);
  ExtentList list;
  list.value_bytes = value_bytes;
  list.extent_bytes = extent_bytes;
  list.extents.resize((value_bytes + extent_bytes - 1) / extent_bytes);
  for (size_t i = 0; i < list.extents.size(); ++i) {
    list.extents[i].size_class = SizeClass::For(kExtentHeaderBytes + list.BytesOf(i));
  }
  return list;
}

std::string EncodeExtentList(const ExtentList& list) {
  std::string value(ExtentListBytes(list.extents.size()), '\0');
  const auto count = static_cast<uint32_t>(list.extents.size());
  std::memcpy(value.data(), &list.value_bytes, 8);
  std::memcpy(value.data() + 8, &list.extent_bytes, 4);
  std::memcpy(value.data() + 12, &count, 4);
  char* at = value.data() + kExtentListHeaderBytes;
  for (const ExtentRef& ref : list.extents) {
    const uint64_t word = WordOf(ref);
    std::memcpy(at, &word, 8);
    at += 8;
  }
  return value;
}

bool LoadExtentList(std::string_view value, ExtentList* list) {
  if (value.size() < kExtentListHeaderBytes) return false;
  uint32_t count = 0;
  std::memcpy(&list->value_bytes, value.data(), 8);
  std::memcpy(&list->extent_bytes, value.data() + 8, 4);
  std::memcpy(&count, value.data() + 12, 4);
  if (value.size() != ExtentListBytes(count) || list->extent_bytes == 0 ||
      list->extent_bytes > kExtentBytesMax || list->value_bytes > kMaxValueBytes ||
      (list->value_bytes + list->extent_bytes - 1) / list->extent_bytes != count) {
    return false;
  }
  list->extents.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, value.data() + kExtentListHeaderBytes + i * 8, 8);
    ExtentRef& ref = list->extents[i];
    ref.addr = GlobalAddr(word & kAddrMask);
    ref.size_class = SizeClass(static_cast<uint8_t>(word >> kClassShift));
    if (ref.size_class != SizeClass::For(kExtentHeaderBytes + list->BytesOf(i))) return false;
  }
  return true;
}

ExtentHeader MakeExtentHeader(uint64_t version, uint32_t number, const std::byte* piece,
                              uint32_t bytes) {
  ExtentHeader header{0, version, number, bytes};
  header.checksum = Checksum(header, piece);
  return header;
}

bool ExtentIsIntact(const ExtentHeader& header, uint64_t version, uint32_t number,
                    const std::byte* piece, uint32_t bytes) {
  return header.version == version && header.number == number && header.bytes == bytes &&
         header.checksum == Checksum(header, piece);
}

}  // namespace onetrip
