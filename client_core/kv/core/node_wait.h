// NodeWait: how long an operation has waited for a memory node that was lost.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_NODE_WAIT_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_NODE_WAIT_H_

#include <cstdint>

namespace onetrip {

struct NodeWait {
  uint32_t retries = 0;
  uint64_t next_ns = 0;  // the next wait
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_NODE_WAIT_H_
