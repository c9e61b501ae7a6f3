#include "frontend/metrics/metrics_registry.h"

#include "client_core/cluster/pool_text.h"
#include "frontend/metrics/metric_readers.h"

namespace onetrip {
namespace {

using enum MetricKind;
using namespace metric_readers;  // NOLINT(google-build-using-namespace)

std::string PoolWarning(const MetricSources& sources) { return WhyShortOfMemory(sources.pool); }

constexpr MetricRow Absent(std::string_view section, std::string_view name) {
  return {section, name, kAbsent, "", "", Zero};
}

constexpr MetricRow kRows[] = {
    {"clients", "connected_clients", kGauge, "", "clients that are connected to this agent",
     Direct<&MetricSources::open_clients>},
    Absent("clients", "cluster_connections"),
    {"clients", "maxclients", kGauge, "", "the most clients that this agent serves at a time",
     Direct<&MetricSources::max_clients>},
    {"clients", "client_recent_max_input_buffer", kGauge, "bytes",
     "the largest unfinished request of a client, as of the last second",
     Largest<&TrafficMetrics::input_buffer_max>},
    {"clients", "client_recent_max_output_buffer", kGauge, "bytes",
     "the most unsent replies of a client, as of the last second",
     Largest<&TrafficMetrics::output_buffer_max>},
    {"clients", "blocked_clients", kGauge, "", "clients that wait for the end of CLIENT PAUSE",
     Direct<&MetricSources::paused_clients>},
    Absent("clients", "tracking_clients"),
    Absent("clients", "clients_in_timeout_table"),
    {"memory", "mem_clients_normal", kGauge, "bytes",
     "buffers of all clients, as of the last second", Sum<&TrafficMetrics::client_bytes>},
    {"stats", "total_connections_received", kCounter, "", "connections that were accepted",
     Sum<&TrafficMetrics::connections>, Clear<&TrafficMetrics::connections>},
    {"stats", "total_commands_processed", kCounter, "", "commands that were executed",
     Sum<&CommandStats::calls>, Call<&CommandStats::ResetCalls>},
    {"stats", "instantaneous_ops_per_sec", kGauge, "1/s", "commands in the last second",
     Sum<&TrafficMetrics::commands_per_s>},
    {"stats", "total_net_input_bytes", kCounter, "bytes", "received from clients",
     Sum<&TrafficMetrics::input_bytes>, Clear<&TrafficMetrics::input_bytes>},
    {"stats", "total_net_output_bytes", kCounter, "bytes", "sent to clients",
     Sum<&TrafficMetrics::output_bytes>, Clear<&TrafficMetrics::output_bytes>},
    {"stats", "instantaneous_input_kbps", kGauge, "KiB/s",
     "received from clients in the last second", SumInKib<&TrafficMetrics::input_per_s>},
    {"stats", "instantaneous_output_kbps", kGauge, "KiB/s", "sent to clients in the last second",
     SumInKib<&TrafficMetrics::output_per_s>},
    {"stats", "rejected_connections", kCounter, "",
     "connections refused by maxclients or protected mode", Sum<&TrafficMetrics::rejected>,
     Clear<&TrafficMetrics::rejected>},
    Absent("stats", "sync_full"),
    Absent("stats", "sync_partial_ok"),
    Absent("stats", "sync_partial_err"),
    {"stats", "expired_keys", kCounter, "",
     "keys that this agent removed because their time was over", Sum<&StoreMetrics::expired>,
     Clear<&StoreMetrics::expired>},
    Absent("stats", "evicted_keys"),
    Absent("stats", "evicted_clients"),
    {"stats", "keyspace_hits", kCounter, "", "keys that commands looked for and found",
     Sum<&CommandStats::keyspace_hits>, Call<&CommandStats::ResetLookups>},
    {"stats", "keyspace_misses", kCounter, "", "keys that commands looked for in vain",
     Sum<&CommandStats::keyspace_misses>, Call<&CommandStats::ResetLookups>},
    Absent("stats", "pubsub_channels"),
    Absent("stats", "pubsub_patterns"),
    Absent("stats", "pubsubshard_channels"),
    Absent("stats", "latest_fork_usec"),
    Absent("stats", "total_forks"),
    Absent("stats", "tracking_total_keys"),
    Absent("stats", "tracking_total_items"),
    Absent("stats", "tracking_total_prefixes"),
    Absent("stats", "unexpected_error_replies"),
    {"stats", "total_error_replies", kCounter, "", "replies that were errors",
     Sum<&CommandStats::error_replies>, Call<&CommandStats::ResetErrors>},
    {"stats", "total_reads_processed", kCounter, "", "read() calls that brought bytes of clients",
     Sum<&TrafficMetrics::reads>, Clear<&TrafficMetrics::reads>},
    {"stats", "total_writes_processed", kCounter, "", "send() calls that took bytes for clients",
     Sum<&TrafficMetrics::writes>, Clear<&TrafficMetrics::writes>},
    {"stats", "client_query_buffer_limit_disconnections", kCounter, "",
     "clients closed because their unfinished request was beyond client-query-buffer-limit",
     Sum<&TrafficMetrics::query_limit_closes>, Clear<&TrafficMetrics::query_limit_closes>},
    {"stats", "client_output_buffer_limit_disconnections", kCounter, "",
     "clients closed because they did not take their replies: beyond client-output-buffer-limit, "
     "or none for a minute",
     Sum<&TrafficMetrics::output_limit_closes>, Clear<&TrafficMetrics::output_limit_closes>},
    {"commandstats", "cmdstat_COMMAND", kCounter, "us",
     "calls of the command, their time, and how many were refused or failed", nullptr,
     Call<&CommandStats::ResetCalls>},
    {"errorstats", "errorstat_WORD", kCounter, "", "error replies that begin with the word",
     nullptr, Call<&CommandStats::ResetErrors>},
    {"latencystats", "latency_percentiles_usec_COMMAND", kHistogram, "us",
     "percentiles of the command's time", nullptr, Call<&CommandStats::ResetLatencies>},
    {"onetrip", "rtt_per_get", kHistogram, "round trips", "mean of reads, retries included",
     MeanOf<&StoreMetrics::get_round_trips>, Clear<&StoreMetrics::get_round_trips>},
    {"onetrip", "rtt_per_get_histogram", kHistogram, "round trips",
     "the distribution behind it, in pairs TRIPS=COUNT", BucketsOf<&StoreMetrics::get_round_trips>,
     Clear<&StoreMetrics::get_round_trips>},
    {"onetrip", "rtt_per_set", kHistogram, "round trips", "mean of blind writes, retries included",
     MeanOf<&StoreMetrics::set_round_trips>, Clear<&StoreMetrics::set_round_trips>},
    {"onetrip", "rtt_per_set_histogram", kHistogram, "round trips",
     "the distribution behind it, in pairs TRIPS=COUNT", BucketsOf<&StoreMetrics::set_round_trips>,
     Clear<&StoreMetrics::set_round_trips>},
    {"onetrip", "rtt_per_del", kHistogram, "round trips", "mean of deletions, retries included",
     MeanOf<&StoreMetrics::del_round_trips>, Clear<&StoreMetrics::del_round_trips>},
    {"onetrip", "rtt_per_del_histogram", kHistogram, "round trips",
     "the distribution behind it, in pairs TRIPS=COUNT", BucketsOf<&StoreMetrics::del_round_trips>,
     Clear<&StoreMetrics::del_round_trips>},
    {"onetrip", "rtt_per_rmw", kHistogram, "round trips",
     "mean of reads-and-writes, such as INCR, retries included",
     MeanOf<&StoreMetrics::rmw_round_trips>, Clear<&StoreMetrics::rmw_round_trips>},
    {"onetrip", "rtt_per_rmw_histogram", kHistogram, "round trips",
     "the distribution behind it, in pairs TRIPS=COUNT", BucketsOf<&StoreMetrics::rmw_round_trips>,
     Clear<&StoreMetrics::rmw_round_trips>},
    {"onetrip", "commands_overlapped", kCounter, "",
     "commands that ran beside others of the same pipeline", Sum<&TrafficMetrics::overlapped>,
     Clear<&TrafficMetrics::overlapped>},
    {"onetrip", "rmw_combined", kCounter, "",
     "reads-and-writes that another one of the same key carried out with its own",
     Sum<&StoreMetrics::rmw_combined>, Clear<&StoreMetrics::rmw_combined>},
    {"onetrip", "hot_writes", kCounter, "",
     "writes of keys that this agent keeps writing, which took no search",
     Sum<&StoreMetrics::hot_writes>, Clear<&StoreMetrics::hot_writes>},
    {"onetrip", "lost_rounds", kCounter, "", "slot writes that another writer won",
     Sum<&StoreMetrics::lost_rounds>, Clear<&StoreMetrics::lost_rounds>},
    {"onetrip", "registers_thawed", kCounter, "", "registers that this agent turned into records",
     Sum<&StoreMetrics::registers_thawed>},
    {"onetrip", "unknown_outcomes", kCounter, "",
     "commands that ended without knowing whether they took effect",
     Sum<&StoreMetrics::unknown_outcomes>, Clear<&StoreMetrics::unknown_outcomes>},
    {"onetrip", "swept_records", kCounter, "", "records of flushed databases that were removed",
     Sum<&StoreMetrics::swept>},
    {"onetrip", "location_cache_bytes", kGauge, "bytes",
     "memory of this process for the locations of keys", Sum<&IndexMetrics::cache_bytes>},
    {"onetrip", "location_cache_hits", kCounter, "", "searches that the location cache answered",
     Sum<&IndexMetrics::cache_hits>},
    {"onetrip", "location_cache_invalid", kCounter, "",
     "searches that it sent to where the key was no more", Sum<&IndexMetrics::cache_invalid>},
    {"onetrip", "large_value_memory_bytes", kGauge, "bytes",
     "limit of what values above 1 MiB may take of this process",
     OfBothBudgets<&MemoryBudget::bytes>},
    {"onetrip", "large_value_request_bytes", kGauge, "bytes", "taken of it by requests",
     OfLargeRequests<&MemoryBudget::used_bytes>},
    {"onetrip", "large_value_read_bytes", kGauge, "bytes",
     "taken of it by values on their way to clients", OfLargeValues<&MemoryBudget::used_bytes>},
    {"onetrip", "large_value_waiting", kGauge, "", "requests and reads that wait for some of it",
     OfBothBudgets<&MemoryBudget::waiting>},
    {"onetrip", "index_splits", kCounter, "", "subtables of the index that this agent split",
     Sum<&IndexMetrics::splits>},
    {"onetrip", "rdma_requests", kCounter, "", "requests posted over RDMA",
     Sum<&RdmaMetrics::requests>, Clear<&RdmaMetrics::requests>},
    {"onetrip", "rdma_doorbells", kCounter, "",
     "calls that posted them: one for each memory node and round trip",
     Sum<&RdmaMetrics::doorbells>, Clear<&RdmaMetrics::doorbells>},
    {"onetrip", "rdma_completions", kCounter, "", "completions that were taken",
     Sum<&RdmaMetrics::completions>, Clear<&RdmaMetrics::completions>},
    {"onetrip", "rdma_flushed", kCounter, "",
     "batches over RDMA of which it is not known whether they took effect",
     Sum<&RdmaMetrics::flushed>, Clear<&RdmaMetrics::flushed>},
    {"onetrip", "rdma_unsent", kCounter, "",
     "batches over RDMA that were refused before anything was posted", Sum<&RdmaMetrics::unsent>,
     Clear<&RdmaMetrics::unsent>},
    {"onetrip", "rdma_wakeups", kCounter, "", "completions that found the worker asleep",
     Sum<&RdmaMetrics::wakeups>, Clear<&RdmaMetrics::wakeups>},
    {"onetrip", "rdma_connections", kCounter, "", "queue pairs that were connected",
     Sum<&RdmaMetrics::connections>, Clear<&RdmaMetrics::connections>},
    {"onetrip", "rdma_requests_per_command", kGauge, "", "requests over RDMA by commands executed",
     PerCommand<&RdmaMetrics::requests>},
    {"onetrip", "rdma_doorbells_per_command", kGauge, "",
     "calls that posted them, by commands executed", PerCommand<&RdmaMetrics::doorbells>},
    // The whole cluster's, of one replica: the same through every agent (docs/DEPLOYMENT.md).
    {"onetrip", "pool_capacity_bytes", kGauge, "bytes", "cluster: what keys and index can have",
     OfPool<&PoolUsage::capacity_bytes>},
    {"onetrip", "pool_used_bytes", kGauge, "bytes",
     "cluster: in use, the overhead of partly used blocks included",
     OfPool<&PoolUsage::used_bytes>},
    {"onetrip", "pool_used_percent", kGauge, "%", "cluster: in use, rounded down",
     OfPool<&PoolUsage::used_percent>},
    {"onetrip", "pool_granted_bytes", kGauge, "bytes", "cluster: blocks that are granted to agents",
     OfPool<&PoolUsage::granted_bytes>},
    {"onetrip", "pool_free_block_bytes", kGauge, "bytes",
     "cluster: blocks that any size of value can have", OfPool<&PoolUsage::free_block_bytes>},
    {"onetrip", "pool_free_in_blocks_bytes", kGauge, "bytes",
     "cluster: free in blocks that are granted", OfPool<&PoolUsage::free_in_blocks>},
    {"onetrip", "pool_coming_back_bytes", kGauge, "bytes",
     "cluster: deleted or overwritten, and free a moment later", OfPool<&PoolUsage::retired_bytes>},
    {"onetrip", "pool_reserve_bytes", kGauge, "bytes", "cluster: kept for repairs and splits",
     OfPool<&PoolUsage::reserve_bytes>},
    {"onetrip", "pool_warning", kText, "",
     "cluster: why writes are refused, or soon will be, and what helps", PoolWarning},
    // This agent's workers'. owned = live + free + what headers and cutting leave over; subtables
    // of the index are among the live bytes.
    {"onetrip", "pool_owned_bytes", kGauge, "bytes", "blocks that are granted to this agent",
     Sum<&AllocatorMetrics::owned_bytes>},
    {"onetrip", "pool_live_bytes", kGauge, "bytes", "objects in them",
     Sum<&AllocatorMetrics::live_bytes>},
    {"onetrip", "pool_free_bytes", kGauge, "bytes", "free in them",
     Sum<&AllocatorMetrics::free_bytes>},
    {"onetrip", "pool_retired_bytes", kGauge, "bytes",
     "objects that this agent deleted or overwrote, and that are free a moment later",
     Sum<&AllocatorMetrics::retired_bytes>},
    {"onetrip", "pool_index_bytes", kGauge, "bytes", "subtables of the index that this agent made",
     Sum<&IndexMetrics::subtable_bytes>},
    {"onetrip", "pool_blocks_opened", kCounter, "",
     "partly used blocks that this agent gave to whichever agent needs them",
     Sum<&AllocatorMetrics::blocks_opened>},
    {"onetrip", "pool_blocks_acquired", kCounter, "", "partly used blocks that it took over",
     Sum<&AllocatorMetrics::blocks_acquired>},
    {"onetrip", "pool_objects_found", kCounter, "", "objects that were lost, and found and freed",
     Sum<&AllocatorMetrics::objects_found>},
    {"onetrip", "pool_objects_moved", kCounter, "",
     "records moved out of blocks of which little was used", Sum<&StoreMetrics::objects_moved>},
    {"onetrip", "pool_exhausted", kCounter, "", "allocations that were refused for want of memory",
     Sum<&AllocatorMetrics::exhausted>},
};

}  // namespace

std::span<const MetricRow> MetricsRegistry() { return kRows; }

std::string_view NameOf(MetricKind kind) {
  constexpr std::string_view kNames[] = {"counter", "gauge", "histogram", "text", "absent"};
  return kNames[static_cast<size_t>(kind)];
}

void AppendMetrics(std::string_view section, const MetricSources& sources, std::string* out) {
  for (const MetricRow& row : kRows) {
    if (row.section != section || row.text == nullptr) continue;
    const std::string text = row.text(sources);
    if (text.empty() && row.kind == kText) continue;
    out->append(row.name).append(":").append(text).append("\r\n");
  }
}

void ResetMetrics(WorkerMetrics& worker) {
  for (const MetricRow& row : kRows) {
    if (row.reset != nullptr) row.reset(worker);
  }
}

uint64_t ClientBytes(const MetricSources& sources) {
  return Total<&TrafficMetrics::client_bytes>(sources);
}

std::string HistogramText(const Histogram& histogram) {
  std::string text;
  for (size_t bucket = 0; bucket < Histogram::kBucketCount; ++bucket) {
    const uint64_t count = histogram.CountOf(bucket);
    if (count == 0) continue;
    if (!text.empty()) text += ",";
    text += std::to_string(Histogram::UpperBoundOf(bucket)) + "=" + std::to_string(count);
  }
  return text;
}

}  // namespace onetrip
