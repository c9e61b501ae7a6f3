// Commands over several sets.
//
// They read the sets one after the other. A target that is among them is read when it is written,
// in one step.
#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "redis_compat/commands/sets/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/dispatch/key_batch.h"
#include "redis_compat/dispatch/key_copy.h"
#include "redis_compat/values/set_combination.h"

namespace onetrip {
namespace {

// The sets that a command names, as they were when they were read.
struct SetSources {
  std::deque<RecordCopy> copies;  // a key that is named twice is read once
  std::vector<std::string_view> sets;
  std::vector<size_t> of_target;  // the positions in `sets` that are the target's
  MemoryBudget::Share share;      // counts the copies, but for large ones, which have their own
};

// Reads a set into `copy`. False: it has answered.
Task<bool> ReadSet(CommandContext& context, size_t index, RecordCopy* copy) {
  const Status status = co_await ReadCopy(context.kv, KeyAt(context, index), copy);
  if (AnsweredReadFailure(context, status)) co_return false;
  // The command must not keep a share for values that are read while it reads the next one.
  if (copy->holder != nullptr) {
    copy->holder->share = CountMemory(context, copy->holder->memory.bytes());
  }
  if (copy->found && copy->type != static_cast<uint8_t>(ValueType::kSet)) {
    context.out.Error(kWrongTypeError);
    co_return false;
  }
  co_return true;
}

// Reads the sets at argv[first, end), but for `target`, if there is one. False: it has answered.
Task<bool> ReadSets(CommandContext& context, size_t first, size_t end, const Key* target,
                    SetSources* sources) {
  absl::flat_hash_map<std::string_view, const RecordCopy*> read;
  uint64_t bytes = 0;
  for (size_t i = first; i < end; ++i) {
    if (EndsTurn(i, i + 1)) co_await context.kv.Yield();
    const std::string_view name = context.argv[i];
    if (target != nullptr && name == target->bytes) {
      sources->of_target.push_back(sources->sets.size());
      sources->sets.emplace_back();
      continue;
    }
    const auto [place, is_new] = read.try_emplace(name, nullptr);
    if (is_new) {
      PrefetchAhead(context, i, 1);
      sources->copies.emplace_back();
      place->second = &sources->copies.back();
      const bool is_read = co_await ReadSet(context, i, &sources->copies.back());
      if (!is_read) co_return false;
      bytes += place->second->value.size();
      sources->share = CountMemory(context, bytes);
    }
    CountLookup(context, place->second->found);
    sources->sets.push_back(place->second->bytes());
  }
  co_return true;
}

uint64_t IntegersMax(const CommandContext& context) {
  return context.hooks.config().integer_set_members();
}

// Combines sets, and lets others go on meanwhile.
Task<NewSet> Combine(CommandContext& context, SetOperation operation, const SetSources& sources) {
  constexpr uint64_t kMembersPerTurn = 2000;
  SetCombination combination(operation, sources.sets);
  while (combination.Advance(kMembersPerTurn)) co_await context.kv.Yield();
  co_return combination.Finish(IntegersMax(context));
}

// SINTER, SUNION and SDIFF.
Task<void> ReplyCombination(CommandContext& context, SetOperation operation) {
  SetSources sources;
  const bool is_read = co_await ReadSets(context, 1, context.argv.size(), nullptr, &sources);
  if (!is_read) co_return;
  const NewSet set = co_await Combine(context, operation, sources);
  context.out.Set(set.members.size());
  ReplyPace pace;
  for (const std::string_view member : set.members) {
    context.out.Bulk(member);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

// Combines a set with others and puts the outcome in its place.
class CombineInPlace final : public CollectionMutation {
 public:
  CombineInPlace(CommandContext& context, SetOperation operation, const SetSources& others)
      : CollectionMutation(context, ValueType::kSet),
        operation_(operation),
        others_(others),
        integers_max_(IntegersMax(context)) {}
  // Members of the outcome.
  [[nodiscard]] uint64_t size() const { return size_; }

 private:
  Change ApplyTo(std::string_view current) override {
    std::vector<std::string_view> sets = others_.sets;
    for (const size_t position : others_.of_target) sets[position] = current;
    const NewSet set = CombineSets(operation_, sets, integers_max_);
    size_ = set.members.size();
    return ReplaceAnew(PackSet(set));
  }

  const SetOperation operation_;
  const SetSources& others_;
  const uint64_t integers_max_;
  uint64_t size_ = 0;
};

// Puts a set, or nothing, where anything may have been before.
Task<void> StoreSet(CommandContext& context, Key target, const NewSet& set) {
  Status status;
  bool existed = false;
  if (set.members.empty()) {
    status = co_await context.kv.Delete(target, &existed);
  } else {
    const std::string packed = PackSet(set);
    const MemoryBudget::Share share = CountMemory(context, packed.size());
    NewRecord record;
    record.head = packed;
    record.type = static_cast<uint8_t>(ValueType::kSet);
    status = co_await context.kv.Set(target, record);
  }
  if (AnsweredWriteFailure(context, target, status)) co_return;
  context.out.Integer(static_cast<int64_t>(set.members.size()));
}

// SINTERSTORE, SUNIONSTORE and SDIFFSTORE.
Task<void> StoreCombination(CommandContext& context, SetOperation operation) {
  const Key target = KeyAt(context, 1);
  SetSources sources;
  const bool is_read = co_await ReadSets(context, 2, context.argv.size(), &target, &sources);
  if (!is_read) co_return;
  if (sources.of_target.empty()) {
    const NewSet set = co_await Combine(context, operation, sources);
    co_return co_await StoreSet(context, target, set);
  }
  CombineInPlace mutation(context, operation, sources);
  const bool done = co_await Mutate(context, mutation);
  if (!done) co_return;
  for (size_t i = 0; i < sources.of_target.size(); ++i) CountLookup(context, mutation.found());
  context.out.Integer(static_cast<int64_t>(mutation.size()));
}

}  // namespace

Task<void> SInterCommand(CommandContext& context) {
  return ReplyCombination(context, SetOperation::kIntersection);
}
Task<void> SUnionCommand(CommandContext& context) {
  return ReplyCombination(context, SetOperation::kUnion);
}
Task<void> SDiffCommand(CommandContext& context) {
  return ReplyCombination(context, SetOperation::kDifference);
}

Task<void> SInterStoreCommand(CommandContext& context) {
  return StoreCombination(context, SetOperation::kIntersection);
}
Task<void> SUnionStoreCommand(CommandContext& context) {
  return StoreCombination(context, SetOperation::kUnion);
}
Task<void> SDiffStoreCommand(CommandContext& context) {
  return StoreCombination(context, SetOperation::kDifference);
}

Task<void> SInterCardCommand(CommandContext& context) {
  constexpr size_t kFirst = 2;
  const auto argc = static_cast<int64_t>(context.argv.size());
  ArgumentReader count(context.argv, 1);
  const int64_t keys = count.TakeInteger(RangeWithError(1, std::numeric_limits<int64_t>::max(),
                                                        "ERR numkeys should be greater than 0"));
  count.Require(keys <= argc - static_cast<int64_t>(kFirst),
                "ERR Number of keys can't be greater than number of args");
  if (count.AnsweredError(context.out)) co_return;
  const size_t end = kFirst + static_cast<size_t>(keys);
  ArgumentReader options(context.argv, end);
  int64_t limit = 0;
  while (options.HasMore()) {
    const bool known = options.Integer(
        "LIMIT", &limit,
        RangeWithError(0, std::numeric_limits<int64_t>::max(), "ERR LIMIT can't be negative"));
    if (!known) options.SyntaxError();
  }
  if (options.AnsweredError(context.out)) co_return;
  SetSources sources;
  const bool is_read = co_await ReadSets(context, kFirst, end, nullptr, &sources);
  if (!is_read) co_return;
  const NewSet set = co_await Combine(context, SetOperation::kIntersection, sources);
  const auto size = static_cast<int64_t>(set.members.size());
  context.out.Integer(limit == 0 ? size : std::min(size, limit));
}

}  // namespace onetrip
