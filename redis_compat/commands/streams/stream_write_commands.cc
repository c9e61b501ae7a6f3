// Commands that change the entries of streams.
#include <string>
#include <vector>

#include "redis_compat/commands/streams/handlers.h"
#include "redis_compat/commands/streams/stream_terms.h"
#include "redis_compat/commands/streams/stream_trim_terms.h"
#include "redis_compat/dispatch/container_replies.h"

namespace onetrip {
namespace {

constexpr char kNotGreaterError[] =
    "ERR The ID specified in XADD is equal or smaller than the target stream top item";

struct AddTerms {
  bool must_exist = false;
  StreamTrim trim;
  // Without an id it is that of the time; without a sequence the next one of its millisecond.
  bool has_id = false;
  bool has_sequence = true;
  EntryId id;
  std::span<const std::string_view> fields;
};

AddTerms ReadAdd(CommandContext& context, ArgumentReader& arguments) {
  AddTerms terms;
  TrimOptions trim;
  bool has_place = false;
  while (arguments.HasMore() && !has_place) {
    if (arguments.Word("*")) {
      has_place = true;
    } else if (!trim.Take(arguments) && !arguments.Flag("NOMKSTREAM", &terms.must_exist)) {
      const bool is_id = ParseStreamId(arguments.Take(), {.takes_any_sequence = true}, &terms.id,
                                       &terms.has_sequence);
      arguments.Require(is_id, kInvalidStreamIdError);
      terms.has_id = has_place = true;
    }
  }
  terms.trim =
      trim.Finish(arguments, /*must_trim=*/false, context.hooks.config().stream_node_limits());
  const size_t left = has_place ? arguments.left() : 0;
  if (left < 2 || left % 2 == 1) arguments.Fail(ArityError(*context.command));
  arguments.Require(!terms.has_id || !terms.has_sequence || !terms.id.is_zero(),
                    "ERR The ID specified in XADD must be greater than 0-0");
  terms.fields = context.argv.last(left);
  return terms;
}

class AddEntry final : public StreamMutation {
 public:
  AddEntry(CommandContext& context, const AddTerms& terms)
      : StreamMutation(context),
        terms_(terms),
        limits_(context.hooks.config().stream_node_limits()),
        now_ms_(context.kv.NowMs()) {}
  // False: there is no stream, and none was to be made.
  [[nodiscard]] bool added() const { return added_; }
  [[nodiscard]] const EntryId& id() const { return id_; }

 private:
  Change Edit(StreamEdit& stream) override {
    added_ = found() || !terms_.must_exist;
    if (!added_) return Change::Keep();
    const EntryId last = stream.header().last_id;
    if (last == kStreamIdMax) {
      return Refuse("ERR The stream has exhausted the last possible ID, unable to add more items");
    }
    id_ = IdBehind(last);
    if (id_ <= last) return Refuse(kNotGreaterError);
    stream.Add(id_, terms_.fields, limits_);
    stream.Trim(terms_.trim);
    return Put(stream);
  }

  [[nodiscard]] EntryId IdBehind(const EntryId& last) const {
    EntryId next = last;
    if (!terms_.has_id) {
      if (now_ms_ > last.ms) return {now_ms_, 0};
      StepForward(&next);
      return next;
    }
    const bool is_next = !terms_.has_sequence && terms_.id.ms == last.ms;
    if (!is_next) return terms_.id;
    // It stays in that millisecond, or is none.
    return {last.ms, last.sequence + 1};
  }

  const AddTerms& terms_;
  const StreamNodeLimits limits_;
  const uint64_t now_ms_;
  bool added_ = false;
  EntryId id_;
};

class DeleteEntries final : public StreamMutation {
 public:
  explicit DeleteEntries(CommandContext& context)
      : StreamMutation(context), texts_(context.argv.subspan(2)) {}
  [[nodiscard]] int64_t deleted() const { return deleted_; }

 private:
  Change Edit(StreamEdit& stream) override {
    deleted_ = 0;
    if (!found()) return Change::Keep();
    ArgumentReader arguments(texts_);
    std::vector<EntryId> ids;
    for (const std::string_view text : texts_) ids.push_back(ReadStreamId(arguments, text));
    if (!arguments.ok()) return RefuseAs(std::string(arguments.error()));
    deleted_ = static_cast<int64_t>(stream.Delete(ids));
    return deleted_ == 0 && !stream.is_damaged() ? Change::Keep() : Put(stream);
  }

  const std::span<const std::string_view> texts_;
  int64_t deleted_ = 0;
};

class TrimEntries final : public StreamMutation {
 public:
  TrimEntries(CommandContext& context, const StreamTrim& trim)
      : StreamMutation(context), trim_(trim) {}
  [[nodiscard]] uint64_t removed() const { return removed_; }

 private:
  Change Edit(StreamEdit& stream) override {
    removed_ = stream.Trim(trim_);
    return removed_ == 0 && !stream.is_damaged() ? Change::Keep() : Put(stream);
  }

  const StreamTrim& trim_;
  uint64_t removed_ = 0;
};

struct SetIdTerms {
  static constexpr int64_t kNotGiven = -1;
  EntryId last_id;
  int64_t entries_added = kNotGiven;
  EntryId max_deleted_id;  // 0-0: it stays
};

SetIdTerms ReadSetId(ArgumentReader& arguments) {
  SetIdTerms terms;
  terms.last_id = ReadStreamId(arguments, arguments.Take());
  while (arguments.HasMore()) {
    if (arguments.Integer("ENTRIESADDED", &terms.entries_added,
                          {.min = 0, .out_of_range = "ERR entries_added must be positive"})) {
      continue;
    }
    if (!arguments.Word("MAXDELETEDID", 1)) {
      arguments.SyntaxError();
      continue;
    }
    terms.max_deleted_id = ReadStreamId(arguments, arguments.Take());
    arguments.Require(terms.last_id >= terms.max_deleted_id,
                      "ERR The ID specified in XSETID is smaller than the provided "
                      "max_deleted_entry_id");
  }
  return terms;
}

class SetLastId final : public StreamMutation {
 public:
  SetLastId(CommandContext& context, const SetIdTerms& terms)
      : StreamMutation(context), terms_(terms) {}

 private:
  Change Edit(StreamEdit& stream) override {
    if (!found()) return Refuse("ERR no such key");
    StreamHeader& header = stream.header_to_edit();
    const EntryId last = stream.LastLiveId();
    if (stream.is_damaged()) return RefuseDamaged();
    if (header.length > 0 && terms_.last_id < last) {
      return Refuse("ERR The ID specified in XSETID is smaller than the target stream top item");
    }
    const bool counts = terms_.entries_added != SetIdTerms::kNotGiven;
    const auto added = static_cast<uint64_t>(terms_.entries_added);
    if (counts && header.length > added) {
      return Refuse(
          "ERR The entries_added specified in XSETID is smaller than the target stream length");
    }
    stream.SetLastId(terms_.last_id);
    if (counts) header.entries_added = added;
    if (!terms_.max_deleted_id.is_zero()) header.max_deleted_id = terms_.max_deleted_id;
    return Put(stream);
  }

  const SetIdTerms& terms_;
};

}  // namespace

Task<void> XAddCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const AddTerms terms = ReadAdd(context, arguments);
  if (arguments.AnsweredError(context.out)) co_return;
  AddEntry mutation(context, terms);
  const bool done = co_await Mutate(context, mutation);
  if (!done) co_return;
  mutation.added() ? ReplyStreamId(context.out, mutation.id()) : context.out.Null();
}

Task<void> XDelCommand(CommandContext& context) {
  DeleteEntries mutation(context);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.deleted());
}

Task<void> XTrimCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  TrimOptions options;
  while (arguments.HasMore()) {
    if (!options.Take(arguments)) arguments.SyntaxError();
  }
  const StreamTrim trim =
      options.Finish(arguments, /*must_trim=*/true, context.hooks.config().stream_node_limits());
  if (arguments.AnsweredError(context.out)) co_return;
  TrimEntries mutation(context, trim);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(static_cast<int64_t>(mutation.removed()));
}

Task<void> XSetIdCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const SetIdTerms terms = ReadSetId(arguments);
  if (arguments.AnsweredError(context.out)) co_return;
  SetLastId mutation(context, terms);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Ok();
}

}  // namespace onetrip
