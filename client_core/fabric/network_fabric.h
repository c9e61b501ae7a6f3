// NetworkFabric: a fabric whose memory nodes have an address, to which connections are made and
// made again in the background. Everything on the worker's executor; not thread-safe.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_NETWORK_FABRIC_H_
#define ONETRIP_CLIENT_CORE_FABRIC_NETWORK_FABRIC_H_

#include <cstdint>
#include <string>

#include "client_core/coro/executor.h"
#include "client_core/fabric/fabric.h"
#include "client_core/fabric/rdma_metrics.h"

namespace onetrip {

class NetworkFabric : public Fabric {
 public:
  // Node `node` listens at `host` (numeric, or a name, which is looked up now and may block) and
  // `port`: starts to connect. A node that moved loses its old connection. kInvalidArgument and
  // *reason: there is no such host.
  virtual Status SetNode(NodeId node, const std::string& host, uint16_t port,
                         std::string* reason) = 0;

  // `co_await fabric.Connected(node, deadline_ns)`: Ok once requests can go to the node;
  // kUnavailable when they could not by then (ConnectError says why).
  Task<Status> Connected(NodeId node, uint64_t deadline_ns) {
    constexpr uint64_t kPollNs = 1'000'000;
    while (!Reaches(node)) {
      if (executor_.NowNs() >= deadline_ns) {
        co_return Status(StatusCode::kUnavailable, "the memory node cannot be reached");
      }
      co_await executor_.SleepFor(kPollNs);
    }
    co_return Status::Ok();
  }
  // The last failure to connect to `node` in one line, empty if there was none since the last
  // welcome.
  [[nodiscard]] virtual std::string ConnectError(NodeId node) const = 0;

  // True if the node answers on that channel, too: one that has been silent for a second or more
  // does not, though its channel is open still.
  [[nodiscard]] virtual bool Answers(NodeId node) const = 0;
  // Asks the node for a word, if its channel is open and nothing has been answered on it since the
  // last call: without that this worker would not notice that it does not answer.
  virtual void Ping(NodeId node) = 0;

  // Null: not over RDMA. As long as the fabric.
  virtual RdmaMetrics* rdma_metrics() { return nullptr; }

 protected:
  // `executor` outlives the fabric.
  explicit NetworkFabric(Executor& executor, FabricTraits traits = {},
                         RoundTripMemory* memory = nullptr)
      : Fabric(executor.clock(), /*completes_inline=*/false, traits, memory), executor_(executor) {}

 private:
  Executor& executor_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_NETWORK_FABRIC_H_
