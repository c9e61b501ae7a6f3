// VisitedSet: fingerprints of the states seen so far, with a byte of notes each. Open addressing,
// at most half full: 18 bytes a state at worst.
#ifndef ONETRIP_TESTS_EXPLORE_VISITED_SET_H_
#define ONETRIP_TESTS_EXPLORE_VISITED_SET_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace onetrip {

class VisitedSet {
 public:
  VisitedSet() : keys_(1024), notes_(1024) {}

  // The notes of `fingerprint`, which hold until the next call, and whether it is new.
  std::pair<uint8_t*, bool> Insert(uint64_t fingerprint) {
    if (2 * (size_ + 1) > keys_.size()) Grow();
    const uint64_t key = fingerprint == 0 ? 1 : fingerprint;
    const size_t place = PlaceOf(key);
    const bool is_new = keys_[place] == 0;
    if (is_new) {
      keys_[place] = key;
      ++size_;
    }
    return {&notes_[place], is_new};
  }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  [[nodiscard]] size_t PlaceOf(uint64_t key) const {
    size_t place = key & (keys_.size() - 1);
    while (keys_[place] != 0 && keys_[place] != key) place = (place + 1) & (keys_.size() - 1);
    return place;
  }
  void Grow() {
    std::vector<uint64_t> old_keys(keys_.size() * 2);
    std::vector<uint8_t> old_notes(keys_.size() * 2);
    old_keys.swap(keys_);
    old_notes.swap(notes_);
    for (size_t i = 0; i < old_keys.size(); ++i) {
      if (old_keys[i] == 0) continue;
      const size_t place = PlaceOf(old_keys[i]);
      keys_[place] = old_keys[i];
      notes_[place] = old_notes[i];
    }
  }

  std::vector<uint64_t> keys_;
  std::vector<uint8_t> notes_;
  size_t size_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_VISITED_SET_H_
