// Pages: the immutable pieces of a collection's tree, each an object of its own.
//
// A *leaf* holds elements, as bytes that mean nothing here; leaves that stand side by side may be
// joined by joining their bytes. An *inner page* names other pages, one level below it. The tree's
// *root* is the value of the key's record: a header, as bytes that mean nothing here, and for each
// of the collection's orders the names of the topmost pages.
//
//   root   kTreeMark (8 bytes), bytes in the leaves of the first order (8), header length (4),
//          number of orders (1), header; for each order: height (1), bytes of the names (4), names
//   name   size class in bits 53..48 and address in bits 47..0 (8), checksum (8), then varints:
//          bytes of the page, elements below, bytes in the leaves below, length of the first key;
//          the first key
//   inner  names
//
// A page carries no header: its name tells its checksum, so that one that is torn, recycled or
// rotten is never believed, and two pages of one address and checksum are the same.
//
// Pure; any thread. What is loaded comes from memory nodes, and nothing here trusts it.
#ifndef ONETRIP_CLIENT_CORE_TREE_PAGE_H_
#define ONETRIP_CLIENT_CORE_TREE_PAGE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"

namespace onetrip {

// Where a page lies, and which bytes it has.
struct PageRef {
  GlobalAddr addr;
  SizeClass size_class;
  uint32_t bytes = 0;
  uint64_t checksum = 0;

  friend bool operator==(const PageRef&, const PageRef&) = default;
};

// A page as the one above it, or the root, names it.
struct PageName {
  PageRef page;
  uint64_t elements = 0;    // below it, at least one
  uint64_t leaf_bytes = 0;  // in the leaves below it, or in itself
  // No key below it is smaller; but for the first page of a level, whatever it says. Empty where
  // elements have a place and no key.
  std::string first;
};

// One order of a collection's elements: the pages that the root names.
struct TreeTop {
  uint8_t height = 0;  // 0: they are leaves
  std::vector<PageName> names;
};

struct TreeRoot {
  std::string header;
  std::vector<TreeTop> tops;  // one at least; the first one's leaves, joined, are the collection
};

// A root begins with it; a list of extents, which begins with a value's length, never does.
inline constexpr uint64_t kTreeMark = 0xffff'7472'6565'0001;  // no value is that long
inline constexpr uint8_t kTreeTopsMax = 4;
inline constexpr uint8_t kTreeHeightMax = 12;
// The longest a page may be: one that is longer than its limit has an element that no cut divides.
inline constexpr uint32_t kPageBytesMax = 1024 * 1024;

bool IsTreeRoot(std::string_view value);
uint64_t PageChecksum(std::string_view page);
// Bytes that a name takes.
size_t PageNameBytes(const PageName& name);
void AppendPageName(const PageName& name, std::string* to);

std::string EncodeTreeRoot(const TreeRoot& root);
// The bytes of a root but for names.
size_t TreeRootBytes(size_t header_bytes, size_t orders);
// The header in a root; empty: it is none.
std::string_view TreeHeader(std::string_view value);
// False for bytes that no EncodeTreeRoot has made.
bool LoadTreeRoot(std::string_view value, TreeRoot* root);
// The names in an inner page. False: it is none.
bool LoadInnerPage(std::string_view page, std::vector<PageName>* names);

// The same of the page of that name, `level` levels above the leaves. False also if it is not what
// the name says.
bool LoadInnerBelow(const PageName& name, std::string_view page, size_t level, TreeTop* inner);

// Elements, and bytes in the leaves, of an order.
uint64_t ElementsIn(const TreeTop& top);
uint64_t LeafBytesIn(const TreeTop& top);

// The shortest string that is above `before` and not above `first`. REQUIRES: before < first.
std::string ShortestBetween(std::string_view before, std::string_view first);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_TREE_PAGE_H_
