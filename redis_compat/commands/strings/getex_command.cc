// GETEX: reads a string and changes its deadline.
#include <string_view>

#include "redis_compat/commands/strings/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/dispatch/set_options.h"

namespace onetrip {
namespace {

// GETEX with an option: reads a string and changes its deadline.
class ReadAndSetDeadline final : public StringMutation {
 public:
  // `error`: what is wrong with the deadline; answered only if there is a string.
  ReadAndSetDeadline(uint64_t deadline_ms, uint64_t now_ms, const char* error)
      : deadline_ms_(deadline_ms), now_ms_(now_ms), deadline_error_(error) {}

  [[nodiscard]] const KeptValue& value() const { return value_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    if (!current.found()) {
      return Change::Keep();
    }
    if (deadline_error_ != nullptr) {
      return Refuse(deadline_error_);
    }
    value_.Keep(current.record());
    if (deadline_ms_ != 0 && deadline_ms_ <= now_ms_) {
      return Change::Delete();
    }
    return current.deadline_ms() == deadline_ms_ ? Change::Keep()
                                                 : WithDeadline(current.record(), deadline_ms_);
  }

  const uint64_t deadline_ms_;  // 0: none any more
  const uint64_t now_ms_;
  const char* const deadline_error_;
  KeptValue value_;
};

struct GetExOptions {
  bool persist = false;
  ExpiryUnit unit = ExpiryUnit::kNone;
  std::string_view expiry = {};
};

void ReadGetExOptions(ArgumentReader& arguments, GetExOptions* options) {
  while (arguments.HasMore()) {
    const bool has_unit = options->unit != ExpiryUnit::kNone;
    const bool known =
        (!has_unit && arguments.Flag("PERSIST", &options->persist)) ||
        (!options->persist && TakeExpiryOption(arguments, &options->unit, &options->expiry));
    if (!known) arguments.SyntaxError();
  }
}

}  // namespace

Task<void> GetExCommand(CommandContext& context) {
  GetExOptions options;
  ArgumentReader arguments(context.argv, 2);
  ReadGetExOptions(arguments, &options);
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  if (!options.persist && options.unit == ExpiryUnit::kNone) {
    co_await GetCommand(context);
    co_return;
  }
  const uint64_t now_ms = context.kv.NowMs();
  uint64_t deadline_ms = 0;
  const char* const error =
      ReadDeadline(options.unit, options.expiry, now_ms,
                   "ERR invalid expire time in 'getex' command", &deadline_ms);
  const Key key = KeyAt(context, 1);
  ReadAndSetDeadline mutation(deadline_ms, now_ms, error);
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (status.code() != StatusCode::kTooLarge && AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  CountLookup(context, mutation.found());
  if (mutation.error() != nullptr) {
    context.out.Error(mutation.error());
  } else {
    mutation.found() ? mutation.value().Reply(context) : context.out.Null();
  }
}

}  // namespace onetrip
