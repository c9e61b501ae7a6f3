#include "redis_compat/values/sorted_set_edit.h"

#include "redis_compat/values/sorted_set_tree_range.h"

namespace onetrip {

void SelectedMembers::Select(std::string_view value, const MemberRange& range) {
  members_ = SortedSetMembers(value);
  span_ = SelectMembers(members_, range);
  reverse_ = range.reverse;
  Rewind();
}

void SelectedMembers::Select(Tree& tree, const MemberRange& range) {
  RankSpan ranks;
  copied_.clear();
  span_ = {};
  if (SelectRanks(tree, range, &ranks) && CopyRanks(tree, ranks, &copied_)) {
    span_ = {0, copied_.size() - kPackedHeaderBytes, ranks.count()};
  }
  members_ = SortedSetMembers(copied_);
  reverse_ = range.reverse;
  Rewind();
}

bool SelectedMembers::Next(PackedElement* member) {
  if (told_ == span_.count) return false;
  ++told_;
  return reverse_ ? members_.Previous(member) : members_.Next(member);
}

void SelectedMembers::Rewind() {
  told_ = 0;
  members_.GoTo(reverse_ ? span_.end : span_.begin);
}

void SortedSetEdit::Select(const MemberRange& range, SelectedMembers* members) {
  tree_ ? members->Select(tree_->tree(), range) : members->Select(value_, range);
}

void SortedSetEdit::Remove(SelectedMembers* members) {
  if (!tree_) {
    removed_ = members->span();
    return;
  }
  PackedElement member;
  for (members->Rewind(); members->Next(&member);) tree_->RemoveKnown(ScoredOf(member));
}

std::string SortedSetEdit::Finish() const {
  return removed_ ? WithoutSpan(value_, *removed_) : packed_.Finish();
}

}  // namespace onetrip
