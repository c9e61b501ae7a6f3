// The fabric backends as the conformance tests see them: a backend is one line of a table, and
// every case runs over every line.
#ifndef ONETRIP_TESTS_SUPPORT_FABRIC_BACKENDS_H_
#define ONETRIP_TESTS_SUPPORT_FABRIC_BACKENDS_H_

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "client_core/coro/loop_executor.h"
#include "client_core/coro/sim_executor.h"
#include "client_core/coro/sync.h"
#include "client_core/fabric/shm.h"
#include "client_core/fabric/sim.h"
#include "client_core/fabric/tcp.h"
#include "memnode/tcp_server.h"

namespace onetrip {

// A memory node of nothing but bytes, zero at first. Grants what it is asked for.
class BareEndpoint final : public MemoryEndpoint {
 public:
  explicit BareEndpoint(uint64_t bytes) : words_((bytes + 7) / 8), bytes_(bytes) {}

  [[nodiscard]] std::byte* base() const override {
    return reinterpret_cast<std::byte*>(const_cast<uint64_t*>(words_.data()));
  }
  [[nodiscard]] uint64_t bytes() const override { return bytes_; }
  ControlReply Handle(const ControlRequest& request) override {
    return {ControlReply::Outcome::kDone, request.block};
  }

  // The word that the memory holds; only while no operation is on its way.
  [[nodiscard]] uint64_t word(uint64_t offset) const { return words_[offset / 8]; }
  void set_word(uint64_t offset, uint64_t word) { words_[offset / 8] = word; }

 private:
  std::vector<uint64_t> words_;
  uint64_t bytes_;
};

// Fabrics of one backend, all on one executor and one thread.
class FabricWorld {
 public:
  virtual ~FabricWorld() = default;
  virtual Executor& executor() = 0;
  virtual std::unique_ptr<Fabric> NewFabric(const std::vector<MemoryEndpoint*>& endpoints) = 0;
};

class ShmWorld final : public FabricWorld {
 public:
  explicit ShmWorld(uint64_t seed) : executor_(clock_, seed) {}
  Executor& executor() override { return executor_; }
  std::unique_ptr<Fabric> NewFabric(const std::vector<MemoryEndpoint*>& endpoints) override {
    return std::make_unique<ShmFabric>(clock_, endpoints);
  }

 private:
  SystemClock clock_;
  LoopExecutor executor_;
};

class SimWorld final : public FabricWorld {
 public:
  explicit SimWorld(uint64_t seed) : executor_(seed) {}
  Executor& executor() override { return executor_; }
  std::unique_ptr<Fabric> NewFabric(const std::vector<MemoryEndpoint*>& endpoints) override {
    return std::make_unique<SimFabric>(executor_, endpoints, SimFabricOptions());
  }

 private:
  SimExecutor executor_;
};

// Operations complete inline, step by step, as on the memory nodes' host.
class InlineSimWorld final : public FabricWorld {
 public:
  explicit InlineSimWorld(uint64_t seed) : sim_(seed), worker_(sim_, seed) {}
  ~InlineSimWorld() override { worker_.Kill(); }
  Executor& executor() override { return worker_; }
  std::unique_ptr<Fabric> NewFabric(const std::vector<MemoryEndpoint*>& endpoints) override {
    if (network_ == nullptr) {
      network_ = std::make_unique<SimNetwork>(sim_, endpoints, SimFabricOptions());
    }
    return std::make_unique<SimFabric>(worker_, sim_, *network_);
  }

 private:
  SimExecutor sim_;
  SimProcess worker_;
  std::unique_ptr<SimNetwork> network_;
};

// A server for every endpoint, on a thread of its own, and fabrics that reach them over loopback.
class TcpWorld : public FabricWorld {
 public:
  explicit TcpWorld(uint64_t seed) : executor_(clock_, seed) {}
  Executor& executor() override { return executor_; }
  std::unique_ptr<Fabric> NewFabric(const std::vector<MemoryEndpoint*>& endpoints) override {
    auto fabric = std::make_unique<TcpFabric>(
        executor_, TcpIdentity{.cluster = kCluster, .worker = WorkerId{++workers_}}, Secret(),
        TcpFabricOptions());
    for (size_t i = 0; i < endpoints.size(); ++i) {
      const NodeId node{static_cast<uint16_t>(i)};
      auto& server = servers_[endpoints[i]];
      std::string reason;
      if (server == nullptr) {
        auto started =
            TcpServer::Start(*endpoints[i], Secret(), {.cluster = kCluster, .node = node}, &reason);
        CHECK(started.ok());
        server = std::move(*started);
      }
      CHECK(fabric->SetNode(node, "127.0.0.1", server->port(), &reason).ok());
    }
    return fabric;
  }

 protected:
  static constexpr uint64_t kCluster = 7;

  SystemClock clock_;
  LoopExecutor executor_;

 private:
  uint32_t workers_ = 0;
  std::map<MemoryEndpoint*, std::unique_ptr<TcpServer>> servers_;
};

// Neighbours on one node: every other fabric reaches the same memory by shm.
class MixedWorld final : public TcpWorld {
 public:
  explicit MixedWorld(uint64_t seed) : TcpWorld(seed), is_shm_turn_(seed % 2 == 0) {}
  std::unique_ptr<Fabric> NewFabric(const std::vector<MemoryEndpoint*>& endpoints) override {
    is_shm_turn_ = !is_shm_turn_;
    if (is_shm_turn_) return std::make_unique<ShmFabric>(clock_, endpoints);
    return TcpWorld::NewFabric(endpoints);
  }

 private:
  bool is_shm_turn_;
};

struct FabricBackend {
  const char* name;
  std::unique_ptr<FabricWorld> (*make)(uint64_t seed);
  bool threads;   // worlds of several threads may share endpoints
  bool has_time;  // operations take time on the executor's clock, so that others come between
  int slowness;   // about how many operations on shm cost as much as one
};

template <typename World>
std::unique_ptr<FabricWorld> MakeWorld(uint64_t seed) {
  return std::make_unique<World>(seed);
}

inline constexpr FabricBackend kFabricBackends[] = {
    {"shm", MakeWorld<ShmWorld>, true, false, 1},
    {"sim", MakeWorld<SimWorld>, false, true, 1},
    {"sim_inline", MakeWorld<InlineSimWorld>, false, false, 1},
    {"tcp", MakeWorld<TcpWorld>, true, false, 50},
    {"mixed", MakeWorld<MixedWorld>, true, false, 50},
};

inline void PrintTo(const FabricBackend& backend, std::ostream* out) { *out << backend.name; }

inline Task<Status> PostOne(Fabric* fabric, RoundTripPtr round_trip) {
  co_return co_await fabric->Post(round_trip);
}

// In a turn of the executor, which the begin of a task need not be.
inline Task<Status> PostInATurn(Executor* executor, Fabric* fabric, RoundTripPtr round_trip) {
  co_await executor->Yield();
  co_return co_await fabric->Post(round_trip);
}

inline Task<void> AwaitAll(std::vector<Task<void>> tasks) { co_await WhenAll(std::move(tasks)); }

inline Task<void> AwaitAllInATurn(Executor* executor, std::vector<Task<void>> tasks) {
  co_await executor->Yield();
  co_await WhenAll(std::move(tasks));
}

// Three endpoints of a mebibyte and some bytes, and a world; one fabric that the case uses itself.
class FabricTest : public testing::TestWithParam<FabricBackend> {
 protected:
  static constexpr uint64_t kMemoryBytes = (1 << 20) + 4096;
  static constexpr NodeId kNode0{0};
  static constexpr NodeId kNode1{1};

  FabricTest() { StartWorld(1); }

  // A fresh world over the same endpoints.
  void StartWorld(uint64_t seed) {
    fabric_.reset();
    world_ = GetParam().make(seed);
    fabric_ = NewFabric();
  }
  std::vector<MemoryEndpoint*> endpoints() {
    return {nodes_[0].get(), nodes_[1].get(), nodes_[2].get()};
  }
  std::unique_ptr<Fabric> NewFabric() { return world_->NewFabric(endpoints()); }
  Executor& executor() { return world_->executor(); }
  BareEndpoint& node(size_t index) { return *nodes_[index]; }

  Status Post(const RoundTripPtr& round_trip) {
    return BlockOn(executor(), PostInATurn(&executor(), fabric_.get(), round_trip));
  }
  void RunAll(std::vector<Task<void>> tasks) {
    BlockOn(executor(), AwaitAllInATurn(&executor(), std::move(tasks)));
  }

 private:
  std::unique_ptr<BareEndpoint> nodes_[3] = {std::make_unique<BareEndpoint>(kMemoryBytes),
                                             std::make_unique<BareEndpoint>(kMemoryBytes),
                                             std::make_unique<BareEndpoint>(kMemoryBytes)};
  std::unique_ptr<FabricWorld> world_;

 protected:
  std::unique_ptr<Fabric> fabric_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_FABRIC_BACKENDS_H_
