#include "client_core/base/metrics.h"

#include <algorithm>
#include <cmath>

#include "client_core/base/check.h"

namespace onetrip {

void Histogram::Merge(const Histogram& other) {
  for (size_t i = 0; i < kBucketCount; ++i) {
    const uint64_t count = other.counts_[i].Value();
    if (count != 0) counts_[i].Add(count);
  }
  sum_.Add(other.sum_.Value());
  max_.Set(std::max(max_.Value(), other.max_.Value()));
}

void Histogram::Reset() {
  for (Counter& count : counts_) count.Reset();
  sum_.Reset();
  max_.Reset();
}

uint64_t Histogram::Count() const {
  uint64_t total = 0;
  for (const Counter& count : counts_) total += count.Value();
  return total;
}

double Histogram::Mean() const {
  const uint64_t count = Count();
  return count == 0 ? 0.0 : static_cast<double>(Sum()) / static_cast<double>(count);
}

uint64_t Histogram::Percentile(double percent) const {
  CHECK(percent >= 0.0 && percent <= 100.0);
  const uint64_t count = Count();
  if (count == 0) return 0;
  const double share = std::ceil(percent / 100.0 * static_cast<double>(count));
  const uint64_t rank = std::max<uint64_t>(1, static_cast<uint64_t>(share));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBucketCount; ++i) {
    seen += counts_[i].Value();
    if (seen >= rank) return std::min(UpperBoundOf(i), Max());
  }
  return Max();
}

}  // namespace onetrip
