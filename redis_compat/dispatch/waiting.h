// The steps that commands take which wait in Redis until there is an element.
//
// An element that is there they take at once. Waiting would need word of new ones from other
// agents, which there is not yet, so they say that they cannot.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_WAITING_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_WAITING_H_

#include <string_view>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// Checks a time to wait, in seconds; 0: for ever.
void CheckWaitingTime(ArgumentReader& arguments, std::string_view seconds);

// The form in which a command says that its time is over.
enum class NothingForm : uint8_t { kNull, kNullArray };

// Answers a command that has found nothing and would have to wait. Inside a transaction Redis does
// not wait either.
void ReplyCannotWait(CommandContext& context, NothingForm form);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_WAITING_H_
