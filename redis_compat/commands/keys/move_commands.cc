// Commands that bring a value to another key: RENAME, RENAMENX, MOVE, COPY.
//
// Each writes the target before it removes the source: whatever fails, no value is lost. That the
// source can be removed then, however full the pool is, is seen to before.
#include <optional>

#include "redis_compat/commands/keys/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/database_index.h"
#include "redis_compat/dispatch/key_copy.h"

namespace onetrip {
namespace {

constexpr char kNoSuchKeyError[] = "ERR no such key";
constexpr char kSameKeyError[] = "ERR source and destination objects are the same";

enum class MoveOutcome : uint8_t { kMoved, kNoSource, kTargetThere, kFailed };

// Limits how often a value that changes between the copy and the removal is copied.
constexpr int kMoveTries = 100;

// Its removal from then on needs no memory, unless others write it again and again.
Task<Status> MakeRemovable(Kv& kv, Key key, const RecordCopy& copy) {
  if (!copy.is_register) co_return Status::Ok();
  HoldAsRecord hold;
  co_return co_await kv.ReadModifyWrite(key, hold);
}

// kFailed: it has answered.
Task<MoveOutcome> Move(CommandContext& context, Key from, Key to, bool replace) {
  Kv& kv = context.kv;
  RecordCopy source;
  Status status = co_await ReadCopy(kv, from, &source);
  if (AnsweredReadFailure(context, status)) co_return MoveOutcome::kFailed;
  if (!source.found) co_return MoveOutcome::kNoSource;
  const bool same_key = from.database == to.database && from.bytes == to.bytes;
  if (same_key) co_return replace ? MoveOutcome::kMoved : MoveOutcome::kTargetThere;
  std::optional<uint64_t> stored;  // by the last try: ours to replace
  for (int tries = 0; tries < kMoveTries; ++tries) {
    StoreCopy store(source, replace, stored, /*moves=*/true);
    status = co_await MakeRemovable(kv, from, source);
    if (status.ok()) status = co_await kv.ReadModifyWrite(to, store);
    const StorageStep step = tries > 0 ? StorageStep::kLaterWrite : StorageStep::kWrite;
    if (AnsweredWriteFailure(context, to, status, step)) co_return MoveOutcome::kFailed;
    // On a later try others have written to both since: as if they had after the move.
    if (!store.stored()) {
      co_return tries > 0 ? MoveOutcome::kMoved : MoveOutcome::kTargetThere;
    }
    stored = store.version();
    RemoveIfSame remove(source.version);
    status = co_await kv.ReadModifyWrite(from, remove);
    if (AnsweredWriteFailure(context, from, status, StorageStep::kLaterWrite)) {
      co_return MoveOutcome::kFailed;
    }
    if (!remove.changed()) co_return MoveOutcome::kMoved;
    status = co_await ReadCopy(kv, from, &source);
    if (AnsweredWriteFailure(context, from, status, StorageStep::kLaterWrite)) {
      co_return MoveOutcome::kFailed;
    }
    // Other clients have written and removed the key since: as if they had done so after the move.
    if (!source.found) co_return MoveOutcome::kMoved;
  }
  ReplyStatus(context.out, Status(StatusCode::kUnavailable, "others keep changing the key"),
              StorageStep::kLaterWrite);
  co_return MoveOutcome::kFailed;
}

struct CopyOptions {
  uint32_t database = 0;
  bool replace = false;
};

void ReadCopyOptions(ArgumentReader& arguments, int64_t databases, CopyOptions* options) {
  while (arguments.HasMore()) {
    std::string_view index;
    if (arguments.Value("DB", &index)) {
      options->database = ReadDatabaseIndex(arguments, index, databases);
    } else if (!arguments.Flag("REPLACE", &options->replace)) {
      arguments.SyntaxError();
    }
  }
}

}  // namespace

Task<void> RenameCommand(CommandContext& context) {
  const MoveOutcome outcome = co_await Move(context, KeyAt(context, 1), KeyAt(context, 2), true);
  if (outcome == MoveOutcome::kNoSource) {
    context.out.Error(kNoSuchKeyError);
  } else if (outcome == MoveOutcome::kMoved) {
    context.out.Ok();
  }
}

Task<void> RenameNxCommand(CommandContext& context) {
  const MoveOutcome outcome = co_await Move(context, KeyAt(context, 1), KeyAt(context, 2), false);
  if (outcome == MoveOutcome::kNoSource) {
    context.out.Error(kNoSuchKeyError);
  } else if (outcome != MoveOutcome::kFailed) {
    context.out.Integer(outcome == MoveOutcome::kMoved ? 1 : 0);
  }
}

Task<void> MoveCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const int64_t databases = context.hooks.config().databases();
  const uint32_t database = ReadDatabaseIndex(arguments, arguments.Take(), databases);
  arguments.Require(database != context.session.database, kSameKeyError);
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  const Key to{database, context.argv[1]};
  const MoveOutcome outcome = co_await Move(context, KeyAt(context, 1), to, false);
  if (outcome != MoveOutcome::kFailed) {
    context.out.Integer(outcome == MoveOutcome::kMoved ? 1 : 0);
  }
}

Task<void> CopyCommand(CommandContext& context) {
  CopyOptions options;
  options.database = context.session.database;
  ArgumentReader arguments(context.argv, 3);
  ReadCopyOptions(arguments, context.hooks.config().databases(), &options);
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  const Key from = KeyAt(context, 1);
  const Key to{options.database, context.argv[2]};
  if (from.database == to.database && from.bytes == to.bytes) {
    context.out.Error(kSameKeyError);
    co_return;
  }
  RecordCopy source;
  Status status = co_await ReadCopy(context.kv, from, &source);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, source.found);
  if (!source.found) {
    context.out.Integer(0);
    co_return;
  }
  StoreCopy store(source, options.replace);
  status = co_await context.kv.ReadModifyWrite(to, store);
  if (!AnsweredWriteFailure(context, to, status)) {
    context.out.Integer(store.stored() ? 1 : 0);
  }
}

}  // namespace onetrip
