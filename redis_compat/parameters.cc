#include "redis_compat/parameters.h"

#include <algorithm>
#include <array>

#include "client_core/base/check.h"
#include "redis_compat/ascii.h"
#include "redis_compat/config_values.h"
#include "redis_compat/glob.h"
#include "redis_compat/numbers.h"

namespace onetrip {
namespace {

enum class Change : uint8_t { kAnyTime, kAtStart };

struct Parameter {
  std::string_view name;
  std::string_view alias;  // A second name, shown as a parameter of its own.
  std::string_view initial;
  Change change;
  ConfigRule rule;
  // Why CONFIG SET takes no value but the one that is there; empty: it does.
  std::string_view fixed_because = {};
};

constexpr int64_t kIntMax = 2147483647;
constexpr int64_t kBulkMinBytes = int64_t{1} << 20;
constexpr int64_t kBulkMaxBytes = int64_t{512} << 20;
constexpr std::string_view kPolicies =
    "volatile-lru, volatile-lfu, volatile-random, volatile-ttl, allkeys-lru, allkeys-lfu, "
    "allkeys-random, noeviction";

constexpr std::string_view kWritesNoFile =
    "an agent writes no file: replicas on memory nodes keep the data, and memory nodes with "
    "--backing "
    "keep it over restarts";
constexpr std::string_view kChosenAtStart = "it is chosen when the agent starts";

constexpr ConfigRule kText = {};
constexpr ConfigRule kYesNo = {.kind = ConfigKind::kYesNo};
constexpr ConfigRule Integer(int64_t minimum, int64_t maximum) {
  return {.kind = ConfigKind::kInteger, .minimum = minimum, .maximum = maximum};
}
constexpr ConfigRule Memory(int64_t minimum, int64_t maximum) {
  return {.kind = ConfigKind::kMemory, .minimum = minimum, .maximum = maximum};
}
constexpr ConfigRule kMemoryAny = Memory(0, INT64_MAX);
constexpr ConfigRule kCountAny = Integer(0, INT64_MAX);
constexpr ConfigRule kIntAny = Integer(0, kIntMax);
constexpr ConfigRule Enum(std::string_view choices) {
  return {.kind = ConfigKind::kEnum, .choices = choices};
}

constexpr Parameter kParameters[] = {
    // These rule something here.
    {"requirepass", "", "", Change::kAnyTime, kText},
    {"protected-mode", "", "yes", Change::kAnyTime, kYesNo},
    // Values end there, whatever Redis would allow.
    {"proto-max-bulk-len", "", "536870912", Change::kAnyTime, Memory(kBulkMinBytes, kBulkMaxBytes)},
    {"maxclients", "", "10000", Change::kAnyTime, Integer(1, 4294967295)},
    {"timeout", "", "0", Change::kAnyTime, kIntAny},
    {"tcp-keepalive", "", "300", Change::kAnyTime, kIntAny},
    {"client-query-buffer-limit", "", "1073741824", Change::kAnyTime, Memory(1 << 20, INT64_MAX)},
    {"client-output-buffer-limit",
     "",
     "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60",
     Change::kAnyTime,
     {.kind = ConfigKind::kOutputLimits}},
    {"databases", "", "16", Change::kAtStart, Integer(1, 1024)},
    {"port", "", "6379", Change::kAnyTime, Integer(0, 65535), kChosenAtStart},
    {"bind", "", "127.0.0.1", Change::kAnyTime, kText, kChosenAtStart},
    {"unixsocket", "", "", Change::kAtStart, kText},
    {"maxmemory", "", "0", Change::kAnyTime, kMemoryAny,
     "it is what the pool of memory nodes holds, which is chosen when the cluster is made"},
    {"maxmemory-policy", "", "noeviction", Change::kAnyTime, Enum(kPolicies),
     "nothing is evicted; the only policy is noeviction"},
    {"maxmemory-clients", "", "0", Change::kAnyTime, kMemoryAny,
     "no client is evicted; client-output-buffer-limit bounds each"},
    // These are kept and shown, since clients and tools ask for them.
    {"maxmemory-samples", "", "5", Change::kAnyTime, Integer(1, kIntMax)},
    {"save", "", "", Change::kAnyTime, {.kind = ConfigKind::kSave}, kWritesNoFile},
    {"appendonly", "", "no", Change::kAnyTime, kYesNo, kWritesNoFile},
    {"appendfsync", "", "everysec", Change::kAnyTime, Enum("everysec, always, no")},
    {"dir", "", "", Change::kAtStart, kText},
    {"dbfilename", "", "dump.rdb", Change::kAtStart, kText},
    {"daemonize", "", "no", Change::kAtStart, kYesNo},
    {"cluster-enabled", "", "no", Change::kAtStart, kYesNo},
    {"io-threads", "", "1", Change::kAtStart, Integer(1, 128)},
    {"hz",
     "",
     "10",
     Change::kAnyTime,
     {.kind = ConfigKind::kInteger,
      .maximum = kIntMax,
      .nearest_minimum = 1,
      .nearest_maximum = 500}},
    {"loglevel", "", "notice", Change::kAnyTime, Enum("debug, verbose, notice, warning")},
    {"notify-keyspace-events", "", "", Change::kAnyTime, {.kind = ConfigKind::kKeyEvents}},
    {"slowlog-log-slower-than", "", "10000", Change::kAnyTime, Integer(-1, INT64_MAX)},
    {"slowlog-max-len", "", "128", Change::kAnyTime, kCountAny},
    {"latency-monitor-threshold", "", "0", Change::kAnyTime, kCountAny},
    {"latency-tracking", "", "yes", Change::kAnyTime, kYesNo},
    {"busy-reply-threshold", "lua-time-limit", "5000", Change::kAnyTime, kCountAny},
    {"tracking-table-max-keys", "", "1000000", Change::kAnyTime, kCountAny},
    {"replicaof", "slaveof", "", Change::kAtStart, kText},
    {"replica-read-only", "slave-read-only", "yes", Change::kAnyTime, kYesNo},
    {"replica-serve-stale-data", "slave-serve-stale-data", "yes", Change::kAnyTime, kYesNo},
    {"min-replicas-to-write", "min-slaves-to-write", "0", Change::kAnyTime, kIntAny},
    {"list-max-listpack-size", "list-max-ziplist-size", "-2", Change::kAnyTime,
     Integer(-kIntMax - 1, kIntMax)},
    {"list-compress-depth", "", "0", Change::kAnyTime, kIntAny},
    {"hash-max-listpack-entries", "hash-max-ziplist-entries", "512", Change::kAnyTime, kCountAny},
    {"hash-max-listpack-value", "hash-max-ziplist-value", "64", Change::kAnyTime, kMemoryAny},
    {"zset-max-listpack-entries", "zset-max-ziplist-entries", "128", Change::kAnyTime, kCountAny},
    {"zset-max-listpack-value", "zset-max-ziplist-value", "64", Change::kAnyTime, kMemoryAny},
    {"set-max-intset-entries", "", "512", Change::kAnyTime, kCountAny},
    {"stream-node-max-bytes", "", "4096", Change::kAnyTime, kMemoryAny},
    {"stream-node-max-entries", "", "100", Change::kAnyTime, kCountAny},
    {"hll-sparse-max-bytes", "", "3000", Change::kAnyTime, kMemoryAny},
    {"sanitize-dump-payload", "", "no", Change::kAnyTime, Enum("no, yes, clients")},
    {"lfu-log-factor", "", "10", Change::kAnyTime, kIntAny},
    {"lfu-decay-time", "", "1", Change::kAnyTime, kIntAny},
    {"lazyfree-lazy-eviction", "", "no", Change::kAnyTime, kYesNo},
    {"lazyfree-lazy-expire", "", "no", Change::kAnyTime, kYesNo},
    {"lazyfree-lazy-server-del", "", "no", Change::kAnyTime, kYesNo},
    {"lazyfree-lazy-user-del", "", "no", Change::kAnyTime, kYesNo},
    {"lazyfree-lazy-user-flush", "", "no", Change::kAnyTime, kYesNo},
    {"activedefrag", "", "no", Change::kAnyTime, kYesNo,
     "Active defragmentation cannot be enabled: values lie in the pool of memory nodes"},
    {"active-expire-effort", "", "1", Change::kAnyTime, Integer(1, 10)},
};
constexpr size_t kParameterCount = std::size(kParameters);

// By either name; kParameterCount if there is none.
size_t IndexOf(std::string_view name) {
  for (size_t i = 0; i < kParameterCount; ++i) {
    if (EqualsIgnoreCase(name, kParameters[i].name) ||
        (!kParameters[i].alias.empty() && EqualsIgnoreCase(name, kParameters[i].alias))) {
      return i;
    }
  }
  return kParameterCount;
}

using NamedValues = std::vector<std::pair<std::string, std::string>>;

bool Contains(const NamedValues& found, std::string_view name) {
  return std::any_of(found.begin(), found.end(),
                     [name](const auto& pair) { return EqualsIgnoreCase(pair.first, name); });
}

}  // namespace

ServerConfig::ServerConfig() {
  for (const Parameter& parameter : kParameters) {
    values_.emplace_back(parameter.initial);
    Publish(parameter.name, values_.back());
  }
}

bool ServerConfig::IsPassword(std::string_view password) const {
  const std::lock_guard lock(mutex_);
  const std::string& expected = values_[IndexOf("requirepass")];
  // Every byte of the guess is looked at, so that the time tells nothing about which was wrong.
  size_t difference = expected.size() ^ password.size();
  for (size_t i = 0; i < password.size(); ++i) {
    const char against = i < expected.size() ? expected[i] : '\0';
    difference |= static_cast<unsigned char>(password[i] ^ against);
  }
  return difference == 0;
}

NamedValues ServerConfig::Get(std::span<const std::string_view> patterns) const {
  NamedValues found;
  const std::lock_guard lock(mutex_);
  for (const std::string_view pattern : patterns) {
    if (pattern.find_first_of("[*?") == std::string_view::npos) {
      // A plain name comes back as the client spelled it.
      const size_t index = IndexOf(pattern);
      if (index < kParameterCount && !Contains(found, pattern)) {
        found.emplace_back(pattern, values_[index]);
      }
      continue;
    }
    for (size_t i = 0; i < kParameterCount; ++i) {
      for (const std::string_view name : {kParameters[i].name, kParameters[i].alias}) {
        if (!name.empty() && GlobMatch(pattern, name, GlobCase::kIgnore) &&
            !Contains(found, name)) {
          found.emplace_back(name, values_[i]);
        }
      }
    }
  }
  return found;
}

std::string ServerConfig::Value(std::string_view name) const {
  const size_t index = IndexOf(name);
  if (index == kParameterCount) {
    return "";
  }
  const std::lock_guard lock(mutex_);
  return values_[index];
}

bool ServerConfig::Knows(std::string_view name) const { return IndexOf(name) < kParameterCount; }

std::string_view ServerConfig::FirstName(std::string_view name) {
  const size_t index = IndexOf(name);
  CHECK(index < kParameterCount);
  return kParameters[index].name;
}

bool ServerConfig::IsMutable(std::string_view name) const {
  const size_t index = IndexOf(name);
  CHECK(index < kParameterCount);
  return kParameters[index].change == Change::kAnyTime;
}

bool ServerConfig::Check(std::string_view name, std::string_view value, std::string* canonical,
                         std::string* error) const {
  const size_t index = IndexOf(name);
  CHECK(index < kParameterCount);
  const Parameter& parameter = kParameters[index];
  const std::string current = Value(name);
  if (!CheckConfigValue(parameter.rule, current, value, canonical, error)) {
    return false;
  }
  if (parameter.fixed_because.empty() || *canonical == current) {
    return true;
  }
  *error = parameter.fixed_because;
  return false;
}

void ServerConfig::Store(std::string_view name, std::string canonical) {
  const size_t index = IndexOf(name);
  CHECK(index < kParameterCount);
  const std::lock_guard lock(mutex_);
  values_[index] = std::move(canonical);
  Publish(kParameters[index].name, values_[index]);
}

uint64_t ServerConfig::noted_call_ns() const {
  constexpr uint64_t kNsPerUs = 1000;
  constexpr uint64_t kNsPerMs = 1'000'000;
  const int64_t slow_us = slow_call_us();
  const uint64_t latency_ms = latency_threshold_ms();
  const uint64_t slow_ns = slow_us < 0 ? UINT64_MAX : static_cast<uint64_t>(slow_us) * kNsPerUs;
  return latency_ms == 0 ? slow_ns : std::min(slow_ns, latency_ms * kNsPerMs);
}

bool ServerConfig::SetByServer(std::string_view name, std::string_view value) {
  std::string canonical;
  std::string error;
  const size_t index = IndexOf(name);
  if (index == kParameterCount ||
      !CheckConfigValue(kParameters[index].rule, Value(name), value, &canonical, &error)) {
    return false;
  }
  Store(name, std::move(canonical));
  return true;
}

void ServerConfig::Publish(std::string_view name, const std::string& canonical) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  if (name == "requirepass") {
    password_required_.store(!canonical.empty(), kRelaxed);
    return;
  }
  if (name == "protected-mode") protected_mode_.store(canonical == "yes", kRelaxed);
  const auto number = static_cast<uint64_t>(ParseInt64(canonical).value_or(0));
  if (name == "proto-max-bulk-len") bulk_max_bytes_.store(static_cast<int64_t>(number), kRelaxed);
  if (name == "maxclients") max_clients_.store(number, kRelaxed);
  if (name == "timeout") timeout_s_.store(number, kRelaxed);
  if (name == "client-query-buffer-limit") query_buffer_max_bytes_.store(number, kRelaxed);
  if (name == "slowlog-log-slower-than") {
    slow_call_us_.store(static_cast<int64_t>(number), kRelaxed);
  }
  if (name == "slowlog-max-len") slow_calls_max_.store(number, kRelaxed);
  if (name == "latency-monitor-threshold") latency_threshold_ms_.store(number, kRelaxed);
  if (name == "databases") databases_.store(static_cast<uint32_t>(number), kRelaxed);
}

}  // namespace onetrip
