// Commands that read lists.
#include <optional>
#include <vector>

#include "redis_compat/commands/lists/handlers.h"
#include "redis_compat/commands/lists/list_terms.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

struct PositionOptions {
  ListEnd from = ListEnd::kHead;
  uint64_t rank = 1;             // matches from this one on, counted from 1
  std::optional<int64_t> count;  // nothing: one, and no array of them; 0: all
  int64_t looked_at_max = 0;     // elements to compare; 0: all
};

PositionOptions ReadPositionOptions(ArgumentReader& arguments) {
  PositionOptions options;
  int64_t rank = 1;
  int64_t count = -1;
  while (arguments.HasMore()) {
    if (arguments.Integer("RANK", &rank)) {
      arguments.Require(rank != 0,
                        "ERR RANK can't be zero: use 1 to start from the first match, 2 from the "
                        "second ... or use negative to start from the end of the list");
    } else if (!arguments.Integer("COUNT", &count,
                                  RangeWithError(0, kIndexMax, "ERR COUNT can't be negative")) &&
               !arguments.Integer("MAXLEN", &options.looked_at_max,
                                  RangeWithError(0, kIndexMax, "ERR MAXLEN can't be negative"))) {
      arguments.SyntaxError();
    }
  }
  if (rank < 0) options.from = ListEnd::kTail;
  options.rank = rank < 0 ? 0 - static_cast<uint64_t>(rank) : static_cast<uint64_t>(rank);
  if (count >= 0) options.count = count;
  return options;
}

std::vector<uint64_t> FindPositions(const ListValue& list, std::string_view element,
                                    const PositionOptions& options) {
  std::vector<uint64_t> found;
  ListCursor cursor(list.entries(), options.from);
  const auto looked_at_max = static_cast<uint64_t>(options.looked_at_max);
  const auto found_max = static_cast<uint64_t>(options.count.value_or(1));
  uint64_t matches = 0;
  std::string_view other;
  for (uint64_t i = 0; cursor.Next(&other) && (looked_at_max == 0 || i < looked_at_max); ++i) {
    if (other != element || ++matches < options.rank) continue;
    found.push_back(options.from == ListEnd::kHead ? i : list.size() - i - 1);
    if (found.size() == found_max) break;
  }
  return found;
}

}  // namespace

Task<void> LLenCommand(CommandContext& context) { return ReplySize(context, ValueType::kList); }

Task<void> LRangeCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  ListRange range;
  range.first = arguments.TakeInteger();
  range.last = arguments.TakeInteger();
  if (arguments.AnsweredError(context.out)) co_return;
  ReadResult result;
  ListPartReader part(range);
  const ValueRange wanted{.reader = &part};
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), wanted, &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kList, &value)) co_return;
  part.Begin(result, value);
  const uint64_t copied = IsTree(result) ? part.entries().size() : 0;
  const MemoryBudget::Share share = CountMemory(context, copied);
  co_await ReplyElements(context, part.entries(), part.elements(), ListEnd::kHead, result.holder());
}

Task<void> LIndexCommand(CommandContext& context) {
  ReadResult result;
  const std::optional<int64_t> index = ParseInt64(context.argv[2]);
  ListPartReader part({index.value_or(0), index.value_or(0)});
  const Status status = co_await ReadInTurn(context, &result, &part);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kList, &value)) co_return;
  if (!result.found()) co_return context.out.Null();
  if (!index) co_return context.out.Error(kNotIntegerError);
  part.Begin(result, value);
  const std::optional<std::string_view> element = part.first();
  element ? context.out.Bulk(*element) : context.out.Null();
}

Task<void> LPosCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 3);
  const PositionOptions options = ReadPositionOptions(arguments);
  if (arguments.AnsweredError(context.out)) co_return;
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kList, &value)) co_return;
  const std::vector<uint64_t> found = FindPositions(ListValue(value), context.argv[2], options);
  if (!options.count) {
    found.empty() ? context.out.Null() : context.out.Integer(static_cast<int64_t>(found.front()));
    co_return;
  }
  context.out.Array(found.size());
  ReplyPace pace;
  for (const uint64_t position : found) {
    context.out.Integer(static_cast<int64_t>(position));
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

}  // namespace onetrip
