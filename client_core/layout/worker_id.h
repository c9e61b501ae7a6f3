// The largest id that a worker can have: slot words carry 22 bits of it (slot.h). A peer that
// claims a larger one is no worker, and none has ever been given out.
#ifndef ONETRIP_CLIENT_CORE_LAYOUT_WORKER_ID_H_
#define ONETRIP_CLIENT_CORE_LAYOUT_WORKER_ID_H_

#include <cstdint>

namespace onetrip {

inline constexpr uint32_t kMaxWorkerId = (1U << 22) - 1;

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_LAYOUT_WORKER_ID_H_
