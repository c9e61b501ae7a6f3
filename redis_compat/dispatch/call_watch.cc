#include "redis_compat/dispatch/call_watch.h"

#include <cstdio>
#include <string_view>
#include <vector>

#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

constexpr uint64_t kNsPerUs = 1000;
constexpr uint64_t kNsPerMs = 1'000'000;
constexpr uint64_t kUsPerSecond = 1'000'000;

// The arguments without passwords.
std::vector<std::string_view> ShownArguments(const CommandContext& context) {
  constexpr std::string_view kHidden = "(redacted)";
  std::vector<std::string_view> shown(context.argv.begin(), context.argv.end());
  const std::string_view name = context.command->name;
  if (name == "auth") {
    for (size_t i = 1; i < shown.size(); ++i) shown[i] = kHidden;
  }
  if (name == "hello") {
    for (size_t i = 2; i + 2 < shown.size(); ++i) {
      if (!EqualsIgnoreCase(context.argv[i], "auth")) continue;
      shown[i + 1] = shown[i + 2] = kHidden;
    }
  }
  if (name == "config|set") {
    for (size_t i = 2; i + 1 < shown.size(); i += 2) {
      if (EqualsIgnoreCase(shown[i], "requirepass")) shown[i + 1] = kHidden;
    }
  }
  return shown;
}

// As Redis quotes: what is not printable, in escapes.
void AppendQuoted(std::string_view text, std::string* out) {
  constexpr std::string_view kPlain = "\\\"\n\r\t\a\b";
  constexpr std::string_view kEscaped = "\\\"nrtab";
  out->push_back('"');
  for (const char c : text) {
    const size_t at = kPlain.find(c);
    if (at != std::string_view::npos) {
      out->push_back('\\');
      out->push_back(kEscaped[at]);
    } else if (c >= ' ' && c <= '~') {
      out->push_back(c);
    } else {
      char code[8];
      std::snprintf(code, sizeof(code), "\\x%02x", static_cast<unsigned char>(c));
      out->append(code);
    }
  }
  out->push_back('"');
}

}  // namespace

bool MustBeTimed(const CommandContext& context) {
  return !context.command->takes_constant_time() || context.hooks.config().times_every_call();
}

void NoteCallTime(const CommandContext& context, uint64_t took_ns) {
  const ServerConfig& config = context.hooks.config();
  if (took_ns < config.noted_call_ns()) {
    return;
  }
  Observation& observation = context.hooks.observation();
  const uint64_t unix_s = context.hooks.clock().UnixUs() / kUsPerSecond;
  const uint64_t threshold_ms = config.latency_threshold_ms();
  if (threshold_ms != 0 && took_ns >= threshold_ms * kNsPerMs) {
    const bool fast = (context.command->flags & kFast) != 0;
    observation.latency.Add(fast ? "fast-command" : "command", {unix_s, took_ns / kNsPerMs});
  }
  const int64_t slow_us = config.slow_call_us();
  if (slow_us >= 0 && took_ns >= static_cast<uint64_t>(slow_us) * kNsPerUs &&
      (context.command->flags & kSkipSlowlog) == 0) {
    ClientSnapshot client;
    context.hooks.DescribeClient(context.session, &client);
    SlowCall call;
    call.unix_s = unix_s;
    call.took_us = took_ns / kNsPerUs;
    call.address = client.address;
    call.client_name = context.session.name;
    observation.slow_log.Add(std::move(call), ShownArguments(context), config.slow_calls_max());
  }
}

std::string MonitorLine(const CommandContext& context) {
  ClientSnapshot client;
  context.hooks.DescribeClient(context.session, &client);
  const std::string address = client.unix_socket
                                  ? "unix:" + client.address.substr(0, client.address.rfind(':'))
                                  : client.address;
  const uint64_t now_us = context.hooks.clock().UnixUs();
  char head[64];
  std::snprintf(head, sizeof(head), "+%llu.%06llu [%u ",
                static_cast<unsigned long long>(now_us / kUsPerSecond),
                static_cast<unsigned long long>(now_us % kUsPerSecond), context.session.database);
  std::string line = head;
  line.append(address).append("]");
  for (const std::string_view argument : ShownArguments(context)) {
    line.push_back(' ');
    AppendQuoted(argument, &line);
  }
  return line.append("\r\n");
}

void ShowToMonitors(const CommandContext& context) {
  // MONITOR does not show the commands of operators.
  if ((context.command->flags & kAdmin) == 0) {
    context.hooks.SendToMonitors(MonitorLine(context));
  }
}

}  // namespace onetrip
