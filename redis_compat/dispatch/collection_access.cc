#include "redis_compat/dispatch/collection_access.h"

#include <utility>

#include "client_core/layout/record.h"
#include "redis_compat/values/collection_tree.h"

namespace onetrip {

Task<Status> ReadInTurn(CommandContext& context, ReadResult* result, TreeReader* reader) {
  const ValueRange whole{.reader = reader};
  Status status = co_await context.kv.GetPart(KeyAt(context, 1), whole, result);
  const bool must_wait =
      result->holder() != nullptr && context.turn != nullptr && !context.turn->has_come();
  if (must_wait) {
    *result = ReadResult();
    co_await AwaitTurn(context);
    status = co_await context.kv.GetPart(KeyAt(context, 1), whole, result);
  }
  co_return status;
}

Task<void> ReplySize(CommandContext& context, ValueType type) {
  constexpr ValueRange kHeader{0, kPackedHeaderBytes - 1};
  ReadResult result;
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), kHeader, &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, type, &value)) co_return;
  context.out.Integer(static_cast<int64_t>(PackedSize(value)));
}

Change CollectionMutation::Apply(const RecordView* current) {
  Begin();
  current_ = current;
  if (!IsOfType(current, type_)) return Refuse(kWrongTypeError);
  if (current != nullptr && current->tree != nullptr) return ApplyToTree(*current->tree);
  return ApplyTo(current == nullptr ? std::string_view() : current->value);
}

Change CollectionMutation::ApplyToTree(Tree& tree) { return ApplyToJoined(tree); }

Change CollectionMutation::ApplyToJoined(Tree& tree) {
  std::string packed;
  return JoinLeaves(tree, &packed) ? ApplyTo(packed) : Change::Keep();
}

Change CollectionMutation::Replace(TreeMap& changes, uint8_t flags) {
  if (changes.size() == 0) return Change::Delete();
  if (kPackedHeaderBytes + changes.entry_bytes() > kMaxValueBytes) {
    return Refuse(kCollectionTooLargeError);
  }
  if (!changes.Finish(flags)) return ApplyToJoined(changes.tree());
  return KeepTree(changes.tree());
}

Change CollectionMutation::KeepTree(Tree& tree) {
  const uint64_t bytes = tree.header().size() + tree.leaf_bytes(0);
  if (bytes < tree.limits().packed_bytes / 4) {
    std::string packed;
    return JoinLeaves(tree, &packed) ? Replace(std::move(packed)) : Change::Keep();
  }
  NewRecord record;
  record.tree = &tree;
  record.deadline_ms = current_->deadline_ms;
  record.type = static_cast<uint8_t>(type_);
  return Change::Write(record);
}

Change CollectionMutation::Store(std::string value, bool keeps_deadline) {
  PackedHeader header;
  LoadPackedHeader(value, &header);
  // An empty stream stays, with what it remembers.
  const bool goes = header.elements == 0 && type_ != ValueType::kStream;
  if (goes) return found() ? Change::Delete() : Change::Keep();
  if (value.size() > kMaxValueBytes) return Refuse(kCollectionTooLargeError);
  made_ = std::move(value);
  share_ = CountMemory(context_, made_.size());
  NewRecord record;
  record.head = made_;
  made_tree_ = MakeTree(type_, made_, context_.kv.tree_limits());
  if (made_tree_) record.tree = &*made_tree_;
  record.deadline_ms = found() && keeps_deadline ? current_->deadline_ms : 0;
  record.type = static_cast<uint8_t>(type_);
  return Change::Write(record);
}

Task<bool> Mutate(CommandContext& context, CollectionMutation& mutation) {
  return MutateAt(context, KeyAt(context, 1), mutation);
}

Task<bool> MutateAt(CommandContext& context, Key key, CollectionMutation& mutation) {
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) co_return false;
  if (mutation.error() != nullptr) context.out.Error(mutation.error());
  co_return mutation.error() == nullptr;
}

Task<void> ClaimSource(CommandContext& context, KeyClaims::Claim* claim) {
  // A claim lasts for some round trips.
  constexpr uint64_t kRestNs = 50'000;
  const Key key = KeyAt(context, 1);
  while (!context.hooks.key_claims().Take(key.database, key.bytes, claim)) {
    co_await context.hooks.SleepFor(kRestNs);
    co_await context.kv.Yield();
  }
}

Task<void> ReplyPace::Rest(CommandContext& context) {
  co_await context.kv.Yield();
  if (context.session.abandoned) co_return;
  if (holder_ != nullptr && context.out.buffer().size() > kWaitingBytes) {
    context.answered_large = holder_;
  }
  if (MustAwaitTaken(context)) co_await AwaitTaken(context);
}

}  // namespace onetrip
