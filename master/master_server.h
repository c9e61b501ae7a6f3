// MasterServer: the master as its process runs it: store, state machine, driver and gRPC, from
// Start to Stop. gRPC stays in the .cc files.
#ifndef ONETRIP_MASTER_MASTER_SERVER_H_
#define ONETRIP_MASTER_MASTER_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "client_core/base/clock.h"
#include "client_core/base/secret.h"
#include "client_core/base/status.h"
#include "master/coordinator.h"
#include "master/master_driver.h"
#include "master/store.h"

namespace onetrip {

struct MasterServerOptions {
  std::string listen = "127.0.0.1:7400";  // HOST:PORT; port 0: a free one
  CoordinatorOptions coordinator;
  DriverOptions driver;
  int message_bytes_max = 4096;       // for what a member says; a HELLO is no exception
  size_t queue_messages_max = 1024;   // unsent, of one stream; then it is dropped
  size_t queue_bytes_max = 16 << 20;  // likewise
};

struct StreamServerOptions {
  std::string listen;
  uint64_t handshake_timeout_ms = 2000;
  int message_bytes_max = 4096;
  size_t queue_messages_max = 1024;
  size_t queue_bytes_max = 16 << 20;
};

// Listens for streams and hands them on.
class StreamServer {
 public:
  // `events` outlives it.
  static Result<std::unique_ptr<StreamServer>> Start(const StreamServerOptions& options,
                                                     StreamEvents& events, std::string* reason);
  // Stops.
  ~StreamServer();
  // Ends what `events` has left. More than once.
  void Stop();
  // With the port that processes connect to.
  [[nodiscard]] std::string address() const;
  [[nodiscard]] uint16_t port() const;

 private:
  struct Core;
  explicit StreamServer(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

class MasterServer {
 public:
  // Loads the state from `store` and serves. `store` and `clock` outlive the server. Without a
  // secret the address must be loopback. On failure *reason says in one line what is wrong.
  static Result<std::unique_ptr<MasterServer>> Start(const MasterServerOptions& options,
                                                     Secret secret, Store& store,
                                                     const Clock& clock, std::string* reason);
  // Stops.
  ~MasterServer();

  // Ends all streams and what serves them. More than once.
  void Stop();

  // The port that processes connect to.
  [[nodiscard]] uint16_t port() const;
  // The address with that port.
  [[nodiscard]] std::string address() const;
  [[nodiscard]] uint64_t cluster() const;

 private:
  MasterServer() = default;

  std::unique_ptr<MasterDriver> driver_;
  std::unique_ptr<StreamServer> server_;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_MASTER_SERVER_H_
