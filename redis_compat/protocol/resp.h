// RespParser: bytes of a client become commands.
//
// Pure and incremental: it owns no input. Arguments are views into the caller's buffer, and the
// result does not depend on how the bytes were cut into chunks. A partial command is continued
// where it stopped, never scanned again. Lengths are checked before anything is allocated for
// them. Limits and error texts are Redis 7.0's. Not thread-safe; one per connection.
#ifndef ONETRIP_REDIS_COMPAT_PROTOCOL_RESP_H_
#define ONETRIP_REDIS_COMPAT_PROTOCOL_RESP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace onetrip {

// Limits on what a client may send. Passed with every call since AUTH and CONFIG SET change them.
struct RespLimits {
  // Bytes of an inline line, or of a length line, without an end in sight.
  static constexpr size_t kLineMaxBytes = size_t{64} << 10;
  static constexpr int64_t kArgumentsMax = 2147483647;
  // Until the client has given the password:
  static constexpr int64_t kUnauthenticatedArgumentsMax = 10;
  static constexpr int64_t kUnauthenticatedBulkMaxBytes = 16384;

  int64_t bulk_max_bytes = int64_t{512} << 20;  // proto-max-bulk-len.
  bool must_authenticate = false;  // A password is set and this client has not given it.
};

enum class RespResult : uint8_t {
  kCommand,   // argv() holds a command of at least one argument.
  kNeedMore,  // Everything that could be understood was; wanted_bytes() says how much is missing.
  kError,     // error() says what; the connection is beyond repair: answer it and close.
};

class RespParser {
 public:
  // Looks at `data`: all bytes received and not yet consumed, beginning where the last call's
  // consumed() ended. The bytes of a command that was incomplete must still be there, in front and
  // unchanged, but may have moved to another address. Empty lines and empty arrays are skipped.
  // After kError the parser must not be used again.
  RespResult Next(std::string_view data, const RespLimits& limits);

  // Bytes at the front of the last call's `data` that are done with. After kCommand the command's
  // own bytes are among them, though argv() still points into them: keep them until it has run.
  [[nodiscard]] size_t consumed() const { return consumed_; }

  // After kCommand: the arguments. Views into the last call's `data` (for an inline command with
  // quotes: into the parser). Valid until the next call or until the bytes of `data` go.
  [[nodiscard]] std::span<const std::string_view> argv() const { return argv_; }

  // After kNeedMore: at least this many more bytes are needed before the next call can get any
  // further. Exact inside a bulk, so that the reader can size its buffer and its read; 1 elsewhere.
  [[nodiscard]] size_t wanted_bytes() const { return wanted_bytes_; }

  // After kError: the reply's text, with "ERR Protocol error: " in front and without CRLF.
  [[nodiscard]] std::string_view error() const {
    return std::string_view(error_text_, error_text_size_);
  }

  // True if a command has been begun and not finished (CLIENT LIST, timeouts).
  [[nodiscard]] bool in_command() const { return arguments_missing_ > 0; }

  // Gives back memory that a large command left behind. REQUIRES: !in_command(), argv() unused.
  void Shrink();

 private:
  struct Piece {
    size_t offset;  // From the start of the command.
    size_t size;
  };
  enum class Line : uint8_t { kFound, kPartial, kTooLong };

  // The common case in one pass: a short command that has arrived whole. Returns false for any
  // other, and leaves it to ParseArray().
  bool ParseSmallArray(std::string_view data, const RespLimits& limits);
  RespResult ParseArray(std::string_view data, const RespLimits& limits);
  std::optional<RespResult> ReadArrayHeader(std::string_view data, const RespLimits& limits);
  std::optional<RespResult> ReadBulkHeader(std::string_view data, const RespLimits& limits);
  RespResult ParseInline(std::string_view data);
  // Finds the CR of the length line that starts at position_; one byte must follow it. Gives the
  // bytes in front of the CR.
  Line FindLineEnd(std::string_view data, size_t* line_size);
  RespResult Wait(size_t wanted_bytes);
  RespResult Fail(std::string_view what);
  RespResult FailExpectedBulk(char found);

  // All positions count from the start of the current command within `data`.
  size_t position_ = 0;            // Everything before it is understood.
  size_t scanned_ = 0;             // From position_: bytes known to hold no line end.
  int64_t arguments_missing_ = 0;  // In the array being read; 0: between commands.
  int64_t bulk_size_ = -1;         // Bytes of the argument being read; -1: its header comes next.
  std::vector<Piece> pieces_;
  std::vector<std::string_view> argv_;
  std::string unquoted_;  // Arguments of an inline command with quotes, one after the other.

  size_t consumed_ = 0;
  size_t wanted_bytes_ = 1;
  uint8_t error_text_size_ = 0;
  char error_text_[72] = {};
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PROTOCOL_RESP_H_
