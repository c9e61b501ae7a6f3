// CLUSTER: this is no cluster of Redis.
#include "redis_compat/commands/cluster/handlers.h"

namespace onetrip {

void ClusterCommand(CommandContext& context) {
  context.out.Error("ERR This instance has cluster support disabled");
}

}  // namespace onetrip
