// The ways in which rows of the metrics registry are read and set back, by the field that they
// name.
#ifndef ONETRIP_FRONTEND_METRICS_METRIC_READERS_H_
#define ONETRIP_FRONTEND_METRICS_METRIC_READERS_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "client_core/index/index_metrics.h"
#include "client_core/memory/allocator_metrics.h"
#include "frontend/metrics/metrics_registry.h"

namespace onetrip::metric_readers {

// The part of a worker's counters that has the field.
template <typename Field>
const TrafficMetrics& OwnerOf(const WorkerMetrics& worker, Field TrafficMetrics::*) {
  return worker.traffic;
}
template <typename Field>
TrafficMetrics& OwnerOf(WorkerMetrics& worker, Field TrafficMetrics::*) {
  return worker.traffic;
}
template <typename Field>
const CommandStats& OwnerOf(const WorkerMetrics& worker, Field CommandStats::*) {
  return worker.commands;
}
template <typename Field>
const StoreMetrics& OwnerOf(const WorkerMetrics& worker, Field StoreMetrics::*) {
  return *worker.store;
}
template <typename Field>
StoreMetrics& OwnerOf(WorkerMetrics& worker, Field StoreMetrics::*) {
  return *worker.store;
}
template <typename Field>
const AllocatorMetrics& OwnerOf(const WorkerMetrics& worker, Field AllocatorMetrics::*) {
  return *worker.store->allocator;
}
template <typename Field>
const IndexMetrics& OwnerOf(const WorkerMetrics& worker, Field IndexMetrics::*) {
  return *worker.store->index;
}

template <typename Field>
const RdmaMetrics& OwnerOf(const WorkerMetrics& worker, Field RdmaMetrics::*) {
  return *worker.rdma;
}
template <typename Field>
RdmaMetrics& OwnerOf(WorkerMetrics& worker, Field RdmaMetrics::*) {
  return *worker.rdma;
}

inline uint64_t Plain(uint64_t value) { return value; }
inline uint64_t Plain(const Counter& counter) { return counter.Value(); }
inline uint64_t Plain(const BytesOfClasses& bytes) { return bytes.Value(); }

template <auto kField>
uint64_t ValueOf(const WorkerMetrics& worker) {
  return Plain(std::invoke(kField, OwnerOf(worker, kField)));
}

template <auto kField>
uint64_t Total(const MetricSources& sources) {
  uint64_t total = 0;
  for (const WorkerMetrics* worker : sources.workers) total += ValueOf<kField>(*worker);
  return total;
}

inline std::string Decimal(double value, int digits) {
  char text[64];
  const int size = std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return std::string(text, static_cast<size_t>(size));
}

// The ways to read a row.

template <auto kField>
std::string Sum(const MetricSources& sources) {
  return std::to_string(Total<kField>(sources));
}

template <auto kField>
std::string Largest(const MetricSources& sources) {
  uint64_t largest = 0;
  for (const WorkerMetrics* worker : sources.workers) {
    largest = std::max(largest, ValueOf<kField>(*worker));
  }
  return std::to_string(largest);
}

// In units of 1,024 bytes.
template <auto kField>
std::string SumInKib(const MetricSources& sources) {
  return Decimal(static_cast<double>(Total<kField>(sources)) / 1024, 2);
}

// Eight kilobytes: too large for the stack of a worker that may be deep in a pipeline.
template <auto kField>
std::unique_ptr<Histogram> Merged(const MetricSources& sources) {
  auto merged = std::make_unique<Histogram>();
  for (const WorkerMetrics* worker : sources.workers) {
    merged->Merge(OwnerOf(*worker, kField).*kField);
  }
  return merged;
}

template <auto kField>
std::string MeanOf(const MetricSources& sources) {
  return Decimal(Merged<kField>(sources)->Mean(), 3);
}

template <auto kField>
std::string BucketsOf(const MetricSources& sources) {
  return HistogramText(*Merged<kField>(sources));
}

template <auto kField>
std::string PerCommand(const MetricSources& sources) {
  const uint64_t commands = Total<&CommandStats::calls>(sources);
  const uint64_t all = Total<kField>(sources);
  return Decimal(commands == 0 ? 0 : static_cast<double>(all) / static_cast<double>(commands), 3);
}

// A number of MetricSources itself.
template <auto kField>
std::string Direct(const MetricSources& sources) {
  return std::to_string(sources.*kField);
}

template <auto kField>
std::string OfPool(const MetricSources& sources) {
  return std::to_string(std::invoke(kField, sources.pool));
}

template <auto kField>
std::string OfLargeRequests(const MetricSources& sources) {
  return std::to_string(std::invoke(kField, *sources.large_requests));
}

template <auto kField>
std::string OfLargeValues(const MetricSources& sources) {
  return std::to_string(std::invoke(kField, *sources.large_values));
}

template <auto kField>
std::string OfBothBudgets(const MetricSources& sources) {
  return std::to_string(std::invoke(kField, *sources.large_requests) +
                        std::invoke(kField, *sources.large_values));
}

inline std::string Zero(const MetricSources&) { return "0"; }

// The ways to set a row back. Only what a worker itself writes can be.

template <auto kField>
void Clear(WorkerMetrics& worker) {
  (OwnerOf(worker, kField).*kField).Reset();
}

template <void (CommandStats::*kReset)()>
void Call(WorkerMetrics& worker) {
  (worker.commands.*kReset)();
}

}  // namespace onetrip::metric_readers

#endif  // ONETRIP_FRONTEND_METRICS_METRIC_READERS_H_
