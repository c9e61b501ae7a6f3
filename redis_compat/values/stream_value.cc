#include "redis_compat/values/stream_value.h"

#include <algorithm>

#include "client_core/base/check.h"
#include "redis_compat/values/rdb_wire.h"

namespace onetrip {
namespace {

bool TakeId(RdbReader* reader, EntryId* id) {
  return reader->Take(&id->ms) && reader->Take(&id->sequence);
}
void AppendId(const EntryId& id, std::string* to) {
  AppendRdbNumber(id.ms, to);
  AppendRdbNumber(id.sequence, to);
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

std::string StreamHeaderBytes(const StreamHeader& header) {
  std::string bytes = PackedHeaderBytes({0, static_cast<uint32_t>(header.length)});
  AppendId(header.last_id, &bytes);
  AppendId(header.first_id, &bytes);
  AppendId(header.max_deleted_id, &bytes);
  AppendRdbNumber(header.entries_added, &bytes);
  AppendRdbNumber(header.nodes, &bytes);
  AppendRdbNumber(header.radix_nodes, &bytes);
  AppendRdbNumber(header.groups, &bytes);
  CHECK(bytes.size() == kStreamHeaderBytes);
  return bytes;
}

bool LoadStreamHeader(std::string_view value, StreamHeader* header) {
  PackedHeader packed;
  if (value.size() < kStreamHeaderBytes || !LoadPackedHeader(value, &packed)) return false;
  header->length = packed.elements;
  RdbReader reader(value.substr(kPackedHeaderBytes));
  return TakeId(&reader, &header->last_id) && TakeId(&reader, &header->first_id) &&
         TakeId(&reader, &header->max_deleted_id) && reader.Take(&header->entries_added) &&
         reader.Take(&header->nodes) && reader.Take(&header->radix_nodes) &&
         reader.Take(&header->groups);
}

bool StreamValue::Load(std::string_view value) {
  if (value.empty()) return true;
  return LoadStreamHeader(value, &header_) && elements_.Load(value.substr(kStreamHeaderBytes)) &&
         CheckElements();
}

bool StreamValue::Load(Tree& tree) {
  elements_.Load(tree);
  return LoadStreamHeader(tree.header(), &header_) && tree.header().size() == kStreamHeaderBytes &&
         tree.orders() == 1;
}

bool StreamValue::CheckElements() {
  uint64_t live = 0;
  uint64_t nodes = 0;
  uint64_t groups = 0;
  StreamElement element;
  StreamNode node;
  bool more = elements_.From({}, &element);
  for (; more && element.key.kind == StreamKind::kNode; ++nodes) {
    LoadStreamNode(element, &node);
    const uint64_t of_node = LiveEntries(node);
    if (of_node > header_.length - live) return false;
    live += of_node;
    more = elements_.Behind(element.key, &element);
  }
  if (nodes != header_.nodes || live != header_.length) return false;
  if (nodes > 0 && node.id > header_.last_id) return false;
  for (; more && element.key.kind == StreamKind::kGroup; ++groups) {
    more = elements_.Behind(element.key, &element);
  }
  return groups == header_.groups;
}

bool StreamValue::NodeFrom(const EntryId& id, StreamNode* node) {
  StreamElement element;
  return elements_.From(KeyOfNode(id), &element) && LoadStreamNode(element, node);
}

bool StreamValue::NodeBefore(const EntryId& id, StreamNode* node) {
  StreamElement element;
  return elements_.Before(KeyOfNode(id), &element) && LoadStreamNode(element, node);
}

bool StreamValue::LastNode(StreamNode* node) {
  StreamElement element;
  return elements_.Before({.kind = StreamKind::kGroup}, &element) && LoadStreamNode(element, node);
}

bool StreamValue::FindNode(const EntryId& id, StreamNode* node) {
  EntryId behind = id;
  return StepForward(&behind) ? NodeBefore(behind, node) : LastNode(node);
}

bool StreamValue::Find(const EntryId& id, StreamEntry* entry) {
  StreamEntries entries(*this, {id, id});
  return entries.Next(entry);
}

EntryId StreamValue::LastLiveId() {
  StreamEntries entries(*this, {.reverse = true});
  StreamEntry last;
  return entries.Next(&last) ? last.id : EntryId();
}

bool StreamValue::FindGroup(std::string_view name, StreamGroup* group) {
  StreamElement element;
  return elements_.Find({.kind = StreamKind::kGroup, .name = name}, &element) &&
         (LoadStreamGroup(element, group) || elements_.Damaged());
}

bool StreamValue::FindConsumer(uint32_t group, std::string_view name, StreamConsumer* consumer) {
  StreamElement element;
  uint32_t number = 0;
  const StreamKey key{.kind = StreamKind::kConsumerName, .group = group, .name = name};
  if (!elements_.Find(key, &element)) return false;
  return LoadConsumerNumber(element, &number) && ConsumerOf(group, number, consumer);
}

bool StreamValue::ConsumerOf(uint32_t group, uint32_t number, StreamConsumer* consumer) {
  StreamElement element;
  const StreamKey key{.kind = StreamKind::kConsumer, .group = group, .consumer = number};
  return (elements_.Find(key, &element) && LoadStreamConsumer(element, consumer)) ||
         elements_.Damaged();
}

bool StreamValue::FindPending(uint32_t group, const EntryId& id, StreamPending* pending) {
  StreamElement element;
  return elements_.Find({.kind = StreamKind::kPending, .group = group, .id = id}, &element) &&
         LoadStreamPending(element, pending);
}

bool StreamValue::PendingFrom(uint32_t group, const EntryId& id, StreamPending* pending) {
  StreamElement element;
  return elements_.From({.kind = StreamKind::kPending, .group = group, .id = id}, &element) &&
         element.key.group == group && LoadStreamPending(element, pending);
}

bool StreamValue::LastPending(uint32_t group, StreamPending* pending) {
  StreamElement element;
  const StreamKey key{.kind = StreamKind::kPending, .group = group, .id = kStreamIdMax};
  return (elements_.Find(key, &element) || elements_.Before(key, &element)) &&
         element.key.group == group && LoadStreamPending(element, pending);
}

bool StreamValue::GivenFrom(uint32_t group, uint32_t consumer, const EntryId& id,
                            StreamPending* pending) {
  StreamElement element;
  const StreamKey key{.kind = StreamKind::kGiven, .group = group, .consumer = consumer, .id = id};
  if (!elements_.From(key, &element) || element.key.kind != StreamKind::kGiven) return false;
  if (element.key.group != group || element.key.consumer != consumer) return false;
  pending->id = element.key.id;
  pending->consumer = consumer;
  if (FindPending(group, element.key.id, pending)) return true;
  // More are missing, perhaps: they are asked for together.
  return elements_.is_missing() || elements_.Damaged();
}

void StreamValue::WantEntries(const StreamRange& range, uint64_t count) {
  const double part =
      static_cast<double>(count) / static_cast<double>(std::max<uint64_t>(header_.length, 1));
  // One node, or a part of it, is read in any case.
  const uint64_t nodes =
      part >= 1 ? header_.nodes : static_cast<uint64_t>(part * header_.nodes) + (count > 0 ? 1 : 0);
  elements_.WantAll(KeyOfNode(range.first), KeyOfNode(range.last), nodes, range.reverse);
}

void StreamValue::CopyNodes(const StreamRange& range, uint64_t count, std::string* nodes) {
  WantEntries(range, count);
  std::vector<StreamNode> found;
  StreamEntries entries(*this, range);
  StreamEntry entry;
  for (uint64_t met = 0; (count == 0 || met < count) && entries.Next(&entry); ++met) {
    if (met == 0 || entries.node().id != found.back().id) found.push_back(entries.node());
  }
  if (range.reverse) std::reverse(found.begin(), found.end());
  for (const StreamNode& node : found) *nodes += NodeElement(node);
}

void StreamValue::WantPending(uint32_t group, const EntryId& first, uint64_t count) {
  StreamKey key{.kind = StreamKind::kPending, .group = group, .id = first};
  StreamKey end = key;
  end.id = kStreamIdMax;
  elements_.WantAll(key, end, count);
}

void StreamValue::WantGiven(uint32_t group, uint32_t consumer, const EntryId& first,
                            uint64_t count) {
  StreamKey key{.kind = StreamKind::kGiven, .group = group, .consumer = consumer, .id = first};
  StreamKey end = key;
  end.id = kStreamIdMax;
  elements_.WantAll(key, end, count);
}

std::vector<StreamGroup> StreamValue::Groups() {
  std::vector<StreamGroup> groups;
  StreamElement element;
  StreamGroup group;
  bool more = elements_.From({.kind = StreamKind::kGroup}, &element);
  for (; more && LoadStreamGroup(element, &group); more = elements_.Behind(element.key, &element)) {
    groups.push_back(group);
  }
  return groups;
}

std::vector<StreamConsumer> StreamValue::Consumers(uint32_t group) {
  std::vector<StreamConsumer> consumers;
  StreamElement element;
  uint32_t number = 0;
  bool more = elements_.From({.kind = StreamKind::kConsumerName, .group = group}, &element);
  for (; more && element.key.group == group && LoadConsumerNumber(element, &number);
       more = elements_.Behind(element.key, &element)) {
    StreamConsumer consumer;
    if (!ConsumerOf(group, number, &consumer)) continue;
    if (consumer.name != element.key.name) elements_.Damaged();
    consumers.push_back(consumer);
  }
  return consumers;
}

StreamEntries::StreamEntries(StreamValue& stream, const StreamRange& range)
    : stream_(stream), range_(range) {}

bool StreamEntries::NextNode(StreamNode* node) {
  if (!has_begun_) {
    has_begun_ = true;
    if (range_.reverse) return stream_.FindNode(range_.last, node);
    return stream_.FindNode(range_.first, node) || stream_.NodeFrom(range_.first, node);
  }
  if (range_.reverse) return stream_.NodeBefore(node_.id, node);
  EntryId behind = node_.id;
  return StepForward(&behind) && stream_.NodeFrom(behind, node);
}

// False: entries of nodes that stand one behind the other do not. Deleted ones need not: XSETID may
// go back behind them.
bool StreamEntries::CheckOrder(const StreamEntry& first, const StreamEntry& last) {
  const bool is_first_node = met_.is_zero();
  const bool is_sound = is_first_node || (range_.reverse ? last.id < met_ : met_ < first.id);
  met_ = range_.reverse ? first.id : last.id;
  return is_sound;
}

bool StreamEntries::TakeNode() {
  StreamNode node;
  if (is_over_ || !NextNode(&node)) return false;
  node_ = node;
  // Nodes are by id: all others are beyond the range, too.
  is_over_ = range_.reverse ? node.id <= range_.first : node.id > range_.last;
  entries_.clear();
  next_entry_ = 0;
  StreamNodeReader reader(node);
  StreamEntry entry;
  while (reader.Next(&entry) && entry.id <= range_.last) {
    if (!entry.is_deleted && entry.id >= range_.first) entries_.push_back(entry);
  }
  const bool is_sound =
      !reader.is_damaged() && (entries_.empty() || CheckOrder(entries_.front(), entries_.back()));
  if (range_.reverse) std::reverse(entries_.begin(), entries_.end());
  return is_sound || stream_.elements().Damaged();
}

bool StreamEntries::Next(StreamEntry* entry) {
  while (next_entry_ == entries_.size()) {
    if (!TakeNode()) return false;
  }
  *entry = entries_[next_entry_++];
  return true;
}

bool StreamPendings::Next(StreamPending* pending) {
  if (is_over_) return false;
  const bool found = has_consumer_ ? stream_.GivenFrom(group_, consumer_, next_, pending)
                                   : stream_.PendingFrom(group_, next_, pending);
  if (!found) return false;
  next_ = pending->id;
  is_over_ = !StepForward(&next_);
  return true;
}

}  // namespace onetrip
