// The way of a request over a channel of the simulated network: to its node, applied there step by
// step, and back.
#include <algorithm>
#include <bit>
#include <utility>

#include "client_core/fabric/memory_ops.h"
#include "client_core/fabric/sim.h"

namespace onetrip {
namespace {

// Bytes that `ops` of a round trip carry to the node, or back.
uint64_t BytesOf(std::span<const FabricOp> ops, uint64_t bits, FabricOpKind kind) {
  uint64_t bytes = 0;
  for (; bits != 0; bits &= bits - 1) {
    const FabricOp& op = ops[std::countr_zero(bits)];
    if (op.kind == kind) bytes += op.bytes;
  }
  return bytes;
}

bool AllAre(std::span<const FabricOp> ops, uint64_t bits, FabricOpKind kind) {
  for (; bits != 0; bits &= bits - 1) {
    if (ops[std::countr_zero(bits)].kind != kind) return false;
  }
  return true;
}

// The word that an atomic leaves behind, which has found `found`.
uint64_t WordBehind(const FabricOp& op, uint64_t found) {
  switch (op.kind) {
    case FabricOpKind::kCas:
      return found == op.expected ? op.operand : found;
    case FabricOpKind::kFaa:
      return found + op.operand;
    case FabricOpKind::kMax:
      return TakesMax(found, op.operand) ? op.operand : found;
    default:
      return found;
  }
}

bool IsBulk(const FabricOp& op) {
  return op.kind == FabricOpKind::kRead || op.kind == FabricOpKind::kWrite;
}

}  // namespace

void SimFabric::Enqueue(Channel& channel, const RoundTripPtr& round_trip, uint64_t ops) {
  Request request;
  request.round_trip = round_trip;
  request.ops = ops;
  const SimFabricOptions& options = network_.options_;
  core_free_ns_ = std::max(network_.executor_.NowNs(), core_free_ns_) + options.post_ns;
  const uint64_t bytes = BytesOf(round_trip->ops(), ops, FabricOpKind::kWrite);
  request.arrival_ns = DrawArrival(channel, core_free_ns_ + bytes * options.byte_ps / 1000);
  if (network_.observer_ != nullptr) {
    network_.observer_->Posted(*this, channel.node, *round_trip, ops);
  }
  channel.requests.push_back(std::move(request));
  if (!channel.applying) StartApplying(channel);
}

uint64_t SimFabric::DrawArrival(Channel& channel, uint64_t ready_ns) {
  const uint64_t latency_ns = network_.DrawLatency(channel.node) * channel.slowness;
  channel.last_arrival_ns = std::max(ready_ns + latency_ns, channel.last_arrival_ns);
  return channel.last_arrival_ns;
}

void SimFabric::EnqueueControl(Channel& channel, std::shared_ptr<ControlCall> call) {
  Request request;
  request.control = std::move(call);
  request.arrival_ns = DrawArrival(channel, network_.executor_.NowNs());
  channel.requests.push_back(std::move(request));
  if (!channel.applying) StartApplying(channel);
}

void SimFabric::StartApplying(Channel& channel) {
  channel.applying = true;
  channel.left = channel.requests.front().ops;
  channel.applied_bytes = 0;
  channel.late = 0;
  const uint64_t now_ns = network_.executor_.NowNs();
  network_.At(std::max(channel.requests.front().arrival_ns, now_ns), ApplyNext, &channel);
}

FabricOp SimFabric::NextPiece(const FabricOp& op, uint64_t applied_bytes, bool backwards) {
  FabricOp piece = op;
  if (!IsBulk(op) || op.bytes <= 8 || network_.options_.step_ns == 0) return piece;
  const uint64_t left = op.bytes - applied_bytes;
  // A step ends on a word of remote memory, so that words are never torn.
  uint64_t step = 8 * (1 + network_.executor_.rng().Below(8));
  uint64_t from = applied_bytes;
  if (backwards) {
    const uint64_t end = op.offset + left;
    step = std::min(left, step - 8 + (end + 7) % 8 + 1);
    from = left - step;
  } else {
    step -= (op.offset + applied_bytes + step) % 8;
  }
  piece.bytes = static_cast<uint32_t>(std::min(left, step));
  piece.offset += from;
  piece.local += from;
  return piece;
}

bool SimFabric::ApplyStep(Channel& channel) {
  MemoryEndpoint& endpoint = network_.endpoint(channel.node);
  if (const Request& request = channel.requests.front(); request.control) {
    const ControlReply reply = endpoint.Handle(request.control->request);
    if (!request.failed) request.control->reply = reply;
    return true;
  }
  if (channel.left == 0) return true;
  const uint64_t next = NextOp(channel);
  const bool is_late = (next & channel.late) != 0;
  channel.rests = is_late && network_.executor_.NowNs() < channel.late_until_ns;
  if (channel.rests) return false;
  FabricOp& op = channel.requests.front().round_trip->ops()[std::countr_zero(next)];
  uint64_t& applied_bytes = is_late ? channel.late_bytes : channel.applied_bytes;
  if (InBounds(op, endpoint.bytes())) {
    if (!ApplyPiece(channel, op, &applied_bytes)) return false;
    op.ok = true;
    ++network_.applied_ops_;
    if (network_.observer_ != nullptr) network_.observer_->Applied(*this, channel.node, op);
  }
  applied_bytes = 0;
  channel.left &= ~next;
  channel.late &= ~next;
  return channel.left == 0;
}

uint64_t SimFabric::NextOp(Channel& channel) {
  const std::span<const FabricOp> ops = channel.requests.front().round_trip->ops();
  const auto is_read = [&](uint64_t bit) {
    return ops[std::countr_zero(bit)].kind == FabricOpKind::kRead;
  };
  while (true) {
    const uint64_t others = channel.left & ~channel.late;
    const uint64_t first = others & -others;
    const uint64_t late = channel.late & -channel.late;
    if (first == 0) return late;
    if (!is_read(first)) return first;
    // READs keep their order: one that is not late waits for those that are.
    const bool may_be_late = !traits().reads_first && !AllAre(ops, others, FabricOpKind::kRead);
    if (!may_be_late || !DrawLate(channel)) return late != 0 ? late : first;
    channel.late |= first;
  }
}

// A READ is late as a whole, or the rest of it.
bool SimFabric::DrawLate(Channel& channel) {
  Rng& rng = network_.executor_.rng();
  if (channel.late != 0) return rng.Below(4) == 0;
  if (channel.applied_bytes == 0) channel.will_be_late = rng.Below(2) == 0;
  if (!channel.will_be_late || rng.Below(3) == 0) return false;
  channel.late_bytes = std::exchange(channel.applied_bytes, 0);
  channel.late_until_ns = network_.executor_.NowNs();
  if (rng.Below(2) == 0) {
    channel.late_until_ns += rng.Below(4 * network_.options_.latency_max_ns + 1);
  }
  return true;
}

bool SimFabric::ApplyPiece(Channel& channel, FabricOp& op, uint64_t* applied_bytes) {
  const SimFabricOptions& options = network_.options_;
  if (options.atomics_tear && !IsBulk(op)) return ApplyTornAtomic(channel, op);
  if (*applied_bytes == 0) {
    channel.backwards = options.writes_backwards && op.kind == FabricOpKind::kWrite &&
                        network_.executor_.rng().Below(2) == 0;
  }
  FabricOp piece = NextPiece(op, *applied_bytes, channel.backwards);
  ExecuteOp(piece, network_.endpoint(channel.node).base());
  op.result = piece.result;
  *applied_bytes += piece.bytes;
  return *applied_bytes >= op.bytes;
}

bool SimFabric::ApplyTornAtomic(Channel& channel, FabricOp& op) {
  SimNetwork::Node& node = network_.nodes_[channel.node.value];
  const bool is_amid = node.amid_atomic == &channel;
  if (node.amid_atomic != nullptr && !is_amid) return false;
  FabricOp word = op;
  word.local = reinterpret_cast<std::byte*>(&channel.amid_word);
  word.kind = is_amid ? FabricOpKind::kWrite : FabricOpKind::kRead;
  if (!is_amid) {
    ExecuteOp(word, node.endpoint->base());
    node.amid_atomic = &channel;
    return false;
  }
  op.result = channel.amid_word;
  channel.amid_word = WordBehind(op, op.result);
  // One that changes nothing may write its word all the same.
  const bool writes = channel.amid_word != op.result || op.kind == FabricOpKind::kFaa ||
                      network_.executor_.rng().Below(2) == 0;
  if (writes) ExecuteOp(word, node.endpoint->base());
  node.amid_atomic = nullptr;
  return true;
}

void SimFabric::ApplyNext(void* arg) {
  Channel& channel = *static_cast<Channel*>(arg);
  SimNetwork& network = channel.fabric->network_;
  if (network.nodes_[channel.node.value].paused) {
    channel.stalled = true;
    return;
  }
  const uint64_t now_ns = network.executor_.NowNs();
  const bool lost = !network.endpoint(channel.node).reachable() || channel.fenced ||
                    channel.requests.front().dropped;
  if (!lost && !channel.fabric->ApplyStep(channel)) {
    const uint64_t rest_ns = channel.rests ? channel.late_until_ns : 0;
    network.At(std::max(now_ns + network.options_.step_ns, rest_ns), ApplyNext, &channel);
    return;
  }
  const void*& amid_atomic = network.nodes_[channel.node.value].amid_atomic;
  if (amid_atomic == &channel) amid_atomic = nullptr;
  if (channel.requests.front().failed) {
    channel.requests.pop_front();
    channel.applying = false;
    if (!channel.requests.empty()) channel.fabric->StartApplying(channel);
    return;
  }
  uint64_t back_ns = network.options_.failure_ns;
  if (!lost) {
    back_ns = network.DrawLatency(channel.node) * channel.slowness;
    const Request& request = channel.requests.front();
    if (request.round_trip) {
      const std::span<const FabricOp> ops = request.round_trip->ops();
      back_ns += BytesOf(ops, request.ops, FabricOpKind::kRead) * network.options_.byte_ps / 1000;
      if (!AllAre(ops, request.ops, FabricOpKind::kWrite)) back_ns += network.options_.fetch_ns;
    }
  }
  channel.last_reply_ns = std::max(now_ns + back_ns, channel.last_reply_ns);
  channel.replies.push_back(std::move(channel.requests.front()));
  channel.requests.pop_front();
  network.At(channel.last_reply_ns, DeliverReply, &channel);
  channel.applying = false;
  if (!channel.requests.empty()) channel.fabric->StartApplying(channel);
}

void SimFabric::DeliverReply(void* arg) {
  Channel& channel = *static_cast<Channel*>(arg);
  SimNetwork& network = channel.fabric->network_;
  Request reply = std::move(channel.replies.front());
  channel.replies.pop_front();
  if (reply.control) return DeliverControlReply(channel, reply);
  const auto ops = reply.round_trip->ops();
  bool ok = true;
  for (uint64_t bits = reply.ops; bits != 0; bits &= bits - 1) {
    FabricOp& op = ops[std::countr_zero(bits)];
    // Applied or not: the answer is lost with the node or with the connection.
    if (reply.broken || !network.endpoint(channel.node).reachable()) op.ok = false;
    ok &= op.ok;
  }
  if (network.observer_ != nullptr) network.observer_->Answered(*channel.fabric, channel.node, ok);
  const std::coroutine_handle<> waiter = reply.round_trip->NodeAnswered();
  if (waiter) channel.fabric->worker_.Schedule(waiter);
}

}  // namespace onetrip
