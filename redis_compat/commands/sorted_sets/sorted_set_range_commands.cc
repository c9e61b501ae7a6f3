// Commands on a part of a sorted set: by rank, by score, or by the members' bytes.
#include <algorithm>
#include <string_view>
#include <vector>

#include "redis_compat/commands/sorted_sets/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_copy.h"
#include "redis_compat/dispatch/sorted_set_access.h"
#include "redis_compat/values/sorted_set_tree_range.h"

namespace onetrip {
namespace {

using By = MemberRange::By;

// Reads the two ends of a range; the larger one comes first if it is `backwards`.
void ReadEnds(ArgumentReader& arguments, std::string_view from, std::string_view to,
              MemberRange* range) {
  if (range->by == By::kRank) {
    range->first = arguments.ReadInteger(from);
    range->last = arguments.ReadInteger(to);
    return;
  }
  const std::string_view min = range->reverse ? to : from;
  const std::string_view max = range->reverse ? from : to;
  if (range->by == By::kScore) {
    arguments.Require(
        ParseScoreBound(min, &range->min_score) && ParseScoreBound(max, &range->max_score),
        "ERR min or max is not a float");
  } else {
    arguments.Require(
        ParseLexBound(min, &range->min_member) && ParseLexBound(max, &range->max_member),
        "ERR min or max not valid string range item");
  }
}

// A command of ZRANGE's family: what its name says already, and where its source is.
struct RangeCall {
  size_t key = 1;
  bool is_plain = false;  // options say by what, and in which direction
  bool stores = false;
  By by = By::kRank;
  bool reverse = false;
};

// Reads all that is behind the source. False: it has answered.
bool ReadRange(CommandContext& context, const RangeCall& call, MemberRange* range,
               bool* with_scores) {
  ArgumentReader arguments(context.argv, call.key + 3);
  range->by = call.by;
  range->reverse = call.reverse;
  bool may_say_by = call.is_plain;
  bool may_reverse = call.is_plain;
  while (arguments.HasMore()) {
    if (!call.stores && arguments.Flag("WITHSCORES", with_scores)) continue;
    if (arguments.Word("LIMIT", 2)) {
      range->offset = arguments.TakeInteger();
      range->count = arguments.TakeInteger();
    } else if (may_reverse && arguments.Flag("REV", &range->reverse)) {
      may_reverse = false;
    } else if (may_say_by && arguments.Word("BYLEX")) {
      range->by = By::kMember;
      may_say_by = false;
    } else if (may_say_by && arguments.Word("BYSCORE")) {
      range->by = By::kScore;
      may_say_by = false;
    } else {
      arguments.SyntaxError();
    }
  }
  arguments.Require(range->count == -1 || range->by != By::kRank,
                    "ERR syntax error, LIMIT is only supported in combination with either BYSCORE "
                    "or BYLEX");
  arguments.Require(!*with_scores || range->by != By::kMember,
                    "ERR syntax error, WITHSCORES not supported in combination with BYLEX");
  ReadEnds(arguments, context.argv[call.key + 1], context.argv[call.key + 2], range);
  return !arguments.AnsweredError(context.out);
}

// The members of a range.
class Selection final : public SortedSetLook {
 public:
  // `range` outlives it.
  explicit Selection(const MemberRange& range) : range_(range) {}

  [[nodiscard]] SelectedMembers& members() { return members_; }
  // Nothing was selected: that much of a tree is better read whole, into memory that is counted.
  [[nodiscard]] bool is_too_large() const { return is_too_large_; }

  void LookAt(std::string_view value) override {
    is_too_large_ = false;
    members_.Select(value, range_);
  }
  void LookAt(Tree& tree) override {
    RankSpan span;
    is_too_large_ =
        SelectRanks(tree, range_, &span) && BytesOfRanks(tree, span) > kRecordValueBytesMax;
    if (!is_too_large_) members_.Select(tree, range_);
  }

 private:
  const MemberRange& range_;
  SelectedMembers members_;
  bool is_too_large_ = false;
};

// Selects from the key at argv[index]. False: it has answered.
Task<bool> Select(CommandContext& context, size_t index, Selection& selection, ReadResult* result) {
  const Key key = KeyAt(context, index);
  const bool has_looked = co_await LookAt(context, key, selection, result);
  if (!has_looked || !selection.is_too_large()) co_return has_looked;
  *result = ReadResult();
  const Status status = co_await context.kv.Get(key, result);
  if (AnsweredReadFailure(context, status)) co_return false;
  if (result->found() && !IsOfType(&result->record(), ValueType::kSortedSet)) {
    context.out.Error(kWrongTypeError);
    co_return false;
  }
  selection.LookAt(result->found() ? result->record().value : std::string_view());
  co_return true;
}

Task<void> ReplyRange(CommandContext& context, RangeCall call) {
  MemberRange range;
  bool with_scores = false;
  if (!ReadRange(context, call, &range, &with_scores)) co_return;
  Selection selection(range);
  ReadResult result;
  const bool has_selected = co_await Select(context, call.key, selection, &result);
  if (!has_selected) co_return;
  SelectedMembers& members = selection.members();
  const bool in_pairs = with_scores && context.out.protocol() == 3;
  context.out.Array(with_scores && !in_pairs ? members.count() * 2 : members.count());
  ReplyPace pace(result.holder());
  PackedElement member;
  while (members.Next(&member)) {
    if (in_pairs) context.out.Array(2);
    context.out.Bulk(member.key);
    if (with_scores) context.out.Double(LoadScore(member.value));
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

// Gives a key a part of a sorted set: of another key's, or of its own.
class StoreRange final : public SortedSetStore {
 public:
  // `source`: null for its own.
  StoreRange(CommandContext& context, const MemberRange& range, const RecordCopy* source)
      : SortedSetStore(context, /*looks=*/source == nullptr), range_(range), source_(source) {}

  Change Apply(const RecordView* current) override {
    Begin();
    std::string_view value;
    if (!looks()) {
      value = source_->bytes();
    } else if (!IsOfType(current, ValueType::kSortedSet)) {
      return Refuse(kWrongTypeError);
    } else if (current != nullptr) {
      value = current->value;
    }
    std::vector<ScoredMember> chosen = Choose(SortedSetMembers(value));
    if (range_.reverse) std::reverse(chosen.begin(), chosen.end());
    return Store(current, chosen);
  }

 private:
  // In the order of the range.
  std::vector<ScoredMember> Choose(PackedElements members) {
    const MemberSpan span = SelectMembers(members, range_);
    members.GoTo(range_.reverse ? span.end : span.begin);
    std::vector<ScoredMember> chosen;
    chosen.reserve(span.count);
    // Redis adds one after the other, and as long as the encoding is compact -0 becomes 0.
    bool is_table = range_.by == By::kRank && span.count > limits().elements;
    PackedElement member;
    while (chosen.size() < span.count) {
      range_.reverse ? members.Previous(&member) : members.Next(&member);
      is_table |= chosen.size() >= limits().elements || member.key.size() > limits().bytes;
      const double score = LoadScore(member.value);
      chosen.push_back({member.key, score == 0 && !is_table ? 0 : score});
    }
    return chosen;
  }

  const MemberRange& range_;
  const RecordCopy* const source_;
};

class RemoveRange final : public SortedSetMutation {
 public:
  RemoveRange(CommandContext& context, const MemberRange& range)
      : SortedSetMutation(context), range_(range) {}
  [[nodiscard]] uint64_t removed() const { return removed_; }

 private:
  Change ApplyTo(SortedSetEdit& set) override {
    SelectedMembers members;
    set.Select(range_, &members);
    removed_ = members.count();
    if (removed_ == 0) return Change::Keep();
    set.Remove(&members);
    return Replace(set);
  }

  const MemberRange& range_;
  uint64_t removed_ = 0;
};

// Reads the two ends alone. False: it has answered.
bool ReadPlainRange(CommandContext& context, By by, MemberRange* range) {
  ArgumentReader arguments(context.argv);
  range->by = by;
  ReadEnds(arguments, context.argv[2], context.argv[3], range);
  return !arguments.AnsweredError(context.out);
}

// How many members are in a range.
class CountOf final : public SortedSetLook {
 public:
  // `range` outlives it.
  explicit CountOf(const MemberRange& range) : range_(range) {}
  [[nodiscard]] uint64_t count() const { return count_; }

  void LookAt(std::string_view value) override {
    count_ = SelectMembers(SortedSetMembers(value), range_).count;
  }
  void LookAt(Tree& tree) override {
    RankSpan span;
    SelectRanks(tree, range_, &span);
    count_ = span.count();
  }

 private:
  const MemberRange& range_;
  uint64_t count_ = 0;
};

Task<void> Count(CommandContext& context, By by) {
  MemberRange range;
  if (!ReadPlainRange(context, by, &range)) co_return;
  CountOf look(range);
  ReadResult result;
  const bool has_looked = co_await LookAt(context, KeyAt(context, 1), look, &result);
  if (has_looked) context.out.Integer(static_cast<int64_t>(look.count()));
}

Task<void> Remove(CommandContext& context, By by) {
  MemberRange range;
  if (!ReadPlainRange(context, by, &range)) co_return;
  RemoveRange mutation(context, range);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(static_cast<int64_t>(mutation.removed()));
}

}  // namespace

Task<void> ZRangeCommand(CommandContext& context) {
  return ReplyRange(context, {.is_plain = true});
}
Task<void> ZRevRangeCommand(CommandContext& context) {
  return ReplyRange(context, {.reverse = true});
}
Task<void> ZRangeByScoreCommand(CommandContext& context) {
  return ReplyRange(context, {.by = By::kScore});
}
Task<void> ZRevRangeByScoreCommand(CommandContext& context) {
  return ReplyRange(context, {.by = By::kScore, .reverse = true});
}
Task<void> ZRangeByLexCommand(CommandContext& context) {
  return ReplyRange(context, {.by = By::kMember});
}
Task<void> ZRevRangeByLexCommand(CommandContext& context) {
  return ReplyRange(context, {.by = By::kMember, .reverse = true});
}

Task<void> ZRangeStoreCommand(CommandContext& context) {
  MemberRange range;
  bool with_scores = false;
  if (!ReadRange(context, {.key = 2, .is_plain = true, .stores = true}, &range, &with_scores)) {
    co_return;
  }
  if (context.argv[1] == context.argv[2]) {
    StoreRange own(context, range, nullptr);
    co_return co_await StoreAndReply(context, 1, own);
  }
  RecordCopy source;
  const Status status = co_await ReadCopy(context.kv, KeyAt(context, 2), &source);
  if (AnsweredReadFailure(context, status)) co_return;
  CountLookup(context, source.found);
  if (source.found && source.type != static_cast<uint8_t>(ValueType::kSortedSet)) {
    co_return context.out.Error(kWrongTypeError);
  }
  StoreRange mutation(context, range, &source);
  co_await StoreAndReply(context, 1, mutation);
}

Task<void> ZCountCommand(CommandContext& context) { return Count(context, By::kScore); }
Task<void> ZLexCountCommand(CommandContext& context) { return Count(context, By::kMember); }

Task<void> ZRemRangeByRankCommand(CommandContext& context) { return Remove(context, By::kRank); }
Task<void> ZRemRangeByScoreCommand(CommandContext& context) { return Remove(context, By::kScore); }
Task<void> ZRemRangeByLexCommand(CommandContext& context) { return Remove(context, By::kMember); }

}  // namespace onetrip
