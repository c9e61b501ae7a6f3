#include "tests/nemesis/deadlines.h"

#include <utility>

#include "tests/support/history.h"

namespace onetrip {
namespace {

constexpr uint64_t kNsPerMs = 1'000'000;
// How long a key whose deadline is past is looked for.
constexpr uint64_t kAfterwardsMs = 10'000;

}  // namespace

void Deadlines::Written(Entry entry) {
  const std::lock_guard lock(mutex_);
  ++written_;
  entries_.push_back(std::move(entry));
}

std::optional<Deadlines::Entry> Deadlines::Any(Rng& rng, uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  const auto is_over = [now_ns](const Entry& entry) {
    return now_ns > entry.acknowledged_ns + (kTtlMaxMs + kLateMs + kAfterwardsMs) * kNsPerMs;
  };
  while (!entries_.empty() && is_over(entries_.front())) entries_.pop_front();
  if (entries_.empty()) return std::nullopt;
  return entries_[rng.Below(entries_.size())];
}

void Deadlines::Read(std::string_view agent, const Entry& entry, uint64_t begun_ns,
                     uint64_t ended_ns, std::string_view reply) {
  if (ClassifyReply({"GET", entry.key}, reply) != Ending::kAnswered) return;
  const bool is_gone = reply == kRespNil;
  const uint64_t early_ns = entry.sent_ns + (entry.ttl_ms - kEarlyMs) * kNsPerMs;
  const uint64_t late_ns = entry.acknowledged_ns + (entry.ttl_ms + kLateMs) * kNsPerMs;
  const bool too_early = is_gone && ended_ns < early_ns;
  const bool too_late = !is_gone && begun_ns > late_ns;
  const bool wrong = !is_gone && reply != RespBulk(Value(entry.key));
  const std::lock_guard lock(mutex_);
  ++(is_gone ? gone_ : alive_);
  if (!(too_early || too_late || wrong) || failures_.size() >= kFailuresMax) return;
  failures_.push_back("SET " + entry.key + " PX " + std::to_string(entry.ttl_ms) + ", " +
                      std::to_string((begun_ns - entry.sent_ns) / kNsPerMs) + " ms ago: GET by " +
                      std::string(agent) + " answers " + Quote(reply, 64) +
                      (too_early  ? ", long before its deadline"
                       : too_late ? ", long after its deadline"
                                  : ""));
}

uint64_t Deadlines::written() const {
  const std::lock_guard lock(mutex_);
  return written_;
}

uint64_t Deadlines::read_alive() const {
  const std::lock_guard lock(mutex_);
  return alive_;
}

uint64_t Deadlines::read_gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

std::vector<std::string> Deadlines::failures() const {
  const std::lock_guard lock(mutex_);
  return failures_;
}

}  // namespace onetrip
