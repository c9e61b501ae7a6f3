// The handlers of the commands on places. See strings/handlers.h.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_GEO_HANDLERS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_GEO_HANDLERS_H_

#include "client_core/coro/task.h"
#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// geo_place_commands.cc
Task<void> GeoAddCommand(CommandContext& context);
Task<void> GeoPosCommand(CommandContext& context);
Task<void> GeoDistCommand(CommandContext& context);
Task<void> GeoHashCommand(CommandContext& context);

// geo_search_commands.cc
Task<void> GeoSearchCommand(CommandContext& context);
Task<void> GeoSearchStoreCommand(CommandContext& context);
Task<void> GeoRadiusCommand(CommandContext& context);
Task<void> GeoRadiusRoCommand(CommandContext& context);
Task<void> GeoRadiusByMemberCommand(CommandContext& context);
Task<void> GeoRadiusByMemberRoCommand(CommandContext& context);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_GEO_HANDLERS_H_
