// Whole strings: GET, SET and their relatives.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/large_memory.h"
#include "client_core/store/prepared_sets.h"
#include "redis_compat/commands/strings/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/container_replies.h"
#include "redis_compat/dispatch/key_batch.h"
#include "redis_compat/dispatch/set_options.h"

namespace onetrip {
namespace {

// True if `result`, read as kUnlessLarge, lacks the value. Large values wait for memory, one after
// the other: a command that has some may not wait for more.
bool IsToCome(const ReadResult& result) {
  return result.found() && result.record().value.size() != result.record().value_bytes;
}

// Answers what a read of one string found.
void ReplyString(CommandContext& context, Status status, const ReadResult& result) {
  StringValue string;
  if (!TakeString(context, status, result, &string)) return;
  string.found() ? ReplyValue(context, string.bytes(), result.holder()) : context.out.Null();
}

// SET with a condition, or with an answer or a deadline that comes from the old value.
class ConditionalSet final : public CommandMutation {
 public:
  ConditionalSet(const SetOptions& options, std::string_view value, uint64_t deadline_ms)
      : options_(options), value_(value), deadline_ms_(deadline_ms) {}

  Change Apply(const RecordView* current) override {
    Begin();
    found_ = current != nullptr;
    stored_ = false;
    if (options_.answer_previous && found_) {
      const char* const error = StringValue(current).type_error();
      if (error != nullptr) {
        return Refuse(error);
      }
      previous_.Keep(*current);
    }
    if ((options_.only_if_missing && found_) || (options_.only_if_present && !found_)) {
      return Change::Keep();
    }
    stored_ = true;
    const bool keep = options_.keep_deadline && found_;
    return Change::Write(StringRecord(value_, {}, keep ? current->deadline_ms : deadline_ms_));
  }

  [[nodiscard]] bool takes_trees() const override { return true; }
  [[nodiscard]] ValueRange wanted() const override {
    return options_.answer_previous ? kWholeValue : kNoValue;
  }
  // True if the command answers with the old value.
  [[nodiscard]] bool reads() const { return options_.answer_previous; }
  // True if the last Apply() found a value.
  [[nodiscard]] bool found() const { return found_; }
  [[nodiscard]] bool stored() const { return stored_; }
  [[nodiscard]] const KeptValue& previous() const { return previous_; }

 private:
  const SetOptions& options_;
  std::string_view value_;
  uint64_t deadline_ms_;
  KeptValue previous_;
  bool found_ = false;
  bool stored_ = false;
};

class GetAndDelete final : public StringMutation {
 public:
  [[nodiscard]] const KeptValue& previous() const { return previous_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    if (!current.found()) {
      return Change::Keep();
    }
    previous_.Keep(current.record());
    return Change::Delete();
  }

  KeptValue previous_;
};

// Runs a conditional SET and gives its outcome to `reply`, unless it failed.
template <typename Reply>
Task<void> SetConditionally(CommandContext& context, ConditionalSet& set, Reply reply) {
  const Key key = KeyAt(context, 1);
  const Status status = co_await context.kv.ReadModifyWrite(key, set);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  if (set.reads()) CountLookup(context, set.found());
  set.error() != nullptr ? context.out.Error(set.error()) : reply(context, set);
}

void ReplyPrevious(CommandContext& context, const ConditionalSet& set) {
  set.found() ? set.previous().Reply(context) : context.out.Null();
}

void ReplySetOutcome(CommandContext& context, const ConditionalSet& set) {
  set.stored() ? context.out.Ok() : context.out.Null();
}

void ReplySetNxOutcome(CommandContext& context, const ConditionalSet& set) {
  context.out.Integer(set.stored() ? 1 : 0);
}

// Reads what is behind the value. False: it has answered what is wrong.
bool ReadSet(CommandContext& context, SetOptions* options, uint64_t* deadline_ms) {
  ArgumentReader arguments(context.argv, 3);
  ReadSetOptions(arguments, options);
  if (arguments.ok()) {
    arguments.Fail(ReadDeadline(options->unit, options->expiry, context.kv.NowMs(),
                                "ERR invalid expire time in 'set' command", deadline_ms));
  }
  return !arguments.AnsweredError(context.out);
}

Task<void> SetWithOptions(CommandContext& context) {
  SetOptions options;
  uint64_t deadline_ms = 0;
  if (!ReadSet(context, &options, &deadline_ms)) {
    co_return;
  }
  const std::string_view value = context.argv[2];
  if (!options.is_blind()) {
    if (options.answer_previous) co_await AwaitTurn(context);
    if (context.session.abandoned) co_return;
    ConditionalSet set(options, value, deadline_ms);
    co_await SetConditionally(context, set,
                              options.answer_previous ? ReplyPrevious : ReplySetOutcome);
    co_return;
  }
  const Key key = KeyAt(context, 1);
  const Status status = co_await context.kv.Set(key, StringRecord(value, {}, deadline_ms));
  if (!AnsweredWriteFailure(context, key, status)) {
    context.out.Ok();
  }
}

}  // namespace

Task<void> GetCommand(CommandContext& context) {
  ReadResult result;
  Status status;
  if (context.turn == nullptr) {
    status = co_await context.kv.GetBehind(KeyAt(context, 1), &result);
  } else {
    status = co_await context.kv.GetPart(KeyAt(context, 1), kUnlessLarge, &result);
    if (IsToCome(result)) {
      co_await AwaitTurn(context);
      if (context.session.abandoned) co_return;
      status = co_await context.kv.Get(KeyAt(context, 1), &result);
    }
  }
  ReplyString(context, status, result);
}

bool GetFast(CommandContext& context) {
  ReadResult result;
  if (!context.kv.GetFast(KeyAt(context, 1), &result)) return false;
  ReplyString(context, Status::Ok(), result);
  return true;
}

Task<void> SetCommand(CommandContext& context) {
  if (context.argv.size() > 3) {
    co_await SetWithOptions(context);
    co_return;
  }
  const Key key = KeyAt(context, 1);
  Status status;
  if (context.begun) {
    status = co_await *std::exchange(context.begun, std::nullopt);
  } else {
    status = co_await context.kv.Set(key, StringRecord(context.argv[2]));
  }
  if (!AnsweredWriteFailure(context, key, status)) {
    context.out.Ok();
  }
}

bool SetFast(CommandContext& context) {
  if (context.argv.size() > 3) return false;
  MaybeTask<Status> set = context.kv.StartSet(KeyAt(context, 1), StringRecord(context.argv[2]));
  if (!set.await_ready() || !set.result().ok()) {
    context.begun = std::move(set);
    return false;
  }
  context.out.Ok();
  return true;
}

namespace {

// SETEX and PSETEX: SET with the deadline in front of the value.
Task<void> SetWithDeadline(CommandContext& context, ExpiryUnit unit, const char* invalid) {
  uint64_t deadline_ms = 0;
  const char* const error =
      ReadDeadline(unit, context.argv[2], context.kv.NowMs(), invalid, &deadline_ms);
  if (error != nullptr) {
    context.out.Error(error);
    co_return;
  }
  const Key key = KeyAt(context, 1);
  const Status status =
      co_await context.kv.Set(key, StringRecord(context.argv[3], {}, deadline_ms));
  if (!AnsweredWriteFailure(context, key, status)) {
    context.out.Ok();
  }
}

}  // namespace

Task<void> SetExCommand(CommandContext& context) {
  return SetWithDeadline(context, ExpiryUnit::kSeconds,
                         "ERR invalid expire time in 'setex' command");
}

Task<void> PSetExCommand(CommandContext& context) {
  return SetWithDeadline(context, ExpiryUnit::kMilliseconds,
                         "ERR invalid expire time in 'psetex' command");
}

Task<void> SetNxCommand(CommandContext& context) {
  const SetOptions options{.only_if_missing = true};
  ConditionalSet set(options, context.argv[2], 0);
  co_await SetConditionally(context, set, ReplySetNxOutcome);
}

Task<void> GetSetCommand(CommandContext& context) {
  co_await AwaitTurn(context);
  if (context.session.abandoned) co_return;
  const SetOptions options{.answer_previous = true};
  ConditionalSet set(options, context.argv[2], 0);
  co_await SetConditionally(context, set, ReplyPrevious);
}

Task<void> GetDelCommand(CommandContext& context) {
  co_await AwaitTurn(context);
  if (context.session.abandoned) co_return;
  const Key key = KeyAt(context, 1);
  GetAndDelete mutation;
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  CountLookup(context, mutation.found());
  if (mutation.error() != nullptr) {
    context.out.Error(mutation.error());
  } else {
    mutation.found() ? mutation.previous().Reply(context) : context.out.Null();
  }
}

namespace {

// A key of MGET.
struct Lookup {
  ReadResult result;
  Status status;
};

Task<void> LookUp(CommandContext& context, size_t index, Lookup* lookup) {
  const Key key = KeyAt(context, index);
  lookup->status = co_await context.kv.GetPart(key, kUnlessLarge, &lookup->result);
}

}  // namespace

Task<void> MGetCommand(CommandContext& context) {
  const uint64_t begin = context.out.buffer().position();
  context.out.Array(context.argv.size() - 1);
  std::vector<Lookup> batch(context.kv.keys_at_once());
  constexpr size_t kKeyBytes = 512;
  size_t since_yield = 0;
  size_t end = 1;
  for (size_t i = 1, first = 1; i < context.argv.size(); ++i) {
    if (i == end) {
      first = i;
      end = BatchEnd(context, i, 1);
      if (end > i + 1) {
        co_await RunBatch(context, i, end, 1, [&](size_t index, size_t place) {
          return LookUp(context, index, &batch[place]);
        });
      }
    }
    Lookup lookup = std::exchange(batch[i - first], {});
    if (end == first + 1 || IsToCome(lookup.result)) {
      PrefetchAhead(context, i, 1);
      lookup.status = co_await context.kv.Get(KeyAt(context, i), &lookup.result);
    }
    if (lookup.status.code() == StatusCode::kTooLarge) lookup.status = Status::Ok();
    if (!lookup.status.ok()) {
      // One error for the whole command, unless the socket has taken a part of the reply: then the
      // error stands for this key alone.
      const bool taken_back = context.out.buffer().RollBackTo(begin);
      ReplyStatus(context.out, lookup.status, StorageStep::kRead);
      if (taken_back) {
        co_return;
      }
      continue;
    }
    const ReadResult& result = lookup.result;
    CountLookup(context, result.found());
    if (result.found() && StringValue(&result.record()).is_string()) {
      ReplyValue(context, result.record().value, result.holder());
      since_yield += result.holder() == nullptr ? result.record().value.size() : 0;
    } else {
      context.out.Null();
    }
    if (MustAwaitTaken(context)) [[unlikely]] {
      lookup = {};
      co_await AwaitTaken(context);
      if (context.session.abandoned) co_return;
    }
    // A look at a key costs this besides, in bytes.
    since_yield += kKeyBytes;
    if (since_yield < kTurnBytes) [[likely]]
      continue;
    since_yield = 0;
    co_await context.kv.Yield();
  }
}

namespace {

struct SetOutcome {
  Status status;
};

// The memory that MSET set aside for argv[first] and the keys behind it.
struct PreparedFrom {
  size_t first = 1;
  PreparedSets sets;
  bool is_again = false;  // a batch is tried once more: what was set stays as it is
};

Task<void> SetOne(CommandContext& context, size_t index, PreparedFrom& prepared,
                  SetOutcome* outcome) {
  // Others may have written it since.
  if (prepared.is_again && outcome->status.ok()) co_return;
  const Key key = KeyAt(context, index);
  const NewRecord record = StringRecord(context.argv[index + 1]);
  if (prepared.sets.is_filled()) [[unlikely]] {
    outcome->status =
        co_await context.kv.SetPrepared(key, record, prepared.sets, (index - prepared.first) / 2);
  } else {
    outcome->status = co_await context.kv.Set(key, record);
  }
}

Task<Status> PrepareFrom(CommandContext& context, size_t first, bool may_use_reserve,
                         PreparedFrom* prepared) {
  std::vector<PendingSet> sets;
  for (size_t i = first; i < context.argv.size(); i += 2) {
    sets.push_back({KeyAt(context, i), StringRecord(context.argv[i + 1])});
  }
  prepared->first = first;
  co_return co_await context.kv.Prepare(sets, may_use_reserve, &prepared->sets);
}

// Behind the keys that are set together with argv[first]: large values are written one by one, and
// of a key that comes twice the last value stands.
size_t SetBatchEnd(const CommandContext& context, size_t first) {
  const auto argv = context.argv;
  const size_t most = BatchEnd(context, first, 2);
  size_t bytes = argv[first + 1].size();
  for (size_t end = first + 2; end < most; end += 2) {
    bytes += argv[end + 1].size();
    if (bytes > kTurnBytes) return end;
    for (size_t i = first; i < end; i += 2) {
      if (argv[i] == argv[end]) return end;
    }
  }
  return most;
}

}  // namespace

Task<void> MSetCommand(CommandContext& context) {
  const auto argv = context.argv;
  if (argv.size() % 2 == 0) {
    ReplyArityError(context);
    co_return;
  }
  for (size_t i = 1; i < argv.size(); i += 2) {
    // None is set then.
    if (argv[i].size() > kMaxKeyBytes) {
      ReplyWriteFailure(context.out, argv[i].size(), Status(StatusCode::kTooLarge, "key too long"),
                        StorageStep::kWrite);
      co_return;
    }
  }
  // All keys are set, or none for want of memory.
  PreparedFrom prepared;
  uint64_t bytes = 0;
  for (size_t i = 1; i < argv.size(); ++i) bytes += argv[i].size();
  if (argv.size() > 3 && context.kv.ShouldPrepare(bytes)) [[unlikely]] {
    const Status status = co_await PrepareFrom(context, 1, /*may_use_reserve=*/false, &prepared);
    if (AnsweredWriteFailure(context, KeyAt(context, 1), status)) {
      co_return;
    }
  }
  std::vector<SetOutcome> batch(context.kv.keys_at_once());
  for (size_t i = 1; i < argv.size();) {
    const size_t end = SetBatchEnd(context, i);
    co_await RunBatch(context, i, end, 2, [&](size_t index, size_t place) {
      return SetOne(context, index, prepared, &batch[place]);
    });
    const std::span<const SetOutcome> outcomes(batch.data(), (end - i) / 2);
    const SetOutcome* const failed = WorstOf(outcomes);
    if (failed != nullptr) {
      const auto is_set = [](const SetOutcome& outcome) { return outcome.status.ok(); };
      const bool some_done = i > 1 || std::ranges::any_of(outcomes, is_set);
      const bool is_full = failed->status.code() == StatusCode::kOutOfMemory;
      if (some_done && is_full && !prepared.sets.is_filled()) {
        const Status status = co_await PrepareFrom(context, i, /*may_use_reserve=*/true, &prepared);
        prepared.is_again = status.ok();
        if (status.ok()) continue;
      }
      const Key key = KeyAt(context, i + 2 * static_cast<size_t>(failed - outcomes.data()));
      (void)AnsweredWriteFailure(context, key, failed->status,
                                 some_done ? StorageStep::kLaterWrite : StorageStep::kWrite);
      co_return;
    }
    prepared.is_again = false;
    i = end;
  }
  context.out.Ok();
}

}  // namespace onetrip
