// Walks over the keys of a database: SCAN, KEYS, RANDOMKEY.
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <deque>
#include <string>

#include "redis_compat/commands/keys/handlers.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/dispatch/scan_options.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

// Collects the names of keys that fit; if told so, each once, however often a walk meets it.
class KeyCollector final : public KeyVisitor {
 public:
  explicit KeyCollector(const ScanOptions& options, bool once = false)
      : options_(options), once_(once) {}

  bool Wants(std::string_view key) override { return options_.Fits(key); }
  void Visit(std::string_view key, const KeyFacts& facts) override {
    if (options_.type && !EqualsIgnoreCase(*options_.type, ValueTypeName(facts.type))) return;
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

}  // namespace

Task<void> ScanCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 1);
  uint64_t cursor = TakeScanCursor(arguments);
  ScanOptions options;
  ReadScanOptions(arguments, ScanOf::kKeys, &options);
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
