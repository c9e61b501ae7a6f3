// Parts of strings: STRLEN, GETRANGE, SETRANGE, APPEND.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "redis_compat/commands/strings/handlers.h"
#include "redis_compat/dispatch/argument_reader.h"
#include "redis_compat/dispatch/key_access.h"

namespace onetrip {
namespace {

class AppendBytes final : public StringMutation {
 public:
  AppendBytes(std::string_view bytes, int64_t limit_bytes)
      : bytes_(bytes), limit_bytes_(limit_bytes) {}
  [[nodiscard]] std::optional<uint64_t> growth() const override { return bytes_.size(); }

  // The size of the string after the last Apply().
  [[nodiscard]] size_t size() const { return size_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    size_ = current.bytes().size() + bytes_.size();
    if (current.found() && static_cast<int64_t>(size_) > limit_bytes_) {
      return Refuse(kTooLongError);
    }
    return Change::Write(current.ReplacedBy(current.bytes(), bytes_));
  }

  std::string_view bytes_;
  int64_t limit_bytes_;
  size_t size_ = 0;
};

class OverwriteRange final : public StringMutation {
 public:
  // REQUIRES: offset >= 0.
  OverwriteRange(int64_t offset, std::string_view bytes, int64_t limit_bytes)
      : offset_(offset), bytes_(bytes), limit_bytes_(limit_bytes) {}

  [[nodiscard]] size_t size() const { return size_; }

 private:
  Change ApplyTo(const StringValue& current) override {
    const std::string_view old = current.bytes();
    size_ = old.size();
    if (bytes_.empty()) {
      return Change::Keep();
    }
    int64_t end = 0;
    if (__builtin_add_overflow(offset_, static_cast<int64_t>(bytes_.size()), &end) ||
        end > limit_bytes_) {
      return Refuse(kTooLongError);
    }
    const auto offset = static_cast<size_t>(offset_);
    NewRecord record = current.ReplacedBy(old.substr(0, std::min(offset, old.size())), bytes_);
    record.gap_bytes = offset - record.head.size();
    record.rest = old.substr(std::min(static_cast<size_t>(end), old.size()));
    size_ = record.bytes();
    return Change::Write(record);
  }

  int64_t offset_;
  std::string_view bytes_;
  int64_t limit_bytes_;
  size_t size_ = 0;
};

}  // namespace

Task<void> StrLenCommand(CommandContext& context) {
  ReadResult result;
  const Status status = co_await context.kv.GetPart(KeyAt(context, 1), kNoValue, &result);
  StringValue string;
  if (TakeString(context, status, result, &string)) {
    context.out.Integer(static_cast<int64_t>(string.size()));
  }
}

Task<void> GetRangeCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const int64_t start = arguments.TakeInteger();
  const int64_t end = arguments.TakeInteger();
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  ReadResult result;
  const Status status =
      co_await context.kv.GetPart(KeyAt(context, 1), {.first = start, .last = end}, &result);
  StringValue string;
  if (TakeString(context, status, result, &string)) {
    ReplyValue(context, string.bytes(), result.holder());
  }
}

Task<void> SetRangeCommand(CommandContext& context) {
  ArgumentReader arguments(context.argv, 2);
  const int64_t offset =
      arguments.TakeInteger({.min = 0, .out_of_range = "ERR offset is out of range"});
  if (arguments.AnsweredError(context.out)) {
    co_return;
  }
  const Key key = KeyAt(context, 1);
  OverwriteRange mutation(offset, context.argv[3], context.hooks.config().bulk_max_bytes());
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  mutation.error() != nullptr ? context.out.Error(mutation.error())
                              : context.out.Integer(static_cast<int64_t>(mutation.size()));
}

Task<void> AppendCommand(CommandContext& context) {
  const Key key = KeyAt(context, 1);
  AppendBytes mutation(context.argv[2], context.hooks.config().bulk_max_bytes());
  const Status status = co_await context.kv.ReadModifyWrite(key, mutation);
  if (AnsweredWriteFailure(context, key, status)) {
    co_return;
  }
  mutation.error() != nullptr ? context.out.Error(mutation.error())
                              : context.out.Integer(static_cast<int64_t>(mutation.size()));
}

}  // namespace onetrip
