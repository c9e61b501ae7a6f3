#include "frontend/storage/embedded.h"

#include <cstdio>
#include <utility>

#include "client_core/base/host_memory.h"
#include "client_core/fabric/shm.h"
#include "client_core/kv/kv.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"
#include "frontend/storage/data_path.h"

namespace onetrip {
namespace {

std::string MiB(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

// Up to the verb.
std::string NodesOf(uint16_t count, uint64_t bytes) {
  const bool is_one = count == 1;
  return std::to_string(count) + (is_one ? " memory node of " : " memory nodes of ") + MiB(bytes) +
         (is_one ? " is" : " are");
}

class EmbeddedWorker final : public WorkerStorage {
 public:
  EmbeddedWorker(Executor& executor, LocalMaster& master, std::unique_ptr<Quiesce> hold,
                 Membership membership, const std::vector<MemoryEndpoint*>& endpoints,
                 const AgentOptions& options, const LargeValueBudgets& large_values,
                 WorkerUsageSum& usages)
      : usages_(usages),
        hold_(std::move(hold)),
        fabric_(executor.clock(), endpoints),
        context_(executor, fabric_, master, *hold_, membership, DataPathOf(options, large_values)),
        engine_(MakeEngine(EngineOf(options), context_)),
        kv_(context_, *engine_) {
    usages_.Add(*kv_.metrics().allocator);
  }
  ~EmbeddedWorker() override { usages_.Remove(*kv_.metrics().allocator); }

  Kv& kv() override { return kv_; }
  Task<Status> Start() { return kv_.Start(); }
  Task<void> Stop() override {
    // Inline operations are settled at once, and the master is in this process: neither can fail
    // but by a bug that it reports itself.
    (void)co_await kv_.Stop();
    (void)co_await context_.master.Leave(*hold_, context_.membership);
  }

 private:
  WorkerUsageSum& usages_;
  std::unique_ptr<Quiesce> hold_;
  ShmFabric fabric_;
  WorkerContext context_;
  std::unique_ptr<Engine> engine_;
  SlotStore kv_;
};

}  // namespace

Result<std::unique_ptr<Embedded>> Embedded::Create(const AgentOptions& options, const Clock& clock,
                                                   std::string* reason) {
  const auto nodes = static_cast<uint16_t>(options.replicas);
  const uint64_t wanted_bytes = options.memory_bytes * nodes;
  const uint64_t usable_bytes = UsableMemoryBytes();
  if (wanted_bytes / nodes != options.memory_bytes || wanted_bytes > usable_bytes) {
    *reason = NodesOf(nodes, options.memory_bytes) + " more than this host's " + MiB(usable_bytes) +
              " of memory; give a smaller --memory" + (nodes > 1 ? " or --replicas" : "");
    return Status(StatusCode::kOutOfMemory, "pool larger than memory");
  }
  if (options.databases > kMaxDatabases) {
    *reason = "at most " + std::to_string(kMaxDatabases) + " databases; give a smaller --databases";
    return Status(StatusCode::kInvalidArgument, "too many databases");
  }
  ClusterShape shape;
  shape.nodes = nodes;
  shape.replicas = EngineOf(options) == EngineKind::kRaw ? 1 : nodes;
  shape.node_bytes = options.memory_bytes;
  Result<MembershipState> state = MembershipState::Create(shape);
  if (!state.ok()) {
    *reason = "memory nodes of " + MiB(options.memory_bytes) +
              " are too small: " + state.status().message() + "; give a larger --memory";
    return state.status();
  }
  const View view = state->view();
  std::unique_ptr<Embedded> embedded(
      new Embedded(options, clock, std::move(state.value()), shape.replicas));
  for (uint16_t i = 0; i < nodes; ++i) {
    Result<std::unique_ptr<MemoryNode>> node = MemoryNode::Create(NodeId{i}, view);
    if (!node.ok()) {
      *reason = "the system does not give " + MiB(options.memory_bytes) +
                " to a memory node; give a smaller --memory";
      return node.status();
    }
    node.value()->TouchAhead();
    embedded->nodes_.push_back(std::move(node.value()));
  }
  return embedded;
}

Task<Result<std::unique_ptr<WorkerStorage>>> Embedded::Join(LoopExecutor& executor) {
  auto hold = std::make_unique<Quiesce>(executor);
  Result<Membership> membership = co_await master_.Join(*hold);
  if (!membership.ok()) co_return membership.status();
  std::vector<MemoryEndpoint*> endpoints;
  for (const std::unique_ptr<MemoryNode>& node : nodes_) endpoints.push_back(node.get());
  auto worker = std::make_unique<EmbeddedWorker>(executor, master_, std::move(hold),
                                                 membership.value(), std::move(endpoints), options_,
                                                 large_values(), worker_usages());
  const Status status = co_await worker->Start();
  if (!status.ok()) co_return status;
  std::unique_ptr<WorkerStorage> joined = std::move(worker);
  co_return std::move(joined);
}

std::string Embedded::Describe() const {
  return std::to_string(nodes_.size()) +
         (nodes_.size() == 1 ? " embedded memory node of " : " embedded memory nodes of ") +
         MiB(options_.memory_bytes);
}

PoolUsage Embedded::pool_usage() const {
  PoolUsage pool;
  uint64_t blocks = 0;
  for (const std::unique_ptr<MemoryNode>& node : nodes_) {
    const NodeUsage usage = node->Usage();
    blocks += usage.blocks;
    pool.Add(usage);
  }
  pool.Add(worker_usage());
  pool.SetBlocks(blocks);
  return pool;
}

}  // namespace onetrip
