#include "redis_compat/values/stream_node.h"

namespace onetrip {
namespace {

constexpr int64_t kDeleted = 1;
constexpr int64_t kSameFields = 2;
constexpr int64_t kFlagsMax = kDeleted | kSameFields;
// Flags, ms and sequence.
constexpr int64_t kFixedParts = 3;

bool TakeCount(ListpackCursor* cursor, uint64_t* count) {
  int64_t number = 0;
  if (!cursor->NextNumber(&number) || number < 0) return false;
  *count = static_cast<uint64_t>(number);
  return true;
}

bool HasFields(const StreamNode& node, const StreamNodeHead& head,
               std::span<const std::string_view> fields) {
  if (head.names * 2 != fields.size()) return false;
  ListpackCursor names(node.listpack, head.names_at);
  ListpackEntry entry;
  ListpackNumberText number;
  for (size_t i = 0; i < fields.size(); i += 2) {
    if (!names.Next(&entry) || TextOf(entry, number) != fields[i]) return false;
  }
  return true;
}

// Appends an entry without the number of its parts; returns that.
uint64_t AppendEntry(const EntryId& id, const EntryId& node_id, bool has_same_fields,
                     std::span<const std::string_view> fields, std::string* listpack) {
  AppendListpackNumber(has_same_fields ? kSameFields : 0, listpack);
  AppendListpackNumber(static_cast<int64_t>(id.ms - node_id.ms), listpack);
  AppendListpackNumber(static_cast<int64_t>(id.sequence - node_id.sequence), listpack);
  const auto count = static_cast<int64_t>(fields.size() / 2);
  if (!has_same_fields) AppendListpackNumber(count, listpack);
  for (size_t i = 0; i < fields.size(); i += 2) {
    if (!has_same_fields) AppendListpackText(fields[i], listpack);
    AppendListpackText(fields[i + 1], listpack);
  }
  const int64_t parts = kFixedParts + count + (has_same_fields ? 0 : count + 1);
  AppendListpackNumber(parts, listpack);
  return static_cast<uint64_t>(parts) + 1;
}

// The front of a listpack up to the names.
std::string BeginNode(uint64_t live, uint64_t deleted) {
  std::string listpack = BeginListpack();
  AppendListpackNumber(static_cast<int64_t>(live), &listpack);
  AppendListpackNumber(static_cast<int64_t>(deleted), &listpack);
  return listpack;
}

// The byte behind the first two entries. REQUIRES: LoadStreamNodeHead().
size_t BehindCounts(std::string_view listpack) {
  ListpackCursor cursor(listpack);
  cursor.Skip(2);
  return cursor.at();
}

}  // namespace

bool LoadStreamNodeHead(std::string_view listpack, StreamNodeHead* head) {
  uint64_t entries = 0;
  if (!LoadListpackHead(listpack, &entries)) return false;
  ListpackCursor cursor(listpack);
  if (!TakeCount(&cursor, &head->live) || !TakeCount(&cursor, &head->deleted) ||
      !TakeCount(&cursor, &head->names)) {
    return false;
  }
  head->names_at = cursor.at();
  int64_t zero = 0;
  if (!cursor.Skip(head->names) || !cursor.NextNumber(&zero) || zero != 0) return false;
  head->entries_at = cursor.at();
  return true;
}

uint64_t LiveEntries(const StreamNode& node) {
  uint64_t live = 0;
  ListpackCursor cursor(node.listpack);
  return TakeCount(&cursor, &live) ? live : 0;
}

StreamNodeReader::StreamNodeReader(const StreamNode& node) : node_(node), cursor_(node.listpack) {
  is_damaged_ = !LoadStreamNodeHead(node.listpack, &head_);
  if (!is_damaged_) cursor_ = ListpackCursor(node.listpack, head_.entries_at);
}

bool StreamNodeReader::Next(StreamEntry* entry) {
  if (is_damaged_) return false;
  if (cursor_.is_at_end()) {
    is_damaged_ = live_ != head_.live || deleted_ != head_.deleted;
    return false;
  }
  if (!TakeEntry(entry)) return Damaged();
  const bool is_first = live_ + deleted_ == 0;
  if (is_first ? entry->id < node_.id : entry->id <= before_) return Damaged();
  before_ = entry->id;
  ++(entry->is_deleted ? deleted_ : live_);
  return true;
}

bool StreamNodeReader::TakeEntry(StreamEntry* entry) {
  int64_t flags = 0;
  int64_t ms = 0;
  int64_t sequence = 0;
  entry->listpack = node_.listpack;
  entry->flags_at = cursor_.at();
  if (!cursor_.NextNumber(&flags) || flags < 0 || flags > kFlagsMax) return false;
  // Its byte is the number itself, which a deletion changes.
  if (node_.listpack[entry->flags_at] != static_cast<char>(flags)) return false;
  if (!cursor_.NextNumber(&ms) || !cursor_.NextNumber(&sequence)) return false;
  entry->id = {node_.id.ms + static_cast<uint64_t>(ms),
               node_.id.sequence + static_cast<uint64_t>(sequence)};
  entry->is_deleted = (flags & kDeleted) != 0;
  const bool has_same_fields = (flags & kSameFields) != 0;
  entry->fields = head_.names;
  entry->names_at = has_same_fields ? head_.names_at : 0;
  if (!has_same_fields && !TakeCount(&cursor_, &entry->fields)) return false;
  // No listpack has as many.
  if (entry->fields > UINT32_MAX) return false;
  entry->values_at = cursor_.at();
  const auto count = static_cast<int64_t>(entry->fields);
  if (!cursor_.Skip(has_same_fields ? entry->fields : 2 * entry->fields)) return false;
  int64_t parts = 0;
  return cursor_.NextNumber(&parts) &&
         parts == kFixedParts + count + (has_same_fields ? 0 : count + 1);
}

bool StreamFields::Next(std::string_view* name, std::string_view* value) {
  if (left_ == 0) return false;
  --left_;
  ListpackEntry entry;
  if (!(has_names_ ? values_ : names_).Next(&entry)) return false;
  *name = TextOf(entry, name_number_);
  if (!values_.Next(&entry)) return false;
  *value = TextOf(entry, value_number_);
  return true;
}

std::string MakeStreamNode(std::span<const std::string_view> fields) {
  std::string listpack = BeginNode(/*live=*/1, /*deleted=*/0);
  AppendListpackNumber(static_cast<int64_t>(fields.size() / 2), &listpack);
  for (size_t i = 0; i < fields.size(); i += 2) AppendListpackText(fields[i], &listpack);
  AppendListpackNumber(0, &listpack);
  const uint64_t head_parts = 4 + fields.size() / 2;
  const uint64_t parts = AppendEntry({}, {}, /*has_same_fields=*/true, fields, &listpack);
  EndListpack(head_parts + parts, &listpack);
  return listpack;
}

std::string AppendToStreamNode(const StreamNode& node, const EntryId& id,
                               std::span<const std::string_view> fields) {
  StreamNodeHead head;
  uint64_t entries = 0;
  if (!LoadStreamNodeHead(node.listpack, &head) || !LoadListpackHead(node.listpack, &entries)) {
    return {};
  }
  std::string listpack = BeginNode(head.live + 1, head.deleted);
  const std::string_view rest = node.listpack.substr(BehindCounts(node.listpack));
  listpack += rest.substr(0, rest.size() - 1);
  const uint64_t parts = AppendEntry(id, node.id, HasFields(node, head, fields), fields, &listpack);
  EndListpack(entries == kListpackMany ? entries : entries + parts, &listpack);
  return listpack;
}

std::string DeleteFromStreamNode(std::string_view listpack, std::span<const size_t> flags_at) {
  StreamNodeHead head;
  uint64_t entries = 0;
  if (!LoadStreamNodeHead(listpack, &head) || !LoadListpackHead(listpack, &entries) ||
      head.live < flags_at.size()) {
    return {};
  }
  std::string made = BeginNode(head.live - flags_at.size(), head.deleted + flags_at.size());
  const size_t behind = BehindCounts(listpack);
  const size_t made_behind = made.size();
  made += listpack.substr(behind, listpack.size() - behind - 1);
  for (const size_t at : flags_at) {
    char& flags = made[made_behind + at - behind];
    flags = static_cast<char>(flags | kDeleted);
  }
  EndListpack(entries, &made);
  return made;
}

}  // namespace onetrip
