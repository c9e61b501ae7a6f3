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

// A cluster's. Every request that fails has a completion, which the queue must have room for.
constexpr uint32_t kNodesMax = 256;

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

VerbsFabric::VerbsFabric(LoopExecutor& executor, VerbsDevice& device, TcpIdentity identity,
                         Secret secret, const VerbsFabricOptions& options)
    : VerbsArenaOwner(device),
      NetworkFabric(executor, kTraits, &arena),
      executor_(executor),
      device_(device),
      options_(options),
      tcp_(executor, identity, std::move(secret), options.channel) {
  executor_.AddPoller(this);
  tcp_.SetRider(this);
}

VerbsFabric::~VerbsFabric() {
  executor_.RemovePoller(this);
  tcp_.SetRider(nullptr);
  for (const auto& channel : channels_) {
    if (channel == nullptr) continue;
    channel->pair.reset();
    for (auto* chains : {&channel->posted, &channel->waiting}) {
      for (const Chain& chain : *chains) chain.round_trip->Arm(0, {});
    }
  }
  watcher_.reset();
  if (completions_ != nullptr) device_.Demand(ibv_destroy_cq(completions_), "ends a queue");
  if (events_ != nullptr) device_.Demand(ibv_destroy_comp_channel(events_), "ends a channel");
}

Result<std::unique_ptr<VerbsFabric>> VerbsFabric::Make(LoopExecutor& executor, VerbsDevice& device,
                                                       TcpIdentity identity, Secret secret,
                                                       VerbsFabricOptions options,
                                                       std::string* reason) {
  CHECK(options.requests_max >= RoundTrip::kMaxOps);
  std::unique_ptr<VerbsFabric> fabric(
      new VerbsFabric(executor, device, identity, std::move(secret), options));
  const Status started = fabric->arena.Start(reason);
  if (!started.ok()) return started;
  fabric->events_ = ibv_create_comp_channel(device.context());
  if (fabric->events_ != nullptr) {
    const int flags = fcntl(fabric->events_->fd, F_GETFL);
    (void)fcntl(fabric->events_->fd, F_SETFL, flags | O_NONBLOCK);
    const uint32_t room = std::min(kNodesMax * options.requests_max, device.completions_max());
    fabric->completions_ =
        ibv_create_cq(device.context(), static_cast<int>(room), nullptr, fabric->events_, 0);
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

Status VerbsFabric::SetNode(NodeId node, const std::string& host, uint16_t port,
                            std::string* reason) {
  At(node);
  return tcp_.SetNode(node, host, port, reason);
}

std::string VerbsFabric::ConnectError(NodeId node) const { return tcp_.ConnectError(node); }

void VerbsFabric::OnChannelUp(NodeId node) {
  Channel& channel = At(node);
  channel.unsettled = false;
  const auto pairs_max = static_cast<uint32_t>(completions_->cqe) / options_.requests_max;
  if (node.value >= pairs_max) {
    return tcp_.Break(node, "the RDMA device " + device_.name() + " has completions for " +
                                std::to_string(pairs_max) + " memory nodes alone");
  }
  std::string reason;
  auto pair =
      VerbsQueuePair::Make(device_, completions_, {options_.requests_max, options_.inline_bytes},
                           /*may=*/0, executor_.rng(), &reason);
  if (!pair.ok()) return tcp_.Break(node, reason);
  channel.pair = std::move(pair.value());
  tcp_.OfferQueuePair(node, channel.pair->address());
}

bool VerbsFabric::OnQueuePair(NodeId node, const TcpQueuePairReply& reply, std::string* reason) {
  Channel& channel = At(node);
  *reason = "the node makes no queue pair; its log says why";
  if (reply.made != 1 || !channel.pair->Connect(reply.pair, reason).ok()) return false;
  channel.target = reply;
  // The node is not reached before something has come this way, of several packets.
  constexpr uint64_t kTrialBytes = 8192;
  Chain trial;
  trial.round_trip = NewRoundTrip();
  (void)trial.round_trip->Read({node, 0},
                               static_cast<uint32_t>(std::min(kTrialBytes, reply.bytes)));
  trial.round_trip->Arm(1, {});
  trial.ops = 1;
  ++under_way_;
  last_active_ns_ = executor_.NowNs();
  return PostNow(channel, std::move(trial), reason);
}

void VerbsFabric::OnChannelDown(NodeId node) {
  Channel& channel = At(node);
  channel.proved = false;
  if (channel.pair != nullptr) channel.pair->Fail();
  // From here on the device writes nothing into the round trips.
  channel.pair.reset();
  channel.under_way = 0;
  channel.unsettled |= !channel.posted.empty();
  metrics_.flushed.Add(channel.posted.size());
  metrics_.unsent.Add(channel.waiting.size());
  Fail(&channel.posted);
  Fail(&channel.waiting);
}

void VerbsFabric::Fail(std::deque<Chain>* chains) {
  const std::deque<Chain> failed = std::exchange(*chains, {});
  for (const Chain& chain : failed) Answer(chain, /*done=*/false);
}

Task<Result<ControlReply>> VerbsFabric::Control(NodeId node, ControlRequest request) {
  return tcp_.Control(node, request);
}

void VerbsFabric::SetEvicted(NodeId node, bool evicted) {
  tcp_.SetEvicted(node, evicted);
  // Nothing rests on what an evicted node does with the requests it was sent.
  if (evicted) At(node).unsettled = false;
}

bool VerbsFabric::Reaches(NodeId node) const {
  const Channel* const channel = Find(node);
  return channel != nullptr && channel->proved;
}

bool VerbsFabric::Answers(NodeId node) const {
  constexpr uint64_t kSilentNs = 1'250'000'000;  // as over tcp
  if (!Reaches(node)) return false;
  const Channel& channel = *Find(node);
  return channel.posted.empty() || executor_.NowNs() - channel.posted.front().posted_ns < kSilentNs;
}

void VerbsFabric::Ping(NodeId node) {
  if (!Reaches(node)) return;
  Channel& channel = *Find(node);
  if (std::exchange(channel.answered_at_look, channel.answered) != channel.answered ||
      !channel.posted.empty() || !channel.waiting.empty()) {
    return;
  }
  const RoundTripPtr round_trip = NewRoundTrip();
  (void)round_trip->ReadWord({node, 0});
  (void)Submit(round_trip, {});
}

bool VerbsFabric::settled() const {
  return tcp_.settled() &&
         std::none_of(channels_.begin(), channels_.end(),
                      [](const auto& channel) { return channel != nullptr && channel->unsettled; });
}

void VerbsFabric::set_lease(LeaseGuard lease) {
  NetworkFabric::set_lease(lease);
  tcp_.set_lease(lease);
}

bool VerbsFabric::Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) {
  for (FabricOp& op : round_trip->ops()) op.ok = false;
  if (round_trip->empty()) return true;
  std::array<RoundTrip::Part, RoundTrip::kMaxOps> parts;
  const uint32_t all = round_trip->CutByNode(&parts);
  uint32_t nodes = 0;
  for (uint32_t i = 0; i < all; ++i) {
    // While a connection is made, chains wait for it.
    const bool may_wait = Find(parts[i].node) != nullptr && tcp_.MayWait(parts[i].node);
    if (may_wait) parts[nodes++] = parts[i];
  }
  metrics_.unsent.Add(all - nodes);
  if (nodes == 0) {
    // In a later turn: a coroutine that retries at once would keep the loop from connecting.
    if (waiter) executor_.Schedule(waiter);
    return false;
  }
  round_trip->Arm(nodes, waiter);
  under_way_ += nodes;
  for (uint32_t i = 0; i < nodes; ++i) PostChain(*Find(parts[i].node), round_trip, parts[i].ops);
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
  if (channel.waiting.empty()) return;
  last_active_ns_ = executor_.NowNs();
  // Chains that waited here until the lease ran out must not be posted.
  if (lease().deadline_ns != LeaseGuard::kForever && last_active_ns_ >= lease().deadline_ns) {
    metrics_.unsent.Add(channel.waiting.size());
    return Fail(&channel.waiting);
  }
  while (channel.proved && !channel.waiting.empty() &&
         channel.under_way + channel.waiting.front().requests <= options_.requests_max) {
    Chain chain = std::move(channel.waiting.front());
    channel.waiting.pop_front();
    std::string reason;
    if (!PostNow(channel, std::move(chain), &reason)) return tcp_.Break(channel.node, reason);
  }
}

bool VerbsFabric::PostNow(Channel& channel, Chain chain, std::string* reason) {
  chain.sequence = ++channel.sequence;
  chain.posted_ns = last_active_ns_;
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
    return true;
  }
  requests[count - 1].send_flags |= IBV_SEND_SIGNALED;
  channel.under_way += count;
  channel.posted.push_back(std::move(chain));
  ibv_send_wr* bad = nullptr;
  const int error = channel.pair->Post(requests.data(), &bad);
  metrics_.doorbells.Add();
  metrics_.requests.Add(count);
  if (error == 0) return true;
  *reason = "the RDMA device " + device_.name() + " takes no request: " + std::strerror(error);
  return false;
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
  device_.Demand(ibv_req_notify_cq(completions_, 0), "wakes for completions");
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
  fabric.metrics_.wakeups.Add();
}

int VerbsFabric::Reap() {
  std::array<ibv_wc, 32> completions;
  int all = 0;
  while (true) {
    const int count =
        ibv_poll_cq(completions_, static_cast<int>(completions.size()), completions.data());
    device_.Demand(count < 0 ? EIO : 0, "gives completions");
    for (int i = 0; i < count; ++i) OnCompletion(completions[i]);
    all += count;
    if (count < static_cast<int>(completions.size())) return all;
  }
}

void VerbsFabric::OnCompletion(const ibv_wc& completion) {
  metrics_.completions.Add();
  const NodeId node{static_cast<uint16_t>(completion.wr_id >> kSequenceBits)};
  Channel* const channel = Find(node);
  // One of a queue pair that was given up.
  if (channel == nullptr || channel->posted.empty() ||
      completion.wr_id < NameOf(node, channel->posted.front().sequence)) {
    return;
  }
  if (completion.status != IBV_WC_SUCCESS) {
    return tcp_.Break(node, std::string("its queue pair: ") + ibv_wc_status_str(completion.status));
  }
  const Chain& first = channel->posted.front();
  if (completion.wr_id != NameOf(node, first.sequence)) return;
  const Chain chain = std::move(channel->posted.front());
  channel->posted.pop_front();
  channel->under_way -= chain.requests;
  ++channel->answered;
  if (!std::exchange(channel->proved, true)) {
    metrics_.connections.Add();
    tcp_.NoteAnswer(node);
  }
  Answer(chain, /*done=*/true);
  PostWaiting(*channel);
}

}  // namespace onetrip
