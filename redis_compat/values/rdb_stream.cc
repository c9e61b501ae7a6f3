#include "redis_compat/values/rdb_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "client_core/base/check.h"
#include "redis_compat/values/stream_radix.h"

namespace onetrip {
namespace {

constexpr char kRdbStream = 15;
// The same with counts of what was added and read, and the ids of the first and of deleted entries.
constexpr char kRdbStream2 = 19;

constexpr size_t kRawIdBytes = 2 * sizeof(uint64_t);
constexpr size_t kLengthBytesMax = 9;
// A step costs this much beside the bytes that it looks at.
constexpr size_t kStepCost = 32;
// A pending entry that no consumer has named yet.
constexpr uint32_t kNoConsumer = UINT32_MAX;

}  // namespace

bool IsStreamDump(std::string_view payload) {
  const std::string_view body = DumpBody(payload);
  return !body.empty() && (body.front() == kRdbStream || body.front() == kRdbStream2);
}

// Some parts take more bytes in a payload than in a packed stream: lengths, and ids of nodes.
size_t StreamDumper::BytesMax() const {
  constexpr size_t kLengthsOfHeader = 16;
  constexpr size_t kLengthsOfGroup = 8;
  constexpr size_t kLengthsOfNode = 2;
  return 1 + kLengthsOfHeader * kLengthBytesMax + kDumpFooterBytes + stream_.elements().BytesMax() +
         kLengthsOfNode * kLengthBytesMax * stream_.header().nodes +
         kLengthsOfGroup * kLengthBytesMax * groups_.size();
}

void StreamDumper::Begin(std::span<char> to) {
  CHECK(to.size() >= BytesMax());
  to_ = to;
  Put({&kRdbStream2, 1});
  PutLength(stream_.header().nodes);
}

bool StreamDumper::Advance(size_t bytes) {
  const size_t begun = made_;
  while (made_ - begun < bytes) {
    StreamElement element;
    StreamNode node;
    const bool is_node = !has_header_ && stream_.elements().From(next_node_, &element) &&
                         LoadStreamNode(element, &node);
    if (is_node) {
      DumpNode(node);
      next_node_.id = node.id;
      if (!StepForward(&next_node_.id)) next_node_.kind = StreamKind::kGroup;
    } else if (!has_header_) {
      DumpHeader();
      has_header_ = true;
    } else if (is_damaged() || next_group_ == groups_.size()) {
      return false;
    } else {
      DumpGroup(groups_[next_group_++]);
    }
  }
  return true;
}

void StreamDumper::DumpNode(const StreamNode& node) {
  PutLength(kRawIdBytes);
  PutRawId(node.id);
  PutLength(node.listpack.size());
  Put(node.listpack);
}

void StreamDumper::DumpHeader() {
  const StreamHeader& header = stream_.header();
  PutLength(header.length);
  for (const EntryId& id : {header.last_id, header.first_id, header.max_deleted_id}) {
    PutLength(id.ms);
    PutLength(id.sequence);
  }
  PutLength(header.entries_added);
  PutLength(groups_.size());
}

void StreamDumper::DumpGroup(const StreamGroup& group) {
  PutString(group.name);
  PutLength(group.last_id.ms);
  PutLength(group.last_id.sequence);
  PutLength(static_cast<uint64_t>(group.entries_read));
  PutLength(group.pending);
  StreamPending pending;
  StreamPendings pendings(stream_, group.number, {});
  uint64_t count = 0;
  for (; pendings.Next(&pending); ++count) {
    PutRawId(pending.id);
    Put({reinterpret_cast<const char*>(&pending.delivered_ms), sizeof(pending.delivered_ms)});
    PutLength(pending.deliveries);
  }
  const std::vector<StreamConsumer> consumers = stream_.Consumers(group.number);
  PutLength(consumers.size());
  for (const StreamConsumer& consumer : consumers) {
    PutString(consumer.name);
    Put({reinterpret_cast<const char*>(&consumer.seen_ms), sizeof(consumer.seen_ms)});
    PutLength(consumer.pending);
    StreamPendings of_consumer(stream_, group.number, {});
    of_consumer.OfConsumer(consumer.number);
    uint64_t given = 0;
    for (; of_consumer.Next(&pending); ++given) PutRawId(pending.id);
    count -= given;
    if (given != consumer.pending) stream_.elements().Damaged();
  }
  if (count != 0) stream_.elements().Damaged();
}

void StreamDumper::Put(std::string_view bytes) {
  // The stream is damaged: something in it is named twice.
  if (bytes.size() > to_.size() - made_) {
    stream_.elements().Damaged();
    return;
  }
  if (!bytes.empty()) std::memcpy(to_.data() + made_, bytes.data(), bytes.size());
  made_ += bytes.size();
}

void StreamDumper::PutString(std::string_view string) {
  head_.clear();
  const std::string_view plain = AppendRdbHead(string, &head_);
  Put(head_);
  Put(plain);
}

void StreamDumper::PutLength(uint64_t length) {
  head_.clear();
  AppendRdbLength(length, &head_);
  Put(head_);
}

void StreamDumper::PutRawId(const EntryId& id) {
  const std::array<uint64_t, 2> raw = {__builtin_bswap64(id.ms), __builtin_bswap64(id.sequence)};
  Put({reinterpret_cast<const char*>(raw.data()), sizeof(raw)});
}

StreamLoader::StreamLoader(std::string_view payload, uint64_t bytes_max)
    : bytes_max_(bytes_max), payload_(DumpBody(payload)), made_(kStreamHeaderBytes, '\0') {
  char type = 0;
  CHECK(payload_.Take(&type));
  has_counts_ = type == kRdbStream2;
  // Each node takes more than a byte.
  if (!payload_.TakeLength(&nodes_left_) || nodes_left_ > payload_.bytes_left()) {
    End(State::kDamaged);
  }
}

StreamLoader::State StreamLoader::Advance(size_t bytes) {
  for (spent_ = 0; state_ == State::kMore && spent_ < bytes;) {
    spent_ += kStepCost;
    switch (step_) {
      case Step::kNode:
        nodes_left_ > 0 ? TakeNode() : TakeHeader();
        break;
      case Step::kCompressed:
        Decompress(bytes - std::min(bytes, spent_));
        break;
      case Step::kEntries:
        TakeEntry();
        break;
      case Step::kGroup:
        TakeGroup();
        break;
    }
  }
  return state_;
}

void StreamLoader::TakeNode() {
  --nodes_left_;
  std::string id;
  if (!TakeText(&id) || id.size() != kRawIdBytes) return End(State::kDamaged);
  RdbReader raw(id);
  const EntryId before = node_.id;
  raw.Take(&node_.id.ms);
  raw.Take(&node_.id.sequence);
  node_.id = {__builtin_bswap64(node_.id.ms), __builtin_bswap64(node_.id.sequence)};
  if (has_entry_ && node_.id <= before) return End(State::kDamaged);
  DumpedString dumped;
  if (!payload_.TakeString(bytes_max_, &dumped)) return End(State::kDamaged);
  GoOnWith(string_.Begin(std::move(dumped)));
}

void StreamLoader::Decompress(size_t bytes) {
  spent_ += bytes;
  GoOnWith(string_.Advance(std::max<size_t>(bytes, 1)));
}

void StreamLoader::GoOnWith(StringUnpacker::State string) {
  step_ = string == StringUnpacker::State::kMore ? Step::kCompressed : Step::kEntries;
  if (string == StringUnpacker::State::kDamaged) return End(State::kDamaged);
  if (string == StringUnpacker::State::kNoMemory) return End(State::kNoMemory);
  if (string != StringUnpacker::State::kDone) return;
  node_.listpack = string_.bytes();
  entries_.emplace(node_);
}

void StreamLoader::TakeEntry() {
  StreamEntry entry;
  if (entries_->Next(&entry)) {
    if (has_entry_ && entry.id <= last_entry_) return End(State::kDamaged);
    if (!entry.is_deleted && live_++ == 0) first_live_ = entry.id;
    last_entry_ = entry.id;
    has_entry_ = true;
    spent_ += entry.fields;
    return;
  }
  const bool is_empty = entries_->head().live + entries_->head().deleted == 0;
  if (entries_->is_damaged() || is_empty) return End(State::kDamaged);
  const size_t bytes = made_.size();
  if (node_.listpack.size() + kRawIdBytes > bytes_max_ - std::min(bytes_max_, bytes)) {
    return End(State::kTooLarge);
  }
  made_ += NodeElement(node_);
  spent_ += made_.size() - bytes;
  node_ids_.push_back(node_.id);
  step_ = Step::kNode;
}

bool StreamLoader::TakeIdAsLengths(EntryId* id) {
  return payload_.TakeLength(&id->ms) && payload_.TakeLength(&id->sequence);
}

void StreamLoader::TakeHeader() {
  if (!payload_.TakeLength(&header_.length) || !TakeIdAsLengths(&header_.last_id) ||
      header_.length != live_ || header_.last_id < last_entry_) {
    return End(State::kDamaged);
  }
  if (!has_counts_) {
    header_.first_id = first_live_;
    header_.entries_added = header_.length;
  } else if (!TakeIdAsLengths(&header_.first_id) || !TakeIdAsLengths(&header_.max_deleted_id) ||
             !payload_.TakeLength(&header_.entries_added)) {
    return End(State::kDamaged);
  }
  if (!payload_.TakeLength(&groups_left_)) return End(State::kDamaged);
  step_ = Step::kGroup;
}

void StreamLoader::TakeGroup() {
  if (groups_left_ > 0) {
    --groups_left_;
    const uint64_t bytes = groups_.bytes();
    if (!LoadGroup()) return End(State::kDamaged);
    spent_ += groups_.bytes() - bytes;
    if (made_.size() + groups_.bytes() > bytes_max_) return End(State::kTooLarge);
    return;
  }
  header_.nodes = static_cast<uint32_t>(node_ids_.size());
  header_.radix_nodes = CountRadixNodes(node_ids_);
  made_.replace(0, kStreamHeaderBytes, StreamHeaderBytes(header_));
  for (std::string* const elements :
       {&groups_.heads, &groups_.names, &groups_.consumers, &groups_.pendings, &groups_.givens}) {
    made_ += std::exchange(*elements, {});
  }
  End(State::kDone);
}

bool StreamLoader::LoadGroup() {
  uint64_t reads = 0;
  uint64_t pending = 0;
  std::string name;
  StreamGroup group;
  if (!TakeText(&name) || !TakeIdAsLengths(&group.last_id)) return false;
  if (header_.groups > 0 && name <= group_before_) return false;
  if (has_counts_ && !payload_.TakeLength(&reads)) return false;
  group.entries_read =
      has_counts_ ? static_cast<int64_t>(reads) : EntriesAddedUpTo(header_, group.last_id);
  if (!payload_.TakeLength(&pending) || pending > payload_.bytes_left() / kRawIdBytes) return false;
  std::vector<StreamPending> pendings;
  pendings.reserve(pending);
  for (; pending > 0; --pending) {
    StreamPending next;
    next.consumer = kNoConsumer;
    if (!TakeRawId(&next.id) || !payload_.Take(&next.delivered_ms) ||
        !payload_.TakeLength(&next.deliveries)) {
      return false;
    }
    if (!pendings.empty() && next.id <= pendings.back().id) return false;
    pendings.push_back(next);
  }
  group_before_ = std::move(name);
  group.name = group_before_;
  group.number = header_.groups++;
  group.pending = static_cast<uint32_t>(pendings.size());
  if (!LoadConsumers(&group, pendings)) return false;
  groups_.heads += GroupElement(group);
  for (const StreamPending& one : pendings) {
    // Each was given to a consumer.
    if (one.consumer == kNoConsumer) return false;
    groups_.pendings += PendingElement(group.number, one);
  }
  return true;
}

bool StreamLoader::LoadConsumers(StreamGroup* group, std::span<StreamPending> pendings) {
  uint64_t consumers = 0;
  if (!payload_.TakeLength(&consumers)) return false;
  for (; consumers > 0; --consumers) {
    StreamConsumer consumer;
    consumer.number = group->consumers++;
    if (!LoadConsumer(group->number, &consumer, pendings)) return false;
  }
  return true;
}

bool StreamLoader::LoadConsumer(uint32_t group, StreamConsumer* consumer,
                                std::span<StreamPending> pendings) {
  std::string name;
  uint64_t pending = 0;
  if (!TakeText(&name) || !payload_.Take(&consumer->seen_ms) || !payload_.TakeLength(&pending)) {
    return false;
  }
  if (consumer->number > 0 && name <= consumer_before_) return false;
  std::vector<EntryId> ids;
  for (uint64_t left = pending; left > 0; --left) {
    EntryId id;
    if (!TakeRawId(&id)) return false;
    const auto given = std::lower_bound(
        pendings.begin(), pendings.end(), id,
        [](const StreamPending& one, const EntryId& other) { return one.id < other; });
    if (given == pendings.end() || given->id != id || given->consumer != kNoConsumer) return false;
    given->consumer = consumer->number;
    ids.push_back(id);
  }
  consumer->pending = static_cast<uint32_t>(pending);
  consumer_before_ = std::move(name);
  consumer->name = consumer_before_;
  groups_.names += ConsumerNameElement(group, *consumer);
  groups_.consumers += ConsumerElement(group, *consumer);
  std::sort(ids.begin(), ids.end());
  for (const EntryId& id : ids) {
    groups_.givens += GivenElement(group, {.id = id, .consumer = consumer->number});
  }
  return true;
}

bool StreamLoader::TakeText(std::string* text) {
  using Unpacked = StringUnpacker::State;
  DumpedString dumped;
  StringUnpacker unpacker;
  if (!payload_.TakeString(bytes_max_, &dumped)) return false;
  Unpacked state = unpacker.Begin(std::move(dumped));
  while (state == Unpacked::kMore) state = unpacker.Advance(bytes_max_);
  if (state != Unpacked::kDone) return false;
  *text = unpacker.bytes();
  return true;
}

bool StreamLoader::TakeRawId(EntryId* id) {
  if (!payload_.Take(&id->ms) || !payload_.Take(&id->sequence)) return false;
  *id = {__builtin_bswap64(id->ms), __builtin_bswap64(id->sequence)};
  return true;
}

}  // namespace onetrip
