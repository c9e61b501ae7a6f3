#include "redis_compat/dispatch/command_stats.h"

#include <algorithm>

namespace onetrip {
namespace {

// Clients choose no error words, but scripts will one day: bound what they can make us remember.
constexpr size_t kErrorWordsMax = 128;

}  // namespace

CommandStats::~CommandStats() {
  for (PerCommand& command : commands_) delete command.latency_ns.load(std::memory_order_relaxed);
}

void CommandStats::AddTime(size_t command, uint64_t elapsed_ns) {
  std::atomic<Histogram*>& latency = commands_[command].latency_ns;
  Histogram* histogram = latency.load(std::memory_order_relaxed);
  if (histogram == nullptr) {
    histogram = new Histogram();
    latency.store(histogram, std::memory_order_release);
  }
  histogram->Record(elapsed_ns);
  const uint64_t calls = commands_[command].calls.load(std::memory_order_relaxed);
  // A sample taken later stands for all the calls that were not timed around it.
  const uint64_t weight = calls > kTimedFirst ? kSampleEvery : 1;
  Add(commands_[command].time_ns, elapsed_ns * weight);
}

void CommandStats::CountError(std::string_view word) {
  Add(error_replies_, 1);
  const std::lock_guard lock(errors_mutex_);
  const auto found = errors_.find(word);
  if (found != errors_.end()) {
    ++found->second;
  } else if (errors_.size() < kErrorWordsMax) {
    errors_.emplace(word, 1);
  }
}

void CommandStats::AddTo(CommandTotals* totals) const {
  totals->commands.resize(std::max(totals->commands.size(), kCommandsMax));
  for (size_t i = 0; i < kCommandsMax; ++i) {
    const PerCommand& from = commands_[i];
    CommandTotals::PerCommand& to = totals->commands[i];
    to.calls += from.calls.load(std::memory_order_relaxed);
    to.rejected += from.rejected.load(std::memory_order_relaxed);
    to.failed += from.failed.load(std::memory_order_relaxed);
    to.time_ns += from.time_ns.load(std::memory_order_relaxed);
    const Histogram* latency = from.latency_ns.load(std::memory_order_acquire);
    if (latency != nullptr) totals->latency_ns[i].Merge(*latency);
  }
  const std::lock_guard lock(errors_mutex_);
  for (const auto& [word, count] : errors_) {
    totals->errors[word] += count;
  }
}

uint64_t CommandStats::calls() const {
  uint64_t calls = 0;
  for (const PerCommand& command : commands_)
    calls += command.calls.load(std::memory_order_relaxed);
  return calls;
}

void CommandStats::ResetCalls() {
  for (PerCommand& command : commands_) {
    command.calls.store(0, std::memory_order_relaxed);
    command.rejected.store(0, std::memory_order_relaxed);
    command.failed.store(0, std::memory_order_relaxed);
    command.time_ns.store(0, std::memory_order_relaxed);
  }
}

void CommandStats::ResetLatencies() {
  for (PerCommand& command : commands_) {
    Histogram* latency = command.latency_ns.load(std::memory_order_relaxed);
    if (latency != nullptr) latency->Reset();
  }
}

void CommandStats::ResetLookups() {
  hits_.store(0, std::memory_order_relaxed);
  misses_.store(0, std::memory_order_relaxed);
}

void CommandStats::ResetErrors() {
  error_replies_.store(0, std::memory_order_relaxed);
  const std::lock_guard lock(errors_mutex_);
  errors_.clear();
}

}  // namespace onetrip
