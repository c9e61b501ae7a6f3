// Commands that read hashes.
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "redis_compat/commands/hashes/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/dispatch/element_scan.h"
#include "redis_compat/dispatch/key_lookup.h"
#include "redis_compat/dispatch/random_elements.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/values/hash_value.h"

namespace onetrip {
namespace {

// Answers with the whole hash, or that it is none.
enum class Shown : uint8_t { kFields, kValues, kBoth };

Task<void> ReplyAll(CommandContext& context, Shown shown) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kHash, &value)) co_return;
  PackedElements fields = HashFields(value);
  shown == Shown::kBoth ? context.out.Map(fields.size()) : context.out.Array(fields.size());
  ReplyPace pace(result.holder());
  PackedElement field;
  while (fields.Next(&field)) {
    if (shown != Shown::kValues) context.out.Bulk(field.key);
    if (shown != Shown::kFields) context.out.Bulk(field.value);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

// Looks up the field at argv[2]. False: it has answered.
Task<bool> ReadField(CommandContext& context, ReadResult* result, KeyLookup* field) {
  const Status status = co_await ReadInTurn(context, result, field);
  std::string_view value;
  if (!TakeCollection(context, status, *result, ValueType::kHash, &value)) co_return false;
  field->Begin(*result, value);
  co_return true;
}

}  // namespace

Task<void> HGetCommand(CommandContext& context) {
  ReadResult result;
  KeyLookup field(ValueType::kHash, context.argv.subspan(2));
  const bool read = co_await ReadField(context, &result, &field);
  if (!read) co_return;
  std::string_view value;
  field.Find(0, &value) ? context.out.Bulk(value) : context.out.Null();
}

Task<void> HExistsCommand(CommandContext& context) {
  ReadResult result;
  KeyLookup field(ValueType::kHash, context.argv.subspan(2));
  const bool read = co_await ReadField(context, &result, &field);
  if (read) context.out.Integer(field.Find(0) ? 1 : 0);
}

Task<void> HStrLenCommand(CommandContext& context) {
  ReadResult result;
  KeyLookup field(ValueType::kHash, context.argv.subspan(2));
  const bool read = co_await ReadField(context, &result, &field);
  std::string_view value;
  if (read) context.out.Integer(field.Find(0, &value) ? static_cast<int64_t>(value.size()) : 0);
}

Task<void> HMGetCommand(CommandContext& context) {
  ReadResult result;
  KeyLookup fields(ValueType::kHash, context.argv.subspan(2));
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), fields.range(), &result);
  std::string_view hash;
  if (!TakeCollection(context, status, result, ValueType::kHash, &hash)) co_return;
  fields.Begin(result, hash);
  context.out.Array(context.argv.size() - 2);
  ReplyPace pace(result.holder());
  for (size_t i = 0; i < context.argv.size() - 2; ++i) {
    std::string_view value;
    fields.Find(i, &value) ? context.out.Bulk(value) : context.out.Null();
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

Task<void> HGetAllCommand(CommandContext& context) { return ReplyAll(context, Shown::kBoth); }
Task<void> HKeysCommand(CommandContext& context) { return ReplyAll(context, Shown::kFields); }
Task<void> HValsCommand(CommandContext& context) { return ReplyAll(context, Shown::kValues); }

Task<void> HLenCommand(CommandContext& context) { return ReplySize(context, ValueType::kHash); }

Task<void> HRandFieldCommand(CommandContext& context) {
  return ReplyRandomElements(context, ValueType::kHash, "WITHVALUES",
                             [](ReplyWriter& out, std::string_view value) { out.Bulk(value); });
}

Task<void> HScanCommand(CommandContext& context) {
  return ScanElements(context, ValueType::kHash, /*values=*/true,
                      [](ReplyWriter& out, const PackedElement& element) {
                        out.Bulk(element.key);
                        out.Bulk(element.value);
                      });
}

}  // namespace onetrip
