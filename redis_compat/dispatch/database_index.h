// Reading a database's number from an argument.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_DATABASE_INDEX_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_DATABASE_INDEX_H_

#include <cstdint>
#include <string_view>

#include "redis_compat/dispatch/argument_reader.h"

namespace onetrip {

// The database that `text` names; 0 after an error. `databases`: how many there are.
uint32_t ReadDatabaseIndex(ArgumentReader& arguments, std::string_view text, int64_t databases);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_DATABASE_INDEX_H_
