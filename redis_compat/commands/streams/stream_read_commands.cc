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
bool CountEntries(StreamValue& stream, const RangeTerms& terms, uint64_t* count) {
  StreamEntries entries(stream, terms.range);
  StreamEntry entry;
  *count = 0;
  while ((!terms.count || *count < *terms.count) && entries.Next(&entry)) ++*count;
  return !stream.is_damaged();
}

// Copies the nodes of a range out of one that is a tree.
class RangeLook final : public StreamLook {
 public:
  explicit RangeLook(const RangeTerms& terms) : terms_(terms) {}
  void LookAt(StreamValue& stream) override {
    nodes_.clear();
    if (terms_.count != 0) stream.CopyNodes(terms_.range, terms_.count.value_or(0), &nodes_);
  }
  // They live as long as it does.
  [[nodiscard]] std::string_view nodes() const { return nodes_; }

 private:
  const RangeTerms& terms_;
  std::string nodes_;
};

Task<void> ReplyRange(CommandContext& context, bool reverse) {
  ArgumentReader arguments(context.argv, 4);
  const RangeTerms terms = ReadRangeTerms(context, arguments, reverse);
  if (arguments.AnsweredError(context.out)) co_return;
  ReadResult result;
  StreamValue stream;
  RangeLook look(terms);
  const bool is_there = co_await LookAtTree(context, KeyAt(context, 1), look, &result, &stream);
  if (!is_there) co_return;
  if (!result.found()) co_return context.out.Array(0);
  if (terms.count == 0) co_return context.out.NullArray();
  uint64_t count = 0;
  const bool is_sound = !IsTree(result) || stream.LoadNodes(look.nodes());
  if (!is_sound || !CountEntries(stream, terms, &count))
    co_return context.out.Error(kDamagedStreamError);
  context.out.Array(count);
  StreamEntries entries(stream, terms.range);
  StreamEntry entry;
  ReplyPace pace(result.holder());
  for (; count > 0 && entries.Next(&entry); --count) {
    ReplyEntry(context.out, entry);
    if (pace.IsDue()) co_await pace.Rest(context);
  }
}

// The entries that XREAD gives of a stream.
class ReadLook final : public StreamLook {
 public:
  // `id_text`: behind which id.
  ReadLook(CommandContext& context, const StreamReadTerms& terms, std::string_view id_text)
      : context_(context),
        terms_(terms),
        id_text_(id_text),
        out_(buffer_, context.out.protocol()) {}

  void LookAt(StreamValue& stream) override {
    buffer_.Clear();
    has_any_ = false;
    ArgumentReader arguments(context_.argv);
    EntryId after = stream.header().last_id;
    if (id_text_ != "$") {
      arguments.Require(id_text_ != ">",
                        "ERR The > ID can be specified only when calling XREADGROUP using the "
                        "GROUP <group> <consumer> option.");
      after = ReadStreamId(arguments, id_text_);
    }
    error_ = arguments.ok() ? std::string() : std::string(arguments.error());
    if (!arguments.ok()) return;
    has_any_ = stream.LastLiveId() > after;
    if (!has_any_) return;
    StepForward(&after);
    ReplyStreamRange(out_, stream, {.first = after}, terms_.count);
  }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] bool has_any() const { return has_any_; }
  [[nodiscard]] OutputBuffer& reply() { return buffer_; }

 private:
  CommandContext& context_;
  const StreamReadTerms& terms_;
  const std::string_view id_text_;
  std::string error_;
  bool has_any_ = false;
  OutputBuffer buffer_;
  ReplyWriter out_;
};

// Adds the entries that XREAD gives of the stream at argv[index]. False: it has answered with an
// error.
Task<bool> ReadStream(CommandContext& context, const StreamReadTerms& terms, size_t index,
                      StreamReadReply* reply) {
  ReadResult result;
  ReadLook look(context, terms, context.argv[index + terms.keys]);
  const bool is_sound = co_await LookAt(context, KeyAt(context, index), look, &result);
  if (!is_sound) co_return false;
  if (!look.error().empty()) {
    context.out.Error(look.error());
    co_return false;
  }
  if (look.has_any()) reply->Next(context.argv[index]).buffer().AppendAll(look.reply());
  co_return true;
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
