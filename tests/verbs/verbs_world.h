// Memory nodes over RDMA in one process: for every endpoint a server with a VerbsHost, on a thread
// of its own, and fabrics that reach them. The host needs an RDMA device; SoftRoCE does.
#ifndef ONETRIP_TESTS_VERBS_VERBS_WORLD_H_
#define ONETRIP_TESTS_VERBS_VERBS_WORLD_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_core/verbs/verbs.h"
#include "memnode/verbs_host.h"
#include "tests/support/fabric_backends.h"

namespace onetrip {

inline void Demand(bool holds, const std::string& reason) {
  if (!holds) fprintf(stderr, "%s\n", reason.c_str());
  CHECK(holds);
}

inline VerbsDevice& TestDevice() {
  static const std::unique_ptr<VerbsDevice> device = [] {
    std::string reason;
    auto opened = VerbsDevice::Open({}, &reason);
    Demand(opened.ok(), reason);
    return std::move(opened.value());
  }();
  return *device;
}

class VerbsWorld final : public FabricWorld {
 public:
  explicit VerbsWorld(uint64_t seed) : executor_(clock_, seed) {}
  LoopExecutor& executor() override { return executor_; }
  std::unique_ptr<Fabric> NewFabric(const std::vector<MemoryEndpoint*>& endpoints) override {
    return NewVerbsFabric(endpoints);
  }

  // Connected to all of them.
  std::unique_ptr<VerbsFabric> NewVerbsFabric(const std::vector<MemoryEndpoint*>& endpoints,
                                              VerbsFabricOptions options = {}) {
    std::string reason;
    auto made = VerbsFabric::Make(executor_, TestDevice(),
                                  {.cluster = kCluster, .worker = WorkerId{++workers_}}, Secret(),
                                  options, &reason);
    Demand(made.ok(), reason);
    std::unique_ptr<VerbsFabric> fabric = std::move(made.value());
    for (size_t i = 0; i < endpoints.size(); ++i) {
      const NodeId node{static_cast<uint16_t>(i)};
      const uint16_t port = ServedAt(*endpoints[i], node).server->port();
      Demand(fabric->SetNode(node, "127.0.0.1", port, &reason).ok(), reason);
    }
    for (size_t i = 0; i < endpoints.size(); ++i)
      AwaitNode(*fabric, NodeId{static_cast<uint16_t>(i)});
    return fabric;
  }
  void AwaitNode(VerbsFabric& fabric, NodeId node) {
    const uint64_t deadline_ns = executor_.NowNs() + 60'000'000'000;
    Demand(BlockOn(executor_, fabric.Connected(node, deadline_ns)).ok(), fabric.ConnectError(node));
  }
  // While its server is idle only: the host is of one thread.
  VerbsHost& HostOf(MemoryEndpoint& endpoint) { return *served_.at(&endpoint).host; }
  TcpServer& ServerOf(MemoryEndpoint& endpoint) { return *served_.at(&endpoint).server; }
  // The name of the last fabric made.
  [[nodiscard]] WorkerId worker() const { return WorkerId{workers_}; }

 private:
  static constexpr uint64_t kCluster = 7;
  struct Served {
    std::unique_ptr<VerbsHost> host;
    std::unique_ptr<TcpServer> server;
  };

  Served& ServedAt(MemoryEndpoint& endpoint, NodeId node) {
    Served& served = served_[&endpoint];
    if (served.server != nullptr) return served;
    std::string reason;
    auto host = VerbsHost::Start(TestDevice(), endpoint.base(), endpoint.bytes(), 1, &reason);
    Demand(host.ok(), reason);
    served.host = std::move(host.value());
    auto server =
        TcpServer::Start(endpoint, Secret(),
                         {.cluster = kCluster, .node = node, .rdma = served.host.get()}, &reason);
    Demand(server.ok(), reason);
    served.server = std::move(server.value());
    return served;
  }

  SystemClock clock_;
  LoopExecutor executor_;
  uint32_t workers_ = 0;
  std::map<MemoryEndpoint*, Served> served_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_VERBS_VERBS_WORLD_H_
