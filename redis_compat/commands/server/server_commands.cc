// CONFIG, INFO, DBSIZE, TIME, FLUSHALL, FLUSHDB, SWAPDB.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "client_core/kv/kv.h"
#include "redis_compat/commands/server/handlers.h"
#include "redis_compat/commands/server/info.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {
namespace {

std::string ConfigError(std::string_view name, std::string_view why) {
  std::string message = "ERR CONFIG SET failed (possibly related to argument '";
  return message.append(name).append("') - ").append(why);
}

// One parameter of a CONFIG SET that has passed all checks so far.
struct Assignment {
  std::string_view name;
  std::string value;
};

// Checks names before values, as Redis does it: answers and returns false at the first bad one.
bool CheckConfigNames(CommandContext& context) {
  const ServerConfig& config = context.hooks.config();
  const auto pairs = context.argv.subspan(2);
  for (size_t i = 0; i < pairs.size(); i += 2) {
    if (!config.Knows(pairs[i])) {
      context.out.Error("ERR Unknown option or number of arguments for CONFIG SET - '" +
                        std::string(UntilNul(pairs[i])) + "'");
      return false;
    }
    if (!config.IsMutable(pairs[i])) {
      context.out.Error(ConfigError(pairs[i], "can't set immutable config"));
      return false;
    }
    for (size_t j = 0; j < i; j += 2) {
      if (ServerConfig::FirstName(pairs[j]) == ServerConfig::FirstName(pairs[i])) {
        context.out.Error(ConfigError(pairs[i], "duplicate parameter"));
        return false;
      }
    }
  }
  return true;
}

// Reads FLUSHALL's and FLUSHDB's only option. Both words are accepted: keys are gone at once,
// memory follows in the background either way. False: it has answered what is wrong.
bool ReadFlushOption(CommandContext& context) {
  ArgumentReader arguments(context.argv, 1);
  if (arguments.HasMore()) (void)arguments.TakeOneOf({"SYNC", "ASYNC"});
  if (arguments.HasMore()) arguments.SyntaxError();
  return !arguments.AnsweredError(context.out);
}

// `unavailable`: when nothing was done.
void ReplyToChange(CommandContext& context, Status status, std::string_view unavailable) {
  if (status.code() == StatusCode::kUnavailable) {
    context.out.Error(unavailable);
  } else {
    status.ok() ? context.out.Ok() : ReplyStatus(context.out, status, StorageStep::kWrite);
  }
}

Task<void> Flush(CommandContext& context, std::optional<uint32_t> database) {
  if (!ReadFlushOption(context)) {
    co_return;
  }
  const Status status = co_await context.kv.Flush(database);
  ReplyToChange(context, status,
                "TRYAGAIN Nothing was flushed; the master, which every flush goes through, did not "
                "do it in time");
}

// The pool grows and shrinks with the memory nodes.
void ShowPoolSize(CommandContext& context) {
  ServerFacts facts;
  context.hooks.FillFacts(&facts);
  (void)context.hooks.config().SetByServer("maxmemory", std::to_string(facts.maxmemory));
}

// A database that cannot be counted now gets no line, as if it were empty.
Task<void> DescribeDatabase(CommandContext& context, uint32_t database, DatabaseFacts* facts) {
  const Status counted = co_await context.kv.CountKeys(database, &facts->keys);
  if (!counted.ok()) facts->keys = 0;
  if (facts->keys == 0) co_return;
  DeadlineSample sample;
  const Status sampled = co_await context.kv.SampleDeadlines(database, &sample);
  if (!sampled.ok() || sample.with_deadline == 0) co_return;
  facts->average_left_ms = sample.left_ms / sample.with_deadline;
  // The share of all that the part of the index has shown.
  const double scale =
      sample.is_whole ? 1 : static_cast<double>(facts->keys) / static_cast<double>(sample.keys);
  facts->with_deadline = static_cast<uint64_t>(static_cast<double>(sample.with_deadline) * scale);
}

}  // namespace

void ConfigGetCommand(CommandContext& context) {
  ShowPoolSize(context);
  const auto found = context.hooks.config().Get(context.argv.subspan(2));
  context.out.Map(found.size());
  for (const auto& [name, value] : found) {
    context.out.Bulk(name);
    context.out.Bulk(value);
  }
}

void ConfigSetCommand(CommandContext& context) {
  ServerConfig& config = context.hooks.config();
  const auto pairs = context.argv.subspan(2);
  if (pairs.size() % 2 != 0) {
    return context.out.Error(kSyntaxError);
  }
  if (!CheckConfigNames(context)) {
    return;
  }
  ShowPoolSize(context);
  std::vector<Assignment> assignments;
  for (size_t i = 0; i < pairs.size(); i += 2) {
    Assignment assignment{ServerConfig::FirstName(pairs[i]), {}};
    std::string error;
    if (!config.Check(pairs[i], pairs[i + 1], &assignment.value, &error)) {
      return context.out.Error(ConfigError(pairs[i], error));
    }
    const char* const refusal = context.hooks.CheckConfig(assignment.name, assignment.value);
    if (refusal != nullptr) {
      return context.out.Error(ConfigError(pairs[i], refusal));
    }
    assignments.push_back(std::move(assignment));
  }
  for (Assignment& assignment : assignments) {
    context.hooks.ApplyConfig(assignment.name, assignment.value);
    config.Store(assignment.name, std::move(assignment.value));
  }
  context.out.Ok();
}

void ConfigResetStatCommand(CommandContext& context) {
  context.hooks.ResetStats();
  context.out.Ok();
}

// An agent's config file is another than Redis's, and its operator's.
void ConfigRewriteCommand(CommandContext& context) {
  context.out.Error("ERR The server is running without a config file");
}

void TimeCommand(CommandContext& context) {
  constexpr uint64_t kUsPerSecond = 1'000'000;
  const uint64_t now_us = context.hooks.clock().UnixUs();
  context.out.Array(2);
  context.out.BulkInteger(static_cast<int64_t>(now_us / kUsPerSecond));
  context.out.BulkInteger(static_cast<int64_t>(now_us % kUsPerSecond));
}

Task<void> InfoCommand(CommandContext& context) {
  InfoRequest request;
  request.sections = SelectInfoSections(context.argv.subspan(1), context.hooks);
  context.hooks.FillFacts(&request.facts);
  context.hooks.SumCommandStats(&request.totals);
  if (request.Wants("keyspace")) {
    for (uint32_t database = 0; database < context.hooks.config().databases(); ++database) {
      request.databases.emplace_back();
      co_await DescribeDatabase(context, database, &request.databases.back());
    }
  }
  context.out.Verbatim(RenderInfo(request, context.hooks), "txt");
}

Task<void> DbSizeCommand(CommandContext& context) {
  uint64_t keys = 0;
  const Status status = co_await context.kv.CountKeys(context.session.database, &keys);
  status.ok() ? context.out.Integer(static_cast<int64_t>(keys))
              : ReplyStatus(context.out, status, StorageStep::kRead);
}

Task<void> FlushAllCommand(CommandContext& context) { co_await Flush(context, std::nullopt); }

Task<void> FlushDbCommand(CommandContext& context) {
  co_await Flush(context, context.session.database);
}

Task<void> SwapDbCommand(CommandContext& context) {
  constexpr int64_t kIntMin = std::numeric_limits<int32_t>::min();
  constexpr int64_t kIntMax = std::numeric_limits<int32_t>::max();
  ArgumentReader arguments(context.argv, 1);
  const int64_t first =
      arguments.TakeInteger(RangeWithError(kIntMin, kIntMax, "ERR invalid first DB index"));
  const int64_t second =
      arguments.TakeInteger(RangeWithError(kIntMin, kIntMax, "ERR invalid second DB index"));
  const int64_t databases = context.hooks.config().databases();
  arguments.Require(std::min(first, second) >= 0 && std::max(first, second) < databases,
                    "ERR DB index is out of range");
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  const Status status =
      co_await context.kv.Swap(static_cast<uint32_t>(first), static_cast<uint32_t>(second));
  ReplyToChange(context, status,
                "TRYAGAIN Nothing was swapped; the master, which every swap goes through, did not "
                "do it in time");
}

}  // namespace onetrip
