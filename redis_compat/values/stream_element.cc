#include "redis_compat/values/stream_element.h"

#include "redis_compat/values/packed.h"
#include "redis_compat/values/rdb_wire.h"

namespace onetrip {
namespace {

template <typename Number>
void AppendBigEndian(Number number, std::string* to) {
  for (size_t i = sizeof(number); i > 0; --i) {
    to->push_back(static_cast<char>(number >> (8 * (i - 1))));
  }
}

void AppendId(const EntryId& id, std::string* to) {
  AppendRdbNumber(id.ms, to);
  AppendRdbNumber(id.sequence, to);
}

std::string Begin(StreamKind kind) { return std::string(1, static_cast<char>(kind)); }

// Takes the parts of elements from the front of bytes that may be anything.
class ElementReader {
 public:
  explicit ElementReader(std::string_view bytes) : bytes_(bytes), reader_(bytes) {}

  template <typename Number>
  bool Take(Number* number) {
    return reader_.Take(number);
  }
  bool TakeId(EntryId* id) { return reader_.Take(&id->ms) && reader_.Take(&id->sequence); }
  bool TakeName(std::string_view* name) {
    PackedCursor cursor(bytes_, at());
    const size_t begin = cursor.at();
    std::string_view stepped_over;
    return cursor.Next(name) && reader_.Take(cursor.at() - begin, &stepped_over);
  }
  bool Skip(uint64_t bytes) {
    std::string_view stepped_over;
    return reader_.Take(bytes, &stepped_over);
  }
  [[nodiscard]] size_t at() const { return bytes_.size() - reader_.bytes_left(); }

 private:
  std::string_view bytes_;
  RdbReader reader_;
};

constexpr size_t kNumberBytes = sizeof(uint32_t);
constexpr size_t kIdBytes = 2 * sizeof(uint64_t);
constexpr size_t kGroupRestBytes = kNumberBytes + kIdBytes + sizeof(int64_t) + 2 * kNumberBytes;
constexpr size_t kConsumerRestBytes = sizeof(int64_t) + kNumberBytes;
constexpr size_t kPendingRestBytes = sizeof(int64_t) + sizeof(uint64_t) + kNumberBytes;

// Takes what stands behind the kind up to the end of the key.
bool TakeKey(ElementReader* reader, StreamKey* key) {
  switch (key->kind) {
    case StreamKind::kNode:
      return reader->TakeId(&key->id);
    case StreamKind::kGroup:
      return reader->TakeName(&key->name);
    case StreamKind::kConsumerName:
      return reader->Take(&key->group) && reader->TakeName(&key->name);
    case StreamKind::kConsumer:
      return reader->Take(&key->group) && reader->Take(&key->consumer);
    case StreamKind::kPending:
      return reader->Take(&key->group) && reader->TakeId(&key->id);
    case StreamKind::kGiven:
      return reader->Take(&key->group) && reader->Take(&key->consumer) && reader->TakeId(&key->id);
    case StreamKind::kEnd:
      break;
  }
  return false;
}

bool SkipRest(StreamKind kind, std::string_view bytes, ElementReader* reader) {
  std::string_view name;
  size_t listpack_bytes = 0;
  switch (kind) {
    case StreamKind::kNode:
      listpack_bytes = ListpackBytes(bytes.substr(reader->at()));
      return listpack_bytes > 0 && reader->Skip(listpack_bytes);
    case StreamKind::kGroup:
      return reader->Skip(kGroupRestBytes);
    case StreamKind::kConsumerName:
      return reader->Skip(kNumberBytes);
    case StreamKind::kConsumer:
      return reader->Skip(kConsumerRestBytes) && reader->TakeName(&name);
    case StreamKind::kPending:
      return reader->Skip(kPendingRestBytes);
    case StreamKind::kGiven:
      return true;
    case StreamKind::kEnd:
      break;
  }
  return false;
}

}  // namespace

std::string KeyBytes(const StreamKey& key) {
  std::string bytes = Begin(key.kind);
  const bool has_group = key.kind >= StreamKind::kConsumerName && key.kind <= StreamKind::kGiven;
  if (has_group) AppendBigEndian(key.group, &bytes);
  if (key.kind == StreamKind::kConsumer || key.kind == StreamKind::kGiven) {
    AppendBigEndian(key.consumer, &bytes);
  }
  if (key.kind == StreamKind::kNode || key.kind == StreamKind::kPending ||
      key.kind == StreamKind::kGiven) {
    AppendBigEndian(key.id.ms, &bytes);
    AppendBigEndian(key.id.sequence, &bytes);
  }
  return bytes.append(key.name);
}

bool LoadStreamElement(std::string_view bytes, StreamElement* element) {
  ElementReader reader(bytes);
  uint8_t kind = 0;
  element->key = {};
  if (!reader.Take(&kind) || kind < static_cast<uint8_t>(StreamKind::kNode) ||
      kind >= static_cast<uint8_t>(StreamKind::kEnd)) {
    return false;
  }
  element->key.kind = static_cast<StreamKind>(kind);
  if (!TakeKey(&reader, &element->key)) return false;
  const size_t rest = reader.at();
  if (!SkipRest(element->key.kind, bytes, &reader)) return false;
  element->bytes = bytes.substr(0, reader.at());
  element->rest = element->bytes.substr(rest);
  return true;
}

bool LoadStreamNode(const StreamElement& element, StreamNode* node) {
  *node = {element.key.id, element.rest};
  return element.key.kind == StreamKind::kNode;
}

bool LoadStreamGroup(const StreamElement& element, StreamGroup* group) {
  ElementReader reader(element.rest);
  group->name = element.key.name;
  return element.key.kind == StreamKind::kGroup && reader.Take(&group->number) &&
         reader.TakeId(&group->last_id) && reader.Take(&group->entries_read) &&
         reader.Take(&group->consumers) && reader.Take(&group->pending);
}

bool LoadConsumerNumber(const StreamElement& element, uint32_t* number) {
  return element.key.kind == StreamKind::kConsumerName && RdbReader(element.rest).Take(number);
}

bool LoadStreamConsumer(const StreamElement& element, StreamConsumer* consumer) {
  ElementReader reader(element.rest);
  consumer->number = element.key.consumer;
  return element.key.kind == StreamKind::kConsumer && reader.Take(&consumer->seen_ms) &&
         reader.Take(&consumer->pending) && reader.TakeName(&consumer->name);
}

bool LoadStreamPending(const StreamElement& element, StreamPending* pending) {
  RdbReader reader(element.rest);
  pending->id = element.key.id;
  return element.key.kind == StreamKind::kPending && reader.Take(&pending->delivered_ms) &&
         reader.Take(&pending->deliveries) && reader.Take(&pending->consumer);
}

std::string NodeElement(const StreamNode& node) {
  std::string bytes = Begin(StreamKind::kNode);
  bytes.reserve(1 + kIdBytes + node.listpack.size());
  AppendId(node.id, &bytes);
  return bytes.append(node.listpack);
}

std::string GroupElement(const StreamGroup& group) {
  std::string bytes = Begin(StreamKind::kGroup);
  AppendPackedEntry(group.name, &bytes);
  AppendRdbNumber(group.number, &bytes);
  AppendId(group.last_id, &bytes);
  AppendRdbNumber(group.entries_read, &bytes);
  AppendRdbNumber(group.consumers, &bytes);
  AppendRdbNumber(group.pending, &bytes);
  return bytes;
}

std::string ConsumerNameElement(uint32_t group, const StreamConsumer& consumer) {
  std::string bytes = Begin(StreamKind::kConsumerName);
  AppendRdbNumber(group, &bytes);
  AppendPackedEntry(consumer.name, &bytes);
  AppendRdbNumber(consumer.number, &bytes);
  return bytes;
}

std::string ConsumerElement(uint32_t group, const StreamConsumer& consumer) {
  std::string bytes = Begin(StreamKind::kConsumer);
  AppendRdbNumber(group, &bytes);
  AppendRdbNumber(consumer.number, &bytes);
  AppendRdbNumber(consumer.seen_ms, &bytes);
  AppendRdbNumber(consumer.pending, &bytes);
  AppendPackedEntry(consumer.name, &bytes);
  return bytes;
}

std::string PendingElement(uint32_t group, const StreamPending& pending) {
  std::string bytes = Begin(StreamKind::kPending);
  AppendRdbNumber(group, &bytes);
  AppendId(pending.id, &bytes);
  AppendRdbNumber(pending.delivered_ms, &bytes);
  AppendRdbNumber(pending.deliveries, &bytes);
  AppendRdbNumber(pending.consumer, &bytes);
  return bytes;
}

std::string GivenElement(uint32_t group, const StreamPending& pending) {
  std::string bytes = Begin(StreamKind::kGiven);
  AppendRdbNumber(group, &bytes);
  AppendRdbNumber(pending.consumer, &bytes);
  AppendId(pending.id, &bytes);
  return bytes;
}

}  // namespace onetrip
