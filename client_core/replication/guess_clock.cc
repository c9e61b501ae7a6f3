#include "client_core/replication/guess_clock.h"

#include <algorithm>

namespace onetrip {
namespace {

// An absolute time as one of a register: 0 before its birth.
uint64_t Since(Ticks birth, Ticks ticks) {
  return ticks.value > birth.value ? ticks.value - birth.value : 0;
}

std::optional<RegisterTime> Take(RegisterTimes& times, uint64_t time, uint64_t end) {
  if (time >= end) return std::nullopt;
  times.last = static_cast<RegisterTime>(time);
  times.seen = std::max(times.seen, times.last);
  return times.last;
}

}  // namespace

RegisterTimes GuessClock::Times(Ticks birth) const {
  const uint64_t floor = Since(birth, floor_);
  return {birth, static_cast<RegisterTime>(std::min<uint64_t>(floor, UINT32_MAX)), 0};
}

void GuessClock::Forget(const RegisterTimes& times) {
  floor_ = std::max(floor_, Ticks{times.birth.value + times.last});
}

std::optional<RegisterTime> GuessClock::Guess(RegisterTimes& times, Ticks buffer_used) const {
  const uint64_t known = std::max<uint64_t>(times.last, times.seen) + 1;
  const uint64_t time =
      std::max({known, Since(times.birth, Now()), Since(times.birth, {buffer_used.value + 1})});
  return Take(times, time, time_end_);
}

std::optional<RegisterTime> GuessClock::Above(RegisterTimes& times, RegisterTime m,
                                              Ticks buffer_used) {
  const uint64_t known = std::max<uint64_t>(times.last, m) + 1;
  const uint64_t time = std::max(known, Since(times.birth, {buffer_used.value + 1}));
  return Take(times, time, uint64_t{UINT32_MAX} + 1);
}

void GuessClock::Resynchronise(RegisterTime guess, RegisterTime m) {
  if (m <= guess) return;
  ++resynchronised_;
  const uint64_t behind = m - guess;
  if (behind > jump_max_) ++capped_;
  ahead_ += std::min(behind, jump_max_);
}

}  // namespace onetrip
