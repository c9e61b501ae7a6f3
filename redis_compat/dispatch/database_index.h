// Reading a database's number from an argument.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_DATABASE_INDEX_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_DATABASE_INDEX_H_

#include <cstdint>
#include <string_view>

#include "redis_compat/dispatch/command_context.h"

namespace onetrip {

// Answers what is wrong and returns false.
bool ReadDatabaseIndex(CommandContext& context, std::string_view text, uint32_t* database);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_DATABASE_INDEX_H_
