#include "redis_compat/commands/server/info.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "redis_compat/commands/server/info_text.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/version.h"

namespace onetrip {
namespace {

struct Section {
  std::string_view name;
  std::string_view title;
  bool usual;  // Part of a plain INFO.
  // Null: the section is nothing but counters, which the hooks write.
  void (*write)(InfoText& text, const InfoRequest& request, ServerHooks& hooks);
};

void WriteServer(InfoText& text, const InfoRequest& request, ServerHooks& hooks) {
  const ServerFacts& facts = request.facts;
  constexpr uint64_t kSecondsPerDay = 86400;
  text.Field("redis_version", kRedisVersion);
  text.Field("onetrip_version", facts.onetrip_version);
  text.Field("redis_git_sha1", "00000000");
  text.Field("redis_git_dirty", "0");
  text.Field("redis_mode", "standalone");
  text.Field("os", facts.os);
  text.Field("arch_bits", uint64_t{64});
  text.Field("multiplexing_api", "epoll");
  text.Field("process_id", facts.process_id);
  text.Field("run_id", facts.run_id);
  text.Field("tcp_port", facts.tcp_port);
  text.Field("server_time_usec", hooks.clock().UnixUs());
  text.Field("uptime_in_seconds", facts.uptime_s);
  text.Field("uptime_in_days", facts.uptime_s / kSecondsPerDay);
  text.Field("hz", hooks.config().Value("hz"));
  text.Field("configured_hz", hooks.config().Value("hz"));
  text.Field("executable", facts.executable);
  text.Field("config_file", facts.config_file);
  text.Field("io_threads_active", facts.worker_threads > 1 ? "1" : "0");
  text.Field("worker_threads", facts.worker_threads);
}

void WriteMemory(InfoText& text, const InfoRequest& request, ServerHooks& hooks) {
  const ServerFacts& facts = request.facts;
  const uint64_t peak = std::max(facts.used_memory_peak, facts.used_memory);
  text.Bytes("used_memory", facts.used_memory);
  text.Bytes("used_memory_rss", facts.used_memory_rss);
  text.Bytes("used_memory_peak", peak);
  text.Percent("used_memory_peak_perc", facts.used_memory, peak);
  text.Field("used_memory_overhead", facts.used_memory_overhead);
  text.Field("used_memory_dataset", facts.used_memory_dataset);
  text.Percent("used_memory_dataset_perc", facts.used_memory_dataset, facts.used_memory);
  text.Bytes("total_system_memory", facts.total_system_memory);
  text.Bytes("used_memory_lua", 0);
  text.Bytes("used_memory_scripts", 0);
  text.Zeros({"number_of_cached_scripts", "number_of_functions", "number_of_libraries"});
  text.Bytes("maxmemory", facts.maxmemory);
  text.Field("maxmemory_policy", hooks.config().Value("maxmemory-policy"));
  text.Ratio("mem_fragmentation_ratio", facts.used_memory_rss, facts.used_memory);
  hooks.AppendInfoSection("memory", text.body());
  text.Zeros({"mem_clients_slaves", "mem_replication_backlog", "mem_aof_buffer"});
  text.Field("mem_allocator", facts.allocator);
  text.Zeros({"active_defrag_running", "lazyfree_pending_objects", "lazyfreed_objects"});
}

void WritePersistence(InfoText& text, const InfoRequest& request, ServerHooks&) {
  text.Zeros({"loading", "async_loading", "rdb_changes_since_last_save", "rdb_bgsave_in_progress"});
  text.Field("rdb_last_save_time", request.facts.started_at_unix_s);
  text.Field("rdb_last_bgsave_status", "ok");
  text.Field("rdb_last_bgsave_time_sec", "-1");
  text.Field("rdb_current_bgsave_time_sec", "-1");
  text.Zeros({"rdb_saves", "rdb_last_cow_size", "aof_enabled", "aof_rewrite_in_progress",
              "aof_rewrite_scheduled"});
  text.Field("aof_last_rewrite_time_sec", "-1");
  text.Field("aof_current_rewrite_time_sec", "-1");
  text.Field("aof_last_bgrewrite_status", "ok");
  text.Field("aof_last_write_status", "ok");
}

void WriteReplication(InfoText& text, const InfoRequest&, ServerHooks&) {
  // Replicas live below the commands: to Redis's eyes this is a master without any.
  constexpr std::string_view kNoId = "0000000000000000000000000000000000000000";
  text.Field("role", "master");
  text.Zeros({"connected_slaves"});
  text.Field("master_failover_state", "no-failover");
  text.Field("master_replid", kNoId);
  text.Field("master_replid2", kNoId);
  text.Zeros({"master_repl_offset"});
  text.Field("second_repl_offset", "-1");
  text.Zeros({"repl_backlog_active", "repl_backlog_size", "repl_backlog_first_byte_offset",
              "repl_backlog_histlen"});
}

void WriteCpu(InfoText& text, const InfoRequest& request, ServerHooks&) {
  constexpr int kDigits = 6;
  text.Decimal("used_cpu_sys", request.facts.cpu_system_s, kDigits);
  text.Decimal("used_cpu_user", request.facts.cpu_user_s, kDigits);
  text.Decimal("used_cpu_sys_children", 0, kDigits);
  text.Decimal("used_cpu_user_children", 0, kDigits);
}

void WriteNothing(InfoText&, const InfoRequest&, ServerHooks&) {}

void WriteCommandStats(InfoText& text, const InfoRequest& request, ServerHooks&) {
  for (const CommandRow& row : AllCommands()) {
    const size_t id = CommandId(row);
    if (id >= request.totals.commands.size()) {
      return;
    }
    const CommandTotals::PerCommand& totals = request.totals.commands[id];
    if (totals.calls == 0 && totals.rejected == 0 && totals.failed == 0) {
      continue;
    }
    constexpr double kNsPerUs = 1000;
    const auto usec = static_cast<double>(totals.time_ns) / kNsPerUs;
    char line[192];
    std::snprintf(line, sizeof(line),
                  "calls=%llu,usec=%.0f,usec_per_call=%.2f,rejected_calls=%llu,failed_calls=%llu",
                  static_cast<unsigned long long>(totals.calls), usec,
                  totals.calls == 0 ? 0.0 : usec / static_cast<double>(totals.calls),
                  static_cast<unsigned long long>(totals.rejected),
                  static_cast<unsigned long long>(totals.failed));
    text.Field("cmdstat_" + std::string(row.name), line);
  }
}

void WriteLatencyStats(InfoText& text, const InfoRequest& request, ServerHooks& hooks) {
  if (hooks.config().Value("latency-tracking") != "yes") return;
  for (const CommandRow& row : AllCommands()) {
    const auto found = request.totals.latency_ns.find(CommandId(row));
    if (found == request.totals.latency_ns.end() || found->second.Count() == 0) continue;
    constexpr double kNsPerUs = 1000;
    const auto us = [&](double percent) {
      return static_cast<double>(found->second.Percentile(percent)) / kNsPerUs;
    };
    char line[96];
    std::snprintf(line, sizeof(line), "p50=%.3f,p99=%.3f,p99.9=%.3f", us(50), us(99), us(99.9));
    text.Field("latency_percentiles_usec_" + std::string(row.name), line);
  }
}

void WriteErrorStats(InfoText& text, const InfoRequest& request, ServerHooks&) {
  for (const auto& [word, count] : request.totals.errors) {
    text.Field("errorstat_" + word, "count=" + std::to_string(count));
  }
}

void WriteCluster(InfoText& text, const InfoRequest&, ServerHooks&) {
  text.Zeros({"cluster_enabled"});
}

void WriteKeyspace(InfoText& text, const InfoRequest& request, ServerHooks&) {
  for (size_t database = 0; database < request.databases.size(); ++database) {
    const DatabaseFacts& facts = request.databases[database];
    if (facts.keys > 0) {
      text.Field("db" + std::to_string(database),
                 "keys=" + std::to_string(facts.keys) +
                     ",expires=" + std::to_string(facts.with_deadline) +
                     ",avg_ttl=" + std::to_string(facts.average_left_ms));
    }
  }
}

constexpr std::array<Section, 13> kSections = {{
    {"server", "Server", true, WriteServer},
    {"clients", "Clients", true, nullptr},
    {"memory", "Memory", true, WriteMemory},
    {"persistence", "Persistence", true, WritePersistence},
    {"stats", "Stats", true, nullptr},
    {"replication", "Replication", true, WriteReplication},
    {"cpu", "CPU", true, WriteCpu},
    {"modules", "Modules", true, WriteNothing},
    {"commandstats", "Commandstats", false, WriteCommandStats},
    {"errorstats", "Errorstats", true, WriteErrorStats},
    {"latencystats", "Latencystats", false, WriteLatencyStats},
    {"cluster", "Cluster", true, WriteCluster},
    {"keyspace", "Keyspace", true, WriteKeyspace},
}};

bool AsksFor(std::span<const std::string_view> names, std::string_view word) {
  return std::any_of(names.begin(), names.end(),
                     [word](std::string_view name) { return EqualsIgnoreCase(name, word); });
}

std::string Capitalized(std::string_view name) {
  std::string title(name);
  if (!title.empty()) {
    title[0] = AsciiUpper(title[0]);
  }
  return title;
}

}  // namespace

bool InfoRequest::Wants(std::string_view section) const {
  return std::find(sections.begin(), sections.end(), section) != sections.end();
}

std::vector<std::string_view> SelectInfoSections(std::span<const std::string_view> names,
                                                 ServerHooks& hooks) {
  const bool all = AsksFor(names, "all") || AsksFor(names, "everything");
  const bool usual = names.empty() || AsksFor(names, "default");
  std::vector<std::string_view> selected;
  for (const Section& section : kSections) {
    if (all || (usual && section.usual) || AsksFor(names, section.name)) {
      selected.push_back(section.name);
    }
  }
  for (const std::string_view extra : hooks.ExtraInfoSections()) {
    if (all || usual || AsksFor(names, extra)) {
      selected.push_back(extra);
    }
  }
  return selected;
}

std::string RenderInfo(const InfoRequest& request, ServerHooks& hooks) {
  InfoText text;
  for (const Section& section : kSections) {
    if (request.Wants(section.name)) {
      text.Title(section.title);
      if (section.write != nullptr) {
        section.write(text, request, hooks);
      } else {
        hooks.AppendInfoSection(section.name, text.body());
      }
    }
  }
  for (const std::string_view extra : hooks.ExtraInfoSections()) {
    if (request.Wants(extra)) {
      text.Title(Capitalized(extra));
      hooks.AppendInfoSection(extra, text.body());
    }
  }
  return std::move(text).Take();
}

}  // namespace onetrip
