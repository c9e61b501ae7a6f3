// Commands that read one set.
#include "redis_compat/commands/sets/handlers.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/dispatch/element_scan.h"
#include "redis_compat/dispatch/random_elements.h"
#include "redis_compat/values/set_value.h"

namespace onetrip {

Task<void> SIsMemberCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kSet, &value)) co_return;
  PackedMap members(value, /*has_values=*/false);
  context.out.Integer(members.Find(context.argv[2]) ? 1 : 0);
}

Task<void> SMIsMemberCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kSet, &value)) co_return;
  PackedMap members(value, /*has_values=*/false);
  context.out.Array(context.argv.size() - 2);
  ReplyPace pace(result.holder());
  for (const std::string_view member : context.argv.subspan(2)) {
    context.out.Integer(members.Find(member) ? 1 : 0);
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
