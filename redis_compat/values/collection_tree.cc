#include "redis_compat/values/collection_tree.h"

#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "client_core/layout/record.h"
#include "redis_compat/values/sorted_set_tree.h"
#include "redis_compat/values/stream_leaves.h"
#include "redis_compat/values/stream_value.h"

namespace onetrip {
namespace {

constexpr unsigned kSpareBits = std::countl_zero(kScanPositionMax);
constexpr size_t kKeyBytes = sizeof(uint64_t);

// A leaf that was divided has room for others.
constexpr uint64_t kFilledPercent = 70;

// By default Redis's compact encoding of hashes ends at a quarter of that.
uint64_t CompactHashBytesMax(const TreeLimits& limits) { return uint64_t{8} * limits.packed_bytes; }

// Elements that share a leaf, whatever it holds: those of one position.
struct Group {
  uint64_t position = 0;
  std::string_view bytes;
};

uint64_t TakeGroups(PackedElements* elements, std::vector<Group>* groups) {
  const std::string_view entries = elements->entries();
  uint64_t bytes = 0;
  PackedElement element;
  for (size_t at = 0; elements->Next(&element); at = elements->at()) {
    groups->push_back({ScanPosition(element.key), entries.substr(at, elements->at() - at)});
    bytes = elements->at();
  }
  return bytes;
}

std::optional<Tree> MakeStreamTree(std::string_view packed, const TreeLimits& limits) {
  if (packed.size() < kStreamHeaderBytes) return {};
  const std::string_view header = packed.substr(0, kStreamHeaderBytes);
  std::vector<NewLeaf> leaves = StreamLeaves(packed.substr(header.size()), limits);
  if (leaves.empty()) return {};
  std::vector<std::vector<NewLeaf>> orders;
  orders.push_back(std::move(leaves));
  return Tree(std::string(header), std::move(orders), limits);
}

uint64_t CountElements(const std::vector<NewLeaf>& leaves) {
  uint64_t elements = 0;
  for (const NewLeaf& leaf : leaves) elements += leaf.elements;
  return elements;
}

}  // namespace

uint64_t ScanPosition(std::string_view key) {
  return (XXH3_64bits(key.data(), key.size()) >> kSpareBits) | 1;
}

// The bits that all positions lack come last, so that few bytes tell two of them apart.
std::string PositionKey(uint64_t position) {
  std::string key(kKeyBytes, '\0');
  position <<= kSpareBits;
  for (size_t i = kKeyBytes; i > 0; --i, position >>= 8) key[i - 1] = static_cast<char>(position);
  return key;
}

uint64_t PositionFrom(std::string_view key) {
  uint64_t bits = 0;
  for (size_t i = 0; i < kKeyBytes; ++i) {
    bits = bits << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
  }
  const bool is_between = key.size() > kKeyBytes || (bits & ((1U << kSpareBits) - 1)) != 0;
  return (bits >> kSpareBits) + (is_between ? 1 : 0);
}

std::vector<NewLeaf> ListLeaves(std::string_view entries, ListEnd from, const TreeLimits& limits) {
  std::vector<NewLeaf> leaves;
  ListCursor cursor(entries, from);
  size_t begin = cursor.at();  // where the leaf begins, seen from that end
  uint64_t elements = 0;
  const auto add_leaf = [&](size_t end) {
    const std::string_view bytes =
        entries.substr(std::min(begin, end), std::max(begin, end) - std::min(begin, end));
    leaves.push_back({std::string(bytes), elements, {}});
    begin = end;
    elements = 0;
  };
  std::string_view element;
  for (size_t at = begin; cursor.Next(&element); at = cursor.at(), ++elements) {
    const size_t bytes = std::max(begin, cursor.at()) - std::min(begin, cursor.at());
    if (elements > 0 && bytes > limits.leaf_bytes) add_leaf(at);
  }
  if (elements > 0) add_leaf(cursor.at());
  if (from == ListEnd::kTail) std::reverse(leaves.begin(), leaves.end());
  return leaves;
}

std::vector<NewLeaf> PositionLeaves(PackedElements elements, const TreeLimits& limits) {
  std::vector<Group> groups;
  const uint64_t total = TakeGroups(&elements, &groups);
  if (groups.empty()) return {};
  if (total <= limits.leaf_bytes) {
    return {{std::string(elements.entries().substr(0, total)), groups.size(), {}}};
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.position < b.position; });
  const uint64_t filled = limits.leaf_bytes * kFilledPercent / 100 + 1;
  const uint64_t wanted_leaves = (total + filled - 1) / filled;
  const uint64_t wanted_bytes = (total + wanted_leaves - 1) / wanted_leaves;

  std::vector<NewLeaf> leaves(1);
  uint64_t before = 0;  // the position of the group before
  for (auto group = groups.begin(); group != groups.end();) {
    const uint64_t position = group->position;
    uint64_t bytes = 0;
    auto end = group;
    for (; end != groups.end() && end->position == position; ++end) bytes += end->bytes.size();
    const size_t held = leaves.back().bytes.size();
    if (held > 0 && (held >= wanted_bytes || held + bytes > limits.leaf_bytes)) {
      leaves.emplace_back();
      leaves.back().bytes.reserve(wanted_bytes + bytes);
      leaves.back().first = ShortestBetween(PositionKey(before), PositionKey(position));
    }
    for (; group != end; ++group) {
      leaves.back().bytes += group->bytes;
      ++leaves.back().elements;
    }
    before = position;
  }
  return leaves;
}

bool FitPages(const std::vector<NewLeaf>& leaves) {
  return std::all_of(leaves.begin(), leaves.end(),
                     [](const NewLeaf& leaf) { return leaf.bytes.size() <= kPageBytesMax; });
}

std::optional<Tree> MakeTree(ValueType type, std::string_view packed, const TreeLimits& limits) {
  PackedHeader header;
  if (packed.size() <= limits.packed_bytes || !LoadPackedHeader(packed, &header)) return {};
  std::vector<std::vector<NewLeaf>> orders;
  switch (type) {
    case ValueType::kList:
      orders.push_back(ListLeaves(PackedEntries(packed), ListEnd::kHead, limits));
      break;
    case ValueType::kHash:
      // Redis keeps the order of the fields as long as that.
      if ((header.flags & kPackedTable) == 0 && packed.size() <= CompactHashBytesMax(limits)) {
        return {};
      }
      [[fallthrough]];
    case ValueType::kSet:
      if ((header.flags & kPackedIntegers) != 0) return {};
      orders.push_back(PositionLeaves(PackedElements(packed, type == ValueType::kHash), limits));
      break;
    case ValueType::kSortedSet:
      orders = SortedSetLeaves(packed, limits);
      if (orders.empty()) return {};
      break;
    case ValueType::kStream:
      return MakeStreamTree(packed, limits);
    case ValueType::kString:
      return {};
  }
  if (!std::all_of(orders.begin(), orders.end(), FitPages)) return {};
  header.elements = static_cast<uint32_t>(CountElements(orders.front()));
  return Tree(PackedHeaderBytes(header), std::move(orders), limits);
}

bool JoinLeaves(Tree& tree, std::string* packed) {
  if (!tree.NeedAll(/*inner_only=*/false)) return false;
  *packed = tree.header();
  packed->reserve(packed->size() + tree.leaf_bytes(0));
  LeafPlace place;
  for (bool more = tree.First(0, &place); more; more = tree.Next(0, &place)) {
    *packed += place.bytes;
  }
  return true;
}

bool SeekNumbers(Tree& tree, size_t order, uint64_t first, uint64_t elements) {
  // A leaf that is missing has about as many as one that is half full.
  const uint64_t element_bytes =
      tree.leaf_bytes(order) / std::max<uint64_t>(tree.elements(order), 1) + 1;
  const uint64_t step = tree.limits().leaf_bytes / (2 * element_bytes) + 1;
  LeafPlace leaf;
  // A damaged tree may say that it has any number.
  const uint64_t end = first + std::min<uint64_t>(elements, kMaxValueBytes);
  // Who needs more of them sees the whole value.
  const uint64_t most = tree.limits().loaded_bytes;
  for (uint64_t next = first; next < end && tree.missing_bytes() <= most;) {
    next = tree.Seek(order, next, &leaf) ? leaf.before + leaf.elements : next + step;
  }
  return tree.missing().empty();
}

PackedHeader HeaderOf(const Tree& tree) {
  PackedHeader header;
  LoadPackedHeader(tree.header(), &header);
  return header;
}

void UpdateHeader(Tree* tree, uint8_t flags) {
  PackedHeader header = HeaderOf(*tree);
  header.flags |= flags;
  header.elements = static_cast<uint32_t>(tree->elements(0));
  std::string bytes = PackedHeaderBytes(header);
  if (bytes != tree->header()) tree->set_header(std::move(bytes));
}

}  // namespace onetrip
