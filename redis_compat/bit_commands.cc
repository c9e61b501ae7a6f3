// Bits of strings: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP.
#include <algorithm>
#include <array>
#include <string>

#include "redis_compat/ascii.h"
#include "redis_compat/bit_offset.h"
#include "redis_compat/bits.h"
#include "redis_compat/commands.h"
#include "redis_compat/key_access.h"
#include "redis_compat/numbers.h"

namespace onetrip {
namespace {

class SetOneBit final : public CommandMutation {
 public:
  SetOneBit(uint64_t bit, bool value) : bit_(bit), value_(value) {}

  Change Apply(const RecordView* current) override {
    Begin();
    if (current != nullptr && !IsString(*current)) {
      return Refuse(kWrongTypeError);
    }
    bytes_ = current == nullptr ? std::string_view() : current->value;
    bytes_.resize(std::max<size_t>(bytes_.size(), bit_ / 8 + 1), '\0');
    const BitField field{false, 1, bit_};
    old_ = ReadBitField(bytes_, field) != 0;
    WriteBitField(&bytes_, field, value_ ? 1 : 0);
    return Change::Write(StringRecord(bytes_, {}, current == nullptr ? 0 : current->deadline_ms));
  }

  // Before the last Apply().
  [[nodiscard]] bool old() const { return old_; }

 private:
  const uint64_t bit_;
  const bool value_;
  std::string bytes_;
  bool old_ = false;
};

// [begin, end) in bits. Empty ranges have begin == end.
struct BitRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

enum class BitUnit : uint8_t { kByte, kBit };

// Reads "BYTE" or "BIT".
bool ReadUnit(std::string_view word, BitUnit* unit) {
  if (EqualsIgnoreCase(word, "BIT")) {
    *unit = BitUnit::kBit;
  } else if (EqualsIgnoreCase(word, "BYTE")) {
    *unit = BitUnit::kByte;
  } else {
    return false;
  }
  return true;
}

// The part of a string from `start` to `end`, both included and counted from its end if negative.
BitRange Range(size_t size, int64_t start, int64_t end, BitUnit unit) {
  const auto total = static_cast<int64_t>(size) * (unit == BitUnit::kBit ? 8 : 1);
  const auto from_front = [total](int64_t index) {
    return std::max<int64_t>(index < 0 ? total + index : index, 0);
  };
  start = from_front(start);
  end = std::min(from_front(end), total - 1);
  if (start > end) {
    return {};
  }
  const uint64_t scale = unit == BitUnit::kBit ? 1 : 8;
  return {static_cast<uint64_t>(start) * scale, (static_cast<uint64_t>(end) + 1) * scale};
}

// The string at argv[1], or the answer to give instead of working on it.
bool AnsweredWrongType(CommandContext& context, const ReadResult& result) {
  if (!result.found() || IsString(result.record())) {
    return false;
  }
  context.out.Error(kWrongTypeError);
  return true;
}

// Answers BITCOUNT for a string that is there.
void CountIn(CommandContext& context, std::string_view value) {
  const auto argv = context.argv;
  BitRange range{0, 8 * uint64_t{value.size()}};
  if (argv.size() == 4 || argv.size() == 5) {
    const auto start = ParseInt64(argv[2]);
    const auto end = ParseInt64(argv[3]);
    if (!start || !end) {
      return context.out.Error(kNotIntegerError);
    }
    if (*start < 0 && *end < 0 && *start > *end) {
      return context.out.Integer(0);
    }
    BitUnit unit = BitUnit::kByte;
    if (argv.size() == 5 && !ReadUnit(argv[4], &unit)) {
      return context.out.Error(kSyntaxError);
    }
    range = Range(value.size(), *start, *end, unit);
  } else if (argv.size() != 2) {
    return context.out.Error(kSyntaxError);
  }
  context.out.Integer(static_cast<int64_t>(CountBits(value, range.begin, range.end)));
}

// Answers BITPOS for a string that is there.
void FindIn(CommandContext& context, std::string_view value, bool bit) {
  const auto argv = context.argv;
  BitRange range{0, 8 * uint64_t{value.size()}};
  if (argv.size() > 6) {
    return context.out.Error(kSyntaxError);
  }
  if (argv.size() > 3) {
    const auto start = ParseInt64(argv[3]);
    if (!start) {
      return context.out.Error(kNotIntegerError);
    }
    BitUnit unit = BitUnit::kByte;
    if (argv.size() == 6 && !ReadUnit(argv[5], &unit)) {
      return context.out.Error(kSyntaxError);
    }
    const auto end = argv.size() > 4 ? ParseInt64(argv[4]) : std::optional<int64_t>(-1);
    if (!end) {
      return context.out.Error(kNotIntegerError);
    }
    range = Range(value.size(), *start, *end, unit);
  }
  if (range.begin == range.end) {
    return context.out.Integer(-1);
  }
  const auto found = FindBit(value, bit, range.begin, range.end);
  if (found) {
    return context.out.Integer(static_cast<int64_t>(*found));
  }
  // Behind a string whose end nobody named there are zeros for ever.
  const bool open = argv.size() <= 4;
  context.out.Integer(!bit && open ? static_cast<int64_t>(range.end) : -1);
}

enum class BitOperation : uint8_t { kAnd, kOr, kXor, kNot };

bool ReadOperation(std::string_view word, BitOperation* operation) {
  constexpr std::array<std::string_view, 4> kNames = {"AND", "OR", "XOR", "NOT"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (EqualsIgnoreCase(word, kNames[i])) {
      *operation = static_cast<BitOperation>(i);
      return true;
    }
  }
  return false;
}

// Takes one more source into `bytes`; a shorter one counts as if zeros followed.
void Combine(BitOperation operation, std::string_view source, bool is_first, std::string* bytes) {
  if (is_first) {
    *bytes = source;
    if (operation == BitOperation::kNot) {
      for (char& byte : *bytes) byte = static_cast<char>(~byte);
    }
    return;
  }
  bytes->resize(std::max(bytes->size(), source.size()), '\0');
  for (size_t i = 0; i < bytes->size(); ++i) {
    const char other = i < source.size() ? source[i] : '\0';
    char& byte = (*bytes)[i];
    switch (operation) {
      case BitOperation::kAnd:
        byte = static_cast<char>(byte & other);
        break;
      case BitOperation::kOr:
        byte = static_cast<char>(byte | other);
        break;
      default:
        byte = static_cast<char>(byte ^ other);
    }
  }
}

}  // namespace

Task<void> SetBitCommand(CommandContext& context) {
  uint64_t bit = 0;
  if (!ReadBitOffset(context, context.argv[2], &bit)) {
    co_return;
  }
  const auto value = ParseInt64(context.argv[3]);
  if (!value || *value < 0 || *value > 1) {
    context.out.Error("ERR bit is not an integer or out of range");
    co_return;
  }
  const Key key = KeyAt(context, 1);
  SetOneBit mutation(bit, *value == 1);
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  mutation.error() != nullptr ? context.out.Error(mutation.error())
                              : context.out.Integer(mutation.old() ? 1 : 0);
}

Task<void> GetBitCommand(CommandContext& context) {
  uint64_t bit = 0;
  if (!ReadBitOffset(context, context.argv[2], &bit)) {
    co_return;
  }
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, result.found());
  if (AnsweredWrongType(context, result)) {
    co_return;
  }
  const bool set =
      result.found() && ReadBitField(result.record().value, BitField{false, 1, bit}) != 0;
  context.out.Integer(set ? 1 : 0);
}

Task<void> BitCountCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, result.found());
  if (!AnsweredWrongType(context, result)) {
    result.found() ? CountIn(context, result.record().value) : context.out.Integer(0);
  }
}

Task<void> BitPosCommand(CommandContext& context) {
  const auto bit = ParseInt64(context.argv[2]);
  if (!bit) {
    context.out.Error(kNotIntegerError);
    co_return;
  }
  if (*bit != 0 && *bit != 1) {
    context.out.Error("ERR The bit argument must be 1 or 0.");
    co_return;
  }
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  if (AnsweredReadFailure(context, status)) {
    co_return;
  }
  CountLookup(context, result.found());
  if (!AnsweredWrongType(context, result)) {
    result.found() ? FindIn(context, result.record().value, *bit == 1)
                   : context.out.Integer(*bit == 1 ? -1 : 0);
  }
}

// The sources are read one after the other, then the destination is written: each of these steps is
// atomic, all of them together are not.
Task<void> BitOpCommand(CommandContext& context) {
  const auto argv = context.argv;
  BitOperation operation{};
  if (!ReadOperation(argv[1], &operation)) {
    context.out.Error(kSyntaxError);
    co_return;
  }
  constexpr size_t kFirstSource = 3;
  if (operation == BitOperation::kNot && argv.size() != kFirstSource + 1) {
    context.out.Error("ERR BITOP NOT must be called with a single source key.");
    co_return;
  }
  std::string bytes;
  for (size_t i = kFirstSource; i < argv.size(); ++i) {
    PrefetchAhead(context, i, 1);
    ReadResult result;
    const Status status = co_await context.kv.Get(KeyAt(context, i), &result);
    if (AnsweredReadFailure(context, status) || AnsweredWrongType(context, result)) {
      co_return;
    }
    CountLookup(context, result.found());
    Combine(operation, result.found() ? result.record().value : std::string_view(),
            i == kFirstSource, &bytes);
  }
  const Key destination = KeyAt(context, 2);
  bool existed = false;
  const Status status = bytes.empty() ? co_await context.kv.Delete(destination, &existed)
                                      : co_await context.kv.Set(destination, StringRecord(bytes));
  if (!AnsweredWriteFailure(context, destination, status)) {
    context.out.Integer(static_cast<int64_t>(bytes.size()));
  }
}

}  // namespace onetrip
