#include "tests/sim/large_pages.h"

#include <sys/mman.h>

// jemalloc looks for a variable of this name. The next seed takes what the last one gave back, as
// it is.
extern "C" {
extern const char* malloc_conf;
const char* malloc_conf = "thp:always,dirty_decay_ms:-1,muzzy_decay_ms:-1";
}

namespace onetrip {

void AskForLargePages(std::byte* base, uint64_t bytes) {
  (void)madvise(base, bytes, MADV_HUGEPAGE);
}

}  // namespace onetrip
