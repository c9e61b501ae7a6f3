#include "bench/paper_world.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/coro/sync.h"

namespace onetrip {
namespace {

constexpr uint32_t kValueBytes = 64;
constexpr size_t kNameBytes = 24;
// Between operations that take no time, so that clocks do not stand still.
constexpr uint64_t kSettleStepNs = 600;
constexpr uint64_t kRestNs = 1'000'000;
constexpr uint64_t kStepsMax = 4'000'000'000;

std::string NameOfKey(uint32_t key) {
  char name[kNameBytes + 1];
  snprintf(name, sizeof(name), "user%020u", key);
  return name;
}

// RAW of SWARM 7: one copy, a location known from the start, no control of concurrency.
class RawClient final : public PaperClient {
 public:
  RawClient(uint64_t seed, Executor& executor, SimNetwork& network)
      : PaperClient(seed), fabric_(executor, network), nodes_(network.node_count()) {}

  Task<void> Do(OpKind kind, uint32_t key) override {
    const RemoteAddr at{NodeId{static_cast<uint16_t>(key % nodes_)}, key / nodes_ * kValueBytes};
    RoundTripPtr batch = fabric_.NewRoundTrip();
    if (kind == OpKind::kGet) {
      batch->Read(at, kValueBytes);
    } else {
      std::byte* value = batch->Reserve(kValueBytes);
      std::memset(value, 'v', kValueBytes);
      batch->Write(at, value, kValueBytes);
    }
    const Status status = co_await fabric_.Post(batch);
    CHECK(status.ok());
    ++round_trips_;
  }
  [[nodiscard]] uint64_t round_trips() const override { return round_trips_; }
  SimFabric& fabric() override { return fabric_; }

 private:
  SimFabric fabric_;
  const size_t nodes_;
  uint64_t round_trips_ = 0;
};

OpKind DrawKind(Rng& rng, double get_share) {
  return rng.NextDouble() < get_share ? OpKind::kGet : OpKind::kUpdate;
}

EngineKind EngineOf(System system) {
  switch (system) {
    case System::kRaw:
    case System::kRawEngine:
      return EngineKind::kRaw;
    case System::kSwarm:
      return EngineKind::kSwarm;
    case System::kAbd:
      return EngineKind::kAbd;
    case System::kSnapshot:
      return EngineKind::kSnapshot;
  }
  CheckFailed(__FILE__, __LINE__, "an engine of every system");
}

class KvClient final : public PaperClient {
 public:
  KvClient(uint64_t seed, TestCluster& cluster, Executor& executor, SimNetwork& network,
           EngineKind engine, const DataPathOptions& options)
      : PaperClient(seed), value_(kValueBytes, 'v') {
    auto fabric = std::make_unique<SimFabric>(executor, network);
    fabric_ = fabric.get();
    worker_ = std::make_unique<TestWorker>(cluster, executor, std::move(fabric), engine, options);
    worker_->Start();
  }

  Task<void> Do(OpKind kind, uint32_t key) override {
    const std::string name = NameOfKey(key);
    Kv& kv = worker_->kv();
    if (kind == OpKind::kGet) {
      ReadResult result;
      const Status status = co_await kv.Get({0, name}, &result);
      CHECK(status.ok() && result.found() && result.record().value.size() == kValueBytes);
    } else if (kind == OpKind::kDelete) {
      bool existed = false;
      const Status status = co_await kv.Delete({0, name}, &existed);
      CHECK(status.ok() && existed);
    } else {
      NewRecord record;
      record.head = value_;
      const Status status = co_await kv.Set({0, name}, record);
      CHECK(status.ok());
    }
  }
  [[nodiscard]] uint64_t round_trips() const override {
    const StoreMetrics& metrics = worker_->kv().metrics();
    return metrics.get_round_trips.Sum() + metrics.set_round_trips.Sum() +
           metrics.del_round_trips.Sum();
  }
  SimFabric& fabric() override { return *fabric_; }
  void Stop() override { worker_->Stop(); }

 private:
  const std::string value_;
  SimFabric* fabric_ = nullptr;
  std::unique_ptr<TestWorker> worker_;
};

ClusterShape ShapeOf(System system) {
  const int replicas = EngineOf(system) == EngineKind::kRaw ? 1 : 3;
  return {.nodes = 3, .replicas = replicas, .node_bytes = 1ULL << 30};
}

}  // namespace

// RAW's update, one WRITE, takes 1.6 us at the median: 0.2 us to post ("200+ ns" for a series of
// operations to a node) and 0.7 us each way; its get, one READ, takes 1.9 us: 0.3 us more until the
// node's NIC has the bytes. 100 Gb/s are 80 ps a byte on the wire; memory is moved in steps of
// about 36 bytes, at the same rate. How far latencies spread the paper does not say of RAW: 10 %.
SimFabricOptions PaperFabric() {
  SimFabricOptions options;
  options.latency_min_ns = 630;
  options.latency_max_ns = 764;
  options.step_ns = 3;
  options.post_ns = 200;
  options.byte_ps = 80;
  options.fetch_ns = 300;
  options.traits.has_max = false;  // network cards have CAS
  return options;
}

SimFabricOptions EvenFabric(uint64_t latency_ns) {
  SimFabricOptions options;
  options.latency_min_ns = latency_ns;
  options.latency_max_ns = latency_ns;
  options.step_ns = 0;
  return options;
}

std::string_view NameOf(System system) {
  switch (system) {
    case System::kRaw:
      return "RAW";
    case System::kRawEngine:
      return "raw";
    case System::kSwarm:
      return "swarm";
    case System::kAbd:
      return "abd";
    case System::kSnapshot:
      return "snapshot";
  }
  return "";
}

struct PaperWorld::Phase {
  uint64_t first;  // index into each client's keys
  uint64_t ops;
  double get_share;
};

PaperWorld::PaperWorld(const WorldOptions& options)
    : options_(options),
      executor_(options.seed),
      cluster_(executor_.clock(), ShapeOf(options.system)),
      network_(executor_, cluster_.endpoints(), options.fabric) {
  network_.set_instant(true);
  DataPathOptions data_path;
  data_path.register_lanes = options.lanes;
  data_path.location_cache_bytes = 16ULL << 20;
  for (uint32_t i = 0; i < options.clients; ++i) {
    const uint64_t seed = options.seed * 1000 + i;
    if (options.system == System::kRaw) {
      clients_.push_back(std::make_unique<RawClient>(seed, executor_, network_));
    } else {
      clients_.push_back(std::make_unique<KvClient>(seed, cluster_, executor_, network_,
                                                    EngineOf(options.system), data_path));
    }
  }
  double sum = 0;
  for (uint32_t i = 0; i < options.keys; ++i) {
    cumulative_.push_back(sum += 1 / std::pow(i + 1, options.theta));
  }
  for (uint32_t key = 0; key < options.keys; ++key) {
    BlockOn(executor_, clients_[key % clients_.size()]->Do(OpKind::kInsert, key));
    executor_.RunUntil(executor_.NowNs() + kSettleStepNs);
  }
  DrawKeys();
  Prime();
}

PaperWorld::~PaperWorld() {
  executor_.RunUntil(executor_.NowNs() + kRestNs);
  network_.set_instant(true);
  for (auto& client : clients_) client->Stop();
}

uint32_t PaperWorld::DrawKey(Rng& rng) const {
  const auto at = std::lower_bound(cumulative_.begin(), cumulative_.end(),
                                   rng.NextDouble() * cumulative_.back());
  return static_cast<uint32_t>(std::min<size_t>(at - cumulative_.begin(), cumulative_.size() - 1));
}

void PaperWorld::DrawKeys() {
  const uint64_t each = (options_.warm_ops + options_.measured_ops) / clients_.size();
  for (auto& client : clients_) {
    for (uint64_t i = 0; i < each; ++i) client->keys().push_back(DrawKey(client->rng()));
  }
}

void PaperWorld::Prime() {
  for (auto& client : clients_) {
    std::vector<uint32_t> known = client->keys();
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    for (const uint32_t key : known) BlockOn(executor_, client->Do(OpKind::kGet, key));
    executor_.RunUntil(executor_.NowNs() + kRestNs);
  }
}

void PaperWorld::Settle() {
  std::vector<uint32_t> used;
  for (auto& client : clients_) {
    used.insert(used.end(), client->keys().begin(), client->keys().end());
  }
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  Rng rng(options_.seed);
  for (uint64_t i = 0; i < options_.settle_ops_per_key * used.size(); ++i) {
    PaperClient& client = *clients_[rng.Below(clients_.size())];
    BlockOn(executor_, client.Do(DrawKind(rng, options_.get_share), used[rng.Below(used.size())]));
    executor_.RunUntil(executor_.NowNs() + kSettleStepNs);
  }
  executor_.RunUntil(executor_.NowNs() + kRestNs);
}

Task<void> PaperWorld::RunOp(PaperClient& client, OpKind kind, uint32_t key,
                             std::vector<OpCost>* costs) {
  const uint64_t start_ns = executor_.NowNs();
  const uint64_t before = client.round_trips();
  co_await client.Do(kind, key);
  const auto round_trips = static_cast<uint32_t>(client.round_trips() - before);
  costs->push_back({kind, round_trips, executor_.NowNs() - start_ns});
  const uint64_t free_ns = client.fabric().core_free_ns();
  if (free_ns > executor_.NowNs()) co_await executor_.SleepUntil(free_ns);
}

Task<void> PaperWorld::RunClient(PaperClient& client, const Phase& phase,
                                 std::vector<OpCost>* costs) {
  // They do not march in step.
  co_await executor_.SleepFor(client.rng().Below(2000));
  for (uint64_t i = 0; i < phase.ops; ++i) {
    co_await RunOp(client, DrawKind(client.rng(), phase.get_share), client.keys()[phase.first + i],
                   costs);
  }
  --running_;
}

void PaperWorld::RunPhase(const Phase& phase, std::vector<OpCost>* costs) {
  Gate gate(executor_);
  running_ = static_cast<uint32_t>(clients_.size());
  for (auto& client : clients_) executor_.Spawn(gate, RunClient(*client, phase, costs));
  for (uint64_t steps = 0; running_ > 0; ++steps) {
    CHECK(executor_.RunOnce());
    CHECK(steps < kStepsMax);
  }
}

std::vector<OpCost> PaperWorld::Run() {
  Settle();
  network_.set_instant(false);
  const uint64_t warm = options_.warm_ops / clients_.size();
  const uint64_t measured = options_.measured_ops / clients_.size();
  std::vector<OpCost> costs;
  RunPhase({0, warm, options_.warm_get_share < 0 ? options_.get_share : options_.warm_get_share},
           &costs);
  costs.clear();
  RunPhase({warm, measured, options_.get_share}, &costs);
  return costs;
}

std::vector<OpCost> PaperWorld::InsertAndDelete(uint32_t count) {
  network_.set_instant(false);
  std::vector<OpCost> costs;
  for (const OpKind kind : {OpKind::kInsert, OpKind::kDelete}) {
    Gate gate(executor_);
    running_ = static_cast<uint32_t>(clients_.size());
    for (size_t i = 0; i < clients_.size(); ++i) {
      const auto first = static_cast<uint32_t>(options_.keys + i * count);
      executor_.Spawn(gate, RunRange(*clients_[i], kind, first, count, &costs));
    }
    while (running_ > 0) CHECK(executor_.RunOnce());
  }
  return costs;
}

Task<void> PaperWorld::RunRange(PaperClient& client, OpKind kind, uint32_t first, uint32_t count,
                                std::vector<OpCost>* costs) {
  co_await executor_.SleepFor(client.rng().Below(2000));
  for (uint32_t key = first; key < first + count; ++key) {
    co_await RunOp(client, kind, key, costs);
  }
  --running_;
}

}  // namespace onetrip
