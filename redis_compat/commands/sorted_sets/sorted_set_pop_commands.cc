// Commands that take members with the lowest or highest scores out of sorted sets.
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "redis_compat/commands/sorted_sets/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_batch.h"
#include "redis_compat/dispatch/sorted_set_access.h"
#include "redis_compat/dispatch/waiting.h"

namespace onetrip {
namespace {

constexpr int64_t kCountMax = std::numeric_limits<int64_t>::max();

enum class End : uint8_t { kMin, kMax };

class PopMembers final : public SortedSetMutation {
 public:
  PopMembers(CommandContext& context, End end, int64_t count) : SortedSetMutation(context) {
    range_.reverse = end == End::kMax;
    range_.last = count - 1;
    takes_any_ = count > 0;
  }

  // The members with their scores, in the order in which they were taken.
  [[nodiscard]] const std::vector<std::pair<std::string, double>>& popped() const {
    return popped_;
  }

 private:
  Change ApplyTo(SortedSetEdit& set) override {
    popped_.clear();
    if (!takes_any_ || set.size() == 0) return Change::Keep();
    SelectedMembers members;
    set.Select(range_, &members);
    PackedElement member;
    while (members.Next(&member)) popped_.emplace_back(member.key, LoadScore(member.value));
    set.Remove(&members);
    return Replace(set);
  }

  MemberRange range_;
  bool takes_any_ = false;
  std::vector<std::pair<std::string, double>> popped_;
};

enum class PopForm : uint8_t {
  kFlat,         // member and score in turn
  kPairs,        // pairs of them
  kKeyAndFlat,   // the key before them
  kKeyAndPairs,  // the key, and an array of pairs
};

Task<void> ReplyPopped(CommandContext& context, std::string_view key, PopForm form,
                       const PopMembers& mutation) {
  ReplyWriter& out = context.out;
  const size_t count = mutation.popped().size();
  if (form == PopForm::kKeyAndFlat) out.Array(count * 2 + 1);
  if (form == PopForm::kKeyAndPairs) out.Array(2);
  if (form == PopForm::kKeyAndFlat || form == PopForm::kKeyAndPairs) out.Bulk(key);
  const bool in_pairs = form == PopForm::kPairs || form == PopForm::kKeyAndPairs;
  if (form != PopForm::kKeyAndFlat) out.Array(in_pairs ? count : count * 2);
  ReplyPace pace;
  for (const auto& [member, score] : mutation.popped()) {
    if (in_pairs) out.Array(2);
    out.Bulk(member);
    out.Double(score);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

Task<void> Pop(CommandContext& context, End end) {
  const auto argv = context.argv;
  ArgumentReader arguments(argv, 2);
  arguments.Require(argv.size() <= 3, kSyntaxError);
  int64_t count = 1;
  const bool has_count = arguments.HasMore();
  if (has_count) {
    count = arguments.TakeInteger(
        RangeWithError(0, kCountMax, "ERR value is out of range, must be positive"));
  }
  if (arguments.AnsweredError(context.out)) co_return;
  PopMembers mutation(context, end, count);
  const bool done = co_await Mutate(context, mutation);
  if (!done) co_return;
  const bool in_pairs = has_count && context.out.protocol() == 3;
  co_await ReplyPopped(context, argv[1], in_pairs ? PopForm::kPairs : PopForm::kFlat, mutation);
}

// The keys of a command, of which the first that has members gives some.
struct PopCall {
  size_t first_key = 0;
  size_t keys = 0;
  End end = End::kMin;
  int64_t count = 1;
  PopForm form = PopForm::kKeyAndPairs;
};

// True if it has answered.
Task<bool> PopFirst(CommandContext& context, PopCall call) {
  for (size_t i = call.first_key; i < call.first_key + call.keys; ++i) {
    if (EndsTurn(i, i + 1)) co_await context.kv.Yield();
    const Key key = KeyAt(context, i);
    PopMembers mutation(context, call.end, call.count);
    const bool done = co_await MutateAt(context, key, mutation);
    if (!done) co_return true;
    if (mutation.popped().empty()) continue;
    co_await ReplyPopped(context, key.bytes, call.form, mutation);
    co_return true;
  }
  co_return false;
}

// Reads a number of keys and what is behind it, of which argv[at] is the first.
void ReadMPop(ArgumentReader& arguments, size_t argc, size_t at, PopCall* call) {
  const int64_t keys =
      arguments.TakeInteger(RangeWithError(1, kCountMax, "ERR numkeys should be greater than 0"));
  call->first_key = at + 1;
  call->keys = static_cast<size_t>(keys);
  arguments.Require(call->keys < argc - call->first_key, kSyntaxError);
  for (size_t i = 0; arguments.ok() && i < call->keys; ++i) arguments.Take();
  call->end = static_cast<End>(arguments.TakeOneOf({"MIN", "MAX"}));
  const IntegerRange counts = RangeWithError(1, kCountMax, "ERR count should be greater than 0");
  if (arguments.HasMore() && !arguments.Integer("COUNT", &call->count, counts)) {
    arguments.SyntaxError();
  }
  if (arguments.HasMore()) arguments.SyntaxError();
}

Task<void> PopBlocking(CommandContext& context, End end) {
  const size_t argc = context.argv.size();
  ArgumentReader arguments(context.argv);
  CheckWaitingTime(arguments, context.argv.back());
  if (arguments.AnsweredError(context.out)) co_return;
  const PopCall call{.first_key = 1, .keys = argc - 2, .end = end, .form = PopForm::kKeyAndFlat};
  const bool answered = co_await PopFirst(context, call);
  if (!answered) ReplyCannotWait(context, NothingForm::kNullArray);
}

}  // namespace

Task<void> ZPopMinCommand(CommandContext& context) { return Pop(context, End::kMin); }
Task<void> ZPopMaxCommand(CommandContext& context) { return Pop(context, End::kMax); }
Task<void> BZPopMinCommand(CommandContext& context) { return PopBlocking(context, End::kMin); }
Task<void> BZPopMaxCommand(CommandContext& context) { return PopBlocking(context, End::kMax); }

Task<void> ZMPopCommand(CommandContext& context) {
  PopCall call;
  ArgumentReader arguments(context.argv, 1);
  ReadMPop(arguments, context.argv.size(), 1, &call);
  if (arguments.AnsweredError(context.out)) co_return;
  const bool answered = co_await PopFirst(context, call);
  if (!answered) context.out.NullArray();
}

Task<void> BZMPopCommand(CommandContext& context) {
  PopCall call;
  ArgumentReader arguments(context.argv, 2);
  ReadMPop(arguments, context.argv.size(), 2, &call);
  CheckWaitingTime(arguments, context.argv[1]);
  if (arguments.AnsweredError(context.out)) co_return;
  const bool answered = co_await PopFirst(context, call);
  if (!answered) ReplyCannotWait(context, NothingForm::kNullArray);
}

}  // namespace onetrip
