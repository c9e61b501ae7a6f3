// PFADD, PFCOUNT, PFMERGE, PFDEBUG: how many different elements a key was given, within a percent.
#include <memory>
#include <span>
#include <string>

#include "client_core/base/check.h"
#include "redis_compat/commands/hyperloglog/handlers.h"
#include "redis_compat/dispatch/key_copy.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/values/hyperloglog.h"

namespace onetrip {
namespace {

constexpr char kNotHllError[] = "WRONGTYPE Key is not a valid HyperLogLog string value.";
constexpr char kNoSuchHllError[] = "ERR The specified key does not exist";
constexpr char kDamagedError[] = "INVALIDOBJ Corrupted HLL object detected";

// Null where the key holds a HyperLogLog or nothing, else the reply.
const char* ErrorOf(const StringValue& string) {
  return !string.found() || IsHll(string.bytes()) ? nullptr : kNotHllError;
}

class AddElements final : public StringMutation {
 public:
  explicit AddElements(std::span<const std::string_view> elements) : elements_(elements) {}

  [[nodiscard]] bool changed() const { return changed_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    const char* const error = ErrorOf(current);
    if (error != nullptr) return Refuse(error);
    value_ = current.found() ? std::string(current.bytes()) : NewHll();
    changed_ = !current.found();
    for (const std::string_view element : elements_) {
      const HllChange change = AddToHll(element, &value_);
      if (change == HllChange::kDamaged) return Refuse(kDamagedError);
      changed_ |= change == HllChange::kChanged;
    }
    if (!changed_) return Change::Keep();
    ForgetHllCount(&value_);
    return Change::Write(current.ReplacedBy(value_));
  }

  std::span<const std::string_view> elements_;
  std::string value_;
  bool changed_ = false;
};

// Counts, and lets the value remember it.
class CountElements final : public StringMutation {
 public:
  // True if there is a count to answer, even if it could not be stored.
  [[nodiscard]] bool counted() const { return counted_; }
  [[nodiscard]] uint64_t count() const { return count_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    count_ = 0;
    const char* const error = ErrorOf(current);
    if (error != nullptr) return Refuse(error);
    if (!current.found() || HllHasCount(current.bytes(), &count_)) return Change::Keep();
    HllRegisters registers{};
    if (!MergeHll(current.bytes(), &registers)) return Refuse(kDamagedError);
    count_ = CountHll(registers);
    counted_ = true;
    value_ = current.bytes();
    RememberHllCount(count_, &value_);
    return Change::Write(current.ReplacedBy(value_));
  }

  std::string value_;
  bool counted_ = false;
  uint64_t count_ = 0;
};

constexpr size_t kHllsPerTurn = 16;

// The registers that PFMERGE and PFCOUNT gather from several keys.
struct Union {
  HllRegisters registers{};
  bool any_dense = false;
};

// Adds the keys in argv[first, end). False: it has answered.
Task<bool> Gather(CommandContext& context, size_t first, size_t end, Union* all) {
  for (size_t i = first; i < end; ++i) {
    // Each of them costs as much as many others.
    if (i > first && i % kHllsPerTurn == 0) co_await context.kv.Yield();
    ReadResult result;
    const Status status = co_await context.kv.Get(KeyAt(context, i), &result);
    StringValue string;
    if (!TakeString(context, status, result, &string)) co_return false;
    if (!string.found()) continue;
    const char* error = ErrorOf(string);
    if (error == nullptr) {
      all->any_dense |= IsDenseHll(string.bytes());
      if (!MergeHll(string.bytes(), &all->registers)) error = kDamagedError;
    }
    if (error != nullptr) {
      context.out.Error(error);
      co_return false;
    }
  }
  co_return true;
}

class StoreUnion final : public StringMutation {
 public:
  explicit StoreUnion(const Union& sources) : sources_(sources) {}

 private:
  Change ApplyTo(const StringValue& current) override {
    const char* const error = ErrorOf(current);
    if (error != nullptr) return Refuse(error);
    value_ = current.found() ? std::string(current.bytes()) : NewHll();
    HllRegisters registers = sources_.registers;
    if (!MergeHll(value_, &registers)) return Refuse(kDamagedError);
    if (sources_.any_dense && !MakeHllDense(&value_)) return Refuse(kDamagedError);
    for (uint32_t i = 0; i < kHllRegisters; ++i) {
      if (registers[i] == 0) continue;
      if (RaiseHllRegister(i, registers[i], &value_) == HllChange::kDamaged) {
        return Refuse(kDamagedError);
      }
    }
    ForgetHllCount(&value_);
    return Change::Write(current.ReplacedBy(value_));
  }

  const Union& sources_;
  std::string value_;
};

class MakeDense final : public StringMutation {
 public:
  [[nodiscard]] bool converted() const { return converted_; }
  [[nodiscard]] const std::string& value() const { return value_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    converted_ = false;
    if (!current.found()) return Refuse(kNoSuchHllError);
    const char* const error = ErrorOf(current);
    if (error != nullptr) return Refuse(error);
    value_ = current.bytes();
    if (IsDenseHll(value_)) return Change::Keep();
    if (!MakeHllDense(&value_)) return Refuse(kDamagedError);
    converted_ = true;
    return Change::Write(current.ReplacedBy(value_));
  }

  std::string value_;
  bool converted_ = false;
};

// The two subcommands of PFDEBUG that convert first.
Task<void> ShowDense(CommandContext& context, bool registers) {
  const Key key = KeyAt(context, 2);
  MakeDense mutation;
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  if (mutation.error() != nullptr) {
    context.out.Error(mutation.error());
  } else if (!registers) {
    context.out.Integer(mutation.converted() ? 1 : 0);
  } else {
    HllRegisters values{};
    CHECK(MergeHll(mutation.value(), &values));
    context.out.Array(kHllRegisters);
    for (const uint8_t value : values) context.out.Integer(value);
  }
}

// Those that look, and what no subcommand is told, which is asked for the key first.
Task<void> ShowStored(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 2), &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  const StringValue string(result.found() ? &result.record() : nullptr);
  const char* error = string.found() ? string.type_error() : kNoSuchHllError;
  if (error == nullptr) error = ErrorOf(string);
  if (error != nullptr) {
    context.out.Error(error);
    co_return;
  }
  const std::string_view name = context.argv[1];
  const std::string_view value = string.bytes();
  const bool dense = IsDenseHll(value);
  if (EqualsIgnoreCase(name, "ENCODING")) {
    context.out.Simple(dense ? "dense" : "sparse");
  } else if (!EqualsIgnoreCase(name, "DECODE")) {
    context.out.Error("ERR Unknown PFDEBUG subcommand '" + std::string(UntilNul(name)) + "'");
  } else if (dense) {
    context.out.Error("ERR HLL encoding is not sparse");
  } else {
    context.out.Bulk(DescribeHllRuns(value));
  }
}

}  // namespace

Task<void> PfAddCommand(CommandContext& context) {
  const Key key = KeyAt(context, 1);
  AddElements mutation(context.argv.subspan(2));
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  mutation.error() != nullptr ? context.out.Error(mutation.error())
                              : context.out.Integer(mutation.changed() ? 1 : 0);
}

Task<void> PfCountCommand(CommandContext& context) {
  if (context.argv.size() > 2) {
    auto all = std::make_unique<Union>();
    const bool gathered = co_await Gather(context, 1, context.argv.size(), all.get());
    if (gathered) context.out.Integer(static_cast<int64_t>(CountHll(all->registers)));
    co_return;
  }
  const Key key = KeyAt(context, 1);
  CountElements mutation;
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  // A count that could not be stored is still one.
  if (!status.ok() && !mutation.counted() && AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, mutation.found());
  mutation.error() != nullptr ? context.out.Error(mutation.error())
                              : context.out.Integer(static_cast<int64_t>(mutation.count()));
}

Task<void> PfMergeCommand(CommandContext& context) {
  // An error in the target is answered first; its registers count when it is written.
  auto target = std::make_unique<Union>();
  auto sources = std::make_unique<Union>();
  const bool gathered = co_await Gather(context, 1, 2, target.get()) &&
                        co_await Gather(context, 2, context.argv.size(), sources.get());
  if (!gathered) {
    co_return;
  }
  const Key key = KeyAt(context, 1);
  StoreUnion mutation(*sources);
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  mutation.error() != nullptr ? context.out.Error(mutation.error()) : context.out.Ok();
}

Task<void> PfDebugCommand(CommandContext& context) {
  const std::string_view name = context.argv[1];
  if (EqualsIgnoreCase(name, "GETREG")) return ShowDense(context, true);
  if (EqualsIgnoreCase(name, "TODENSE")) return ShowDense(context, false);
  return ShowStored(context);
}

}  // namespace onetrip
