// MSETNX: sets all of some keys, or none if one of them is there.
#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include "redis_compat/commands/strings/handlers.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/dispatch/key_batch.h"
#include "redis_compat/dispatch/key_copy.h"

namespace onetrip {
namespace {

// A key with its value, of MSETNX.
struct Assignment {
  std::string_view key;
  RecordCopy record;
  uint64_t version = 0;  // once it is stored
};

// In the order of their keys, so that of two calls over common keys one is first at the first of
// them; of a key that comes twice the last.
std::vector<Assignment> ReadAssignments(std::span<const std::string_view> argv) {
  std::vector<Assignment> all;
  for (size_t end = argv.size(); end > 1; end -= 2) {
    const size_t i = end - 2;
    const std::string_view key = argv[i];
    all.push_back({key, RecordCopy::OfString(argv[i + 1]), 0});
  }
  const auto by_key = [](const Assignment& a, const Assignment& b) { return a.key < b.key; };
  std::stable_sort(all.begin(), all.end(), by_key);
  const auto same_key = [](const Assignment& a, const Assignment& b) { return a.key == b.key; };
  all.erase(std::unique(all.begin(), all.end(), same_key), all.end());
  return all;
}

}  // namespace

// Takes one key after the other if it is free, and gives back what it has taken when one is not.
Task<void> MSetNxCommand(CommandContext& context) {
  if (context.argv.size() % 2 == 0) {
    ReplyArityError(context);
    co_return;
  }
  std::vector<Assignment> all = ReadAssignments(context.argv);
  const uint32_t database = context.session.database;
  Status status;
  size_t taken = 0;
  for (bool is_free = true; is_free && taken < all.size(); taken += is_free ? 1 : 0) {
    if (EndsTurn(taken, taken + 1)) co_await context.kv.Yield();
    StoreCopy store(all[taken].record, /*replace=*/false);
    status = co_await context.kv.ReadModifyWrite(Key{database, all[taken].key}, store);
    is_free = status.ok() && store.stored();
    all[taken].version = store.version();
  }
  if (taken == all.size()) {
    context.out.Integer(1);
    co_return;
  }
  Status given_back;
  for (size_t i = 0; i < taken; ++i) {
    // A value that another client has given the key meanwhile stays.
    RemoveIfSame remove(all[i].version);
    const Status removed = co_await context.kv.ReadModifyWrite(Key{database, all[i].key}, remove);
    if (!removed.ok()) given_back = removed;
  }
  if (!given_back.ok()) {
    ReplyStatus(context.out, given_back, StorageStep::kLaterWrite);
  } else if (!AnsweredWriteFailure(context, Key{database, all[taken].key}, status)) {
    context.out.Integer(0);
  }
}

}  // namespace onetrip
