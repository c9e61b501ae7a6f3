// Options: what a process was told, as plain structs.
//
// Filled once at start from defaults, config file, environment and flags, the later overriding the
// earlier; parameter_table.h has the rows. Immutable afterwards but for the fields that CONFIG SET
// may change, which the owner of the struct guards.
#ifndef ONETRIP_CLIENT_CORE_BASE_OPTIONS_H_
#define ONETRIP_CLIENT_CORE_BASE_OPTIONS_H_

#include <cstdint>
#include <string>

namespace onetrip {

// A client whose unsent replies exceed the hard limit, or the soft one for that long, is closed.
// 0: no such limit.
struct OutputBufferLimit {
  uint64_t hard_bytes = 0;
  uint64_t soft_bytes = 0;
  uint64_t soft_s = 0;

  bool operator==(const OutputBufferLimit&) const = default;
};

// By class of client. Replicas do not exist here; the class is kept for tools that set it.
struct OutputBufferLimits {
  OutputBufferLimit normal;
  OutputBufferLimit replica;
  OutputBufferLimit pubsub;

  bool operator==(const OutputBufferLimits&) const = default;
};

// The defaults are in the table; a default-constructed struct holds zeros, so take
// Default*Options() instead.

// The options of onetrip-agent.
struct AgentOptions {
  // Listening.
  uint64_t port = 0;  // 0: no TCP.
  std::string bind;
  std::string unixsocket;       // Path; empty: none.
  uint64_t unixsocketperm = 0;  // Mode bits; 0: as the umask leaves them.
  uint64_t tcp_backlog = 0;
  uint64_t threads = 0;

  // Storage.
  std::string engine;         // "swarm", "snapshot", "abd" or "raw".
  uint64_t memory_bytes = 0;  // Each embedded memory node has this much.
  uint64_t replicas = 0;      // Embedded memory nodes.
  uint64_t register_lanes = 0;
  uint64_t large_value_bytes = 0;
  uint64_t cache_bytes = 0;  // All workers have this much; 0: a share of the host's memory.
  uint64_t databases = 0;

  // Cluster.
  std::string master;       // HOST:PORT; empty: embedded.
  std::string fabric;       // "auto", "shm", "tcp" or "verbs".
  std::string device;       // The RDMA device; empty: the only one.
  int64_t gid_index = 0;    // The GID of its port; -1: the first of RoCE v2 with an IPv4 address.
  std::string secret_file;  // Path; empty: no secret.
  uint64_t connect_timeout_ms = 0;
  uint64_t busy_poll_us = 0;  // 0: sleeps at once.

  // Clients.
  std::string requirepass;       // Empty: no password.
  std::string pipeline_overlap;  // "yes", or "no": Redis's strict order.
  std::string protected_mode;    // "yes": without a password, clients of this host only; "no".
  uint64_t maxclients = 0;
  uint64_t timeout_s = 0;        // Idle clients are closed after it; 0: never.
  uint64_t tcp_keepalive_s = 0;  // 0: off.
  OutputBufferLimits output_limits;
  uint64_t query_buffer_bytes = 0;
  uint64_t bulk_bytes_max = 0;

  // Slow calls.
  int64_t slow_call_us = 0;  // SLOWLOG keeps calls from here on; -1: none.
  uint64_t slow_calls_max = 0;
  uint64_t latency_threshold_ms = 0;  // LATENCY samples calls from here on; 0: none.

  // Bounds of waiting.
  uint64_t op_timeout_ms = 0;
  uint64_t wait_polls_max = 0;
  uint64_t wait_timer_us = 0;
  uint64_t epoch_tick_ms = 0;

  std::string log_level;
};

// The options of onetrip-memnode.
struct MemnodeOptions {
  std::string master;         // HOST:PORT.
  uint64_t memory_bytes = 0;  // The node uses whole regions of it.
  std::string fabric;         // "shm", "tcp", "both" or "verbs".
  std::string device;         // The RDMA device; empty: the only one.
  int64_t gid_index = 0;      // The GID of its port; -1: the first of RoCE v2 with an IPv4 address.
  std::string listen;         // HOST:PORT, for tcp; port 0: a free one.
  std::string socket;         // Path of the unix socket, for shm; empty: derived.
  std::string backing;        // Path of a file; empty: memory that ends with its users.
  std::string accept_damaged;  // "yes": serve a damaged file as it is; "no": wait for copies.
  std::string secret_file;     // Path; empty: no secret.
  uint64_t connect_timeout_ms = 0;
  uint64_t busy_poll_us = 0;  // 0: sleeps at once.
  // How long the node waits for agents that map its memory: of an earlier life, before they are
  // killed; fenced and killed; those that see it stop.
  uint64_t former_grace_ms = 0;
  uint64_t fence_timeout_ms = 0;
  uint64_t detach_timeout_ms = 0;
  std::string log_level;
};

// The options of onetrip-master.
struct MasterOptions {
  std::string listen;    // HOST:PORT; port 0: a free one.
  std::string data_dir;  // Path.
  uint64_t replicas = 0;
  uint64_t nodes = 0;  // That must have joined before there is a map.
  uint64_t lease_ms = 0;
  uint64_t replace_node_after_s = 0;
  std::string secret_file;  // Path; empty: no secret.
  std::string log_level;
};

// Every field at its default; those that must be given are empty. Any thread.
AgentOptions DefaultAgentOptions();
MemnodeOptions DefaultMemnodeOptions();
MasterOptions DefaultMasterOptions();

enum class ParseAction : uint8_t {
  kRun,    // *options is complete.
  kPrint,  // --help or --version: print *message to stdout and exit with 0.
  kFail,   // Print *message, one line, to stderr and exit with 1.
};

// Each reads the program's flags, environment and config file. Neither prints nor exits. *options
// is defined only for kRun. Main thread, before others start (it reads the environment).
ParseAction ParseAgentOptions(int argc, const char* const* argv, AgentOptions* options,
                              std::string* message);
ParseAction ParseMemnodeOptions(int argc, const char* const* argv, MemnodeOptions* options,
                                std::string* message);
ParseAction ParseMasterOptions(int argc, const char* const* argv, MasterOptions* options,
                               std::string* message);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_OPTIONS_H_
