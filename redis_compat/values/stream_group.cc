#include "redis_compat/values/stream_group.h"

#include <algorithm>

#include "redis_compat/values/packed.h"
#include "redis_compat/values/rdb_wire.h"

namespace onetrip {
namespace {

// Bytes of a pending entry; consumers take as many as their names, and more.
constexpr size_t kPendingBytes = sizeof(uint64_t) * 4 + sizeof(uint32_t);
constexpr size_t kConsumerBytesMin = kPackedEntryBytesMin + sizeof(int64_t);

bool TakeConsumer(RdbReader* reader, std::string_view body, StreamConsumer* consumer) {
  PackedCursor cursor(body, body.size() - reader->bytes_left());
  const size_t begin = cursor.at();
  std::string_view name;
  std::string_view stepped_over;
  if (!cursor.Next(&name) || !reader->Take(cursor.at() - begin, &stepped_over)) return false;
  consumer->name = name;
  return reader->Take(&consumer->seen_ms);
}

bool TakePending(RdbReader* reader, StreamPending* pending) {
  return reader->Take(&pending->id.ms) && reader->Take(&pending->id.sequence) &&
         reader->Take(&pending->delivered_ms) && reader->Take(&pending->deliveries) &&
         reader->Take(&pending->consumer);
}

bool IsNameBefore(const StreamConsumer& consumer, std::string_view name) {
  return consumer.name < name;
}

}  // namespace

bool StreamGroup::Load(std::string_view body) {
  RdbReader reader(body);
  uint32_t consumers = 0;
  uint32_t pending = 0;
  if (!reader.Take(&last_id.ms) || !reader.Take(&last_id.sequence) || !reader.Take(&entries_read) ||
      !reader.Take(&consumers) || !reader.Take(&pending) ||
      consumers > reader.bytes_left() / kConsumerBytesMin) {
    return false;
  }
  consumers_.resize(consumers);
  for (size_t i = 0; i < consumers; ++i) {
    if (!TakeConsumer(&reader, body, &consumers_[i])) return false;
    if (i > 0 && consumers_[i - 1].name >= consumers_[i].name) return false;
  }
  if (reader.bytes_left() != uint64_t{pending} * kPendingBytes) return false;
  pending_.resize(pending);
  for (size_t i = 0; i < pending; ++i) {
    if (!TakePending(&reader, &pending_[i]) || pending_[i].consumer >= consumers) return false;
    if (i > 0 && pending_[i - 1].id >= pending_[i].id) return false;
  }
  return true;
}

void StreamGroup::AppendTo(std::string* to) const {
  AppendRdbNumber(last_id.ms, to);
  AppendRdbNumber(last_id.sequence, to);
  AppendRdbNumber(entries_read, to);
  AppendRdbNumber(static_cast<uint32_t>(consumers_.size()), to);
  AppendRdbNumber(static_cast<uint32_t>(pending_.size()), to);
  for (const StreamConsumer& consumer : consumers_) {
    AppendPackedEntry(consumer.name, to);
    AppendRdbNumber(consumer.seen_ms, to);
  }
  for (const StreamPending& pending : pending_) {
    AppendRdbNumber(pending.id.ms, to);
    AppendRdbNumber(pending.id.sequence, to);
    AppendRdbNumber(pending.delivered_ms, to);
    AppendRdbNumber(pending.deliveries, to);
    AppendRdbNumber(pending.consumer, to);
  }
}

uint32_t StreamGroup::FindConsumer(std::string_view name) const {
  const auto found = std::lower_bound(consumers_.begin(), consumers_.end(), name, IsNameBefore);
  if (found == consumers_.end() || found->name != name) return kNoConsumer;
  return static_cast<uint32_t>(found - consumers_.begin());
}

uint32_t StreamGroup::SeeConsumer(std::string_view name, int64_t now_ms) {
  const auto found = std::lower_bound(consumers_.begin(), consumers_.end(), name, IsNameBefore);
  const auto place = static_cast<uint32_t>(found - consumers_.begin());
  if (found != consumers_.end() && found->name == name) {
    found->seen_ms = now_ms;
    return place;
  }
  const bool is_last = found == consumers_.end();
  consumers_.insert(found, {std::string(name), now_ms});
  if (is_last) return place;
  for (StreamPending& pending : pending_) {
    if (pending.consumer != kNoConsumer && pending.consumer >= place) ++pending.consumer;
  }
  return place;
}

uint64_t StreamGroup::RemoveConsumer(uint32_t consumer) {
  const size_t before = pending_.size();
  for (StreamPending& pending : pending_) {
    if (pending.consumer == consumer) pending.consumer = kNoConsumer;
  }
  Sweep();
  for (StreamPending& pending : pending_) {
    if (pending.consumer > consumer) --pending.consumer;
  }
  consumers_.erase(consumers_.begin() + consumer);
  return before - pending_.size();
}

size_t StreamGroup::FindPlace(const EntryId& id) const {
  const auto found = std::lower_bound(
      pending_.begin(), pending_.end(), id,
      [](const StreamPending& pending, const EntryId& other) { return pending.id < other; });
  return static_cast<size_t>(found - pending_.begin());
}

StreamPending* StreamGroup::FindPending(const EntryId& id) {
  const size_t place = FindPlace(id);
  const bool is_there = place < pending_.size() && pending_[place].id == id &&
                        pending_[place].consumer != kNoConsumer;
  return is_there ? &pending_[place] : nullptr;
}

StreamPending& StreamGroup::AddPending(const EntryId& id) {
  const size_t place = FindPlace(id);
  if (place == pending_.size() || pending_[place].id != id) {
    pending_.insert(pending_.begin() + static_cast<ptrdiff_t>(place), {id, 0, 0, kNoConsumer});
  }
  return pending_[place];
}

void StreamGroup::Sweep() {
  std::erase_if(pending_, [](const StreamPending& p) { return p.consumer == kNoConsumer; });
}

std::vector<uint64_t> StreamGroup::CountPending() const {
  std::vector<uint64_t> counts(consumers_.size());
  for (const StreamPending& pending : pending_) {
    if (pending.consumer < counts.size()) ++counts[pending.consumer];
  }
  return counts;
}

}  // namespace onetrip
