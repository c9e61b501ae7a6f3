// CHECK: assertions that stay on in release builds.
//
// For programmer errors only: bytes that come from a peer or from remote memory never CHECK.
#ifndef ONETRIP_CLIENT_CORE_BASE_CHECK_H_
#define ONETRIP_CLIENT_CORE_BASE_CHECK_H_

namespace onetrip {

// Prints "file:line: CHECK failed: condition" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace onetrip

#define CHECK(condition)                             \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::onetrip::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // ONETRIP_CLIENT_CORE_BASE_CHECK_H_
