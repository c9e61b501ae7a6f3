// BITFIELD and BITFIELD_RO: integers of any width within a string.
#include <algorithm>
#include <string>
#include <vector>

#include "redis_compat/commands/strings/bit_offset.h"
#include "redis_compat/commands/strings/handlers.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"
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
bool ReadFieldType(CommandContext& context, std::string_view text, BitField* field) {
  const bool sign_known = text.starts_with('i') || text.starts_with('u');
  const auto bits = sign_known ? ParseInt64(text.substr(1)) : std::nullopt;
  field->is_signed = text.starts_with('i');
  if (!bits || *bits < 1 || *bits > (field->is_signed ? 64 : 63)) {
    context.out.Error(
        "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but "
        "i64 is.");
    return false;
  }
  field->bits = static_cast<uint32_t>(*bits);
  return true;
}

bool ReadOverflow(CommandContext& context, std::string_view word, BitOverflow* overflow) {
  if (EqualsIgnoreCase(word, "WRAP")) {
    *overflow = BitOverflow::kWrap;
  } else if (EqualsIgnoreCase(word, "SAT")) {
    *overflow = BitOverflow::kSaturate;
  } else if (EqualsIgnoreCase(word, "FAIL")) {
    *overflow = BitOverflow::kFail;
  } else {
    context.out.Error("ERR Invalid OVERFLOW type specified");
    return false;
  }
  return true;
}

// Reads all steps. False: the error is answered.
bool ReadSteps(CommandContext& context, bool read_only, std::vector<FieldStep>* steps) {
  const auto argv = context.argv;
  BitOverflow overflow = BitOverflow::kWrap;
  for (size_t i = 2; i < argv.size();) {
    const size_t left = argv.size() - i - 1;
    FieldStep step;
    size_t arguments = 2;
    if (EqualsIgnoreCase(argv[i], "GET") && left >= 2) {
      step.kind = FieldStep::Kind::kGet;
    } else if (EqualsIgnoreCase(argv[i], "SET") && left >= 3) {
      step.kind = FieldStep::Kind::kSet;
      arguments = 3;
    } else if (EqualsIgnoreCase(argv[i], "INCRBY") && left >= 3) {
      step.kind = FieldStep::Kind::kIncrBy;
      arguments = 3;
    } else if (EqualsIgnoreCase(argv[i], "OVERFLOW") && left >= 1) {
      if (!ReadOverflow(context, argv[i + 1], &overflow)) return false;
      i += 2;
      continue;
    } else {
      context.out.Error(kSyntaxError);
      return false;
    }
    if (!ReadFieldType(context, argv[i + 1], &step.field) ||
        !ReadBitOffset(context, argv[i + 2], &step.field.offset, step.field.bits)) {
      return false;
    }
    if (step.kind != FieldStep::Kind::kGet) {
      const auto operand = ParseInt64(argv[i + 3]);
      if (!operand) {
        context.out.Error(kNotIntegerError);
        return false;
      }
      step.operand = *operand;
    }
    step.overflow = overflow;
    steps->push_back(step);
    i += 1 + arguments;
  }
  const bool writes = std::any_of(steps->begin(), steps->end(), [](const FieldStep& step) {
    return step.kind != FieldStep::Kind::kGet;
  });
  if (read_only && writes) {
    context.out.Error("ERR BITFIELD_RO only supports the GET subcommand");
    return false;
  }
  return true;
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

class TakeSteps final : public CommandMutation {
 public:
  explicit TakeSteps(const std::vector<FieldStep>& steps) : steps_(steps) {}

  Change Apply(const RecordView* current) override {
    Begin();
    answers_.clear();
    if (current != nullptr && !IsString(*current)) {
      return Refuse(kWrongTypeError);
    }
    const std::string_view old = current == nullptr ? std::string_view() : current->value;
    const Window window = WindowOf(steps_);
    const std::string_view head = old.substr(0, std::min<uint64_t>(window.begin, old.size()));
    bytes_ = old.substr(head.size(), window.end - window.begin);
    if (!TakeAll(steps_, window, &bytes_, &answers_)) {
      return Change::Keep();
    }
    NewRecord record = StringRecord(head, bytes_, current == nullptr ? 0 : current->deadline_ms);
    record.gap_bytes = window.begin - head.size();
    record.rest = old.substr(std::min<uint64_t>(window.begin + bytes_.size(), old.size()));
    return Change::Write(record);
  }

  [[nodiscard]] const FieldAnswers& answers() const { return answers_; }

 private:
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
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, result.found());
  if (result.found() && !IsString(result.record())) {
    context.out.Error(kWrongTypeError);
    co_return;
  }
  std::string bytes(result.found() ? result.record().value : std::string_view());
  FieldAnswers answers;
  (void)TakeAll(steps, window, &bytes, &answers);
  Reply(context.out, answers);
}

Task<void> RunBitField(CommandContext& context, bool read_only) {
  std::vector<FieldStep> steps;
  if (!ReadSteps(context, read_only, &steps)) {
    co_return;
  }
  const bool writes = std::any_of(steps.begin(), steps.end(), [](const FieldStep& step) {
    return step.kind != FieldStep::Kind::kGet;
  });
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
