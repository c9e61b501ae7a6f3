#include "redis_compat/commands/streams/stream_terms.h"

#include <array>
#include <utility>

#include "client_core/layout/record.h"
#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

// One end of a range. `step`: to the next id within it, if the end is exclusive.
EntryId ReadRangeEnd(ArgumentReader& arguments, std::string_view text, uint64_t missing_sequence,
                     bool (*step)(EntryId*), const char* step_error) {
  if (!arguments.ok()) return {};
  const bool is_exclusive = text.size() > 1 && text.front() == '(';
  if (is_exclusive) text.remove_prefix(1);
  EntryId id;
  const StreamIdForm form{.missing_sequence = missing_sequence, .takes_ends = !is_exclusive};
  arguments.Require(ParseStreamId(text, form, &id), kInvalidStreamIdError);
  arguments.Require(!is_exclusive || step(&id), step_error);
  return id;
}

}  // namespace

EntryId ReadStreamId(ArgumentReader& arguments, std::string_view text) {
  EntryId id;
  arguments.Require(ParseStreamId(text, {}, &id), kInvalidStreamIdError);
  return id;
}

StreamRange ReadStreamRange(ArgumentReader& arguments, std::string_view first,
                            std::optional<std::string_view> last) {
  StreamRange range;
  range.first =
      ReadRangeEnd(arguments, first, 0, StepForward, "ERR invalid start ID for the interval");
  if (last) {
    range.last =
        ReadRangeEnd(arguments, *last, UINT64_MAX, StepBack, "ERR invalid end ID for the interval");
  }
  return range;
}

uint64_t CountOf(int64_t number) { return number < 0 ? 0 : static_cast<uint64_t>(number); }

std::string NoGroupError(std::string_view group, std::string_view key) {
  std::string error = "NOGROUP No such consumer group '";
  error.append(UntilNul(group)).append("' for key name '").append(UntilNul(key));
  return error.append("'");
}

std::string NoKeyOrGroupError(std::string_view key, std::string_view group,
                              std::string_view where) {
  std::string error = "NOGROUP No such key '";
  error.append(UntilNul(key)).append("' or consumer group '").append(UntilNul(group));
  return error.append("'").append(where);
}

void ReplyStreamId(ReplyWriter& out, const EntryId& id) {
  std::array<char, kStreamIdTextMax> text;
  out.Bulk({text.data(), FormatStreamId(id, text.data())});
}

void ReplyEntry(ReplyWriter& out, const StreamEntry& entry) {
  out.Array(2);
  ReplyStreamId(out, entry.id);
  out.Array(2 * entry.fields);
  StreamFields fields(entry);
  std::string_view name;
  std::string_view value;
  while (fields.Next(&name, &value)) {
    out.Bulk(name);
    out.Bulk(value);
  }
}

bool ReplyStreamRange(ReplyWriter& out, StreamValue& stream, const StreamRange& range,
                      uint64_t count) {
  ArrayReply reply(out);
  stream.WantEntries(range, count);
  StreamEntries entries(stream, range);
  StreamEntry entry;
  while ((count == 0 || reply.elements() < count) && entries.Next(&entry)) {
    ReplyEntry(reply.Next(), entry);
  }
  if (!stream.is_damaged()) reply.Finish();
  return !stream.is_damaged();
}

bool TakeStream(CommandContext& context, Status status, const ReadResult& result,
                StreamValue* stream) {
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kStream, &value)) return false;
  if (IsTree(result) || stream->Load(value)) return true;
  context.out.Error(kDamagedStreamError);
  return false;
}

void StreamLook::Read(const RecordView& record, Tree& tree) {
  if (!IsOfType(&record, ValueType::kStream)) return;
  StreamValue stream;
  is_damaged_ = !stream.Load(tree);
  if (is_damaged_) return;
  LookAt(stream);
  is_damaged_ = stream.is_damaged();
}

Task<bool> LookAtTree(CommandContext& context, Key key, StreamLook& look, ReadResult* result,
                      StreamValue* packed) {
  const ValueRange wanted{.reader = &look};
  const Status status = co_await context.kv.GetPart(key, wanted, result);
  if (!TakeStream(context, status, *result, packed)) co_return false;
  if (!IsTree(*result) || !look.is_damaged()) co_return true;
  context.out.Error(kDamagedStreamError);
  co_return false;
}

Task<bool> LookAt(CommandContext& context, Key key, StreamLook& look, ReadResult* result) {
  StreamValue packed;
  const bool is_there = co_await LookAtTree(context, key, look, result, &packed);
  if (!is_there || IsTree(*result)) co_return is_there;
  look.LookAt(packed);
  if (packed.is_damaged()) context.out.Error(kDamagedStreamError);
  co_return !packed.is_damaged();
}

Change StreamMutation::ApplyTo(std::string_view current) {
  StreamEdit stream;
  if (found() && current.empty()) return RefuseDamaged();
  return stream.Load(current) ? Edit(stream) : RefuseDamaged();
}

Change StreamMutation::ApplyToTree(Tree& tree) {
  StreamEdit stream;
  return stream.Load(tree) ? Edit(stream) : RefuseDamaged();
}

Change StreamMutation::Put(StreamEdit& stream) {
  if (stream.is_damaged()) return RefuseDamaged();
  return stream.elements().tree() != nullptr ? PutTree(stream) : Replace(stream.Finish());
}

Change StreamMutation::PutTree(StreamEdit& stream) {
  if (stream.BytesMax() > kMaxValueBytes) return Refuse(kCollectionTooLargeError);
  Tree& tree = *stream.elements().tree();
  if (stream.FinishTree()) {
    if (stream.is_damaged()) return RefuseDamaged();
    if (tree.elements(0) > 0) return KeepTree(tree);
    return Replace(tree.header());
  }
  std::string packed;
  if (stream.FinishPacked(&packed)) return Replace(std::move(packed));
  return stream.is_damaged() ? RefuseDamaged() : Change::Keep();
}

Change StreamMutation::RefuseAs(std::string error) {
  made_error_ = std::move(error);
  return Refuse(made_error_.c_str());
}

Change GroupMutation::Edit(StreamEdit& stream) {
  StreamGroup found;
  if (!stream.FindGroup(name_, &found)) {
    return stream.is_damaged() ? RefuseDamaged() : WithoutGroup();
  }
  StreamGroupEdit group(stream, found);
  const Change change = EditGroup(stream, group);
  return stream.is_damaged() ? RefuseDamaged() : change;
}

}  // namespace onetrip
