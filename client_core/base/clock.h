// Clock: the two times production code may ask for, behind an interface so that a simulation owns
// them. Steady time orders local events; unix time is only ever used through the cluster clock.
#ifndef ONETRIP_CLIENT_CORE_BASE_CLOCK_H_
#define ONETRIP_CLIENT_CORE_BASE_CLOCK_H_

#include <cstdint>

namespace onetrip {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds of a steady clock; the origin means nothing. Any thread.
  [[nodiscard]] virtual uint64_t NowNs() const = 0;
  // Microseconds since the Unix epoch by this host's wall clock, which may step. Any thread.
  [[nodiscard]] virtual uint64_t UnixUs() const = 0;
};

// CLOCK_MONOTONIC and CLOCK_REALTIME.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] uint64_t NowNs() const override;
  [[nodiscard]] uint64_t UnixUs() const override;
};

// A clock that moves only when told to. Not thread-safe.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] uint64_t NowNs() const override { return now_ns_; }
  [[nodiscard]] uint64_t UnixUs() const override { return unix_origin_us_ + now_ns_ / 1000; }

  void AdvanceTo(uint64_t now_ns) { now_ns_ = now_ns > now_ns_ ? now_ns : now_ns_; }
  void Advance(uint64_t delta_ns) { now_ns_ += delta_ns; }
  void SetUnixOriginUs(uint64_t origin_us) { unix_origin_us_ = origin_us; }

 private:
  uint64_t now_ns_ = 0;
  uint64_t unix_origin_us_ = 1'700'000'000'000'000;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_CLOCK_H_
