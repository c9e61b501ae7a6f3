// Splits an inline command line into arguments, with Redis's quoting rules.
#ifndef ONETRIP_REDIS_COMPAT_PROTOCOL_INLINE_SPLIT_H_
#define ONETRIP_REDIS_COMPAT_PROTOCOL_INLINE_SPLIT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace onetrip {

// Arguments are separated by blanks. "..." understands \n \r \t \b \a \xHH and a backslash before
// any other byte; '...' understands \' only; a closing quote must be followed by a blank or the
// end. The line ends at its first NUL byte.
//
// Appends the arguments to `arguments`. They are views into `line` or, when the line has quotes,
// into `storage`, which is overwritten. Returns false when quotes are not balanced.
bool SplitInline(std::string_view line, std::vector<std::string_view>* arguments,
                 std::string* storage);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PROTOCOL_INLINE_SPLIT_H_
