// BITFIELD and BITFIELD_RO: integers of any width within a string.
#include <algorithm>
#include <string>
#include <vector>

#include "redis_compat/commands/strings/bit_offset.h"
#include "redis_compat/commands/strings/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/values/bits.h"

namespace onetrip {
namespace {

struct FieldStep {
  enum class Kind : uint8_t { kGet, kSet, kIncrBy };
  Kind kind = Kind::kGet;
  BitField field;
  int64_t operand = 0;
  BitOverflow overflow = BitOverflow::kWrap;
};

// "u8", "i64".
BitField ReadFieldType(ArgumentReader& arguments, std::string_view text) {
  static constexpr char kTypeError[] =
      "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but "
      "i64 is.";
  BitField field;
  field.is_signed = text.starts_with('i');
  arguments.Require(field.is_signed || text.starts_with('u'), kTypeError);
  field.bits = static_cast<uint32_t>(
      arguments.ReadInteger(text.substr(std::min<size_t>(1, text.size())),
                            RangeWithError(1, field.is_signed ? 64 : 63, kTypeError)));
  return field;
}

BitOverflow ReadOverflow(ArgumentReader& arguments) {
  constexpr BitOverflow kKinds[] = {BitOverflow::kWrap, BitOverflow::kSaturate, BitOverflow::kFail};
  return kKinds[arguments.TakeOneOf({"WRAP", "SAT", "FAIL"},
                                    "ERR Invalid OVERFLOW type specified")];
}

bool Writes(const std::vector<FieldStep>& steps) {
  return std::ranges::any_of(
      steps, [](const FieldStep& step) { return step.kind != FieldStep::Kind::kGet; });
}

// Takes the word of a step, if one with all of its arguments comes next.
bool TakeKind(ArgumentReader& arguments, FieldStep::Kind* kind) {
  if (arguments.Word("GET", 2)) {
    *kind = FieldStep::Kind::kGet;
  } else if (arguments.Word("SET", 3)) {
    *kind = FieldStep::Kind::kSet;
  } else if (arguments.Word("INCRBY", 3)) {
    *kind = FieldStep::Kind::kIncrBy;
  } else {
    return false;
  }
  return true;
}

std::vector<FieldStep> ReadSteps(ArgumentReader& arguments, const ServerConfig& config) {
  std::vector<FieldStep> steps;
  BitOverflow overflow = BitOverflow::kWrap;
  while (arguments.HasMore()) {
    FieldStep step;
    if (arguments.Word("OVERFLOW", 1)) {
      overflow = ReadOverflow(arguments);
    } else if (TakeKind(arguments, &step.kind)) {
      step.field = ReadFieldType(arguments, arguments.Take());
      step.field.offset = ReadBitOffset(arguments, arguments.Take(), config, step.field.bits);
      if (step.kind != FieldStep::Kind::kGet) step.operand = arguments.TakeInteger();
      step.overflow = overflow;
      steps.push_back(step);
    } else {
      arguments.SyntaxError();
    }
  }
  return steps;
}

using FieldAnswers = std::vector<std::optional<int64_t>>;

// Takes one step on `bytes`, which grow as it needs; true if it changed anything.
bool TakeStep(const FieldStep& step, std::string* bytes, FieldAnswers* answers) {
  const int64_t old = ReadBitField(*bytes, step.field);
  if (step.kind == FieldStep::Kind::kGet) {
    answers->emplace_back(old);
    return false;
  }
  const bool sets = step.kind == FieldStep::Kind::kSet;
  const std::optional<int64_t> fresh =
      sets ? FitBitField(step.field, step.operand, step.overflow)
           : AddToBitField(step.field, old, step.operand, step.overflow);
  const size_t needed = (step.field.end() + 7) / 8;
  const bool grows = needed > bytes->size();
  if (grows) bytes->resize(needed, '\0');
  if (!fresh) {
    answers->emplace_back(std::nullopt);
    return grows;
  }
  WriteBitField(bytes, step.field, *fresh);
  answers->emplace_back(sets ? old : *fresh);
  return grows || *fresh != old;
}

// The bytes that steps touch, from the first to the last: all that has to be copied of a string.
struct Window {
  uint64_t begin = 0;
  uint64_t end = 0;
};

Window WindowOf(const std::vector<FieldStep>& steps) {
  Window window{UINT64_MAX, 0};
  for (const FieldStep& step : steps) {
    window.begin = std::min(window.begin, step.field.offset / 8);
    window.end = std::max(window.end, (step.field.end() + 7) / 8);
  }
  return steps.empty() ? Window() : window;
}

// Takes the steps on the bytes of the window; true if any changed anything.
bool TakeAll(std::vector<FieldStep> steps, const Window& window, std::string* bytes,
             FieldAnswers* answers) {
  bool writes = false;
  for (FieldStep& step : steps) {
    step.field.offset -= 8 * window.begin;
    writes |= TakeStep(step, bytes, answers);
  }
  return writes;
}

class TakeSteps final : public StringMutation {
 public:
  explicit TakeSteps(const std::vector<FieldStep>& steps) : steps_(steps) {}

  [[nodiscard]] const FieldAnswers& answers() const { return answers_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    answers_.clear();
    const std::string_view old = current.bytes();
    const Window window = WindowOf(steps_);
    const std::string_view head = old.substr(0, std::min<uint64_t>(window.begin, old.size()));
    bytes_ = old.substr(head.size(), window.end - window.begin);
    if (!TakeAll(steps_, window, &bytes_, &answers_)) {
      return Change::Keep();
    }
    NewRecord record = current.ReplacedBy(head, bytes_);
    record.gap_bytes = window.begin - head.size();
    record.rest = old.substr(std::min<uint64_t>(window.begin + bytes_.size(), old.size()));
    return Change::Write(record);
  }

  const std::vector<FieldStep>& steps_;
  std::string bytes_;
  FieldAnswers answers_;
};

void Reply(ReplyWriter& out, const FieldAnswers& answers) {
  out.Array(answers.size());
  for (const std::optional<int64_t>& answer : answers) {
    answer ? out.Integer(*answer) : out.Null();
  }
}

Task<void> RunReads(CommandContext& context, const std::vector<FieldStep>& steps) {
  ReadResult result;
  const Window window = WindowOf(steps);
  const Status status = co_await context.kv.GetPart(
      KeyAt(context, 1),
      {.first = static_cast<int64_t>(window.begin), .last = static_cast<int64_t>(window.end) - 1},
      &result);
  StringValue string;
  if (!TakeString(context, status, result, &string)) {
    co_return;
  }
  std::string bytes(string.bytes());
  FieldAnswers answers;
  (void)TakeAll(steps, window, &bytes, &answers);
  Reply(context.out, answers);
}

Task<void> RunBitField(CommandContext& context, bool read_only) {
  ArgumentReader arguments(context.argv, 2);
  const std::vector<FieldStep> steps = ReadSteps(arguments, context.hooks.config());
  const bool writes = Writes(steps);
  arguments.Require(!read_only || !writes, "ERR BITFIELD_RO only supports the GET subcommand");
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  if (!writes) {
    co_await RunReads(context, steps);
    co_return;
  }
  const Key key = KeyAt(context, 1);
  TakeSteps mutation(steps);
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  if (mutation.error() != nullptr) {
    context.out.Error(mutation.error());
  } else {
    Reply(context.out, mutation.answers());
  }
}

}  // namespace

Task<void> BitFieldCommand(CommandContext& context) { return RunBitField(context, false); }

Task<void> BitFieldRoCommand(CommandContext& context) { return RunBitField(context, true); }

}  // namespace onetrip
