// ArgumentReader: a command's arguments, read one after the other, with the first error kept.
//
// Once something was wrong every later read takes nothing and gives a default, so that a handler
// reads all that it takes and asks once:
//
//   ArgumentReader arguments(context.argv, 3);
//   while (arguments.HasMore()) {
//     const bool known = arguments.Flag("REPLACE", &replace) ||
//                        arguments.Integer("COUNT", &count, {.min = 1});
//     if (!known) arguments.SyntaxError();
//   }
//   if (arguments.AnsweredError(context.out)) co_return;
//
// The order of the reads is the order of the errors: read in the order in which Redis looks. One
// thread.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_ARGUMENT_READER_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_ARGUMENT_READER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "redis_compat/protocol/reply_status.h"
#include "redis_compat/protocol/resp_writer.h"

namespace onetrip {

// The integers that an argument may be, and the replies to others. Both are string literals.
struct IntegerRange {
  int64_t min = std::numeric_limits<int64_t>::min();
  int64_t max = std::numeric_limits<int64_t>::max();
  const char* out_of_range = kNotIntegerError;
  const char* not_integer = kNotIntegerError;
};

// The same reply to a number out of range and to an argument that is no number.
constexpr IntegerRange RangeWithError(int64_t min, int64_t max, const char* error) {
  return {min, max, error, error};
}

// A timeout of WAIT and CLIENT PAUSE.
inline constexpr IntegerRange kTimeoutMs{
    .min = 0,
    .out_of_range = "ERR timeout is negative",
    .not_integer = "ERR timeout is not an integer or out of range"};

class ArgumentReader {
 public:
  // Reads argv[first] and what is behind it. `argv` outlives it.
  explicit ArgumentReader(std::span<const std::string_view> argv, size_t first = 0)
      : rest_(argv.subspan(first)) {}
  ArgumentReader(const ArgumentReader&) = delete;
  ArgumentReader& operator=(const ArgumentReader&) = delete;

  // True while nothing was wrong.
  [[nodiscard]] bool ok() const { return error_.empty(); }
  // True while there is an argument to read and nothing was wrong.
  [[nodiscard]] bool HasMore() const { return ok() && !rest_.empty(); }

  // Arguments that were not taken.
  [[nodiscard]] size_t left() const { return rest_.size(); }

  // Takes `word`, in any case, if it comes next and at least `values` arguments follow it. Those
  // stay to be taken.
  bool Word(std::string_view word, size_t values = 0);
  // Takes `word` and remembers that it came.
  bool Flag(std::string_view word, bool* came);
  // Takes `word` and the argument behind it. False, and nothing is taken, if one of them is
  // missing.
  bool Value(std::string_view word, std::string_view* value);
  bool Value(std::string_view word, std::optional<std::string_view>* value);
  // The same with a value that is an integer. True after an error in it, too.
  bool Integer(std::string_view word, int64_t* value, const IntegerRange& range = {});

  // Takes the next argument; without one it is a syntax error and empty.
  std::string_view Take();
  // Takes the next argument, an integer; 0 after an error.
  int64_t TakeInteger(const IntegerRange& range = {});
  // Takes the next argument, which is one of `words` in any case: its position among them; 0 after
  // an error. `error` is a string literal.
  size_t TakeOneOf(std::initializer_list<std::string_view> words, const char* error = kSyntaxError);

  // Reads an argument that was taken, or stands elsewhere; 0 after an error.
  int64_t ReadInteger(std::string_view text, const IntegerRange& range = {});

  // Notes an error reply, a string literal, unless there is one already. Null: nothing was wrong.
  void Fail(const char* error) {
    if (ok() && error != nullptr) error_ = error;
  }
  // The same of a reply that was made for this call.
  void Fail(std::string error);
  void SyntaxError() { Fail(kSyntaxError); }
  // Notes the error if the condition does not hold.
  void Require(bool holds, const char* error) {
    if (!holds) Fail(error);
  }

  // The first error, as a complete reply; empty: none. As long-lived as the reader.
  [[nodiscard]] std::string_view error() const { return error_; }
  // Answers the first error and returns true; false if there is none.
  bool AnsweredError(ReplyWriter& out) const;

 private:
  std::span<const std::string_view> rest_;
  std::string_view error_;
  std::string made_;  // The text of an error that is no literal.
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_ARGUMENT_READER_H_
