// DUMP and RESTORE: values as bytes that redis-server reads and writes too.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "client_core/base/large_memory.h"
#include "client_core/layout/record.h"
#include "redis_compat/commands/keys/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/collection_access.h"
#include "redis_compat/dispatch/key_copy.h"
#include "redis_compat/values/rdb_collection.h"
#include "redis_compat/values/rdb_stream.h"
#include "redis_compat/values/rdb_string.h"

namespace onetrip {
namespace {

struct RestoreOptions {
  bool replace = false;
  bool absolute = false;
};

// IDLETIME and FREQ are checked; nothing here depends on a key's last use.
void ReadRestoreOptions(ArgumentReader& arguments, RestoreOptions* options) {
  constexpr IntegerRange kIdleTime{.min = 0,
                                   .out_of_range = "ERR Invalid IDLETIME value, must be >= 0"};
  constexpr IntegerRange kFrequency{
      .min = 0, .max = 255, .out_of_range = "ERR Invalid FREQ value, must be >= 0 and <= 255"};
  constexpr int64_t kNotGiven = -1;
  int64_t idle_time = kNotGiven;
  int64_t frequency = kNotGiven;
  while (arguments.HasMore()) {
    const bool known =
        arguments.Flag("REPLACE", &options->replace) ||
        arguments.Flag("ABSTTL", &options->absolute) ||
        (frequency == kNotGiven && arguments.Integer("IDLETIME", &idle_time, kIdleTime)) ||
        (idle_time == kNotGiven && arguments.Integer("FREQ", &frequency, kFrequency));
    if (!known) arguments.SyntaxError();
  }
}

constexpr char kBusyKeyError[] = "BUSYKEY Target key name already exists.";

// CRC-64 of `bytes` behind others.
Task<uint64_t> Crc64ByTurns(Kv& kv, std::string_view bytes, uint64_t before) {
  uint64_t crc = before;
  for (size_t from = 0; from < bytes.size(); from += kTurnBytes) {
    if (from > 0) co_await kv.Yield();
    crc = Crc64(bytes.substr(from, kTurnBytes), crc);
  }
  co_return crc;
}

Task<bool> IsSoundDump(Kv& kv, std::string_view payload) {
  DumpChecksum checksum;
  if (!LoadDumpChecksum(payload, &checksum)) co_return false;
  const uint64_t crc = co_await Crc64ByTurns(kv, payload.substr(0, checksum.checked_bytes), 0);
  co_return crc == checksum.crc;
}

constexpr Status kNoValueInIt(StatusCode::kInvalidArgument, "there is no value in it");

// The value that RESTORE stores: bytes of the payload, or memory of its own.
struct RestoredValue {
  ValueType type = ValueType::kString;
  std::string made;  // a collection, or the text of an integer
  LargeMemory memory;
  MemoryBudget::Share share;  // counts either
  std::string_view bytes;
};

// REQUIRES: IsSoundDump(payload). kInvalidArgument: there is no value in it.
Task<Status> RestoreString(CommandContext& context, std::string_view payload,
                           RestoredValue* restored) {
  DumpedString dumped;
  if (!LoadString(payload, kMaxValueBytes, &dumped)) co_return kNoValueInIt;
  restored->made = std::move(dumped.integer);
  restored->bytes = dumped.form == DumpedString::Form::kInteger ? restored->made : dumped.bytes;
  if (dumped.form != DumpedString::Form::kCompressed) co_return Status::Ok();
  restored->memory = LargeMemory::TryMake(dumped.value_bytes);
  if (restored->memory.start() == nullptr) co_return kNoHostMemory;
  restored->share = CountMemory(context, dumped.value_bytes);
  const std::span<char> to(reinterpret_cast<char*>(restored->memory.start()), dumped.value_bytes);
  restored->bytes = {to.data(), to.size()};
  Decompressor decompressor(dumped.bytes, to);
  while (decompressor.Advance(kTurnBytes)) {
    if (decompressor.is_done()) co_return Status::Ok();
    co_await context.kv.Yield();
  }
  co_return kNoValueInIt;
}

// The same of a collection or stream; kTooLarge: it is one that cannot be stored.
template <typename Loader>
Task<Status> RestoreBy(CommandContext& context, Loader& loader, RestoredValue* restored) {
  using State = CollectionLoader::State;
  State state = loader.Advance(kTurnBytes);
  for (uint64_t counted = 0; state == State::kMore; state = loader.Advance(kTurnBytes)) {
    if (loader.memory_bytes() > counted) {
      counted = loader.memory_bytes();
      restored->share = {};
      restored->share = CountMemory(context, counted);
    }
    co_await context.kv.Yield();
  }
  if (state == State::kTooLarge) co_return Status(StatusCode::kTooLarge, "the collection");
  if (state == State::kNoMemory) co_return kNoHostMemory;
  if (state == State::kDamaged) co_return kNoValueInIt;
  restored->type = loader.type();
  restored->made = loader.TakeValue();
  restored->share = {};
  restored->share = CountMemory(context, restored->made.size());
  restored->bytes = restored->made;
  co_return Status::Ok();
}

Task<Status> RestoreCollection(CommandContext& context, std::string_view payload,
                               RestoredValue* restored) {
  const ServerConfig& config = context.hooks.config();
  CollectionLoader loader(
      payload, {config.hash_limits(), config.sorted_set_limits(), config.integer_set_members()},
      kMaxValueBytes);
  co_return co_await RestoreBy(context, loader, restored);
}

Task<Status> RestoreStream(CommandContext& context, std::string_view payload,
                           RestoredValue* restored) {
  StreamLoader loader(payload, kMaxValueBytes);
  co_return co_await RestoreBy(context, loader, restored);
}

// False: it has answered that there is no value in the payload, or none that can be stored.
Task<bool> RestoreValue(CommandContext& context, std::string_view payload,
                        RestoredValue* restored) {
  const bool is_sound = co_await IsSoundDump(context.kv, payload);
  if (!is_sound) {
    context.out.Error("ERR DUMP payload version or checksum are wrong");
    co_return false;
  }
  Status status;
  if (IsStringDump(payload)) {
    status = co_await RestoreString(context, payload, restored);
  } else if (IsStreamDump(payload)) {
    status = co_await RestoreStream(context, payload, restored);
  } else {
    status = co_await RestoreCollection(context, payload, restored);
  }
  if (status.code() == StatusCode::kInvalidArgument) {
    context.out.Error("ERR Bad data format");
  } else if (status.code() == StatusCode::kTooLarge) {
    context.out.Error(kCollectionTooLargeError);
  } else {
    co_return !AnsweredWriteFailure(context, KeyAt(context, 1), status);
  }
  co_return false;
}

// True if RESTORE may go on to look at the payload; answers the client if not.
Task<bool> KeyIsFree(CommandContext& context, Key key) {
  ReadResult there;
  const Status status = co_await context.kv.GetPart(key, kNoValue, &there);
  if (AnsweredReadFailure(context, status)) co_return false;
  if (there.found()) context.out.Error(kBusyKeyError);
  co_return !there.found();
}

// Answers with the payload of a string.
Task<void> DumpString(CommandContext& context, const ReadResult& result) {
  const DumpParts parts = BeginDump(result.record().value);
  uint64_t crc = Crc64(parts.head);
  crc = co_await Crc64ByTurns(context.kv, parts.plain, crc);
  ReplyWithin(context, {parts.head, parts.plain, DumpFooter(crc)}, result.holder());
}

// A payload in memory of its own, which a dumper fills.
class MadePayload {
 public:
  // False: it has answered that the host has no memory for it.
  bool Begin(CommandContext& context, size_t bytes_max) {
    payload_ = std::make_shared<LargeValue>();
    payload_->memory = LargeMemory::TryMake(bytes_max);
    bytes_max_ = bytes_max;
    if (payload_->memory.start() == nullptr) {
      ReplyStatus(context.out, kNoHostMemory, StorageStep::kRead);
      return false;
    }
    payload_->share = CountMemory(context, bytes_max);
    return true;
  }
  [[nodiscard]] std::span<char> bytes() const {
    return {reinterpret_cast<char*>(payload_->memory.start()), bytes_max_};
  }
  // Answers with the first `made` bytes, and their footer.
  Task<void> Reply(CommandContext& context, size_t made) {
    char* const start = bytes().data();
    const uint64_t crc = co_await Crc64ByTurns(context.kv, {start, made}, 0);
    const std::string footer = DumpFooter(crc);
    std::copy(footer.begin(), footer.end(), start + made);
    const bool is_large = bytes_max_ > kRecordValueBytesMax;
    ReplyValue(context, {start, made + footer.size()}, is_large ? payload_ : nullptr);
  }

 private:
  std::shared_ptr<LargeValue> payload_;
  size_t bytes_max_ = 0;
};

// The same of a collection.
Task<void> DumpCollection(CommandContext& context, const RecordView& record) {
  MadePayload payload;
  if (!payload.Begin(context, CollectionDumper::BytesMax(record.value))) co_return;
  CollectionDumper dumper(static_cast<ValueType>(record.type), record.value, payload.bytes());
  while (dumper.Advance(kTurnBytes)) co_await context.kv.Yield();
  co_await payload.Reply(context, dumper.made());
}

Task<void> DumpStream(CommandContext& context, const RecordView& record) {
  StreamValue stream;
  if (!stream.Load(record.value)) co_return context.out.Error(kDamagedStreamError);
  StreamDumper dumper(stream);
  MadePayload payload;
  if (!payload.Begin(context, dumper.BytesMax())) co_return;
  dumper.Begin(payload.bytes());
  while (dumper.Advance(kTurnBytes)) co_await context.kv.Yield();
  if (dumper.is_damaged()) co_return context.out.Error(kDamagedStreamError);
  co_await payload.Reply(context, dumper.made());
}

}  // namespace

Task<void> DumpCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  if (AnsweredReadFailure(context, status)) co_return;
  CountLookup(context, result.found());
  if (!result.found()) {
    context.out.Null();
  } else if (IsOfType(&result.record(), ValueType::kString)) {
    co_await DumpString(context, result);
  } else if (IsCollectionType(result.record().type)) {
    co_await DumpCollection(context, result.record());
  } else if (IsOfType(&result.record(), ValueType::kStream)) {
    co_await DumpStream(context, result.record());
  } else {
    context.out.Error(kWrongTypeError);  // by an agent that has more types
  }
}

Task<void> RestoreCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 4);
  RestoreOptions options;
  ReadRestoreOptions(arguments, &options);
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  const Key key = KeyAt(context, 1);
  if (!options.replace) {
    const bool is_free = co_await KeyIsFree(context, key);
    if (!is_free) co_return;
  }
  const int64_t ttl_ms = arguments.ReadInteger(
      context.argv[2], {.min = 0, .out_of_range = "ERR Invalid TTL value, must be >= 0"});
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  RestoredValue restored;
  const bool is_value = co_await RestoreValue(context, context.argv[3], &restored);
  if (!is_value) co_return;
  RecordCopy record = RecordCopy::OfString(restored.bytes);
  record.type = static_cast<uint8_t>(restored.type);
  const uint64_t now_ms = context.kv.NowMs();
  if (ttl_ms > 0) {
    record.deadline_ms = static_cast<uint64_t>(ttl_ms) + (options.absolute ? 0 : now_ms);
  }
  // Redis's clock has 63 bits: what does not fit is long ago.
  const bool overflows = record.deadline_ms > static_cast<uint64_t>(INT64_MAX);
  if (overflows || (record.deadline_ms != 0 && record.deadline_ms <= now_ms)) {
    // RESTORE does not store a value whose deadline has passed, and removes the value it replaces.
    bool existed = false;
    Status status;
    if (options.replace) status = co_await context.kv.Delete(key, &existed);
    if (!AnsweredWriteFailure(context, key, status)) context.out.Ok();
    co_return;
  }
  StoreCopy store(record, options.replace);
  const Status status = co_await context.kv.ReadModifyWrite(key, store);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  store.stored() ? context.out.Ok() : context.out.Error(kBusyKeyError);
}

}  // namespace onetrip
