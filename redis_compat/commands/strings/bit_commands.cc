// Bits of strings: SETBIT, GETBIT, BITCOUNT, BITPOS, BITOP.
#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "client_core/base/large_memory.h"
#include "redis_compat/commands/strings/bit_offset.h"
#include "redis_compat/commands/strings/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/dispatch/key_batch.h"
#include "redis_compat/values/bits.h"

namespace onetrip {
namespace {

class SetOneBit final : public StringMutation {
 public:
  SetOneBit(uint64_t bit, bool value) : bit_(bit), value_(value) {}

  // Before the last Apply().
  [[nodiscard]] bool old() const { return old_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    const std::string_view old = current.bytes();
    const size_t at = bit_ / 8;
    byte_.assign(1, at < old.size() ? old[at] : '\0');
    const BitField field{false, 1, bit_ % 8};
    old_ = ReadBitField(byte_, field) != 0;
    // A client that watches the key is not to hear of a call that changes nothing.
    if (at < old.size() && old_ == value_) {
      return Change::Keep();
    }
    WriteBitField(&byte_, field, value_ ? 1 : 0);
    NewRecord record = current.ReplacedBy(old.substr(0, std::min(at, old.size())), byte_);
    record.gap_bytes = at - record.head.size();
    record.rest = old.substr(std::min(at + 1, old.size()));
    return Change::Write(record);
  }

  const uint64_t bit_;
  const bool value_;
  std::string byte_;  // the one with the bit
  bool old_ = false;
};

// [begin, end) in bits. Empty ranges have begin == end.
struct BitRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

enum class BitUnit : uint8_t { kByte, kBit };

BitUnit ReadUnit(ArgumentReader& arguments) {
  return arguments.TakeOneOf({"BYTE", "BIT"}) == 0 ? BitUnit::kByte : BitUnit::kBit;
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

// Answers BITCOUNT for a string that is there.
Task<void> CountIn(CommandContext& context, std::string_view value) {
  const auto argv = context.argv;
  BitRange range{0, 8 * uint64_t{value.size()}};
  if (argv.size() == 4 || argv.size() == 5) {
    ArgumentReader arguments(argv, 2);
    const int64_t start = arguments.TakeInteger();
    const int64_t end = arguments.TakeInteger();
    if (arguments.ok() && start < 0 && end < 0 && start > end) {
      context.out.Integer(0);
      co_return;
    }
    const BitUnit unit = arguments.HasMore() ? ReadUnit(arguments) : BitUnit::kByte;
    if (arguments.AnsweredError(context.out)) {
      co_return;
    }
    range = Range(value.size(), start, end, unit);
  } else if (argv.size() != 2) {
    context.out.Error(kSyntaxError);
    co_return;
  }
  uint64_t count = 0;
  for (uint64_t begin = range.begin; begin < range.end;) {
    const uint64_t end = std::min(range.end, begin + 8 * uint64_t{kTurnBytes});
    count += CountBits(value, begin, end);
    begin = end;
    if (begin < range.end) co_await context.kv.Yield();
  }
  context.out.Integer(static_cast<int64_t>(count));
}

// Answers BITPOS for a string that is there.
Task<void> FindIn(CommandContext& context, std::string_view value, bool bit) {
  const auto argv = context.argv;
  BitRange range{0, 8 * uint64_t{value.size()}};
  ArgumentReader arguments(argv, 3);
  arguments.Require(argv.size() <= 6, kSyntaxError);
  if (arguments.HasMore()) {
    const int64_t start = arguments.TakeInteger();
    const std::string_view end_text = arguments.HasMore() ? arguments.Take() : "-1";
    // Redis looks at the unit before it looks at the end.
    const BitUnit unit = arguments.HasMore() ? ReadUnit(arguments) : BitUnit::kByte;
    const int64_t end = arguments.ReadInteger(end_text);
    range = Range(value.size(), start, end, unit);
  }
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  if (range.begin == range.end) {
    context.out.Integer(-1);
    co_return;
  }
  for (uint64_t begin = range.begin; begin < range.end;) {
    const uint64_t end = std::min(range.end, begin + 8 * uint64_t{kTurnBytes});
    const auto found = FindBit(value, bit, begin, end);
    if (found) {
      context.out.Integer(static_cast<int64_t>(*found));
      co_return;
    }
    begin = end;
    if (begin < range.end) co_await context.kv.Yield();
  }
  // Zeros follow a string for ever if the client did not name an end.
  const bool open = argv.size() <= 4;
  context.out.Integer(!bit && open ? static_cast<int64_t>(range.end) : -1);
}

enum class BitOperation : uint8_t { kAnd, kOr, kXor, kNot };

// Makes out[i] of what is there and the source's byte. REQUIRES: all have the same size.
void Join(BitOperation operation, std::string_view source, std::span<char> out) {
  const auto each = [&](auto join) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(join(out[i], source[i]));
  };
  switch (operation) {
    case BitOperation::kAnd:
      return each([](char a, char b) { return a & b; });
    case BitOperation::kOr:
      return each([](char a, char b) { return a | b; });
    case BitOperation::kXor:
      return each([](char a, char b) { return a ^ b; });
    case BitOperation::kNot:
      return each([](char, char b) { return ~b; });
  }
}

// The result of BITOP over its sources so far.
class Combination {
 public:
  [[nodiscard]] std::string_view bytes() const {
    return {reinterpret_cast<const char*>(memory_.start()), size_};
  }

  // Takes one more source; a shorter one counts as if zeros followed. False: the host has no
  // memory.
  Task<bool> Add(Kv& kv, BitOperation operation, std::string_view source) {
    const size_t size = std::max(size_, source.size());
    const bool has_room = size <= size_ || co_await Grow(kv, size);
    if (!has_room) co_return false;
    // There is nothing yet that the first source could be joined with.
    const BitOperation join =
        is_first_ && operation != BitOperation::kNot ? BitOperation::kOr : operation;
    for (size_t begin = 0; begin < size; begin += kTurnBytes) {
      if (begin > 0) co_await kv.Yield();
      const std::span<char> out = all().subspan(begin, std::min<size_t>(kTurnBytes, size - begin));
      const std::string_view there = source.substr(std::min(begin, source.size()), out.size());
      Join(join, there, out.first(there.size()));
      if (join == BitOperation::kAnd) std::ranges::fill(out.subspan(there.size()), '\0');
    }
    is_first_ = false;
    co_return true;
  }

 private:
  [[nodiscard]] std::span<char> all() const {
    return {reinterpret_cast<char*>(memory_.start()), size_};
  }

  // To `size` bytes; the new ones are zeros.
  Task<bool> Grow(Kv& kv, size_t size) {
    LargeMemory memory = LargeMemory::TryMake(size);
    if (memory.start() == nullptr) co_return false;
    char* const to = reinterpret_cast<char*>(memory.start());
    for (size_t begin = 0; begin < size; begin += kTurnBytes) {
      if (begin > 0) co_await kv.Yield();
      const std::string_view old = bytes().substr(std::min(begin, size_), kTurnBytes);
      std::ranges::copy(old, to + begin);
      std::fill(to + begin + old.size(), to + std::min<size_t>(begin + kTurnBytes, size), '\0');
    }
    memory_ = std::move(memory);
    size_ = size;
    co_return true;
  }

  LargeMemory memory_;
  size_t size_ = 0;
  bool is_first_ = true;
};

}  // namespace

Task<void> SetBitCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const uint64_t bit = ReadBitOffset(arguments, arguments.Take(), context.hooks.config());
  const int64_t value =
      arguments.TakeInteger(RangeWithError(0, 1, "ERR bit is not an integer or out of range"));
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  const Key key = KeyAt(context, 1);
  SetOneBit mutation(bit, value == 1);
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  mutation.error() != nullptr ? context.out.Error(mutation.error())
                              : context.out.Integer(mutation.old() ? 1 : 0);
}

Task<void> GetBitCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const uint64_t bit = ReadBitOffset(arguments, arguments.Take(), context.hooks.config());
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  ReadResult result;
  const auto at = static_cast<int64_t>(bit / 8);
  const Status status =
      co_await context.kv.GetPart(KeyAt(context, 1), {.first = at, .last = at}, &result);
  StringValue string;
  if (TakeString(context, status, result, &string)) {
    const bool set = ReadBitField(string.bytes(), BitField{false, 1, bit % 8}) != 0;
    context.out.Integer(set ? 1 : 0);
  }
}

Task<void> BitCountCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  StringValue string;
  if (!TakeString(context, status, result, &string)) {
    co_return;
  }
  if (string.found()) {
    co_await CountIn(context, string.bytes());
  } else {
    context.out.Integer(0);
  }
}

Task<void> BitPosCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const int64_t bit =
      arguments.TakeInteger({0, 1, "ERR The bit argument must be 1 or 0.", kNotIntegerError});
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  ReadResult result;
  const Status status = co_await context.kv.Get(KeyAt(context, 1), &result);
  StringValue string;
  if (!TakeString(context, status, result, &string)) {
    co_return;
  }
  if (string.found()) {
    co_await FindIn(context, string.bytes(), bit == 1);
  } else {
    context.out.Integer(bit == 1 ? -1 : 0);
  }
}

// The sources are read one after the other, then the destination is written: each of these steps is
// atomic, all of them together are not.
Task<void> BitOpCommand(CommandContext& context) {
  const auto argv = context.argv;
  constexpr size_t kFirstSource = 3;
  ArgumentReader arguments(argv, 1);
  const auto operation =
      static_cast<BitOperation>(arguments.TakeOneOf({"AND", "OR", "XOR", "NOT"}));
  arguments.Require(operation != BitOperation::kNot || argv.size() == kFirstSource + 1,
                    "ERR BITOP NOT must be called with a single source key.");
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  Combination combination;
  MemoryBudget::Share share;
  for (size_t i = kFirstSource; i < argv.size(); ++i) {
    if (EndsTurn(i, i + 1)) co_await context.kv.Yield();
    PrefetchAhead(context, i, 1);
    ReadResult result;
    const Status status = co_await context.kv.Get(KeyAt(context, i), &result);
    StringValue string;
    if (!TakeString(context, status, result, &string)) {
      co_return;
    }
    const std::string_view source = string.bytes();
    if (source.size() > combination.bytes().size()) share = CountMemory(context, source.size());
    const bool is_added = co_await combination.Add(context.kv, operation, source);
    if (!is_added) {
      ReplyStatus(context.out, kNoHostMemory, StorageStep::kWrite);
      co_return;
    }
  }
  const std::string_view bytes = combination.bytes();
  const Key destination = KeyAt(context, 2);
  bool existed = false;
  Status status;
  if (bytes.empty()) {
    status = co_await context.kv.Delete(destination, &existed);
  } else {
    status = co_await context.kv.Set(destination, StringRecord(bytes));
  }
  if (!AnsweredWriteFailure(context, destination, status)) {
    context.out.Integer(static_cast<int64_t>(bytes.size()));
  }
}

}  // namespace onetrip
