// SLOWLOG, LATENCY and MONITOR.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "redis_compat/commands/server/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {
namespace {

constexpr uint64_t kNsPerUs = 1000;

void ReplySlowCall(ReplyWriter& out, const SlowCall& call) {
  out.Array(6);
  out.Integer(static_cast<int64_t>(call.id));
  out.Integer(static_cast<int64_t>(call.unix_s));
  out.Integer(static_cast<int64_t>(call.took_us));
  out.Array(call.argv.size());
  for (const std::string& argument : call.argv) out.Bulk(argument);
  out.Bulk(call.address);
  out.Bulk(call.client_name);
}

// One command's times: how many calls took at most 1, 2, 4, 8, ... microseconds.
void ReplyHistogram(ReplyWriter& out, std::string_view name, const Histogram& times_ns) {
  std::vector<std::pair<uint64_t, uint64_t>> steps;
  uint64_t calls = 0;
  for (size_t bucket = 0; bucket < Histogram::kBucketCount; ++bucket) {
    const uint64_t count = times_ns.CountOf(bucket);
    if (count == 0) continue;
    calls += count;
    const uint64_t bound_us = std::bit_ceil(Histogram::UpperBoundOf(bucket) / kNsPerUs + 1);
    if (steps.empty() || steps.back().first != bound_us) steps.emplace_back(bound_us, 0);
    steps.back().second = calls;
  }
  out.Bulk(name);
  out.Map(2);
  out.Bulk("calls");
  out.Integer(static_cast<int64_t>(calls));
  out.Bulk("histogram_usec");
  out.Map(steps.size());
  for (const auto& [bound_us, count] : steps) {
    out.Integer(static_cast<int64_t>(bound_us));
    out.Integer(static_cast<int64_t>(count));
  }
}

// The rows whose times are asked for: all, or those named (a container stands for its subcommands).
std::vector<const CommandRow*> RowsAskedFor(std::span<const std::string_view> names) {
  std::vector<const CommandRow*> rows;
  if (names.empty()) {
    for (const CommandRow& row : AllCommands()) rows.push_back(&row);
    return rows;
  }
  for (const std::string_view name : names) {
    const size_t bar = name.find('|');
    const CommandRow* const top = FindCommand(name.substr(0, bar));
    if (top == nullptr) continue;
    if (bar != std::string_view::npos) {
      const CommandRow* const row = FindSubcommand(*top, name.substr(bar + 1));
      if (row != nullptr) rows.push_back(row);
      continue;
    }
    rows.push_back(top);
    for (const CommandRow& row : SubcommandsOf(*top)) rows.push_back(&row);
  }
  return rows;
}

std::string Age(uint64_t seconds) {
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return std::to_string(seconds / 60) + "m";
  if (seconds < 86400) return std::to_string(seconds / 3600) + "h";
  return std::to_string(seconds / 86400) + "d";
}

// A column for each sample, four high, and below it how long ago it was.
std::string Graph(std::string_view name, const LatencyMonitor::Event& event, uint64_t now_s) {
  constexpr uint64_t kRows = 4;
  uint64_t low = event.samples.front().latency_ms;
  uint64_t high = low;
  size_t label_rows = 0;
  std::vector<std::string> labels;
  for (const LatencySample& sample : event.samples) {
    low = std::min(low, sample.latency_ms);
    high = std::max(high, sample.latency_ms);
    labels.push_back(Age(now_s > sample.unix_s ? now_s - sample.unix_s : 0));
    label_rows = std::max(label_rows, labels.back().size());
  }
  std::string text(name);
  text.append(" - high " + std::to_string(high) + " ms, low " + std::to_string(low) +
              " ms (all time high " + std::to_string(event.worst_ms) + " ms)\n");
  text.append(80, '-').append("\n");
  for (uint64_t row = kRows; row > 0; --row) {
    for (const LatencySample& sample : event.samples) {
      const uint64_t height =
          high == low ? 1 : 1 + (sample.latency_ms - low) * (kRows - 1) / (high - low);
      text.push_back(height > row ? '|' : height == row ? (row == 1 ? '_' : '#') : ' ');
    }
    text.push_back('\n');
  }
  text.push_back('\n');
  for (size_t row = 0; row < label_rows; ++row) {
    for (const std::string& label : labels) text.push_back(row < label.size() ? label[row] : ' ');
    text.push_back('\n');
  }
  return text;
}

}  // namespace

void SlowLogGetCommand(CommandContext& context) {
  constexpr int64_t kShownUsually = 10;
  int64_t count = kShownUsually;
  if (context.argv.size() > 3) {
    return ReplySubcommandSyntaxError(context);
  }
  if (context.argv.size() == 3) {
    ArgumentReader arguments(context.argv, 2);
    count =
        arguments.TakeInteger(RangeWithError(-1, std::numeric_limits<int64_t>::max(),
                                             "ERR count should be greater than or equal to -1"));
    if (arguments.AnsweredError(context.out)) return;
  }
  const std::vector<SlowCall> calls =
      context.hooks.observation().slow_log.Newest(static_cast<uint64_t>(count));
  context.out.Array(calls.size());
  for (const SlowCall& call : calls) ReplySlowCall(context.out, call);
}

void SlowLogLenCommand(CommandContext& context) {
  context.out.Integer(static_cast<int64_t>(context.hooks.observation().slow_log.size()));
}

void SlowLogResetCommand(CommandContext& context) {
  context.hooks.observation().slow_log.Reset();
  context.out.Ok();
}

void LatencyLatestCommand(CommandContext& context) {
  const auto events = context.hooks.observation().latency.Events();
  context.out.Array(events.size());
  for (const auto& [name, event] : events) {
    context.out.Array(4);
    context.out.Bulk(name);
    context.out.Integer(static_cast<int64_t>(event.samples.back().unix_s));
    context.out.Integer(static_cast<int64_t>(event.samples.back().latency_ms));
    context.out.Integer(static_cast<int64_t>(event.worst_ms));
  }
}

void LatencyHistoryCommand(CommandContext& context) {
  const auto events = context.hooks.observation().latency.Events();
  const auto found = events.find(context.argv[2]);
  if (found == events.end()) {
    return context.out.Array(0);
  }
  context.out.Array(found->second.samples.size());
  for (const LatencySample& sample : found->second.samples) {
    context.out.Array(2);
    context.out.Integer(static_cast<int64_t>(sample.unix_s));
    context.out.Integer(static_cast<int64_t>(sample.latency_ms));
  }
}

void LatencyGraphCommand(CommandContext& context) {
  const std::string_view name = context.argv[2];
  const auto events = context.hooks.observation().latency.Events();
  const auto found = events.find(name);
  if (found == events.end()) {
    return context.out.Error("ERR No samples available for event '" + std::string(UntilNul(name)) +
                             "'");
  }
  const uint64_t now_s = context.hooks.clock().UnixUs() / 1'000'000;
  context.out.Verbatim(Graph(name, found->second, now_s), "txt");
}

void LatencyResetCommand(CommandContext& context) {
  LatencyMonitor& latency = context.hooks.observation().latency;
  size_t forgotten = 0;
  if (context.argv.size() == 2) {
    forgotten = latency.Reset({});
  }
  for (const std::string_view name : context.argv.subspan(2)) {
    forgotten += name.empty() ? 0 : latency.Reset(name);
  }
  context.out.Integer(static_cast<int64_t>(forgotten));
}

void LatencyDoctorCommand(CommandContext& context) {
  if (context.hooks.config().latency_threshold_ms() == 0) {
    return context.out.Verbatim(
        "I'm sorry, Dave, I can't do that. Latency monitoring is disabled in this Redis instance. "
        "You may use \"CONFIG SET latency-monitor-threshold <milliseconds>.\" in order to enable "
        "it. If we weren't in a deep space mission I'd suggest to take a look at "
        "https://redis.io/topics/latency-monitor.\n",
        "txt");
  }
  const auto events = context.hooks.observation().latency.Events();
  if (events.empty()) {
    return context.out.Verbatim(
        "Dave, no latency spike was observed during the lifetime of this Redis instance, not in "
        "the slightest bit. I honestly think you ought to sit down calmly, take a stress pill, and "
        "think things over.\n",
        "txt");
  }
  std::string text = "Calls that took longer than latency-monitor-threshold:\n\n";
  for (const auto& [name, event] : events) {
    uint64_t sum_ms = 0;
    for (const LatencySample& sample : event.samples) sum_ms += sample.latency_ms;
    text.append(name + ": " + std::to_string(event.samples.size()) + " seconds with a sample, " +
                std::to_string(sum_ms / event.samples.size()) + " ms on average, worst ever " +
                std::to_string(event.worst_ms) + " ms\n");
  }
  text += "\nSLOWLOG GET names the calls. INFO onetrip tells how many round trips they take.\n";
  context.out.Verbatim(text, "txt");
}

void LatencyHistogramCommand(CommandContext& context) {
  CommandTotals totals;
  context.hooks.SumCommandStats(&totals);
  std::vector<const CommandRow*> shown;
  for (const CommandRow* row : RowsAskedFor(context.argv.subspan(2))) {
    const auto found = totals.latency_ns.find(CommandId(*row));
    const bool seen = std::find(shown.begin(), shown.end(), row) != shown.end();
    if (found != totals.latency_ns.end() && found->second.Count() != 0 && !seen) {
      shown.push_back(row);
    }
  }
  context.out.Map(shown.size());
  for (const CommandRow* row : shown) {
    ReplyHistogram(context.out, row->name, totals.latency_ns[CommandId(*row)]);
  }
}

void MonitorCommand(CommandContext& context) {
  Session& session = context.session;
  if (session.transaction != nullptr && session.transaction->open) {
    return context.out.Error("ERR MONITOR isn't allowed for DENY BLOCKING client");
  }
  if (session.monitors) {
    return;  // Without a word, as Redis does it.
  }
  session.monitors = true;
  context.hooks.observation().monitors.fetch_add(1, std::memory_order_relaxed);
  context.out.Ok();
}

}  // namespace onetrip
