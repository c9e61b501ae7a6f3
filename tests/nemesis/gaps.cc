#include "tests/nemesis/gaps.h"

#include <algorithm>

namespace onetrip {
namespace {

bool IsWrite(size_t command) { return Gaps::kCommands[command] != "get"; }

}  // namespace

Gaps::Gaps(size_t agents) : up_(agents), clocks_(agents) {}

void Gaps::Answered(size_t agent, const Command& command, Ending ending, uint64_t now_ns) {
  if (ending != Ending::kAnswered) return;
  const std::string name = CommandName(command);
  const auto* const found = std::find(kCommands.begin(), kCommands.end(), name);
  if (found == kCommands.end()) return;
  const auto index = static_cast<size_t>(found - kCommands.begin());
  const std::lock_guard lock(mutex_);
  Clock& clock = clocks_[agent][index];
  if (!clock.runs) return;
  // Two threads may come here in another order than they were answered in.
  if (now_ns > clock.since_ns) {
    Keep(index, {.ns = now_ns - clock.since_ns, .start_ns = clock.since_ns, .agent = agent});
    clock.since_ns = now_ns;
  }
}

void Gaps::AgentUp(size_t agent, uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  up_[agent] = true;
  for (size_t command = 0; command < kCommands.size(); ++command) {
    if (full_ && IsWrite(command)) continue;
    clocks_[agent][command] = {.runs = true, .since_ns = now_ns};
  }
}

void Gaps::AgentDown(size_t agent, uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  up_[agent] = false;
  for (size_t command = 0; command < kCommands.size(); ++command) Stop(agent, command, now_ns);
}

void Gaps::MemoryFull(uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  full_ = true;
  for (size_t agent = 0; agent < up_.size(); ++agent) {
    for (size_t command = 0; command < kCommands.size(); ++command) {
      if (IsWrite(command)) Stop(agent, command, now_ns);
    }
  }
}

void Gaps::MemoryFree(uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  full_ = false;
  for (size_t agent = 0; agent < up_.size(); ++agent) {
    for (size_t command = 0; command < kCommands.size(); ++command) {
      if (up_[agent] && IsWrite(command)) {
        clocks_[agent][command] = {.runs = true, .since_ns = now_ns};
      }
    }
  }
}

void Gaps::End(uint64_t now_ns) {
  const std::lock_guard lock(mutex_);
  for (size_t agent = 0; agent < up_.size(); ++agent) {
    for (size_t command = 0; command < kCommands.size(); ++command) Stop(agent, command, now_ns);
  }
}

bool Gaps::IsUp(size_t agent) const {
  const std::lock_guard lock(mutex_);
  return up_[agent];
}

std::vector<Gap> Gaps::Longest(size_t command) const {
  const std::lock_guard lock(mutex_);
  return longest_[command];
}

void Gaps::Stop(size_t agent, size_t command, uint64_t now_ns) {
  Clock& clock = clocks_[agent][command];
  if (clock.runs && now_ns > clock.since_ns) {
    Keep(command, {.ns = now_ns - clock.since_ns, .start_ns = clock.since_ns, .agent = agent});
  }
  clock.runs = false;
}

void Gaps::Keep(size_t command, const Gap& gap) {
  std::vector<Gap>& kept = longest_[command];
  if (gap.ns < kKeptMinNs && !kept.empty()) return;
  if (kept.size() == kKeptMax && kept.back().ns >= gap.ns) return;
  const auto longer = [](const Gap& a, const Gap& b) { return a.ns > b.ns; };
  kept.insert(std::upper_bound(kept.begin(), kept.end(), gap, longer), gap);
  if (kept.size() > kKeptMax) kept.pop_back();
}

}  // namespace onetrip
