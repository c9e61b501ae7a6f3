#include "redis_compat/values/stream_value.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "client_core/base/check.h"
#include "redis_compat/values/rdb_wire.h"

namespace onetrip {
namespace {

constexpr size_t kNodeIdBytes = 2 * sizeof(uint64_t);

bool TakeId(RdbReader* reader, EntryId* id) {
  return reader->Take(&id->ms) && reader->Take(&id->sequence);
}
void AppendId(const EntryId& id, std::string* to) {
  AppendRdbNumber(id.ms, to);
  AppendRdbNumber(id.sequence, to);
}

bool Take32(RdbReader* reader, uint64_t* number) {
  uint32_t bits = 0;
  if (!reader->Take(&bits)) return false;
  *number = bits;
  return true;
}

bool LoadHeader(std::string_view value, StreamHeader* header, StreamParts* parts) {
  PackedHeader packed;
  if (value.size() < kStreamHeaderBytes || !LoadPackedHeader(value, &packed)) return false;
  header->length = packed.elements;
  RdbReader reader(value.substr(kPackedHeaderBytes));
  return TakeId(&reader, &header->last_id) && TakeId(&reader, &header->first_id) &&
         TakeId(&reader, &header->max_deleted_id) && reader.Take(&header->entries_added) &&
         Take32(&reader, &parts->node_bytes) && Take32(&reader, &parts->nodes) &&
         Take32(&reader, &parts->groups);
}

using RadixKey = std::array<uint8_t, kNodeIdBytes>;

RadixKey RadixKeyOf(const EntryId& id) {
  RadixKey key;
  for (size_t i = 0; i < 8; ++i) {
    key[i] = static_cast<uint8_t>(id.ms >> (56 - 8 * i));
    key[8 + i] = static_cast<uint8_t>(id.sequence >> (56 - 8 * i));
  }
  return key;
}

// Nodes for the keys from one place to before another, below `depth` bytes that they share.
uint64_t CountBelow(const std::vector<RadixKey>& keys, size_t from, size_t to, size_t depth) {
  const RadixKey& first = keys[from];
  const RadixKey& last = keys[to - 1];
  const auto split = std::mismatch(first.begin() + static_cast<ptrdiff_t>(depth), first.end(),
                                   last.begin() + static_cast<ptrdiff_t>(depth));
  const auto shared = static_cast<size_t>(split.first - first.begin());
  // One for the bytes that all share, one where they part, or end.
  uint64_t nodes = (shared > depth ? 1 : 0) + 1;
  if (to - from == 1) return nodes;
  for (size_t begin = from; begin < to;) {
    size_t end = begin + 1;
    while (end < to && keys[end][shared] == keys[begin][shared]) ++end;
    nodes += CountBelow(keys, begin, end, shared + 1);
    begin = end;
  }
  return nodes;
}

}  // namespace

bool HasGapsBehind(const StreamHeader& header, const EntryId& id) {
  if (header.length == 0 || header.max_deleted_id.is_zero()) return false;
  return header.first_id <= header.max_deleted_id && id <= header.max_deleted_id;
}

int64_t EntriesAddedUpTo(const StreamHeader& header, const EntryId& id) {
  const uint64_t added = header.entries_added;
  if (added == 0) return 0;
  if (id == header.last_id || (header.length == 0 && id < header.last_id)) {
    return static_cast<int64_t>(added);
  }
  if (id > header.last_id) return StreamGroup::kUnknownReads;
  const bool has_gaps =
      !header.max_deleted_id.is_zero() && header.max_deleted_id >= header.first_id;
  if (has_gaps || id > header.first_id) return StreamGroup::kUnknownReads;
  return static_cast<int64_t>(added - header.length + (id == header.first_id ? 1 : 0));
}

void StoreStreamHeader(const StreamHeader& header, const StreamParts& parts, std::string* value) {
  CHECK(value->size() >= kStreamHeaderBytes);
  std::string bytes = PackedHeaderBytes({0, static_cast<uint32_t>(header.length)});
  AppendId(header.last_id, &bytes);
  AppendId(header.first_id, &bytes);
  AppendId(header.max_deleted_id, &bytes);
  AppendRdbNumber(header.entries_added, &bytes);
  AppendRdbNumber(static_cast<uint32_t>(parts.node_bytes), &bytes);
  AppendRdbNumber(static_cast<uint32_t>(parts.nodes), &bytes);
  AppendRdbNumber(static_cast<uint32_t>(parts.groups), &bytes);
  CHECK(bytes.size() == kStreamHeaderBytes);
  std::memcpy(value->data(), bytes.data(), bytes.size());
}

void AppendStreamNode(const StreamNode& node, std::string* value) {
  AppendId(node.id, value);
  value->append(node.listpack);
}

void AppendStreamGroup(std::string_view name, std::string_view body, std::string* value) {
  AppendPackedEntry(name, value);
  AppendRdbNumber(static_cast<uint32_t>(body.size()), value);
  value->append(body);
}

bool StreamValue::Load(std::string_view value) {
  header_ = StreamHeader();
  nodes_.clear();
  groups_.clear();
  if (value.empty()) return true;
  StreamParts parts;
  if (!LoadHeader(value, &header_, &parts)) return false;
  value.remove_prefix(kStreamHeaderBytes);
  return parts.node_bytes <= value.size() &&
         LoadParts(value.substr(0, parts.node_bytes), value.substr(parts.node_bytes), parts);
}

bool StreamValue::LoadParts(std::string_view nodes, std::string_view groups,
                            const StreamParts& parts) {
  if (parts.nodes > nodes.size() / kNodeIdBytes) return false;
  nodes_.reserve(parts.nodes);
  RdbReader reader(nodes);
  uint64_t live = 0;
  while (reader.bytes_left() > 0) {
    StreamNode node;
    if (!TakeId(&reader, &node.id)) return false;
    const size_t bytes = ListpackBytes(nodes.substr(nodes.size() - reader.bytes_left()));
    if (bytes == 0 || !reader.Take(bytes, &node.listpack)) return false;
    if (!nodes_.empty() && node.id <= nodes_.back().id) return false;
    nodes_.push_back(node);
    const uint64_t of_node = LiveEntries(node);
    if (of_node > header_.length - live) return false;
    live += of_node;
  }
  if (nodes_.size() != parts.nodes || live != header_.length) return false;
  if (!nodes_.empty() && nodes_.back().id > header_.last_id) return false;
  for (PackedCursor cursor(groups); cursor.at() < groups.size();) {
    Group group;
    if (!cursor.Next(&group.name)) return false;
    RdbReader rest(groups.substr(cursor.at()));
    uint64_t bytes = 0;
    if (!Take32(&rest, &bytes) || !rest.Take(bytes, &group.body)) return false;
    if (!groups_.empty() && group.name <= groups_.back().name) return false;
    groups_.push_back(group);
    cursor = PackedCursor(groups, groups.size() - rest.bytes_left());
  }
  return groups_.size() == parts.groups;
}

size_t StreamValue::FindNode(const EntryId& id) const {
  const auto behind = std::upper_bound(
      nodes_.begin(), nodes_.end(), id,
      [](const EntryId& other, const StreamNode& node) { return other < node.id; });
  const auto place = static_cast<size_t>(behind - nodes_.begin());
  return place == 0 ? 0 : place - 1;
}

bool StreamValue::Find(const EntryId& id, StreamEntry* entry, bool* is_damaged) const {
  StreamEntries entries(*this, {id, id});
  const bool found = entries.Next(entry);
  *is_damaged = *is_damaged || entries.is_damaged();
  return found;
}

const StreamValue::Group* StreamValue::FindGroup(std::string_view name) const {
  const auto found = std::lower_bound(
      groups_.begin(), groups_.end(), name,
      [](const Group& group, std::string_view other) { return group.name < other; });
  return found == groups_.end() || found->name != name ? nullptr : &*found;
}

StreamEntries::StreamEntries(const StreamValue& stream, const StreamRange& range)
    : stream_(stream),
      range_(range),
      next_node_(stream.FindNode(range.reverse ? range.last : range.first)) {
  if (range.reverse && !stream.nodes().empty()) ++next_node_;
}

bool StreamEntries::TakeNode() {
  if (is_over_ || next_node_ == (range_.reverse ? 0 : stream_.nodes().size())) return false;
  const size_t place = range_.reverse ? --next_node_ : next_node_++;
  const StreamNode& node = stream_.nodes()[place];
  const bool is_last = place + 1 == stream_.nodes().size();
  const EntryId end = is_last ? kStreamIdMax : stream_.nodes()[place + 1].id;
  // Nodes are by id: all others are beyond the range, too.
  is_over_ = range_.reverse ? node.id <= range_.first : node.id > range_.last;
  entries_.clear();
  next_entry_ = 0;
  StreamNodeReader reader(node);
  StreamEntry entry;
  while (reader.Next(&entry) && entry.id <= range_.last) {
    is_damaged_ = is_damaged_ || (entry.id >= end && !is_last);
    if (!entry.is_deleted && entry.id >= range_.first) entries_.push_back(entry);
  }
  is_damaged_ = is_damaged_ || reader.is_damaged();
  if (range_.reverse) std::reverse(entries_.begin(), entries_.end());
  return !is_damaged_;
}

bool StreamEntries::Next(StreamEntry* entry) {
  while (next_entry_ == entries_.size()) {
    if (!TakeNode()) return false;
  }
  *entry = entries_[next_entry_++];
  return true;
}

bool FindLastStreamId(const StreamValue& stream, EntryId* id) {
  StreamEntries entries(stream, {.reverse = true});
  StreamEntry last;
  *id = entries.Next(&last) ? last.id : EntryId();
  return !entries.is_damaged();
}

uint64_t CountRadixTreeNodes(const std::vector<StreamNode>& nodes) {
  if (nodes.empty()) return 1;
  std::vector<RadixKey> keys;
  keys.reserve(nodes.size());
  for (const StreamNode& node : nodes) keys.push_back(RadixKeyOf(node.id));
  return CountBelow(keys, 0, keys.size(), 0);
}

}  // namespace onetrip
