// VerbsWindow: a memory window of type 2 on a memory, through one queue pair alone: a key that no
// other queue pair can use, and that is worth nothing once the window is gone. One thread.
#ifndef ONETRIP_CLIENT_CORE_VERBS_WINDOW_H_
#define ONETRIP_CLIENT_CORE_VERBS_WINDOW_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>

#include "client_core/base/status.h"
#include "client_core/verbs/device.h"
#include "client_core/verbs/queue_pair.h"

namespace onetrip {

class VerbsWindow {
 public:
  // On all of `memory`, for READ, WRITE and atomics of the other end of `pair`, which is connected
  // and has nothing under way; `completions` is its queue. All outlive it. Waits for the device.
  // *reason, if it fails: one line.
  static Result<std::unique_ptr<VerbsWindow>> Bind(VerbsDevice& device, const VerbsMemory& memory,
                                                   VerbsQueuePair& pair, ibv_cq* completions,
                                                   std::string* reason);
  VerbsWindow(const VerbsWindow&) = delete;
  VerbsWindow& operator=(const VerbsWindow&) = delete;
  // Nothing comes through it any more once this has returned.
  ~VerbsWindow();

  [[nodiscard]] uint32_t key() const { return window_->rkey; }

 private:
  VerbsWindow(const VerbsDevice& device, ibv_mw* window) : device_(device), window_(window) {}

  const VerbsDevice& device_;
  ibv_mw* const window_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_VERBS_WINDOW_H_
