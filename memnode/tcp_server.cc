#include "memnode/tcp_server.h"

#include <pthread.h>

#include <ctime>
#include <future>
#include <utility>

#include "client_core/base/address.h"
#include "client_core/base/log.h"
#include "memnode/tcp_server_channel.h"

namespace onetrip {
namespace {

constexpr int kAcceptsPerTurn = 64;
constexpr uint64_t kExhaustedPauseNs = 10'000'000;
constexpr uint64_t kSameLineNs = 60'000'000'000;
// Peers beyond the limit are told so, as long as there are not too many of them, too.
constexpr uint64_t kRefusedPeersMax = 64;

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
  listener_watcher.reset();
  channels.clear();
}

bool TcpServerCore::Poll() {
  return options.busy_poll_us > 0 && executor.NowNs() - last_frame_ns < options.busy_poll_us * 1000;
}

void TcpServerCore::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    bool exhausted = false;
    UniqueFd fd = onetrip::Accept(listener.get(), &exhausted);
    if (exhausted) {
      // Out of descriptors: the connection stays in the queue, and asking again at once would spin.
      listener_watcher->WatchReads(false);
      executor.At(
          executor.NowNs() + kExhaustedPauseNs,
          [](void* self) {
            auto* core = static_cast<TcpServerCore*>(self);
            if (!core->stopping) core->listener_watcher->WatchReads(true);
          },
          this);
    }
    if (!fd.valid()) return;
    if (channels.size() >= options.channels_max + kRefusedPeersMax) continue;
    auto channel = std::make_unique<TcpServerChannel>(*this, std::move(fd));
    TcpServerChannel* opened = channel.get();
    opened->index = channels.size();
    channels.push_back(std::move(channel));
    channel_count.Set(channels.size());
    if (channels.size() > options.channels_max) opened->Refuse(TcpRefusal::kFull);
  }
}

TcpRefusal TcpServerCore::Admit(const TcpHello& hello, TcpServerChannel* channel) {
  if (stopping) return TcpRefusal::kStopping;
  if (hello.epoch < epoch.value) return TcpRefusal::kStaleEpoch;
  Worker& worker = workers[hello.worker];
  if (worker.fenced) return TcpRefusal::kFenced;
  if (hello.incarnation <= worker.incarnation) return TcpRefusal::kStaleIncarnation;
  // The fence: from here on nothing of the old channel is executed.
  if (worker.channel != nullptr)
    std::exchange(worker.channel, nullptr)->Fail(TcpError::kSuperseded);
  worker.incarnation = hello.incarnation;
  worker.channel = channel;
  return TcpRefusal::kNone;
}

void TcpServerCore::Fence(WorkerId id) {
  Worker& worker = workers[id.value];
  worker.fenced = true;
  if (worker.channel != nullptr) std::exchange(worker.channel, nullptr)->Fail(TcpError::kFenced);
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
  listener_watcher->WatchReads(false);
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

void TcpServerCore::LogPeer(uint64_t what, const std::string& line) {
  const uint64_t now_ns = executor.NowNs();
  for (const LoggedLine& logged : logged_) {
    if (logged.what == what && logged.time_ns != 0 && now_ns - logged.time_ns < kSameLineNs) return;
  }
  logged_[next_logged_++ % logged_.size()] = {.what = what, .time_ns = now_ns};
  LogWarning(line);
}

TcpServer::TcpServer(std::unique_ptr<TcpServerCore> core, uint16_t port)
    : core_(std::move(core)), port_(port) {}

Result<std::unique_ptr<TcpServer>> TcpServer::Start(MemoryEndpoint& endpoint, Secret secret,
                                                    const TcpServerOptions& options,
                                                    std::string* reason) {
  Result<UniqueFd> listener = ListenTcp(options.host, options.port, options.backlog, reason);
  if (!listener.ok()) return listener.status();
  const std::string address = LocalAddress(listener->get());
  if (!MayTalk(!secret.empty(), IsLoopbackAddress(address))) {
    *reason = "will not listen on " + address + ": " + TcpRefusalText(TcpRefusal::kSecretNeeded);
    return Status(StatusCode::kInvalidArgument, "no secret");
  }
  static const SystemClock clock;
  auto core = std::make_unique<TcpServerCore>(clock, endpoint, std::move(secret), options);
  const uint16_t port = LocalPort(listener->get());
  core->listener = std::move(*listener);
  core->listener_watcher = std::make_unique<FdWatcher>(
      core->executor, core->listener.get(),
      [](void* self) { static_cast<TcpServerCore*>(self)->Accept(); }, nullptr, core.get());
  core->listener_watcher->WatchReads(true);
  std::unique_ptr<TcpServer> server(new TcpServer(std::move(core), port));
  server->thread_ = std::thread([loop = &server->core_->executor] { loop->Run(); });
  return server;
}

TcpServer::~TcpServer() { Stop(); }

void TcpServer::Stop() {
  const std::lock_guard<std::mutex> lock(control_mutex_);
  if (std::exchange(stopped_, true)) return;
  core_->executor.Post([this] {
    core_->GoodbyeToAll();
    core_->executor.Stop();
  });
  thread_.join();
  // Peers see the end of their connections now.
  core_->listener_watcher.reset();
  core_->listener.Reset();
  core_->channels.clear();
  core_->channel_count.Set(0);
}

void TcpServer::RunThere(const std::function<void()>& fn) {
  const std::lock_guard<std::mutex> lock(control_mutex_);
  if (stopped_) return;
  // Shared: the waiter may be gone before set_value has returned.
  const auto done = std::make_shared<std::promise<void>>();
  core_->executor.Post([&fn, done] {
    fn();
    done->set_value();
  });
  done->get_future().wait();
}

void TcpServer::Fence(WorkerId worker) {
  RunThere([this, worker] { core_->Fence(worker); });
}

void TcpServer::SetEpoch(Epoch epoch) {
  RunThere([this, epoch] { core_->epoch = epoch; });
}

TcpServerStats TcpServer::stats() const {
  return {.channels = core_->channel_count.Value(),
          .frames = core_->frames.Value(),
          .operations = core_->operations.Value(),
          .welcomed = core_->welcomed.Value(),
          .refused = core_->refused.Value(),
          .errors = core_->errors.Value()};
}

uint64_t TcpServer::CpuNs() const {
  clockid_t clock{};
  timespec used{};
  auto thread = const_cast<std::thread&>(thread_).native_handle();
  if (pthread_getcpuclockid(thread, &clock) != 0 || clock_gettime(clock, &used) != 0) return 0;
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(used.tv_nsec);
}

}  // namespace onetrip
