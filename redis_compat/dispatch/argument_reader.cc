#include "redis_compat/dispatch/argument_reader.h"

#include <utility>

#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {

bool ArgumentReader::Word(std::string_view word, size_t values) {
  if (!HasMore() || rest_.size() <= values || !EqualsIgnoreCase(rest_.front(), word)) return false;
  rest_ = rest_.subspan(1);
  return true;
}

bool ArgumentReader::Flag(std::string_view word, bool* came) {
  if (!Word(word)) return false;
  *came = true;
  return true;
}

bool ArgumentReader::Value(std::string_view word, std::string_view* value) {
  if (!Word(word, 1)) return false;
  *value = Take();
  return true;
}

bool ArgumentReader::Value(std::string_view word, std::optional<std::string_view>* value) {
  if (!Word(word, 1)) return false;
  *value = Take();
  return true;
}

bool ArgumentReader::Integer(std::string_view word, int64_t* value, const IntegerRange& range) {
  if (!Word(word, 1)) return false;
  *value = TakeInteger(range);
  return true;
}

std::string_view ArgumentReader::Take() {
  Require(!rest_.empty(), kSyntaxError);
  if (!ok()) return {};
  const std::string_view next = rest_.front();
  rest_ = rest_.subspan(1);
  return next;
}

int64_t ArgumentReader::TakeInteger(const IntegerRange& range) {
  return ReadInteger(Take(), range);
}

size_t ArgumentReader::TakeOneOf(std::initializer_list<std::string_view> words, const char* error) {
  const std::string_view next = Take();
  size_t at = 0;
  for (const std::string_view word : words) {
    if (ok() && EqualsIgnoreCase(next, word)) return at;
    ++at;
  }
  Fail(error);
  return 0;
}

int64_t ArgumentReader::ReadInteger(std::string_view text, const IntegerRange& range) {
  if (!ok()) return 0;
  const auto number = ParseInt64(text);
  Require(number.has_value(), range.not_integer);
  Require(!number || (*number >= range.min && *number <= range.max), range.out_of_range);
  return ok() ? *number : 0;
}

void ArgumentReader::Fail(std::string error) {
  if (!ok()) return;
  made_ = std::move(error);
  error_ = made_;
}

bool ArgumentReader::AnsweredError(ReplyWriter& out) const {
  if (ok()) [[likely]] {
    return false;
  }
  out.Error(error_);
  return true;
}

}  // namespace onetrip
