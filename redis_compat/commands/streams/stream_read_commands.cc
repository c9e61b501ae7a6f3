// Commands that read the entries of streams.
#include <string>

#include "redis_compat/commands/streams/handlers.h"
#include "redis_compat/commands/streams/stream_read_terms.h"
#include "redis_compat/commands/streams/stream_terms.h"

namespace onetrip {
namespace {

struct RangeTerms {
  StreamRange range;
  std::optional<uint64_t> count;  // nothing: all
};

RangeTerms ReadRangeTerms(CommandContext& context, ArgumentReader& arguments, bool reverse) {
  RangeTerms terms;
  const std::string_view first = context.argv[reverse ? 3 : 2];
  const std::string_view last = context.argv[reverse ? 2 : 3];
  terms.range = ReadStreamRange(arguments, first, last);
  terms.range.reverse = reverse;
  int64_t count = 0;
  while (arguments.HasMore()) {
    if (arguments.Integer("COUNT", &count)) {
      terms.count = CountOf(count);
    } else {
      arguments.SyntaxError();
    }
  }
  return terms;
}

// Entries of a range, counted before they are told; false: the stream is damaged.
bool CountEntries(const StreamValue& stream, const RangeTerms& terms, uint64_t* count) {
  StreamEntries entries(stream, terms.range);
  StreamEntry entry;
  *count = 0;
  while ((!terms.count || *count < *terms.count) && entries.Next(&entry)) ++*count;
  return !entries.is_damaged();
}

Task<void> ReplyRange(CommandContext& context, bool reverse) {
  ArgumentReader arguments(context.argv, 4);
  const RangeTerms terms = ReadRangeTerms(context, arguments, reverse);
  if (arguments.AnsweredError(context.out)) co_return;
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  StreamValue stream;
  if (!TakeStream(context, status, result, &stream)) co_return;
  if (!result.found()) co_return context.out.Array(0);
  if (terms.count == 0) co_return context.out.NullArray();
  uint64_t count = 0;
  if (!CountEntries(stream, terms, &count)) co_return context.out.Error(kDamagedStreamError);
  context.out.Array(count);
  StreamEntries entries(stream, terms.range);
  StreamEntry entry;
  ReplyPace pace(result.holder());
  for (; count > 0 && entries.Next(&entry); --count) {
    ReplyEntry(context.out, entry);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

// Adds the entries that XREAD gives of the stream at argv[index]. False: it has answered with an
// error.
Task<bool> ReadStream(CommandContext& context, const StreamReadTerms& terms, size_t index,
                      StreamReadReply* reply) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, index), &result);
  StreamValue stream;
  if (!TakeStream(context, status, result, &stream)) co_return false;
  const std::string_view text = context.argv[index + terms.keys];
  EntryId after;
  ArgumentReader arguments(context.argv);
  if (text == "$") {
    after = stream.header().last_id;
  } else {
    arguments.Require(text != ">",
                      "ERR The > ID can be specified only when calling XREADGROUP using the GROUP "
                      "<group> <consumer> option.");
    after = ReadStreamId(arguments, text);
  }
  if (arguments.AnsweredError(context.out)) co_return false;
  EntryId last;
  bool is_sound = FindLastStreamId(stream, &last);
  if (is_sound && last > after) {
    StepForward(&after);
    is_sound =
        ReplyStreamRange(reply->Next(context.argv[index]), stream, {.first = after}, terms.count);
  }
  if (!is_sound) context.out.Error(kDamagedStreamError);
  co_return is_sound;
}

}  // namespace

Task<void> XLenCommand(CommandContext& context) { return ReplySize(context, ValueType::kStream); }

Task<void> XRangeCommand(CommandContext& context) { return ReplyRange(context, /*reverse=*/false); }
Task<void> XRevRangeCommand(CommandContext& context) {
  return ReplyRange(context, /*reverse=*/true);
}

Task<void> XReadCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 1);
  const StreamReadTerms terms = ReadStreamReadTerms(context, arguments, /*for_group=*/false);
  if (arguments.AnsweredError(context.out)) co_return;
  StreamReadReply reply(context, terms);
  for (size_t i = 0; i < terms.keys; ++i) {
    const bool is_sound = co_await ReadStream(context, terms, terms.first_key + i, &reply);
    if (!is_sound) co_return;
  }
  reply.Finish();
}

}  // namespace onetrip
