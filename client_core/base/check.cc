#include "client_core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace onetrip {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, condition);
  std::abort();
}

}  // namespace onetrip
