#include "client_core/fabric/tcp.h"

#include <netdb.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "client_core/fabric/tcp_channel.h"

namespace onetrip {
namespace {

// Posts a call and waits for its end: Ok, and the reply is in `call`.
class CallAwaiter {
 public:
  // `call` outlives it.
  CallAwaiter(TcpChannel& channel, TcpCall& call) : channel_(channel), call_(call) {}
  CallAwaiter(const CallAwaiter&) = delete;
  CallAwaiter& operator=(const CallAwaiter&) = delete;
  ~CallAwaiter() {
    if (call_.channel != nullptr) call_.channel->Forget(&call_);
  }
  bool await_ready() const noexcept { return false; }
  bool await_suspend(std::coroutine_handle<> waiter) {
    call_.waiter = waiter;
    return channel_.PostCall(&call_);
  }
  Status await_resume() const {
    if (call_.state == TcpCall::State::kDone) return Status::Ok();
    if (call_.state == TcpCall::State::kUnavailable) {
      return Status(StatusCode::kUnavailable, "the memory node is lost");
    }
    return Status(StatusCode::kUnknownOutcome, "the memory node was lost");
  }

 private:
  TcpChannel& channel_;
  TcpCall& call_;
};

}  // namespace

TcpFabric::TcpFabric(LoopExecutor& executor, TcpIdentity identity, Secret secret,
                     TcpFabricOptions options)
    : NetworkFabric(executor),
      executor_(executor),
      identity_(identity),
      secret_(std::move(secret)),
      options_(options) {
  executor_.AddPoller(this);
}

TcpFabric::~TcpFabric() { executor_.RemovePoller(this); }

Status TcpFabric::SetNode(NodeId node, const std::string& host, uint16_t port,
                          std::string* reason) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0) {
    *reason = "cannot resolve " + host + " of memory node " + std::to_string(node.value) + ": " +
              gai_strerror(error);
    return Status(StatusCode::kInvalidArgument, "no such host");
  }
  sockaddr_storage address{};
  std::memcpy(&address, found->ai_addr, found->ai_addrlen);
  const socklen_t address_bytes = found->ai_addrlen;
  freeaddrinfo(found);
  At(node).SetAddress(address, address_bytes, host + " port " + std::to_string(port));
  return Status::Ok();
}

TcpChannel& TcpFabric::At(NodeId node) {
  if (channels_.size() <= node.value) channels_.resize(node.value + size_t{1});
  auto& channel = channels_[node.value];
  if (channel == nullptr) channel = std::make_unique<TcpChannel>(*this, node);
  return *channel;
}

void TcpFabric::SetEvicted(NodeId node, bool evicted) { At(node).SetEvicted(evicted); }

bool TcpFabric::Reaches(NodeId node) const {
  const TcpChannel* const channel = Find(node);
  return channel != nullptr && channel->is_up();
}

bool TcpFabric::Answers(NodeId node) const {
  const TcpChannel* const channel = Find(node);
  return channel != nullptr && channel->is_up() && !channel->is_silent();
}

void TcpFabric::Ping(NodeId node) {
  TcpChannel* const channel = Find(node);
  if (channel == nullptr || !channel->TakeQuiet()) return;
  const RoundTripPtr round_trip = NewRoundTrip();
  (void)round_trip->ReadWord({node, 0});
  (void)Submit(round_trip, {});
}

TcpChannel* TcpFabric::Find(NodeId node) const {
  return node.value < channels_.size() ? channels_[node.value].get() : nullptr;
}

std::string TcpFabric::ConnectError(NodeId node) const {
  const TcpChannel* channel = Find(node);
  return channel != nullptr ? channel->connect_error() : std::string();
}

bool TcpFabric::Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) {
  std::array<TcpChannel*, RoundTrip::kMaxOps> channels;
  uint32_t count = 0;
  for (FabricOp& op : round_trip->ops()) {
    op.ok = false;
    TcpChannel* channel = Find(op.node);
    uint32_t i = 0;
    while (i < count && channels[i] != channel) ++i;
    if (i == count && channel != nullptr) channels[count++] = channel;
  }
  if (round_trip->empty()) return true;
  if (count == 0) {
    // In a later turn: a coroutine that retries at once would keep the loop from connecting.
    executor_.Schedule(waiter);
    return false;
  }
  round_trip->Arm(count, waiter);
  if (options_.busy_poll_us > 0) last_answer_ns_ = executor_.NowNs();
  for (uint32_t i = 0; i < count; ++i) channels[i]->Post(round_trip);
  return false;
}

Task<Result<ControlReply>> TcpFabric::Control(NodeId node, ControlRequest request) {
  TcpChannel* channel = Find(node);
  if (channel == nullptr) co_return Status(StatusCode::kUnavailable, "no such memory node");
  TcpCall call;
  call.request = request;
  const Status status = co_await CallAwaiter(*channel, call);
  if (!status.ok()) co_return status;
  co_return call.reply;
}

void TcpFabric::OfferQueuePair(NodeId node, const TcpQueuePair& own) {
  if (Reaches(node)) Find(node)->OfferQueuePair(own);
}

void TcpFabric::Break(NodeId node, const std::string& reason) {
  if (Reaches(node)) Find(node)->Lose(reason);
}

void TcpFabric::NoteAnswer(NodeId node) {
  if (Reaches(node)) Find(node)->NoteAnswer();
}

bool TcpFabric::MayWait(NodeId node) const {
  const TcpChannel* const channel = Find(node);
  return channel != nullptr && channel->may_wait();
}

bool TcpFabric::Poll() {
  for (TcpChannel* channel : dirty_) channel->Flush();
  dirty_.clear();
  if (options_.busy_poll_us == 0 || waiting_frames_ == 0) return false;
  return executor_.NowNs() - last_answer_ns_ < options_.busy_poll_us * 1000;
}

bool TcpFabric::settled() const {
  return std::none_of(channels_.begin(), channels_.end(), [](const auto& channel) {
    return channel != nullptr && channel->unsettled();
  });
}

}  // namespace onetrip
