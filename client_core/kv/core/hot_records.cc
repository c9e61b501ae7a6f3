#include "client_core/kv/core/hot_records.h"

#include <cstring>

#include "client_core/layout/record_codec.h"

namespace onetrip {

void HotRecords::Wrote(const Operation& operation, uint64_t views, const IndexKey& key,
                       SlotWord old, Entry now, const std::byte* record, uint32_t bytes) {
  Place& place = places_[PlaceOf(key.hash)];
  const bool was_own = place.entry.word == old && place.entry.slot == now.slot;
  const uint32_t streak = was_own ? place.streak + 1 : 0;
  // In an earlier epoch, or view, the word may have been replaced, and its memory used again.
  const bool is_current = reclaimer_.IsOfCurrentEpoch(operation.pin) && views == views_;
  // A register's word is followed only under notices that it is forgotten; what a root names is
  // read and written by other ways.
  const bool is_record = !now.word.is_register() && !now.word.size_class().is_root();
  if (!is_record || bytes > kRecordBytesMax || (!is_current && !was_own)) {
    place = Place();
    return;
  }
  place.hash = key.hash;
  place.entry = now;
  place.streak = streak;
  place.epoch = is_current ? reclaimer_.current_epoch() : 0;
  place.views = views;
  if (streak >= context_.options.hot_after) place.record.assign(record, record + bytes);
}

bool HotRecords::Find(const IndexKey& key, SearchResult* result) const {
  const Place& place = places_[PlaceOf(key.hash)];
  if (place.streak < context_.options.hot_after || place.hash.bits() != key.hash.bits())
    return false;
  if (place.epoch != reclaimer_.current_epoch() || place.views != views_) return false;
  if (!RecordHasKey(place.record.data(), place.record.size(), key.keyspace, key.bytes)) {
    return false;
  }
  *result = SearchResult();
  result->found = result->remembered = true;
  result->entry = place.entry;
  result->bytes = context_.fabric.NewRoundTrip();
  std::byte* const copy = result->bytes->Reserve(place.record.size());
  std::memcpy(copy, place.record.data(), place.record.size());
  result->record = copy;
  result->record_bytes = static_cast<uint32_t>(place.record.size());
  return true;
}

}  // namespace onetrip
