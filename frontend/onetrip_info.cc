#include "frontend/onetrip_info.h"

#include <cstdint>
#include <cstdio>
#include <memory>

#include "client_core/cluster/pool_text.h"
#include "client_core/index/index.h"
#include "client_core/kv/kv.h"
#include "client_core/memory/allocator.h"
#include "frontend/server.h"
#include "frontend/worker.h"

namespace onetrip {
namespace {

void Field(std::string_view name, std::string_view value, std::string* out) {
  out->append(name).append(":").append(value).append("\r\n");
}

void Field(std::string_view name, uint64_t value, std::string* out) {
  Field(name, std::to_string(value), out);
}

// One kind of operation, over all workers.
void RoundTrips(const Server& server, std::string_view kind, Histogram StoreMetrics::*which,
                std::string* out) {
  // Eight kilobytes: too large for the stack of a worker that may be deep in a pipeline.
  const auto sum = std::make_unique<Histogram>();
  for (const std::unique_ptr<Worker>& worker : server.workers()) {
    sum->Merge(worker->store_metrics().*which);
  }
  const std::string name = "rtt_per_" + std::string(kind);
  char mean[32];
  std::snprintf(mean, sizeof(mean), "%.3f", sum->Mean());
  Field(name, mean, out);
  Field(name + "_histogram", HistogramText(*sum), out);
}

}  // namespace

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

void AppendOnetripSection(const Server& server, std::string* out) {
  Field("engine", server.options().engine, out);
  Field("workers", server.workers().size(), out);
  for (const InfoField& field : server.storage().Info()) Field(field.name, field.value, out);
  RoundTrips(server, "get", &StoreMetrics::get_round_trips, out);
  RoundTrips(server, "set", &StoreMetrics::set_round_trips, out);
  RoundTrips(server, "del", &StoreMetrics::del_round_trips, out);
  RoundTrips(server, "rmw", &StoreMetrics::rmw_round_trips, out);

  const auto sum = [&server](auto value) {
    uint64_t total = 0;
    for (const auto& worker : server.workers()) total += value(worker->store_metrics());
    return total;
  };
  Field("lost_rounds", sum([](const StoreMetrics& m) { return m.lost_rounds.Value(); }), out);
  Field("registers_thawed", sum([](const StoreMetrics& m) { return m.registers_thawed.Value(); }),
        out);
  Field("unknown_outcomes", sum([](const StoreMetrics& m) { return m.unknown_outcomes.Value(); }),
        out);
  Field("swept_records", sum([](const StoreMetrics& m) { return m.swept.Value(); }), out);
  Field("location_cache_bytes",
        sum([](const StoreMetrics& m) { return m.location_cache_bytes.Value(); }), out);
  Field("location_cache_hits",
        sum([](const StoreMetrics& m) { return m.index->cache_hits.Value(); }), out);
  Field("location_cache_invalid",
        sum([](const StoreMetrics& m) { return m.index->cache_invalid.Value(); }), out);
  const LargeValueBudgets& large = server.storage().large_values();
  Field("large_value_memory_bytes", large.requests->bytes() + large.values->bytes(), out);
  Field("large_value_request_bytes", large.requests->used_bytes(), out);
  Field("large_value_read_bytes", large.values->used_bytes(), out);
  Field("large_value_waiting", large.requests->waiting() + large.values->waiting(), out);
  Field("index_splits", sum([](const StoreMetrics& m) { return m.index->splits.Value(); }), out);

  // Of the whole cluster, one replica: the same through every agent (docs/DEPLOYMENT.md).
  const PoolUsage usage = server.storage().pool_usage();
  Field("pool_capacity_bytes", usage.capacity_bytes, out);
  Field("pool_used_bytes", usage.used_bytes(), out);
  Field("pool_used_percent", usage.used_percent(), out);
  Field("pool_granted_bytes", usage.granted_bytes, out);
  Field("pool_free_block_bytes", usage.free_block_bytes(), out);
  Field("pool_free_in_blocks_bytes", usage.free_in_blocks(), out);
  Field("pool_coming_back_bytes", usage.retired_bytes, out);
  Field("pool_reserve_bytes", usage.reserve_bytes, out);
  const std::string warning = WhyShortOfMemory(usage);
  if (!warning.empty()) Field("pool_warning", warning, out);
  // Of this agent's workers. owned = live + free + what headers and cutting leave over; index
  // subtables are among the live bytes.
  Field("pool_owned_bytes",
        sum([](const StoreMetrics& m) { return m.allocator->owned_bytes.Value(); }), out);
  Field("pool_live_bytes",
        sum([](const StoreMetrics& m) { return m.allocator->live_bytes.Value(); }), out);
  Field("pool_free_bytes",
        sum([](const StoreMetrics& m) { return m.allocator->free_bytes.Value(); }), out);
  Field("pool_retired_bytes",
        sum([](const StoreMetrics& m) { return m.allocator->retired_bytes.Value(); }), out);
  Field("pool_index_bytes",
        sum([](const StoreMetrics& m) { return m.index->subtable_bytes.Value(); }), out);
  Field("pool_blocks_opened",
        sum([](const StoreMetrics& m) { return m.allocator->blocks_opened.Value(); }), out);
  Field("pool_blocks_acquired",
        sum([](const StoreMetrics& m) { return m.allocator->blocks_acquired.Value(); }), out);
  Field("pool_objects_found",
        sum([](const StoreMetrics& m) { return m.allocator->objects_found.Value(); }), out);
  Field("pool_objects_moved", sum([](const StoreMetrics& m) { return m.objects_moved.Value(); }),
        out);
  Field("pool_exhausted", sum([](const StoreMetrics& m) { return m.allocator->exhausted.Value(); }),
        out);
}

}  // namespace onetrip
