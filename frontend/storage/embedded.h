// Embedded: a whole cluster in this process: master and memory nodes, reached over shm.
//
// What a user starts first. The only place that sees master, memory nodes and agent at once.
#ifndef ONETRIP_FRONTEND_STORAGE_EMBEDDED_H_
#define ONETRIP_FRONTEND_STORAGE_EMBEDDED_H_

#include <memory>
#include <string>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/base/options.h"
#include "client_core/base/status.h"
#include "frontend/storage/storage.h"
#include "master/local_master.h"
#include "memnode/memory_node.h"

namespace onetrip {

class Embedded final : public Storage {
 public:
  // `clock` outlives it. On failure `reason` is one line that says what to change.
  static Result<std::unique_ptr<Embedded>> Create(const AgentOptions& options, const Clock& clock,
                                                  std::string* reason);

  Task<Result<std::unique_ptr<WorkerStorage>>> Join(LoopExecutor& executor) override;
  PoolUsage pool_usage() const override;
  uint64_t replicas() const override { return static_cast<uint64_t>(replicas_); }
  std::string Describe() const override;

 private:
  Embedded(const AgentOptions& options, const Clock& clock, MembershipState state, int replicas)
      : Storage(options.large_value_bytes),
        options_(options),
        replicas_(replicas),
        master_(std::move(state), clock) {}

  const AgentOptions options_;
  const int replicas_;
  LocalMaster master_;
  std::vector<std::unique_ptr<MemoryNode>> nodes_;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_STORAGE_EMBEDDED_H_
