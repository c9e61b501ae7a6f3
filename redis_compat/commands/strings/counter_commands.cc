// Strings as numbers: INCR, DECR, INCRBY, DECRBY, INCRBYFLOAT.
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "redis_compat/commands/strings/handlers.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

class AddInteger final : public StringMutation {
 public:
  explicit AddInteger(int64_t amount) : amount_(amount) {}
  [[nodiscard]] std::optional<uint64_t> growth() const override { return kInt64TextMax; }

  // No longer one is a number.
  [[nodiscard]] ValueRange wanted() const override { return {0, 63}; }
  // After the last Apply().
  [[nodiscard]] int64_t sum() const { return sum_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    const auto old = current.found() ? ParseInt64(current.bytes()) : 0;
    if (!old) {
      return Refuse(kNotIntegerError);
    }
    if (__builtin_add_overflow(*old, amount_, &sum_)) {
      return Refuse(kOverflowError);
    }
    const char* const end = FormatInt64(sum_, text_);
    return Change::Write(current.ReplacedBy({text_, static_cast<size_t>(end - text_)}));
  }

  int64_t amount_;
  int64_t sum_ = 0;
  char text_[kInt64TextMax];
};

class AddFloat final : public StringMutation {
 public:
  // An amount that is no number is refused in its turn: behind the checks of the stored value.
  explicit AddFloat(std::optional<long double> amount) : amount_(amount) {}

  // The sum after the last Apply().
  [[nodiscard]] std::string_view text() const { return std::string_view(text_, text_size_); }

 private:
  Change ApplyTo(const StringValue& current) override {
    const auto old = current.found() ? ParseLongDouble(current.bytes()) : 0.0L;
    if (!old || !amount_) {
      return Refuse(kNotFloatError);
    }
    const long double sum = *old + *amount_;
    if (std::isnan(sum) || std::isinf(sum)) {
      return Refuse(kNanOrInfinityError);
    }
    text_size_ = FormatLongDouble(sum, text_);
    return Change::Write(current.ReplacedBy(text()));
  }

  std::optional<long double> amount_;
  size_t text_size_ = 0;
  char text_[kLongDoubleTextMax];
};

Task<void> Add(CommandContext& context, int64_t amount) {
  const Key key = KeyAt(context, 1);
  AddInteger mutation(amount);
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  mutation.error() != nullptr ? context.out.Error(mutation.error())
                              : context.out.Integer(mutation.sum());
}

}  // namespace

Task<void> IncrCommand(CommandContext& context) { return Add(context, 1); }

Task<void> DecrCommand(CommandContext& context) { return Add(context, -1); }

Task<void> IncrByCommand(CommandContext& context) {
  const auto amount = ParseInt64(context.argv[2]);
  if (!amount) {
    context.out.Error(kNotIntegerError);
    co_return;
  }
  co_await Add(context, *amount);
}

Task<void> DecrByCommand(CommandContext& context) {
  const auto amount = ParseInt64(context.argv[2]);
  if (!amount) {
    context.out.Error(kNotIntegerError);
    co_return;
  }
  // The one number whose negative does not exist.
  if (*amount == std::numeric_limits<int64_t>::min()) {
    context.out.Error("ERR decrement would overflow");
    co_return;
  }
  co_await Add(context, -*amount);
}

Task<void> IncrByFloatCommand(CommandContext& context) {
  const Key key = KeyAt(context, 1);
  // Five kilobytes of digits are too much for a pooled frame.
  const auto mutation = std::make_unique<AddFloat>(ParseLongDouble(context.argv[2]));
  const Status status = co_await context.kv.ReadModifyWrite(key, *mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  mutation->error() != nullptr ? context.out.Error(mutation->error())
                               : context.out.Bulk(mutation->text());
}

}  // namespace onetrip
