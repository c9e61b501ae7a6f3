#include "redis_compat/values/stream_edit.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "redis_compat/values/collection_tree.h"
#include "redis_compat/values/stream_radix.h"

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

void StreamEdit::PutNode(const EntryId& id, std::string_view listpack) {
  if (listpack.empty()) {
    elements_.Damaged();
    return;
  }
  elements_.Put(NodeElement({id, listpack}));
}

// REQUIRES: the elements do not have it.
void StreamEdit::CountNode(const EntryId& id, bool comes) {
  const uint32_t radix_nodes = RadixNodesFor(id, elements_);
  header_.nodes += comes ? 1 : -1;
  header_.radix_nodes += comes ? radix_nodes : -radix_nodes;
}

void StreamEdit::Add(const EntryId& id, std::span<const std::string_view> fields,
                     const StreamNodeLimits& limits) {
  uint64_t bytes = 0;
  for (const std::string_view part : fields) bytes += part.size();
  StreamNode last;
  EntryId end;
  bool is_new = !LastNode(&last) || IsFull(last, bytes, limits);
  // XSETID has gone back behind entries that were deleted, which the node still has.
  if (!is_new && id <= header_.max_deleted_id) is_new = FindLastId(last, &end) && id <= end;
  if (is_new) {
    CountNode(id, /*comes=*/true);
    PutNode(id, MakeStreamNode(fields));
  } else {
    PutNode(last.id, AppendToStreamNode(last, id, fields));
  }
  ++header_.length;
  ++header_.entries_added;
  header_.last_id = id;
  if (header_.length == 1) header_.first_id = id;
}

uint64_t StreamEdit::Delete(std::span<const EntryId> ids) {
  uint64_t deleted = 0;
  bool is_first = false;
  for (const EntryId& id : ids) {
    if (!DeleteOne(id)) continue;
    ++deleted;
    is_first = is_first || id == header_.first_id;
  }
  // Once: it goes over all that is gone.
  if (deleted > 0 && (header_.length == 0 || is_first)) RenewFirstId();
  return deleted;
}

bool StreamEdit::DeleteOne(const EntryId& id) {
  StreamEntry entry;
  StreamNode node;
  if (!Find(id, &entry) || !FindNode(id, &node)) return false;
  if (LiveEntries(node) == 1) {
    EraseNode(node.id);
  } else {
    PutNode(node.id, DeleteFromStreamNode(node.listpack, {&entry.flags_at, 1}));
  }
  --header_.length;
  header_.max_deleted_id = std::max(header_.max_deleted_id, id);
  return true;
}

void StreamEdit::EraseNode(const EntryId& id) {
  StreamElement element;
  if (!elements_.Find(KeyOfNode(id), &element)) {
    elements_.Damaged();
    return;
  }
  elements_.Erase(element);
  CountNode(id, /*comes=*/false);
}

void StreamEdit::SetLastId(const EntryId& id) {
  header_.last_id = id;
  // Nodes in which all is deleted are no place for what comes next.
  StreamNode last;
  while (LastNode(&last) && last.id > id && !is_damaged()) EraseNode(last.id);
}

void StreamEdit::RenewFirstId() {
  StreamEntries entries(*this, {});
  StreamEntry first;
  header_.first_id = entries.Next(&first) ? first.id : EntryId();
}

bool StreamEdit::GoesWhole(const StreamNode& node, uint64_t live, const StreamTrim& trim) {
  if (trim.by == StreamTrim::By::kLength) return header_.length - live >= trim.length;
  // The next node begins behind this one's last entry.
  EntryId last;
  if (!FindLastId(node, &last)) elements_.Damaged();
  return last < trim.id;
}

uint64_t StreamEdit::TrimWithin(const StreamNode& node, const StreamTrim& trim) {
  StreamNodeReader reader(node);
  std::vector<size_t> going;
  StreamEntry entry;
  while (reader.Next(&entry)) {
    const bool stays = trim.by == StreamTrim::By::kLength
                           ? header_.length - going.size() <= trim.length
                           : entry.id >= trim.id;
    if (stays) break;
    if (!entry.is_deleted) going.push_back(entry.flags_at);
  }
  if (reader.is_damaged()) elements_.Damaged();
  if (going.empty() || is_damaged()) return 0;
  PutNode(node.id, DeleteFromStreamNode(node.listpack, going));
  header_.length -= going.size();
  return going.size();
}

// Asks for the nodes that go together.
void StreamEdit::WantTrimmed(const StreamTrim& trim) {
  uint64_t entries = trim.limit;
  StreamRange range;
  if (trim.by == StreamTrim::By::kLength) {
    if (header_.length <= trim.length) return;
    const uint64_t going = header_.length - trim.length;
    entries = entries == 0 ? going : std::min(entries, going);
  } else {
    range.last = trim.id;
  }
  WantEntries(range, entries);
}

uint64_t StreamEdit::Trim(const StreamTrim& trim) {
  if (trim.by == StreamTrim::By::kNothing) return 0;
  WantTrimmed(trim);
  uint64_t removed = 0;
  StreamElement element;
  StreamNode node;
  bool more = elements_.From({}, &element);
  while (more && LoadStreamNode(element, &node)) {
    if (trim.by == StreamTrim::By::kLength && header_.length <= trim.length) break;
    const uint64_t live = LiveEntries(node);
    if (live > header_.length) elements_.Damaged();
    if (is_damaged() || (trim.limit > 0 && removed + live > trim.limit)) break;
    if (!GoesWhole(node, live, trim)) {
      if (!trim.whole_nodes) removed += TrimWithin(node, trim);
      break;
    }
    EntryId behind = node.id;
    const bool is_last = !StepForward(&behind);
    elements_.EraseAll({}, is_last ? StreamKey{.kind = StreamKind::kGroup} : KeyOfNode(behind));
    CountNode(node.id, /*comes=*/false);
    header_.length -= live;
    removed += live;
    more = elements_.From({}, &element);
  }
  if (header_.length == 0 || removed > 0) RenewFirstId();
  return removed;
}

uint32_t StreamEdit::FreeGroupNumber() {
  std::set<uint32_t> taken;
  for (const StreamGroup& group : Groups()) taken.insert(group.number);
  if (taken.empty()) return 0;
  if (*taken.rbegin() < UINT32_MAX) return *taken.rbegin() + 1;
  uint32_t number = 0;
  while (taken.contains(number)) ++number;
  return number;
}

void StreamEdit::AddGroup(StreamGroup group) {
  group.number = FreeGroupNumber();
  elements_.Put(GroupElement(group));
  ++header_.groups;
}

void StreamEdit::RemoveGroup(const StreamGroup& group) {
  StreamElement element;
  if (!elements_.Find({.kind = StreamKind::kGroup, .name = group.name}, &element)) return;
  elements_.Erase(element);
  --header_.groups;
  for (const StreamKind kind : {StreamKind::kConsumerName, StreamKind::kConsumer,
                                StreamKind::kPending, StreamKind::kGiven}) {
    StreamKey end{.kind = kind, .group = group.number + 1};
    // The last number there is.
    if (end.group == 0) end.kind = static_cast<StreamKind>(static_cast<uint8_t>(kind) + 1);
    elements_.EraseAll({.kind = kind, .group = group.number}, end);
  }
}

std::string StreamEdit::Finish() const {
  std::string made = StreamHeaderBytes(header_);
  elements_.AppendTo(&made);
  return made;
}

bool StreamEdit::FinishTree() {
  Tree& tree = *elements_.tree();
  if (!elements_.Finish()) return false;
  if (tree.missing().empty() && !is_damaged()) tree.set_header(StreamHeaderBytes(header_));
  return true;
}

bool StreamEdit::FinishPacked(std::string* packed) {
  std::string joined;
  if (!JoinLeaves(*elements_.tree(), &joined)) return false;
  StreamElements elements;
  const std::string_view held = joined;
  if (!elements.Load(held.substr(kStreamHeaderBytes))) return elements_.Damaged();
  elements_.RepeatOn(&elements);
  *packed = StreamHeaderBytes(header_);
  elements.AppendTo(packed);
  return true;
}

StreamConsumer* StreamGroupEdit::Touch(uint32_t number) {
  const auto found = touched_.find(number);
  if (found != touched_.end()) return &found->second;
  StreamConsumer consumer;
  if (!stream_.ConsumerOf(head_.number, number, &consumer)) return nullptr;
  return &touched_.emplace(number, consumer).first->second;
}

void StreamGroupEdit::Count(uint32_t consumer, bool comes) {
  StreamConsumer* const touched = Touch(consumer);
  if (touched != nullptr) touched->pending += comes ? 1 : -1;
}

uint32_t StreamGroupEdit::FreeConsumerNumber() {
  const StreamKey key{.kind = StreamKind::kConsumer, .group = head_.number, .consumer = UINT32_MAX};
  StreamElements& elements = stream_.elements();
  StreamElement element;
  if (!elements.Find(key, &element)) {
    const bool has_any = elements.Before(key, &element) &&
                         element.key.kind == StreamKind::kConsumer &&
                         element.key.group == head_.number;
    return has_any ? element.key.consumer + 1 : 0;
  }
  StreamKey free = key;
  for (free.consumer = 0; elements.Find(free, &element);) ++free.consumer;
  return free.consumer;
}

uint32_t StreamGroupEdit::SeeConsumer(std::string_view name, int64_t now_ms) {
  StreamConsumer consumer;
  if (stream_.FindConsumer(head_.number, name, &consumer)) {
    StreamConsumer* const touched = Touch(consumer.number);
    if (touched != nullptr) touched->seen_ms = now_ms;
    return consumer.number;
  }
  consumer = {name, FreeConsumerNumber(), now_ms, 0};
  stream_.elements().Put(ConsumerNameElement(head_.number, consumer));
  stream_.elements().Put(ConsumerElement(head_.number, consumer));
  touched_.insert_or_assign(consumer.number, consumer);
  ++head_.consumers;
  return consumer.number;
}

uint64_t StreamGroupEdit::RemoveConsumer(const StreamConsumer& consumer) {
  StreamElements& elements = stream_.elements();
  stream_.WantGiven(head_.number, consumer.number, {}, 0);
  StreamPendings pendings(stream_, head_.number, {});
  pendings.OfConsumer(consumer.number);
  StreamPending pending;
  uint64_t removed = 0;
  for (; pendings.Next(&pending); ++removed) Remove(pending);
  StreamElement element;
  const StreamKey by_name{
      .kind = StreamKind::kConsumerName, .group = head_.number, .name = consumer.name};
  const StreamKey by_number{
      .kind = StreamKind::kConsumer, .group = head_.number, .consumer = consumer.number};
  for (const StreamKey& key : {by_name, by_number}) {
    if (elements.Find(key, &element)) elements.Erase(element);
  }
  touched_.erase(consumer.number);
  --head_.consumers;
  return removed;
}

void StreamGroupEdit::Put(const StreamPending& pending) {
  StreamPending before;
  const bool was_there = FindPending(pending.id, &before);
  const bool is_given = was_there && before.consumer == pending.consumer;
  if (was_there && !is_given) Remove(before);
  if (!is_given) {
    stream_.elements().Put(GivenElement(head_.number, pending));
    ++head_.pending;
    Count(pending.consumer, /*comes=*/true);
  }
  stream_.elements().Put(PendingElement(head_.number, pending));
}

void StreamGroupEdit::Remove(const StreamPending& pending) {
  StreamElement element;
  const StreamKey by_id{.kind = StreamKind::kPending, .group = head_.number, .id = pending.id};
  const StreamKey by_consumer{.kind = StreamKind::kGiven,
                              .group = head_.number,
                              .consumer = pending.consumer,
                              .id = pending.id};
  for (const StreamKey& key : {by_id, by_consumer}) {
    if (stream_.elements().Find(key, &element)) stream_.elements().Erase(element);
  }
  --head_.pending;
  Count(pending.consumer, /*comes=*/false);
}

void StreamGroupEdit::Finish() {
  stream_.elements().Put(GroupElement(head_));
  for (const auto& [number, consumer] : touched_) {
    stream_.elements().Put(ConsumerElement(head_.number, consumer));
  }
}

}  // namespace onetrip
