// Commands that change hashes.
#include <cmath>
#include <memory>
#include <optional>
#include <string>

#include "redis_compat/commands/hashes/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/values/hash_value.h"

namespace onetrip {
namespace {

class HashMutation : public CollectionMutation {
 public:
  explicit HashMutation(CommandContext& context)
      : CollectionMutation(context, ValueType::kHash),
        limits_(context.hooks.config().hash_limits()) {}

  [[nodiscard]] bool takes_trees() const final { return true; }

 protected:
  virtual Change ApplyTo(HashEdit& hash) = 0;

  Change Replace(HashEdit& hash) {
    if (hash.tree() == nullptr) return CollectionMutation::Replace(hash.Finish(limits_));
    return CollectionMutation::Replace(*hash.tree(), hash.NewFlags(limits_));
  }

 private:
  Change ApplyTo(std::string_view current) final {
    HashEdit hash(current);
    return ApplyTo(hash);
  }
  Change ApplyToTree(Tree& tree) final {
    HashEdit hash(tree);
    return ApplyTo(hash);
  }

  const CompactLimits limits_;
};

// Gives fields their values; argv[2], argv[3] and so on in turn.
class SetFields final : public HashMutation {
 public:
  explicit SetFields(CommandContext& context) : HashMutation(context), argv_(context.argv) {}
  // How many of the fields were new.
  [[nodiscard]] int64_t added() const { return added_; }

 private:
  Change ApplyTo(HashEdit& hash) override {
    added_ = 0;
    for (size_t i = 2; i < argv_.size(); i += 2) {
      added_ += hash.Put(argv_[i], argv_[i + 1]) ? 1 : 0;
    }
    return Replace(hash);
  }

  const std::span<const std::string_view> argv_;
  int64_t added_ = 0;
};

class SetFieldIfNew final : public HashMutation {
 public:
  SetFieldIfNew(CommandContext& context, std::string_view field, std::string_view value)
      : HashMutation(context), field_(field), value_(value) {}
  [[nodiscard]] bool added() const { return added_; }

 private:
  Change ApplyTo(HashEdit& hash) override {
    added_ = !hash.Find(field_);
    if (!added_) return Change::Keep();
    hash.Put(field_, value_);
    return Replace(hash);
  }

  const std::string_view field_;
  const std::string_view value_;
  bool added_ = false;
};

class RemoveFields final : public HashMutation {
 public:
  explicit RemoveFields(CommandContext& context)
      : HashMutation(context), fields_(context.argv.subspan(2)) {}
  [[nodiscard]] int64_t removed() const { return removed_; }

 private:
  Change ApplyTo(HashEdit& hash) override {
    removed_ = 0;
    for (const std::string_view field : fields_) removed_ += hash.Remove(field) ? 1 : 0;
    return removed_ == 0 ? Change::Keep() : Replace(hash);
  }

  const std::span<const std::string_view> fields_;
  int64_t removed_ = 0;
};

class AddIntegerToField final : public HashMutation {
 public:
  AddIntegerToField(CommandContext& context, std::string_view field, int64_t amount)
      : HashMutation(context), field_(field), amount_(amount) {}
  [[nodiscard]] int64_t sum() const { return sum_; }

 private:
  Change ApplyTo(HashEdit& hash) override {
    std::string_view text;
    const std::optional<int64_t> old = hash.Find(field_, &text) ? ParseInt64(text) : 0;
    if (!old) return Refuse("ERR hash value is not an integer");
    if (__builtin_add_overflow(*old, amount_, &sum_)) return Refuse(kOverflowError);
    const char* const end = FormatInt64(sum_, text_);
    hash.Put(field_, {text_, static_cast<size_t>(end - text_)});
    return Replace(hash);
  }

  const std::string_view field_;
  const int64_t amount_;
  int64_t sum_ = 0;
  char text_[kInt64TextMax];
};

class AddFloatToField final : public HashMutation {
 public:
  AddFloatToField(CommandContext& context, std::string_view field, long double amount)
      : HashMutation(context), field_(field), amount_(amount) {}
  [[nodiscard]] std::string_view text() const { return {text_, text_size_}; }

 private:
  Change ApplyTo(HashEdit& hash) override {
    std::string_view text;
    const std::optional<long double> old = hash.Find(field_, &text) ? ParseLongDouble(text) : 0.0L;
    if (!old) return Refuse("ERR hash value is not a float");
    const long double sum = *old + amount_;
    if (std::isnan(sum) || std::isinf(sum)) return Refuse(kNanOrInfinityError);
    text_size_ = FormatLongDouble(sum, text_);
    hash.Put(field_, this->text());
    return Replace(hash);
  }

  const std::string_view field_;
  const long double amount_;
  size_t text_size_ = 0;
  char text_[kLongDoubleTextMax];
};

// Runs HSET or HMSET. False: it has answered.
Task<bool> Set(CommandContext& context, SetFields& mutation) {
  if (context.argv.size() % 2 == 1) {
    ReplyArityError(context);
    co_return false;
  }
  co_return co_await Mutate(context, mutation);
}

}  // namespace

Task<void> HSetCommand(CommandContext& context) {
  SetFields mutation(context);
  const bool done = co_await Set(context, mutation);
  if (done) context.out.Integer(mutation.added());
}

Task<void> HMSetCommand(CommandContext& context) {
  SetFields mutation(context);
  const bool done = co_await Set(context, mutation);
  if (done) context.out.Ok();
}

Task<void> HSetNxCommand(CommandContext& context) {
  SetFieldIfNew mutation(context, context.argv[2], context.argv[3]);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.added() ? 1 : 0);
}

Task<void> HDelCommand(CommandContext& context) {
  RemoveFields mutation(context);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.removed());
}

Task<void> HIncrByCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 3);
  const int64_t amount = arguments.TakeInteger();
  if (arguments.AnsweredError(context.out)) co_return;
  AddIntegerToField mutation(context, context.argv[2], amount);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.sum());
}

Task<void> HIncrByFloatCommand(CommandContext& context) {
  const auto amount = ParseLongDouble(context.argv[3]);
  if (!amount) co_return context.out.Error(kNotFloatError);
  if (std::isinf(*amount)) co_return context.out.Error("ERR value is NaN or Infinity");
  // Five kilobytes of digits are too much for a pooled frame.
  const auto mutation = std::make_unique<AddFloatToField>(context, context.argv[2], *amount);
  const bool done = co_await Mutate(context, *mutation);
  if (done) context.out.Bulk(mutation->text());
}

}  // namespace onetrip
