// Walks over the keys of a database: SCAN, KEYS, RANDOMKEY.
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <optional>
#include <string>

#include "redis_compat/commands/keys/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/values/glob.h"

namespace onetrip {
namespace {

// The options that tell which keys a walk shows.
struct ScanOptions {
  std::string_view pattern = "*";
  std::optional<std::string_view> type = std::nullopt;  // none: any
  int64_t count = 10;
};

// Collects the names of keys that fit; if told so, each once, however often a walk meets it.
class KeyCollector final : public KeyVisitor {
 public:
  explicit KeyCollector(const ScanOptions& options, bool once = false)
      : options_(options), all_(options.pattern == "*"), once_(once) {}

  bool Wants(std::string_view key) override {
    return all_ || GlobMatch(options_.pattern, key, GlobCase::kExact);
  }
  void Visit(std::string_view key, const KeyFacts& facts) override {
    if (options_.type && !EqualsIgnoreCase(*options_.type, ValueTypeName(facts.type))) return;
    if (once_ && known_.contains(key)) return;
    names_.emplace_back(key);
    if (once_) known_.insert(names_.back());
  }

  [[nodiscard]] const std::deque<std::string>& names() const { return names_; }

 private:
  const ScanOptions& options_;
  const bool all_;  // The pattern fits every key.
  const bool once_;
  std::deque<std::string> names_;  // which stay where they are
  absl::flat_hash_set<std::string_view> known_;
};

// Reads a cursor as Redis does, by strtoul. False: it is none.
bool ReadCursor(std::string_view text, uint64_t* cursor) {
  const std::string copy(text);
  char* end = nullptr;
  errno = 0;
  *cursor = std::strtoull(copy.c_str(), &end, 10);
  const bool blank = !copy.empty() && std::isspace(static_cast<unsigned char>(copy[0])) != 0;
  return !blank && *end == '\0' && errno != ERANGE;
}

void ReadScanOptions(ArgumentReader& arguments, ScanOptions* options) {
  while (arguments.HasMore()) {
    const bool known =
        arguments.Integer("COUNT", &options->count, {.min = 1, .out_of_range = kSyntaxError}) ||
        arguments.Value("MATCH", &options->pattern) || arguments.Value("TYPE", &options->type);
    if (!known) arguments.SyntaxError();
  }
}

}  // namespace

Task<void> ScanCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 1);
  uint64_t cursor = 0;
  arguments.Require(ReadCursor(arguments.Take(), &cursor), "ERR invalid cursor");
  ScanOptions options;
  ReadScanOptions(arguments, &options);
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  KeyCollector keys(options);
  const auto count = static_cast<uint32_t>(std::min<int64_t>(options.count, UINT32_MAX));
  const Status status = co_await context.kv.Scan(context.session.database, count, keys, &cursor);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  context.out.Array(2);
  context.out.Bulk(std::to_string(cursor));
  context.out.Array(keys.names().size());
  for (const std::string& name : keys.names()) {
    context.out.Bulk(name);
  }
}

Task<void> KeysCommand(CommandContext& context) {
  constexpr uint32_t kKeysPerStep = 1000;
  ScanOptions options;
  options.pattern = context.argv[1];
  KeyCollector keys(options, /*once=*/true);
  for (uint64_t cursor = 0;;) {
    const Status status =
        co_await context.kv.Scan(context.session.database, kKeysPerStep, keys, &cursor);
    if (AnsweredReadFailure(context, status)) {
      co_return;
    }
    if (cursor == 0) break;
    if (context.session.abandoned) {
      co_return context.out.Error("ERR The connection has been closed");
    }
  }
  context.out.Array(keys.names().size());
  uint32_t told = 0;
  for (const std::string& name : keys.names()) {
    context.out.Bulk(name);
    if (++told % kKeysPerStep == 0) co_await context.kv.Yield();
  }
}

Task<void> RandomKeyCommand(CommandContext& context) {
  std::string key;
  bool found = false;
  const Status status = co_await context.kv.RandomKey(context.session.database, &key, &found);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  found ? context.out.Bulk(key) : context.out.Null();
}

}  // namespace onetrip
