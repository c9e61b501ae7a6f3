#include "client_core/tree/page.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr int kPageClassShift = kAddrBits;
constexpr int kPageWordBits = kPageClassShift + 6;
constexpr uint64_t kPageAddrMask = (1ULL << kAddrBits) - 1;
// More elements, or bytes in leaves, than any tree has: sums of such numbers never overflow.
constexpr uint64_t kTreeSumMax = 1ULL << 56;

size_t VarintBytes(uint64_t number) {
  size_t bytes = 1;
  for (; number >= 0x80; number >>= 7) ++bytes;
  return bytes;
}

void AppendVarint(uint64_t number, std::string* to) {
  for (; number >= 0x80; number >>= 7) to->push_back(static_cast<char>(number | 0x80));
  to->push_back(static_cast<char>(number));
}

template <typename Number>
void AppendFixed(Number number, std::string* to) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  to->append(bytes, sizeof(number));
}

// Takes pieces from the front of bytes that may be anything.
class PageReader {
 public:
  explicit PageReader(std::string_view bytes) : left_(bytes) {}

  [[nodiscard]] bool empty() const { return left_.empty(); }

  template <typename Number>
  bool Take(Number* number) {
    std::string_view bytes;
    if (!TakeBytes(sizeof(*number), &bytes)) return false;
    std::memcpy(number, bytes.data(), sizeof(*number));
    return true;
  }
  bool TakeBytes(uint64_t count, std::string_view* bytes) {
    if (count > left_.size()) return false;
    *bytes = left_.substr(0, count);
    left_.remove_prefix(count);
    return true;
  }
  // False also for one that is longer than it has to be: there is one way to write a number.
  bool TakeVarint(uint64_t* number) {
    *number = 0;
    for (int shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(left_.front());
      left_.remove_prefix(1);
      if (shift == 63 && byte > 1) return false;
      *number |= uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return shift == 0 || byte != 0;
    }
    return false;
  }

 private:
  std::string_view left_;
};

bool TakePageName(PageReader* from, PageName* name) {
  uint64_t word = 0;
  uint64_t bytes = 0;
  uint64_t first_bytes = 0;
  std::string_view first;
  if (!from->Take(&word) || !from->Take(&name->page.checksum) || !from->TakeVarint(&bytes) ||
      !from->TakeVarint(&name->elements) || !from->TakeVarint(&name->leaf_bytes) ||
      !from->TakeVarint(&first_bytes) || !from->TakeBytes(first_bytes, &first)) {
    return false;
  }
  if (word >> kPageWordBits != 0) return false;
  name->page.addr = GlobalAddr(word & kPageAddrMask);
  name->page.size_class = SizeClass(static_cast<uint8_t>(word >> kPageClassShift));
  const SizeClass size_class = name->page.size_class;
  if (name->page.addr.is_null() || !size_class.is_valid() || size_class.is_root()) return false;
  if (bytes == 0 || bytes > size_class.bytes() || bytes > kPageBytesMax) return false;
  if (name->elements == 0 || name->leaf_bytes == 0) return false;
  name->page.bytes = static_cast<uint32_t>(bytes);
  name->first = first;
  return true;
}

// All names in `bytes`, which have nothing else.
bool LoadPageNames(std::string_view bytes, std::vector<PageName>* names) {
  PageReader reader(bytes);
  uint64_t elements = 0;
  uint64_t leaf_bytes = 0;
  names->clear();
  while (!reader.empty()) {
    PageName& name = names->emplace_back();
    if (!TakePageName(&reader, &name)) return false;
    if (name.elements > kTreeSumMax || name.leaf_bytes > kTreeSumMax) return false;
    elements += name.elements;
    leaf_bytes += name.leaf_bytes;
    if (elements > kTreeSumMax || leaf_bytes > kTreeSumMax) return false;
  }
  return true;
}

bool TakeTreeTop(PageReader* from, TreeTop* top) {
  uint32_t bytes = 0;
  std::string_view names;
  if (!from->Take(&top->height) || !from->Take(&bytes) || !from->TakeBytes(bytes, &names) ||
      top->height > kTreeHeightMax || !LoadPageNames(names, &top->names)) {
    return false;
  }
  if (top->height > 0) return !top->names.empty();
  return std::all_of(top->names.begin(), top->names.end(),
                     [](const PageName& name) { return name.leaf_bytes == name.page.bytes; });
}

}  // namespace

bool IsTreeRoot(std::string_view value) {
  uint64_t mark = 0;
  return PageReader(value).Take(&mark) && mark == kTreeMark;
}

uint64_t PageChecksum(std::string_view page) { return XXH3_64bits(page.data(), page.size()); }

size_t PageNameBytes(const PageName& name) {
  return 8 + 8 + VarintBytes(name.page.bytes) + VarintBytes(name.elements) +
         VarintBytes(name.leaf_bytes) + VarintBytes(name.first.size()) + name.first.size();
}

void AppendPageName(const PageName& name, std::string* to) {
  AppendFixed(uint64_t{name.page.size_class.index()} << kPageClassShift | name.page.addr.bits(),
              to);
  AppendFixed(name.page.checksum, to);
  AppendVarint(name.page.bytes, to);
  AppendVarint(name.elements, to);
  AppendVarint(name.leaf_bytes, to);
  AppendVarint(name.first.size(), to);
  to->append(name.first);
}

std::string EncodeTreeRoot(const TreeRoot& root) {
  CHECK(!root.tops.empty() && root.tops.size() <= kTreeTopsMax);
  std::string value;
  AppendFixed(kTreeMark, &value);
  AppendFixed(LeafBytesIn(root.tops[0]), &value);
  AppendFixed(static_cast<uint32_t>(root.header.size()), &value);
  AppendFixed(static_cast<uint8_t>(root.tops.size()), &value);
  value += root.header;
  for (const TreeTop& top : root.tops) {
    std::string names;
    for (const PageName& name : top.names) AppendPageName(name, &names);
    AppendFixed(top.height, &value);
    AppendFixed(static_cast<uint32_t>(names.size()), &value);
    value += names;
  }
  return value;
}

size_t TreeRootBytes(size_t header_bytes, size_t orders) {
  return 8 + 8 + 4 + 1 + header_bytes + orders * (1 + 4);
}

bool LoadTreeRoot(std::string_view value, TreeRoot* root) {
  PageReader reader(value);
  uint64_t mark = 0;
  uint64_t leaf_bytes = 0;
  uint32_t header_bytes = 0;
  uint8_t orders = 0;
  std::string_view header;
  if (!reader.Take(&mark) || mark != kTreeMark || !reader.Take(&leaf_bytes) ||
      !reader.Take(&header_bytes) || !reader.Take(&orders) ||
      !reader.TakeBytes(header_bytes, &header) || orders == 0 || orders > kTreeTopsMax) {
    return false;
  }
  root->header = header;
  root->tops.assign(orders, TreeTop());
  for (TreeTop& top : root->tops) {
    if (!TakeTreeTop(&reader, &top)) return false;
  }
  return reader.empty() && LeafBytesIn(root->tops[0]) == leaf_bytes;
}

std::string_view TreeHeader(std::string_view value) {
  constexpr size_t kAt = 8 + 8 + 4 + 1;
  uint32_t bytes = 0;
  if (!IsTreeRoot(value) || value.size() < kAt) return {};
  std::memcpy(&bytes, value.data() + 16, sizeof(bytes));
  return value.substr(kAt, bytes);
}

bool LoadInnerPage(std::string_view page, std::vector<PageName>* names) {
  return page.size() <= kPageBytesMax && LoadPageNames(page, names) && !names->empty();
}

bool LoadInnerBelow(const PageName& name, std::string_view page, size_t level, TreeTop* inner) {
  if (page.size() != name.page.bytes || !LoadInnerPage(page, &inner->names) ||
      ElementsIn(*inner) != name.elements || LeafBytesIn(*inner) != name.leaf_bytes) {
    return false;
  }
  return level > 1 ||
         std::all_of(inner->names.begin(), inner->names.end(),
                     [](const PageName& one) { return one.leaf_bytes == one.page.bytes; });
}

uint64_t ElementsIn(const TreeTop& top) {
  uint64_t elements = 0;
  for (const PageName& name : top.names) elements += name.elements;
  return elements;
}

uint64_t LeafBytesIn(const TreeTop& top) {
  uint64_t bytes = 0;
  for (const PageName& name : top.names) bytes += name.leaf_bytes;
  return bytes;
}

std::string ShortestBetween(std::string_view before, std::string_view first) {
  CHECK(before < first);
  const size_t both = std::min(before.size(), first.size());
  const auto differ = std::mismatch(before.begin(), before.begin() + both, first.begin());
  return std::string(first.begin(), differ.second + 1);
}

}  // namespace onetrip
