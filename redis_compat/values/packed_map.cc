#include "redis_compat/values/packed_map.h"

#include <algorithm>

namespace onetrip {

PackedElements::PackedElements(std::string_view value, bool has_values) : has_values_(has_values) {
  if (LoadPackedHeader(value, &header_)) entries_ = PackedEntries(value);
  const size_t least = kPackedEntryBytesMin * (has_values ? 2 : 1);
  header_.elements =
      static_cast<uint32_t>(std::min<uint64_t>(header_.elements, entries_.size() / least));
  cursor_ = PackedCursor(entries_);
}

bool PackedElements::Next(PackedElement* element) {
  element->value = {};
  return cursor_.Next(&element->key) && (!has_values_ || cursor_.Next(&element->value));
}

bool PackedElements::Previous(PackedElement* element) {
  element->value = {};
  return (!has_values_ || cursor_.Previous(&element->value)) && cursor_.Previous(&element->key);
}

PackedMap::Change* PackedMap::FindChange(std::string_view key) {
  if (changes_.size() <= kScansMax) {
    const auto found = std::find_if(changes_.begin(), changes_.end(),
                                    [key](const Change& c) { return c.element.key == key; });
    return found == changes_.end() ? nullptr : &*found;
  }
  const auto found = changed_keys_.find(key);
  return found == changed_keys_.end() ? nullptr : &changes_[found->second];
}

void PackedMap::AddChange(const Change& change) {
  changes_.push_back(change);
  if (changes_.size() <= kScansMax) return;
  const size_t first = changed_keys_.empty() ? 0 : changes_.size() - 1;
  for (size_t i = first; i < changes_.size(); ++i) changed_keys_[changes_[i].element.key] = i;
}

PackedMap::Place PackedMap::FindPlace(std::string_view key) {
  const bool scans = scans_ < kScansMax;
  if (scans || places_.empty()) {
    ++scans_;
    PackedElements elements = base_;
    PackedElement element;
    for (size_t at = 0; elements.Next(&element); at = elements.at()) {
      const Place place{at, elements.at() - at, element.value};
      if (!scans) {
        places_.emplace(element.key, place);
      } else if (element.key == key) {
        return place;
      }
    }
  }
  if (scans) return {};
  const auto found = places_.find(key);
  return found == places_.end() ? Place() : found->second;
}

bool PackedMap::Find(std::string_view key, std::string_view* value) {
  std::string_view found_value;
  bool found = false;
  if (const Change* const change = FindChange(key); change != nullptr) {
    found = change->is_there;
    found_value = change->element.value;
  } else {
    const Place place = FindPlace(key);
    found = place.at != kNowhere;
    found_value = place.value;
  }
  if (found && value != nullptr) *value = found_value;
  return found;
}

bool PackedMap::Put(std::string_view key, std::string_view value) {
  bool is_new = false;
  if (Change* const change = FindChange(key); change != nullptr) {
    is_new = !change->is_there;
    change->is_there = true;
    change->element.value = value;
  } else {
    const Place place = FindPlace(key);
    is_new = place.at == kNowhere;
    AddChange({{key, value}, place, true});
  }
  size_ += is_new ? 1 : 0;
  return is_new;
}

bool PackedMap::Remove(std::string_view key) {
  bool was_there = false;
  if (Change* const change = FindChange(key); change != nullptr) {
    was_there = change->is_there;
    change->is_there = false;
  } else {
    const Place place = FindPlace(key);
    was_there = place.at != kNowhere;
    if (was_there) AddChange({{key, {}}, place, false});
  }
  size_ -= was_there && size_ > 0 ? 1 : 0;
  return was_there;
}

void PackedMap::AppendElement(const PackedElement& element, std::string* to) const {
  AppendPackedEntry(element.key, to);
  if (has_values_) AppendPackedEntry(element.value, to);
}

uint64_t PackedMap::entry_bytes() const {
  uint64_t bytes = base_.entries().size();
  for (const Change& change : changes_) {
    if (change.place.at != kNowhere) bytes -= change.place.bytes;
    if (!change.is_there) continue;
    bytes += PackedEntryBytes(change.element.key.size());
    if (has_values_) bytes += PackedEntryBytes(change.element.value.size());
  }
  return bytes;
}

void PackedMap::RepeatOn(PackedMap* other) const {
  for (const Change& change : changes_) {
    if (change.is_there) {
      other->Put(change.element.key, change.element.value);
    } else {
      other->Remove(change.element.key);
    }
  }
}

std::string PackedMap::Finish(uint8_t flags, Before before) const {
  std::string made;
  made.reserve(kPackedHeaderBytes + entry_bytes());
  made += PackedHeaderBytes({flags, static_cast<uint32_t>(size_)});
  AppendEntries(&made, before);
  return made;
}

void PackedMap::AppendEntries(std::string* to, Before before) const {
  std::vector<const Change*> leaving;  // their places in the collection end
  std::vector<const Change*> coming;   // they have a place of their own
  for (const Change& change : changes_) {
    const bool was_there = change.place.at != kNowhere;
    if (was_there) leaving.push_back(&change);
    if (change.is_there && (before != nullptr || !was_there)) coming.push_back(&change);
  }
  std::sort(leaving.begin(), leaving.end(),
            [](const Change* a, const Change* b) { return a->place.at < b->place.at; });
  if (before != nullptr) {
    std::sort(coming.begin(), coming.end(), [before](const Change* a, const Change* b) {
      return before(a->element, b->element);
    });
  }

  PackedElements elements = base_;
  PackedElement element;
  auto leaves = leaving.begin();
  auto comes = coming.begin();
  size_t copied = 0;  // all elements that begin before are copied, or gone
  const auto copy_until = [&](size_t end) {
    to->append(base_.entries().substr(copied, end - copied));
    copied = end;
  };
  const auto skip_leaving = [&] {
    const Change& change = **leaves++;
    copy_until(change.place.at);
    if (change.is_there && before == nullptr) AppendElement(change.element, to);
    copied = change.place.at + change.place.bytes;
  };
  if (before != nullptr) {
    for (size_t at = 0; comes != coming.end() && elements.Next(&element); at = elements.at()) {
      if (leaves != leaving.end() && (*leaves)->place.at == at) {
        skip_leaving();
        continue;
      }
      for (; comes != coming.end() && before((*comes)->element, element); ++comes) {
        copy_until(at);
        AppendElement((*comes)->element, to);
      }
    }
  }
  while (leaves != leaving.end()) skip_leaving();
  copy_until(base_.entries().size());
  for (; comes != coming.end(); ++comes) AppendElement((*comes)->element, to);
}

}  // namespace onetrip
