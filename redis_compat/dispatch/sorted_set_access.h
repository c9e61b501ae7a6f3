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
#include "redis_compat/values/sorted_set_edit.h"
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

  [[nodiscard]] bool takes_trees() const final { return true; }

 protected:
  // As Apply(); without members: there is no sorted set. Where pages are missing, what it returns
  // is of no account.
  virtual Change ApplyTo(SortedSetEdit& set) = 0;

  // For the end of ApplyTo(): the key gets the changes, or goes, if no member is left.
  Change Replace(SortedSetEdit& set);

 private:
  Change ApplyTo(std::string_view current) final;
  Change ApplyToTree(Tree& tree) final;

  const CompactLimits limits_;
};

// A look at a sorted set in either form.
class SortedSetLook : public TreeReader {
 public:
  void Read(const RecordView& record, Tree& tree) final {
    if (IsOfType(&record, ValueType::kSortedSet) && HasBothOrders(tree)) LookAt(tree);
  }
  // Makes the look at a packed value; empty: there is none.
  virtual void LookAt(std::string_view value) = 0;
  // The same at a tree. Where pages are missing it is called anew, and must begin anew.
  virtual void LookAt(Tree& tree) = 0;
};
// Has it look at a key. A packed value lives as long as `result`. False: it has answered.
Task<bool> LookAt(CommandContext& context, Key key, SortedSetLook& look, ReadResult* result);

// The scores of members; nothing: it is not there.
class ScoresOf final : public SortedSetLook {
 public:
  // The members outlive it.
  explicit ScoresOf(std::span<const std::string_view> members)
      : members_(members), scores_(members.size()) {}
  [[nodiscard]] const std::vector<std::optional<double>>& scores() const { return scores_; }

  void LookAt(std::string_view value) override;
  void LookAt(Tree& tree) override;

 private:
  const std::span<const std::string_view> members_;
  std::vector<std::optional<double>> scores_;
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
  std::optional<Tree> made_tree_;  // has what `made_` has
  MemoryBudget::Share share_;      // counts `made_`
  int64_t stored_ = 0;
};

// Runs it on the key at argv[index], and answers how many members that has.
Task<void> StoreAndReply(CommandContext& context, size_t index, SortedSetStore& mutation);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_SORTED_SET_ACCESS_H_
