// Replies about the arguments of a command, and those that all containers of subcommands have in
// common.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_CONTAINER_REPLIES_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_CONTAINER_REPLIES_H_

#include <string>

#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// The reply to a call of `row` with the wrong number of arguments.
std::string ArityError(const CommandRow& row);
inline void ReplyArityError(CommandContext& context) {
  context.out.Error(ArityError(*context.command));
}

// HELP of any container, made from the rows of its subcommands.
void HelpCommand(CommandContext& context);

// The reply to a subcommand with arguments that it does not take. REQUIRES: argv[1] names it.
std::string SubcommandSyntaxError(const CommandContext& context);
inline void ReplySubcommandSyntaxError(CommandContext& context) {
  context.out.Error(SubcommandSyntaxError(context));
}

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_CONTAINER_REPLIES_H_
