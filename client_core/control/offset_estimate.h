// OffsetEstimate: how far the cluster's clock is from this host's steady one, from what the master
// says and how long it took to ask. Pure; one thread.
//
// A sample is off by at most half its round trip, so the one with the shortest round trip among the
// newest counts. Before anybody uses the clock the offset jumps to it; afterwards it moves so
// slowly that the clock built on it goes neither back nor noticeably wrong.
#ifndef ONETRIP_CLIENT_CORE_CONTROL_OFFSET_ESTIMATE_H_
#define ONETRIP_CLIENT_CORE_CONTROL_OFFSET_ESTIMATE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace onetrip {

class OffsetEstimate {
 public:
  static constexpr size_t kSamples = 16;
  // The offset moves by one in this many, and faster when it is more than kFarUs off.
  static constexpr int64_t kSlowness = 2000;
  static constexpr int64_t kSlownessFar = 20;
  static constexpr int64_t kFarUs = 10'000;

  // The master said `time_us` between the two steady times.
  void Add(uint64_t time_us, uint64_t sent_ns, uint64_t received_ns) {
    const uint64_t middle_us = sent_ns / 2000 + received_ns / 2000;
    samples_[next_++ % kSamples] = {
        received_ns - sent_ns, static_cast<int64_t>(time_us) - static_cast<int64_t>(middle_us)};
    const size_t count = std::min(next_, kSamples);
    const auto* const best = std::min_element(
        samples_.begin(), samples_.begin() + count,
        [](const Sample& a, const Sample& b) { return a.round_trip_ns < b.round_trip_ns; });
    is_told_ = true;
    const int64_t missing_us = best->offset_us - offset_us_;
    const int64_t elapsed_us = static_cast<int64_t>((received_ns - moved_ns_) / 1000);
    moved_ns_ = received_ns;
    if (!in_use_) {
      offset_us_ = best->offset_us;
      return;
    }
    const bool far = missing_us > kFarUs || missing_us < -kFarUs;
    const int64_t step_us = elapsed_us / (far ? kSlownessFar : kSlowness);
    offset_us_ += std::clamp(missing_us, -step_us, step_us);
  }

  // The cluster's time is `time_us` or later, whatever was said before. Before anybody uses the
  // clock it goes there; afterwards nothing makes it jump.
  void AtLeast(uint64_t time_us, uint64_t now_ns) {
    const int64_t offset_us = static_cast<int64_t>(time_us) - static_cast<int64_t>(now_ns / 1000);
    if (in_use_ || time_us == 0 || offset_us <= offset_us_) return;
    next_ = 0;
    Add(time_us, now_ns, now_ns);
    // It is of no known round trip: whatever is asked next counts for more.
    samples_[0].round_trip_ns = UINT64_MAX;
  }

  // From now on a process reads the clock.
  void Use() { in_use_ = true; }

  [[nodiscard]] int64_t offset_us() const { return offset_us_; }
  // The cluster's time; 0: no master has told it yet.
  [[nodiscard]] uint64_t TimeUs(uint64_t now_ns) const {
    return is_told_ ? now_ns / 1000 + static_cast<uint64_t>(offset_us_) : 0;
  }

 private:
  struct Sample {
    uint64_t round_trip_ns = 0;
    int64_t offset_us = 0;
  };
  std::array<Sample, kSamples> samples_{};
  size_t next_ = 0;
  int64_t offset_us_ = 0;
  uint64_t moved_ns_ = 0;
  bool in_use_ = false;
  bool is_told_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CONTROL_OFFSET_ESTIMATE_H_
