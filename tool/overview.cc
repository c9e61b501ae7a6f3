#include "tool/overview.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace onetrip {
namespace {

using Json = nlohmann::ordered_json;
using Info = std::map<std::string, std::string>;
using Row = std::vector<std::string>;

const std::string kUnknown = "?";

uint64_t Number(const Info& info, const std::string& name) {
  const auto found = info.find(name);
  return found == info.end() ? 0 : std::strtoull(found->second.c_str(), nullptr, 10);
}

// The number after `key=` in "p50=1.003,p99=2.007".
double Part(const std::string& text, const std::string& key) {
  const size_t at = text.find(key + "=");
  return at == std::string::npos ? 0 : std::atof(text.c_str() + at + key.size() + 1);
}

std::string Hex(uint64_t value) {
  std::array<char, 20> text;
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string Decimal(double value, int digits) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string Bytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return Decimal(value, value < 10 && unit > 0 ? 1 : 0) + " " + kUnits[unit];
}

// Shows a power of two, which needs no decimals.
std::string Whole(uint64_t bytes) {
  const std::string text = Bytes(bytes);
  const size_t point = text.find(".0 ");
  return point == std::string::npos ? text : text.substr(0, point) + text.substr(point + 2);
}

// Columns as wide as their widest cell; the first row is the heading.
std::string Table(const std::vector<Row>& rows) {
  std::vector<size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) {
      line += " " + row[i] + std::string(widths[i] - row[i].size() + 1, ' ');
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string Latency(const AgentOverview& agent, const std::string& command) {
  const auto found = agent.latency_us.find(command);
  if (found == agent.latency_us.end()) return "-";
  return Decimal(found->second.p50, 1) + " / " + Decimal(found->second.p99, 1);
}

std::string RoundTrips(const AgentOverview& agent, const std::string& kind) {
  const auto found = agent.round_trips.find(kind);
  return found == agent.round_trips.end() || found->second == 0 ? "-" : Decimal(found->second, 2);
}

std::string Pages(const MemnodeOverview& node) {
  return node.page_bytes == 0 ? kUnknown : Whole(node.page_bytes);
}

template <typename T>
std::string OrUnknown(const std::optional<T>& value) {
  return value.has_value() ? std::to_string(*value) : kUnknown;
}

std::string BytesOrUnknown(const std::optional<uint64_t>& value) {
  return value.has_value() ? Bytes(*value) : kUnknown;
}

std::string Pid(uint64_t pid) { return pid == 0 ? "-" : std::to_string(pid); }

// A column of names only where there are some.
template <typename T>
bool HasNames(const std::vector<T>& members) {
  return std::any_of(members.begin(), members.end(),
                     [](const T& one) { return !one.name.empty(); });
}

std::string MemnodeTable(const Overview& overview) {
  const bool names = HasNames(overview.memnodes);
  std::vector<Row> rows = {
      {"memnode", "state", "pid", "address", "regions", "granted", "memory", "unusable", "pages"}};
  if (names) rows.front().insert(rows.front().begin() + 1, "name");
  const bool over_rdma = std::any_of(overview.memnodes.begin(), overview.memnodes.end(),
                                     [](const MemnodeOverview& one) { return !one.rdma.empty(); });
  if (over_rdma) rows.front().emplace_back("RDMA");
  for (const MemnodeOverview& node : overview.memnodes) {
    rows.push_back({OrUnknown(node.node), node.state, Pid(node.pid), node.address,
                    OrUnknown(node.regions), BytesOrUnknown(node.granted_bytes),
                    BytesOrUnknown(node.bytes), BytesOrUnknown(node.unusable_bytes), Pages(node)});
    if (names) rows.back().insert(rows.back().begin() + 1, node.name.empty() ? "-" : node.name);
    if (over_rdma) rows.back().push_back(node.rdma.empty() ? "-" : node.rdma);
  }
  return Table(rows);
}

// The name of an agent in tables.
std::string NameOf(const AgentOverview& agent) {
  return agent.name.empty() ? OrUnknown(agent.member) : agent.name;
}

std::string AgentTable(const Overview& overview) {
  std::vector<Row> rows = {{"agent", "state", "pid", "address", "clients", "ops/s", "commands"}};
  for (const AgentOverview& agent : overview.agents) {
    const auto told = [&agent](uint64_t value) {
      return agent.answered ? std::to_string(value) : kUnknown;
    };
    rows.push_back({NameOf(agent), agent.state, Pid(agent.pid), agent.address, told(agent.clients),
                    told(agent.ops_per_s), told(agent.commands)});
  }
  return Table(rows);
}

std::string SpeedTable(const Overview& overview) {
  std::vector<Row> rows = {
      {"agent", "round trips: get", "set", "del", "rmw", "p50 / p99 us: get", "set", "incr"}};
  for (const AgentOverview& agent : overview.agents) {
    if (!agent.answered) continue;
    rows.push_back({NameOf(agent), RoundTrips(agent, "get"), RoundTrips(agent, "set"),
                    RoundTrips(agent, "del"), RoundTrips(agent, "rmw"), Latency(agent, "get"),
                    Latency(agent, "set"), Latency(agent, "incr")});
  }
  return rows.size() == 1 ? std::string() : "\n" + Table(rows);
}

// How much of one replica's memory is used.
std::string MemoryText(const std::optional<PoolUsage>& usage) {
  if (!usage.has_value()) return kUnknown;
  return Bytes(usage->used_bytes()) + " of " + Bytes(usage->capacity_bytes) + " used (" +
         std::to_string(usage->used_percent()) + " %, one replica)";
}

// Where the rest is; of size classes those that have most of it.
std::string FreeText(const PoolUsage& usage) {
  constexpr size_t kClassesMax = 4;
  std::vector<std::pair<uint64_t, uint8_t>> classes;
  for (uint8_t i = 0; i < SizeClass::kCount; ++i) {
    if (usage.free_bytes[i] != 0) classes.emplace_back(usage.free_bytes[i], i);
  }
  std::sort(classes.rbegin(), classes.rend());
  std::string text = "free: " + Bytes(usage.free_block_bytes()) + " in free blocks, " +
                     Bytes(usage.free_in_blocks()) + " in partly used ones, " +
                     Bytes(usage.retired_bytes) + " coming back; reserve " +
                     Bytes(usage.reserve_bytes) + "\n";
  if (classes.empty()) return text;
  text += "free by size:";
  for (size_t i = 0; i < std::min(classes.size(), kClassesMax); ++i) {
    text += (i == 0 ? " " : ", ") + Whole(SizeClass(classes[i].second).bytes()) + ": " +
            Bytes(classes[i].first);
  }
  return text + (classes.size() > kClassesMax ? ", others\n" : "\n");
}

template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value.has_value() ? Json(*value) : Json(nullptr);
}

Json ToJson(const PoolUsage& usage) {
  Json classes = Json::object();
  for (uint8_t i = 0; i < SizeClass::kCount; ++i) {
    if (usage.free_bytes[i] == 0) continue;
    classes[std::to_string(SizeClass(i).bytes())] = usage.free_bytes[i];
  }
  return {{"capacity_bytes", usage.capacity_bytes},
          {"used_bytes", usage.used_bytes()},
          {"granted_bytes", usage.granted_bytes},
          {"overhead_bytes", usage.overhead_bytes},
          {"free_block_bytes", usage.free_block_bytes()},
          {"free_in_blocks_bytes", usage.free_in_blocks()},
          {"free_bytes_by_class", std::move(classes)},
          {"retired_bytes", usage.retired_bytes},
          {"reserve_bytes", usage.reserve_bytes},
          {"refused_bytes", usage.refused_bytes}};
}

Json ToJson(const MemnodeOverview& node) {
  return {{"name", node.name},
          {"node", OrNull(node.node)},
          {"member", OrNull(node.member)},
          {"pid", node.pid},
          {"address", node.address},
          {"state", node.state},
          {"host", node.host},
          {"regions", OrNull(node.regions)},
          {"bytes", OrNull(node.bytes)},
          {"unusable_bytes", OrNull(node.unusable_bytes)},
          {"granted_bytes", OrNull(node.granted_bytes)},
          {"operations", OrNull(node.operations)},
          {"page_bytes", node.page_bytes},
          {"rdma", node.rdma}};
}

Json ToJson(const AgentOverview& agent) {
  Json latency = Json::object();
  for (const auto& [command, us] : agent.latency_us) {
    latency[command] = {{"p50", us.p50}, {"p99", us.p99}, {"p99.9", us.p999}};
  }
  return {{"name", agent.name},
          {"member", OrNull(agent.member)},
          {"pid", agent.pid},
          {"address", agent.address},
          {"state", agent.state},
          {"host", agent.host},
          {"answered", agent.answered},
          {"clients", agent.clients},
          {"ops_per_s", agent.ops_per_s},
          {"commands", agent.commands},
          {"round_trips", agent.round_trips},
          {"latency_us", std::move(latency)}};
}

}  // namespace

void TakeInfo(const Info& info, AgentOverview* agent) {
  constexpr std::string_view kRoundTrips = "rtt_per_";
  constexpr std::string_view kLatency = "latency_percentiles_usec_";
  agent->answered = true;
  agent->pid = Number(info, "process_id");
  agent->clients = Number(info, "connected_clients");
  agent->ops_per_s = Number(info, "instantaneous_ops_per_sec");
  agent->commands = Number(info, "total_commands_processed");
  agent->registers_thawed = Number(info, "registers_thawed");
  uint64_t keys = 0;
  for (const auto& [name, value] : info) {
    if (name.starts_with("db") && value.starts_with("keys=")) {
      keys += static_cast<uint64_t>(Part(value, "keys"));
    } else if (name.starts_with(kRoundTrips) && !name.ends_with("_histogram")) {
      agent->round_trips[name.substr(kRoundTrips.size())] = std::atof(value.c_str());
    } else if (name.starts_with(kLatency)) {
      agent->latency_us[name.substr(kLatency.size())] = {Part(value, "p50"), Part(value, "p99"),
                                                         Part(value, "p99.9")};
    }
  }
  if (!info.contains(kKeysNotCounted)) agent->keys = keys;
}

Service ServiceOf(const Overview& overview, bool local) {
  size_t answering = 0;
  size_t up = 0;
  bool all = true;
  for (const AgentOverview& agent : overview.agents) {
    const bool is_up = agent.state == "up" || agent.state == "running";
    if (agent.answers) ++answering;
    if (is_up) ++up;
    all = all && is_up && (agent.answers || !local);
  }
  const bool none = local ? answering == 0 : up == 0 && !overview.agents.empty();
  if (none || overview.state == "forming" || overview.state == "not serving") {
    return Service::kNotServing;
  }
  constexpr size_t kReplicasByDefault = 3;
  size_t memnodes_up = 0;
  for (const MemnodeOverview& node : overview.memnodes) {
    const bool is_up = node.state != "missing" && node.state != "lost" && node.state != "left";
    // Another life of its process, or another node, has its place.
    const bool has_place = local ? !node.name.empty() : node.state != "lost";
    if (!has_place && node.regions == 0U) continue;
    memnodes_up += is_up ? 1 : 0;
    all = all && is_up;
  }
  // Fewer than a majority of any region's replicas; a master that lives has said so above.
  const size_t replicas = overview.replicas != 0 ? overview.replicas : kReplicasByDefault;
  const size_t majority = std::min(replicas, overview.memnodes.size()) / 2 + 1;
  if (overview.master.state != "up" && !overview.memnodes.empty() && memnodes_up < majority) {
    return Service::kNotServing;
  }
  return all && overview.state == "serving" ? Service::kServing : Service::kDegraded;
}

std::string OverviewText(const Overview& overview) {
  const MasterOverview& master = overview.master;
  std::string text = "cluster " +
                     (overview.cluster.has_value() ? Hex(*overview.cluster) : kUnknown) + ": " +
                     overview.state + ", epoch " + OrUnknown(overview.epoch) + "\n";
  text += "master: " + master.state + ", pid " + Pid(master.pid) + ", " + master.address + "\n";
  if (!overview.waiting_for.empty()) text += "waiting for: " + overview.waiting_for + "\n";
  if (!overview.moving.empty()) text += "moving: " + overview.moving + "\n";
  if (!overview.unreached.empty()) text += "unreached: " + overview.unreached + "\n";
  if (!overview.short_of_memory.empty()) text += "memory: " + overview.short_of_memory + "\n";
  text += "regions: " + OrUnknown(overview.regions) + " (" + BytesOrUnknown(overview.region_bytes) +
          "), " + OrUnknown(overview.regions_fully_redundant) + " of them on all of their " +
          (overview.replicas == 0 ? kUnknown : std::to_string(overview.replicas)) +
          " memory nodes\n";
  text += "keys: " + OrUnknown(overview.keys) + ", memory: " + MemoryText(overview.usage) + ", " +
          std::to_string(overview.ops_per_s) + " ops/s\n";
  if (overview.usage.has_value()) text += FreeText(*overview.usage);
  text += "\n";
  return text + MemnodeTable(overview) + "\n" + AgentTable(overview) + SpeedTable(overview);
}

std::string OverviewJson(const Overview& overview) {
  const MasterOverview& master = overview.master;
  Json json = {{"cluster", overview.cluster.has_value() ? Json(Hex(*overview.cluster)) : Json()},
               {"state", overview.state},
               {"epoch", OrNull(overview.epoch)},
               {"waiting_for", overview.waiting_for},
               {"moving", overview.moving},
               {"unreached", overview.unreached},
               {"replicas", overview.replicas},
               {"regions", OrNull(overview.regions)},
               {"region_bytes", OrNull(overview.region_bytes)},
               {"regions_fully_redundant", OrNull(overview.regions_fully_redundant)},
               {"keys", OrNull(overview.keys)},
               {"ops_per_s", overview.ops_per_s},
               {"short_of_memory", overview.short_of_memory},
               {"capacity_bytes", overview.usage ? Json(overview.usage->capacity_bytes) : Json()},
               {"granted_bytes", overview.usage ? Json(overview.usage->granted_bytes) : Json()},
               {"memory", overview.usage.has_value() ? ToJson(*overview.usage) : Json()},
               {"master",
                {{"pid", master.pid},
                 {"address", master.address},
                 {"state", master.state},
                 {"uptime_s", master.uptime_s}}},
               {"memnodes", Json::array()},
               {"agents", Json::array()}};
  for (const MemnodeOverview& node : overview.memnodes) json["memnodes"].push_back(ToJson(node));
  for (const AgentOverview& agent : overview.agents) json["agents"].push_back(ToJson(agent));
  return json.dump(2) + "\n";
}

}  // namespace onetrip
