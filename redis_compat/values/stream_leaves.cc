#include "redis_compat/values/stream_leaves.h"

#include <algorithm>
#include <string>
#include <utility>

namespace onetrip {
namespace {

// True for elements that may share a leaf when it is divided.
bool IsOneSection(const StreamKey& a, const StreamKey& b) {
  return a.kind == b.kind && a.group == b.group;
}

// Divides elements into leaves.
class LeafCutter {
 public:
  // `is_new` says which of them have come just now.
  template <typename IsNew>
  LeafCutter(const StreamRun& run, const TreeLimits& limits, const IsNew& is_new)
      : run_(run), most_(limits.leaf_bytes) {
    if (run.size() == 0) return;
    if (run.bytes().size() <= most_) {
      Add(0, run.size());
      return;
    }
    for (size_t begin = 0; begin < run.size();) {
      const size_t end = SectionEnd(begin);
      const bool grows = is_new(run.At(end - 1).key);
      CutSection(begin, end, grows ? most_ : EvenBytes(begin, end));
      begin = end;
    }
  }
  std::vector<NewLeaf> Take() { return std::move(leaves_); }

 private:
  [[nodiscard]] size_t Bytes(size_t begin, size_t end) const {
    return run_.BeginOf(end) - run_.BeginOf(begin);
  }

  // Sections that are small are one with the next one.
  [[nodiscard]] size_t SectionEnd(size_t begin) const {
    size_t end = begin + 1;
    StreamKey last = run_.At(begin).key;
    for (; end < run_.size(); ++end) {
      const StreamKey next = run_.At(end).key;
      if (!IsOneSection(last, next) && Bytes(begin, end) >= most_ / 4) break;
      last = next;
    }
    return end;
  }

  [[nodiscard]] size_t EvenBytes(size_t begin, size_t end) const {
    const size_t bytes = Bytes(begin, end);
    const size_t leaves = (bytes + most_ - 1) / most_;
    return (bytes + leaves - 1) / leaves;
  }

  void CutSection(size_t begin, size_t end, size_t wanted) {
    for (size_t at = begin; at < end;) {
      size_t next = at + 1;
      while (next < end && Bytes(at, next) < wanted && Bytes(at, next + 1) <= most_) ++next;
      Add(at, next);
      at = next;
    }
  }

  void Add(size_t begin, size_t end) {
    NewLeaf& leaf = leaves_.emplace_back();
    leaf.bytes = run_.bytes().substr(run_.BeginOf(begin), Bytes(begin, end));
    leaf.elements = end - begin;
    if (begin == 0) return;
    leaf.first = ShortestBetween(KeyBytes(run_.At(begin - 1).key), KeyBytes(run_.At(begin).key));
  }

  const StreamRun& run_;
  const size_t most_;
  std::vector<NewLeaf> leaves_;
};

// The changes from the first one on that are in a leaf.
std::span<const StreamChange> ChangesIn(const LeafPlace& leaf,
                                        std::span<const StreamChange> changes) {
  size_t count = 0;
  while (count < changes.size() &&
         (leaf.last.empty() || KeyBytes(changes[count].key) < leaf.last)) {
    ++count;
  }
  return changes.first(count);
}

// The leaves that come in the place of one, of which `elements` are left. False: it was damaged.
bool MakeLeaves(const Tree& tree, std::string_view elements, std::span<const StreamChange> changes,
                std::vector<NewLeaf>* leaves) {
  StreamRun run;
  if (!run.Load(elements)) return false;
  const auto is_new = [changes](const StreamKey& key) {
    const auto place = std::lower_bound(
        changes.begin(), changes.end(), key,
        [](const StreamChange& change, const StreamKey& other) { return change.key < other; });
    return place != changes.end() && place->key == key;
  };
  *leaves = LeafCutter(run, tree.limits(), is_new).Take();
  return true;
}

// Takes the elements of a gap out of the tree. False: a leaf is damaged.
bool WriteGap(Tree* tree, const StreamGap& gap) {
  LeafPlace first;
  LeafPlace last;
  const bool has_first = tree->SeekKey(0, KeyBytes(gap.first), &first);
  if (!tree->SeekKey(0, KeyBytes(gap.end), &last) || !has_first) return true;
  StreamRun before;
  StreamRun behind;
  if (!before.Load(first.bytes) || !behind.Load(last.bytes)) return false;
  const size_t begin = before.BeginOf(before.PlaceOf(gap.first));
  std::string elements(first.bytes.substr(0, begin));
  elements += last.bytes.substr(behind.BeginOf(behind.PlaceOf(gap.end)));
  // Two leaves that stand side by side, or one, may have none of them.
  const bool is_one = first.path == last.path;
  const size_t held = first.bytes.size() + (is_one ? 0 : last.bytes.size());
  const bool are_beside = is_one || last.before == first.before + first.elements;
  if (are_beside && elements.size() == held) return true;
  std::vector<NewLeaf> leaves;
  if (!MakeLeaves(*tree, elements, {}, &leaves)) return false;
  tree->ReplaceRange(0, first, last, std::move(leaves));
  return true;
}

}  // namespace

bool FitsStreamPage(const StreamChange& change) {
  return change.bytes.size() <= kPageBytesMax && change.key.name.size() <= kTreeNameBytesMax;
}

std::vector<NewLeaf> StreamLeaves(std::string_view elements, const TreeLimits& limits) {
  StreamRun run;
  if (!run.Load(elements)) return {};
  for (size_t i = 0; i < run.size(); ++i) {
    const StreamElement element = run.At(i);
    if (!FitsStreamPage({element.key, element.bytes})) return {};
  }
  return LeafCutter(run, limits, [](const StreamKey& /*key*/) { return true; }).Take();
}

bool WriteStreamChanges(Tree* tree, std::span<const StreamChange> changes,
                        std::span<const StreamGap> gaps) {
  for (const StreamGap& gap : gaps) {
    if (!WriteGap(tree, gap)) return false;
  }
  std::vector<NewLeaf> leaves;
  while (!changes.empty() && tree->missing().empty()) {
    LeafPlace leaf;
    std::span<const StreamChange> here = changes;
    // Without leaves, all that comes makes new ones.
    if (tree->elements(0) > 0) {
      if (!tree->SeekKey(0, KeyBytes(changes.front().key), &leaf)) return true;
      here = ChangesIn(leaf, changes);
    }
    StreamRun held;
    if (here.empty() || !held.Load(leaf.bytes)) return false;
    const std::string elements = WithChanges(held, here, {});
    if (!MakeLeaves(*tree, elements, here, &leaves)) return false;
    if (!tree->Replace(0, leaf, std::move(leaves))) return true;
    changes = changes.subspan(here.size());
  }
  return true;
}

}  // namespace onetrip
