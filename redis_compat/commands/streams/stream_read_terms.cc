#include "redis_compat/commands/streams/stream_read_terms.h"

#include "redis_compat/commands/streams/stream_terms.h"
#include "redis_compat/dispatch/waiting.h"

namespace onetrip {
namespace {

// An option of XREADGROUP alone. False: it is none, or not taken.
bool TakeGroupOption(ArgumentReader& arguments, bool for_group, StreamReadTerms* terms) {
  if (arguments.Word("GROUP", 2)) {
    arguments.Require(for_group,
                      "ERR The GROUP option is only supported by XREADGROUP. You called XREAD "
                      "instead.");
    terms->group = arguments.Take();
    terms->consumer = arguments.Take();
    return true;
  }
  if (!arguments.Flag("NOACK", &terms->no_ack)) return false;
  arguments.Require(for_group,
                    "ERR The NOACK option is only supported by XREADGROUP. You called XREAD "
                    "instead.");
  return true;
}

}  // namespace

StreamReadTerms ReadStreamReadTerms(CommandContext& context, ArgumentReader& arguments,
                                    bool for_group) {
  StreamReadTerms terms;
  int64_t count = 0;
  int64_t waiting_ms = 0;
  while (arguments.HasMore() && terms.first_key == 0) {
    if (arguments.Integer("BLOCK", &waiting_ms, kTimeoutMs)) {
      terms.waits = true;
    } else if (arguments.Integer("COUNT", &count)) {
      terms.count = CountOf(count);
    } else if (arguments.Word("STREAMS", 1)) {
      terms.first_key = context.argv.size() - arguments.left();
      terms.keys = arguments.left() / 2;
      arguments.Require(arguments.left() % 2 == 0,
                        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' "
                        "must be specified.");
    } else if (!TakeGroupOption(arguments, for_group, &terms)) {
      arguments.SyntaxError();
    }
  }
  arguments.Require(terms.first_key != 0, kSyntaxError);
  arguments.Require(!for_group || terms.group, "ERR Missing GROUP option for XREADGROUP");
  return terms;
}

ReplyWriter& StreamReadReply::Next(std::string_view key) {
  ++streams_;
  if (out_.protocol() == 2) out_.Array(2);
  out_.Bulk(key);
  return out_;
}

void StreamReadReply::Finish() {
  if (!has_any()) {
    terms_.waits ? ReplyCannotWait(context_, NothingForm::kNullArray) : context_.out.NullArray();
    return;
  }
  // Pairs in RESP2.
  out_.protocol() == 2 ? context_.out.Array(streams_) : context_.out.Map(streams_);
  context_.out.buffer().AppendAll(buffer_);
}

}  // namespace onetrip
