#include "frontend/client_watch.h"

#include <utility>

namespace onetrip {
namespace {

constexpr uint64_t kNsPerS = 1'000'000'000;

}  // namespace

ClientVerdict ClientWatch::Judge(const ClientSigns& signs, const ClientBounds& bounds) {
  const uint64_t now_ns = signs.now_ns;
  // Both keep time, whatever else is said.
  const bool is_over = IsOverSoftLimit(signs, bounds);
  const bool is_in_the_way = IsInTheWay(signs);
  const bool is_stalled = signs.is_paused && now_ns > signs.last_sent_ns + kStalledNs;
  if (is_over || is_stalled) return ClientVerdict::kOverLimit;
  if (is_in_the_way) return ClientVerdict::kInTheWay;
  const bool is_idle = bounds.timeout_s != 0 && signs.awaits_input &&
                       now_ns > signs.last_activity_ns + bounds.timeout_s * kNsPerS;
  if (is_idle) return ClientVerdict::kIdle;
  const bool lingers =
      signs.finishing_since_ns != 0 && now_ns > signs.finishing_since_ns + kLingerNs;
  return lingers ? ClientVerdict::kLingers : ClientVerdict::kStays;
}

bool ClientWatch::IsOverSoftLimit(const ClientSigns& signs, const ClientBounds& bounds) {
  const bool has_limit = bounds.output_soft_bytes != 0 && bounds.output_soft_s != 0;
  if (!has_limit || signs.output_bytes <= bounds.output_soft_bytes) {
    over_soft_since_ns_ = 0;
    return false;
  }
  if (over_soft_since_ns_ == 0) over_soft_since_ns_ = signs.now_ns;
  return signs.now_ns - over_soft_since_ns_ > bounds.output_soft_s * kNsPerS;
}

// A byte now and then is no progress.
bool ClientWatch::IsInTheWay(const ClientSigns& signs) {
  if (!signs.keeps_others_waiting) {
    way_since_ns_ = 0;
    return false;
  }
  const uint64_t waited_ns = signs.now_ns > way_since_ns_ ? signs.now_ns - way_since_ns_ : 0;
  if (way_since_ns_ != 0 && waited_ns < kInTheWayNs) return false;
  const uint64_t moved = signs.moved_bytes - std::exchange(way_bytes_, signs.moved_bytes);
  const bool is_watched = std::exchange(way_since_ns_, signs.now_ns) != 0;
  return is_watched && moved < waited_ns / kNsPerS * kLeastBytesPerS;
}

}  // namespace onetrip
