#include "client_core/fabric/sim.h"

#include <algorithm>
#include <array>
#include <utility>

#include "client_core/coro/call_timer.h"
#include "client_core/fabric/memory_ops.h"

namespace onetrip {
namespace {

class MessageTimer final : public CallTimer {
 public:
  using CallTimer::CallTimer;
  [[nodiscard]] bool may_fire_amid_turn() const override { return true; }
};

FabricTraits TraitsOf(const SimFabricOptions& options, bool completes_inline) {
  CHECK(!completes_inline || !options.atomics_tear);
  FabricTraits traits = options.traits;
  traits.reads_first |= completes_inline;
  return traits;
}

constexpr Status kLost(StatusCode::kUnavailable, "the memory node is lost");

}  // namespace

SimNetwork::~SimNetwork() {
  for (const SimFabric* fabric : fabrics_) CHECK(fabric == nullptr);
}

void SimNetwork::At(uint64_t time_ns, void (*fn)(void*), void* channel) {
  executor_.timers().Add(new MessageTimer(fn, channel), time_ns);
}

uint64_t SimNetwork::DrawLatency(NodeId node) {
  const uint64_t spread = options_.latency_max_ns - options_.latency_min_ns;
  uint64_t latency_ns = options_.latency_min_ns + executor_.rng().Below(spread + 1);
  if (options_.tail_permille > 0 && executor_.rng().Below(1000) < options_.tail_permille) {
    latency_ns *= options_.tail_factor;
  }
  return latency_ns * nodes_.at(node.value).slowness;
}

void SimNetwork::ResumeNode(NodeId node) {
  nodes_.at(node.value).paused = false;
  for (SimFabric* fabric : fabrics_) {
    if (fabric == nullptr) continue;
    SimFabric::Channel& channel = *fabric->channels_.at(node.value);
    if (std::exchange(channel.stalled, false)) {
      At(executor_.NowNs(), SimFabric::ApplyNext, &channel);
    }
  }
}

SimFabric::SimFabric(Executor& worker, SimNetwork& network)
    : SimFabric(worker, nullptr, &network, nullptr) {}

SimFabric::SimFabric(SimProcess& worker, SimExecutor& world, SimNetwork& network)
    : SimFabric(worker, nullptr, &network, &world) {
  process_ = &worker;
  worker.UseOwnStack();
}

SimFabric::SimFabric(Executor& worker, const std::vector<MemoryEndpoint*>& endpoints,
                     SimFabricOptions options)
    : SimFabric(worker, new SimNetwork(worker, endpoints, options), nullptr, nullptr) {}

SimFabric::SimFabric(Executor& worker, SimNetwork* own_network, SimNetwork* shared_network,
                     SimExecutor* inline_world)
    : Fabric(worker.clock(), inline_world != nullptr,
             TraitsOf((own_network != nullptr ? own_network : shared_network)->options(),
                      inline_world != nullptr)),
      worker_(worker),
      inline_world_(inline_world),
      own_network_(own_network),
      network_(own_network != nullptr ? *own_network : *shared_network),
      index_(static_cast<uint32_t>(network_.fabrics_.size())) {
  network_.fabrics_.push_back(this);
  for (size_t node = 0; node < network_.node_count(); ++node) {
    channels_.push_back(std::make_unique<Channel>());
    channels_.back()->fabric = this;
    channels_.back()->node = NodeId{static_cast<uint16_t>(node)};
    // The worker does not know the node yet.
    channels_.back()->evicted = network_.options().open_ns_max != 0;
  }
}

SimFabric::~SimFabric() {
  network_.fabrics_[index_] = nullptr;
  for (auto& channel : channels_) {
    const void*& amid_atomic = network_.nodes_[channel->node.value].amid_atomic;
    if (amid_atomic == channel.get()) amid_atomic = nullptr;
    for (auto* queue : {&channel->requests, &channel->replies}) {
      for (Request& request : *queue) {
        if (request.control) request.control->waiter = {};
        if (request.round_trip) request.round_trip->Arm(0, {});
      }
    }
  }
}

bool SimFabric::Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) {
  const auto ops = round_trip->ops();
  for (FabricOp& op : ops) op.ok = false;
  if (network_.instant_) {
    ApplyInstantly(ops);
    return true;
  }
  if (completes_inline()) {
    CompleteInline(*round_trip);
    return true;
  }
  std::array<RoundTrip::Part, RoundTrip::kMaxOps> parts;
  const uint32_t count = round_trip->CutByNode(&parts);
  uint32_t nodes = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Channel& channel = *channels_.at(parts[i].node.value);
    if (!IsOpen(channel)) continue;
    Enqueue(channel, round_trip, parts[i].ops);
    ++nodes;
  }
  if (ops.empty()) return true;
  if (nodes == 0) {
    // In a later turn, as when a node fails it.
    worker_.Schedule(waiter);
    return false;
  }
  round_trip->Arm(nodes, waiter);
  return false;
}

bool SimFabric::idle() const {
  return std::all_of(channels_.begin(), channels_.end(),
                     [](const auto& channel) { return channel->requests.empty(); });
}

void SimFabric::ApplyInstantly(std::span<FabricOp> ops) {
  for (FabricOp& op : ops) {
    MemoryEndpoint& endpoint = network_.endpoint(op.node);
    CHECK(channels_[op.node.value]->requests.empty() && endpoint.reachable());
    op.ok = InBounds(op, endpoint.bytes());
    if (op.ok) ExecuteOp(op, endpoint.base());
  }
}

// In the order of the batch, over all nodes; the observer is told operation by operation.
void SimFabric::CompleteInline(RoundTrip& round_trip) {
  SimObserver* const observer = network_.observer_;
  const std::span<FabricOp> ops = round_trip.ops();
  for (size_t i = 0; i < ops.size(); ++i) {
    FabricOp& op = ops[i];
    const Channel& channel = *channels_.at(op.node.value);
    if (!IsOpen(channel)) continue;
    if (observer != nullptr) observer->Posted(*this, op.node, round_trip, uint64_t{1} << i);
    op.ok = CompleteInline(channel, op);
    if (observer != nullptr && op.ok) observer->Applied(*this, op.node, op);
    if (observer != nullptr) observer->Answered(*this, op.node, op.ok);
  }
}

bool SimFabric::CompleteInline(const Channel& channel, FabricOp& op) {
  MemoryEndpoint& endpoint = network_.endpoint(channel.node);
  uint32_t applied_bytes = 0;
  do {
    if (!process_->dead()) StandStillBeforeStep(/*is_first=*/applied_bytes == 0);
    if (!endpoint.reachable() || channel.fenced || process_->dead()) return false;
    if (!InBounds(op, endpoint.bytes())) return false;
    FabricOp piece = NextPiece(op, applied_bytes, /*backwards=*/false);
    ExecuteOp(piece, endpoint.base());
    op.result = piece.result;
    applied_bytes += piece.bytes;
  } while (applied_bytes < op.bytes);
  ++network_.applied_ops_;
  if (dies_after_ops_ != 0 && --dies_after_ops_ == 0) std::exchange(die_, nullptr)();
  return !process_->dead();
}

// A worker's thread takes its time, and its core may be taken away at any step.
void SimFabric::StandStillBeforeStep(bool is_first) {
  constexpr uint64_t kOperationNs = 20;
  constexpr uint64_t kTakenAwayNs = 4'000;
  constexpr uint64_t kLongTakenAwayNs = 200'000;
  Rng& rng = network_.executor_.rng();
  const uint64_t drawn = rng.Below(8192);
  uint64_t ns = is_first ? rng.Below(kOperationNs + 1) : rng.Below(network_.options_.step_ns + 1);
  if (drawn < (is_first ? 64 : 4)) ns = rng.Below(kTakenAwayNs);
  if (is_first && drawn == 8191) ns = rng.Below(kLongTakenAwayNs);
  inline_world_->StandStill(*process_, ns);
}

void SimFabric::DieAfter(uint32_t ops, std::function<void()> die) {
  CHECK(completes_inline() && ops > 0);
  dies_after_ops_ = ops;
  die_ = std::move(die);
}

void SimFabric::BreakChannel(NodeId node) {
  Channel& channel = *channels_.at(node.value);
  for (Request& reply : channel.replies) reply.broken = true;
  const uint64_t arriving = network_.executor_.rng().Below(channel.requests.size() + 1);
  channel.last_reply_ns =
      std::max(network_.executor_.NowNs() + network_.options_.failure_ns, channel.last_reply_ns);
  for (size_t i = 0; i < channel.requests.size(); ++i) {
    Request& request = channel.requests[i];
    request.dropped |= i >= arriving;
    if (std::exchange(request.failed, true)) continue;
    request.broken = true;
    channel.replies.push_back(request);
    network_.At(channel.last_reply_ns, DeliverReply, &channel);
  }
}

void SimFabric::CloseChannel(Channel& channel) {
  for (Request& request : channel.requests) request.dropped |= request.failed;
}

void SimNetwork::CloseChannels(NodeId node) {
  for (SimFabric* fabric : fabrics_) {
    if (fabric != nullptr) SimFabric::CloseChannel(*fabric->channels_.at(node.value));
  }
}

void SimFabric::SetEvicted(NodeId node, bool evicted) {
  Channel& channel = *channels_.at(node.value);
  if (std::exchange(channel.evicted, evicted) == evicted) return;
  channel.cut_short = false;
  if (evicted) return BreakChannel(node);
  CloseChannel(channel);
  const uint64_t open_ns_max = network_.options_.open_ns_max;
  if (open_ns_max == 0) return;
  channel.opens_ns = network_.executor_.NowNs() + network_.executor_.rng().Below(open_ns_max + 1);
}

void SimFabric::SetCut(NodeId node, bool cut) {
  Channel& channel = *channels_.at(node.value);
  if (std::exchange(channel.cut, cut) == cut) return;
  if (!cut) {
    CloseChannel(channel);
    channel.cut_short = false;
    return;
  }
  channel.cut_short = !channel.requests.empty() || !channel.replies.empty();
  BreakChannel(node);
}

bool SimFabric::IsOpen(const Channel& channel) const {
  return !channel.evicted && !channel.cut && network_.executor_.NowNs() >= channel.opens_ns;
}

bool SimFabric::Reaches(NodeId node) const {
  return IsOpen(*channels_.at(node.value)) && network_.endpoint(node).reachable();
}

bool SimFabric::settled() const {
  return std::none_of(channels_.begin(), channels_.end(), [](const auto& channel) {
    const bool may_come = !channel->requests.empty() && channel->requests.front().failed;
    return !channel->evicted && (may_come || channel->cut_short);
  });
}

void SimFabric::Fence(NodeId node) { channels_.at(node.value)->fenced = true; }

void SimFabric::DeliverControlReply(Channel& channel, const Request& reply) {
  const bool reachable = channel.fabric->network_.endpoint(channel.node).reachable();
  if (reply.broken || (reply.control->reply.ok() && !reachable)) {
    reply.control->reply = Status(StatusCode::kUnknownOutcome, "the memory node was lost");
  }
  if (reply.control->waiter) channel.fabric->worker_.Schedule(reply.control->waiter);
}

class SimFabric::ControlAwaiter {
 public:
  ControlAwaiter(SimFabric& fabric, Channel& channel, const ControlRequest& request)
      : fabric_(fabric), channel_(channel) {
    call_->request = request;
  }
  ControlAwaiter(const ControlAwaiter&) = delete;
  ControlAwaiter& operator=(const ControlAwaiter&) = delete;
  ~ControlAwaiter() { call_->waiter = {}; }

  [[nodiscard]] static bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> waiter) {
    call_->waiter = waiter;
    fabric_.EnqueueControl(channel_, call_);
  }
  [[nodiscard]] Result<ControlReply> await_resume() const { return call_->reply; }

 private:
  SimFabric& fabric_;
  Channel& channel_;
  const std::shared_ptr<ControlCall> call_ = std::make_shared<ControlCall>();
};

Task<Result<ControlReply>> SimFabric::Control(NodeId node, ControlRequest request) {
  Channel& channel = *channels_.at(node.value);
  if (!IsOpen(channel)) co_return kLost;
  if (network_.instant_) co_return network_.endpoint(node).Handle(request);
  co_return co_await ControlAwaiter(*this, channel, request);
}

}  // namespace onetrip
