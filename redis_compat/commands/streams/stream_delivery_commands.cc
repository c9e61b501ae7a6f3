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

// Checks what Redis does before it gives anything. Empty: it is well, and `id` is what was asked
// of `group`.
std::string CheckGroupRead(const GroupRead& read, StreamValue& stream, StreamGroup* group,
                           EntryId* id) {
  if (!stream.FindGroup(*read.terms.group, group)) {
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
    StreamGroup found;
    std::string error = CheckGroupRead(read_, stream, &found, &id);
    if (stream.is_damaged()) return RefuseDamaged();
    if (!error.empty()) return RefuseAs(std::move(error));
    const EntryId last = stream.LastLiveId();
    const bool is_new = id == kNewEntries;
    gave_ = !is_new || last > found.last_id || stream.elements().is_missing();
    if (!gave_) return stream.is_damaged() ? RefuseDamaged() : Change::Keep();
    StreamGroupEdit group(stream, found);
    const uint32_t consumer = group.SeeConsumer(read_.terms.consumer, now_ms_);
    is_new ? GiveNew(stream, &group, consumer) : GiveAgain(stream, id, &group, consumer);
    if (stream.is_damaged()) return RefuseDamaged();
    share_ = CountMemory(context_, buffer_.size());
    group.Finish();
    return Put(stream);
  }

  void GiveNew(StreamEdit& stream, StreamGroupEdit* group, uint32_t consumer) {
    ArrayReply reply(out_);
    StreamRange range{.first = group->head().last_id};
    StepForward(&range.first);
    const uint64_t count = read_.terms.count;
    stream.WantEntries(range, count);
    StreamEntries entries(stream, range);
    StreamEntry entry;
    while ((count == 0 || reply.elements() < count) && entries.Next(&entry)) {
      CountRead(stream.header(), entry.id, group);
      group->set_last_id(entry.id);
      ReplyEntry(reply.Next(), entry);
      if (!read_.terms.no_ack) group->Put({entry.id, now_ms_, 1, consumer});
    }
    reply.Finish();
  }

  static void CountRead(const StreamHeader& header, const EntryId& id, StreamGroupEdit* group) {
    const int64_t read = group->head().entries_read;
    if (read != StreamGroup::kUnknownReads && !HasGapsBehind(header, id)) {
      group->set_entries_read(read + 1);
    } else if (header.entries_added > 0) {
      group->set_entries_read(EntriesAddedUpTo(header, id));
    }
  }

  // Entries that the consumer was given before, behind an id.
  void GiveAgain(StreamEdit& stream, EntryId id, StreamGroupEdit* group, uint32_t consumer) {
    ArrayReply reply(out_);
    StepForward(&id);
    const uint64_t count = read_.terms.count;
    stream.WantGiven(group->head().number, consumer, id, count);
    StreamPendings pendings(stream, group->head().number, id);
    pendings.OfConsumer(consumer);
    StreamPending pending;
    while ((count == 0 || reply.elements() < count) && pendings.Next(&pending)) {
      StreamEntry entry;
      ReplyWriter& out = reply.Next();
      if (stream.Find(pending.id, &entry)) {
        ReplyEntry(out, entry);
        pending.delivered_ms = now_ms_;
        ++pending.deliveries;
        group->Put(pending);
      } else {
        out.Array(2);
        ReplyStreamId(out, pending.id);
        out.NullArray();
      }
    }
    reply.Finish();
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

class CheckLook final : public StreamLook {
 public:
  explicit CheckLook(const GroupRead& read) : read_(read) {}
  void LookAt(StreamValue& stream) override {
    StreamGroup group;
    EntryId id;
    error_ = CheckGroupRead(read_, stream, &group, &id);
  }
  // Empty: it is well.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  const GroupRead& read_;
  std::string error_;
};

// As Redis does before it gives anything of the first key. False: it has answered.
Task<bool> CheckAllReads(CommandContext& context, const StreamReadTerms& terms) {
  for (size_t i = 0; i < terms.keys; ++i) {
    ReadResult result;
    const GroupRead read = GroupReadAt(context, terms, i);
    CheckLook look(read);
    const bool is_sound =
        co_await LookAt(context, KeyAt(context, terms.first_key + i), look, &result);
    if (!is_sound) co_return false;
    if (look.error().empty()) continue;
    context.out.Error(look.error());
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

  Change EditGroup(StreamEdit& stream, StreamGroupEdit& group) override {
    acknowledged_ = 0;
    ArgumentReader arguments(texts_);
    std::vector<EntryId> ids;
    for (const std::string_view text : texts_) ids.push_back(ReadStreamId(arguments, text));
    if (!arguments.ok()) return RefuseAs(std::string(arguments.error()));
    for (const EntryId& id : ids) {
      StreamPending pending;
      if (!group.FindPending(id, &pending)) continue;
      group.Remove(pending);
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
