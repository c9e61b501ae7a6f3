// XPENDING: entries that were given to consumers and are not acknowledged.
#include <algorithm>
#include <optional>
#include <span>

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

class PendingLook final : public StreamLook {
 public:
  PendingLook(CommandContext& context, const PendingTerms& terms)
      : argv_(context.argv),
        terms_(terms),
        now_ms_(StreamNowMs(context)),
        out_(buffer_, context.out.protocol()) {}

  void LookAt(StreamValue& stream) override {
    buffer_.Clear();
    StreamGroup group;
    if (!stream.FindGroup(argv_[2], &group)) {
      return out_.Error(NoKeyOrGroupError(argv_[1], argv_[2]));
    }
    terms_.is_summary ? ReplySummary(stream, group) : ReplyPending(stream, group);
  }
  [[nodiscard]] OutputBuffer& reply() { return buffer_; }

 private:
  void ReplySummary(StreamValue& stream, const StreamGroup& group) {
    out_.Array(4);
    out_.Integer(static_cast<int64_t>(group.pending));
    if (group.pending == 0) {
      out_.Null();
      out_.Null();
      return out_.NullArray();
    }
    StreamPending first;
    StreamPending last;
    stream.PendingFrom(group.number, {}, &first);
    stream.LastPending(group.number, &last);
    ReplyStreamId(out_, first.id);
    ReplyStreamId(out_, last.id);
    ArrayReply consumers(out_);
    for (const StreamConsumer& consumer : stream.Consumers(group.number)) {
      if (consumer.pending == 0) continue;
      ReplyWriter& next = consumers.Next();
      next.Array(2);
      next.Bulk(consumer.name);
      next.BulkInteger(static_cast<int64_t>(consumer.pending));
    }
    consumers.Finish();
  }

  void ReplyPending(StreamValue& stream, const StreamGroup& group) {
    const uint32_t number = group.number;
    const EntryId first = terms_.range.first;
    // Those that are not idle are passed over.
    const uint64_t wanted = terms_.idle_ms_min != 0 ? group.pending : terms_.count;
    StreamPendings pendings(stream, number, first);
    StreamConsumer consumer;
    if (terms_.consumer) {
      if (!stream.FindConsumer(number, *terms_.consumer, &consumer)) return out_.Array(0);
      pendings.OfConsumer(consumer.number);
      stream.WantGiven(number, consumer.number, first, std::max<uint64_t>(wanted, 1));
    } else {
      stream.WantPending(number, first, std::max<uint64_t>(wanted, 1));
    }
    ArrayReply reply(out_);
    StreamPending pending;
    while (reply.elements() < terms_.count && pendings.Next(&pending)) {
      if (pending.id > terms_.range.last) break;
      const int64_t idle_ms = now_ms_ - pending.delivered_ms;
      if (terms_.idle_ms_min != 0 && idle_ms < terms_.idle_ms_min) continue;
      if (!terms_.consumer) stream.ConsumerOf(number, pending.consumer, &consumer);
      ReplyWriter& next = reply.Next();
      next.Array(4);
      ReplyStreamId(next, pending.id);
      next.Bulk(consumer.name);
      next.Integer(std::max<int64_t>(0, idle_ms));
      next.Integer(static_cast<int64_t>(pending.deliveries));
    }
    reply.Finish();
  }

  const std::span<const std::string_view> argv_;
  const PendingTerms& terms_;
  const int64_t now_ms_;
  OutputBuffer buffer_;
  ReplyWriter out_;
};

}  // namespace

Task<void> XPendingCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 3);
  const PendingTerms terms = ReadPending(context, arguments);
  if (arguments.AnsweredError(context.out)) co_return;
  ReadResult result;
  PendingLook look(context, terms);
  const bool is_sound = co_await LookAt(context, KeyAt(context, 1), look, &result);
  if (is_sound) context.out.buffer().AppendAll(look.reply());
}

}  // namespace onetrip
