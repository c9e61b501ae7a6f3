// The handlers of the commands of Redis Cluster; the command table is their only caller.
//
// A handler finds its arguments checked for number only, and leaves exactly one reply.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_CLUSTER_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_CLUSTER_HANDLERS_H_

#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// cluster_commands.cc
void ClusterCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_CLUSTER_HANDLERS_H_
