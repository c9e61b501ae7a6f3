// The words of commands on streams: ids and ranges among their arguments, entries in their replies.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_STREAM_TERMS_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_STREAM_TERMS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/values/stream_edit.h"

namespace onetrip {

inline constexpr char kInvalidStreamIdError[] =
    "ERR Invalid stream ID specified as stream command argument";

// An id of which "-" and "+" are none; one without a sequence has 0.
EntryId ReadStreamId(ArgumentReader& arguments, std::string_view text);
// The ends of a range, each of which may be exclusive. The first one alone: to the last id.
StreamRange ReadStreamRange(ArgumentReader& arguments, std::string_view first,
                            std::optional<std::string_view> last);
// A number of entries, behind the word COUNT or alone; 0 for negative ones.
uint64_t CountOf(int64_t number);

// The errors about a group that is not there, in the two forms that Redis has.
std::string NoGroupError(std::string_view group, std::string_view key);
std::string NoKeyOrGroupError(std::string_view key, std::string_view group,
                              std::string_view where = {});

void ReplyStreamId(ReplyWriter& out, const EntryId& id);
void ReplyEntry(ReplyWriter& out, const StreamEntry& entry);

// An array of which the number of elements is not known before they are.
class ArrayReply {
 public:
  // Elements are in the protocol of `to`, which outlives it.
  explicit ArrayReply(ReplyWriter& to) : to_(to), out_(buffer_, to.protocol()) {}
  // Where one more element is to be written.
  ReplyWriter& Next() {
    ++elements_;
    return out_;
  }
  [[nodiscard]] uint64_t elements() const { return elements_; }
  void Finish() {
    to_.Array(elements_);
    to_.buffer().AppendAll(buffer_);
  }

 private:
  static constexpr size_t kChunkBytes = 1024;
  ReplyWriter& to_;
  OutputBuffer buffer_{kChunkBytes};
  ReplyWriter out_;
  uint64_t elements_ = 0;
};

// Answers with the entries of a range: `count` of them, or all if it is 0. False: the stream is
// damaged, and nothing was answered.
bool ReplyStreamRange(ReplyWriter& out, StreamValue& stream, const StreamRange& range,
                      uint64_t count);

// Takes the stream that a read has found, and counts the lookup. False: it has answered that the
// read failed, WRONGTYPE, or that it is damaged. `result` outlives `stream`.
bool TakeStream(CommandContext& context, Status status, const ReadResult& result,
                StreamValue* stream);

// A look at a stream in either form.
class StreamLook : public TreeReader {
 public:
  void Read(const RecordView& record, Tree& tree) final;
  // Makes the look; without a stream, at an empty one. Where pages are missing it is called anew,
  // and must begin anew.
  virtual void LookAt(StreamValue& stream) = 0;
  // The stream that Read() has found is damaged.
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }

 private:
  bool is_damaged_ = false;
};
// Has it look at a key. False: it has answered.
Task<bool> LookAt(CommandContext& context, Key key, StreamLook& look, ReadResult* result);
// For those who look at a packed value themselves, if it is one.
Task<bool> LookAtTree(CommandContext& context, Key key, StreamLook& look, ReadResult* result,
                      StreamValue* packed);

// The time that consumers were seen and entries were given at.
inline int64_t StreamNowMs(const CommandContext& context) {
  return static_cast<int64_t>(context.kv.NowMs());
}

// A read-modify-write of a stream.
class StreamMutation : public CollectionMutation {
 public:
  explicit StreamMutation(CommandContext& context)
      : CollectionMutation(context, ValueType::kStream) {}

  [[nodiscard]] bool takes_trees() const final { return true; }

 protected:
  // As ApplyTo(), of the stream; without one, found() is false and it is empty. Where pages are
  // missing, what it returns is of no account.
  virtual Change Edit(StreamEdit& stream) = 0;
  // For the end of Edit(): the key gets the stream as it is now.
  Change Put(StreamEdit& stream);
  // Refuses with an error that was made for this call.
  Change RefuseAs(std::string error);
  Change RefuseDamaged() { return Refuse(kDamagedStreamError); }

 private:
  Change ApplyTo(std::string_view current) final;
  Change ApplyToTree(Tree& tree) final;
  Change PutTree(StreamEdit& stream);

  std::string made_error_;
};

// The same of a stream's group, at the name in argv[2].
class GroupMutation : public StreamMutation {
 public:
  explicit GroupMutation(CommandContext& context)
      : StreamMutation(context), key_(context.argv[1]), name_(context.argv[2]) {}

 protected:
  virtual Change EditGroup(StreamEdit& stream, StreamGroupEdit& group) = 0;
  // The key, or the group, is not there.
  virtual Change WithoutGroup() { return RefuseAs(NoKeyOrGroupError(key_, name_)); }
  // For the end of EditGroup().
  Change PutGroup(StreamEdit& stream, StreamGroupEdit& group) {
    group.Finish();
    return Put(stream);
  }

 private:
  Change Edit(StreamEdit& stream) final;

  const std::string_view key_;
  const std::string_view name_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_STREAMS_STREAM_TERMS_H_
