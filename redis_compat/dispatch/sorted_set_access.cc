#include "redis_compat/dispatch/sorted_set_access.h"

#include <cmath>
#include <utility>

#include "client_core/layout/record.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/values/collection_tree.h"

namespace onetrip {
namespace {

class AddMembersMutation final : public SortedSetMutation {
 public:
  AddMembersMutation(CommandContext& context, const AddOptions& options,
                     std::span<const ScoredMember> members)
      : SortedSetMutation(context), options_(options), members_(members) {}

  [[nodiscard]] int64_t added() const { return added_; }
  [[nodiscard]] int64_t changed() const { return changed_; }
  // The score of the last member that met the conditions; nothing: none did.
  [[nodiscard]] std::optional<double> score() const { return score_; }

 private:
  Change ApplyTo(SortedSetEdit& set) override {
    added_ = changed_ = 0;
    score_.reset();
    for (const ScoredMember& one : members_) {
      double old = 0;
      const bool is_there = set.Find(one.member, &old);
      if (is_there ? options_.if_new : options_.if_there) continue;
      double score = one.score;
      if (is_there) {
        if (options_.increment) score += old;
        if (std::isnan(score)) return Refuse("ERR resulting score is not a number (NaN)");
        if (options_.if_less && score >= old) continue;
        if (options_.if_greater && score <= old) continue;
      }
      score_ = score;
      if (is_there && score == old) continue;
      set.Put(one.member, score);
      ++(is_there ? changed_ : added_);
    }
    return added_ + changed_ == 0 ? Change::Keep() : Replace(set);
  }

  const AddOptions& options_;
  const std::span<const ScoredMember> members_;
  int64_t added_ = 0;
  int64_t changed_ = 0;
  std::optional<double> score_;
};

}  // namespace

double ReadDouble(ArgumentReader& arguments, std::string_view text, const char* error) {
  const auto number = ParseDouble(text);
  arguments.Require(number.has_value(), error);
  return number.value_or(0);
}

Change SortedSetMutation::ApplyTo(std::string_view current) {
  SortedSetEdit set(current, limits_);
  return ApplyTo(set);
}

Change SortedSetMutation::ApplyToTree(Tree& tree) {
  if (!HasBothOrders(tree)) return ApplyToJoined(tree);
  SortedSetEdit set(tree, limits_);
  return ApplyTo(set);
}

Change SortedSetMutation::Replace(SortedSetEdit& set) {
  TreeSortedSetEdit* const tree = set.tree();
  if (tree == nullptr) return CollectionMutation::Replace(set.Finish());
  if (set.size() == 0) return Change::Delete();
  if (tree->packed_bytes() > kMaxValueBytes) return Refuse(kCollectionTooLargeError);
  if (tree->Finish()) return KeepTree(tree->tree());
  std::string packed;
  const bool is_packed = tree->FinishPacked(&packed);
  return is_packed ? CollectionMutation::Replace(std::move(packed)) : Change::Keep();
}

Task<bool> LookAt(CommandContext& context, Key key, SortedSetLook& look, ReadResult* result) {
  const ValueRange wanted{.reader = &look};
  const Status status = co_await context.kv.GetPart(key, wanted, result);
  std::string_view value;
  if (!TakeCollection(context, status, *result, ValueType::kSortedSet, &value)) co_return false;
  // A tree, which has been looked at, has no value.
  if (!IsTree(*result)) look.LookAt(value);
  co_return true;
}

void ScoresOf::LookAt(std::string_view value) {
  PackedMap members(value, /*has_values=*/true);
  for (size_t i = 0; i < members_.size(); ++i) {
    std::string_view score;
    scores_[i].reset();
    if (members.Find(members_[i], &score)) scores_[i] = LoadScore(score);
  }
}

void ScoresOf::LookAt(Tree& tree) {
  for (size_t i = 0; i < members_.size(); ++i) {
    double score = 0;
    scores_[i].reset();
    if (FindScore(tree, members_[i], &score)) scores_[i] = score;
  }
}

Task<void> AddMembers(CommandContext& context, const AddOptions& options,
                      std::span<const ScoredMember> members) {
  AddMembersMutation mutation(context, options, members);
  const bool done = co_await Mutate(context, mutation);
  if (!done) co_return;
  if (!options.increment) {
    const int64_t changed = options.count_changed ? mutation.changed() : 0;
    co_return context.out.Integer(mutation.added() + changed);
  }
  mutation.score() ? context.out.Double(*mutation.score()) : context.out.Null();
}

Change SortedSetStore::Store(const RecordView* current, std::span<const ScoredMember> members) {
  stored_ = static_cast<int64_t>(members.size());
  if (members.empty()) return current != nullptr ? Change::Delete() : Change::Keep();
  made_ = PackSortedSet(members, limits_);
  if (made_.size() > kMaxValueBytes) return Refuse(kCollectionTooLargeError);
  share_ = CountMemory(context_, made_.size());
  NewRecord record;
  record.head = made_;
  made_tree_ = MakeTree(ValueType::kSortedSet, made_, context_.kv.tree_limits());
  if (made_tree_) record.tree = &*made_tree_;
  record.type = static_cast<uint8_t>(ValueType::kSortedSet);
  return Change::Write(record);
}

Task<void> StoreAndReply(CommandContext& context, size_t index, SortedSetStore& mutation) {
  const Key key = KeyAt(context, index);
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) co_return;
  mutation.error() != nullptr ? context.out.Error(mutation.error())
                              : context.out.Integer(mutation.stored());
}

}  // namespace onetrip
