// The metrics registry: the one list of what an agent counts. A row names a counter, says what it
// is, how INFO reads it, and whether CONFIG RESETSTAT sets it back.
//
// INFO, CONFIG RESETSTAT and the table of docs/MONITORING.md are made of this list; `onetrip
// status` and redis_exporter read INFO. It stands above every layer that counts, because its rows
// name their fields; what a count is made of is in client_core/base/metrics.h.
#ifndef ONETRIP_FRONTEND_METRICS_METRICS_REGISTRY_H_
#define ONETRIP_FRONTEND_METRICS_METRICS_REGISTRY_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/memory_budget.h"
#include "client_core/cluster/pool_usage.h"
#include "frontend/metrics/worker_metrics.h"

namespace onetrip {

// Where one INFO reads its numbers: the workers as they count on, the rest as of one moment.
struct MetricSources {
  std::vector<const WorkerMetrics*> workers;
  PoolUsage pool;  // the whole cluster's
  uint64_t open_clients = 0;
  uint64_t max_clients = 0;
  uint64_t paused_clients = 0;
  // The memory for large values; not null.
  const MemoryBudget* large_requests = nullptr;
  const MemoryBudget* large_values = nullptr;
};

enum class MetricKind : uint8_t {
  kCounter,    // grows since the start, or since CONFIG RESETSTAT
  kGauge,      // a state that goes up and down
  kHistogram,  // a distribution, or a number that is taken from one
  kText,       // a sentence; the field is shown only while there is one
  kAbsent,     // Redis shows it, and it cannot happen here: always 0
};

struct MetricRow {
  std::string_view section;  // a section of INFO, in lower case
  std::string_view name;     // as INFO shows it
  MetricKind kind;
  std::string_view unit;  // empty: a plain number
  std::string_view help;  // one line for docs/MONITORING.md
  // The value as INFO shows it. Null: the row stands for a field of each command, or of each word
  // of an error, which redis_compat writes.
  std::string (*text)(const MetricSources& sources);
  // Sets it back at CONFIG RESETSTAT, on the thread of each worker. Null: it stays.
  void (*reset)(WorkerMetrics& worker) = nullptr;
};

// All rows, in the order of INFO within each section.
std::span<const MetricRow> MetricsRegistry();

// The kind in one word.
std::string_view NameOf(MetricKind kind);

// Appends "name:value\r\n" of every row of `section`. Any thread, while the workers run.
void AppendMetrics(std::string_view section, const MetricSources& sources, std::string* out);

// CONFIG RESETSTAT of one worker. The worker's thread.
void ResetMetrics(WorkerMetrics& worker);

// The bytes that clients take, which MEMORY STATS shows, too.
uint64_t ClientBytes(const MetricSources& sources);

// "1=100,2=7": how often each value was recorded; a bucket of several values shows its largest.
std::string HistogramText(const Histogram& histogram);

}  // namespace onetrip

#endif  // ONETRIP_FRONTEND_METRICS_METRICS_REGISTRY_H_
