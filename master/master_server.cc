#include "master/master_server.h"

#include <grpc/support/log.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/resource_quota.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <mutex>
#include <utility>

#include "client_core/base/address.h"
#include "client_core/base/held_by_predecessor.h"
#include "client_core/base/log.h"
#include "master/master_stream.h"

namespace onetrip {
namespace {

constexpr size_t kQuotaBytes = 64 << 20;
constexpr int kStreamsPerConnectionMax = 256;
constexpr int kIdleConnectionMs = 30'000;

// The library writes its own lines to stderr; they are of use to its developers only.
void QuietLibrary() {
  static std::once_flag once;
  std::call_once(
      once, [] { gpr_set_log_function([](gpr_log_func_args* args) { LogDebug(args->message); }); });
}

bool SplitAddress(const std::string& address, std::string* host, std::string* port) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) return false;
  *host = address.substr(0, colon);
  *port = address.substr(colon + 1);
  if (host->size() > 2 && host->front() == '[' && host->back() == ']') {
    *host = host->substr(1, host->size() - 2);
  }
  return !host->empty();
}

// Why nothing can listen at `address`, for the library tells only that it failed; empty: it can.
// *in_use: something else does.
std::string WhyNotListen(const std::string& address, bool* in_use) {
  *in_use = false;
  std::string host;
  std::string port;
  if (!SplitAddress(address, &host, &port)) return "it is no HOST:PORT";
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (code != 0) return gai_strerror(code);
  std::string why;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int one = 1;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (fd < 0 || bind(fd, found->ai_addr, found->ai_addrlen) != 0 || listen(fd, 1) != 0) {
    *in_use = errno == EADDRINUSE;
    why = std::strerror(errno);
  }
  if (fd >= 0) close(fd);
  freeaddrinfo(found);
  return why;
}

uint64_t FreshName() {
  uint64_t name = 0;
  while (name == 0) FillRandom(std::as_writable_bytes(std::span(&name, 1)));
  return name;
}

}  // namespace

struct StreamServer::Core {
  std::string host;
  int port = 0;
  std::unique_ptr<MasterService> service;
  std::unique_ptr<grpc::Server> server;
};

StreamServer::StreamServer(std::unique_ptr<Core> core) : core_(std::move(core)) {}

StreamServer::~StreamServer() { Stop(); }

Result<std::unique_ptr<StreamServer>> StreamServer::Start(const StreamServerOptions& options,
                                                          StreamEvents& events,
                                                          std::string* reason) {
  QuietLibrary();
  auto core = std::make_unique<Core>();
  core->service =
      std::make_unique<MasterService>(events, options.queue_messages_max, options.queue_bytes_max);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &core->port);
  builder.RegisterService(static_cast<grpc::Service*>(core->service->service()));
  builder.SetResourceQuota(grpc::ResourceQuota("master").Resize(kQuotaBytes));
  builder.SetMaxReceiveMessageSize(options.message_bytes_max);
  // A message that is small on the wire must not be large in memory.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  // Two masters on one port would each have half of the members.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnectionMax);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                             static_cast<int>(options.handshake_timeout_ms));
  // Leases and deadlines find peers that are gone; the library's own ways of asking whether they
  // are there, and how fast they are, cost an idle cluster more than all the rest.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, INT_MAX);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  // Members may ask as often as they like whether the master is there.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  std::string why_not;
  const bool is_free = TryUntilPredecessorEnds([&] {
    bool in_use = false;
    why_not = WhyNotListen(options.listen, &in_use);
    return !in_use;
  });
  if (is_free) core->server = builder.BuildAndStart();
  if (core->server == nullptr || core->port == 0) {
    *reason = "cannot listen on " + options.listen + ": " +
              (why_not.empty() ? "the address cannot be used" : why_not);
    return Status(StatusCode::kUnavailable, "cannot listen");
  }
  core->host = options.listen.substr(0, options.listen.rfind(':'));
  return std::unique_ptr<StreamServer>(new StreamServer(std::move(core)));
}

void StreamServer::Stop() {
  if (core_->server == nullptr) return;
  core_->server->Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(1));
  core_->server->Wait();
  core_->server.reset();
}

uint16_t StreamServer::port() const { return static_cast<uint16_t>(core_->port); }

std::string StreamServer::address() const {
  return core_->host + ":" + std::to_string(core_->port);
}

MasterServer::~MasterServer() { Stop(); }

Result<std::unique_ptr<MasterServer>> MasterServer::Start(const MasterServerOptions& options,
                                                          Secret secret, Store& store,
                                                          const Clock& clock, std::string* reason) {
  if (!MayTalk(!secret.empty(), IsLoopbackAddress(options.listen))) {
    *reason = "will not listen on " + options.listen +
              " without a secret: give a --secret-file, or a numeric loopback address";
    return Status(StatusCode::kInvalidArgument, "the master cannot start");
  }
  const Result<DurableState> durable = store.Load(reason);
  if (!durable.ok()) return durable.status();
  Result<Coordinator> coordinator =
      Coordinator::Create(options.coordinator, durable.value(), FreshName(), FreshName(),
                          clock.NowNs() / 1000, clock.UnixUs(), reason);
  if (!coordinator.ok()) return coordinator.status();

  std::unique_ptr<MasterServer> master(new MasterServer);
  master->driver_ = std::make_unique<MasterDriver>(options.driver, std::move(*coordinator),
                                                   std::move(secret), clock, store);
  const StreamServerOptions streams{.listen = options.listen,
                                    .handshake_timeout_ms = options.driver.handshake_timeout_ms,
                                    .message_bytes_max = options.message_bytes_max,
                                    .queue_messages_max = options.queue_messages_max,
                                    .queue_bytes_max = options.queue_bytes_max};
  Result<std::unique_ptr<StreamServer>> server =
      StreamServer::Start(streams, *master->driver_, reason);
  if (!server.ok()) return server.status();
  master->server_ = std::move(*server);
  // Streams that come before wait in the driver's queue.
  const Status started = master->driver_->Start(reason);
  if (!started.ok()) return started;
  return master;
}

void MasterServer::Stop() {
  if (driver_ != nullptr) driver_->Stop();
  if (server_ != nullptr) server_->Stop();
}

uint16_t MasterServer::port() const { return server_->port(); }

std::string MasterServer::address() const { return server_->address(); }

uint64_t MasterServer::cluster() const { return driver_->cluster(); }

}  // namespace onetrip
