// DUMP and RESTORE: values as bytes that redis-server reads and writes too.
#include <string>

#include "client_core/layout/record.h"
#include "redis_compat/ascii.h"
#include "redis_compat/commands.h"
#include "redis_compat/key_copy.h"
#include "redis_compat/numbers.h"
#include "redis_compat/rdb_string.h"

namespace onetrip {
namespace {

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
};

// IDLETIME and FREQ are checked; nothing here depends on a key's last use. Answers what is wrong
// and returns false.
bool ReadRestoreOptions(CommandContext& context, RestoreOptions* options) {
  const auto argv = context.argv;
  bool has_idle = false;
  bool has_frequency = false;
  for (size_t i = 4; i < argv.size(); ++i) {
    const bool has_value = i + 1 < argv.size();
    const bool idle = EqualsIgnoreCase(argv[i], "IDLETIME") && has_value && !has_frequency;
    const bool frequency = EqualsIgnoreCase(argv[i], "FREQ") && has_value && !has_idle;
    if (EqualsIgnoreCase(argv[i], "REPLACE")) {
      options->replace = true;
    } else if (EqualsIgnoreCase(argv[i], "ABSTTL")) {
      options->absolute = true;
    } else if (idle || frequency) {
      const auto number = ParseInt64(argv[++i]);
      if (!number) {
        context.out.Error(kNotIntegerError);
        return false;
      }
      if (idle && *number < 0) {
        context.out.Error("ERR Invalid IDLETIME value, must be >= 0");
        return false;
      }
      constexpr int64_t kFrequencyMax = 255;
      if (frequency && (*number < 0 || *number > kFrequencyMax)) {
        context.out.Error("ERR Invalid FREQ value, must be >= 0 and <= 255");
        return false;
      }
      (idle ? has_idle : has_frequency) = true;
    } else {
      context.out.Error(kSyntaxError);
      return false;
    }
  }
  return true;
}

constexpr char kBusyKeyError[] = "BUSYKEY Target key name already exists.";

// Whether RESTORE may go on to look at the payload; answers if not.
Task<bool> KeyIsFree(CommandContext& context, Key key) {
  ReadResult there;
  const Status status = co_await context.kv.GetPart(key, kNoValue, &there);
  if (AnsweredReadFailure(context, status)) co_return false;
  if (there.found()) context.out.Error(kBusyKeyError);
  co_return !there.found();
}

}  // namespace

Task<void> DumpCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, result.found());
  if (!result.found()) {
    context.out.Null();
  } else if (!IsString(result.record())) {
    context.out.Error(kWrongTypeError);
  } else {
    context.out.Bulk(DumpString(result.record().value));
  }
}

Task<void> RestoreCommand(CommandContext& context) {
  RestoreOptions options;
  if (!ReadRestoreOptions(context, &options)) {
    co_return;
  }
  const Key key = KeyAt(context, 1);
  if (!options.replace) {
    const bool is_free = co_await KeyIsFree(context, key);
    if (!is_free) co_return;
  }
  const auto ttl_ms = ParseInt64(context.argv[2]);
  if (!ttl_ms) {
    context.out.Error(kNotIntegerError);
    co_return;
  }
  if (*ttl_ms < 0) {
    context.out.Error("ERR Invalid TTL value, must be >= 0");
    co_return;
  }
  if (!IsSoundDump(context.argv[3])) {
    context.out.Error("ERR DUMP payload version or checksum are wrong");
    co_return;
  }
  RecordCopy record = RecordCopy::OfString({});
  if (!LoadString(context.argv[3], kMaxValueBytes, &record.value)) {
    context.out.Error("ERR Bad data format");
    co_return;
  }
  const uint64_t now_ms = context.kv.NowMs();
  if (*ttl_ms > 0) {
    record.deadline_ms = static_cast<uint64_t>(*ttl_ms) + (options.absolute ? 0 : now_ms);
  }
  Status status;
  if (record.deadline_ms != 0 && record.deadline_ms <= now_ms) {
    // What has passed already is not stored, and what it would replace goes.
    bool existed = false;
    if (options.replace) status = co_await context.kv.Delete(key, &existed);
    if (!AnsweredWriteFailure(context, key, status)) context.out.Ok();
    co_return;
  }
  StoreCopy store(record, options.replace);
  status = co_await context.kv.ReadModifyWrite(key, store);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  store.stored() ? context.out.Ok() : context.out.Error(kBusyKeyError);
}

}  // namespace onetrip
