// The life of a channel's connections: attempts, handshake, loss, back-off. What travels on them is
// in tcp_channel.cc.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client_core/base/address.h"
#include "client_core/base/log.h"
#include "client_core/fabric/tcp_channel.h"

namespace onetrip {
namespace {

constexpr uint32_t kKeepaliveS = 15;

// True for a refusal that no retry can mend.
bool IsForAHuman(TcpRefusal refusal) {
  return refusal == TcpRefusal::kVersion || refusal == TcpRefusal::kCluster ||
         refusal == TcpRefusal::kSecret || refusal == TcpRefusal::kSecretNeeded;
}

}  // namespace

TcpChannel::TcpChannel(TcpFabric& fabric, NodeId node)
    : fabric_(fabric),
      node_(node),
      alarm_(*this),
      backoff_ms_(fabric.options_.backoff_min_ms),
      input_(new std::byte[kInputBytes]) {}

TcpChannel::~TcpChannel() {
  for (; !sent_.empty(); sent_.Pop()) {
    if (sent_.front().round_trip) sent_.front().round_trip->Arm(0, {});
    if (sent_.front().call != nullptr) sent_.front().call->channel = nullptr;
  }
  for (; !pending_.empty(); pending_.Pop()) {
    if (pending_.front().round_trip) pending_.front().round_trip->Arm(0, {});
    if (pending_.front().call != nullptr) pending_.front().call->channel = nullptr;
  }
}

void TcpChannel::SetAddress(const sockaddr_storage& address, socklen_t address_bytes,
                            std::string name) {
  if (address_bytes == address_bytes_ && std::memcmp(&address, &address_, address_bytes) == 0) {
    return;
  }
  address_ = address;
  address_bytes_ = address_bytes;
  name_ = "memory node " + std::to_string(node_.value) + " at " + std::move(name);
  Disconnect();
  if (evicted_) return;
  Connect();
}

void TcpChannel::SetEvicted(bool evicted) {
  if (std::exchange(evicted_, evicted) == evicted) return;
  Disconnect();
  // Nothing rests on what an evicted node does with the requests it was sent.
  unsettled_ = false;
  backoff_ms_ = fabric_.options_.backoff_min_ms;
  if (!evicted && address_bytes_ != 0) Connect();
}

void TcpChannel::SetAlarm(uint64_t delay_ns) {
  alarm_.Cancel();
  fabric_.executor_.timers().Add(&alarm_, fabric_.executor_.NowNs() + delay_ns);
}

// In parts, so that silence shows before the channel is given up.
void TcpChannel::SetReplyAlarm() {
  answered_at_alarm_ = answered_;
  SetAlarm(fabric_.options_.reply_timeout_ms * 1'000'000 / kSilentAlarmsMax);
}

void TcpChannel::Connect() {
  state_ = State::kConnecting;
  SetAlarm(fabric_.options_.connect_timeout_ms * 1'000'000);
  ++connections_;
  fd_ = UniqueFd(socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd_.valid()) return FailAttempt(std::strerror(errno), false);
  const int result =
      connect(fd_.get(), reinterpret_cast<const sockaddr*>(&address_), address_bytes_);
  if (result != 0 && errno != EINPROGRESS) return FailAttempt(std::strerror(errno), false);
  watcher_ = std::make_unique<FdWatcher>(
      fabric_.executor_, fd_.get(),
      [](void* self) { static_cast<TcpChannel*>(self)->OnReadable(); },
      [](void* self) { static_cast<TcpChannel*>(self)->OnWritable(); }, this);
  watcher_->WatchWrites(true);
}

void TcpChannel::OnWritable() {
  if (state_ == State::kConnecting) return OnConnected();
  Flush();
}

void TcpChannel::OnConnected() {
  int error = 0;
  socklen_t length = sizeof(error);
  getsockopt(fd_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0) return FailAttempt(std::strerror(error), false);
  // Before a byte is sent: without a secret even a HELLO would tell a stranger too much.
  if (!MayTalk(!fabric_.secret_.empty(), IsLoopbackAddress(PeerAddress(fd_.get())))) {
    return FailAttempt(TcpRefusalText(TcpRefusal::kSecretNeeded), true);
  }
  TuneTcp(fd_.get(), kKeepaliveS);
  const auto loss_ms = static_cast<unsigned>(fabric_.options_.reply_timeout_ms);
  setsockopt(fd_.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &loss_ms, sizeof(loss_ms));
  if (fabric_.options_.busy_poll_us > 0) {
    // The driver polls, too, where it can; a refusal costs latency only.
    const auto busy_us = static_cast<int>(fabric_.options_.busy_poll_us);
    setsockopt(fd_.get(), SOL_SOCKET, SO_BUSY_POLL, &busy_us, sizeof(busy_us));
  }
  TcpHello hello;
  hello.cluster = fabric_.identity_.cluster;
  hello.incarnation = uint64_t{fabric_.identity_.incarnation} << 32 | connections_;
  hello.epoch = fabric_.lease().epoch.value;
  hello.worker = fabric_.identity_.worker.value;
  hello.node = node_.value;
  TcpNonce nonce;
  FillRandom(nonce);
  handshake_.emplace(hello, nonce, fabric_.secret_);
  state_ = State::kHandshake;
  watcher_->WatchWrites(false);
  watcher_->WatchReads(true);
  ReadHandshake();
}

void TcpChannel::OnReadable() {
  const ssize_t got =
      recv(fd_.get(), input_.get() + input_end_, kInputBytes - input_end_, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got <= 0) {
    const std::string reason = got == 0 ? "the node closed the connection" : std::strerror(errno);
    return state_ == State::kUp ? Lose(reason) : FailAttempt(reason, false);
  }
  input_end_ += static_cast<size_t>(got);
  if (state_ == State::kHandshake) ReadHandshake();
  if (state_ != State::kUp) return;
  if (fabric_.options_.busy_poll_us > 0) fabric_.last_answer_ns_ = fabric_.executor_.NowNs();
  ReadFrames();
}

void TcpChannel::ReadHandshake() {
  WorkerHandshake& handshake = *handshake_;
  while (true) {
    const auto output = handshake.output();
    // A fresh socket takes a message whole; one that does not is of no use.
    if (!output.empty() && send(fd_.get(), output.data(), output.size(), MSG_NOSIGNAL) !=
                               static_cast<ssize_t>(output.size())) {
      return FailAttempt("the handshake cannot be sent", false);
    }
    handshake.ClearOutput();
    if (handshake.state() != Handshake::State::kWaiting || input_begin_ == input_end_) break;
    input_begin_ += handshake.Feed({input_.get() + input_begin_, input_end_ - input_begin_});
  }
  if (input_begin_ == input_end_) input_begin_ = input_end_ = 0;
  if (handshake.state() == Handshake::State::kWaiting) return;
  if (handshake.state() == Handshake::State::kRefused) {
    const char* by = handshake.refused_by_peer() ? "refused by the node: " : "refused: ";
    return FailAttempt(by + std::string(TcpRefusalText(handshake.refusal())),
                       IsForAHuman(handshake.refusal()));
  }
  memory_bytes_ = handshake.memory_bytes();
  next_ = handshake.sequences();
  handshake_.reset();
  alarm_.Cancel();
  state_ = State::kUp;
  has_answered_ = false;
  if (fabric_.rider_ == nullptr) connect_error_.clear();
  unsettled_ = false;
  ++fabric_.stats_.connections;
  Flush();
  if (state_ == State::kUp && fabric_.rider_ != nullptr) fabric_.rider_->OnChannelUp(node_);
}

void TcpChannel::OnAlarm() {
  switch (state_) {
    case State::kDown:
      Connect();
      break;
    case State::kConnecting:
      FailAttempt("no connection in time", false);
      break;
    case State::kHandshake:
      FailAttempt(TcpRefusalText(TcpRefusal::kSilent), false);
      break;
    case State::kUp:
      silent_alarms_ = !sent_.empty() && answered_ == answered_at_alarm_ ? silent_alarms_ + 1 : 0;
      if (silent_alarms_ == kSilentAlarmsMax) {
        Lose("no answer in time");
      } else if (!sent_.empty()) {
        SetReplyAlarm();
      }
      break;
  }
}

void TcpChannel::Disconnect() {
  alarm_.Cancel();
  watcher_.reset();
  fd_.Reset();
  handshake_.reset();
  writer_.Clear();
  input_begin_ = input_end_ = 0;
  silent_alarms_ = 0;
  state_ = State::kDown;
  FailAll();
  if (fabric_.rider_ != nullptr) fabric_.rider_->OnChannelDown(node_);
}

void TcpChannel::FailAttempt(const std::string& reason, bool a_human_must_act) {
  Disconnect();
  const std::string line = name_ + ": " + reason;
  if (line != connect_error_) {
    connect_error_ = line;
    a_human_must_act ? LogError(line) : LogWarning(line);
  }
  const uint64_t delay_ns = backoff_ms_ * 1'000'000;
  backoff_ms_ = std::min(2 * backoff_ms_, fabric_.options_.backoff_max_ms);
  // Workers that lost a node together do not come back to it together.
  SetAlarm(delay_ns / 2 + fabric_.executor_.rng().Below(delay_ns / 2 + 1));
}

void TcpChannel::Lose(const std::string& reason) {
  if (!is_up()) return;
  // A connection that never answered would only break again.
  if (!has_answered_) return FailAttempt("channel lost: " + reason, false);
  Disconnect();
  LogWarning(name_ + ": channel lost: " + reason);
  Connect();
}

}  // namespace onetrip
