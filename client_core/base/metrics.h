// Metrics: counters and histograms that one thread writes and any thread reads.
//
// Each worker owns its own and a reader adds them up, so that a count costs the data path a plain
// add: no locked instruction, no allocation, no shared cache line. A reader sees every value whole
// but no common instant across several of them.
#ifndef ONETRIP_CLIENT_CORE_BASE_METRICS_H_
#define ONETRIP_CLIENT_CORE_BASE_METRICS_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace onetrip {

// A sum. Add, Sub, Set and Reset: the owning thread only. Value: any thread.
class Counter {
 public:
  void Add(uint64_t delta = 1) { Set(Value() + delta); }
  void Sub(uint64_t delta = 1) { Set(Value() - delta); }
  void Set(uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  void Reset() { Set(0); }
  [[nodiscard]] uint64_t Value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// A distribution of 64-bit values in log-linear buckets: exact below 16, within 6.25 % above. Holds
// 7.8 KB inline. Record, Merge and Reset: the owning thread only. The rest: any thread.
class Histogram {
 public:
  // Sixteen buckets for the values below 16, then sixteen for each further power of two.
  static constexpr size_t kSubBuckets = 16;
  static constexpr size_t kBucketCount = kSubBuckets * (64 - 4 + 1);

  void Record(uint64_t value) {
    counts_[BucketOf(value)].Add();
    sum_.Add(value);
    if (value > max_.Value()) max_.Set(value);
  }

  // Adds what `other` holds to this one.
  void Merge(const Histogram& other);
  void Reset();

  [[nodiscard]] uint64_t Count() const;
  // Sum of the values as recorded, wrapping at 2^64.
  [[nodiscard]] uint64_t Sum() const { return sum_.Value(); }
  [[nodiscard]] uint64_t Max() const { return max_.Value(); }
  // 0 when nothing was recorded.
  [[nodiscard]] double Mean() const;
  // The largest value of the bucket that holds the `percent`-th percentile, no more than Max(); 0
  // when nothing was recorded. REQUIRES: 0 <= percent <= 100.
  [[nodiscard]] uint64_t Percentile(double percent) const;

  [[nodiscard]] uint64_t CountOf(size_t bucket) const { return counts_[bucket].Value(); }

  static constexpr size_t BucketOf(uint64_t value) {
    if (value < kSubBuckets) return value;
    const auto shift = static_cast<size_t>(std::bit_width(value)) - 5;
    return shift * kSubBuckets + (value >> shift);
  }
  // The largest value that falls into `bucket`.
  static constexpr uint64_t UpperBoundOf(size_t bucket) {
    if (bucket < kSubBuckets) return bucket;
    const size_t shift = bucket / kSubBuckets - 1;
    const uint64_t lowest = static_cast<uint64_t>(bucket % kSubBuckets + kSubBuckets) << shift;
    return lowest + ((uint64_t{1} << shift) - 1);
  }

 private:
  std::array<Counter, kBucketCount> counts_;
  Counter sum_;
  Counter max_;
};

// The mapping is a bijection between buckets and value ranges, up to the largest value.
static_assert(Histogram::BucketOf(~uint64_t{0}) == Histogram::kBucketCount - 1);
static_assert(Histogram::UpperBoundOf(Histogram::kBucketCount - 1) == ~uint64_t{0});
static_assert(Histogram::BucketOf(16) == 16 && Histogram::BucketOf(32) == 32);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_METRICS_H_
