// Glob patterns as Redis matches them: * ? [a-z] [^x] and backslash.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_GLOB_H_
#define ONETRIP_REDIS_COMPAT_VALUES_GLOB_H_

#include <string_view>

namespace onetrip {

enum class GlobCase : bool { kExact, kIgnore };

// True if all of `text` matches `pattern`. Takes at most pattern size times text size steps, so
// that no pattern of a client can hold the worker.
bool GlobMatch(std::string_view pattern, std::string_view text, GlobCase letters);

// True if the pattern can match anything but itself.
bool HasGlobSyntax(std::string_view pattern);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_GLOB_H_
