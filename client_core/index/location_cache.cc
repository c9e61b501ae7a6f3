#include "client_core/index/location_cache.h"

#include <bit>
#include <utility>

namespace onetrip {

// Zeroed lines are lines without entries.
LocationCache::LocationCache(uint64_t bytes)
    : memory_(bytes < sizeof(Line) ? sizeof(Line)
                                   : std::bit_floor(bytes / sizeof(Line)) * sizeof(Line)),
      lines_(reinterpret_cast<Line*>(memory_.start())),
      mask_(memory_.bytes() / sizeof(Line) - 1) {}

LocationCache::Entry* LocationCache::FindEntry(Line& line, KeyHash hash) const {
  if (IsOf(line.entries[0], hash)) return &line.entries[0];
  if (!IsOf(line.entries[1], hash)) return nullptr;
  std::swap(line.entries[0], line.entries[1]);
  return &line.entries[0];
}

bool LocationCache::Find(KeyHash hash, Location* location) {
  Entry* entry = FindEntry(LineOf(hash), hash);
  if (entry == nullptr) return false;
  if (++entry->accesses == 1024) {  // forget slowly, so that a key's habits may change
    entry->accesses /= 2;
    entry->invalid /= 2;
  }
  if (entry->accesses >= kBypassAccesses && entry->invalid > entry->accesses / 2) return false;
  *location = entry->location;
  return true;
}

const LocationCache::Location* LocationCache::Peek(KeyHash hash) const {
  const Line& line = LineOf(hash);
  for (const Entry& entry : line.entries) {
    if (IsOf(entry, hash)) return &entry.location;
  }
  return nullptr;
}

void LocationCache::Put(KeyHash hash, Location location) {
  Line& line = LineOf(hash);
  if (Entry* entry = FindEntry(line, hash); entry != nullptr) {
    entry->location = location;
    return;
  }
  line.entries[1] = line.entries[0];
  line.entries[0] = Entry{Tag(hash), location, 0, 0, generation_};
}

void LocationCache::NoteInvalid(KeyHash hash) {
  Entry* entry = FindEntry(LineOf(hash), hash);
  if (entry != nullptr && entry->invalid < entry->accesses) ++entry->invalid;
}

}  // namespace onetrip
