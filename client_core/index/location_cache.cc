#include "client_core/index/location_cache.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace onetrip {

// Zeroed lines are lines without entries.
LocationCache::LocationCache(uint64_t bytes_max)
    : lines_max_(std::bit_floor(std::max<uint64_t>(bytes_max / sizeof(Line), 1))),
      part_mask_(lines_max_ > kParts * kFirstLines ? kParts - 1 : 0),
      lines_(std::min(lines_max_, kParts * kFirstLines)),
      first_memory_(lines_ * sizeof(Line)) {
  const uint64_t count = lines_ / (part_mask_ + 1);
  auto* lines = reinterpret_cast<Line*>(first_memory_.start());
  for (size_t i = 0; i <= part_mask_; ++i, lines += count) {
    parts_[i].lines = lines;
    parts_[i].mask = count - 1;
  }
}

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

bool LocationCache::Put(KeyHash hash, Location location) {
  Line& line = LineOf(hash);
  if (Entry* entry = FindEntry(line, hash); entry != nullptr) {
    entry->location = location;
    return false;
  }
  const bool leaves = line.entries[1].generation == generation_;
  line.PutFirst({hash.bits(), location, 0, 0, generation_});
  return leaves && NoteLeft(&parts_[PartNumber(hash)]);
}

// As few as leave until then hardly cost anything, and keys that are used again and again and do
// not all fit come to it.
bool LocationCache::NoteLeft(Part* part) {
  const uint64_t count = part->mask + 1;
  if (++part->left * 64 <= count || count * (part_mask_ + 1) >= lines_max_) return false;
  part->left = 0;
  Double(part);
  lines_ += part->mask + 1 - count;
  return part->mask + 1 != count;
}

void LocationCache::Double(Part* part) const {
  const uint64_t count = part->mask + 1;
  ZeroedMemory larger = ZeroedMemory::TryMake(2 * count * sizeof(Line), kHugeFrom);
  if (larger.start() == nullptr) return;
  const Line* const from = part->lines;
  const ZeroedMemory old = std::exchange(part->memory, std::move(larger));
  part->lines = reinterpret_cast<Line*>(part->memory.start());
  part->mask = 2 * count - 1;
  for (uint64_t i = 0; i < count; ++i) {
    for (const Entry& entry : {from[i].entries[1], from[i].entries[0]}) {
      if (entry.generation == generation_) LineOf(KeyHash(entry.hash)).PutFirst(entry);
    }
  }
}

void LocationCache::NoteInvalid(KeyHash hash) {
  Entry* entry = FindEntry(LineOf(hash), hash);
  if (entry != nullptr && entry->invalid < entry->accesses) ++entry->invalid;
}

}  // namespace onetrip
