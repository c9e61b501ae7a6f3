// GuessClock: guess_ts() of Safe-Guess (SWARM 3.2): times for writes that are fresh most of the
// time, and strictly increasing per (worker, register) always.
//
// Guesses follow the cluster clock. A guess that turned out stale moves the worker's clock forward,
// so that its other registers profit, but by a bounded step: one wrong clock must not drag all the
// others along (PROTOCOLS, "Clocks"). A wrong clock costs round trips, never order.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_GUESS_CLOCK_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_GUESS_CLOCK_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "client_core/base/clock.h"
#include "client_core/layout/register_layout.h"

namespace onetrip {

// The times in one register that a worker remembers.
struct RegisterTimes {
  Ticks birth;
  RegisterTime last = 0;  // the largest time of this worker's own words
  RegisterTime seen = 0;  // the largest time of any worker's words that it has met
};

class GuessClock {
 public:
  static constexpr uint64_t kJumpMax = uint64_t{1} << 21;

  // Borrows `clock` and `offset_us` (MasterClient::clock_offset_us: cluster time less steady time).
  // One stale guess moves the clock forward by `jump_max` ticks at most. From `time_end` on no
  // write begins.
  GuessClock(const Clock& clock, const std::atomic<int64_t>& offset_us,
             uint64_t jump_max = kJumpMax, RegisterTime time_end = kRegisterTimeEnd)
      : clock_(clock), offset_us_(offset_us), jump_max_(jump_max), time_end_(time_end) {}

  // This worker's idea of now.
  [[nodiscard]] Ticks Now() const {
    const auto offset_us = static_cast<uint64_t>(offset_us_.load(std::memory_order_relaxed));
    return {TicksOfNs(clock_.NowNs() + offset_us * 1000).value + ahead_};
  }

  // For a register that this worker has no memory of: no time that it may have used there before
  // it forgot is guessed again. For a new register, with its birth; see Birth().
  [[nodiscard]] RegisterTimes Times(Ticks birth) const;
  // The birth of a register that this worker creates, whose first buffer was last used at
  // `buffer_used`, by a clock that may be ahead of this one by more than a register's life.
  [[nodiscard]] Ticks Birth(Ticks buffer_used) const {
    return std::max({Now(), floor_, buffer_used});
  }
  // The worker forgets a register.
  void Forget(const RegisterTimes& times);

  // A time above every own one, every one seen, and `buffer_used`, the latest time that the write's
  // buffer was ever used with; takes note of it. Nothing when the register is exhausted.
  std::optional<RegisterTime> Guess(RegisterTimes& times, Ticks buffer_used) const;
  // A time above `m` for the rewrite of a guess, with the same care. Nothing when the 32 bits are
  // at their end.
  static std::optional<RegisterTime> Above(RegisterTimes& times, RegisterTime m, Ticks buffer_used);

  // The guess was stale: `m` overtook it.
  void Resynchronise(RegisterTime guess, RegisterTime m);

  [[nodiscard]] RegisterTime time_end() const { return time_end_; }
  // How often that happened, and how often it would have moved the clock further than it may.
  [[nodiscard]] uint64_t resynchronised() const { return resynchronised_; }
  [[nodiscard]] uint64_t capped() const { return capped_; }

 private:
  const Clock& clock_;
  const std::atomic<int64_t>& offset_us_;
  const uint64_t jump_max_;
  const RegisterTime time_end_;
  uint64_t ahead_ = 0;
  Ticks floor_;
  uint64_t resynchronised_ = 0;
  uint64_t capped_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_GUESS_CLOCK_H_
