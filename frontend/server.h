// Server: the RESP side of an agent: listeners, workers, and what they share.
//
// Worker 0 owns the listeners and deals connections out in turn; a connection then stays where it
// is. What the process tells about itself (CLIENT LIST, INFO) is gathered by posting to workers.
#ifndef ONETRIP_FRONTEND_SERVER_H_
#define ONETRIP_FRONTEND_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/base/options.h"
#include "client_core/base/status.h"
#include "client_core/coro/acceptor.h"
#include "client_core/coro/task.h"
#include "frontend/connection.h"
#include "frontend/storage/storage.h"
#include "frontend/worker.h"
#include "redis_compat/dispatch/observation.h"
#include "redis_compat/parameters.h"

namespace onetrip {

class Server {
 public:
  // Makes what commands ask of the process on one worker; both outlive it.
  using MakeHooks = std::function<std::unique_ptr<ServerHooks>(Server&, Worker&)>;

  // `clock` and `storage` outlive the server.
  Server(const AgentOptions& options, const Clock& clock, Storage& storage,
         const MakeHooks& make_hooks);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  // REQUIRES: never started, or stopped.
  ~Server();

  // Opens the listeners, then starts the workers. On failure nothing is left running and `reason`
  // is one line for a person.
  Status Start(std::string* reason);
  // Ends every connection after the replies to what it has executed, gives the store back and joins
  // the workers. Main thread.
  void Stop();

  // Where TCP clients connect; 0 without TCP. Differs from the option only if that was 0 in a test.
  [[nodiscard]] uint16_t tcp_port() const { return tcp_port_; }
  [[nodiscard]] const AgentOptions& options() const { return options_; }
  [[nodiscard]] const Clock& clock() const { return clock_; }
  [[nodiscard]] const Storage& storage() const { return storage_; }
  [[nodiscard]] ServerConfig& config() { return config_; }
  [[nodiscard]] Observation& observation() { return observation_; }
  [[nodiscard]] ClientLimits& limits() { return limits_; }
  [[nodiscard]] const std::string& run_id() const { return run_id_; }
  [[nodiscard]] uint64_t started_ns() const { return started_ns_; }
  [[nodiscard]] uint64_t started_at_unix_s() const { return started_at_unix_s_; }
  [[nodiscard]] uint64_t open_clients() const { return open_clients_.load(); }
  [[nodiscard]] std::span<const std::unique_ptr<Worker>> workers() const { return workers_; }

  // How many clients the process may serve if it opens as many descriptors as the system lets it;
  // asks for as many as `wanted` clients need. 0: not even what it needs itself.
  [[nodiscard]] uint64_t ClientsAllowed(uint64_t wanted) const;

  // Runs fn on every worker's thread, `home`'s directly, and ends on `home` when all have. Calls
  // run at the same time: let each write to a place of its own.
  Task<void> OnEveryWorker(Worker& home, std::function<void(Worker&)> fn);

  // Listens on a free TCP port instead of options().port; before Start().
  void TEST_UseFreePort() { use_free_port_ = true; }

 private:
  void PublishOptions();
  // Lowers maxclients to what the process may open. False: that is not even one.
  bool FitClientsToDescriptors(std::string* reason);
  Status Listen(std::vector<UniqueFd>* listeners, std::string* reason);
  void AttachListener(UniqueFd listener, std::string_view unix_path);
  // On worker 0.
  void OnAccept(UniqueFd fd, std::string_view unix_path);
  // True if protected mode keeps the client out.
  [[nodiscard]] bool IsStranger(const UniqueFd& fd, std::string_view unix_path) const;
  void Refuse(UniqueFd fd, std::string_view error);

  const AgentOptions options_;
  const Clock& clock_;
  Storage& storage_;
  ServerConfig config_;
  ClientLimits limits_;
  Observation observation_;
  PoolWatch pool_watch_;
  std::string run_id_;
  uint64_t started_ns_;
  uint64_t started_at_unix_s_;
  uint16_t tcp_port_ = 0;
  bool use_free_port_ = false;

  std::atomic<uint64_t> open_clients_{0};
  std::vector<std::unique_ptr<Worker>> workers_;
  // Worker 0's.
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  uint64_t next_client_id_ = 1;
  size_t next_worker_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_SERVER_H_
