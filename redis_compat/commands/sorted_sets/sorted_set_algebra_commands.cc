// Commands that combine several sorted sets and sets.
//
// The sources are read one after the other, and a target among them again when it is written: what
// is done to that key is one step.
#include <absl/container/flat_hash_map.h>

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis_compat/commands/sorted_sets/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_batch.h"
#include "redis_compat/dispatch/key_copy.h"
#include "redis_compat/dispatch/sorted_set_access.h"
#include "redis_compat/values/sorted_set_algebra.h"

namespace onetrip {
namespace {

enum class Algebra : uint8_t { kUnion, kIntersection, kIntersectionCount, kDifference };

struct AlgebraCall {
  Algebra operation = Algebra::kUnion;
  bool stores = false;

  // Where the number of sources stands.
  [[nodiscard]] size_t count_at() const { return stores ? 2 : 1; }
  [[nodiscard]] bool has_weights() const {
    return operation == Algebra::kUnion || operation == Algebra::kIntersection;
  }
};

struct AlgebraOptions {
  std::vector<double> weights;  // one for each source
  Aggregate aggregate = Aggregate::kSum;
  bool with_scores = false;
  int64_t limit = 0;
};

// The keys of a call, each read once.
struct Sources {
  std::deque<RecordCopy> copies;
  std::vector<const RecordCopy*> by_position;
  const RecordCopy* target = nullptr;  // that of the target, if it is one of them
};

bool IsScored(uint8_t type) {
  return type == static_cast<uint8_t>(ValueType::kSortedSet) ||
         type == static_cast<uint8_t>(ValueType::kSet);
}

// Reads as many keys as were asked for, from argv[first] on. False: it has answered.
Task<bool> ReadSources(CommandContext& context, size_t first, size_t count, Sources* sources) {
  absl::flat_hash_map<std::string_view, const RecordCopy*> known;
  for (size_t i = first; i < first + count; ++i) {
    const Key key = KeyAt(context, i);
    const auto [place, is_new] = known.emplace(key.bytes, nullptr);
    if (is_new) {
      if (EndsTurn(i, i + 1)) co_await context.kv.Yield();
      RecordCopy* const copy = &sources->copies.emplace_back();
      const Status status = co_await ReadCopy(context.kv, key, copy);
      if (AnsweredReadFailure(context, status)) co_return false;
      place->second = copy;
      // The command must not keep a share for values that are read while it reads another one.
      if (copy->holder != nullptr) {
        copy->holder->share = CountMemory(context, copy->holder->memory.bytes());
      }
      if (first > 2 && key.bytes == context.argv[1]) sources->target = copy;
    }
    const RecordCopy& copy = *place->second;
    CountLookup(context, copy.found);
    if (copy.found && !IsScored(copy.type)) {
      context.out.Error(kWrongTypeError);
      co_return false;
    }
    sources->by_position.push_back(&copy);
  }
  co_return true;
}

void ReadAlgebraOptions(ArgumentReader& arguments, const AlgebraCall& call,
                        AlgebraOptions* options) {
  const bool counts = call.operation == Algebra::kIntersectionCount;
  while (arguments.HasMore()) {
    if (call.has_weights() && arguments.Word("WEIGHTS", options->weights.size())) {
      for (double& weight : options->weights) {
        weight = ReadDouble(arguments, arguments.Take(), "ERR weight value is not a float");
      }
    } else if (call.has_weights() && arguments.Word("AGGREGATE", 1)) {
      options->aggregate = static_cast<Aggregate>(arguments.TakeOneOf({"SUM", "MIN", "MAX"}));
    } else if (!call.stores && !counts && arguments.Flag("WITHSCORES", &options->with_scores)) {
      continue;
    } else if (!counts || !arguments.Integer("LIMIT", &options->limit,
                                             {.min = 0,
                                              .out_of_range = "ERR LIMIT can't be negative",
                                              .not_integer = "ERR LIMIT can't be negative"})) {
      arguments.SyntaxError();
    }
  }
}

// Combines sources, of which `own`, if it is one, is now another record.
class Combination {
 public:
  Combination(const AlgebraCall& call, const AlgebraOptions& options, const Sources& sources)
      : call_(call), options_(options), sources_(sources) {}

  [[nodiscard]] std::vector<ScoredMember> Members(const RecordView* own = nullptr) const {
    std::vector<ScoredSource> scored = Scored(own);
    switch (call_.operation) {
      case Algebra::kUnion:
        return UniteScored(std::move(scored), options_.aggregate);
      case Algebra::kIntersection:
        return IntersectScored(std::move(scored), options_.aggregate);
      default:
        return SubtractScored(scored);
    }
  }
  [[nodiscard]] uint64_t Count() const {
    return CountIntersection(Scored(nullptr), static_cast<uint64_t>(options_.limit));
  }
  [[nodiscard]] bool has_own() const { return sources_.target != nullptr; }

 private:
  [[nodiscard]] std::vector<ScoredSource> Scored(const RecordView* own) const {
    std::vector<ScoredSource> scored;
    for (size_t i = 0; i < sources_.by_position.size(); ++i) {
      const RecordCopy* const copy = sources_.by_position[i];
      ScoredSource source{copy->bytes(), copy->type == static_cast<uint8_t>(ValueType::kSet),
                          options_.weights[i]};
      if (copy == sources_.target) {
        source.value = own == nullptr ? std::string_view() : own->value;
        source.is_set = own != nullptr && IsOfType(own, ValueType::kSet);
      }
      scored.push_back(source);
    }
    return scored;
  }

  const AlgebraCall& call_;
  const AlgebraOptions& options_;
  const Sources& sources_;
};

class StoreCombination final : public SortedSetStore {
 public:
  StoreCombination(CommandContext& context, const Combination& combination)
      : SortedSetStore(context, /*looks=*/combination.has_own()), combination_(combination) {}

  Change Apply(const RecordView* current) override {
    Begin();
    if (looks() && current != nullptr && !IsScored(current->type)) return Refuse(kWrongTypeError);
    return Store(current, combination_.Members(current));
  }

 private:
  const Combination& combination_;
};

Task<void> ReplyMembers(CommandContext& context, const std::vector<ScoredMember>& members,
                        bool with_scores) {
  const bool in_pairs = with_scores && context.out.protocol() == 3;
  context.out.Array(with_scores && !in_pairs ? members.size() * 2 : members.size());
  ReplyPace pace;
  for (const ScoredMember& one : members) {
    if (in_pairs) context.out.Array(2);
    context.out.Bulk(one.member);
    if (with_scores) context.out.Double(one.score);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

Task<void> Run(CommandContext& context, AlgebraCall call) {
  const auto argv = context.argv;
  const size_t first = call.count_at() + 1;
  ArgumentReader arguments(argv, call.count_at());
  const int64_t count = arguments.TakeInteger();
  if (count < 1) {
    arguments.Fail("ERR at least 1 input key is needed for '" + std::string(context.command->name) +
                   "' command");
  }
  arguments.Require(count <= static_cast<int64_t>(argv.size() - first), kSyntaxError);
  if (arguments.AnsweredError(context.out)) co_return;
  // Redis looks at the keys before the options.
  Sources sources;
  const bool read = co_await ReadSources(context, first, static_cast<size_t>(count), &sources);
  if (!read) co_return;
  AlgebraOptions options;
  options.weights.assign(static_cast<size_t>(count), 1);
  for (int64_t i = 0; i < count; ++i) arguments.Take();
  ReadAlgebraOptions(arguments, call, &options);
  if (arguments.AnsweredError(context.out)) co_return;

  const Combination combination(call, options, sources);
  if (call.stores) {
    StoreCombination store(context, combination);
    co_await StoreAndReply(context, 1, store);
  } else if (call.operation == Algebra::kIntersectionCount) {
    context.out.Integer(static_cast<int64_t>(combination.Count()));
  } else {
    const std::vector<ScoredMember> members = combination.Members();
    co_await ReplyMembers(context, members, options.with_scores);
  }
}

}  // namespace

Task<void> ZUnionCommand(CommandContext& context) { return Run(context, {Algebra::kUnion, false}); }
Task<void> ZInterCommand(CommandContext& context) {
  return Run(context, {Algebra::kIntersection, false});
}
Task<void> ZInterCardCommand(CommandContext& context) {
  return Run(context, {Algebra::kIntersectionCount, false});
}
Task<void> ZDiffCommand(CommandContext& context) {
  return Run(context, {Algebra::kDifference, false});
}
Task<void> ZUnionStoreCommand(CommandContext& context) {
  return Run(context, {Algebra::kUnion, true});
}
Task<void> ZInterStoreCommand(CommandContext& context) {
  return Run(context, {Algebra::kIntersection, true});
}
Task<void> ZDiffStoreCommand(CommandContext& context) {
  return Run(context, {Algebra::kDifference, true});
}

}  // namespace onetrip
