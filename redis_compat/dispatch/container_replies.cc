#include "redis_compat/dispatch/container_replies.h"

#include <string>

#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {

void HelpCommand(CommandContext& context) {
  const CommandRow* const container = FindCommand(context.argv[0]);
  const auto subcommands = SubcommandsOf(*container);
  const size_t prefix = container->name.size() + 1;
  context.out.Array(1 + 2 * subcommands.size());
  context.out.Simple(ToUpperAscii(container->name) +
                     " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (const CommandRow& row : subcommands) {
    std::string line = ToUpperAscii(row.name.substr(prefix));
    if (!row.syntax.empty()) {
      line.append(" ").append(row.syntax);
    }
    context.out.Simple(line);
    context.out.Simple("    " + std::string(row.summary) + ".");
  }
}

std::string ArityError(const CommandRow& row) {
  std::string message = "ERR wrong number of arguments for '";
  return message.append(row.name).append("' command");
}

std::string SubcommandSyntaxError(const CommandContext& context) {
  std::string message = "ERR unknown subcommand or wrong number of arguments for '";
  message.append(UntilNul(context.argv[1].substr(0, 128))).append("'. Try ");
  return message.append(ToUpperAscii(context.argv[0])).append(" HELP.");
}

}  // namespace onetrip
