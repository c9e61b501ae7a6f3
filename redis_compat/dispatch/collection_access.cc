#include "redis_compat/dispatch/collection_access.h"

#include <utility>

#include "client_core/layout/record.h"

namespace onetrip {

Task<Status> ReadInTurn(CommandContext& context, ReadResult* result) {
  Status status = co_await context.kv.Get(KeyAt(context, 1), result);
  const bool must_wait =
      result->holder() != nullptr && context.turn != nullptr && !context.turn->has_come();
  if (must_wait) {
    *result = ReadResult();
    co_await AwaitTurn(context);
    status = co_await context.kv.Get(KeyAt(context, 1), result);
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
  return ApplyTo(current == nullptr ? std::string_view() : current->value);
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
