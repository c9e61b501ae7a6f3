// Commands that add members to sets, and remove them.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "redis_compat/commands/sets/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/dispatch/key_lookup.h"
#include "redis_compat/dispatch/random_elements.h"
#include "redis_compat/values/set_value.h"

namespace onetrip {
namespace {

class SetMutation : public CollectionMutation {
 public:
  explicit SetMutation(CommandContext& context)
      : CollectionMutation(context, ValueType::kSet),
        integers_max_(context.hooks.config().integer_set_members()) {}

  [[nodiscard]] bool takes_trees() const final { return true; }

 protected:
  // As CollectionMutation's; it is of `current` unless that is empty, and the set a tree.
  virtual Change ApplyTo(SetEdit& set, std::string_view current) = 0;

  // For the end of ApplyTo(): the set gets the changes, or goes if no member is left.
  Change Replace(SetEdit& set) {
    if (set.tree() == nullptr) return CollectionMutation::Replace(set.Finish());
    return CollectionMutation::Replace(*set.tree(), kPackedTable);
  }
  [[nodiscard]] uint64_t integers_max() const { return integers_max_; }

 private:
  Change ApplyTo(std::string_view current) final {
    SetEdit set(current, integers_max_);
    return ApplyTo(set, current);
  }
  Change ApplyToTree(Tree& tree) final {
    SetEdit set(tree);
    return ApplyTo(set, {});
  }

  const uint64_t integers_max_;
};

class AddMembers final : public SetMutation {
 public:
  // Without `version` it shares a write with others.
  AddMembers(CommandContext& context, std::span<const std::string_view> members,
             bool version = false)
      : SetMutation(context), members_(members), is_named_(version) {}
  // How many of them were new.
  [[nodiscard]] int64_t added() const { return added_; }
  // Names the write, if it was one.
  [[nodiscard]] uint64_t version() const { return version_; }

 private:
  Change ApplyTo(SetEdit& set, std::string_view /*current*/) override {
    added_ = 0;
    for (const std::string_view member : members_) added_ += set.Add(member) ? 1 : 0;
    if (added_ == 0) return Change::Keep();
    Change change = Replace(set);
    if (is_named_) change.version = &version_;
    return change;
  }

  const std::span<const std::string_view> members_;
  const bool is_named_;
  int64_t added_ = 0;
  uint64_t version_ = 0;
};

class RemoveMembers final : public SetMutation {
 public:
  // `only_of`: leaves a set alone that is not the one of that version.
  RemoveMembers(CommandContext& context, std::span<const std::string_view> members,
                std::optional<uint64_t> only_of = std::nullopt)
      : SetMutation(context), members_(members), only_of_(only_of) {}
  [[nodiscard]] int64_t removed() const { return removed_; }

 private:
  Change ApplyTo(SetEdit& set, std::string_view /*current*/) override {
    removed_ = 0;
    if (!found() || version() != only_of_.value_or(version())) return Change::Keep();
    for (const std::string_view member : members_) removed_ += set.Remove(member) ? 1 : 0;
    return removed_ == 0 ? Change::Keep() : Replace(set);
  }

  const std::span<const std::string_view> members_;
  const std::optional<uint64_t> only_of_;
  int64_t removed_ = 0;
};

// Removes members that are chosen at random.
class PopMembers final : public SetMutation {
 public:
  PopMembers(CommandContext& context, uint64_t count)
      : SetMutation(context), context_(context), count_(count) {}
  // Those it has removed, as packed entries.
  [[nodiscard]] std::string_view popped() const { return popped_; }
  [[nodiscard]] uint64_t popped_count() const { return popped_count_; }

 private:
  Change ApplyTo(SetEdit& set, std::string_view current) override {
    const uint64_t size = set.size();
    const uint64_t count = std::min(count_, size);
    popped_.clear();
    popped_count_ = 0;
    if (count == 0) return Change::Keep();
    const bool leaves_few = LeavesFew(count, size);
    if (set.tree() != nullptr && leaves_few) {
      return ApplyToJoined(set.tree()->tree());
    }
    ChooseAmong(count, size);
    if (leaves_few) return TakeMost(current);
    if (set.tree() != nullptr) {
      CopyElementsAt(set.tree()->tree(), chosen_, /*has_values=*/false, &popped_);
    } else {
      CopyChosen(current);
    }
    PackedCursor popped(popped_);
    std::string_view member;
    for (; popped.Next(&member); ++popped_count_) set.Remove(member);
    share_ = CountMemory(context_, popped_.size());
    return Replace(set);
  }

  static bool LeavesFew(uint64_t taken, uint64_t size) { return (size - taken) * 5 <= taken; }

  // A choice stays when pages have to be loaded for it.
  void ChooseAmong(uint64_t count, uint64_t size) {
    if (chosen_.size() == count && chosen_among_ == size) return;
    chosen_ = ChoosePositions(context_.hooks.rng(), count, size);
    chosen_among_ = size;
  }

  void CopyChosen(std::string_view current) {
    PackedElements members = SetMembers(current);
    PackedElement member;
    uint64_t at = 0;
    for (const uint64_t position : chosen_) {
      while (at <= position && members.Next(&member)) ++at;
      if (at <= position) return;
      AppendPackedEntry(member.key, &popped_);
    }
  }

  // Redis makes a set of what is left, and tells all members in the order of such a one.
  Change TakeMost(std::string_view current) {
    std::vector<std::string_view> taken;
    std::vector<std::string_view> left;
    PackedElements members = SetMembers(current);
    auto next = chosen_.begin();
    PackedElement member;
    for (uint64_t at = 0; members.Next(&member); ++at) {
      const bool is_chosen = next != chosen_.end() && *next == at;
      (is_chosen ? taken : left).push_back(member.key);
      if (is_chosen) ++next;
    }
    if (left.empty()) taken = MakeSet(std::move(taken), integers_max()).members;
    for (const std::string_view one : taken) AppendPackedEntry(one, &popped_);
    popped_count_ = taken.size();
    share_ = CountMemory(context_, popped_.size());
    return CollectionMutation::Replace(PackSet(MakeSet(std::move(left), integers_max())));
  }

  CommandContext& context_;
  const uint64_t count_;
  std::vector<uint64_t> chosen_;  // positions, in ascending order
  uint64_t chosen_among_ = 0;
  std::string popped_;
  uint64_t popped_count_ = 0;
  MemoryBudget::Share share_;  // counts `popped_`
};

// Looks where a member is to be moved from, and whether it may be moved to where. True: it is there
// to be moved; else it has answered.
Task<bool> CanMove(CommandContext& context) {
  bool is_member = false;
  {
    ReadResult result;
    KeyLookup member(ValueType::kSet, context.argv.subspan(3));
    const Key from = KeyAt(context, 1);
    const Status status = co_await context.kv.GetPart(from, member.range(), &result);
    std::string_view value;
    if (!TakeCollection(context, status, result, ValueType::kSet, &value)) co_return false;
    if (!result.found()) {
      context.out.Integer(0);
      co_return false;
    }
    member.Begin(result, value);
    is_member = member.Find(0);
  }
  if (context.argv[1] == context.argv[2]) {
    context.out.Integer(is_member ? 1 : 0);
    co_return false;
  }
  ReadResult result;
  const Status status = co_await context.kv.GetPart(KeyAt(context, 2), kNoValue, &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kSet, &value)) co_return false;
  if (!is_member) context.out.Integer(0);
  co_return is_member;
}

}  // namespace

Task<void> SAddCommand(CommandContext& context) {
  AddMembers mutation(context, context.argv.subspan(2));
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.added());
}

Task<void> SRemCommand(CommandContext& context) {
  RemoveMembers mutation(context, context.argv.subspan(2));
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.removed());
}

Task<void> SPopCommand(CommandContext& context) {
  const bool one = context.argv.size() == 2;
  int64_t count = 1;
  ArgumentReader arguments(context.argv, 2);
  arguments.Require(context.argv.size() <= 3, kSyntaxError);
  if (arguments.HasMore()) {
    count = arguments.TakeInteger(RangeWithError(0, std::numeric_limits<int64_t>::max(),
                                                 "ERR value is out of range, must be positive"));
  }
  if (arguments.AnsweredError(context.out)) co_return;
  PopMembers mutation(context, static_cast<uint64_t>(count));
  const bool done = co_await Mutate(context, mutation);
  if (!done) co_return;
  PackedCursor popped(mutation.popped());
  std::string_view member;
  if (one) {
    popped.Next(&member) ? context.out.Bulk(member) : context.out.Null();
    co_return;
  }
  context.out.Set(mutation.popped_count());
  ReplyPace pace;
  while (popped.Next(&member)) {
    context.out.Bulk(member);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

// Adds the member before it removes it, so that it is always in one of the sets.
Task<void> SMoveCommand(CommandContext& context) {
  const bool can_move = co_await CanMove(context);
  if (!can_move) co_return;
  KeyClaims::Claim claim;
  co_await ClaimSource(context, &claim);
  const Key from = KeyAt(context, 1);
  const Key to = KeyAt(context, 2);
  const std::span<const std::string_view> member = context.argv.subspan(3);
  AddMembers add(context, member, /*version=*/true);
  Status status = co_await context.kv.ReadModifyWrite(to, add);
  if (AnsweredWriteFailure(context, to, status)) co_return;
  if (add.error() != nullptr) co_return context.out.Error(add.error());
  RemoveMembers remove(context, member);
  status = co_await context.kv.ReadModifyWrite(from, remove);
  if (AnsweredWriteFailure(context, from, status, StorageStep::kLaterWrite)) co_return;
  if (remove.removed() == 0 && add.added() > 0) {
    // Another client was faster, and may have moved it elsewhere. Those that have seen it here
    // meanwhile, and changed the set, keep it.
    RemoveMembers undo(context, member, add.version());
    status = co_await context.kv.ReadModifyWrite(to, undo);
    if (AnsweredWriteFailure(context, to, status, StorageStep::kLaterWrite)) co_return;
  }
  remove.error() != nullptr ? context.out.Error(remove.error())
                            : context.out.Integer(remove.removed());
}

}  // namespace onetrip
