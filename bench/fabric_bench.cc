// Measures the cost of a round trip on shm and on tcp: single operations, and the batches that a
// GET and a SET post. On tcp beside a bare exchange of the same bytes over loopback, in the same
// run.
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <thread>

#include "client_core/base/metrics.h"
#include "client_core/coro/loop_executor.h"
#include "client_core/coro/socket.h"
#include "client_core/coro/sync.h"
#include "client_core/fabric/tcp.h"
#include "client_core/layout/record.h"
#include "client_core/layout/tcp_wire.h"
#include "memnode/tcp_server.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

// Slots and objects over a few megabytes of three nodes, so that most accesses miss the L2 cache
// but not the TLB.
constexpr uint64_t kObjects = 1 << 14;
constexpr uint32_t kRecordBytes = kRecordHeaderBytes + 16 + 64;
constexpr uint32_t kClassBytes = 128;

class Shm {
 public:
  Fabric& fabric() { return *fabric_; }
  Executor& executor() { return executor_; }
  // The n-th of a scattered sequence of places, on `node`.
  static RemoteAddr Place(uint64_t n, uint16_t node) {
    return {NodeId{node}, kBlockBytes + n * 7919 % kObjects * kClassBytes};
  }

 private:
  SystemClock clock_;
  LoopExecutor executor_{clock_, 1};
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = kRegionBytes}};
  std::unique_ptr<Fabric> fabric_ = std::make_unique<ShmFabric>(clock_, cluster_.endpoints());
};

Task<void> Reads(Shm* shm, benchmark::State* state) {
  const auto bytes = static_cast<uint32_t>(state->range(0));
  uint64_t n = 0;
  for (auto unused : *state) {
    RoundTripPtr rt = shm->fabric().NewRoundTrip();
    const std::byte* read = rt->Read(Shm::Place(++n, 0), bytes);
    CHECK((co_await shm->fabric().Post(rt)).ok());
    benchmark::DoNotOptimize(*read);
  }
}

void BM_Read(benchmark::State& state) {
  Shm shm;
  BlockOn(shm.executor(), Reads(&shm, &state));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Read)->Arg(8)->Arg(128)->Arg(1024);

Task<void> Cases(Shm* shm, benchmark::State* state) {
  uint64_t n = 0;
  for (auto unused : *state) {
    RoundTripPtr rt = shm->fabric().NewRoundTrip();
    rt->Cas(Shm::Place(++n, 0), 0, 0);
    CHECK((co_await shm->fabric().Post(rt)).ok());
    benchmark::DoNotOptimize(rt->op(0).result);
  }
}

void BM_Cas(benchmark::State& state) {
  Shm shm;
  BlockOn(shm.executor(), Cases(&shm, &state));
}
BENCHMARK(BM_Cas);

// GET with a cached location: the slot and the record behind it, on one node.
Task<void> GetBatches(Shm* shm, benchmark::State* state) {
  uint64_t n = 0;
  for (auto unused : *state) {
    RoundTripPtr rt = shm->fabric().NewRoundTrip();
    rt->ReadWord(Shm::Place(++n, 0));
    const std::byte* record = rt->Read(Shm::Place(n + 13, 0), kClassBytes);
    CHECK((co_await shm->fabric().Post(rt)).ok());
    benchmark::DoNotOptimize(*record);
  }
}

void BM_GetBatch(benchmark::State& state) {
  Shm shm;
  BlockOn(shm.executor(), GetBatches(&shm, &state));
}
BENCHMARK(BM_GetBatch);

// SET of a key whose location is cached, in FUSEE's four round trips.
Task<void> SetBatches(Shm* shm, benchmark::State* state) {
  uint64_t n = 0;
  for (auto unused : *state) {
    const uint64_t slot = ++n;
    const uint64_t object = n + 17;
    RoundTripPtr rt = shm->fabric().NewRoundTrip();
    const std::byte* record = rt->Reserve(kRecordBytes);
    for (uint16_t node = 0; node < 3; ++node) {
      rt->Write(Shm::Place(object, node), record, kRecordBytes);
    }
    rt->ReadWord(Shm::Place(slot, 0));
    rt->Read(Shm::Place(slot + 13, 0), kRecordHeaderBytes + 16);
    CHECK((co_await shm->fabric().Post(rt)).ok());
    rt = shm->fabric().NewRoundTrip();
    for (const uint16_t backup : {1, 2}) rt->Cas(Shm::Place(slot, backup), 0, 0);
    CHECK((co_await shm->fabric().Post(rt)).ok());
    rt = shm->fabric().NewRoundTrip();
    for (uint16_t node = 0; node < 3; ++node) rt->WriteWord(Shm::Place(object, node), n);
    CHECK((co_await shm->fabric().Post(rt)).ok());
    rt = shm->fabric().NewRoundTrip();
    rt->Cas(Shm::Place(slot, 0), 0, 0);
    CHECK((co_await shm->fabric().Post(rt)).ok());
  }
}

void BM_SetBatches(benchmark::State& state) {
  Shm shm;
  BlockOn(shm.executor(), SetBatches(&shm, &state));
}
BENCHMARK(BM_SetBatches);

// ---- tcp

constexpr uint32_t kRequestBytes = kTcpHeaderBytes + 2 * kTcpDescriptorBytes;
constexpr uint32_t kReplyBytes = kTcpHeaderBytes + 8 + kClassBytes;

void SendAll(int fd, size_t bytes) {
  std::array<std::byte, 4096> buffer{};
  CHECK(send(fd, buffer.data(), bytes, 0) == static_cast<ssize_t>(bytes));
}

// False at the end of the stream.
bool ReceiveAll(int fd, size_t bytes) {
  std::array<std::byte, 4096> buffer;
  return recv(fd, buffer.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

void ReportLatency(benchmark::State& state, const Histogram& latency_ns) {
  state.counters["p50_us"] = static_cast<double>(latency_ns.Percentile(50)) / 1000;
  state.counters["p99_us"] = static_cast<double>(latency_ns.Percentile(99)) / 1000;
}

// The floor: what a GET sends and receives, between two threads that block on their sockets.
void BM_BareLoopback(benchmark::State& state) {
  std::string reason;
  Result<UniqueFd> listener = ListenTcp("127.0.0.1", 0, 1, &reason);
  CHECK(listener.ok());
  sockaddr_in address{};
  socklen_t length = sizeof(address);
  CHECK(getsockname(listener->get(), reinterpret_cast<sockaddr*>(&address), &length) == 0);
  UniqueFd client(socket(AF_INET, SOCK_STREAM, 0));
  CHECK(connect(client.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0);
  const UniqueFd server(accept(listener->get(), nullptr, nullptr));
  TuneTcp(client.get(), 0);
  TuneTcp(server.get(), 0);
  std::thread echo([&] {
    while (ReceiveAll(server.get(), kRequestBytes)) SendAll(server.get(), kReplyBytes);
  });
  const SystemClock clock;
  Histogram latency_ns;
  for (auto unused : state) {
    const uint64_t start_ns = clock.NowNs();
    SendAll(client.get(), kRequestBytes);
    CHECK(ReceiveAll(client.get(), kReplyBytes));
    latency_ns.Record(clock.NowNs() - start_ns);
  }
  client.Reset();
  echo.join();
  ReportLatency(state, latency_ns);
}
BENCHMARK(BM_BareLoopback)->UseRealTime();

class Tcp {
 public:
  explicit Tcp(uint64_t busy_poll_us = 0) {
    std::string reason;
    for (MemoryEndpoint* endpoint : cluster_.endpoints()) {
      const NodeId node{static_cast<uint16_t>(servers_.size())};
      auto server = TcpServer::Start(*endpoint, Secret(),
                                     {.node = node, .busy_poll_us = busy_poll_us}, &reason);
      CHECK(server.ok());
      servers_.push_back(std::move(*server));
    }
    fabric_ = std::make_unique<TcpFabric>(executor_, TcpIdentity{.worker = WorkerId{1}}, Secret(),
                                          TcpFabricOptions{.busy_poll_us = busy_poll_us});
    for (size_t i = 0; i < servers_.size(); ++i) {
      const NodeId node{static_cast<uint16_t>(i)};
      CHECK(fabric_->SetNode(node, "127.0.0.1", servers_[i]->port(), &reason).ok());
      const uint64_t deadline_ns = executor_.NowNs() + 1'000'000'000;
      CHECK(BlockOn(executor_, fabric_->Connected(node, deadline_ns)).ok());
    }
  }

  Fabric& fabric() { return *fabric_; }
  LoopExecutor& executor() { return executor_; }
  // CPU time of all memory nodes.
  [[nodiscard]] uint64_t NodeCpuNs() const {
    uint64_t sum = 0;
    for (const auto& server : servers_) sum += server->CpuNs();
    return sum;
  }
  [[nodiscard]] uint64_t Operations() const {
    uint64_t sum = 0;
    for (const auto& server : servers_) sum += server->stats().operations;
    return sum;
  }

  Histogram latency_ns;

 private:
  SystemClock clock_;
  LoopExecutor executor_{clock_, 1};
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = kRegionBytes}};
  std::vector<std::unique_ptr<TcpServer>> servers_;
  std::unique_ptr<TcpFabric> fabric_;
};

enum class TcpBatch : int { kRead64, kCas, kGet };

void AddBatch(RoundTrip& rt, TcpBatch kind, uint64_t n) {
  switch (kind) {
    case TcpBatch::kRead64:
      rt.Read(Shm::Place(n, 0), 64);
      break;
    case TcpBatch::kCas:
      rt.Cas(Shm::Place(n, 0), 0, 0);
      break;
    case TcpBatch::kGet:
      rt.ReadWord(Shm::Place(n, 0));
      rt.Read(Shm::Place(n + 13, 0), kClassBytes);
      break;
  }
}

Task<void> TcpLatency(Tcp* tcp, benchmark::State* state, TcpBatch kind) {
  uint64_t n = 0;
  for (auto unused : *state) {
    const uint64_t start_ns = tcp->executor().NowNs();
    RoundTripPtr rt = tcp->fabric().NewRoundTrip();
    AddBatch(*rt, kind, ++n);
    CHECK((co_await tcp->fabric().Post(rt)).ok());
    tcp->latency_ns.Record(tcp->executor().NowNs() - start_ns);
  }
}

void BM_TcpLatency(benchmark::State& state, TcpBatch kind, uint64_t busy_poll_us) {
  Tcp tcp(busy_poll_us);
  const uint64_t cpu_ns = tcp.NodeCpuNs();
  BlockOn(tcp.executor(), TcpLatency(&tcp, &state, kind));
  ReportLatency(state, tcp.latency_ns);
  state.counters["node_ns_per_op"] =
      static_cast<double>(tcp.NodeCpuNs() - cpu_ns) / static_cast<double>(tcp.Operations());
}
BENCHMARK_CAPTURE(BM_TcpLatency, Read64, TcpBatch::kRead64, 0)->UseRealTime();
BENCHMARK_CAPTURE(BM_TcpLatency, Cas, TcpBatch::kCas, 0)->UseRealTime();
BENCHMARK_CAPTURE(BM_TcpLatency, Get, TcpBatch::kGet, 0)->UseRealTime();
BENCHMARK_CAPTURE(BM_TcpLatency, GetBusyPoll, TcpBatch::kGet, 50)->UseRealTime();

// One of many that keep the channels busy until a shared number of batches is done.
Task<void> TcpStream(Tcp* tcp, TcpBatch kind, uint64_t* left) {
  while (*left > 0) {
    const uint64_t n = --*left;
    RoundTripPtr rt = tcp->fabric().NewRoundTrip();
    AddBatch(*rt, kind, n);
    CHECK((co_await tcp->fabric().Post(rt)).ok());
  }
}

Task<void> TcpStreams(Tcp* tcp, TcpBatch kind, size_t in_flight, uint64_t batches) {
  std::vector<Task<void>> streams;
  for (size_t i = 0; i < in_flight; ++i) streams.push_back(TcpStream(tcp, kind, &batches));
  co_await WhenAll(std::move(streams));
}

// `range(0)` batches under way at a time, as pipelined clients cause them: 50 connections with 16
// commands each are 800.
void BM_TcpThroughput(benchmark::State& state, TcpBatch kind) {
  Tcp tcp;
  constexpr uint64_t kBatches = 20'000;
  const uint64_t cpu_ns = tcp.NodeCpuNs();
  const auto in_flight = static_cast<size_t>(state.range(0));
  for (auto unused : state) BlockOn(tcp.executor(), TcpStreams(&tcp, kind, in_flight, kBatches));
  const auto batches = static_cast<int64_t>(kBatches) * static_cast<int64_t>(state.iterations());
  state.SetItemsProcessed(batches);
  state.counters["node_ns_per_op"] =
      static_cast<double>(tcp.NodeCpuNs() - cpu_ns) / static_cast<double>(tcp.Operations());
}
BENCHMARK_CAPTURE(BM_TcpThroughput, Read64, TcpBatch::kRead64)->Arg(16)->Arg(800)->UseRealTime();
BENCHMARK_CAPTURE(BM_TcpThroughput, Cas, TcpBatch::kCas)->Arg(16)->UseRealTime();
BENCHMARK_CAPTURE(BM_TcpThroughput, Get, TcpBatch::kGet)->Arg(16)->Arg(800)->UseRealTime();

Task<void> TcpBulk(Tcp* tcp, benchmark::State* state, bool is_write) {
  const auto bytes = static_cast<uint32_t>(state->range(0));
  for (auto unused : *state) {
    RoundTripPtr rt = tcp->fabric().NewRoundTrip();
    if (is_write) {
      rt->Write({NodeId{0}, kBlockBytes}, rt->Reserve(bytes), bytes);
    } else {
      rt->Read({NodeId{0}, kBlockBytes}, bytes);
    }
    CHECK((co_await tcp->fabric().Post(rt)).ok());
  }
}

void BM_TcpBulk(benchmark::State& state, bool is_write) {
  Tcp tcp;
  BlockOn(tcp.executor(), TcpBulk(&tcp, &state, is_write));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK_CAPTURE(BM_TcpBulk, Read, false)->Arg(16 << 10)->Arg(1 << 20)->UseRealTime();
BENCHMARK_CAPTURE(BM_TcpBulk, Write, true)->Arg(16 << 10)->Arg(1 << 20)->UseRealTime();

}  // namespace
}  // namespace onetrip
