#include "redis_compat/values/sorted_set_tree_edit.h"

#include <algorithm>
#include <utility>

#include "redis_compat/values/collection_tree.h"

namespace onetrip {
namespace {

uint64_t ElementBytes(std::string_view member) {
  return PackedEntryBytes(member.size()) + PackedEntryBytes(sizeof(PackedScore));
}

void AppendMember(const ScoredMember& one, std::string* to) {
  const PackedScore score = StoreScore(one.score);
  AppendPackedEntry(one.member, to);
  AppendPackedEntry({score.data(), score.size()}, to);
}

// 0 and -0 differ.
bool IsSame(const std::optional<double>& a, const std::optional<double>& b) {
  return a.has_value() == b.has_value() && (!a || StoreScore(*a) == StoreScore(*b));
}

// The changes from the first one on that are in a leaf.
template <typename Change>
std::span<const Change> ChangesIn(const LeafPlace& leaf, std::span<const Change> changes) {
  size_t count = 1;
  while (count < changes.size() && (leaf.last.empty() || changes[count].key < leaf.last)) ++count;
  return changes.first(count);
}

// Asks for the leaves of changes. False: some are missing.
template <typename Change>
bool NeedLeaves(Tree* tree, SortedSetOrder order, std::span<const Change> changes) {
  bool are_there = true;
  LeafPlace leaf;
  while (!changes.empty()) {
    const bool is_there = tree->SeekKey(order, changes.front().key, &leaf);
    are_there &= is_there;
    changes = changes.subspan(is_there ? ChangesIn(leaf, changes).size() : 1);
  }
  return are_there;
}

// The entries of a leaf by score with changes, which are in order.
template <typename Step>
std::string Merged(const LeafPlace& leaf, std::span<const Step> steps) {
  std::string made;
  size_t copied = 0;
  const auto copy_to = [&](size_t to) {
    made.append(leaf.bytes.substr(copied, to - copied));
    copied = to;
  };
  auto step = steps.begin();
  PackedElements members = LeafMembers(leaf);
  PackedElement element;
  for (size_t at = 0; step != steps.end() && members.Next(&element); at = members.at()) {
    const ScoredMember one = ScoredOf(element);
    for (; step != steps.end() && StandsBefore(step->one, one); ++step) {
      copy_to(at);
      if (step->comes) AppendMember(step->one, &made);
    }
    if (step == steps.end() || step->comes || StandsBefore(one, step->one)) continue;
    copy_to(at);
    copied = members.at();
    ++step;
  }
  copy_to(leaf.bytes.size());
  for (; step != steps.end(); ++step) {
    if (step->comes) AppendMember(step->one, &made);
  }
  return made;
}

bool IsLast(std::string_view member, std::string_view entries) {
  PackedElements members(PackedHeader(), entries, /*has_values=*/true);
  PackedElement element;
  members.GoToEnd();
  return members.Previous(&element) && element.key == member;
}

}  // namespace

TreeSortedSetEdit::TreeSortedSetEdit(Tree& tree, const CompactLimits& limits)
    : tree_(tree),
      limits_(limits),
      flags_(HeaderOf(tree).flags),
      size_(tree.elements(kByScore)),
      packed_bytes_(kPackedHeaderBytes + tree.leaf_bytes(kByScore)) {}

TreeSortedSetEdit::Member& TreeSortedSetEdit::Look(std::string_view name) {
  const auto [number, is_new] = numbers_.emplace(name, members_.size());
  if (is_new) {
    Member& member = members_.emplace_back();
    member.name = name;
    double score = 0;
    if (FindScore(tree_, name, &score)) member.before = member.now = score;
  }
  return members_[number->second];
}

bool TreeSortedSetEdit::Find(std::string_view member, double* score) {
  const Member& found = Look(member);
  if (found.now) *score = *found.now;
  return found.now.has_value();
}

bool TreeSortedSetEdit::Put(std::string_view member, double score) {
  Member& put = Look(member);
  const bool is_new = !put.now;
  const bool is_table = is_new && (size_ + 1 > limits_.elements || member.size() > limits_.bytes);
  if (is_table) flags_ |= kPackedTable;
  fits_ &= member.size() <= kTreeMemberBytesMax;
  Set(&put, KeptScore(score, (flags_ & kPackedTable) != 0));
  return is_new;
}

bool TreeSortedSetEdit::Remove(std::string_view member) {
  Member& removed = Look(member);
  const bool was_there = removed.now.has_value();
  if (was_there) Set(&removed, std::nullopt);
  return was_there;
}

void TreeSortedSetEdit::RemoveKnown(const ScoredMember& one) {
  numbers_.emplace(one.member, members_.size());
  members_.push_back({one.member, one.score, one.score});
  Set(&members_.back(), std::nullopt);
}

void TreeSortedSetEdit::Set(Member* member, std::optional<double> score) {
  const uint64_t bytes = ElementBytes(member->name);
  if (member->now) {
    --size_;
    packed_bytes_ -= bytes;
  }
  if (score) {
    ++size_;
    packed_bytes_ += bytes;
  }
  member->now = score;
}

std::vector<TreeSortedSetEdit::Step> TreeSortedSetEdit::Steps() const {
  std::vector<Step> steps;
  for (const Member& member : members_) {
    if (IsSame(member.before, member.now)) continue;
    for (const bool comes : {false, true}) {
      const std::optional<double>& score = comes ? member.now : member.before;
      if (!score) continue;
      const ScoredMember one{member.name, *score};
      steps.push_back({ScoreKey(one), one, comes});
    }
  }
  // Where it is 0 in place of -0, a member leaves first.
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.key < b.key; });
  return steps;
}

std::vector<TreeSortedSetEdit::Assignment> TreeSortedSetEdit::Assignments() const {
  std::vector<Assignment> all;
  for (const Member& member : members_) {
    if (!IsSame(member.before, member.now)) all.push_back({MemberKey(member.name), &member});
  }
  std::sort(all.begin(), all.end(),
            [](const Assignment& a, const Assignment& b) { return a.key < b.key; });
  return all;
}

bool TreeSortedSetEdit::Finish() {
  if (!fits_ || packed_bytes_ < tree_.limits().packed_bytes / 4) return false;
  const std::vector<Step> steps = Steps();
  const std::vector<Assignment> assignments = Assignments();
  const bool has_scores = NeedLeaves(&tree_, kByScore, std::span(steps));
  const bool has_positions = NeedLeaves(&tree_, kByPosition, std::span(assignments));
  // Others that have changed the tree before may lack pages, too.
  if (!has_scores || !has_positions || !tree_.missing().empty()) return true;
  // By position first: if those leaves cannot be, the ones by score are still as they were.
  if (EditByPosition(assignments) && EditByScore(steps)) {
    tree_.set_header(PackedHeaderBytes({flags_, static_cast<uint32_t>(size_)}));
  }
  return fits_;
}

bool TreeSortedSetEdit::FinishPacked(std::string* packed) {
  std::string joined;
  if (!JoinLeaves(tree_, &joined)) return false;
  PackedSortedSetEdit edit(joined, limits_);
  for (const Member& member : members_) {
    if (IsSame(member.before, member.now)) continue;
    member.now ? edit.Put(member.name, *member.now) : edit.Remove(member.name);
  }
  *packed = edit.Finish();
  return true;
}

bool TreeSortedSetEdit::EditByPosition(std::span<const Assignment> all) {
  LeafPlace leaf;
  while (!all.empty()) {
    if (!tree_.SeekKey(kByPosition, all.front().key, &leaf)) return false;
    const std::span<const Assignment> here = ChangesIn(leaf, all);
    uint64_t elements = leaf.elements;
    const std::string entries = Assigned(leaf, here, &elements);
    const PackedElements made({0, static_cast<uint32_t>(elements)}, entries, /*has_values=*/true);
    std::vector<NewLeaf> leaves = PositionLeaves(made, tree_.limits());
    fits_ = FitPages(leaves);
    if (!fits_ || !tree_.Replace(kByPosition, leaf, std::move(leaves))) return false;
    all = all.subspan(here.size());
  }
  return true;
}

std::string TreeSortedSetEdit::Assigned(const LeafPlace& leaf, std::span<const Assignment> here,
                                        uint64_t* elements) const {
  std::string made;
  size_t copied = 0;
  const auto copy_to = [&](size_t to) {
    made.append(leaf.bytes.substr(copied, to - copied));
    copied = to;
  };
  PackedElements members = LeafMembers(leaf);
  PackedElement element;
  for (size_t at = 0; members.Next(&element); at = members.at()) {
    const auto number = numbers_.find(element.key);
    if (number == numbers_.end()) continue;
    const Member& member = members_[number->second];
    if (IsSame(member.before, member.now)) continue;
    copy_to(at);
    copied = members.at();
    if (member.now) AppendMember({member.name, *member.now}, &made);
    *elements -= member.now ? 0 : 1;
  }
  copy_to(leaf.bytes.size());
  for (const Assignment& one : here) {
    if (one.member->before) continue;
    AppendMember({one.member->name, *one.member->now}, &made);
    ++*elements;
  }
  return made;
}

bool TreeSortedSetEdit::EditByScore(std::span<const Step> all) {
  LeafPlace leaf;
  while (!all.empty()) {
    if (!tree_.SeekKey(kByScore, all.front().key, &leaf)) return false;
    const std::span<const Step> here = ChangesIn(leaf, all);
    const std::string entries = Merged(leaf, here);
    // Scores that only rise, such as times, leave full leaves behind.
    const bool is_at_end =
        leaf.last.empty() && here.back().comes && IsLast(here.back().one.member, entries);
    std::vector<NewLeaf> leaves =
        ScoreLeaves(entries, is_at_end ? Fill::kFull : Fill::kEven, tree_.limits());
    fits_ = FitPages(leaves);
    if (!fits_ || !tree_.Replace(kByScore, leaf, std::move(leaves))) return false;
    all = all.subspan(here.size());
  }
  return true;
}

}  // namespace onetrip
