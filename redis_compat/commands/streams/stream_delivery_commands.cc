// XREADGROUP gives entries to a consumer, XACK takes note that they are done with.
//
// XREADGROUP of several keys changes one after the other, each by one read-modify-write.
#include <algorithm>
#include <string>
#include <vector>

#include "redis_compat/commands/streams/handlers.h"
#include "redis_compat/commands/streams/stream_read_terms.h"
#include "redis_compat/commands/streams/stream_terms.h"

namespace onetrip {
namespace {

// The id at which it says that new entries are asked for.
constexpr EntryId kNewEntries = kStreamIdMax;

// Where XREADGROUP reads: the key and id in argv[index] and behind it.
struct GroupRead {
  const StreamReadTerms& terms;
  std::string_view key;
  std::string_view id_text;
};

// Checks what Redis does before it gives anything. Empty: it is well, and `id` is what was asked.
std::string CheckGroupRead(const GroupRead& read, const StreamValue& stream, EntryId* id) {
  if (stream.FindGroup(*read.terms.group) == nullptr) {
    return NoKeyOrGroupError(read.key, *read.terms.group, " in XREADGROUP with GROUP option");
  }
  if (read.id_text == "$") {
    return "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history "
           "of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ "
           "ID would just return an empty result set.";
  }
  *id = kNewEntries;
  if (read.id_text == ">" || ParseStreamId(read.id_text, {}, id)) return {};
  return kInvalidStreamIdError;
}

class GiveEntries final : public StreamMutation {
 public:
  // `read` outlives it.
  GiveEntries(CommandContext& context, const GroupRead& read)
      : StreamMutation(context),
        context_(context),
        read_(read),
        now_ms_(StreamNowMs(context)),
        out_(buffer_, context.out.protocol()) {}
  // False: there was nothing to give.
  [[nodiscard]] bool gave() const { return gave_; }
  // The array of what it gave.
  [[nodiscard]] OutputBuffer& reply() { return buffer_; }

 private:
  Change Edit(StreamEdit& stream) override {
    gave_ = false;
    buffer_.Clear();
    EntryId id;
    std::string error = CheckGroupRead(read_, stream, &id);
    if (!error.empty()) return RefuseAs(std::move(error));
    StreamGroup group;
    if (!group.Load(stream.FindGroup(*read_.terms.group)->body)) return RefuseDamaged();
    EntryId last;
    if (!FindLastStreamId(stream, &last)) return RefuseDamaged();
    const bool is_new = id == kNewEntries;
    gave_ = !is_new || last > group.last_id;
    if (!gave_) return Change::Keep();
    const uint32_t consumer = group.SeeConsumer(read_.terms.consumer, now_ms_);
    const bool is_sound =
        is_new ? GiveNew(stream, &group, consumer) : GiveAgain(stream, id, &group, consumer);
    if (!is_sound) return RefuseDamaged();
    share_ = CountMemory(context_, buffer_.size());
    stream.PutGroup(*read_.terms.group, group);
    return Put(stream);
  }

  bool GiveNew(const StreamEdit& stream, StreamGroup* group, uint32_t consumer) {
    ArrayReply reply(out_);
    StreamRange range{.first = group->last_id};
    StepForward(&range.first);
    StreamEntries entries(stream, range);
    StreamEntry entry;
    const uint64_t count = read_.terms.count;
    while ((count == 0 || reply.elements() < count) && entries.Next(&entry)) {
      CountRead(stream.header(), entry.id, group);
      group->last_id = entry.id;
      ReplyEntry(reply.Next(), entry);
      if (read_.terms.no_ack) continue;
      StreamPending& pending = group->AddPending(entry.id);
      pending.delivered_ms = now_ms_;
      pending.deliveries = 1;
      pending.consumer = consumer;
    }
    reply.Finish();
    return !entries.is_damaged();
  }

  static void CountRead(const StreamHeader& header, const EntryId& id, StreamGroup* group) {
    if (group->entries_read != StreamGroup::kUnknownReads && !HasGapsBehind(header, id)) {
      ++group->entries_read;
    } else if (header.entries_added > 0) {
      group->entries_read = EntriesAddedUpTo(header, id);
    }
  }

  // Entries that the consumer was given before, behind an id.
  bool GiveAgain(const StreamEdit& stream, EntryId id, StreamGroup* group, uint32_t consumer) {
    ArrayReply reply(out_);
    StepForward(&id);
    std::vector<StreamPending>& pending = group->pending();
    bool is_damaged = false;
    for (size_t i = group->FindPlace(id); i < pending.size(); ++i) {
      if (read_.terms.count > 0 && reply.elements() == read_.terms.count) break;
      if (pending[i].consumer != consumer) continue;
      StreamEntry entry;
      ReplyWriter& out = reply.Next();
      if (stream.Find(pending[i].id, &entry, &is_damaged)) {
        ReplyEntry(out, entry);
        pending[i].delivered_ms = now_ms_;
        ++pending[i].deliveries;
      } else {
        out.Array(2);
        ReplyStreamId(out, pending[i].id);
        out.NullArray();
      }
    }
    reply.Finish();
    return !is_damaged;
  }

  CommandContext& context_;
  const GroupRead& read_;
  const int64_t now_ms_;
  bool gave_ = false;
  OutputBuffer buffer_;
  ReplyWriter out_;
  MemoryBudget::Share share_;  // counts `buffer_`
};

GroupRead GroupReadAt(const CommandContext& context, const StreamReadTerms& terms, size_t i) {
  return {terms, context.argv[terms.first_key + i], context.argv[terms.first_key + terms.keys + i]};
}

// As Redis does before it gives anything of the first key. False: it has answered.
Task<bool> CheckAllReads(CommandContext& context, const StreamReadTerms& terms) {
  for (size_t i = 0; i < terms.keys; ++i) {
    ReadResult result;
    const Status status = co_await context.kv.Get(KeyAt(context, terms.first_key + i), &result);
    StreamValue stream;
    if (!TakeStream(context, status, result, &stream)) co_return false;
    EntryId id;
    const std::string error = CheckGroupRead(GroupReadAt(context, terms, i), stream, &id);
    if (error.empty()) continue;
    context.out.Error(error);
    co_return false;
  }
  co_return true;
}

// Takes note of entries that are done with; argv[3] and so on.
class Acknowledge final : public GroupMutation {
 public:
  explicit Acknowledge(CommandContext& context)
      : GroupMutation(context), texts_(context.argv.subspan(3)) {}
  [[nodiscard]] int64_t acknowledged() const { return acknowledged_; }

 private:
  Change WithoutGroup() override {
    acknowledged_ = 0;
    return Change::Keep();
  }

  Change EditGroup(StreamEdit& stream, StreamGroup& group) override {
    acknowledged_ = 0;
    ArgumentReader arguments(texts_);
    std::vector<EntryId> ids;
    for (const std::string_view text : texts_) ids.push_back(ReadStreamId(arguments, text));
    if (!arguments.ok()) return RefuseAs(std::string(arguments.error()));
    for (const EntryId& id : ids) {
      StreamPending* const pending = group.FindPending(id);
      if (pending == nullptr) continue;
      pending->consumer = StreamGroup::kNoConsumer;
      ++acknowledged_;
    }
    return acknowledged_ == 0 ? Change::Keep() : PutGroup(stream, group);
  }

  const std::span<const std::string_view> texts_;
  int64_t acknowledged_ = 0;
};

}  // namespace

Task<void> XReadGroupCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 1);
  const StreamReadTerms terms = ReadStreamReadTerms(context, arguments, /*for_group=*/true);
  if (arguments.AnsweredError(context.out)) co_return;
  if (terms.keys > 1) {
    const bool is_well = co_await CheckAllReads(context, terms);
    if (!is_well) co_return;
  }
  StreamReadReply reply(context, terms);
  for (size_t i = 0; i < terms.keys; ++i) {
    const GroupRead read = GroupReadAt(context, terms, i);
    const Key key = KeyAt(context, terms.first_key + i);
    GiveEntries mutation(context, read);
    const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
    const bool failed = !status.ok() || mutation.error() != nullptr;
    // The client learns of entries that it was given, whatever becomes of the next key.
    if (failed && reply.has_any()) break;
    if (AnsweredWriteFailure(context, key, status)) co_return;
    if (failed) co_return context.out.Error(mutation.error());
    if (!mutation.gave()) continue;
    reply.Next(read.key).buffer().AppendAll(mutation.reply());
  }
  reply.Finish();
}

Task<void> XAckCommand(CommandContext& context) {
  Acknowledge mutation(context);
  const bool done = co_await Mutate(context, mutation);
  if (done) context.out.Integer(mutation.acknowledged());
}

}  // namespace onetrip
