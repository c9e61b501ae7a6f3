// Commands that read one set.
#include "redis_compat/commands/sets/handlers.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/dispatch/element_scan.h"
#include "redis_compat/dispatch/key_lookup.h"
#include "redis_compat/dispatch/random_elements.h"
#include "redis_compat/values/set_value.h"

namespace onetrip {

Task<void> SIsMemberCommand(CommandContext& context) {
  ReadResult result;
  KeyLookup member(ValueType::kSet, context.argv.subspan(2));
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), member.range(), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kSet, &value)) co_return;
  member.Begin(result, value);
  context.out.Integer(member.Find(0) ? 1 : 0);
}

Task<void> SMIsMemberCommand(CommandContext& context) {
  ReadResult result;
  KeyLookup members(ValueType::kSet, context.argv.subspan(2));
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), members.range(), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kSet, &value)) co_return;
  members.Begin(result, value);
  context.out.Array(context.argv.size() - 2);
  ReplyPace pace(result.holder());
  for (size_t i = 0; i < context.argv.size() - 2; ++i) {
    context.out.Integer(members.Find(i) ? 1 : 0);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

Task<void> SCardCommand(CommandContext& context) { return ReplySize(context, ValueType::kSet); }

Task<void> SMembersCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kSet, &value)) co_return;
  PackedElements members = SetMembers(value);
  context.out.Set(members.size());
  ReplyPace pace(result.holder());
  PackedElement member;
  while (members.Next(&member)) {
    context.out.Bulk(member.key);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

Task<void> SRandMemberCommand(CommandContext& context) {
  return ReplyRandomElements(context, ValueType::kSet, /*values_word=*/{}, nullptr);
}

Task<void> SScanCommand(CommandContext& context) {
  return ScanElements(
      context, ValueType::kSet, /*values=*/false,
      [](ReplyWriter& out, const PackedElement& element) { out.Bulk(element.key); });
}

}  // namespace onetrip
