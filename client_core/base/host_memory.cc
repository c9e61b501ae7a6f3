#include "client_core/base/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace onetrip {

uint64_t UsableMemoryBytes() {
  const uint64_t physical =
      static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  uint64_t limit = 0;
  // Holds "max" when there is no limit; the read fails then.
  std::ifstream group("/sys/fs/cgroup/memory.max");
  if (group >> limit && limit > 0) return std::min(physical, limit);
  return physical;
}

}  // namespace onetrip
