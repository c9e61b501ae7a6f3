#include "frontend/server.h"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <random>
#include <utility>

#include "client_core/base/log.h"
#include "client_core/base/parameter_table.h"
#include "client_core/base/parameter_values.h"
#include "client_core/coro/sync.h"

namespace onetrip {
namespace {

// Descriptors that are no client's: listeners, loops, logs.
constexpr uint64_t kReservedDescriptors = 64;
// Its loop, and its channels to memory nodes.
constexpr uint64_t kReservedPerWorker = 16;

// Redis's own words.
constexpr std::string_view kProtectedModeError =
    "-DENIED Redis is running in protected mode because protected mode is enabled and no password "
    "is set for the default user. In this mode connections are only accepted from the loopback "
    "interface. If you want to connect from external computers to Redis you may adopt one of the "
    "following solutions: 1) Just disable protected mode sending the command 'CONFIG SET "
    "protected-mode no' from the loopback interface by connecting to Redis from the same host the "
    "server is running, however MAKE SURE Redis is not publicly accessible from internet if you do "
    "so. Use CONFIG REWRITE to make this change permanent. 2) Alternatively you can just disable "
    "the protected mode by editing the Redis configuration file, and setting the protected mode "
    "option to 'no', and then restarting the server. 3) If you started the server manually just "
    "for testing, restart it with the '--protected-mode no' option. 4) Setup a an authentication "
    "password for the default user. NOTE: You only need to do one of the above things in order for "
    "the server to start accepting connections from the outside.\r\n";

std::string MakeRunId() {
  std::random_device random;
  constexpr char kDigits[] = "0123456789abcdef";
  std::string id;
  for (int i = 0; i < 40; ++i) id.push_back(kDigits[random() % 16]);
  return id;
}

uint64_t MakeSeed() {
  std::random_device random;
  return (uint64_t{random()} << 32) | random();
}

// Raises the limit of open descriptors as far as it goes towards `wanted`, as Redis does; returns
// it.
uint64_t RaiseDescriptorLimit(rlim_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  // Only root may go above the hard limit.
  const rlimit raised{wanted, std::max(wanted, limit.rlim_max)};
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return wanted;
  const rlimit most{limit.rlim_max, limit.rlim_max};
  return setrlimit(RLIMIT_NOFILE, &most) == 0 ? limit.rlim_max : limit.rlim_cur;
}

}  // namespace

Server::Server(const AgentOptions& options, const Clock& clock, Storage& storage,
               const MakeHooks& make_hooks)
    : options_(options),
      clock_(clock),
      storage_(storage),
      run_id_(MakeRunId()),
      started_ns_(clock.NowNs()),
      started_at_unix_s_(clock.UnixUs() / 1'000'000) {
  PublishOptions();
  const uint64_t seed = MakeSeed();
  const WorkerEnvironment environment{clock_,  storage_,    config_,
                                      limits_, pool_watch_, open_clients_};
  for (uint32_t i = 0; i < options_.threads; ++i) {
    workers_.push_back(std::make_unique<Worker>(environment, i, seed));
    workers_.back()->SetHooks(make_hooks(*this, *workers_.back()));
  }
}

Server::~Server() { CHECK(acceptors_.empty()); }

// CONFIG shows what the process was started with.
void Server::PublishOptions() {
  for (const ParameterRow& row : ParameterTable()) {
    if (row.config == ConfigUse::kNone || (row.users & kUserAgent) == 0) continue;
    (void)config_.SetByServer(row.name, ParameterText(row, options_));
  }
  limits_.Take(options_);
}

Status Server::Listen(std::vector<UniqueFd>* listeners, std::string* reason) {
  const auto backlog = static_cast<int>(options_.tcp_backlog);
  if (options_.port != 0 || use_free_port_) {
    const auto port = static_cast<uint16_t>(use_free_port_ ? 0 : options_.port);
    Result<UniqueFd> listener = ListenTcp(options_.bind, port, backlog, reason);
    if (!listener.ok()) return listener.status();
    tcp_port_ = LocalPort(listener->get());
    listeners->push_back(std::move(listener.value()));
  }
  if (!options_.unixsocket.empty()) {
    Result<UniqueFd> listener = ListenUnix(
        options_.unixsocket, static_cast<unsigned>(options_.unixsocketperm), backlog, reason);
    if (!listener.ok()) return listener.status();
    listeners->push_back(std::move(listener.value()));
  }
  if (!listeners->empty()) return Status::Ok();
  *reason = "nowhere to listen: give --port or --unixsocket";
  return Status(StatusCode::kInvalidArgument, "nowhere to listen");
}

uint64_t Server::ClientsAllowed(uint64_t wanted) const {
  const uint64_t own = kReservedDescriptors + workers_.size() * kReservedPerWorker;
  const uint64_t open_max = RaiseDescriptorLimit(wanted + own);
  return open_max > own ? std::min(wanted, open_max - own) : 0;
}

bool Server::FitClientsToDescriptors(std::string* reason) {
  const uint64_t wanted = config_.max_clients();
  const uint64_t allowed = ClientsAllowed(wanted);
  if (allowed == wanted) return true;
  if (allowed == 0) {
    *reason = "the process may open too few descriptors even for itself: raise 'ulimit -n' to " +
              std::to_string(wanted + kReservedDescriptors + workers_.size() * kReservedPerWorker);
    return false;
  }
  LogWarning("maxclients has been reduced from " + std::to_string(wanted) + " to " +
             std::to_string(allowed) +
             " to compensate for low ulimit; if you need higher maxclients increase 'ulimit -n'");
  return config_.SetByServer("maxclients", std::to_string(allowed));
}

Status Server::Start(std::string* reason) {
  if (!FitClientsToDescriptors(reason)) {
    return Status(StatusCode::kInvalidArgument, "too few descriptors");
  }
  std::vector<UniqueFd> listeners;
  Status status = Listen(&listeners, reason);
  if (!status.ok()) return status;
  for (size_t i = 0; i < workers_.size(); ++i) {
    status = workers_[i]->Start();
    if (status.ok()) continue;
    const std::string why = storage_.join_error();
    *reason =
        "worker " + std::to_string(i) + " cannot join the cluster: " +
        (why.empty() ? std::string(StatusCodeName(status.code())) + ", " + status.message() : why);
    for (size_t j = 0; j < i; ++j) {
      workers_[j]->CloseConnections([] {});
      workers_[j]->StopAndJoin();
    }
    return status;
  }
  for (size_t i = 0; i < listeners.size(); ++i) {
    const bool is_unix = i + 1 == listeners.size() && !options_.unixsocket.empty();
    AttachListener(std::move(listeners[i]), is_unix ? options_.unixsocket : std::string_view());
  }
  return Status::Ok();
}

void Server::AttachListener(UniqueFd listener, std::string_view unix_path) {
  // A function to post must be copyable, a descriptor with an owner is not.
  workers_[0]->Post([this, fd = listener.Release(), unix_path] {
    acceptors_.push_back(std::make_unique<Acceptor>(
        workers_[0]->executor(), UniqueFd(fd),
        [this, unix_path](UniqueFd accepted) { OnAccept(std::move(accepted), unix_path); }));
  });
}

bool Server::IsStranger(const UniqueFd& fd, std::string_view unix_path) const {
  if (!unix_path.empty() || !config_.protected_mode() || config_.password_required()) return false;
  const std::string peer = PeerAddress(fd.get());
  return !peer.starts_with("127.0.0.1:") && !peer.starts_with("[::1]:");
}

void Server::Refuse(UniqueFd fd, std::string_view error) {
  workers_[0]->CountRejected();
  // A client that does not take these few bytes at once has lost nothing.
  (void)!send(fd.get(), error.data(), error.size(), MSG_NOSIGNAL);
}

void Server::OnAccept(UniqueFd fd, std::string_view unix_path) {
  if (open_clients_.load(std::memory_order_relaxed) >= config_.max_clients()) {
    return Refuse(std::move(fd), "-ERR max number of clients reached\r\n");
  }
  if (IsStranger(fd, unix_path)) return Refuse(std::move(fd), kProtectedModeError);
  open_clients_.fetch_add(1, std::memory_order_relaxed);
  const uint64_t id = next_client_id_++;
  Worker& worker = *workers_[next_worker_++ % workers_.size()];
  if (worker.index() == 0) {
    worker.Adopt(std::move(fd), id, unix_path);
  } else {
    worker.Post([&worker, raw = fd.Release(), id, unix_path] {
      worker.Adopt(UniqueFd(raw), id, unix_path);
    });
  }
}

Task<void> Server::OnEveryWorker(Worker& home, std::function<void(Worker&)> fn) {
  Event all_done(home.executor());
  size_t left = 1;  // Touched by home's thread only.
  const auto count_down = [&left, &all_done] {
    if (--left == 0) all_done.Set();
  };
  for (const std::unique_ptr<Worker>& worker : workers_) {
    if (worker.get() == &home) continue;
    ++left;
    worker->Post([&fn, &home, &count_down, target = worker.get()] {
      fn(*target);
      home.Post(count_down);
    });
  }
  fn(home);
  count_down();
  co_await all_done.Wait();
}

void Server::Stop() {
  std::promise<void> detached;
  workers_[0]->Post([this, &detached] {
    acceptors_.clear();
    detached.set_value();
  });
  detached.get_future().wait();
  if (!options_.unixsocket.empty()) unlink(options_.unixsocket.c_str());
  // All loops run until the last connection has ended: a command may be waiting for another worker.
  std::vector<std::promise<void>> closed(workers_.size());
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i]->CloseConnections([&closed, i] { closed[i].set_value(); });
  }
  for (std::promise<void>& promise : closed) promise.get_future().wait();
  for (const std::unique_ptr<Worker>& worker : workers_) worker->StopAndJoin();
}

}  // namespace onetrip
