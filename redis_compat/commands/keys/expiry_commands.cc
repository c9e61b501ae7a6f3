// Deadlines of keys: EXPIRE and its relatives, PERSIST, EXPIRETIME.
//
// A deadline is a part of the record, so that giving a key another one is a read-modify-write that
// keeps the value. The cluster clock decides what has passed.
#include <string>

#include "redis_compat/commands/keys/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/dispatch/set_options.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

constexpr int64_t kMsPerSecond = 1000;

// Conditions that the old deadline must meet.
struct ExpireConditions {
  bool only_if_none = false;     // NX
  bool only_if_any = false;      // XX
  bool only_if_later = false;    // GT: no deadline counts as the latest one
  bool only_if_earlier = false;  // LT

  [[nodiscard]] bool Allow(uint64_t old_ms, int64_t new_ms) const {
    const bool has_one = old_ms != 0;
    const auto old = static_cast<int64_t>(old_ms);
    if (only_if_none && has_one) return false;
    if (only_if_any && !has_one) return false;
    if (only_if_later && (!has_one || new_ms <= old)) return false;
    return !only_if_earlier || !has_one || new_ms < old;
  }
};

// Reads the arguments behind the time.
void ReadConditions(ArgumentReader& arguments, ExpireConditions* conditions) {
  while (arguments.HasMore()) {
    const bool known = arguments.Flag("NX", &conditions->only_if_none) ||
                       arguments.Flag("XX", &conditions->only_if_any) ||
                       arguments.Flag("GT", &conditions->only_if_later) ||
                       arguments.Flag("LT", &conditions->only_if_earlier);
    if (!known) arguments.Fail("ERR Unsupported option " + std::string(UntilNul(arguments.Take())));
  }
  const bool others =
      conditions->only_if_any || conditions->only_if_later || conditions->only_if_earlier;
  arguments.Require(!conditions->only_if_none || !others,
                    "ERR NX and XX, GT or LT options at the same time are not compatible");
  arguments.Require(!conditions->only_if_later || !conditions->only_if_earlier,
                    "ERR GT and LT options at the same time are not compatible");
}

class SetDeadline final : public CommandMutation {
 public:
  SetDeadline(const ExpireConditions& conditions, int64_t at_ms, uint64_t now_ms)
      : conditions_(conditions), at_ms_(at_ms), now_ms_(static_cast<int64_t>(now_ms)) {}

  Change Apply(const RecordView* current) override {
    Begin();
    changed_ = current != nullptr && conditions_.Allow(current->deadline_ms, at_ms_);
    if (!changed_) {
      return Change::Keep();
    }
    // A deadline that has passed already removes the key.
    return at_ms_ <= now_ms_ ? Change::Delete()
                             : WithDeadline(*current, static_cast<uint64_t>(at_ms_));
  }

  [[nodiscard]] bool takes_trees() const override { return true; }
  [[nodiscard]] bool changed() const { return changed_; }

 private:
  const ExpireConditions conditions_;
  const int64_t at_ms_;
  const int64_t now_ms_;
  bool changed_ = false;
};

class RemoveDeadline final : public CommandMutation {
 public:
  Change Apply(const RecordView* current) override {
    Begin();
    changed_ = current != nullptr && current->deadline_ms != 0;
    return changed_ ? WithDeadline(*current, 0) : Change::Keep();
  }

  [[nodiscard]] bool takes_trees() const override { return true; }
  [[nodiscard]] bool changed() const { return changed_; }

 private:
  bool changed_ = false;
};

// `amount` of `unit` as unix milliseconds, which may have passed long ago. False: no number of 64
// bits says it.
bool DeadlineOf(ExpiryUnit unit, int64_t amount, uint64_t now_ms, int64_t* at_ms) {
  *at_ms = amount;
  if (IsInSeconds(unit) && __builtin_mul_overflow(amount, kMsPerSecond, at_ms)) {
    return false;
  }
  return !IsFromNow(unit) || !__builtin_add_overflow(*at_ms, static_cast<int64_t>(now_ms), at_ms);
}

Task<void> Expire(CommandContext& context, ExpiryUnit unit) {
  ArgumentReader arguments(context.argv, 3);
  ExpireConditions conditions;
  ReadConditions(arguments, &conditions);
  const int64_t amount = arguments.ReadInteger(context.argv[2]);
  const uint64_t now_ms = context.kv.NowMs();
  int64_t at_ms = 0;
  if (!DeadlineOf(unit, amount, now_ms, &at_ms)) {
    arguments.Fail("ERR invalid expire time in '" + std::string(context.command->name) +
                   "' command");
  }
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  const Key key = KeyAt(context, 1);
  SetDeadline mutation(conditions, at_ms, now_ms);
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (status.code() == StatusCode::kTooLarge) {
    context.out.Integer(0);  // a key too long to be stored is not there
  } else if (!AnsweredWriteFailure(context, key, status)) {
    context.out.Integer(mutation.changed() ? 1 : 0);
  }
}

// EXPIRETIME and PEXPIRETIME: the deadline itself; -1 without one, -2 without a key.
Task<void> TellDeadline(CommandContext& context, bool in_ms) {
  ReadResult result;
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), kNoValue, &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, result.found());
  if (!result.found()) {
    context.out.Integer(-2);
  } else if (result.record().deadline_ms == 0) {
    context.out.Integer(-1);
  } else {
    // The last of them rounds beyond 63 bits.
    const uint64_t at_ms = result.record().deadline_ms;
    const uint64_t at_s = (at_ms + kMsPerSecond / 2) / kMsPerSecond;
    context.out.Integer(static_cast<int64_t>(in_ms ? at_ms : at_s));
  }
}

}  // namespace

Task<void> ExpireCommand(CommandContext& context) { return Expire(context, ExpiryUnit::kSeconds); }

Task<void> PExpireCommand(CommandContext& context) {
  return Expire(context, ExpiryUnit::kMilliseconds);
}

Task<void> ExpireAtCommand(CommandContext& context) {
  return Expire(context, ExpiryUnit::kUnixSeconds);
}

Task<void> PExpireAtCommand(CommandContext& context) {
  return Expire(context, ExpiryUnit::kUnixMilliseconds);
}

Task<void> ExpireTimeCommand(CommandContext& context) { return TellDeadline(context, false); }

Task<void> PExpireTimeCommand(CommandContext& context) { return TellDeadline(context, true); }

Task<void> PersistCommand(CommandContext& context) {
  const Key key = KeyAt(context, 1);
  RemoveDeadline mutation;
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (status.code() == StatusCode::kTooLarge) {
    context.out.Integer(0);
  } else if (!AnsweredWriteFailure(context, key, status)) {
    context.out.Integer(mutation.changed() ? 1 : 0);
  }
}

}  // namespace onetrip
