#include "redis_compat/dispatch/waiting.h"

#include <cmath>
#include <string>

#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {

void CheckWaitingTime(ArgumentReader& arguments, std::string_view seconds) {
  if (!arguments.ok()) return;
  const auto time = ParseLongDouble(seconds);
  arguments.Require(time.has_value(), "ERR timeout is not a float or out of range");
  if (!time) return;
  // More milliseconds than 63 bits hold are negative in Redis.
  constexpr long double kMsPerSecond = 1000;
  constexpr long double kTooMany = 0x1p63L;
  const long double ms = std::ceil(*time * kMsPerSecond);
  arguments.Require(ms >= 0 && ms < kTooMany, "ERR timeout is negative");
}

void ReplyCannotWait(CommandContext& context, NothingForm form) {
  const Transaction* const transaction = context.session.transaction.get();
  if (transaction != nullptr && transaction->open) {
    return form == NothingForm::kNull ? context.out.Null() : context.out.NullArray();
  }
  context.out.Error("ERR " + ToUpperAscii(context.command->name) +
                    " cannot wait for elements yet: agents do not tell each other of new ones so "
                    "far");
}

}  // namespace onetrip
