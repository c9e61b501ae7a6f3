#include "master/cluster_time.h"

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "master/emit.h"
#include "master/records.h"

namespace onetrip::master {
namespace {

constexpr uint64_t kUsPerMs = 1000;

// How far the time may be from the wall clock before that is worth a line.
constexpr uint64_t kNoticedUs = 1'000'000;

}  // namespace

void StartTime(ClusterState& state, uint64_t now_us, uint64_t unix_us, bool is_first) {
  state.wall_origin_us = unix_us - now_us;
  const bool from_wall = is_first || Planted(Bug::kTimeFromWallClock);
  state.time_origin_us =
      (from_wall ? std::max(unix_us, state.record.time_us) : state.record.time_us) - now_us;
  state.time_is_known = is_first;
  const uint64_t wait_us =
      state.record.nobody_stayed ? 0 : state.options.lease_ms + state.options.grace_ms;
  state.wall_decides_us = now_us + wait_us * kUsPerMs;
  state.record.nobody_stayed = false;
}

uint64_t TimeUs(const ClusterState& state, uint64_t now_us) {
  return state.time_origin_us + now_us;
}

void HearTime(ClusterState& state, uint64_t now_us, const MemberHello& hello) {
  if (hello.time_us == 0 || hello.member == 0) return;
  uint64_t time_us = TimeUs(state, now_us);
  // The stored time runs ahead of what was told by this much at most, and this process has told
  // none yet: workers that join must not be ahead of those that have stayed. Who comes back later
  // and knows a later time is as right as the first one.
  if (!std::exchange(state.time_is_known, true)) {
    time_us -= std::min(time_us, state.options.time_lead_ms * kUsPerMs);
  }
  state.time_origin_us = std::max(time_us, hello.time_us) - now_us;
}

void LetWallClockDecide(ClusterState& state, Effects& effects, uint64_t now_us) {
  if (state.time_is_known || now_us < state.wall_decides_us) return;
  uint64_t wall_us = state.wall_origin_us + now_us;
  bool attends = false;
  for (const auto& [id, member] : state.members) {
    if (member.stream == 0) continue;
    attends = true;
    if (member.wall_origin_us != 0) wall_us = std::min(wall_us, member.wall_origin_us + now_us);
  }
  // Before a member attends, there is no member to tell.
  if (!attends) return;
  state.time_is_known = true;
  const uint64_t time_us = TimeUs(state, now_us);
  if (wall_us <= time_us) return;
  state.time_origin_us = wall_us - now_us;
  AdvanceDurableTime(state, effects, now_us);
  if (wall_us - time_us < kNoticedUs) return;
  Log(effects, LogLevel::kInfo,
      "no member is left that knows the cluster's time: it goes on from the wall "
      "clock, " +
          std::to_string((wall_us - time_us) / 1'000'000) + " s after what is stored");
}

void AdvanceDurableTime(ClusterState& state, Effects& effects, uint64_t now_us) {
  const uint64_t time_us = TimeUs(state, now_us);
  const uint64_t lead_us = state.options.time_lead_ms * kUsPerMs;
  if (time_us + lead_us / 2 <= state.record.time_us) return;
  state.record.time_us = time_us + lead_us;
  SaveMarks(state, effects);
  SaveCluster(state, effects);
}

}  // namespace onetrip::master
