// Commands that take elements from the end of a list, or from the first of several that has any.
//
// Keys are tried one after the other, each by one read-modify-write: a list that gets its first
// element after it was tried is passed over.
#include <string>

#include "redis_compat/commands/lists/handlers.h"
#include "redis_compat/commands/lists/list_terms.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/dispatch/key_batch.h"
#include "redis_compat/dispatch/waiting.h"

namespace onetrip {
namespace {

class TakeElements final : public ListMutation {
 public:
  // Takes `most` elements, or all.
  TakeElements(CommandContext& context, ListEnd end, uint64_t most)
      : ListMutation(context), context_(context), end_(end), most_(most) {}

  // How many it has taken.
  [[nodiscard]] uint64_t elements() const { return elements_; }
  // Answers with the one that it has taken, or that there was none.
  void ReplyOne() const {
    std::string_view element;
    ListCursor cursor(entries_, end_);
    cursor.Next(&element) ? context_.out.Bulk(element) : context_.out.Null();
  }
  // Answers with an array of those that it has taken.
  [[nodiscard]] Task<void> ReplyAll() const {
    return ReplyElements(context_, entries_, elements_, end_);
  }

 private:
  Change ApplyTo(ListEdit& list) override {
    elements_ = list.Take(end_, most_, &entries_);
    if (elements_ == 0) return Change::Keep();
    share_ = CountMemory(context_, entries_.size());
    return Replace(list);
  }

  CommandContext& context_;
  const ListEnd end_;
  const uint64_t most_;
  uint64_t elements_ = 0;
  std::string entries_;
  MemoryBudget::Share share_;  // counts `entries_`
};

Task<void> Pop(CommandContext& context, ListEnd end) {
  if (context.argv.size() > 3) co_return ReplyArityError(context);
  const bool is_counted = context.argv.size() == 3;
  int64_t count = 1;
  if (is_counted) {
    ArgumentReader arguments(context.argv, 2);
    count = arguments.TakeInteger(
        RangeWithError(0, kIndexMax, "ERR value is out of range, must be positive"));
    if (arguments.AnsweredError(context.out)) co_return;
    co_await AwaitTurn(context);
    if (context.session.abandoned) co_return;
  }
  TakeElements mutation(context, end, static_cast<uint64_t>(count));
  const bool done = co_await Mutate(context, mutation);
  if (!done) co_return;
  if (!is_counted) co_return mutation.ReplyOne();
  if (!mutation.found()) co_return context.out.NullArray();
  co_await mutation.ReplyAll();
}

struct PopFromSeveral {
  size_t first_key = 0;  // in argv
  size_t keys = 0;
  ListEnd end = ListEnd::kHead;
  int64_t count = 1;
  bool as_array = false;  // also of one element
};

// Takes from the first of the keys that has elements. True: it has answered.
Task<bool> TakeFromFirst(CommandContext& context, PopFromSeveral pop) {
  for (size_t i = 0; i < pop.keys; ++i) {
    const Key key = KeyAt(context, pop.first_key + i);
    TakeElements mutation(context, pop.end, static_cast<uint64_t>(pop.count));
    const bool done = co_await MutateAt(context, key, mutation);
    if (!done) co_return true;
    if (mutation.elements() == 0) {
      if (EndsTurn(i, i + 1)) co_await context.kv.Yield();
      continue;
    }
    context.out.Array(2);
    context.out.Bulk(key.bytes);
    if (pop.as_array) {
      co_await mutation.ReplyAll();
    } else {
      mutation.ReplyOne();
    }
    co_return true;
  }
  co_return false;
}

// Reads a count of keys, the keys, the end and the options of LMPOP and BLMPOP from argv[first] on.
PopFromSeveral ReadCountedPop(ArgumentReader& arguments, size_t first) {
  constexpr IntegerRange kKeysRange =
      RangeWithError(1, kIndexMax, "ERR numkeys should be greater than 0");
  constexpr IntegerRange kCountRange =
      RangeWithError(1, kIndexMax, "ERR count should be greater than 0");
  PopFromSeveral pop;
  pop.as_array = true;
  pop.first_key = first + 1;
  pop.keys = static_cast<size_t>(arguments.TakeInteger(kKeysRange));
  for (size_t i = 0; i < pop.keys && arguments.ok(); ++i) arguments.Take();
  pop.end = TakeListEnd(arguments);
  bool has_count = false;
  while (arguments.HasMore()) {
    const bool known = !has_count && arguments.Integer("COUNT", &pop.count, kCountRange);
    if (!known) arguments.SyntaxError();
    has_count = true;
  }
  return pop;
}

Task<void> BlockingPop(CommandContext& context, ListEnd end) {
  ArgumentReader arguments(context.argv);
  CheckWaitingTime(arguments, context.argv.back());
  if (arguments.AnsweredError(context.out)) co_return;
  const PopFromSeveral pop{.first_key = 1, .keys = context.argv.size() - 2, .end = end};
  const bool answered = co_await TakeFromFirst(context, pop);
  if (!answered) ReplyCannotWait(context, NothingForm::kNullArray);
}

}  // namespace

Task<void> LPopCommand(CommandContext& context) { return Pop(context, ListEnd::kHead); }
Task<void> RPopCommand(CommandContext& context) { return Pop(context, ListEnd::kTail); }

Task<void> LMPopCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 1);
  const PopFromSeveral pop = ReadCountedPop(arguments, 1);
  if (arguments.AnsweredError(context.out)) co_return;
  const bool answered = co_await TakeFromFirst(context, pop);
  if (!answered) context.out.NullArray();
}

Task<void> BLPopCommand(CommandContext& context) { return BlockingPop(context, ListEnd::kHead); }
Task<void> BRPopCommand(CommandContext& context) { return BlockingPop(context, ListEnd::kTail); }

Task<void> BLMPopCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const PopFromSeveral pop = ReadCountedPop(arguments, 2);
  CheckWaitingTime(arguments, context.argv[1]);
  if (arguments.AnsweredError(context.out)) co_return;
  const bool answered = co_await TakeFromFirst(context, pop);
  if (!answered) ReplyCannotWait(context, NothingForm::kNullArray);
}

}  // namespace onetrip
