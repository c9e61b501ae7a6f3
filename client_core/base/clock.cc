#include "client_core/base/clock.h"

#include <ctime>

namespace onetrip {
namespace {

uint64_t ReadNs(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000ULL + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t SystemClock::NowNs() const { return ReadNs(CLOCK_MONOTONIC); }
uint64_t SystemClock::UnixUs() const { return ReadNs(CLOCK_REALTIME) / 1000; }

}  // namespace onetrip
