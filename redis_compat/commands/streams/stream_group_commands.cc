// XGROUP: commands that make, change and remove groups and their consumers.
#include <optional>
#include <string>

#include "redis_compat/commands/streams/handlers.h"
#include "redis_compat/commands/streams/stream_terms.h"
#include "redis_compat/dispatch/container_replies.h"

namespace onetrip {
namespace {

constexpr char kNoStreamError[] =
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use "
    "the MKSTREAM option to create an empty stream automatically.";

struct GroupTerms {
  bool makes_stream = false;
  int64_t entries_read = StreamGroup::kUnknownReads;
};

// Reads the options behind the id. False: it has answered.
bool ReadGroupTerms(CommandContext& context, bool creates, GroupTerms* terms) {
  ArgumentReader arguments(context.argv, 5);
  bool is_known = true;
  while (arguments.HasMore() && is_known) {
    is_known =
        (creates && arguments.Flag("MKSTREAM", &terms->makes_stream)) ||
        arguments.Integer("ENTRIESREAD", &terms->entries_read,
                          {.min = StreamGroup::kUnknownReads,
                           .out_of_range = "ERR value for ENTRIESREAD must be positive or -1"});
  }
  if (!is_known) ReplySubcommandSyntaxError(context);
  return is_known && !arguments.AnsweredError(context.out);
}

// The name of a group and the key come first in all of them.
class XGroupMutation : public StreamMutation {
 public:
  explicit XGroupMutation(CommandContext& context) : StreamMutation(context), context_(context) {}

 protected:
  [[nodiscard]] std::string_view name() const { return context_.argv[3]; }
  [[nodiscard]] std::string_view argument() const { return context_.argv[4]; }
  [[nodiscard]] size_t arguments() const { return context_.argv.size(); }
  Change RefuseSyntax() { return RefuseAs(SubcommandSyntaxError(context_)); }
  // The id that the argument names; nothing: it has refused.
  std::optional<EntryId> ReadId(const StreamEdit& stream, bool takes_ends, Change* refused) {
    if (argument() == "$") return stream.header().last_id;
    EntryId id;
    if (ParseStreamId(argument(), {.takes_ends = takes_ends}, &id)) return id;
    *refused = Refuse(kInvalidStreamIdError);
    return std::nullopt;
  }
  // Finds the group. False: it has refused.
  bool LoadGroup(StreamEdit& stream, StreamGroup* group, Change* refused) {
    if (!found()) {
      *refused = Refuse(kNoStreamError);
      return false;
    }
    if (stream.FindGroup(name(), group)) return true;
    *refused =
        stream.is_damaged() ? RefuseDamaged() : RefuseAs(NoGroupError(name(), context_.argv[2]));
    return false;
  }
  Change PutGroup(StreamEdit& stream, StreamGroupEdit& group) {
    group.Finish();
    return Put(stream);
  }

 private:
  CommandContext& context_;
};

class CreateGroup final : public XGroupMutation {
 public:
  CreateGroup(CommandContext& context, const GroupTerms& terms)
      : XGroupMutation(context), terms_(terms) {}

 private:
  Change Edit(StreamEdit& stream) override {
    constexpr size_t kArgumentsMax = 8;
    if (!found() && !terms_.makes_stream) return Refuse(kNoStreamError);
    if (arguments() > kArgumentsMax) return RefuseSyntax();
    Change refused = Change::Keep();
    const auto id = ReadId(stream, /*takes_ends=*/false, &refused);
    if (!id) return refused;
    StreamGroup group;
    if (stream.FindGroup(name(), &group)) {
      return Refuse("BUSYGROUP Consumer Group name already exists");
    }
    stream.AddGroup({.name = name(), .last_id = *id, .entries_read = terms_.entries_read});
    return Put(stream);
  }

  const GroupTerms& terms_;
};

class SetGroupId final : public XGroupMutation {
 public:
  SetGroupId(CommandContext& context, const GroupTerms& terms)
      : XGroupMutation(context), terms_(terms) {}

 private:
  Change Edit(StreamEdit& stream) override {
    constexpr size_t kArguments = 5;
    StreamGroup group;
    Change refused = Change::Keep();
    if (!LoadGroup(stream, &group, &refused)) return refused;
    if (arguments() != kArguments && arguments() != kArguments + 2) return RefuseSyntax();
    const auto id = ReadId(stream, /*takes_ends=*/true, &refused);
    if (!id) return refused;
    StreamGroupEdit edit(stream, group);
    edit.set_last_id(*id);
    edit.set_entries_read(terms_.entries_read);
    return PutGroup(stream, edit);
  }

  const GroupTerms& terms_;
};

class DestroyGroup final : public XGroupMutation {
 public:
  using XGroupMutation::XGroupMutation;
  [[nodiscard]] bool removed() const { return removed_; }

 private:
  Change Edit(StreamEdit& stream) override {
    if (!found()) return Refuse(kNoStreamError);
    StreamGroup group;
    removed_ = stream.FindGroup(name(), &group);
    if (!removed_) return stream.is_damaged() ? RefuseDamaged() : Change::Keep();
    stream.RemoveGroup(group);
    return Put(stream);
  }

  bool removed_ = false;
};

class CreateConsumer final : public XGroupMutation {
 public:
  explicit CreateConsumer(CommandContext& context)
      : XGroupMutation(context), now_ms_(StreamNowMs(context)) {}
  [[nodiscard]] bool created() const { return created_; }

 private:
  Change Edit(StreamEdit& stream) override {
    StreamGroup group;
    Change refused = Change::Keep();
    if (!LoadGroup(stream, &group, &refused)) return refused;
    StreamConsumer consumer;
    created_ = !stream.FindConsumer(group.number, argument(), &consumer);
    if (stream.is_damaged()) return RefuseDamaged();
    if (!created_) return Change::Keep();
    StreamGroupEdit edit(stream, group);
    edit.SeeConsumer(argument(), now_ms_);
    return PutGroup(stream, edit);
  }

  const int64_t now_ms_;
  bool created_ = false;
};

class DeleteConsumer final : public XGroupMutation {
 public:
  using XGroupMutation::XGroupMutation;
  // Entries that were pending for it.
  [[nodiscard]] uint64_t pending() const { return pending_; }

 private:
  Change Edit(StreamEdit& stream) override {
    StreamGroup group;
    Change refused = Change::Keep();
    pending_ = 0;
    if (!LoadGroup(stream, &group, &refused)) return refused;
    StreamConsumer consumer;
    if (!stream.FindConsumer(group.number, argument(), &consumer)) {
      return stream.is_damaged() ? RefuseDamaged() : Change::Keep();
    }
    StreamGroupEdit edit(stream, group);
    pending_ = edit.RemoveConsumer(consumer);
    return PutGroup(stream, edit);
  }

  uint64_t pending_ = 0;
};

}  // namespace

Task<void> XGroupCreateCommand(CommandContext& context) {
  GroupTerms terms;
  if (!ReadGroupTerms(context, /*creates=*/true, &terms)) co_return;
  CreateGroup mutation(context, terms);
  const bool done = co_await MutateAt(context, KeyAt(context, 2), mutation);
  if (done) context.out.Ok();
}

Task<void> XGroupSetIdCommand(CommandContext& context) {
  GroupTerms terms;
  if (!ReadGroupTerms(context, /*creates=*/false, &terms)) co_return;
  SetGroupId mutation(context, terms);
  const bool done = co_await MutateAt(context, KeyAt(context, 2), mutation);
  if (done) context.out.Ok();
}

Task<void> XGroupDestroyCommand(CommandContext& context) {
  DestroyGroup mutation(context);
  const bool done = co_await MutateAt(context, KeyAt(context, 2), mutation);
  if (done) context.out.Integer(mutation.removed() ? 1 : 0);
}

Task<void> XGroupCreateConsumerCommand(CommandContext& context) {
  CreateConsumer mutation(context);
  const bool done = co_await MutateAt(context, KeyAt(context, 2), mutation);
  if (done) context.out.Integer(mutation.created() ? 1 : 0);
}

Task<void> XGroupDelConsumerCommand(CommandContext& context) {
  DeleteConsumer mutation(context);
  const bool done = co_await MutateAt(context, KeyAt(context, 2), mutation);
  if (done) context.out.Integer(static_cast<int64_t>(mutation.pending()));
}

}  // namespace onetrip
