// XINFO: commands that tell about streams, their groups and consumers.
#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "redis_compat/commands/streams/handlers.h"
#include "redis_compat/commands/streams/stream_terms.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

constexpr char kNoKeyError[] = "ERR no such key";

// A look whose reply is made beside the one that is sent.
class InfoLook : public StreamLook {
 public:
  explicit InfoLook(CommandContext& context) : out_(buffer_, context.out.protocol()) {}
  [[nodiscard]] OutputBuffer& reply() { return buffer_; }

 protected:
  // Where the reply is to be written, anew.
  ReplyWriter& BeginReply() {
    buffer_.Clear();
    return out_;
  }

 private:
  OutputBuffer buffer_;
  ReplyWriter out_;
};

// Has it look at the stream at argv[2], and answers.
Task<void> ReplyInfo(CommandContext& context, InfoLook& look) {
  ReadResult result;
  const bool is_sound = co_await LookAt(context, KeyAt(context, 2), look, &result);
  if (!is_sound) co_return;
  if (!result.found()) co_return context.out.Error(kNoKeyError);
  context.out.buffer().AppendAll(look.reply());
}

void ReplyNamed(ReplyWriter& out, std::string_view name, uint64_t value) {
  out.Bulk(name);
  out.Integer(static_cast<int64_t>(value));
}
void ReplyNamedId(ReplyWriter& out, std::string_view name, const EntryId& id) {
  out.Bulk(name);
  ReplyStreamId(out, id);
}

// How many entries it has read, and how many there are that it has not.
void ReplyProgress(ReplyWriter& out, const StreamHeader& header, const StreamGroup& group) {
  constexpr int64_t kUnknown = StreamGroup::kUnknownReads;
  out.Bulk("entries-read");
  group.entries_read == kUnknown ? out.Null() : out.Integer(group.entries_read);
  out.Bulk("lag");
  if (header.entries_added == 0) return out.Integer(0);
  const bool counts = group.entries_read != kUnknown && !HasGapsBehind(header, group.last_id);
  const int64_t read = counts ? group.entries_read : EntriesAddedUpTo(header, group.last_id);
  const auto added = static_cast<int64_t>(header.entries_added);
  counts || read != kUnknown ? out.Integer(added - read) : out.Null();
}

void ReplyGroup(ReplyWriter& out, const StreamHeader& header, const StreamGroup& group) {
  out.Map(6);
  out.Bulk("name");
  out.Bulk(group.name);
  ReplyNamed(out, "consumers", group.consumers);
  ReplyNamed(out, "pending", group.pending);
  ReplyNamedId(out, "last-delivered-id", group.last_id);
  ReplyProgress(out, header, group);
}

// `count` pending entries, or all; of one consumer, without its name, or of all.
void ReplyPendingOf(ReplyWriter& out, StreamValue& stream, uint32_t group, uint64_t count,
                    std::optional<uint32_t> consumer) {
  out.Bulk("pending");
  ArrayReply reply(out);
  StreamPendings pendings(stream, group, {});
  if (consumer) pendings.OfConsumer(*consumer);
  StreamPending pending;
  while ((count == 0 || reply.elements() < count) && pendings.Next(&pending)) {
    ReplyWriter& next = reply.Next();
    next.Array(consumer ? 3 : 4);
    ReplyStreamId(next, pending.id);
    StreamConsumer given;
    if (!consumer) {
      stream.ConsumerOf(group, pending.consumer, &given);
      next.Bulk(given.name);
    }
    next.Integer(pending.delivered_ms);
    next.Integer(static_cast<int64_t>(pending.deliveries));
  }
  reply.Finish();
}

void ReplyFullGroup(ReplyWriter& out, StreamValue& stream, const StreamGroup& group,
                    uint64_t count) {
  out.Map(7);
  out.Bulk("name");
  out.Bulk(group.name);
  ReplyNamedId(out, "last-delivered-id", group.last_id);
  ReplyProgress(out, stream.header(), group);
  ReplyNamed(out, "pel-count", group.pending);
  ReplyPendingOf(out, stream, group.number, count, std::nullopt);
  out.Bulk("consumers");
  const std::vector<StreamConsumer> consumers = stream.Consumers(group.number);
  out.Array(consumers.size());
  for (const StreamConsumer& consumer : consumers) {
    out.Map(4);
    out.Bulk("name");
    out.Bulk(consumer.name);
    ReplyNamed(out, "seen-time", static_cast<uint64_t>(consumer.seen_ms));
    ReplyNamed(out, "pel-count", consumer.pending);
    ReplyPendingOf(out, stream, group.number, count, consumer.number);
  }
}

void ReplyStreamFacts(ReplyWriter& out, const StreamHeader& header) {
  ReplyNamed(out, "length", header.length);
  ReplyNamed(out, "radix-tree-keys", header.nodes);
  ReplyNamed(out, "radix-tree-nodes", header.radix_nodes);
  ReplyNamedId(out, "last-generated-id", header.last_id);
  ReplyNamedId(out, "max-deleted-entry-id", header.max_deleted_id);
  ReplyNamed(out, "entries-added", header.entries_added);
  ReplyNamedId(out, "recorded-first-entry-id", header.first_id);
}

// The entry at an end of the stream.
void ReplyEndEntry(ReplyWriter& out, StreamValue& stream, bool reverse) {
  out.Bulk(reverse ? "last-entry" : "first-entry");
  StreamEntries entries(stream, {.reverse = reverse});
  StreamEntry entry;
  entries.Next(&entry) ? ReplyEntry(out, entry) : out.Null();
}

class ShortLook final : public InfoLook {
 public:
  using InfoLook::InfoLook;
  void LookAt(StreamValue& stream) override {
    ReplyWriter& out = BeginReply();
    out.Map(10);
    ReplyStreamFacts(out, stream.header());
    ReplyNamed(out, "groups", stream.header().groups);
    ReplyEndEntry(out, stream, /*reverse=*/false);
    ReplyEndEntry(out, stream, /*reverse=*/true);
  }
};

class GroupsLook final : public InfoLook {
 public:
  using InfoLook::InfoLook;
  void LookAt(StreamValue& stream) override {
    ReplyWriter& out = BeginReply();
    const std::vector<StreamGroup> groups = stream.Groups();
    out.Array(groups.size());
    for (const StreamGroup& group : groups) ReplyGroup(out, stream.header(), group);
  }
};

class ConsumersLook final : public InfoLook {
 public:
  explicit ConsumersLook(CommandContext& context)
      : InfoLook(context), argv_(context.argv), now_ms_(StreamNowMs(context)) {}
  void LookAt(StreamValue& stream) override {
    ReplyWriter& out = BeginReply();
    StreamGroup group;
    if (!stream.FindGroup(argv_[3], &group)) return out.Error(NoGroupError(argv_[3], argv_[2]));
    const std::vector<StreamConsumer> consumers = stream.Consumers(group.number);
    out.Array(consumers.size());
    for (const StreamConsumer& consumer : consumers) {
      out.Map(3);
      out.Bulk("name");
      out.Bulk(consumer.name);
      ReplyNamed(out, "pending", consumer.pending);
      const int64_t idle_ms = std::max<int64_t>(0, now_ms_ - consumer.seen_ms);
      ReplyNamed(out, "idle", static_cast<uint64_t>(idle_ms));
    }
  }

 private:
  const std::span<const std::string_view> argv_;
  const int64_t now_ms_;
};

void ReplyFull(ReplyWriter& out, StreamValue& stream, uint64_t count) {
  out.Map(9);
  ReplyStreamFacts(out, stream.header());
  out.Bulk("entries");
  ReplyStreamRange(out, stream, {}, count);
  out.Bulk("groups");
  const std::vector<StreamGroup> groups = stream.Groups();
  out.Array(groups.size());
  for (const StreamGroup& group : groups) ReplyFullGroup(out, stream, group, count);
}

// Reads FULL, and how many entries of each kind. False: it has answered.
bool ReadFull(CommandContext& context, uint64_t* count) {
  constexpr int64_t kUsualCount = 10;
  ArgumentReader arguments(context.argv, 3);
  int64_t number = kUsualCount;
  const bool is_known = arguments.Word("FULL") &&
                        (!arguments.HasMore() || arguments.Integer("COUNT", &number)) &&
                        arguments.left() == 0;
  if (!is_known) {
    ReplySubcommandSyntaxError(context);
    return false;
  }
  if (arguments.AnsweredError(context.out)) return false;
  *count = static_cast<uint64_t>(number < 0 ? kUsualCount : number);
  return true;
}

// All of the stream, as one value.
Task<void> ReplyFullInfo(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 2), &result);
  StreamValue stream;
  if (!TakeStream(context, status, result, &stream)) co_return;
  if (!result.found()) co_return context.out.Error(kNoKeyError);
  uint64_t count = 0;
  if (!ReadFull(context, &count)) co_return;
  OutputBuffer reply;
  ReplyWriter out(reply, context.out.protocol());
  ReplyFull(out, stream, count);
  if (stream.is_damaged()) co_return context.out.Error(kDamagedStreamError);
  context.out.buffer().AppendAll(reply);
}

}  // namespace

Task<void> XInfoStreamCommand(CommandContext& context) {
  constexpr size_t kArgumentsOfShort = 3;
  if (context.argv.size() != kArgumentsOfShort) co_return co_await ReplyFullInfo(context);
  ShortLook look(context);
  co_await ReplyInfo(context, look);
}

Task<void> XInfoGroupsCommand(CommandContext& context) {
  GroupsLook look(context);
  co_await ReplyInfo(context, look);
}

Task<void> XInfoConsumersCommand(CommandContext& context) {
  ConsumersLook look(context);
  co_await ReplyInfo(context, look);
}

}  // namespace onetrip
