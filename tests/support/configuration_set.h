// Sets of configurations for the linearizability search.
//
// A configuration is what the search knows at a point of the history: the state of the key, and
// which of the operations in flight have taken effect. Operations that never ended ("open") need
// not take effect at all, so a configuration in which fewer of them have done so allows whatever
// one with more of them allows; the same holds for an earlier time and a wider deadline. What is
// dominated that way is not kept.
#ifndef ONETRIP_TESTS_SUPPORT_CONFIGURATION_SET_H_
#define ONETRIP_TESTS_SUPPORT_CONFIGURATION_SET_H_

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "tests/support/command_model.h"

namespace onetrip {

// Open operations by slot.
class OpenSet {
 public:
  static constexpr uint32_t kSlots = 256;

  [[nodiscard]] bool Has(uint32_t slot) const {
    return ((words_[slot / 64] >> slot % 64) & 1) != 0;
  }
  void Insert(uint32_t slot) { words_[slot / 64] |= uint64_t{1} << slot % 64; }
  void Erase(uint32_t slot) { words_[slot / 64] &= ~(uint64_t{1} << slot % 64); }
  [[nodiscard]] bool IsSubsetOf(const OpenSet& other) const {
    for (size_t i = 0; i < words_.size(); ++i) {
      if ((words_[i] & ~other.words_[i]) != 0) return false;
    }
    return true;
  }
  void Intersect(const OpenSet& other) {
    for (size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
  }

 private:
  std::array<uint64_t, kSlots / 64> words_ = {};
};

struct Configuration {
  KeyState state;
  uint64_t done = 0;  // bit per slot of the operations in flight that end
  OpenSet open_done;
};

class ConfigurationSet {
 public:
  ConfigurationSet() : heads_(kHeadsMin, kNone) {}

  // Adds `configuration` unless one in the set dominates it. With `replace`, it may take the place
  // of one that it dominates; else every index keeps its configuration.
  bool Add(const Configuration& configuration, bool replace = false) {
    const size_t head = HeadOf(configuration);
    for (uint32_t i = heads_[head]; i != kNone; i = links_[i].next) {
      if (Dominates(items_[i], configuration)) return false;
      if (replace && Dominates(configuration, items_[i])) {
        items_[i] = configuration;
        return true;
      }
    }
    links_.push_back({heads_[head], static_cast<uint32_t>(head)});
    heads_[head] = static_cast<uint32_t>(items_.size());
    items_.push_back(configuration);
    if (items_.size() > heads_.size()) Grow();
    return true;
  }

  void Clear() {
    if (items_.size() < heads_.size() / 8) {
      for (const Link& link : links_) heads_[link.head] = kNone;
    } else {
      heads_.assign(heads_.size(), kNone);
    }
    items_.clear();
    links_.clear();
  }

  [[nodiscard]] size_t size() const { return items_.size(); }
  [[nodiscard]] const Configuration& operator[](size_t i) const { return items_[i]; }
  // For changes that make no two of them equal. Forgets how to find them: only Clear(), size() and
  // the operator may follow.
  std::vector<Configuration>& items() { return items_; }
  [[nodiscard]] const std::vector<Configuration>& items() const { return items_; }

 private:
  struct Link {
    uint32_t next;  // the next item under the same head
    uint32_t head;  // which a changed item no longer tells
  };
  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr size_t kHeadsMin = 64;

  static bool Dominates(const Configuration& a, const Configuration& b) {
    return a.done == b.done && a.state.value == b.state.value && a.state.away == b.state.away &&
           a.state.has_deadline() == b.state.has_deadline() && a.state.time_ns <= b.state.time_ns &&
           a.state.deadline_earliest_ms <= b.state.deadline_earliest_ms &&
           a.state.deadline_latest_ms >= b.state.deadline_latest_ms &&
           a.open_done.IsSubsetOf(b.open_done);
  }

  // By what equal and dominated configurations share.
  [[nodiscard]] size_t HeadOf(const Configuration& item) const {
    const uint64_t mixed = (item.done * 0x9e3779b97f4a7c15ULL) ^
                           (uint64_t{item.state.value} * 0xc2b2ae3d27d4eb4fULL) ^
                           (uint64_t{item.state.away.value} * 0x94d049bb133111ebULL) ^
                           (item.state.has_deadline() ? 0xff51afd7ed558ccdULL : 0);
    return static_cast<size_t>((mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9ULL >>
                               (64 - std::bit_width(heads_.size() - 1)));
  }

  void Grow() {
    heads_.assign(heads_.size() * 4, kNone);
    for (uint32_t i = 0; i < items_.size(); ++i) {
      const size_t head = HeadOf(items_[i]);
      links_[i] = {heads_[head], static_cast<uint32_t>(head)};
      heads_[head] = i;
    }
  }

  std::vector<Configuration> items_;
  std::vector<Link> links_;      // per item
  std::vector<uint32_t> heads_;  // a power of two of them
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_CONFIGURATION_SET_H_
