#include "client_core/base/parameter_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <vector>

namespace onetrip {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;
constexpr uint64_t kTiB = 1024 * kGiB;
constexpr uint64_t kNoMax = std::numeric_limits<int64_t>::max();
constexpr uint64_t kDayS = 24 * 3600;
constexpr uint8_t kEverybody = kUserAgent | kUserMemnode | kUserMaster;

// clang-format off
constexpr OptionRow kRows[] = {
    {"config", OptionType::kText, "", "path",
     "TOML file of options by the names below; environment and flags override it",
     kEverybody, false, "", 0, 0, "", {}},
    {"log-level", OptionType::kText, "info", "", "Least important lines to log",
     kEverybody, false, "", 0, 0, "debug|info|warning|error|off",
     {.agent = &AgentOptions::log_level, .memnode = &MemnodeOptions::log_level,
      .master = &MasterOptions::log_level}},

    {"master", OptionType::kAddress, "", "HOST:PORT",
     "Master of the cluster to join; empty to embed a cluster of its own",
     kUserAgent, false, "", 0, 0, "", {.agent = &AgentOptions::master}},
    {"master", OptionType::kAddress, "", "HOST:PORT", "Master of the cluster to join",
     kUserMemnode, false, "", 0, 0, "", {.memnode = &MemnodeOptions::master}, true},
    {"listen", OptionType::kAddress, "127.0.0.1:0", "HOST:PORT",
     "Where agents reach the node over tcp; port 0 for a free one, beyond this host only with a "
     "secret",
     kUserMemnode, false, "", 0, 0, "", {.memnode = &MemnodeOptions::listen}},
    {"listen", OptionType::kAddress, "127.0.0.1:7400", "HOST:PORT",
     "Where members reach the master; port 0 for a free one, beyond this host only with a secret",
     kUserMaster, false, "", 0, 0, "", {.master = &MasterOptions::listen}},
    {"data-dir", OptionType::kText, "", "path",
     "Directory of the cluster's membership, which outlives the master",
     kUserMaster, false, "", 0, 0, "", {.master = &MasterOptions::data_dir}, true},
    {"nodes", OptionType::kInteger, "3", "nodes",
     "Memory nodes that must have joined before the cluster map is made",
     kUserMaster, false, "", 1, 256, "", {.master = &MasterOptions::nodes}},
    {"replicas", OptionType::kInteger, "3", "nodes", "Memory nodes that hold each region",
     kUserMaster, false, "", 1, 5, "", {.master = &MasterOptions::replicas}},
    {"lease-ms", OptionType::kInteger, "1000", "ms",
     "Take a member for dead that was silent for so long",
     kUserMaster, false, "", 100, 60000, "", {.master = &MasterOptions::lease_ms}},
    {"replace-node-after-s", OptionType::kInteger, "10", "s",
     "Give the places of a memory node that is lost for so long to others that have room",
     kUserMaster, false, "", 0, 86400, "", {.master = &MasterOptions::replace_node_after_s}},
    {"fabric", OptionType::kText, "auto", "",
     "How memory nodes are reached; auto: over shm those of this host that offer it, else over tcp",
     kUserAgent, false, "", 0, 0, "auto|shm|tcp", {.agent = &AgentOptions::fabric}},
    {"fabric", OptionType::kText, "both", "", "How agents may reach this memory node",
     kUserMemnode, false, "", 0, 0, "shm|tcp|both", {.memnode = &MemnodeOptions::fabric}},
    {"secret-file", OptionType::kText, "", "path",
     "File, of mode 0600, with the secret that the cluster's processes share; empty for none",
     kEverybody, false, "", 0, 0, "",
     {.agent = &AgentOptions::secret_file, .memnode = &MemnodeOptions::secret_file,
      .master = &MasterOptions::secret_file}},
    {"connect-timeout-ms", OptionType::kInteger, "10000", "ms",
     "Give up at start when the master has not answered for so long",
     kUserAgent | kUserMemnode, false, "", 1, 3600000, "",
     {.agent = &AgentOptions::connect_timeout_ms, .memnode = &MemnodeOptions::connect_timeout_ms}},
    {"busy-poll-us", OptionType::kInteger, "0", "us",
     "Look for tcp frames without sleeping for so long after the last one; 0 to sleep at once",
     kUserAgent | kUserMemnode, false, "", 0, 1000000, "",
     {.agent = &AgentOptions::busy_poll_us, .memnode = &MemnodeOptions::busy_poll_us}},

    {"port", OptionType::kInteger, "6379", "", "TCP port to listen on; 0 for none",
     kUserAgent, false, "port", 0, 65535, "", {.agent = &AgentOptions::port}},
    {"bind", OptionType::kText, "127.0.0.1", "", "Address to listen on",
     kUserAgent, false, "bind", 0, 0, "", {.agent = &AgentOptions::bind}},
    {"unixsocket", OptionType::kText, "", "path", "Unix socket to listen on; empty for none",
     kUserAgent, false, "unixsocket", 0, 0, "", {.agent = &AgentOptions::unixsocket}},
    {"unixsocketperm", OptionType::kOctal, "0", "octal mode",
     "Permissions of the unix socket; 0 leaves them to the umask",
     kUserAgent, false, "unixsocketperm", 0, 0777, "", {.agent = &AgentOptions::unixsocketperm}},
    {"tcp-backlog", OptionType::kInteger, "511", "connections",
     "Connections that may wait to be accepted",
     kUserAgent, false, "tcp-backlog", 1, 65535, "", {.agent = &AgentOptions::tcp_backlog}},
    {"threads", OptionType::kInteger, "1", "threads",
     "Workers; each serves its own connections on a core of its own",
     kUserAgent, false, "", 1, 64, "", {.agent = &AgentOptions::threads}},

    {"engine", OptionType::kText, "swarm", "",
     "How keys are written: swarm as registers in one round trip, snapshot as records in four; for "
     "comparison: abd as registers in two, raw as one copy",
     kUserAgent, false, "", 0, 0, "swarm|snapshot|raw|abd", {.agent = &AgentOptions::engine}},
    {"memory", OptionType::kSize, "1GiB", "bytes", "Memory of each embedded memory node",
     kUserAgent, false, "", 8 * kMiB, 64 * kTiB, "", {.agent = &AgentOptions::memory_bytes}},
    {"memory", OptionType::kSize, "1GiB", "bytes", "Memory of the node, in whole 16 MiB",
     kUserMemnode, false, "", 16 * kMiB, 64 * kTiB, "", {.memnode = &MemnodeOptions::memory_bytes}},
    {"socket", OptionType::kText, "", "path",
     "Unix socket at which agents of this host get the memory; empty to derive one from the runtime "
     "directory",
     kUserMemnode, false, "", 0, 0, "", {.memnode = &MemnodeOptions::socket}},
    {"backing", OptionType::kText, "", "path",
     "File that keeps the memory when the node ends; empty for memory that ends with its users",
     kUserMemnode, false, "", 0, 0, "", {.memnode = &MemnodeOptions::backing}},
    {"accept-damaged", OptionType::kText, "no", "",
     "Serve a backing file that is damaged as it is, instead of waiting to get its regions from "
     "other nodes; for one start, when no others have them",
     kUserMemnode, false, "", 0, 0, "yes|no", {.memnode = &MemnodeOptions::accept_damaged}},
    {"former-grace-ms", OptionType::kInteger, "500", "ms",
     "Kill agents that still use the backing file of an earlier life after so long",
     kUserMemnode, false, "", 0, 600000, "", {.memnode = &MemnodeOptions::former_grace_ms}},
    {"fence-timeout-ms", OptionType::kInteger, "2000", "ms",
     "Tell the master that a fence is not done when a killed agent has not ended after so long",
     kUserMemnode, false, "", 1, 600000, "", {.memnode = &MemnodeOptions::fence_timeout_ms}},
    {"detach-timeout-ms", OptionType::kInteger, "1000", "ms",
     "Leave a backing file marked as in use at the end when agents still map it after so long",
     kUserMemnode, false, "", 0, 600000, "", {.memnode = &MemnodeOptions::detach_timeout_ms}},
    {"register-cache", OptionType::kInteger, "1048576", "keys",
     "Registers that each worker remembers, at about 300 bytes; others take one more round trip",
     kUserAgent, false, "", 1, 1ULL << 32, "", {.agent = &AgentOptions::register_cache_keys}},
    {"register-lanes", OptionType::kInteger, "4", "",
     "Metadata words of new registers, which writers spread over",
     kUserAgent, false, "", 1, 64, "", {.agent = &AgentOptions::register_lanes}},
    {"location-cache", OptionType::kSize, "64MiB", "bytes",
     "Cache of key locations of each worker; 0 for none",
     kUserAgent, false, "", 0, kTiB, "", {.agent = &AgentOptions::location_cache_bytes}},
    {"databases", OptionType::kInteger, "16", "databases", "Databases that SELECT may choose from",
     kUserAgent, false, "databases", 1, 1024, "", {.agent = &AgentOptions::databases}},

    {"requirepass", OptionType::kText, "", "", "Password that AUTH must give; empty for none",
     kUserAgent, true, "requirepass", 0, 0, "", {.agent = &AgentOptions::requirepass}},
    {"protected-mode", OptionType::kText, "yes", "",
     "Without a password, take connections from 127.0.0.1 and ::1 only",
     kUserAgent, true, "protected-mode", 0, 0, "yes|no", {.agent = &AgentOptions::protected_mode}},
    {"maxclients", OptionType::kInteger, "10000", "clients", "Connections served at a time",
     kUserAgent, true, "maxclients", 1, 1000000, "", {.agent = &AgentOptions::maxclients}},
    {"timeout", OptionType::kInteger, "0", "s", "Close clients idle for so long; 0 for never",
     kUserAgent, true, "timeout", 0, 365 * kDayS, "", {.agent = &AgentOptions::timeout_s}},
    {"tcp-keepalive", OptionType::kInteger, "300", "s",
     "Probe silent connections after so long; 0 for never",
     kUserAgent, true, "tcp-keepalive", 0, 365 * kDayS, "",
     {.agent = &AgentOptions::tcp_keepalive_s}},
    {"client-output-buffer-limit", OptionType::kOutputLimits,
     "normal 256mb 0 0 slave 256mb 64mb 60 pubsub 32mb 8mb 60", "bytes bytes s",
     "Unsent replies at which a client is closed: class, hard limit, soft limit, seconds above it",
     kUserAgent, true, "client-output-buffer-limit", 0, kNoMax, "",
     {.agent = &AgentOptions::output_limits}},
    {"client-query-buffer-limit", OptionType::kSize, "1GiB", "bytes",
     "Unfinished command at which a client is closed",
     kUserAgent, true, "client-query-buffer-limit", kMiB, kNoMax, "",
     {.agent = &AgentOptions::query_buffer_bytes}},
    {"proto-max-bulk-len", OptionType::kSize, "512MiB", "bytes",
     "Largest argument a command may carry; Redis goes no lower, values go no higher",
     kUserAgent, true, "proto-max-bulk-len", kMiB, 512 * kMiB, "",
     {.agent = &AgentOptions::bulk_bytes_max}},
    {"large-value-memory", OptionType::kSize, "1GiB", "bytes",
     "For values above 1 MiB on their way: half for requests, half for values read; others wait",
     kUserAgent, false, "", 4 * kMiB, kTiB, "", {.agent = &AgentOptions::large_value_bytes}},

    {"op-timeout-ms", OptionType::kInteger, "5000", "ms",
     "Give up an operation on the memory nodes after so long",
     kUserAgent, false, "", 1, 3600000, "", {.agent = &AgentOptions::op_timeout_ms}},
    {"wait-polls-max", OptionType::kInteger, "64", "polls",
     "Looks at another worker's unfinished write before waiting by timer",
     kUserAgent, false, "", 0, 65536, "", {.agent = &AgentOptions::wait_polls_max}},
    {"wait-timer-us", OptionType::kInteger, "50", "us",
     "First timer of such a wait; later ones are longer",
     kUserAgent, false, "", 1, 1000000, "", {.agent = &AgentOptions::wait_timer_us}},
    {"epoch-tick-ms", OptionType::kInteger, "10", "ms",
     "How often freed memory is looked at for reuse",
     kUserAgent, false, "", 1, 60000, "", {.agent = &AgentOptions::epoch_tick_ms}},
};
// clang-format on

struct SizeUnit {
  std::string_view name;
  uint64_t bytes;
};
constexpr SizeUnit kSizeUnits[] = {{"", 1},      {"b", 1},      {"k", 1000},
                                   {"kb", kKiB}, {"kib", kKiB}, {"m", 1000000},
                                   {"mb", kMiB}, {"mib", kMiB}, {"g", 1000000000},
                                   {"gb", kGiB}, {"gib", kGiB}, {"t", 1000000000000},
                                   {"tb", kTiB}, {"tib", kTiB}};

// ASCII only, whatever the locale.
std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// True when all of `text` is a number in that base that fits.
bool ParseNumber(std::string_view text, int base, uint64_t* value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value, base);
  return error == std::errc() && stop == end;
}

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string NumberText(uint64_t value, OptionType type) {
  std::array<char, 24> buffer;
  const int base = type == OptionType::kOctal ? 8 : 10;
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, base);
  return std::string(buffer.data(), written.ptr);
}

bool ReadNumber(const OptionRow& row, std::string_view text, uint64_t* value, std::string* error) {
  const bool read = row.type == OptionType::kSize
                        ? ParseSize(text, value)
                        : ParseNumber(text, row.type == OptionType::kOctal ? 8 : 10, value);
  if (read && *value >= row.min && *value <= row.max) return true;
  *error = "must be ";
  if (row.type == OptionType::kSize) *error += "a size such as 64mb or 1GiB, ";
  if (row.type == OptionType::kOctal) *error += "an octal mode, ";
  *error += NumberText(row.min, row.type) + " to " + NumberText(row.max, row.type) + ", not " +
            Quoted(text);
  return false;
}

bool IsChoice(std::string_view choices, std::string_view text) {
  while (!choices.empty()) {
    const size_t bar = choices.find('|');
    if (choices.substr(0, bar) == text) return true;
    if (bar == std::string_view::npos) break;
    choices.remove_prefix(bar + 1);
  }
  return false;
}

bool CheckText(const OptionRow& row, std::string_view text, std::string* error) {
  if (row.type == OptionType::kAddress) {
    std::string host;
    uint16_t port = 0;
    if (text.empty() || ParseHostPort(text, &host, &port)) return true;
    *error = "must be HOST:PORT, not " + Quoted(text);
    return false;
  }
  if (*row.choices == '\0' || IsChoice(row.choices, text)) return true;
  *error = std::string("must be one of ") + row.choices + ", not " + Quoted(text);
  return false;
}

std::vector<std::string> SplitWords(std::string_view text) {
  std::vector<std::string> words;
  size_t begin = 0;
  while ((begin = text.find_first_not_of(' ', begin)) != std::string_view::npos) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// Classes that `text` does not name keep their limits.
bool ReadOutputLimits(std::string_view text, OutputBufferLimits* limits) {
  OutputBufferLimits read = *limits;
  const std::vector<std::string> words = SplitWords(text);
  if (words.empty() || words.size() % 4 != 0) return false;
  for (size_t i = 0; i < words.size(); i += 4) {
    const std::string kind = ToLower(words[i]);
    OutputBufferLimit limit;
    if (!ParseSize(words[i + 1], &limit.hard_bytes) ||
        !ParseSize(words[i + 2], &limit.soft_bytes) ||
        !ParseNumber(words[i + 3], 10, &limit.soft_s)) {
      return false;
    }
    if (kind == "normal") {
      read.normal = limit;
    } else if (kind == "slave" || kind == "replica") {
      read.replica = limit;
    } else if (kind == "pubsub") {
      read.pubsub = limit;
    } else {
      return false;
    }
  }
  *limits = read;
  return true;
}

std::string OutputLimitText(const char* kind, const OutputBufferLimit& limit) {
  return std::string(kind) + " " + std::to_string(limit.hard_bytes) + " " +
         std::to_string(limit.soft_bytes) + " " + std::to_string(limit.soft_s);
}

const OptionField<AgentOptions>& FieldOf(const OptionRow& row, const AgentOptions& /*options*/) {
  return row.fields.agent;
}
const OptionField<MemnodeOptions>& FieldOf(const OptionRow& row,
                                           const MemnodeOptions& /*options*/) {
  return row.fields.memnode;
}
const OptionField<MasterOptions>& FieldOf(const OptionRow& row, const MasterOptions& /*options*/) {
  return row.fields.master;
}

}  // namespace

std::span<const OptionRow> OptionTable() { return kRows; }

const OptionRow* FindOption(OptionUser user, std::string_view name) {
  for (const OptionRow& row : kRows) {
    if ((row.users & user) != 0 && name == row.name) return &row;
  }
  return nullptr;
}

const OptionRow* FindOptionByConfigAlias(std::string_view alias) {
  if (alias.empty()) return nullptr;
  for (const OptionRow& row : kRows) {
    if (alias == row.config_alias) return &row;
  }
  return nullptr;
}

bool ParseSize(std::string_view text, uint64_t* bytes) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  uint64_t number = 0;
  if (!ParseNumber(text.substr(0, digits), 10, &number)) return false;
  const std::string unit = ToLower(text.substr(digits));
  for (const SizeUnit& known : kSizeUnits) {
    if (known.name == unit) return !__builtin_mul_overflow(number, known.bytes, bytes);
  }
  return false;
}

bool ParseHostPort(std::string_view text, std::string* host, uint16_t* port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view name = text.substr(0, colon);
  const bool has_brackets = name.starts_with('[') && name.ends_with(']');
  if (has_brackets) name = name.substr(1, name.size() - 2);
  if (name.empty() || name.find_first_of("[]") != std::string_view::npos ||
      (name.find(':') != std::string_view::npos) != has_brackets) {
    return false;
  }
  uint64_t number = 0;
  if (!ParseNumber(text.substr(colon + 1), 10, &number) ||
      number > std::numeric_limits<uint16_t>::max()) {
    return false;
  }
  *host = name;
  *port = static_cast<uint16_t>(number);
  return true;
}

template <typename Options>
bool SetOption(const OptionRow& row, std::string_view text, Options* options, std::string* error) {
  const OptionField<Options>& field = FieldOf(row, *options);
  if (const auto* number = std::get_if<uint64_t Options::*>(&field)) {
    uint64_t value = 0;
    if (!ReadNumber(row, text, &value, error)) return false;
    options->** number = value;
    return true;
  }
  if (const auto* words = std::get_if<std::string Options::*>(&field)) {
    if (!CheckText(row, text, error)) return false;
    options->** words = text;
    return true;
  }
  if (const auto* limits = std::get_if<OutputBufferLimits Options::*>(&field)) {
    if (ReadOutputLimits(text, &(options->**limits))) return true;
    *error = "must be groups of 'normal|replica|pubsub HARD SOFT SECONDS', not " + Quoted(text);
    return false;
  }
  return CheckText(row, text, error);
}

template <typename Options>
std::string OptionText(const OptionRow& row, const Options& options) {
  const OptionField<Options>& field = FieldOf(row, options);
  if (const auto* number = std::get_if<uint64_t Options::*>(&field)) {
    return NumberText(options.**number, row.type);
  }
  if (const auto* words = std::get_if<std::string Options::*>(&field)) {
    return options.**words;
  }
  if (const auto* found = std::get_if<OutputBufferLimits Options::*>(&field)) {
    const OutputBufferLimits& limits = options.**found;
    return OutputLimitText("normal", limits.normal) + " " +
           OutputLimitText("slave", limits.replica) + " " +
           OutputLimitText("pubsub", limits.pubsub);
  }
  return "";
}

template bool SetOption(const OptionRow&, std::string_view, AgentOptions*, std::string*);
template bool SetOption(const OptionRow&, std::string_view, MemnodeOptions*, std::string*);
template bool SetOption(const OptionRow&, std::string_view, MasterOptions*, std::string*);
template std::string OptionText(const OptionRow&, const AgentOptions&);
template std::string OptionText(const OptionRow&, const MemnodeOptions&);
template std::string OptionText(const OptionRow&, const MasterOptions&);

}  // namespace onetrip
