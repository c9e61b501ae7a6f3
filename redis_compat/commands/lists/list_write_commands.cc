// Commands that change one list and answer with none of its elements.
#include <optional>
#include <span>
#include <string>

#include "redis_compat/commands/lists/handlers.h"
#include "redis_compat/commands/lists/list_terms.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

struct PushOptions {
  ListEnd end = ListEnd::kHead;
  bool only_if_there = false;
};

// Pushes argv[2] and those behind it.
class PushElements final : public ListMutation {
 public:
  PushElements(CommandContext& context, PushOptions options)
      : ListMutation(context), options_(options), elements_(context.argv.subspan(2)) {}

  // Elements of the list behind it.
  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] std::optional<uint64_t> growth() const override {
    uint64_t bytes = 0;
    for (const std::string_view element : elements_) bytes += PackedEntryBytes(element.size());
    return bytes;
  }

 private:
  Change ApplyTo(ListEdit& list) override {
    size_ = 0;
    if (options_.only_if_there && !found()) return Change::Keep();
    size_ = static_cast<int64_t>(list.size() + elements_.size());
    list.Push(options_.end, elements_);
    return Replace(list);
  }

  const PushOptions options_;
  const std::span<const std::string_view> elements_;
  int64_t size_ = 0;
};

class SetElement final : public ListMutation {
 public:
  // Nothing as `index`: it was no number.
  SetElement(CommandContext& context, std::optional<int64_t> index, std::string_view element)
      : ListMutation(context), index_(index), element_(element) {}

 private:
  Change ApplyTo(ListEdit& list) override {
    if (!found()) return Refuse("ERR no such key");
    if (!index_) return Refuse(kNotIntegerError);
    const std::optional<uint64_t> position = PositionOf(list.size(), *index_);
    if (!position) return Refuse("ERR index out of range");
    list.Set(*position, element_);
    return Replace(list);
  }

  const std::optional<int64_t> index_;
  const std::string_view element_;
};

enum class Beside : uint8_t { kBefore, kAfter };

class InsertElement final : public CollectionMutation {
 public:
  InsertElement(CommandContext& context, Beside where, std::string_view pivot,
                std::string_view element)
      : CollectionMutation(context, ValueType::kList),
        where_(where),
        pivot_(pivot),
        element_(element) {}

  // Elements of the list behind it; -1: the pivot is not there.
  [[nodiscard]] int64_t size() const { return size_; }

 private:
  Change ApplyTo(std::string_view current) override {
    size_ = found() ? -1 : 0;
    const ListValue list(current);
    ListStretch pivot;
    if (!list.FindEqual(pivot_, ListEnd::kHead, &pivot)) return Change::Keep();
    size_ = static_cast<int64_t>(list.size() + 1);
    const size_t at = where_ == Beside::kBefore ? pivot.begin : pivot.end;
    return Replace(list.Replace({at, at, 0}, {&element_, 1}));
  }

  const Beside where_;
  const std::string_view pivot_;
  const std::string_view element_;
  int64_t size_ = 0;
};

// Removes the elements that equal one: the first `count` of them, or the last if it is negative;
// all if it is 0.
class RemoveElements final : public CollectionMutation {
 public:
  RemoveElements(CommandContext& context, int64_t count, std::string_view element)
      : CollectionMutation(context, ValueType::kList),
        from_(count < 0 ? ListEnd::kTail : ListEnd::kHead),
        most_(count < 0 ? 0 - static_cast<uint64_t>(count) : static_cast<uint64_t>(count)),
        element_(element) {}
  [[nodiscard]] int64_t removed() const { return static_cast<int64_t>(removed_); }

 private:
  Change ApplyTo(std::string_view current) override {
    const uint64_t most = most_ == 0 ? ListValue::kAll : most_;
    std::string list = ListValue(current).WithoutEqual(element_, from_, most, &removed_);
    return removed_ == 0 ? Change::Keep() : Replace(std::move(list));
  }

  const ListEnd from_;
  const uint64_t most_;
  const std::string_view element_;
  uint64_t removed_ = 0;
};

class TrimList final : public ListMutation {
 public:
  TrimList(CommandContext& context, ListRange range) : ListMutation(context), range_(range) {}

 private:
  Change ApplyTo(ListEdit& list) override {
    const ListPart part = PartOfList(list.size(), range_);
    if (part.elements == list.size()) return Change::Keep();
    list.Only(part.first, part.elements);
    return Replace(list);
  }

  const ListRange range_;
};

Task<void> Push(CommandContext& context, PushOptions options) {
  PushElements mutation(context, options);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.size());
}

}  // namespace

Task<void> LPushCommand(CommandContext& context) { return Push(context, {ListEnd::kHead}); }
Task<void> RPushCommand(CommandContext& context) { return Push(context, {ListEnd::kTail}); }
Task<void> LPushXCommand(CommandContext& context) { return Push(context, {ListEnd::kHead, true}); }
Task<void> RPushXCommand(CommandContext& context) { return Push(context, {ListEnd::kTail, true}); }

Task<void> LSetCommand(CommandContext& context) {
  SetElement mutation(context, ParseInt64(context.argv[2]), context.argv[3]);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Ok();
}

Task<void> LInsertCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const auto where = static_cast<Beside>(arguments.TakeOneOf({"BEFORE", "AFTER"}));
  if (arguments.AnsweredError(context.out)) co_return;
  InsertElement mutation(context, where, context.argv[3], context.argv[4]);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.size());
}

Task<void> LRemCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const int64_t count = arguments.TakeInteger();
  if (arguments.AnsweredError(context.out)) co_return;
  RemoveElements mutation(context, count, context.argv[3]);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.removed());
}

Task<void> LTrimCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  ListRange range;
  range.first = arguments.TakeInteger();
  range.last = arguments.TakeInteger();
  if (arguments.AnsweredError(context.out)) co_return;
  TrimList mutation(context, range);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Ok();
}

}  // namespace onetrip
