// Workers on registers, with nothing else around: memory nodes of a few KiB, a map of one region,
// buffers from a counter. For unit tests of the register protocols and for their simulation.
#ifndef ONETRIP_TESTS_SUPPORT_REGISTER_FIXTURE_H_
#define ONETRIP_TESTS_SUPPORT_REGISTER_FIXTURE_H_

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/coro/sim_executor.h"
#include "client_core/fabric/sim.h"
#include "client_core/layout/region_layout.h"
#include "client_core/replication/abd.h"
#include "client_core/replication/safe_guess.h"
#include "tests/explore/explore_master.h"

namespace onetrip {

// A memory node of a few bytes, all 0 at first.
class LittleNode final : public MemoryEndpoint {
 public:
  explicit LittleNode(size_t bytes) : words_(bytes / 8) {}
  [[nodiscard]] std::byte* base() const override {
    return reinterpret_cast<std::byte*>(words_.data());
  }
  [[nodiscard]] uint64_t bytes() const override { return words_.size() * 8; }
  ControlReply Handle(const ControlRequest& /*request*/) override { return {}; }
  void Clear() {
    std::fill(words_.begin(), words_.end(), 0);
    SetReachable(true);
  }

 private:
  mutable std::vector<uint64_t> words_;
};

// Cluster time less the world's: years, so that clocks may lag and registers be old.
inline constexpr int64_t kClusterOffsetNs = 1'700'000'000'000'000'000;

// A clock that does what it is told, also going back; cluster time for one GuessClock.
class WildClock final : public Clock {
 public:
  // Borrows `world`.
  void Follow(const Clock& world) { world_ = &world; }
  [[nodiscard]] uint64_t NowNs() const override {
    const int64_t world_ns = world_ == nullptr ? 0 : static_cast<int64_t>(world_->NowNs());
    return static_cast<uint64_t>(std::max<int64_t>(world_ns + offset_ns_, 0));
  }
  [[nodiscard]] uint64_t UnixUs() const override { return NowNs() / 1000; }
  void Jump(int64_t delta_ns) { offset_ns_ += delta_ns; }

 private:
  const Clock* world_ = nullptr;
  int64_t offset_ns_ = kClusterOffsetNs;
};

// One worker: its own clock, fabric and protocols.
struct RegisterWorker {
  RegisterWorker(Executor& executor_in, std::unique_ptr<Fabric> fabric_in, MasterClient& master,
                 uint32_t id, const RegisterOptions& options = {})
      : executor(executor_in),
        fabric(std::move(fabric_in)),
        hold(executor_in),
        context(executor_in, *fabric, master, hold,
                Membership{WorkerId{id}, WorkerIndex{static_cast<uint16_t>(id)}},
                DataPathOptions{}),
        guess_clock(wild_clock, master.clock_offset_us()),
        safe_guess(context, guess_clock, options),
        abd(safe_guess) {}
  // On the network of a simulated world.
  RegisterWorker(Executor& executor_in, SimNetwork& network, MasterClient& master, uint32_t id,
                 const RegisterOptions& options = {})
      : RegisterWorker(executor_in, std::make_unique<SimFabric>(executor_in, network), master, id,
                       options) {
    sim_fabric = static_cast<SimFabric*>(fabric.get());
    wild_clock.Follow(network.executor().clock());
  }

  // Blocking conveniences, for one worker at a time. The value, "(empty)" or "(end N)".
  std::string Get(RegisterHandle& handle, uint32_t* round_trips = nullptr) {
    RegisterOperation operation;
    Result<ReadOutcome> outcome = BlockOn(executor, safe_guess.Read(operation, handle));
    if (round_trips != nullptr) *round_trips = operation.round_trips;
    if (!outcome.ok()) return std::string("(") + outcome.status().message() + ")";
    if (outcome->end == RegisterEnd::kEmpty) return "(empty)";
    if (outcome->end == RegisterEnd::kInterrupted) {
      return "(sealed " + std::to_string(outcome->seal) + ")";
    }
    const std::span<const std::byte> bytes = outcome->tuple.value.bytes;
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  WriteOutcome Set(RegisterHandle& handle, const WriteBuffers& buffers, std::string_view value,
                   uint32_t* round_trips = nullptr) {
    RegisterOperation operation;
    WriteOutcome outcome;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(value.data(), value.size()));
    const Status status =
        BlockOn(executor, safe_guess.Write(operation, handle, buffers, bytes, &outcome));
    if (round_trips != nullptr) *round_trips = operation.round_trips;
    CHECK(status.ok());
    return outcome;
  }

  Executor& executor;
  std::unique_ptr<Fabric> fabric;
  SimFabric* sim_fabric = nullptr;
  Quiesce hold;
  WorkerContext context;
  WildClock wild_clock;
  GuessClock guess_clock;
  SafeGuess safe_guess;
  Abd abd;  // with RegisterOptions::in_place false
};

// The epoch table where it always is, registers behind it, buffers from above them. Workers with
// ids up to kLiveWorkers may take part in epochs.
class LittleCluster {
 public:
  static constexpr uint64_t kRegistersOffset = kEpochTableOffset + kEpochTableBytes;
  static constexpr uint64_t kBuffersOffset = kRegistersOffset + 4096;
  static constexpr uint16_t kLiveWorkers = 8;

  LittleCluster(int replicas, size_t node_bytes) : master_(MakeView(replicas)) {
    for (int i = 0; i < replicas; ++i) nodes_.push_back(std::make_unique<LittleNode>(node_bytes));
  }

  std::vector<MemoryEndpoint*> endpoints() const {
    std::vector<MemoryEndpoint*> all;
    for (const auto& node : nodes_) all.push_back(node.get());
    return all;
  }
  ExploreMaster& master() { return master_; }
  LittleNode& node(int replica) { return *nodes_[replica]; }
  [[nodiscard]] int replicas() const { return static_cast<int>(nodes_.size()); }

  // Back to zeroes: a new life.
  void Clear() {
    for (const auto& node : nodes_) node->Clear();
    registers_ = 0;
    next_buffer_ = kBuffersOffset;
  }

  // Writes a register's header on every replica, as its creator would before naming it anywhere.
  RegisterRef CreateRegister(const RegisterShape& shape, uint64_t incarnation, Ticks birth) {
    RegisterRef ref;
    ref.addr = GlobalAddr(0, kRegistersOffset + registers_++ * 1536);
    ref.incarnation = incarnation;
    ref.birth = birth;
    ref.shape = shape;
    CHECK(ref.addr.offset() + shape.register_bytes() <= kBuffersOffset);
    for (int replica = 0; replica < replicas(); ++replica) {
      const RegisterHeader header{.log_word = 0,
                                  .keyspace = 0,
                                  .key_bytes = 0,
                                  .lanes = static_cast<uint8_t>(shape.lanes),
                                  .buffer_class = 0,
                                  .incarnation = incarnation,
                                  .birth_ticks = birth.value,
                                  .final_word = 0,
                                  .seal = 0};
      std::memcpy(nodes_[replica]->base() + ref.addr.offset(), &header, sizeof(header));
    }
    return ref;
  }

  OutBuffer NewBuffer(const RegisterShape& shape) {
    const OutBuffer buffer{GlobalAddr(0, next_buffer_), {}};
    next_buffer_ +=
        (shape.buffer_bytes + kBufferAlignBytes - 1) / kBufferAlignBytes * kBufferAlignBytes;
    CHECK(next_buffer_ <= nodes_[0]->bytes());
    return buffer;
  }
  WriteBuffers NewBuffers(const RegisterShape& shape) {
    return {NewBuffer(shape), NewBuffer(shape)};
  }

  // A replica's word, as it is now.
  uint64_t& Word(GlobalAddr addr, int replica) {
    return *reinterpret_cast<uint64_t*>(nodes_[replica]->base() + addr.offset());
  }
  MetaWord Lane(const RegisterRef& ref, int replica, uint32_t lane) {
    return MetaWord(Word(ref.addr + ref.shape.lane_offset(lane), replica));
  }
  uint64_t& Seal(const RegisterRef& ref, int replica) {
    return Word(ref.addr + kSealOffset, replica);
  }

 private:
  static std::shared_ptr<const View> MakeView(int replicas) {
    auto view = std::make_shared<View>(*MakeExploreView(replicas));
    for (uint16_t index = 1; index <= kLiveWorkers; ++index) {
      view->SetLive(WorkerIndex{index}, true);
    }
    view->worker_index_end = kLiveWorkers + 1;
    return view;
  }

  std::vector<std::unique_ptr<LittleNode>> nodes_;
  ExploreMaster master_;
  uint64_t registers_ = 0;
  uint64_t next_buffer_ = kBuffersOffset;
};

inline std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}
inline std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_REGISTER_FIXTURE_H_
