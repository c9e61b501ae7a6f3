#include "memnode/tcp_server.h"

#include <utility>

#include "client_core/base/address.h"
#include "client_core/layout/worker_id.h"
#include "memnode/tcp_server_channel.h"

namespace onetrip {
namespace {

// Names a line of the log that no peer's is.
constexpr uint64_t kTooManyStrangers = ~uint64_t{0};

}  // namespace

TcpServerCore::TcpServerCore(const Clock& clock, MemoryEndpoint& served, Secret shared_secret,
                             const TcpServerOptions& given)
    : executor(clock, /*seed=*/0),
      endpoint(served),
      secret(std::move(shared_secret)),
      options(given),
      epoch(given.epoch),
      input(new std::byte[kTcpServerBufferBytes]),
      output(new std::byte[kTcpServerBufferBytes]) {
  executor.AddPoller(this);
}

TcpServerCore::~TcpServerCore() {
  executor.RemovePoller(this);
  acceptor.reset();
  channels.clear();
}

bool TcpServerCore::Poll() {
  return options.busy_poll_us > 0 && executor.NowNs() - last_frame_ns < options.busy_poll_us * 1000;
}

void TcpServerCore::Accept(UniqueFd fd) {
  if (strangers.size() >= options.strangers_max) {
    TcpServerChannel* first = strangers.begin()->second;
    refused.Add();
    log.Warn(kTooManyStrangers, executor.NowNs(),
             "tcp: " + std::to_string(strangers.size()) +
                 " peers have not proved themselves; the first of them are dropped");
    Remove(first);
  }
  channels.push_back(std::make_unique<TcpServerChannel>(*this, std::move(fd), channels.size()));
  channel_count.Set(channels.size());
}

TcpRefusal TcpServerCore::Admit(const TcpHello& hello, TcpServerChannel* channel) {
  if (stopping) return TcpRefusal::kStopping;
  if (hello.worker > kMaxWorkerId) return TcpRefusal::kMalformed;
  if (hello.epoch < epoch.value) return TcpRefusal::kStaleEpoch;
  Worker& worker = workers[hello.worker];
  if (worker.fenced) return TcpRefusal::kFenced;
  if (hello.incarnation <= worker.incarnation) return TcpRefusal::kStaleIncarnation;
  if (worker.channel == nullptr && channels.size() - strangers.size() >= options.channels_max) {
    return TcpRefusal::kFull;
  }
  // The fence: from here on nothing of the old channel is executed.
  if (worker.channel != nullptr)
    std::exchange(worker.channel, nullptr)->Fail(TcpError::kSuperseded);
  worker.incarnation = hello.incarnation;
  next_worker.Set(std::max<uint64_t>(next_worker.Value(), uint64_t{hello.worker} + 1));
  worker.channel = channel;
  return TcpRefusal::kNone;
}

void TcpServerCore::Fence(WorkerId id) {
  Worker& worker = workers[id.value];
  worker.fenced = true;
  if (worker.channel != nullptr) std::exchange(worker.channel, nullptr)->Fail(TcpError::kFenced);
}

void TcpServerCore::CloseChannels() {
  for (auto& [id, worker] : workers) {
    if (worker.channel == nullptr) continue;
    std::exchange(worker.channel, nullptr)->Fail(TcpError::kSuperseded);
  }
}

void TcpServerCore::Remove(TcpServerChannel* channel) {
  const size_t index = channel->index;
  const std::unique_ptr<TcpServerChannel> removed = std::move(channels[index]);
  if (index + 1 != channels.size()) {
    channels[index] = std::move(channels.back());
    channels[index]->index = index;
  }
  channels.pop_back();
  channel_count.Set(channels.size());
}

void TcpServerCore::GoodbyeToAll() {
  stopping = true;
  acceptor->Stop();
  // From the back: a channel that cannot even be told goes, and the last takes its place.
  for (size_t i = channels.size(); i > 0; --i) channels[i - 1]->Fail(TcpError::kStopping);
}

TcpServerBuffer TcpServerCore::TakeBuffer() {
  if (spare_buffers_.empty()) return TcpServerBuffer(new std::byte[kTcpServerBufferBytes]);
  TcpServerBuffer buffer = std::move(spare_buffers_.back());
  spare_buffers_.pop_back();
  return buffer;
}

void TcpServerCore::GiveBack(TcpServerBuffer buffer) {
  if (buffer != nullptr && spare_buffers_.size() < kSpareBuffersMax) {
    spare_buffers_.push_back(std::move(buffer));
  }
}

TcpServer::TcpServer(std::unique_ptr<TcpServerCore> core, uint16_t port)
    : core_(std::move(core)), port_(port), thread_(core_->executor) {}

Result<UniqueFd> TcpServer::Listen(const TcpServerOptions& options, bool has_secret,
                                   std::string* reason) {
  Result<UniqueFd> listener = ListenTcp(options.host, options.port, options.backlog, reason);
  if (!listener.ok()) return listener.status();
  const std::string address = LocalAddress(listener->get());
  if (!MayTalk(has_secret, IsLoopbackAddress(address))) {
    *reason = "will not listen on " + address + ": " + TcpRefusalText(TcpRefusal::kSecretNeeded);
    return Status(StatusCode::kInvalidArgument, "no secret");
  }
  return listener;
}

std::unique_ptr<TcpServer> TcpServer::Serve(MemoryEndpoint& endpoint, Secret secret,
                                            const TcpServerOptions& options, UniqueFd listener) {
  static const SystemClock clock;
  auto core = std::make_unique<TcpServerCore>(clock, endpoint, std::move(secret), options);
  const uint16_t port = LocalPort(listener.get());
  core->acceptor =
      std::make_unique<Acceptor>(core->executor, std::move(listener),
                                 [core = core.get()](UniqueFd fd) { core->Accept(std::move(fd)); });
  return std::unique_ptr<TcpServer>(new TcpServer(std::move(core), port));
}

Result<std::unique_ptr<TcpServer>> TcpServer::Start(MemoryEndpoint& endpoint, Secret secret,
                                                    const TcpServerOptions& options,
                                                    std::string* reason) {
  Result<UniqueFd> listener = Listen(options, !secret.empty(), reason);
  if (!listener.ok()) return listener.status();
  return Serve(endpoint, std::move(secret), options, std::move(*listener));
}

TcpServer::~TcpServer() { Stop(); }

void TcpServer::Stop() {
  thread_.Stop([this] { core_->GoodbyeToAll(); },
               [this] {
                 // Peers see the end of their connections now.
                 core_->acceptor.reset();
                 core_->channels.clear();
                 core_->channel_count.Set(0);
               });
}

void TcpServer::Fence(WorkerId worker) {
  thread_.Run([this, worker] { core_->Fence(worker); });
}

void TcpServer::CloseChannels() {
  thread_.Run([this] { core_->CloseChannels(); });
}

void TcpServer::SetEpoch(Epoch epoch) {
  thread_.Run([this, epoch] { core_->epoch = epoch; });
}

uint32_t TcpServer::next_worker() const {
  return static_cast<uint32_t>(core_->next_worker.Value());
}

TcpServerStats TcpServer::stats() const {
  return {.channels = core_->channel_count.Value(),
          .frames = core_->frames.Value(),
          .operations = core_->operations.Value(),
          .welcomed = core_->welcomed.Value(),
          .refused = core_->refused.Value(),
          .errors = core_->errors.Value()};
}

uint64_t TcpServer::CpuNs() { return thread_.CpuNs(); }

}  // namespace onetrip
