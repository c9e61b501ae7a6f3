#include "redis_compat/values/rdb_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

constexpr char kRdbStream = 15;
// The same with counts of what was added and read, and the ids of the first and of deleted entries.
constexpr char kRdbStream2 = 19;

constexpr size_t kRawIdBytes = 2 * sizeof(uint64_t);
constexpr size_t kLengthBytesMax = 9;
// A step costs this much beside the bytes that it looks at.
constexpr size_t kStepCost = 32;

}  // namespace

bool IsStreamDump(std::string_view payload) {
  const std::string_view body = DumpBody(payload);
  return !body.empty() && (body.front() == kRdbStream || body.front() == kRdbStream2);
}

// Some parts take more bytes in a payload than in a packed stream: lengths of nodes and their ids,
// and pending entries, which a payload names twice.
size_t StreamDumper::BytesMax() const {
  constexpr size_t kLengthsOfHeader = 16;
  constexpr size_t kLengthsOfGroup = 8;
  size_t bytes = 1 + kLengthsOfHeader * kLengthBytesMax + kDumpFooterBytes;
  for (const StreamNode& node : stream_.nodes()) {
    bytes += 2 * kLengthBytesMax + kRawIdBytes + node.listpack.size();
  }
  for (const StreamValue::Group& group : stream_.groups()) {
    bytes += kLengthsOfGroup * kLengthBytesMax + group.name.size() + 2 * group.body.size();
  }
  return bytes;
}

void StreamDumper::Begin(std::span<char> to) {
  CHECK(to.size() >= BytesMax());
  to_ = to;
  Put({&kRdbStream2, 1});
  PutLength(stream_.nodes().size());
}

bool StreamDumper::Advance(size_t bytes) {
  const size_t begun = made_;
  while (made_ - begun < bytes) {
    if (next_node_ < stream_.nodes().size()) {
      DumpNode(stream_.nodes()[next_node_++]);
    } else if (!has_header_) {
      DumpHeader();
      has_header_ = true;
    } else if (next_group_ == stream_.groups().size()) {
      return false;
    } else if (!DumpGroup(stream_.groups()[next_group_++])) {
      is_damaged_ = true;
      return false;
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
  PutLength(stream_.groups().size());
}

bool StreamDumper::DumpGroup(const StreamValue::Group& packed) {
  StreamGroup group;
  if (!group.Load(packed.body)) return false;
  PutString(packed.name);
  PutLength(group.last_id.ms);
  PutLength(group.last_id.sequence);
  PutLength(static_cast<uint64_t>(group.entries_read));
  PutLength(group.pending().size());
  std::vector<std::vector<EntryId>> of_consumers(group.consumers().size());
  for (const StreamPending& pending : group.pending()) {
    PutRawId(pending.id);
    Put({reinterpret_cast<const char*>(&pending.delivered_ms), sizeof(pending.delivered_ms)});
    PutLength(pending.deliveries);
    of_consumers[pending.consumer].push_back(pending.id);
  }
  PutLength(group.consumers().size());
  for (size_t i = 0; i < of_consumers.size(); ++i) {
    const StreamConsumer& consumer = group.consumers()[i];
    PutString(consumer.name);
    Put({reinterpret_cast<const char*>(&consumer.seen_ms), sizeof(consumer.seen_ms)});
    PutLength(of_consumers[i].size());
    for (const EntryId& id : of_consumers[i]) PutRawId(id);
  }
  return true;
}

void StreamDumper::Put(std::string_view bytes) {
  CHECK(bytes.size() <= to_.size() - made_);
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
  AppendStreamNode(node_, &made_);
  parts_.node_bytes += made_.size() - bytes;
  spent_ += made_.size() - bytes;
  ++parts_.nodes;
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
  if (groups_left_ == 0) {
    StoreStreamHeader(header_, parts_, &made_);
    return End(State::kDone);
  }
  --groups_left_;
  std::string name;
  StreamGroup group;
  if (!LoadGroup(&name, &group)) return End(State::kDamaged);
  if (parts_.groups > 0 && name <= group_before_) return End(State::kDamaged);
  std::string body;
  group.AppendTo(&body);
  spent_ += body.size();
  AppendStreamGroup(name, body, &made_);
  if (made_.size() > bytes_max_) return End(State::kTooLarge);
  ++parts_.groups;
  group_before_ = std::move(name);
}

bool StreamLoader::LoadGroup(std::string* name, StreamGroup* group) {
  uint64_t reads = 0;
  uint64_t pending = 0;
  if (!TakeText(name) || !TakeIdAsLengths(&group->last_id)) return false;
  if (has_counts_ && !payload_.TakeLength(&reads)) return false;
  group->entries_read =
      has_counts_ ? static_cast<int64_t>(reads) : EntriesAddedUpTo(header_, group->last_id);
  if (!payload_.TakeLength(&pending) || pending > payload_.bytes_left() / kRawIdBytes) return false;
  group->pending().reserve(pending);
  for (; pending > 0; --pending) {
    StreamPending next;
    next.consumer = StreamGroup::kNoConsumer;
    if (!TakeRawId(&next.id) || !payload_.Take(&next.delivered_ms) ||
        !payload_.TakeLength(&next.deliveries)) {
      return false;
    }
    if (!group->pending().empty() && next.id <= group->pending().back().id) return false;
    group->pending().push_back(next);
  }
  uint64_t consumers = 0;
  if (!payload_.TakeLength(&consumers)) return false;
  for (; consumers > 0; --consumers) {
    if (!LoadConsumer(group)) return false;
  }
  // Each was given to a consumer.
  return std::none_of(group->pending().begin(), group->pending().end(), [](const StreamPending& p) {
    return p.consumer == StreamGroup::kNoConsumer;
  });
}

bool StreamLoader::LoadConsumer(StreamGroup* group) {
  std::string name;
  int64_t seen_ms = 0;
  uint64_t pending = 0;
  if (!TakeText(&name) || !payload_.Take(&seen_ms) || !payload_.TakeLength(&pending)) return false;
  if (!group->consumers().empty() && name <= group->consumers().back().name) return false;
  const uint32_t place = group->SeeConsumer(name, seen_ms);
  for (; pending > 0; --pending) {
    EntryId id;
    if (!TakeRawId(&id)) return false;
    const size_t at = group->FindPlace(id);
    if (at == group->pending().size() || group->pending()[at].id != id) return false;
    if (group->pending()[at].consumer != StreamGroup::kNoConsumer) return false;
    group->pending()[at].consumer = place;
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
