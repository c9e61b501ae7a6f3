// INFO's text: which sections, in which order, with which fields.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_INFO_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_INFO_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/dispatch/command_stats.h"
#include "redis_compat/dispatch/server_facts.h"
#include "redis_compat/dispatch/server_hooks.h"

namespace onetrip {

struct DatabaseFacts {
  uint64_t keys = 0;
  // An estimate where there are many keys.
  uint64_t with_deadline = 0;
  uint64_t average_left_ms = 0;  // Until their deadlines.
};

// Everything one INFO needs, gathered before a byte is written.
struct InfoRequest {
  std::vector<std::string_view> sections;  // In the order of output; lower case.
  ServerFacts facts;
  CommandTotals totals;
  std::vector<DatabaseFacts> databases;  // Filled if the keyspace section is wanted.

  [[nodiscard]] bool Wants(std::string_view section) const;
};

// The sections that INFO's arguments ask for: none or "default" for the usual ones, "all" and
// "everything" for all, unknown names for nothing. The hooks' own sections belong to the usual
// ones.
std::vector<std::string_view> SelectInfoSections(std::span<const std::string_view> names,
                                                 ServerHooks& hooks);

// The whole text, sections separated by an empty line.
std::string RenderInfo(const InfoRequest& request, ServerHooks& hooks);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_INFO_H_
