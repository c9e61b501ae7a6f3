// Memory nodes over RDMA in one process: a VerbsHost for every endpoint, and fabrics that are
// connected to them by function calls. The host needs an RDMA device; SoftRoCE does.
#ifndef ONETRIP_TESTS_VERBS_VERBS_WORLD_H_
#define ONETRIP_TESTS_VERBS_VERBS_WORLD_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client_core/verbs/verbs.h"
#include "tests/support/fabric_backends.h"

namespace onetrip {

class VerbsWorld final : public FabricWorld {
 public:
  explicit VerbsWorld(uint64_t seed) : executor_(clock_, seed) {}
  LoopExecutor& executor() override { return executor_; }
  std::unique_ptr<Fabric> NewFabric(const std::vector<MemoryEndpoint*>& endpoints) override {
    return NewVerbsFabric(endpoints);
  }

  std::unique_ptr<VerbsFabric> NewVerbsFabric(const std::vector<MemoryEndpoint*>& endpoints,
                                              VerbsFabricOptions options = {}) {
    std::string reason;
    auto fabric = VerbsFabric::Make(
        executor_, Device(), options,
        [endpoints](NodeId node, ControlRequest request) {
          return Handle(endpoints.at(node.value), request);
        },
        &reason);
    Demand(fabric.ok(), reason);
    ++workers_;
    for (size_t i = 0; i < endpoints.size(); ++i) {
      ConnectTo(*fabric.value(), NodeId{static_cast<uint16_t>(i)}, *endpoints[i]);
    }
    return std::move(fabric.value());
  }
  // The last fabric made, or made anew what it had.
  void ConnectTo(VerbsFabric& fabric, NodeId node, MemoryEndpoint& endpoint) {
    std::string reason;
    const Result<VerbsAddress> own = fabric.Offer(node, &reason);
    Demand(own.ok(), reason);
    const Result<VerbsTarget> target = HostOf(endpoint).Welcome(worker(), own.value(), &reason);
    Demand(target.ok(), reason);
    Demand(fabric.Connect(node, target.value(), &reason).ok(), reason);
  }
  VerbsHost& HostOf(MemoryEndpoint& endpoint) {
    auto& host = hosts_[&endpoint];
    if (host == nullptr) {
      std::string reason;
      auto started = VerbsHost::Start(Device(), endpoint.base(), endpoint.bytes(), 1, &reason);
      Demand(started.ok(), reason);
      host = std::move(started.value());
    }
    return *host;
  }
  // The name of the last fabric made.
  [[nodiscard]] WorkerId worker() const { return WorkerId{workers_}; }

 private:
  static Task<Result<ControlReply>> Handle(MemoryEndpoint* endpoint, ControlRequest request) {
    co_return endpoint->Handle(request);
  }
  static void Demand(bool holds, const std::string& reason) {
    if (!holds) fprintf(stderr, "%s\n", reason.c_str());
    CHECK(holds);
  }
  static VerbsDevice& Device() {
    static const std::unique_ptr<VerbsDevice> device = [] {
      std::string reason;
      auto opened = VerbsDevice::Open({}, &reason);
      Demand(opened.ok(), reason);
      return std::move(opened.value());
    }();
    return *device;
  }

  SystemClock clock_;
  LoopExecutor executor_;
  uint32_t workers_ = 0;
  std::map<MemoryEndpoint*, std::unique_ptr<VerbsHost>> hosts_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_VERBS_VERBS_WORLD_H_
