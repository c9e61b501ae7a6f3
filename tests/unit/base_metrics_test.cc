#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "client_core/base/metrics.h"
#include "client_core/base/rng.h"

namespace onetrip {
namespace {

TEST(Histogram, EveryBucketEndsWhereTheNextBegins) {
  for (size_t bucket = 0; bucket + 1 < Histogram::kBucketCount; ++bucket) {
    const uint64_t upper = Histogram::UpperBoundOf(bucket);
    ASSERT_EQ(Histogram::BucketOf(upper), bucket);
    ASSERT_EQ(Histogram::BucketOf(upper + 1), bucket + 1);
  }
}

TEST(Histogram, SmallValuesAreExact) {
  Histogram histogram;
  for (uint64_t value = 1; value <= 10; ++value) histogram.Record(value);
  EXPECT_EQ(histogram.Count(), 10U);
  EXPECT_EQ(histogram.Sum(), 55U);
  EXPECT_DOUBLE_EQ(histogram.Mean(), 5.5);
  EXPECT_EQ(histogram.Percentile(0), 1U);
  EXPECT_EQ(histogram.Percentile(50), 5U);
  EXPECT_EQ(histogram.Percentile(90), 9U);
  EXPECT_EQ(histogram.Percentile(100), 10U);
  EXPECT_EQ(histogram.Max(), 10U);
}

TEST(Histogram, AnEmptyOneAnswersZero) {
  const Histogram histogram;
  EXPECT_EQ(histogram.Count(), 0U);
  EXPECT_EQ(histogram.Mean(), 0.0);
  EXPECT_EQ(histogram.Percentile(99), 0U);
}

TEST(Histogram, PercentilesStayWithinASixteenthOfTheTruth) {
  Rng rng(7);
  Histogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 20000; ++i) {
    values.push_back(rng.Next() >> rng.Below(64));
    histogram.Record(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double percent : {1.0, 25.0, 50.0, 75.0, 99.0, 99.9}) {
    const auto index = static_cast<size_t>(percent / 100 * static_cast<double>(values.size())) - 1;
    const auto truth = static_cast<double>(values[index]);
    const auto answer = static_cast<double>(histogram.Percentile(percent));
    EXPECT_GE(answer, truth) << percent;
    EXPECT_LE(answer, truth * (1 + 1.0 / 16) + 1) << percent;
  }
}

TEST(Histogram, MergeAddsAndResetForgets) {
  Histogram a;
  Histogram b;
  a.Record(3);
  b.Record(5);
  b.Record(1000);
  a.Merge(b);
  EXPECT_EQ(a.Count(), 3U);
  EXPECT_EQ(a.Sum(), 1008U);
  EXPECT_EQ(a.Max(), 1000U);
  EXPECT_EQ(a.CountOf(Histogram::BucketOf(5)), 1U);
  a.Reset();
  EXPECT_EQ(a.Count(), 0U);
  EXPECT_EQ(a.Sum(), 0U);
  EXPECT_EQ(a.Max(), 0U);
}

TEST(Metrics, ReadersOfAnotherThreadSeeValuesThatNeverGoBack) {
  constexpr uint64_t kRecords = 200'000;
  auto counter = std::make_unique<Counter>();
  auto histogram = std::make_unique<Histogram>();
  std::thread writer([&] {
    for (uint64_t i = 0; i < kRecords; ++i) {
      counter->Add();
      histogram->Record(i);
    }
  });
  uint64_t last = 0;
  uint64_t last_count = 0;
  while (last < kRecords) {
    const uint64_t seen = counter->Value();
    const uint64_t count = histogram->Count();
    EXPECT_GE(seen, last);
    EXPECT_GE(count, last_count);
    last = seen;
    last_count = count;
  }
  writer.join();
  EXPECT_EQ(histogram->Count(), kRecords);
}

}  // namespace
}  // namespace onetrip
