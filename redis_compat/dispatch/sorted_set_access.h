// The steps that commands on sorted sets, and on places, which are sorted sets, have in common.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_SORTED_SET_ACCESS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_SORTED_SET_ACCESS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/values/sorted_set_value.h"

namespace onetrip {

// Takes a number that need not be an integer; 0 after an error.
double ReadDouble(ArgumentReader& arguments, std::string_view text,
                  const char* error = kNotFloatError);

class SortedSetMutation : public CollectionMutation {
 public:
  explicit SortedSetMutation(CommandContext& context)
      : CollectionMutation(context, ValueType::kSortedSet),
        limits_(context.hooks.config().sorted_set_limits()) {}

 protected:
  [[nodiscard]] const CompactLimits& limits() const { return limits_; }

 private:
  const CompactLimits limits_;
};

// The conditions of ZADD.
struct AddOptions {
  bool if_new = false;
  bool if_there = false;
  bool if_greater = false;
  bool if_less = false;
  bool count_changed = false;
  bool increment = false;
};

// ZADD, once its arguments have been read. The members outlive it.
Task<void> AddMembers(CommandContext& context, const AddOptions& options,
                      std::span<const ScoredMember> members);

// Gives a key a sorted set, in place of what it holds, and for ever; one without members removes
// the key.
class SortedSetStore : public CommandMutation {
 public:
  // `context` outlives it. `looks`: what the key gets depends on what it holds.
  SortedSetStore(CommandContext& context, bool looks)
      : context_(context), looks_(looks), limits_(context.hooks.config().sorted_set_limits()) {}

  [[nodiscard]] ValueRange wanted() const override { return looks_ ? kWholeValue : kNoValue; }
  // How many members the key has got.
  [[nodiscard]] int64_t stored() const { return stored_; }

 protected:
  [[nodiscard]] bool looks() const { return looks_; }
  [[nodiscard]] const CompactLimits& limits() const { return limits_; }
  // For the end of Apply(). The members are in their order.
  Change Store(const RecordView* current, std::span<const ScoredMember> members);

 private:
  CommandContext& context_;
  const bool looks_;
  const CompactLimits limits_;
  std::string made_;
  MemoryBudget::Share share_;  // counts `made_`
  int64_t stored_ = 0;
};

// Runs it on the key at argv[index], and answers how many members that has.
Task<void> StoreAndReply(CommandContext& context, size_t index, SortedSetStore& mutation);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_SORTED_SET_ACCESS_H_
