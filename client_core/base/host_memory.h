// How much memory a process may hope for.
#ifndef ONETRIP_CLIENT_CORE_BASE_HOST_MEMORY_H_
#define ONETRIP_CLIENT_CORE_BASE_HOST_MEMORY_H_

#include <cstdint>

namespace onetrip {

// Bytes of memory this process may use: the host's, or its control group's if that is less. Any
// thread.
uint64_t UsableMemoryBytes();

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_HOST_MEMORY_H_
