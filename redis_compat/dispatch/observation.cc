#include "redis_compat/dispatch/observation.h"

#include <algorithm>

namespace onetrip {
namespace {

constexpr size_t kArgumentsMax = 32;
constexpr size_t kArgumentBytesMax = 128;

std::string Shortened(std::string_view argument) {
  std::string text(argument.substr(0, kArgumentBytesMax));
  if (argument.size() > kArgumentBytesMax) {
    text += "... (" + std::to_string(argument.size() - kArgumentBytesMax) + " more bytes)";
  }
  return text;
}

}  // namespace

void SlowLog::Add(SlowCall call, std::span<const std::string_view> argv, uint64_t keep_max) {
  const bool all = argv.size() <= kArgumentsMax;
  const size_t shown = all ? argv.size() : kArgumentsMax - 1;
  for (const std::string_view argument : argv.first(shown)) {
    call.argv.push_back(Shortened(argument));
  }
  if (!all) {
    call.argv.push_back("... (" + std::to_string(argv.size() - shown) + " more arguments)");
  }
  const std::lock_guard lock(mutex_);
  call.id = next_id_++;
  calls_.push_back(std::move(call));
  while (calls_.size() > keep_max) calls_.pop_front();
}

std::vector<SlowCall> SlowLog::Newest(uint64_t count) const {
  const std::lock_guard lock(mutex_);
  const auto shown = static_cast<std::ptrdiff_t>(std::min<uint64_t>(count, calls_.size()));
  return std::vector<SlowCall>(calls_.rbegin(), calls_.rbegin() + shown);
}

size_t SlowLog::size() const {
  const std::lock_guard lock(mutex_);
  return calls_.size();
}

void SlowLog::Reset() {
  const std::lock_guard lock(mutex_);
  calls_.clear();
}

void LatencyMonitor::Add(std::string_view event, LatencySample sample) {
  const std::lock_guard lock(mutex_);
  auto found = events_.find(event);
  if (found == events_.end()) found = events_.emplace(event, Event()).first;
  Event& known = found->second;
  known.worst_ms = std::max(known.worst_ms, sample.latency_ms);
  if (!known.samples.empty() && known.samples.back().unix_s == sample.unix_s) {
    LatencySample& last = known.samples.back();
    last.latency_ms = std::max(last.latency_ms, sample.latency_ms);
    return;
  }
  known.samples.push_back(sample);
  if (known.samples.size() > kSamplesMax) known.samples.pop_front();
}

std::map<std::string, LatencyMonitor::Event, std::less<>> LatencyMonitor::Events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

size_t LatencyMonitor::Reset(std::string_view event) {
  const std::lock_guard lock(mutex_);
  if (event.empty()) {
    const size_t count = events_.size();
    events_.clear();
    return count;
  }
  const auto found = events_.find(event);
  if (found == events_.end()) return 0;
  events_.erase(found);
  return 1;
}

void ClientPause::Begin(uint64_t now_ns, uint64_t until_ns, bool writes_only) {
  const uint64_t before_ns = until_ns_.load(std::memory_order_relaxed);
  const bool under_way = before_ns > now_ns;
  writes_only_ = writes_only && (!under_way || writes_only_);
  until_ns_ = under_way ? std::max(before_ns, until_ns) : until_ns;
}

bool ClientPause::Holds(bool is_write, uint64_t now_ns) {
  uint64_t until_ns = until_ns_.load(std::memory_order_relaxed);
  if (until_ns == 0) return false;
  if (now_ns >= until_ns) {
    // Only if no other caller has begun another pause meanwhile.
    until_ns_.compare_exchange_strong(until_ns, 0);
    return false;
  }
  return is_write || !writes_only_;
}

}  // namespace onetrip
