// Walks over the keys of a database: SCAN, KEYS, RANDOMKEY.
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <deque>
#include <string>

#include "redis_compat/commands/keys/handlers.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/values/glob.h"

namespace onetrip {
namespace {

// What a walk shows.
struct ScanOptions {
  std::string_view pattern = {};  // empty data: every key
  bool has_pattern = false;
  std::string_view type = {};  // empty data: any
  bool has_type = false;
  uint32_t count = 10;
};

// Collects the names of keys that fit; if told so, each once, however often a walk meets it.
class KeyCollector final : public KeyVisitor {
 public:
  explicit KeyCollector(const ScanOptions& options, bool once = false)
      : options_(options), once_(once) {}

  bool Wants(std::string_view key) override {
    return !options_.has_pattern || GlobMatch(options_.pattern, key, GlobCase::kExact);
  }
  void Visit(std::string_view key, const KeyFacts& facts) override {
    if (options_.has_type && !EqualsIgnoreCase(options_.type, ValueTypeName(facts.type))) return;
    if (once_ && known_.contains(key)) return;
    names_.emplace_back(key);
    if (once_) known_.insert(names_.back());
  }

  [[nodiscard]] const std::deque<std::string>& names() const { return names_; }

 private:
  const ScanOptions& options_;
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

// Answers what is wrong and returns false.
bool ReadScanOptions(CommandContext& context, ScanOptions* options) {
  const auto argv = context.argv;
  // All options come with a value: a word at the end cannot be one.
  for (size_t i = 2; i < argv.size(); i += 2) {
    const bool has_value = i + 1 < argv.size();
    if (has_value && EqualsIgnoreCase(argv[i], "COUNT")) {
      const auto count = ParseInt64(argv[i + 1]);
      if (!count) {
        context.out.Error(kNotIntegerError);
        return false;
      }
      if (*count < 1) {
        context.out.Error(kSyntaxError);
        return false;
      }
      options->count = static_cast<uint32_t>(std::min<int64_t>(*count, UINT32_MAX));
    } else if (has_value && EqualsIgnoreCase(argv[i], "MATCH")) {
      options->pattern = argv[i + 1];
      options->has_pattern = options->pattern != "*";
    } else if (has_value && EqualsIgnoreCase(argv[i], "TYPE")) {
      options->type = argv[i + 1];
      options->has_type = true;
    } else {
      context.out.Error(kSyntaxError);
      return false;
    }
  }
  return true;
}

}  // namespace

Task<void> ScanCommand(CommandContext& context) {
  uint64_t cursor = 0;
  if (!ReadCursor(context.argv[1], &cursor)) {
    context.out.Error("ERR invalid cursor");
    co_return;
  }
  ScanOptions options;
  if (!ReadScanOptions(context, &options)) {
    co_return;
  }
  KeyCollector keys(options);
  const Status status =
      co_await context.kv.Scan(context.session.database, options.count, keys, &cursor);
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
  options.has_pattern = options.pattern != "*";
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
