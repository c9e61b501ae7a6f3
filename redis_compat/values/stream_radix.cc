#include "redis_compat/values/stream_radix.h"

#include <algorithm>
#include <array>
#include <optional>

namespace onetrip {
namespace {

constexpr size_t kKeyBytes = 2 * sizeof(uint64_t);
using RadixKey = std::array<uint8_t, kKeyBytes>;

RadixKey RadixKeyOf(const EntryId& id) {
  RadixKey key;
  for (size_t i = 0; i < 8; ++i) {
    key[i] = static_cast<uint8_t>(id.ms >> (56 - 8 * i));
    key[8 + i] = static_cast<uint8_t>(id.sequence >> (56 - 8 * i));
  }
  return key;
}

EntryId IdOf(const RadixKey& key) {
  EntryId id;
  for (size_t i = 0; i < 8; ++i) {
    id.ms = id.ms << 8 | key[i];
    id.sequence = id.sequence << 8 | key[8 + i];
  }
  return id;
}

size_t Shared(const RadixKey& a, const RadixKey& b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin()).first - a.begin());
}

// Nodes for the keys from one place to before another, below `depth` bytes that they share.
uint32_t CountBelow(const std::vector<RadixKey>& keys, size_t from, size_t to, size_t depth) {
  const size_t shared = Shared(keys[from], keys[to - 1]);
  // One for the bytes that all share, one where they part, or end.
  uint32_t nodes = (shared > depth ? 1 : 0) + 1;
  if (to - from == 1) return nodes;
  for (size_t begin = from; begin < to;) {
    size_t end = begin + 1;
    while (end < to && keys[end][shared] == keys[begin][shared]) ++end;
    nodes += CountBelow(keys, begin, end, shared + 1);
    begin = end;
  }
  return nodes;
}

// The keys of the nodes among a stream's elements.
class NodeKeys {
 public:
  explicit NodeKeys(StreamElements& elements) : elements_(elements) {}

  std::optional<RadixKey> From(const RadixKey& key) {
    StreamElement element;
    const bool found = elements_.From({.kind = StreamKind::kNode, .id = IdOf(key)}, &element);
    return found ? KeyOf(element) : std::nullopt;
  }
  std::optional<RadixKey> Before(const RadixKey& key) {
    StreamElement element;
    const bool found = elements_.Before({.kind = StreamKind::kNode, .id = IdOf(key)}, &element);
    return found ? KeyOf(element) : std::nullopt;
  }
  // True if keys that begin with the first `depth` bytes of `key` part behind these.
  bool PartAt(const RadixKey& key, size_t depth) {
    RadixKey low = key;
    RadixKey high = key;
    std::fill(low.begin() + static_cast<ptrdiff_t>(depth), low.end(), uint8_t{0});
    std::fill(high.begin() + static_cast<ptrdiff_t>(depth), high.end(), uint8_t{UINT8_MAX});
    const std::optional<RadixKey> first = From(low);
    std::optional<RadixKey> last = From(high);
    if (!last || *last != high) last = Before(high);
    return first && last && Shared(*first, key) >= depth && Shared(*last, key) >= depth &&
           (*first)[depth] != (*last)[depth];
  }

 private:
  static std::optional<RadixKey> KeyOf(const StreamElement& element) {
    if (element.key.kind != StreamKind::kNode) return std::nullopt;
    return RadixKeyOf(element.key.id);
  }

  StreamElements& elements_;
};

}  // namespace

uint32_t CountRadixNodes(const std::vector<EntryId>& ids) {
  if (ids.empty()) return 1;
  std::vector<RadixKey> keys;
  keys.reserve(ids.size());
  for (const EntryId& id : ids) keys.push_back(RadixKeyOf(id));
  return CountBelow(keys, 0, keys.size(), 0);
}

uint32_t RadixNodesFor(const EntryId& id, StreamElements& elements) {
  NodeKeys keys(elements);
  const RadixKey key = RadixKeyOf(id);
  const std::optional<RadixKey> before = keys.Before(key);
  const std::optional<RadixKey> behind = keys.From(key);
  // The root is there without any.
  if (!before && !behind) return 1;
  const size_t with_before = before ? Shared(*before, key) : 0;
  const size_t with_behind = behind ? Shared(*behind, key) : 0;
  // The key leaves the others' way at this byte.
  const size_t depth = std::max(with_before, with_behind);
  if (depth >= kKeyBytes) return 0;
  const RadixKey& beside = before && with_before == depth ? *before : *behind;
  const uint32_t own = 1 + (depth + 1 < kKeyBytes ? 1 : 0);
  if (keys.PartAt(beside, depth)) return own;
  // It parts bytes that were one node's: those before it, if any, and those behind it are others.
  const bool has_front = depth > 0 && !keys.PartAt(beside, depth - 1);
  const bool has_back = depth + 1 < kKeyBytes && !keys.PartAt(beside, depth + 1);
  return own + (has_front ? 1 : 0) + (has_back ? 1 : 0);
}

}  // namespace onetrip
