// XPENDING: entries that were given to consumers and are not acknowledged.
#include <algorithm>
#include <optional>

#include "redis_compat/commands/streams/handlers.h"
#include "redis_compat/commands/streams/stream_terms.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

struct PendingTerms {
  bool is_summary = true;
  int64_t idle_ms_min = 0;
  StreamRange range;
  uint64_t count = 0;
  std::optional<std::string_view> consumer;
};

PendingTerms ReadPending(CommandContext& context, ArgumentReader& arguments) {
  constexpr size_t kArgumentsOfSummary = 3;
  constexpr size_t kArgumentsMin = 6;
  constexpr size_t kArgumentsMax = 9;
  const auto argv = context.argv;
  PendingTerms terms;
  terms.is_summary = argv.size() == kArgumentsOfSummary;
  if (terms.is_summary) return terms;
  arguments.Require(argv.size() >= kArgumentsMin && argv.size() <= kArgumentsMax, kSyntaxError);
  size_t first = kArgumentsOfSummary;
  if (arguments.ok() && EqualsIgnoreCase(argv[first], "IDLE")) {
    terms.idle_ms_min = arguments.ReadInteger(argv[first + 1]);
    first += 2;
    arguments.Require(argv.size() >= first + 3, kSyntaxError);
  }
  if (!arguments.ok()) return terms;
  terms.count = CountOf(arguments.ReadInteger(argv[first + 2]));
  terms.range = ReadStreamRange(arguments, argv[first], argv[first + 1]);
  if (argv.size() > first + 3) terms.consumer = argv[first + 3];
  return terms;
}

void ReplySummary(ReplyWriter& out, const StreamGroup& group) {
  out.Array(4);
  out.Integer(static_cast<int64_t>(group.pending().size()));
  if (group.pending().empty()) {
    out.Null();
    out.Null();
    return out.NullArray();
  }
  ReplyStreamId(out, group.pending().front().id);
  ReplyStreamId(out, group.pending().back().id);
  ArrayReply consumers(out);
  const std::vector<uint64_t> counts = group.CountPending();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    ReplyWriter& next = consumers.Next();
    next.Array(2);
    next.Bulk(group.consumers()[i].name);
    next.BulkInteger(static_cast<int64_t>(counts[i]));
  }
  consumers.Finish();
}

void ReplyPending(ReplyWriter& out, const StreamGroup& group, const PendingTerms& terms,
                  int64_t now_ms) {
  uint32_t consumer = StreamGroup::kNoConsumer;
  if (terms.consumer) {
    consumer = group.FindConsumer(*terms.consumer);
    if (consumer == StreamGroup::kNoConsumer) return out.Array(0);
  }
  ArrayReply reply(out);
  for (size_t i = group.FindPlace(terms.range.first); i < group.pending().size(); ++i) {
    const StreamPending& pending = group.pending()[i];
    if (reply.elements() == terms.count || pending.id > terms.range.last) break;
    const int64_t idle_ms = now_ms - pending.delivered_ms;
    const bool is_of_consumer = !terms.consumer || pending.consumer == consumer;
    if (!is_of_consumer || (terms.idle_ms_min != 0 && idle_ms < terms.idle_ms_min)) continue;
    ReplyWriter& next = reply.Next();
    next.Array(4);
    ReplyStreamId(next, pending.id);
    next.Bulk(group.consumers()[pending.consumer].name);
    next.Integer(std::max<int64_t>(0, idle_ms));
    next.Integer(static_cast<int64_t>(pending.deliveries));
  }
  reply.Finish();
}

}  // namespace

Task<void> XPendingCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 3);
  const PendingTerms terms = ReadPending(context, arguments);
  if (arguments.AnsweredError(context.out)) co_return;
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  StreamValue stream;
  if (!TakeStream(context, status, result, &stream)) co_return;
  const StreamValue::Group* const packed = stream.FindGroup(context.argv[2]);
  if (packed == nullptr) {
    co_return context.out.Error(NoKeyOrGroupError(context.argv[1], context.argv[2]));
  }
  StreamGroup group;
  if (!group.Load(packed->body)) co_return context.out.Error(kDamagedStreamError);
  terms.is_summary ? ReplySummary(context.out, group)
                   : ReplyPending(context.out, group, terms, StreamNowMs(context));
}

}  // namespace onetrip
