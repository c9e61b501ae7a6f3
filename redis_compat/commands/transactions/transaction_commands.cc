// MULTI, EXEC, DISCARD, WATCH, UNWATCH.
//
// A transaction whose commands and watched keys are all one key is one linearizable step: the
// commands run on a copy of the key, and one read-modify-write stores what they made of it if the
// key is still what they saw (store/staged_store.h). Any other transaction runs in order, each of
// its commands by itself: what other connections do may come between them. WATCH promises that
// nothing comes between, so EXEC refuses a transaction that watches a key and is about another one,
// too.
#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/store/staged_store.h"
#include "redis_compat/commands/transactions/handlers.h"
#include "redis_compat/dispatch/command_table.h"
#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/dispatch/transaction.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/protocol/reply_status.h"

namespace onetrip {

namespace {

constexpr std::string_view kSeveralWatchedError =
    "EXECABORT Transaction discarded because the keys that it watches and uses are more than one: "
    "WATCH works for transactions on a single key so far. Nothing was executed.";

// Every attempt but the last was in vain because another connection's write was not.
constexpr int kAttemptsMax = 1000;
// A transaction runs this number of commands before other connections have their turn.
constexpr int kCommandsAtOnce = 64;

Transaction& TransactionOf(Session& session) {
  if (session.transaction == nullptr) {
    session.transaction = std::make_unique<Transaction>();
  }
  return *session.transaction;
}

bool IsOpen(const Session& session) {
  return session.transaction != nullptr && session.transaction->open;
}

// The keys that a transaction is about.
struct Subject {
  std::optional<Key> key;  // the first one that it watches or names
  bool several = false;    // it is about other keys, too
  bool keyless = false;    // some of its commands are about no key

  void Add(const Key& other) {
    if (!key.has_value()) key = other;
    several |= key->database != other.database || key->bytes != other.bytes;
  }
};

// KEYS, DBSIZE, FLUSHALL and the like are about every key; MOVE and COPY name a second one that may
// be in another database; SORT reads keys that it does not name.
bool IsAboutSeveral(const CommandRow& row) {
  const bool unnamed = row.keys.first == 0 && (row.flags & (kWrite | kReadOnly)) != 0;
  return unnamed || !row.unnamed_keys.empty() || (row.flags & kOtherDatabase) != 0;
}

// Goes where a queued SELECT will lead.
void FollowSelect(const CommandContext& context, const QueuedCommand& queued, uint32_t* database) {
  if ((queued.row()->flags & kSelectsDatabase) == 0) return;
  const std::optional<int64_t> index = ParseInt64(queued.argv()[1]);
  const bool leads = index && *index >= 0 && *index < context.hooks.config().databases();
  if (leads) *database = static_cast<uint32_t>(*index);
}

Subject SubjectOf(const CommandContext& context, const Transaction& transaction) {
  Subject subject;
  for (const WatchedKey& watched : transaction.watched) {
    subject.Add({watched.database, watched.bytes});
  }
  uint32_t database = context.session.database;
  for (const QueuedCommand& queued : transaction.queue) {
    FollowSelect(context, queued, &database);
    subject.several |= IsAboutSeveral(*queued.row());
    subject.keyless |= !ForEachKey(*queued.row(), queued.argv(), [&](size_t index) {
      subject.Add({database, queued.argv()[index]});
    });
  }
  return subject;
}

// A queued command on its way. Stays where it was made: the context looks at the arguments.
class QueuedCall {
 public:
  QueuedCall(const CommandContext& exec, Kv& kv, ReplyWriter& out, const QueuedCommand& queued)
      : context_{exec.session, exec.hooks, kv, exec.stats, out, queued.argv()} {
    context_.command = queued.row();
    context_.dropped_from = exec.dropped_from;
  }
  QueuedCall(const QueuedCall&) = delete;
  QueuedCall& operator=(const QueuedCall&) = delete;

  // Where the replies go out while others are still to come.
  void SetFlow(ReplyFlow* flow) { context_.flow = flow; }
  Task<void> Run() { return RunInside(context_, &end_); }
  void Account() { AccountFor(context_, end_); }
  // Not null if replies go nowhere, which CLIENT REPLY may have changed.
  [[nodiscard]] OutputBuffer* dropped_from() const { return context_.dropped_from; }
  [[nodiscard]] bool must_await_taken() const { return MustAwaitTaken(context_); }
  Task<void> AwaitTaken() { return onetrip::AwaitTaken(context_); }

 private:
  CommandContext context_;
  CallEnd end_;
};

// Replies of calls on the key that stand together: those without keys answer between them.
struct Stretch {
  explicit Stretch(int protocol) : out(replies, protocol) {}

  OutputBuffer replies;
  ReplyWriter out;
};

// One run of the queue on the copy of the key. No other client hears of it unless it is stored.
struct Attempt {
  std::deque<Stretch> stretches;
  std::deque<QueuedCall> calls;
  bool stored = false;
};

bool NamesKeys(const QueuedCommand& queued) { return queued.row()->keys.first != 0; }

// Runs what is queued for the key on the copy that `staged` has loaded and stores the outcome.
Task<Status> TryOnOneKey(CommandContext& context, const Transaction& transaction, StagedKv& staged,
                         Attempt* attempt) {
  const int protocol = context.out.protocol();
  attempt->stretches.emplace_back(protocol).out.Array(transaction.queue.size());
  int since_yield = 0;
  for (const QueuedCommand& queued : transaction.queue) {
    if (!NamesKeys(queued)) {
      attempt->stretches.emplace_back(protocol);
      continue;
    }
    ReplyWriter& out = attempt->stretches.back().out;
    co_await attempt->calls.emplace_back(context, staged, out, queued).Run();
    staged.ForgetReplaced();
    // Nothing in it waits for anything.
    if (++since_yield < kCommandsAtOnce) continue;
    since_yield = 0;
    co_await context.kv.Yield();
  }
  co_return co_await staged.Store(&attempt->stored);
}

// Answers what the stored attempt has answered, and runs the commands without keys where they
// stand: they have effects that no failed attempt may have.
Task<void> AnswerStored(CommandContext& context, const Transaction& transaction, Attempt& attempt) {
  auto call = attempt.calls.begin();
  auto stretch = attempt.stretches.begin();
  context.out.buffer().AppendAll(stretch->replies);
  for (const QueuedCommand& queued : transaction.queue) {
    if (NamesKeys(queued)) {
      (call++)->Account();
      continue;
    }
    QueuedCall keyless(context, context.kv, context.out, queued);
    co_await keyless.Run();
    keyless.Account();
    context.dropped_from = keyless.dropped_from();
    context.out.buffer().AppendAll((++stretch)->replies);
  }
  context.errors_before = context.out.errors();
}

Task<void> ExecuteOnOneKey(CommandContext& context, const Transaction& transaction, Key key) {
  StagedKv staged(context.kv, key, context.hooks.large_requests());
  for (int i = 0; i < kAttemptsMax; ++i) {
    Status status = co_await staged.Load();
    if (AnsweredReadFailure(context, status)) {
      co_return;
    }
    for (const WatchedKey& watched : transaction.watched) {
      if (staged.loaded() != watched.seen) {
        context.out.NullArray();
        co_return;
      }
    }
    Attempt attempt;
    // Where a queued SELECT leads.
    const uint32_t selected = std::exchange(context.session.database, key.database);
    status = co_await TryOnOneKey(context, transaction, staged, &attempt);
    context.session.database = selected;
    if (AnsweredWriteFailure(context, key, status)) {
      co_return;
    }
    if (attempt.stored) {
      co_return co_await AnswerStored(context, transaction, attempt);
    }
  }
  ReplyStatus(context.out, Status(StatusCode::kUnavailable, "others keep changing the key"),
              StorageStep::kWrite);
}

// Answers and returns false unless every watched key is what it was.
Task<bool> WatchedAreUnchanged(CommandContext& context, const Transaction& transaction) {
  for (const WatchedKey& watched : transaction.watched) {
    ReadResult result;
    const Status status =
        co_await context.kv.GetPart({watched.database, watched.bytes}, kNoValue, &result);
    if (AnsweredReadFailure(context, status)) {
      co_return false;
    }
    if (VersionIn(result.found() ? &result.record() : nullptr) != watched.seen) {
      context.out.NullArray();
      co_return false;
    }
  }
  co_return true;
}

Task<void> ExecuteInOrder(CommandContext& context, const Transaction& transaction) {
  const bool unchanged = co_await WatchedAreUnchanged(context, transaction);
  if (!unchanged) {
    co_return;
  }
  context.out.Array(transaction.queue.size());
  int since_yield = 0;
  for (const QueuedCommand& queued : transaction.queue) {
    QueuedCall call(context, context.kv, context.out, queued);
    call.SetFlow(context.flow);
    co_await call.Run();
    call.Account();
    context.dropped_from = call.dropped_from();
    if (++since_yield == kCommandsAtOnce) {
      since_yield = 0;
      co_await context.kv.Yield();
    }
    if (call.must_await_taken()) co_await call.AwaitTaken();
  }
  // The errors among the replies are those of the commands, and counted there.
  context.errors_before = context.out.errors();
}

}  // namespace

void MultiCommand(CommandContext& context) {
  if (IsOpen(context.session)) {
    return context.out.Error("ERR MULTI calls can not be nested");
  }
  TransactionOf(context.session).open = true;
  context.out.Ok();
}

void DiscardCommand(CommandContext& context) {
  if (!IsOpen(context.session)) {
    return context.out.Error("ERR DISCARD without MULTI");
  }
  context.session.transaction.reset();
  context.out.Ok();
}

void UnwatchCommand(CommandContext& context) {
  if (context.session.transaction != nullptr) {
    context.session.transaction->watched.clear();
  }
  context.out.Ok();
}

Task<void> WatchCommand(CommandContext& context) {
  if (IsOpen(context.session)) {
    context.out.Error("ERR WATCH inside MULTI is not allowed");
    co_return;
  }
  std::vector<WatchedKey>& watched = TransactionOf(context.session).watched;
  // EXEC refuses several watched keys, whichever they are.
  for (size_t i = 1; i < context.argv.size() && watched.size() < 2; ++i) {
    const Key key = KeyAt(context, i);
    bool known = false;
    for (const WatchedKey& other : watched) {
      known |= other.database == key.database && other.bytes == key.bytes;
    }
    if (known) {
      continue;
    }
    ReadResult result;
    const Status status = co_await context.kv.GetPart(key, kNoValue, &result);
    if (AnsweredReadFailure(context, status)) {
      co_return;
    }
    watched.push_back({key.database, std::string(key.bytes),
                       VersionIn(result.found() ? &result.record() : nullptr)});
  }
  context.out.Ok();
}

Task<void> ExecCommand(CommandContext& context) {
  if (!IsOpen(context.session)) {
    context.out.Error("ERR EXEC without MULTI");
    co_return;
  }
  const Transaction& transaction = *context.session.transaction;
  const Subject subject = SubjectOf(context, transaction);
  const bool watches = !transaction.watched.empty();
  const bool on_one_key = subject.key.has_value() && !subject.several;
  if (transaction.refused) {
    context.out.Error("EXECABORT Transaction discarded because of previous errors.");
  } else if (watches && subject.several) {
    context.out.Error(kSeveralWatchedError);
  } else if (on_one_key && (watches || !subject.keyless)) {
    co_await ExecuteOnOneKey(context, transaction, *subject.key);
  } else {
    co_await ExecuteInOrder(context, transaction);
  }
  // Whatever has come of it.
  context.session.transaction.reset();
}

}  // namespace onetrip
