// The steps that every command on keys takes around its storage operation.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_KEY_ACCESS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_KEY_ACCESS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "client_core/base/status.h"
#include "client_core/kv/kv.h"
#include "redis_compat/dispatch/command_context.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/protocol/reply_status.h"
#include "redis_compat/values/value.h"

namespace onetrip {

// The key at argv[index], in the connection's database.
inline Key KeyAt(const CommandContext& context, size_t index) {
  Key key{context.session.database, context.argv[index]};
  if (index == 1) {
    key.in_order = context.in_order;
    if (context.first_key != nullptr) {
      key.hashed_under = context.first_key->hashed_under;
      key.hash = context.first_key->hash;
    }
  }
  return key;
}

// Answers a read that failed and returns true. A key too long to be stored is simply not there.
inline bool AnsweredReadFailure(CommandContext& context, Status status) {
  if (status.ok() || status.code() == StatusCode::kTooLarge) [[likely]] {
    return false;
  }
  ReplyStatus(context.out, status, StorageStep::kRead);
  return true;
}

// Answers a write that failed and returns true.
inline bool AnsweredWriteFailure(CommandContext& context, Key key, Status status,
                                 StorageStep step = StorageStep::kWrite) {
  if (status.ok()) [[likely]] {
    return false;
  }
  ReplyWriteFailure(context.out, key.bytes.size(), status, step);
  return true;
}

// Counts INFO's keyspace_hits and keyspace_misses.
inline void CountLookup(CommandContext& context, bool found) {
  ++(found ? context.hits : context.misses);
}

// Takes the string that a read has found, or nothing, and counts the lookup. False: it has answered
// that the read failed, or WRONGTYPE. `result` outlives `string`.
inline bool TakeString(CommandContext& context, Status status, const ReadResult& result,
                       StringValue* string) {
  if (AnsweredReadFailure(context, status)) return false;
  CountLookup(context, result.found());
  *string = StringValue(result.found() ? &result.record() : nullptr);
  const char* const error = string->type_error();
  if (error != nullptr) [[unlikely]] {
    context.out.Error(error);
    return false;
  }
  return true;
}

// Counts memory that the call takes for large values, beside those that it reads: others wait
// until it is given back, the call itself does not.
inline MemoryBudget::Share CountMemory(CommandContext& context, uint64_t bytes) {
  if (bytes <= kRecordValueBytesMax) return {};
  return MemoryBudget::Share::TakeNow(context.hooks.large_requests(), bytes);
}

// Lets the client take the replies so far: a command that keeps a share of the budget for values
// that are read, if only in a reply, must not wait for another one. If the client does not take
// them, its last large value counts no more.
Task<void> AwaitTaken(CommandContext& context);
// True if a call that has more to answer should do so.
inline bool MustAwaitTaken(const CommandContext& context) {
  return context.answered_large != nullptr || context.out.buffer().size() > ReplyFlow::kMostBytes;
}

// Goes on when the commands before it have been answered, and there is room for a large reply, or
// the connection ends: Session::abandoned. A call that keeps a share of the budget for values that
// are read, if only in a reply, awaits it first: what is before it may need one.
Task<void> AwaitTurn(CommandContext& context);

// Answers with a value, or a part of it, that `holder`, if it is not null, keeps until it is sent.
inline void ReplyValue(CommandContext& context, std::string_view value,
                       const std::shared_ptr<LargeValue>& holder) {
  if (holder == nullptr) [[likely]] {
    return context.out.Bulk(value);
  }
  context.answered_large = holder;
  context.out.BulkShared(holder, value);
}

// A reply of three parts, the middle one a value as above.
struct ReplyParts {
  std::string_view head;
  std::string_view value;
  std::string_view tail;
};
inline void ReplyWithin(CommandContext& context, const ReplyParts& parts,
                        const std::shared_ptr<LargeValue>& holder) {
  context.out.BulkHeader(parts.head.size() + parts.value.size() + parts.tail.size());
  context.out.Raw(parts.head);
  if (holder == nullptr) {
    context.out.Raw(parts.value);
  } else {
    context.answered_large = holder;
    context.out.buffer().AppendShared(holder, parts.value);
  }
  context.out.Raw(parts.tail);
  context.out.Raw("\r\n");
}

// A value that was seen, beyond the call that has seen it: a copy, unless it is a large one.
class KeptValue {
 public:
  void Keep(const RecordView& seen) {
    holder_ = seen.holder == nullptr ? nullptr : *seen.holder;
    copy_ = holder_ == nullptr ? seen.value : std::string_view();
    value_ = seen.value;
  }
  void Reply(CommandContext& context) const {
    std::string_view kept = value_;
    if (holder_ == nullptr) kept = copy_;
    ReplyValue(context, kept, holder_);
  }

 private:
  std::shared_ptr<LargeValue> holder_;
  std::string copy_;
  std::string_view value_;
};

inline KeyUse UseOf(const CommandRow& row) {
  return (row.flags & CommandFlag::kWrite) != 0 ? KeyUse::kWrite : KeyUse::kRead;
}

// Keeps the memory of the keys behind argv[index] on its way while that key is worked on: every
// `step`-th argument is a key. Call it before each key, in order.
inline void PrefetchAhead(const CommandContext& context, size_t index, size_t step) {
  // How many keys ahead each of the two stages runs: enough to cover a cache miss with the work on
  // the keys between.
  constexpr size_t kRecordAhead = 3;
  constexpr size_t kLocationAhead = 6;
  const size_t record = index + kRecordAhead * step;
  const size_t location = index + kLocationAhead * step;
  if (record < context.argv.size()) {
    context.kv.PrefetchRecord(KeyAt(context, record), UseOf(*context.command));
  }
  if (location < context.argv.size()) {
    Key key = KeyAt(context, location);
    context.kv.PrefetchLocation(&key);
  }
}

// The record as it is, with another deadline; 0: none.
inline Change WithDeadline(const RecordView& record, uint64_t deadline_ms) {
  NewRecord changed;
  changed.head = record.value;
  changed.deadline_ms = deadline_ms;
  changed.type = record.type;
  changed.tree = record.tree;
  return Change::Write(changed);
}

// A read-modify-write that can also refuse: Apply() leaves the reason in error().
class CommandMutation : public Mutation {
 public:
  // Null if the last Apply() was content, else a complete error reply.
  [[nodiscard]] const char* error() const { return error_; }

 protected:
  // For the start of Apply(): an attempt knows nothing of the ones before.
  void Begin() { error_ = nullptr; }
  Change Refuse(const char* error) {
    error_ = error;
    return Change::Keep();
  }

 private:
  const char* error_ = nullptr;
};

// A read-modify-write of a string. Of a value of another type nothing becomes but WRONGTYPE.
class StringMutation : public CommandMutation {
 public:
  Change Apply(const RecordView* current) final {
    Begin();
    const StringValue string(current);
    found_ = string.found();
    const char* const error = string.type_error();
    return error != nullptr ? Refuse(error) : ApplyTo(string);
  }

  // Strings never are: it refuses them unread.
  [[nodiscard]] bool takes_trees() const final { return true; }
  // True if the last Apply() saw a value.
  [[nodiscard]] bool found() const { return found_; }

 protected:
  // As Apply(). REQUIRES: type_error() is null.
  virtual Change ApplyTo(const StringValue& current) = 0;

 private:
  bool found_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_KEY_ACCESS_H_
