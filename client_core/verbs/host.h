// VerbsHost: a memory node's half of the verbs backend. The memory is registered once; each worker
// has a queue pair of its own, which is its fence: without it nothing of that worker arrives.
// One thread.
#ifndef ONETRIP_CLIENT_CORE_VERBS_HOST_H_
#define ONETRIP_CLIENT_CORE_VERBS_HOST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "client_core/base/rng.h"
#include "client_core/layout/types.h"
#include "client_core/verbs/queue_pair.h"

namespace onetrip {

// A memory node as a worker reaches it.
struct VerbsTarget {
  VerbsAddress address;
  uint64_t base = 0;  // where the memory begins, in the node's address space
  uint64_t bytes = 0;
  uint32_t key = 0;
};

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
  Result<VerbsTarget> Welcome(WorkerId worker, const VerbsAddress& address, std::string* reason);
  // Nothing of `worker` takes effect once this has returned.
  void Fence(WorkerId worker) { pairs_.erase(worker.value); }

 private:
  VerbsHost(VerbsDevice& device, uint64_t seed) : device_(device), rng_(seed) {}

  VerbsDevice& device_;
  Rng rng_;
  std::unique_ptr<VerbsMemory> memory_;
  ibv_cq* completions_ = nullptr;  // stays empty: its queue pairs post nothing
  std::map<uint32_t, std::unique_ptr<VerbsQueuePair>> pairs_;  // by worker
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_VERBS_HOST_H_
