#include "client_core/base/parameter_table.h"

namespace onetrip {
namespace {

using Type = ParameterType;

constexpr int64_t kMiB = 1024 * 1024;
constexpr int64_t kTiB = 1024 * 1024 * kMiB;
constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kUint32Max = std::numeric_limits<uint32_t>::max();
constexpr uint8_t kEverybody = kUserAgent | kUserMemnode | kUserMaster;

constexpr const char* kChosenAtStart = "it is chosen when the agent starts";
constexpr const char* kWritesNoFile =
    "an agent writes no file: replicas on memory nodes keep the data, and memory nodes with "
    "--backing keep it over restarts";
constexpr const char* kNoDefragmentation =
    "Active defragmentation cannot be enabled: values lie in the pool of memory nodes";

// clang-format off
constexpr ParameterRow kRows[] = {
    {.name = "config", .type = Type::kPath,
     .help = "TOML file of options by the names below; environment and flags override it",
     .users = kEverybody},
    {.name = "log-level", .type = Type::kChoice, .default_text = "info",
     .choices = "debug|info|warning|error|off",
     .help = "Least important lines to log",
     .users = kEverybody,
     .fields = {.agent = &AgentOptions::log_level, .memnode = &MemnodeOptions::log_level,
                .master = &MasterOptions::log_level}},

    {.name = "master", .type = Type::kAddress,
     .help = "Master of the cluster to join; empty to embed a cluster of its own",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::master}},
    {.name = "master", .type = Type::kAddress, .is_required = true,
     .help = "Master of the cluster to join",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::master}},
    {.name = "listen", .type = Type::kAddress, .default_text = "127.0.0.1:0",
     .help = "Where agents reach the node over tcp; port 0 for a free one, beyond this host only "
             "with a secret",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::listen}},
    {.name = "listen", .type = Type::kAddress, .default_text = "127.0.0.1:7400",
     .help = "Where members reach the master; port 0 for a free one, beyond this host only with a "
             "secret",
     .users = kUserMaster, .fields = {.master = &MasterOptions::listen}},
    {.name = "data-dir", .type = Type::kPath, .is_required = true,
     .help = "Directory of the cluster's membership, which outlives the master",
     .users = kUserMaster, .fields = {.master = &MasterOptions::data_dir}},
    {.name = "nodes", .type = Type::kInteger, .default_text = "3", .unit = "nodes", .min = 1,
     .max = 256,
     .help = "Memory nodes that must have joined before the cluster map is made",
     .users = kUserMaster, .fields = {.master = &MasterOptions::nodes}},
    {.name = "replicas", .type = Type::kInteger, .default_text = "3", .unit = "nodes", .min = 1,
     .max = 5,
     .help = "Memory nodes that hold each region",
     .users = kUserMaster, .fields = {.master = &MasterOptions::replicas}},
    {.name = "lease-ms", .type = Type::kInteger, .default_text = "1000", .unit = "ms", .min = 100,
     .max = 60000,
     .help = "Take a member that was silent for this long for dead",
     .users = kUserMaster, .fields = {.master = &MasterOptions::lease_ms}},
    {.name = "replace-node-after-s", .type = Type::kInteger, .default_text = "10", .unit = "s",
     .max = 86400,
     .help = "Give the places of a memory node that is lost for this long to others that have room",
     .users = kUserMaster, .fields = {.master = &MasterOptions::replace_node_after_s}},
    {.name = "fabric", .type = Type::kChoice, .default_text = "auto",
     .choices = "auto|shm|tcp|verbs",
     .help = "How memory nodes are reached; auto: over shm those of this host that offer it, else "
             "over RDMA (verbs) those that serve it, else over tcp",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::fabric}},
    {.name = "fabric", .type = Type::kChoice, .default_text = "both",
     .choices = "shm|tcp|both|verbs",
     .help = "How agents may reach this memory node; verbs: over RDMA alone",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::fabric}},
    {.name = "device", .type = Type::kText,
     .help = "RDMA device, for verbs; empty for the only one that the host has",
     .users = kUserAgent | kUserMemnode,
     .fields = {.agent = &AgentOptions::device, .memnode = &MemnodeOptions::device}},
    {.name = "gid-index", .type = Type::kInteger, .default_text = "-1", .min = -1, .max = 255,
     .help = "Which GID of the RDMA device's port, for verbs; -1 for the first of RoCE v2 with an "
             "IPv4 address",
     .users = kUserAgent | kUserMemnode,
     .fields = {.agent = &AgentOptions::gid_index, .memnode = &MemnodeOptions::gid_index}},
    {.name = "secret-file", .type = Type::kPath,
     .help = "File, of mode 0600, with the secret that the cluster's processes share; empty for "
             "none",
     .users = kEverybody,
     .fields = {.agent = &AgentOptions::secret_file, .memnode = &MemnodeOptions::secret_file,
                .master = &MasterOptions::secret_file}},
    {.name = "connect-timeout-ms", .type = Type::kInteger, .default_text = "10000", .unit = "ms",
     .min = 1, .max = 3600000,
     .help = "Give up at start when the master has not answered within this time",
     .users = kUserAgent | kUserMemnode,
     .fields = {.agent = &AgentOptions::connect_timeout_ms,
                .memnode = &MemnodeOptions::connect_timeout_ms}},
    {.name = "busy-poll-us", .type = Type::kInteger, .default_text = "0", .unit = "us",
     .max = 1000000,
     .help = "Look for answers over a network without sleeping for this long after the last one; "
             "0 to sleep at once, over RDMA after 50",
     .users = kUserAgent | kUserMemnode,
     .fields = {.agent = &AgentOptions::busy_poll_us, .memnode = &MemnodeOptions::busy_poll_us}},

    {.name = "port", .type = Type::kInteger, .default_text = "6379", .max = 65535,
     .help = "TCP port to listen on; 0 for none",
     .users = kUserAgent, .config = ConfigUse::kSet, .fixed_because = kChosenAtStart,
     .fields = {.agent = &AgentOptions::port}},
    {.name = "bind", .type = Type::kText, .default_text = "127.0.0.1",
     .help = "Address to listen on",
     .users = kUserAgent, .config = ConfigUse::kSet, .fixed_because = kChosenAtStart,
     .fields = {.agent = &AgentOptions::bind}},
    {.name = "unixsocket", .type = Type::kPath,
     .help = "Unix socket to listen on; empty for none",
     .users = kUserAgent, .config = ConfigUse::kShown,
     .fields = {.agent = &AgentOptions::unixsocket}},
    {.name = "unixsocketperm", .type = Type::kOctal, .default_text = "0", .max = 0777,
     .help = "Permissions of the unix socket; 0 leaves them to the umask",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::unixsocketperm}},
    {.name = "tcp-backlog", .type = Type::kInteger, .default_text = "511", .unit = "connections",
     .min = 1, .max = 65535,
     .help = "Connections that may wait to be accepted",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::tcp_backlog}},
    {.name = "threads", .type = Type::kInteger, .default_text = "1", .unit = "threads", .min = 1,
     .max = 64,
     .help = "Workers; each serves its own connections on a core of its own",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::threads}},

    {.name = "engine", .type = Type::kChoice, .default_text = "swarm",
     .choices = "swarm|snapshot|raw|abd",
     .help = "How keys are written: swarm as registers in one round trip, snapshot as records in "
             "three; for comparison: abd as registers in two, raw as one copy",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::engine}},
    {.name = "memory", .type = Type::kSize, .default_text = "1GiB", .min = 8 * kMiB,
     .max = 64 * kTiB,
     .help = "Memory of each embedded memory node",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::memory_bytes}},
    {.name = "replicas", .type = Type::kInteger, .default_text = "3", .unit = "nodes", .min = 1,
     .max = 5,
     .help = "Embedded memory nodes, each of which holds everything: 1 takes the least memory, "
             "for a cache; a cluster's master decides for its agents",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::replicas}},
    {.name = "memory", .type = Type::kSize, .default_text = "1GiB", .min = 16 * kMiB,
     .max = 64 * kTiB,
     .help = "Memory of the node, in whole 16 MiB",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::memory_bytes}},
    {.name = "socket", .type = Type::kPath,
     .help = "Unix socket at which agents of this host get the memory; empty to derive one from "
             "the runtime directory",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::socket}},
    {.name = "backing", .type = Type::kPath,
     .help = "File that keeps the memory when the node ends; empty for memory that ends with its "
             "users",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::backing}},
    {.name = "accept-damaged", .type = Type::kYesNo, .default_text = "no",
     .help = "Serve a backing file that is damaged as it is, instead of waiting to get its "
             "regions from other nodes; for one start, when no others have them",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::accept_damaged}},
    {.name = "former-grace-ms", .type = Type::kInteger, .default_text = "500", .unit = "ms",
     .max = 600000,
     .help = "Kill agents that still use the backing file of an earlier life after this time",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::former_grace_ms}},
    {.name = "fence-timeout-ms", .type = Type::kInteger, .default_text = "2000", .unit = "ms",
     .min = 1, .max = 600000,
     .help = "Tell the master that a fence is not done when a killed agent has not ended after "
             "this time",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::fence_timeout_ms}},
    {.name = "detach-timeout-ms", .type = Type::kInteger, .default_text = "1000", .unit = "ms",
     .max = 600000,
     .help = "Leave a backing file marked as in use at the end when agents still map it after this "
             "time",
     .users = kUserMemnode, .fields = {.memnode = &MemnodeOptions::detach_timeout_ms}},
    {.name = "cache-memory", .type = Type::kSize, .default_text = "0", .max = kTiB,
     .help = "What the agent may take to remember where keys are, 64 to 370 bytes for each; others "
             "take more round trips; 0 for an eighth of the host's memory",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::cache_bytes}},
    {.name = "register-lanes", .type = Type::kInteger, .default_text = "1", .min = 1, .max = 32,
     .help = "Metadata words of new registers, which writers spread over where a fabric has no MAX",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::register_lanes}},
    {.name = "databases", .type = Type::kInteger, .default_text = "16", .unit = "databases",
     .min = 1, .max = 1024,
     .help = "Databases that SELECT may choose from",
     .users = kUserAgent, .config = ConfigUse::kShown,
     .fields = {.agent = &AgentOptions::databases},
     .live = &LiveOptions::databases},

    {.name = "requirepass", .type = Type::kText,
     .help = "Password that AUTH must give; empty for none",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::requirepass},
     .live = &LiveOptions::has_password},
    {.name = "protected-mode", .type = Type::kYesNo, .default_text = "yes",
     .help = "Without a password, take connections from 127.0.0.1 and ::1 only",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::protected_mode},
     .live = &LiveOptions::protected_mode},
    {.name = "pipeline-overlap", .type = Type::kYesNo, .default_text = "yes",
     .help = "Over a network, run commands of one pipeline on different keys at the same time",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::pipeline_overlap},
     .live = &LiveOptions::pipeline_overlap},
    {.name = "maxclients", .type = Type::kInteger, .default_text = "10000", .unit = "clients",
     .min = 1, .max = kUint32Max,
     .help = "Connections served at a time",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::maxclients},
     .live = &LiveOptions::maxclients},
    {.name = "timeout", .type = Type::kInteger, .default_text = "0", .unit = "s", .max = kInt32Max,
     .help = "Close clients that are idle for this long; 0 for never",
     .users = kUserAgent, .config = ConfigUse::kSet, .fields = {.agent = &AgentOptions::timeout_s},
     .live = &LiveOptions::timeout_s},
    {.name = "tcp-keepalive", .type = Type::kInteger, .default_text = "300", .unit = "s",
     .max = kInt32Max,
     .help = "Probe connections that are silent for this long; 0 for never",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::tcp_keepalive_s}},
    {.name = "client-output-buffer-limit", .type = Type::kOutputLimits,
     .default_text = "normal 256mb 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60",
     .unit = "bytes bytes s",
     .help = "Unsent replies at which a client is closed: class, hard limit, soft limit, seconds "
             "above it",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::output_limits}},
    {.name = "client-query-buffer-limit", .type = Type::kSize, .default_text = "1GiB", .min = kMiB,
     .help = "Unfinished command at which a client is closed",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::query_buffer_bytes},
     .live = &LiveOptions::query_buffer_bytes},
    {.name = "proto-max-bulk-len", .type = Type::kSize, .default_text = "512MiB", .min = kMiB,
     .max = 512 * kMiB,
     .help = "Largest argument a command may carry; Redis goes no lower, values go no higher",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::bulk_bytes_max},
     .live = &LiveOptions::bulk_bytes_max},
    {.name = "large-value-memory", .type = Type::kSize, .default_text = "1GiB", .min = 4 * kMiB,
     .max = kTiB,
     .help = "For values above 1 MiB on their way: half for requests, half for values read; "
             "others wait",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::large_value_bytes}},

    {.name = "op-timeout-ms", .type = Type::kInteger, .default_text = "5000", .unit = "ms",
     .min = 1, .max = 3600000,
     .help = "Give an operation on the memory nodes up after this time",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::op_timeout_ms}},
    {.name = "wait-polls-max", .type = Type::kInteger, .default_text = "64", .unit = "polls",
     .max = 65536,
     .help = "Looks at another worker's unfinished write before waiting by timer",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::wait_polls_max}},
    {.name = "wait-timer-us", .type = Type::kInteger, .default_text = "50", .unit = "us", .min = 1,
     .max = 1000000,
     .help = "First timer of such a wait; later ones are longer",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::wait_timer_us}},
    {.name = "epoch-tick-ms", .type = Type::kInteger, .default_text = "10", .unit = "ms", .min = 1,
     .max = 60000,
     .help = "Interval at which freed memory is examined for reuse",
     .users = kUserAgent, .fields = {.agent = &AgentOptions::epoch_tick_ms}},

    {.name = "slowlog-log-slower-than", .type = Type::kInteger, .default_text = "10000",
     .unit = "us", .min = -1,
     .help = "SLOWLOG keeps calls that took at least this long; -1 for none",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::slow_call_us}, .live = &LiveOptions::slow_call_us},
    {.name = "slowlog-max-len", .type = Type::kInteger, .default_text = "128", .unit = "calls",
     .help = "Calls that SLOWLOG keeps",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::slow_calls_max}, .live = &LiveOptions::slow_calls_max},
    {.name = "latency-monitor-threshold", .type = Type::kInteger, .default_text = "0", .unit = "ms",
     .help = "LATENCY samples calls that took at least this long; 0 for none",
     .users = kUserAgent, .config = ConfigUse::kSet,
     .fields = {.agent = &AgentOptions::latency_threshold_ms},
     .live = &LiveOptions::latency_threshold_ms},

    // CONFIG alone has these, but they rule something here.
    {.name = "maxmemory", .type = Type::kSize, .default_text = "0", .config = ConfigUse::kSet,
     .fixed_because = "it is what the pool of memory nodes holds, which is chosen when the cluster "
                      "is made"},
    {.name = "maxmemory-policy", .type = Type::kChoice, .default_text = "noeviction",
     .choices = "volatile-lru|volatile-lfu|volatile-random|volatile-ttl|allkeys-lru|allkeys-lfu|"
                "allkeys-random|noeviction",
     .config = ConfigUse::kSet,
     .fixed_because = "nothing is evicted; the only policy is noeviction"},
    {.name = "maxmemory-clients", .type = Type::kSize, .default_text = "0",
     .config = ConfigUse::kSet,
     .fixed_because = "no client is evicted; client-output-buffer-limit bounds each"},

    // CONFIG keeps and shows these, since clients and tools ask for them.
    {.name = "maxmemory-samples", .type = Type::kInteger, .default_text = "5", .min = 1,
     .max = kInt32Max, .config = ConfigUse::kSet},
    {.name = "save", .type = Type::kSave, .config = ConfigUse::kSet,
     .fixed_because = kWritesNoFile},
    {.name = "appendonly", .type = Type::kYesNo, .default_text = "no", .config = ConfigUse::kSet,
     .fixed_because = kWritesNoFile},
    {.name = "appendfsync", .type = Type::kChoice, .default_text = "everysec",
     .choices = "everysec|always|no", .config = ConfigUse::kSet},
    {.name = "dir", .type = Type::kText, .config = ConfigUse::kShown},
    {.name = "dbfilename", .type = Type::kText, .default_text = "dump.rdb",
     .config = ConfigUse::kShown},
    {.name = "daemonize", .type = Type::kYesNo, .default_text = "no", .config = ConfigUse::kShown},
    {.name = "cluster-enabled", .type = Type::kYesNo, .default_text = "no",
     .config = ConfigUse::kShown},
    {.name = "io-threads", .type = Type::kInteger, .default_text = "1", .min = 1, .max = 128,
     .config = ConfigUse::kShown},
    {.name = "hz", .type = Type::kInteger, .default_text = "10", .max = kInt32Max, .nearest_min = 1,
     .nearest_max = 500, .config = ConfigUse::kSet},
    {.name = "loglevel", .type = Type::kChoice, .default_text = "notice",
     .choices = "debug|verbose|notice|warning", .config = ConfigUse::kSet},
    {.name = "notify-keyspace-events", .type = Type::kKeyEvents, .config = ConfigUse::kSet},
    {.name = "latency-tracking", .type = Type::kYesNo, .default_text = "yes",
     .config = ConfigUse::kSet},
    {.name = "busy-reply-threshold", .type = Type::kInteger, .default_text = "5000",
     .config = ConfigUse::kSet, .second_name = "lua-time-limit"},
    {.name = "tracking-table-max-keys", .type = Type::kInteger, .default_text = "1000000",
     .config = ConfigUse::kSet},
    {.name = "replicaof", .type = Type::kText, .config = ConfigUse::kShown,
     .second_name = "slaveof"},
    {.name = "replica-read-only", .type = Type::kYesNo, .default_text = "yes",
     .config = ConfigUse::kSet, .second_name = "slave-read-only"},
    {.name = "replica-serve-stale-data", .type = Type::kYesNo, .default_text = "yes",
     .config = ConfigUse::kSet, .second_name = "slave-serve-stale-data"},
    {.name = "min-replicas-to-write", .type = Type::kInteger, .default_text = "0", .max = kInt32Max,
     .config = ConfigUse::kSet, .second_name = "min-slaves-to-write"},
    {.name = "list-max-listpack-size", .type = Type::kInteger, .default_text = "-2",
     .min = -kInt32Max - 1, .max = kInt32Max, .config = ConfigUse::kSet,
     .second_name = "list-max-ziplist-size"},
    {.name = "list-compress-depth", .type = Type::kInteger, .default_text = "0", .max = kInt32Max,
     .config = ConfigUse::kSet},
    {.name = "hash-max-listpack-entries", .type = Type::kInteger, .default_text = "512",
     .config = ConfigUse::kSet, .second_name = "hash-max-ziplist-entries", .live = &LiveOptions::compact_hash_fields},
    {.name = "hash-max-listpack-value", .type = Type::kSize, .default_text = "64",
     .config = ConfigUse::kSet, .second_name = "hash-max-ziplist-value", .live = &LiveOptions::compact_hash_bytes},
    {.name = "zset-max-listpack-entries", .type = Type::kInteger, .default_text = "128",
     .config = ConfigUse::kSet, .second_name = "zset-max-ziplist-entries", .live = &LiveOptions::compact_sorted_set_members},
    {.name = "zset-max-listpack-value", .type = Type::kSize, .default_text = "64",
     .config = ConfigUse::kSet, .second_name = "zset-max-ziplist-value", .live = &LiveOptions::compact_sorted_set_bytes},
    {.name = "set-max-intset-entries", .type = Type::kInteger, .default_text = "512",
     .config = ConfigUse::kSet, .live = &LiveOptions::integer_set_members},
    {.name = "stream-node-max-bytes", .type = Type::kSize, .default_text = "4096",
     .config = ConfigUse::kSet, .live = &LiveOptions::stream_node_bytes},
    {.name = "stream-node-max-entries", .type = Type::kInteger, .default_text = "100",
     .config = ConfigUse::kSet, .live = &LiveOptions::stream_node_entries},
    {.name = "hll-sparse-max-bytes", .type = Type::kSize, .default_text = "3000",
     .config = ConfigUse::kSet},
    {.name = "sanitize-dump-payload", .type = Type::kChoice, .default_text = "no",
     .choices = "no|yes|clients", .config = ConfigUse::kSet},
    {.name = "lfu-log-factor", .type = Type::kInteger, .default_text = "10", .max = kInt32Max,
     .config = ConfigUse::kSet},
    {.name = "lfu-decay-time", .type = Type::kInteger, .default_text = "1", .max = kInt32Max,
     .config = ConfigUse::kSet},
    {.name = "lazyfree-lazy-eviction", .type = Type::kYesNo, .default_text = "no",
     .config = ConfigUse::kSet},
    {.name = "lazyfree-lazy-expire", .type = Type::kYesNo, .default_text = "no",
     .config = ConfigUse::kSet},
    {.name = "lazyfree-lazy-server-del", .type = Type::kYesNo, .default_text = "no",
     .config = ConfigUse::kSet},
    {.name = "lazyfree-lazy-user-del", .type = Type::kYesNo, .default_text = "no",
     .config = ConfigUse::kSet},
    {.name = "lazyfree-lazy-user-flush", .type = Type::kYesNo, .default_text = "no",
     .config = ConfigUse::kSet},
    {.name = "activedefrag", .type = Type::kYesNo, .default_text = "no", .config = ConfigUse::kSet,
     .fixed_because = kNoDefragmentation},
    {.name = "active-expire-effort", .type = Type::kInteger, .default_text = "1", .min = 1,
     .max = 10, .config = ConfigUse::kSet},
};
// clang-format on

}  // namespace

std::span<const ParameterRow> ParameterTable() { return kRows; }

const ParameterRow* FindParameter(ParameterUser user, std::string_view name) {
  for (const ParameterRow& row : kRows) {
    if ((row.users & user) != 0 && name == row.name) return &row;
  }
  return nullptr;
}

const char* ProgramName(ParameterUser user) {
  switch (user) {
    case kUserAgent:
      return "onetrip-agent";
    case kUserMemnode:
      return "onetrip-memnode";
    case kUserMaster:
      return "onetrip-master";
  }
  return "";
}

std::string ProgramsWith(std::string_view name) {
  std::string programs;
  for (const ParameterUser user : {kUserAgent, kUserMemnode, kUserMaster}) {
    if (FindParameter(user, name) == nullptr) continue;
    programs += (programs.empty() ? "" : " and ") + std::string(ProgramName(user));
  }
  return programs;
}

}  // namespace onetrip
