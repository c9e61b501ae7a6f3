#include "redis_compat/commands/streams/stream_terms.h"

#include <array>
#include <utility>

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

bool ReplyStreamRange(ReplyWriter& out, const StreamValue& stream, const StreamRange& range,
                      uint64_t count) {
  ArrayReply reply(out);
  StreamEntries entries(stream, range);
  StreamEntry entry;
  while ((count == 0 || reply.elements() < count) && entries.Next(&entry)) {
    ReplyEntry(reply.Next(), entry);
  }
  if (!entries.is_damaged()) reply.Finish();
  return !entries.is_damaged();
}

bool TakeStream(CommandContext& context, Status status, const ReadResult& result,
                StreamValue* stream) {
  std::string_view value;
  if (!TakeCollection(context, status, result, ValueType::kStream, &value)) return false;
  if (stream->Load(value)) return true;
  context.out.Error(kDamagedStreamError);
  return false;
}

Change StreamMutation::ApplyTo(std::string_view current) {
  StreamEdit stream;
  if (found() && current.empty()) return RefuseDamaged();
  return stream.Load(current) ? Edit(stream) : RefuseDamaged();
}

Change StreamMutation::Put(const StreamEdit& stream) {
  return stream.is_damaged() ? RefuseDamaged() : Replace(stream.Finish());
}

Change StreamMutation::RefuseAs(std::string error) {
  made_error_ = std::move(error);
  return Refuse(made_error_.c_str());
}

Change GroupMutation::Edit(StreamEdit& stream) {
  const StreamValue::Group* const packed = stream.FindGroup(name_);
  if (packed == nullptr) return WithoutGroup();
  StreamGroup group;
  return group.Load(packed->body) ? EditGroup(stream, group) : RefuseDamaged();
}

}  // namespace onetrip
