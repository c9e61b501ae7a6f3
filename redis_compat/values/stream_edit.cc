#include "redis_compat/values/stream_edit.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace onetrip {
namespace {

// No node grows beyond this, whatever the limits say.
constexpr uint64_t kNodeBytesMax = uint64_t{1} << 30;

bool IsFull(const StreamNode& node, uint64_t added_bytes, const StreamNodeLimits& limits) {
  const bool has_limit = limits.bytes > 0 && limits.bytes < kNodeBytesMax;
  const uint64_t bytes_max = has_limit ? limits.bytes : kNodeBytesMax;
  if (node.listpack.size() + added_bytes >= bytes_max) return true;
  StreamNodeHead head;
  return limits.entries > 0 && LoadStreamNodeHead(node.listpack, &head) &&
         head.live + head.deleted >= limits.entries;
}

// The last id of a node, of a deleted entry, too. False: it is damaged.
bool FindLastId(const StreamNode& node, EntryId* id) {
  StreamNodeReader reader(node);
  StreamEntry entry;
  while (reader.Next(&entry)) *id = entry.id;
  return !reader.is_damaged();
}

}  // namespace

void StreamEdit::ReplaceListpack(StreamNode* node, std::string listpack) {
  is_damaged_ = is_damaged_ || listpack.empty();
  node->listpack = Keep(std::move(listpack));
}

void StreamEdit::Add(const EntryId& id, std::span<const std::string_view> fields,
                     const StreamNodeLimits& limits) {
  uint64_t bytes = 0;
  for (const std::string_view part : fields) bytes += part.size();
  if (nodes_.empty() || IsFull(nodes_.back(), bytes, limits)) {
    nodes_.push_back({id, Keep(MakeStreamNode(fields))});
  } else {
    ReplaceListpack(&nodes_.back(), AppendToStreamNode(nodes_.back(), id, fields));
  }
  ++header_.length;
  ++header_.entries_added;
  header_.last_id = id;
  if (header_.length == 1) header_.first_id = id;
}

bool StreamEdit::Delete(const EntryId& id) {
  StreamEntry entry;
  if (!Find(id, &entry, &is_damaged_)) return false;
  const size_t place = FindNode(id);
  StreamNode& node = nodes_[place];
  if (LiveEntries(node) == 1) {
    nodes_.erase(nodes_.begin() + static_cast<ptrdiff_t>(place));
  } else {
    ReplaceListpack(&node, DeleteFromStreamNode(node.listpack, {&entry.flags_at, 1}));
  }
  --header_.length;
  header_.max_deleted_id = std::max(header_.max_deleted_id, id);
  if (header_.length == 0 || id == header_.first_id) RenewFirstId();
  return true;
}

void StreamEdit::RenewFirstId() {
  StreamEntries entries(*this, {});
  StreamEntry first;
  header_.first_id = entries.Next(&first) ? first.id : EntryId();
  is_damaged_ = is_damaged_ || entries.is_damaged();
}

bool StreamEdit::GoesWhole(const StreamNode& node, uint64_t live, const StreamTrim& trim) {
  if (trim.by == StreamTrim::By::kLength) return header_.length - live >= trim.length;
  // The next node begins behind this one's last entry.
  EntryId last;
  if (!FindLastId(node, &last)) is_damaged_ = true;
  return last < trim.id;
}

uint64_t StreamEdit::TrimWithin(StreamNode* node, const StreamTrim& trim) {
  StreamNodeReader reader(*node);
  std::vector<size_t> going;
  StreamEntry entry;
  while (reader.Next(&entry)) {
    const bool stays = trim.by == StreamTrim::By::kLength
                           ? header_.length - going.size() <= trim.length
                           : entry.id >= trim.id;
    if (stays) break;
    if (!entry.is_deleted) going.push_back(entry.flags_at);
  }
  is_damaged_ = is_damaged_ || reader.is_damaged();
  if (going.empty() || is_damaged_) return 0;
  ReplaceListpack(node, DeleteFromStreamNode(node->listpack, going));
  header_.length -= going.size();
  return going.size();
}

uint64_t StreamEdit::Trim(const StreamTrim& trim) {
  if (trim.by == StreamTrim::By::kNothing) return 0;
  uint64_t removed = 0;
  size_t gone = 0;
  for (StreamNode& node : nodes_) {
    if (trim.by == StreamTrim::By::kLength && header_.length <= trim.length) break;
    const uint64_t live = LiveEntries(node);
    if (trim.limit > 0 && removed + live > trim.limit) break;
    if (GoesWhole(node, live, trim)) {
      header_.length -= live;
      removed += live;
      ++gone;
      continue;
    }
    if (!trim.whole_nodes) removed += TrimWithin(&node, trim);
    break;
  }
  nodes_.erase(nodes_.begin(), nodes_.begin() + static_cast<ptrdiff_t>(gone));
  if (header_.length == 0 || removed > 0) RenewFirstId();
  return removed;
}

void StreamEdit::PutGroup(std::string_view name, const StreamGroup& group) {
  std::string bytes;
  group.AppendTo(&bytes);
  const std::string_view body = Keep(std::move(bytes));
  const auto place = std::lower_bound(
      groups_.begin(), groups_.end(), name,
      [](const Group& other, std::string_view named) { return other.name < named; });
  if (place != groups_.end() && place->name == name) {
    place->body = body;
  } else {
    groups_.insert(place, {Keep(std::string(name)), body});
  }
}

bool StreamEdit::RemoveGroup(std::string_view name) {
  const Group* const found = FindGroup(name);
  if (found == nullptr) return false;
  groups_.erase(groups_.begin() + (found - groups_.data()));
  return true;
}

std::string StreamEdit::Finish() const {
  StreamParts parts;
  size_t group_bytes = 0;
  constexpr size_t kNodeBytesBeside = 16;
  constexpr size_t kGroupBytesBeside = 16;
  for (const StreamNode& node : nodes_) parts.node_bytes += kNodeBytesBeside + node.listpack.size();
  for (const Group& group : groups_) {
    group_bytes += kGroupBytesBeside + group.name.size() + group.body.size();
  }
  parts.nodes = nodes_.size();
  parts.groups = groups_.size();
  std::string made;
  made.reserve(kStreamHeaderBytes + parts.node_bytes + group_bytes);
  made.resize(kStreamHeaderBytes);
  for (const StreamNode& node : nodes_) AppendStreamNode(node, &made);
  for (const Group& group : groups_) AppendStreamGroup(group.name, group.body, &made);
  StoreStreamHeader(header_, parts, &made);
  return made;
}

}  // namespace onetrip
