// XINFO: commands that tell about streams, their groups and consumers.
#include <algorithm>
#include <optional>

#include "redis_compat/commands/streams/handlers.h"
#include "redis_compat/commands/streams/stream_terms.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

// Takes the stream at argv[2]. False: it has answered.
bool TakeInfoStream(CommandContext& context, Status status, const ReadResult& result,
                    StreamValue* stream) {
  if (!TakeStream(context, status, result, stream)) return false;
  if (!result.found()) context.out.Error("ERR no such key");
  return result.found();
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

void ReplyGroup(ReplyWriter& out, const StreamHeader& header, std::string_view name,
                const StreamGroup& group) {
  out.Map(6);
  out.Bulk("name");
  out.Bulk(name);
  ReplyNamed(out, "consumers", group.consumers().size());
  ReplyNamed(out, "pending", group.pending().size());
  ReplyNamedId(out, "last-delivered-id", group.last_id);
  ReplyProgress(out, header, group);
}

// `count` pending entries, or all; of one consumer, without its name, or of all.
void ReplyPendingOf(ReplyWriter& out, const StreamGroup& group, uint64_t count,
                    std::optional<uint32_t> consumer) {
  out.Bulk("pending");
  ArrayReply reply(out);
  for (const StreamPending& pending : group.pending()) {
    if (count > 0 && reply.elements() == count) break;
    if (consumer && pending.consumer != *consumer) continue;
    ReplyWriter& next = reply.Next();
    next.Array(consumer ? 3 : 4);
    ReplyStreamId(next, pending.id);
    if (!consumer) next.Bulk(group.consumers()[pending.consumer].name);
    next.Integer(pending.delivered_ms);
    next.Integer(static_cast<int64_t>(pending.deliveries));
  }
  reply.Finish();
}

void ReplyFullGroup(ReplyWriter& out, const StreamHeader& header, std::string_view name,
                    const StreamGroup& group, uint64_t count) {
  out.Map(7);
  out.Bulk("name");
  out.Bulk(name);
  ReplyNamedId(out, "last-delivered-id", group.last_id);
  ReplyProgress(out, header, group);
  ReplyNamed(out, "pel-count", group.pending().size());
  ReplyPendingOf(out, group, count, std::nullopt);
  out.Bulk("consumers");
  const std::vector<uint64_t> counts = group.CountPending();
  out.Array(counts.size());
  for (uint32_t i = 0; i < counts.size(); ++i) {
    const StreamConsumer& consumer = group.consumers()[i];
    out.Map(4);
    out.Bulk("name");
    out.Bulk(consumer.name);
    ReplyNamed(out, "seen-time", static_cast<uint64_t>(consumer.seen_ms));
    ReplyNamed(out, "pel-count", counts[i]);
    ReplyPendingOf(out, group, count, i);
  }
}

void ReplyStreamFacts(ReplyWriter& out, const StreamValue& stream) {
  const StreamHeader& header = stream.header();
  ReplyNamed(out, "length", header.length);
  ReplyNamed(out, "radix-tree-keys", stream.nodes().size());
  ReplyNamed(out, "radix-tree-nodes", CountRadixTreeNodes(stream.nodes()));
  ReplyNamedId(out, "last-generated-id", header.last_id);
  ReplyNamedId(out, "max-deleted-entry-id", header.max_deleted_id);
  ReplyNamed(out, "entries-added", header.entries_added);
  ReplyNamedId(out, "recorded-first-entry-id", header.first_id);
}

// The entry at an end of the stream. False: that is damaged.
bool ReplyEndEntry(ReplyWriter& out, const StreamValue& stream, bool reverse) {
  out.Bulk(reverse ? "last-entry" : "first-entry");
  StreamEntries entries(stream, {.reverse = reverse});
  StreamEntry entry;
  entries.Next(&entry) ? ReplyEntry(out, entry) : out.Null();
  return !entries.is_damaged();
}

bool ReplyShort(ReplyWriter& out, const StreamValue& stream) {
  out.Map(10);
  ReplyStreamFacts(out, stream);
  ReplyNamed(out, "groups", stream.groups().size());
  return ReplyEndEntry(out, stream, /*reverse=*/false) &&
         ReplyEndEntry(out, stream, /*reverse=*/true);
}

bool ReplyFull(ReplyWriter& out, const StreamValue& stream, uint64_t count) {
  out.Map(9);
  ReplyStreamFacts(out, stream);
  out.Bulk("entries");
  if (!ReplyStreamRange(out, stream, {}, count)) return false;
  out.Bulk("groups");
  out.Array(stream.groups().size());
  for (const StreamValue::Group& packed : stream.groups()) {
    StreamGroup group;
    if (!group.Load(packed.body)) return false;
    ReplyFullGroup(out, stream.header(), packed.name, group, count);
  }
  return true;
}

// FULL, and how many entries of each kind; nothing: the short form. False: it has answered.
bool ReadFull(CommandContext& context, std::optional<uint64_t>* count) {
  constexpr int64_t kUsualCount = 10;
  ArgumentReader arguments(context.argv, 3);
  if (!arguments.HasMore()) return true;
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

}  // namespace

Task<void> XInfoStreamCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 2), &result);
  StreamValue stream;
  if (!TakeInfoStream(context, status, result, &stream)) co_return;
  std::optional<uint64_t> count;
  if (!ReadFull(context, &count)) co_return;
  OutputBuffer reply;
  ReplyWriter out(reply, context.out.protocol());
  const bool is_sound = count ? ReplyFull(out, stream, *count) : ReplyShort(out, stream);
  if (!is_sound) co_return context.out.Error(kDamagedStreamError);
  context.out.buffer().AppendAll(reply);
}

Task<void> XInfoGroupsCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 2), &result);
  StreamValue stream;
  if (!TakeInfoStream(context, status, result, &stream)) co_return;
  OutputBuffer reply;
  ReplyWriter out(reply, context.out.protocol());
  out.Array(stream.groups().size());
  for (const StreamValue::Group& packed : stream.groups()) {
    StreamGroup group;
    if (!group.Load(packed.body)) co_return context.out.Error(kDamagedStreamError);
    ReplyGroup(out, stream.header(), packed.name, group);
  }
  context.out.buffer().AppendAll(reply);
}

Task<void> XInfoConsumersCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 2), &result);
  StreamValue stream;
  if (!TakeInfoStream(context, status, result, &stream)) co_return;
  const StreamValue::Group* const packed = stream.FindGroup(context.argv[3]);
  if (packed == nullptr) {
    co_return context.out.Error(NoGroupError(context.argv[3], context.argv[2]));
  }
  StreamGroup group;
  if (!group.Load(packed->body)) co_return context.out.Error(kDamagedStreamError);
  const std::vector<uint64_t> counts = group.CountPending();
  const int64_t now_ms = StreamNowMs(context);
  context.out.Array(counts.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    const StreamConsumer& consumer = group.consumers()[i];
    context.out.Map(3);
    context.out.Bulk("name");
    context.out.Bulk(consumer.name);
    ReplyNamed(context.out, "pending", counts[i]);
    const int64_t idle_ms = std::max<int64_t>(0, now_ms - consumer.seen_ms);
    ReplyNamed(context.out, "idle", static_cast<uint64_t>(idle_ms));
  }
}

}  // namespace onetrip
