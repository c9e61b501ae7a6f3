#include "redis_compat/values/stream_elements.h"

#include <algorithm>
#include <utility>

#include "client_core/base/check.h"
#include "redis_compat/values/collection_tree.h"
#include "redis_compat/values/stream_leaves.h"

namespace onetrip {

bool StreamRun::Load(std::string_view bytes) {
  bytes_ = bytes;
  begins_.clear();
  for (size_t at = 0; at < bytes.size();) {
    StreamElement element;
    if (!LoadStreamElement(bytes.substr(at), &element)) return false;
    if (begins_.empty()) {
      first_ = element.key;
    } else if (element.key <= last_) {
      return false;
    }
    last_ = element.key;
    begins_.push_back(static_cast<uint32_t>(at));
    at += element.bytes.size();
  }
  return true;
}

StreamElement StreamRun::At(size_t place) const {
  StreamElement element;
  const size_t begin = begins_[place];
  CHECK(LoadStreamElement(bytes_.substr(begin, BeginOf(place + 1) - begin), &element));
  return element;
}

size_t StreamRun::PlaceOf(const StreamKey& key, bool behind) const {
  size_t begin = 0;
  size_t end = size();
  while (begin < end) {
    const size_t middle = begin + (end - begin) / 2;
    const StreamKey found = At(middle).key;
    if (found < key || (behind && found == key)) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

std::string WithChanges(const StreamRun& run, std::span<const StreamChange> changes,
                        std::span<const StreamGap> gaps) {
  size_t copied = 0;  // elements
  size_t bytes = run.bytes().size();
  for (const StreamChange& change : changes) bytes += change.bytes.size();
  std::string made;
  made.reserve(bytes);
  const auto append_to = [&](size_t place) {
    const size_t begin = run.BeginOf(copied);
    if (place > copied) made += run.bytes().substr(begin, run.BeginOf(place) - begin);
    copied = std::max(copied, place);
  };
  const auto copy_to = [&](size_t place) {
    for (const StreamGap& gap : gaps) {
      const size_t first = run.PlaceOf(gap.first);
      const size_t end = run.PlaceOf(gap.end);
      if (first >= place || end <= copied) continue;
      append_to(first);
      copied = std::max(copied, end);
    }
    append_to(place);
  };
  for (const StreamChange& change : changes) {
    copy_to(run.PlaceOf(change.key));
    made += change.bytes;
    if (copied < run.size() && run.At(copied).key == change.key) ++copied;
  }
  copy_to(run.size());
  return made;
}

bool StreamElements::Load(std::string_view packed) { return packed_.run.Load(packed); }

void StreamElements::Load(Tree& tree) { tree_ = &tree; }

const StreamElements::Leaf* StreamElements::Keep(LeafPlace place) {
  const auto [kept, is_new] = leaves_.try_emplace(place.before);
  Leaf& leaf = kept->second;
  if (is_new) {
    leaf.place = std::move(place);
    const bool is_sound = leaf.run.Load(leaf.place.bytes) && leaf.run.size() == leaf.place.elements;
    if (!is_sound) {
      leaf.run = StreamRun();
      Damaged();
    }
  }
  if (leaf.run.size() == 0) return nullptr;
  recent_[next_recent_++ % kRecentLeaves] = &leaf;
  return &leaf;
}

const StreamElements::Leaf* StreamElements::LeafOf(const StreamKey& key) {
  if (tree_ == nullptr) return packed_.run.size() == 0 ? nullptr : &packed_;
  for (const Leaf* const leaf : recent_) {
    if (leaf != nullptr && leaf->run.Spans(key)) return leaf;
  }
  LeafPlace place;
  if (!tree_->SeekKey(0, KeyBytes(key), &place)) return nullptr;
  return Keep(std::move(place));
}

const StreamElements::Leaf* StreamElements::Beside(const Leaf& leaf, bool forwards) {
  if (tree_ == nullptr) return nullptr;
  LeafPlace place = leaf.place;
  const bool is_there = forwards ? tree_->Next(0, &place) : tree_->Previous(0, &place);
  return is_there ? Keep(std::move(place)) : nullptr;
}

bool StreamElements::SeekHeld(StreamKey key, bool behind, StreamElement* element) {
  while (true) {
    if (const StreamGap* const gap = GapOf(key)) {
      key = gap->end;
      behind = false;
    }
    const Leaf* leaf = LeafOf(key);
    if (leaf == nullptr) return false;
    size_t place = leaf->run.PlaceOf(key, behind);
    if (place == leaf->run.size()) {
      leaf = Beside(*leaf, /*forwards=*/true);
      if (leaf == nullptr) return false;
      place = 0;
    }
    *element = leaf->run.At(place);
    if (element->key < key || (behind && element->key == key)) return Damaged();
    if (GapOf(element->key) == nullptr) return true;
    key = element->key;
    behind = false;
  }
}

bool StreamElements::HeldBefore(const StreamKey& key, StreamElement* element) {
  StreamKey to = key;
  while (true) {
    const Leaf* leaf = LeafOf(to);
    if (leaf == nullptr) return false;
    size_t place = leaf->run.PlaceOf(to);
    if (place == 0) {
      leaf = Beside(*leaf, /*forwards=*/false);
      if (leaf == nullptr) return false;
      place = leaf->run.size();
    }
    *element = leaf->run.At(place - 1);
    if (element->key >= to) return Damaged();
    const StreamGap* const gap = GapOf(element->key);
    if (gap == nullptr) return true;
    to = gap->first;
  }
}

const StreamGap* StreamElements::GapOf(const StreamKey& key) const {
  for (const StreamGap& gap : gaps_) {
    if (gap.Has(key)) return &gap;
  }
  return nullptr;
}

bool StreamElements::Seek(const StreamKey& key, bool behind, StreamElement* element) {
  StreamKey from = key;
  StreamElement held;
  while (true) {
    const bool is_held = SeekHeld(from, behind, &held);
    const auto change = behind ? changes_.upper_bound(from) : changes_.lower_bound(from);
    if (change == changes_.end() || (is_held && held.key < change->first)) {
      if (is_held) *element = held;
      return is_held;
    }
    if (!change->second.empty()) return LoadStreamElement(change->second, element) || Damaged();
    from = change->first;
    behind = true;
  }
}

bool StreamElements::Before(const StreamKey& key, StreamElement* element) {
  StreamKey to = key;
  StreamElement held;
  while (true) {
    const bool is_held = HeldBefore(to, &held);
    auto change = changes_.lower_bound(to);
    if (change == changes_.begin() || (is_held && std::prev(change)->first < held.key)) {
      if (is_held) *element = held;
      return is_held;
    }
    --change;
    if (!change->second.empty()) return LoadStreamElement(change->second, element) || Damaged();
    to = change->first;
  }
}

bool StreamElements::From(const StreamKey& key, StreamElement* element) {
  return Seek(key, /*behind=*/false, element);
}

bool StreamElements::Behind(const StreamKey& key, StreamElement* element) {
  return Seek(key, /*behind=*/true, element);
}

bool StreamElements::Find(const StreamKey& key, StreamElement* element) {
  const auto change = changes_.find(key);
  if (change != changes_.end()) {
    return !change->second.empty() && LoadStreamElement(change->second, element);
  }
  if (GapOf(key) != nullptr) return false;
  const Leaf* const leaf = LeafOf(key);
  if (leaf == nullptr) return false;
  const size_t place = leaf->run.PlaceOf(key);
  if (place == leaf->run.size()) return false;
  *element = leaf->run.At(place);
  return element->key == key;
}

void StreamElements::WantAll(const StreamKey& first, const StreamKey& end, uint64_t most,
                             bool reverse) {
  if (tree_ == nullptr) return;
  LeafPlace low;
  LeafPlace high;
  const bool needs_low = !reverse || most == 0;
  const bool needs_high = reverse || most == 0;
  const bool has_low = !needs_low || tree_->SeekKey(0, KeyBytes(first), &low);
  const bool has_high = !needs_high || tree_->SeekKey(0, KeyBytes(end), &high);
  if (!has_low || !has_high) return;
  uint64_t from = low.before;
  uint64_t to = needs_high ? high.before + high.elements : tree_->elements(0);
  if (most > 0 && reverse) from = to - std::min(to, high.elements + most);
  if (most > 0 && !reverse) to = std::min(to, low.before + low.elements + most);
  if (from < to) SeekNumbers(*tree_, 0, from, to - from);
}

void StreamElements::Put(std::string element) {
  const std::string& bytes = kept_.emplace_back(std::move(element));
  StreamElement made;
  if (!LoadStreamElement(bytes, &made)) {
    Damaged();
    return;
  }
  changes_.insert_or_assign(made.key, made.bytes);
}

void StreamElements::Erase(const StreamElement& element) {
  StreamKey key = element.key;
  // The bytes that it lies in may go before this change is written.
  if (!key.name.empty()) key.name = kept_.emplace_back(key.name);
  changes_.insert_or_assign(key, std::string_view());
}

void StreamElements::EraseAll(const StreamKey& first, const StreamKey& end) {
  const auto place = std::find_if(gaps_.begin(), gaps_.end(),
                                  [&](const StreamGap& gap) { return first <= gap.first; });
  if (place != gaps_.end() && place->first == first) {
    place->end = std::max(place->end, end);
  } else {
    gaps_.insert(place, {first, end});
  }
  changes_.erase(changes_.lower_bound(first), changes_.lower_bound(end));
}

uint64_t StreamElements::BytesMax() const {
  uint64_t bytes = tree_ != nullptr ? tree_->leaf_bytes(0) : packed_.run.bytes().size();
  for (const auto& [key, change] : changes_) bytes += change.size();
  return bytes;
}

std::vector<StreamChange> StreamElements::Changes() const {
  std::vector<StreamChange> changes;
  changes.reserve(changes_.size());
  for (const auto& [key, bytes] : changes_) changes.push_back({key, bytes});
  return changes;
}

void StreamElements::AppendTo(std::string* packed) const {
  *packed += WithChanges(packed_.run, Changes(), gaps_);
}

void StreamElements::RepeatOn(StreamElements* others) const {
  others->gaps_ = gaps_;
  others->changes_ = changes_;
}

bool StreamElements::Finish() {
  const std::vector<StreamChange> changes = Changes();
  for (const StreamChange& change : changes) {
    if (!FitsStreamPage(change)) return false;
    LeafOf(change.key);
  }
  for (const StreamGap& gap : gaps_) {
    LeafOf(gap.first);
    LeafOf(gap.end);
  }
  // Others that have changed the tree before may lack pages, too.
  const bool is_sound = tree_->missing().empty() && !is_damaged_;
  if (is_sound && !WriteStreamChanges(tree_, changes, gaps_)) Damaged();
  leaves_.clear();
  recent_ = {};
  return true;
}

}  // namespace onetrip
