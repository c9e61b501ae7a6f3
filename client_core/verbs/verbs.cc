#include "client_core/verbs/verbs.h"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client_core/base/log.h"

namespace onetrip {
namespace {

constexpr FabricTraits kTraits{.has_max = false, .reads_first = false};

constexpr Status kNoQueue(StatusCode::kUnavailable, "no completion queue");

// A completion says of which chain it is: the node's number above the chain's.
constexpr int kSequenceBits = 48;
uint64_t NameOf(NodeId node, uint64_t sequence) {
  return uint64_t{node.value} << kSequenceBits | (sequence & ((uint64_t{1} << kSequenceBits) - 1));
}

ibv_wr_opcode OpcodeOf(FabricOpKind kind) {
  switch (kind) {
    case FabricOpKind::kRead:
      return IBV_WR_RDMA_READ;
    case FabricOpKind::kWrite:
      return IBV_WR_RDMA_WRITE;
    case FabricOpKind::kCas:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    default:
      CHECK(kind == FabricOpKind::kFaa);
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
}

}  // namespace

VerbsFabric::VerbsFabric(LoopExecutor& executor, VerbsDevice& device, VerbsFabricOptions options,
                         VerbsControl control)
    : VerbsArenaOwner(device),
      Fabric(executor.clock(), /*completes_inline=*/false, kTraits, &arena),
      executor_(executor),
      device_(device),
      options_(options),
      control_(std::move(control)) {
  executor_.AddPoller(this);
}

VerbsFabric::~VerbsFabric() {
  executor_.RemovePoller(this);
  for (const auto& channel : channels_) {
    if (channel == nullptr) continue;
    channel->pair.reset();
    for (auto* chains : {&channel->posted, &channel->waiting}) {
      for (const Chain& chain : *chains) chain.round_trip->Arm(0, {});
    }
  }
  watcher_.reset();
  if (completions_ != nullptr) CHECK(ibv_destroy_cq(completions_) == 0);
  if (events_ != nullptr) CHECK(ibv_destroy_comp_channel(events_) == 0);
}

Result<std::unique_ptr<VerbsFabric>> VerbsFabric::Make(LoopExecutor& executor, VerbsDevice& device,
                                                       VerbsFabricOptions options,
                                                       VerbsControl control, std::string* reason) {
  CHECK(options.requests_max >= RoundTrip::kMaxOps);
  std::unique_ptr<VerbsFabric> fabric(
      new VerbsFabric(executor, device, options, std::move(control)));
  fabric->events_ = ibv_create_comp_channel(device.context());
  if (fabric->events_ != nullptr) {
    const int flags = fcntl(fabric->events_->fd, F_GETFL);
    (void)fcntl(fabric->events_->fd, F_SETFL, flags | O_NONBLOCK);
    // Each chain of each node has one completion, and each request that fails.
    constexpr int kNodes = 16;
    fabric->completions_ =
        ibv_create_cq(device.context(), kNodes * static_cast<int>(options.requests_max), nullptr,
                      fabric->events_, 0);
  }
  if (fabric->completions_ == nullptr) {
    *reason =
        "the RDMA device " + device.name() + " makes no completion queue: " + std::strerror(errno);
    return kNoQueue;
  }
  fabric->watcher_ =
      std::make_unique<FdWatcher>(executor, fabric->events_->fd, OnEvent, nullptr, fabric.get());
  fabric->watcher_->WatchReads(true);
  return fabric;
}

VerbsFabric::Channel* VerbsFabric::Find(NodeId node) const {
  return node.value < channels_.size() ? channels_[node.value].get() : nullptr;
}

VerbsFabric::Channel& VerbsFabric::At(NodeId node) {
  if (channels_.size() <= node.value) channels_.resize(node.value + size_t{1});
  auto& channel = channels_[node.value];
  if (channel == nullptr) {
    channel = std::make_unique<Channel>();
    channel->node = node;
  }
  return *channel;
}

Result<VerbsAddress> VerbsFabric::Offer(NodeId node, std::string* reason) {
  Channel& channel = At(node);
  Break(channel);
  auto pair =
      VerbsQueuePair::Make(device_, completions_, {options_.requests_max, options_.inline_bytes},
                           /*may=*/0, executor_.rng(), reason);
  if (!pair.ok()) return pair.status();
  channel.pair = std::move(pair.value());
  return channel.pair->address();
}

Status VerbsFabric::Connect(NodeId node, const VerbsTarget& target, std::string* reason) {
  Channel& channel = At(node);
  CHECK(channel.pair != nullptr && !channel.connected);
  const Status status = channel.pair->Connect(target.address, reason);
  if (!status.ok()) return status;
  channel.target = target;
  channel.connected = true;
  channel.unsettled = false;
  return status;
}

Task<Result<ControlReply>> VerbsFabric::Control(NodeId node, ControlRequest request) {
  const Channel* const channel = Find(node);
  if (channel == nullptr || channel->evicted) {
    co_return Status(StatusCode::kUnavailable, "the memory node is lost");
  }
  co_return co_await control_(node, request);
}

void VerbsFabric::SetEvicted(NodeId node, bool evicted) {
  Channel& channel = At(node);
  if (std::exchange(channel.evicted, evicted) != evicted && evicted) Break(channel);
}

bool VerbsFabric::Reaches(NodeId node) const {
  const Channel* const channel = Find(node);
  return channel != nullptr && channel->connected && !channel->evicted;
}

bool VerbsFabric::settled() const {
  return std::none_of(channels_.begin(), channels_.end(), [](const auto& channel) {
    return channel != nullptr && channel->unsettled && !channel->evicted;
  });
}

bool VerbsFabric::Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) {
  const std::span<FabricOp> ops = round_trip->ops();
  for (FabricOp& op : ops) op.ok = false;
  if (ops.empty()) return true;
  // Node by node, in the order in which the batch first names them.
  std::array<uint64_t, RoundTrip::kMaxOps> parts;
  std::array<Channel*, RoundTrip::kMaxOps> channels;
  uint32_t nodes = 0;
  for (uint64_t left = (uint64_t{1} << ops.size()) - 1; left != 0;) {
    const NodeId node = ops[std::countr_zero(left)].node;
    uint64_t own = 0;
    for (uint64_t bits = left; bits != 0; bits &= bits - 1) {
      if (ops[std::countr_zero(bits)].node == node) own |= bits & -bits;
    }
    left &= ~own;
    if (!Reaches(node)) {
      ++stats_.unsent;
      continue;
    }
    channels[nodes] = Find(node);
    parts[nodes++] = own;
  }
  if (nodes == 0) {
    // In a later turn, as when a node fails it.
    if (waiter) executor_.Schedule(waiter);
    return false;
  }
  round_trip->Arm(nodes, waiter);
  under_way_ += nodes;
  last_active_ns_ = executor_.NowNs();
  for (uint32_t i = 0; i < nodes; ++i) PostChain(*channels[i], round_trip, parts[i]);
  return false;
}

void VerbsFabric::PostChain(Channel& channel, const RoundTripPtr& round_trip, uint64_t ops) {
  Chain chain;
  chain.round_trip = round_trip;
  chain.ops = ops;
  chain.requests = static_cast<uint32_t>(std::popcount(ops));
  channel.waiting.push_back(std::move(chain));
  PostWaiting(channel);
}

void VerbsFabric::PostWaiting(Channel& channel) {
  while (channel.connected && !channel.waiting.empty() &&
         channel.under_way + channel.waiting.front().requests <= options_.requests_max) {
    Chain chain = std::move(channel.waiting.front());
    channel.waiting.pop_front();
    chain.sequence = ++channel.sequence;
    const std::span<FabricOp> ops = chain.round_trip->ops();
    std::array<ibv_send_wr, RoundTrip::kMaxOps> requests;
    std::array<ibv_sge, RoundTrip::kMaxOps> places;
    uint32_t count = 0;
    for (uint64_t bits = chain.ops; bits != 0; bits &= bits - 1) {
      FabricOp& op = ops[std::countr_zero(bits)];
      if (!Encode(channel, &chain, op, &requests[count], &places[count])) {
        chain.ops &= ~(bits & -bits);
        continue;
      }
      if (count > 0) requests[count - 1].next = &requests[count];
      ++count;
    }
    chain.requests = count;
    if (count == 0) {
      Answer(chain, /*done=*/false);
      continue;
    }
    requests[count - 1].send_flags |= IBV_SEND_SIGNALED;
    channel.under_way += count;
    channel.posted.push_back(std::move(chain));
    ibv_send_wr* bad = nullptr;
    const int error = channel.pair->Post(requests.data(), &bad);
    ++stats_.chains;
    stats_.requests += count;
    if (error != 0) {
      LogWarning("the RDMA device " + device_.name() + " takes no request to memory node " +
                 std::to_string(channel.node.value) + ": " + std::strerror(error));
      return Break(channel);
    }
  }
}

bool VerbsFabric::Encode(const Channel& channel, Chain* chain, FabricOp& op, ibv_send_wr* wr,
                         ibv_sge* sge) {
  const uint64_t bytes = channel.target.bytes;
  const bool is_bulk = op.kind == FabricOpKind::kRead || op.kind == FabricOpKind::kWrite;
  if (op.bytes > bytes || op.offset > bytes - op.bytes || (!is_bulk && op.offset % 8 != 0)) {
    return false;
  }
  const uint64_t at = channel.target.base + op.offset;
  std::byte* local = is_bulk ? op.local : reinterpret_cast<std::byte*>(&op.result);
  *wr = {};
  // Also of one that asks for no completion: if it fails it has one.
  wr->wr_id = NameOf(channel.node, chain->sequence);
  wr->opcode = OpcodeOf(op.kind);
  if (is_bulk) {
    wr->wr.rdma.remote_addr = at;
    wr->wr.rdma.rkey = channel.target.key;
  } else {
    wr->wr.atomic.remote_addr = at;
    wr->wr.atomic.rkey = channel.target.key;
    const bool is_cas = op.kind == FabricOpKind::kCas;
    wr->wr.atomic.compare_add = is_cas ? op.expected : op.operand;
    wr->wr.atomic.swap = op.operand;
  }
  const bool goes_inline =
      op.kind == FabricOpKind::kWrite &&
      op.bytes <= std::min(options_.inline_bytes, channel.pair->inline_bytes());
  uint32_t key = 0;
  if (goes_inline) {
    wr->send_flags = IBV_SEND_INLINE;
  } else if (!arena.FindKey(local, op.bytes, &key)) {
    local = PlaceThrough(chain, op);
    CHECK(arena.FindKey(local, op.bytes, &key));
  }
  *sge = {reinterpret_cast<uint64_t>(local), op.bytes, key};
  wr->sg_list = sge;
  wr->num_sge = op.bytes == 0 ? 0 : 1;
  return true;
}

std::byte* VerbsFabric::PlaceThrough(Chain* chain, const FabricOp& op) {
  const bool is_read = op.kind == FabricOpKind::kRead;
  auto* const through = static_cast<std::byte*>(arena.Take(op.bytes));
  if (!is_read) std::memcpy(through, op.local, op.bytes);
  chain->bounces.push_back({is_read ? op.local : nullptr, through, op.bytes});
  return through;
}

void VerbsFabric::Break(Channel& channel) {
  channel.connected = false;
  if (channel.pair != nullptr) channel.pair->Fail();
  // From here on the device writes nothing into the round trips.
  channel.pair.reset();
  channel.under_way = 0;
  channel.unsettled |= !channel.posted.empty();
  stats_.flushed += channel.posted.size();
  stats_.unsent += channel.waiting.size();
  const std::deque<Chain> posted = std::exchange(channel.posted, {});
  const std::deque<Chain> waiting = std::exchange(channel.waiting, {});
  for (const auto* chains : {&posted, &waiting}) {
    for (const Chain& chain : *chains) Answer(chain, /*done=*/false);
  }
}

void VerbsFabric::Answer(const Chain& chain, bool done) {
  const std::span<FabricOp> ops = chain.round_trip->ops();
  if (done) {
    for (uint64_t bits = chain.ops; bits != 0; bits &= bits - 1) {
      ops[std::countr_zero(bits)].ok = true;
    }
  }
  for (const Bounce& bounce : chain.bounces) {
    if (done && bounce.to != nullptr) std::memcpy(bounce.to, bounce.through, bounce.bytes);
    arena.Give(bounce.through, bounce.bytes);
  }
  --under_way_;
  const std::coroutine_handle<> waiter = chain.round_trip->NodeAnswered();
  if (waiter) executor_.Schedule(waiter);
}

bool VerbsFabric::Poll() {
  if (Reap() > 0) {
    last_active_ns_ = executor_.NowNs();
    return true;
  }
  if (under_way_ == 0) return false;
  if (executor_.NowNs() - last_active_ns_ < options_.busy_poll_us * 1000) return true;
  if (std::exchange(armed_, true)) return false;
  CHECK(ibv_req_notify_cq(completions_, 0) == 0);
  // One that came just before tells no one.
  return Reap() > 0;
}

void VerbsFabric::OnEvent(void* self) {
  auto& fabric = *static_cast<VerbsFabric*>(self);
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(fabric.events_, &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
  // Poll() takes the completions, in this turn or the next.
  fabric.armed_ = false;
  ++fabric.stats_.wakeups;
}

int VerbsFabric::Reap() {
  std::array<ibv_wc, 32> completions;
  int all = 0;
  while (true) {
    const int count =
        ibv_poll_cq(completions_, static_cast<int>(completions.size()), completions.data());
    CHECK(count >= 0);
    for (int i = 0; i < count; ++i) OnCompletion(completions[i]);
    all += count;
    if (count < static_cast<int>(completions.size())) return all;
  }
}

void VerbsFabric::OnCompletion(const ibv_wc& completion) {
  ++stats_.completions;
  const NodeId node{static_cast<uint16_t>(completion.wr_id >> kSequenceBits)};
  Channel* const channel = Find(node);
  // One of a queue pair that was given up.
  if (channel == nullptr || channel->posted.empty()) return;
  if (completion.status != IBV_WC_SUCCESS) {
    const bool is_other =
        channel->pair == nullptr || completion.qp_num != channel->pair->address().number;
    return is_other ? void() : Break(*channel);
  }
  const Chain& first = channel->posted.front();
  if (completion.wr_id != NameOf(node, first.sequence)) return;
  const Chain chain = std::move(channel->posted.front());
  channel->posted.pop_front();
  channel->under_way -= chain.requests;
  Answer(chain, /*done=*/true);
  PostWaiting(*channel);
}

}  // namespace onetrip
