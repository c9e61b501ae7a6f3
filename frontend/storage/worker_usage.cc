#include "frontend/storage/worker_usage.h"

namespace onetrip {

void WorkerUsageSum::Add(const AllocatorMetrics& metrics) {
  const std::lock_guard<std::mutex> lock(mutex_);
  workers_.push_back({&metrics, metrics.exhausted.Value()});
}

void WorkerUsageSum::Remove(const AllocatorMetrics& metrics) {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(workers_, [&](const OneWorker& one) { return one.metrics == &metrics; });
}

WorkerUsage WorkerUsageSum::Sum() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto now = std::chrono::steady_clock::now();
  WorkerUsage usage;
  for (OneWorker& one : workers_) {
    for (uint8_t i = 0; i < SizeClass::kCount; ++i) {
      usage.free_bytes[i] += one.metrics->free_bytes.ValueOf(SizeClass(i));
    }
    usage.retired_bytes += one.metrics->retired_bytes.Value();
    const uint64_t exhausted = one.metrics->exhausted.Value();
    if (one.exhausted == exhausted) continue;
    one.exhausted = exhausted;
    refused_bytes_ = one.metrics->exhausted_for.Value();
    refused_until_ = now + kRefusedFor;
  }
  if (now < refused_until_) usage.refused_bytes = refused_bytes_;
  return usage;
}

}  // namespace onetrip
