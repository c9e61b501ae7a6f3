// StreamElements: the elements of a stream, packed or a tree, and changes to them.
//
// Changes lie beside the elements until they are written at once. Of a tree only the leaves are
// looked at in which something is sought. Where pages are missing nothing is found, and what comes
// out is of no account.
//
// Pure; one thread. Elements come from memory nodes: nothing here trusts them.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_ELEMENTS_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_ELEMENTS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/tree/tree.h"
#include "redis_compat/values/stream_element.h"

namespace onetrip {

// Elements that lie one behind the other: a leaf, or all of a packed stream.
class StreamRun {
 public:
  // `bytes` outlive it. False: they are not elements in their order.
  bool Load(std::string_view bytes);

  [[nodiscard]] size_t size() const { return begins_.size(); }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] StreamElement At(size_t place) const;
  // Where an element begins; for the place behind the last one, where that ends.
  [[nodiscard]] size_t BeginOf(size_t place) const {
    return place < begins_.size() ? begins_[place] : bytes_.size();
  }
  // The place of the first element that is not before `key`, or behind it.
  [[nodiscard]] size_t PlaceOf(const StreamKey& key, bool behind = false) const;
  // True if `key` stands among the elements.
  [[nodiscard]] bool Spans(const StreamKey& key) const {
    return size() > 0 && first_ <= key && key <= last_;
  }

 private:
  std::string_view bytes_;
  std::vector<uint32_t> begins_;
  StreamKey first_;
  StreamKey last_;
};

// An element that comes, or goes. Its name lies in bytes that the holder keeps.
struct StreamChange {
  StreamKey key;
  std::string_view bytes;  // empty: it goes
};
// All elements from one key on to before another one, which are gone. Keys without names.
struct StreamGap {
  StreamKey first;
  StreamKey end;

  [[nodiscard]] bool Has(const StreamKey& key) const { return first <= key && key < end; }
};
// The elements of a run with changes, which stand in their order; without those in the gaps, in
// which no change lies.
std::string WithChanges(const StreamRun& run, std::span<const StreamChange> changes,
                        std::span<const StreamGap> gaps);

class StreamElements {
 public:
  StreamElements() = default;
  StreamElements(const StreamElements&) = delete;
  StreamElements& operator=(const StreamElements&) = delete;

  // `packed`: all of them, one behind the other, which outlive it. False: they are damaged.
  bool Load(std::string_view packed);
  // `tree` outlives it, and is changed by nothing else before Finish().
  void Load(Tree& tree);
  [[nodiscard]] Tree* tree() const { return tree_; }

  // Each gives an element, which lives until it is changed. False: there is none.
  bool Find(const StreamKey& key, StreamElement* element);
  // The first one that is not before `key`; the first one behind it; the last one before it.
  bool From(const StreamKey& key, StreamElement* element);
  bool Behind(const StreamKey& key, StreamElement* element);
  bool Before(const StreamKey& key, StreamElement* element);
  // Asks for the leaves of elements that will be sought, so that they are read together: of those
  // from `first` on to before `end`; `most` of them, if it is not 0, from that end on which the
  // walk begins.
  void WantAll(const StreamKey& first, const StreamKey& end, uint64_t most = 0,
               bool reverse = false);

  // Makes an element, or puts another one in its place.
  void Put(std::string element);
  void Erase(const StreamElement& element);
  // Erases all elements from `first` on to before `end`, unseen. Nothing comes there any more. Keys
  // without names; ranges do not meet but for one of the same `first`, which becomes longer.
  void EraseAll(const StreamKey& first, const StreamKey& end);

  // Something was found to be damaged.
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }
  bool Damaged() {
    is_damaged_ = true;
    return false;
  }
  // Pages are missing: something may not have been found for that.
  [[nodiscard]] bool is_missing() const { return tree_ != nullptr && !tree_->missing().empty(); }

  // Bytes of all elements, no fewer than there are with the changes.
  [[nodiscard]] uint64_t BytesMax() const;
  // Appends all elements, with the changes. REQUIRES: they are packed.
  void AppendTo(std::string* packed) const;
  // Writes the changes into the tree. False: it cannot have them, and was not changed.
  bool Finish();
  // Makes the same changes to others, which it outlives.
  void RepeatOn(StreamElements* others) const;

 private:
  struct Leaf {
    LeafPlace place;
    StreamRun run;
  };
  static constexpr size_t kRecentLeaves = 4;

  // The leaf in which `key` is, if any has it. Null: there is none.
  const Leaf* LeafOf(const StreamKey& key);
  const Leaf* Keep(LeafPlace place);
  const Leaf* Beside(const Leaf& leaf, bool forwards);
  bool Seek(const StreamKey& key, bool behind, StreamElement* element);
  // The same as Seek() and Before(), without the changes.
  bool SeekHeld(StreamKey key, bool behind, StreamElement* element);
  bool HeldBefore(const StreamKey& key, StreamElement* element);
  // The gap that has it; null: none.
  [[nodiscard]] const StreamGap* GapOf(const StreamKey& key) const;
  [[nodiscard]] std::vector<StreamChange> Changes() const;

  Tree* tree_ = nullptr;
  Leaf packed_;                      // unless it is a tree
  std::map<uint64_t, Leaf> leaves_;  // that were looked at, by the elements before them
  std::array<const Leaf*, kRecentLeaves> recent_ = {};
  size_t next_recent_ = 0;
  std::vector<StreamGap> gaps_;
  std::map<StreamKey, std::string_view> changes_;  // empty: it goes
  std::deque<std::string> kept_;                   // bytes of changes
  bool is_damaged_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_ELEMENTS_H_
