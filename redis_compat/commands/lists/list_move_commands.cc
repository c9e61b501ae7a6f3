// Commands that take an element from one list and push it to another one, or to its other end.
//
// Within one list that is one step. Between two, the element is pushed to the target before it is
// taken from the source, so that none is ever lost. If it is not at the end of the source any more
// by then, others have changed that: the push is undone, and the move starts anew.
#include <optional>
#include <string>

#include "redis_compat/commands/lists/handlers.h"
#include "redis_compat/commands/lists/list_terms.h"
#include "redis_compat/dispatch/waiting.h"

namespace onetrip {
namespace {

struct ListMove {
  ListEnd from = ListEnd::kTail;
  ListEnd to = ListEnd::kHead;
  bool waits = false;  // in Redis
};

// Limits how often a source that others change meanwhile is tried.
constexpr int kMoveTries = 100;

// Moves an element to the other end of its list.
class RotateList final : public ListMutation {
 public:
  RotateList(CommandContext& context, ListMove move) : ListMutation(context), move_(move) {}

  // The element.
  [[nodiscard]] const std::string& element() const { return element_; }

 private:
  Change ApplyTo(ListEdit& list) override {
    std::string_view element;
    list.End(move_.from, &element);
    element_ = element;
    const bool stays = list.size() < 2 || move_.from == move_.to;
    if (stays) return Change::Keep();
    list.Rotate(move_.from);
    return Replace(list);
  }

  const ListMove move_;
  std::string element_;
};

class PushElement final : public ListMutation {
 public:
  PushElement(CommandContext& context, ListEnd end, std::string_view element)
      : ListMutation(context), end_(end), element_(element) {}

 private:
  Change ApplyTo(ListEdit& list) override {
    list.Push(end_, {&element_, 1});
    return Replace(list);
  }

  const ListEnd end_;
  const std::string_view element_;
};

enum class Where : uint8_t { kAtEnd, kAnywhere };

// Removes one element that equals another one: from an end, or the one that is nearest to it.
class RemoveElement final : public ListMutation {
 public:
  RemoveElement(CommandContext& context, ListEnd end, Where where, std::string_view element)
      : ListMutation(context), end_(end), where_(where), element_(element) {}

  [[nodiscard]] bool takes_trees() const override { return where_ == Where::kAtEnd; }
  // False, too, if the key held no list any more.
  [[nodiscard]] bool removed() const { return error() == nullptr && removed_; }

 private:
  Change ApplyTo(ListEdit& list) override {
    std::string_view other;
    if (where_ == Where::kAnywhere) {
      removed_ = list.TakeEqual(end_, element_);
    } else {
      removed_ = list.End(end_, &other) && other == element_;
      if (removed_) list.Take(end_, 1, nullptr);
    }
    return removed_ ? Replace(list) : Change::Keep();
  }

  const ListEnd end_;
  const Where where_;
  const std::string_view element_;
  bool removed_ = false;
};

enum class MoveStep : uint8_t { kMoved, kAgain, kAnswered };

void ReplyNothing(CommandContext& context, ListMove move) {
  move.waits ? ReplyCannotWait(context, NothingForm::kNull) : context.out.Null();
}

// Reads the element at the end of the list at argv[1]. False: it has answered.
Task<bool> ReadEnd(CommandContext& context, ListMove move, std::string* element) {
  ReadResult result;
  const int64_t index = move.from == ListEnd::kHead ? 0 : -1;
  ListPartReader end({index, index});
  const ValueRange wanted{.reader = &end};
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), wanted, &result);
  if (AnsweredReadFailure(context, status)) co_return false;
  if (result.found() && !IsOfType(&result.record(), ValueType::kList)) {
    context.out.Error(kWrongTypeError);
    co_return false;
  }
  end.Begin(result, result.found() ? result.record().value : std::string_view());
  const std::optional<std::string_view> found = end.first();
  if (!found) ReplyNothing(context, move);
  *element = found.value_or(std::string_view());
  co_return found.has_value();
}

// Removes an element that was pushed to argv[2], or is to go from argv[1]. False: it has answered
// that the removal failed.
Task<bool> Remove(CommandContext& context, size_t index, RemoveElement& mutation) {
  const Key key = KeyAt(context, index);
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  co_return !AnsweredWriteFailure(context, key, status, StorageStep::kLaterWrite);
}

// Moves the element that is at the end of the list at argv[1] now to the one at argv[2].
Task<MoveStep> TryMove(CommandContext& context, ListMove move, std::string* element) {
  const bool found = co_await ReadEnd(context, move, element);
  if (!found) co_return MoveStep::kAnswered;
  PushElement push(context, move.to, *element);
  const bool pushed = co_await MutateAt(context, KeyAt(context, 2), push);
  if (!pushed) co_return MoveStep::kAnswered;
  RemoveElement take(context, move.from, Where::kAtEnd, *element);
  bool done = co_await Remove(context, 1, take);
  if (!done) co_return MoveStep::kAnswered;
  if (take.removed()) co_return MoveStep::kMoved;
  RemoveElement undo(context, move.to, Where::kAnywhere, *element);
  done = co_await Remove(context, 2, undo);
  if (!done) co_return MoveStep::kAnswered;
  if (undo.removed()) co_return MoveStep::kAgain;
  // Another client has taken it from the target: nothing else may take it from the source.
  RemoveElement late(context, move.from, Where::kAnywhere, *element);
  done = co_await Remove(context, 1, late);
  co_return done ? MoveStep::kMoved : MoveStep::kAnswered;
}

Task<void> Move(CommandContext& context, ListMove move) {
  if (context.argv[1] == context.argv[2]) {
    RotateList mutation(context, move);
    const bool done = co_await Mutate(context, mutation);
    if (!done) co_return;
    mutation.found() ? context.out.Bulk(mutation.element()) : ReplyNothing(context, move);
    co_return;
  }
  KeyClaims::Claim claim;
  co_await ClaimSource(context, &claim);
  for (int tries = 0; tries < kMoveTries; ++tries) {
    std::string element;
    const MoveStep step = co_await TryMove(context, move, &element);
    if (step == MoveStep::kMoved) co_return context.out.Bulk(element);
    if (step == MoveStep::kAnswered) co_return;
  }
  ReplyStatus(context.out, Status(StatusCode::kUnavailable, "others keep changing the list"),
              StorageStep::kWrite);
}

// LMOVE and BLMOVE, which also says how long to wait.
Task<void> MoveBetweenEnds(CommandContext& context, bool waits) {
  ArgumentReader arguments(context.argv, 3);
  ListMove move;
  move.from = TakeListEnd(arguments);
  move.to = TakeListEnd(arguments);
  move.waits = waits;
  if (waits) CheckWaitingTime(arguments, context.argv[5]);
  if (arguments.AnsweredError(context.out)) co_return;
  co_await Move(context, move);
}

}  // namespace

Task<void> LMoveCommand(CommandContext& context) { return MoveBetweenEnds(context, false); }
Task<void> BLMoveCommand(CommandContext& context) { return MoveBetweenEnds(context, true); }

Task<void> RPopLPushCommand(CommandContext& context) { return Move(context, {}); }

Task<void> BRPopLPushCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 3);
  CheckWaitingTime(arguments, context.argv[3]);
  if (arguments.AnsweredError(context.out)) co_return;
  co_await Move(context, {.waits = true});
}

}  // namespace onetrip
