// VerbsHost: a memory node's half of the verbs backend. The memory is registered once; each worker
// has a queue pair of its own, which is its fence: without it nothing of that worker arrives. Where
// the device has memory windows, the worker's key is that of a window through its pair alone, so
// that the key of one worker is worth nothing to another.
// One thread.
#ifndef ONETRIP_MEMNODE_VERBS_HOST_H_
#define ONETRIP_MEMNODE_VERBS_HOST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "client_core/base/rng.h"
#include "client_core/layout/types.h"
#include "client_core/verbs/queue_pair.h"
#include "client_core/verbs/window.h"

namespace onetrip {

class VerbsHost {
 public:
  // `device` and the memory outlive it. *reason, if it fails: one line.
  static Result<std::unique_ptr<VerbsHost>> Start(VerbsDevice& device, std::byte* base,
                                                  uint64_t bytes, uint64_t seed,
                                                  std::string* reason);
  VerbsHost(const VerbsHost&) = delete;
  VerbsHost& operator=(const VerbsHost&) = delete;
  ~VerbsHost();

  // A queue pair for `worker`, connected to its end. One that it had before is destroyed first.
  // *reason, if it fails: one line.
  Result<TcpQueuePairReply> Welcome(WorkerId worker, const TcpQueuePair& peer, std::string* reason);
  // Nothing of `worker` takes effect once this has returned.
  void Fence(WorkerId worker) { ways_.erase(worker.value); }

 private:
  // The window goes first: a device may count it among the pair's users.
  struct Way {
    std::unique_ptr<VerbsQueuePair> pair;
    std::unique_ptr<VerbsWindow> window;  // null: the device has none
  };

  VerbsHost(VerbsDevice& device, uint64_t seed) : device_(device), rng_(seed) {}

  VerbsDevice& device_;
  Rng rng_;
  std::unique_ptr<VerbsMemory> memory_;
  ibv_cq* completions_ = nullptr;  // its queue pairs post nothing but the bind of their window
  std::map<uint32_t, Way> ways_;   // by worker
};

}  // namespace onetrip

#endif  // ONETRIP_MEMNODE_VERBS_HOST_H_
