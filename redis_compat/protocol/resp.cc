#include "redis_compat/protocol/resp.h"

#include <algorithm>
#include <cstring>

#include "client_core/base/check.h"
#include "redis_compat/protocol/inline_split.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

// Arguments whose bookkeeping is kept between commands; more is given back by Shrink().
constexpr size_t kKeptArguments = 64;

// Reads "<digits>\r?" in canonical form, the shape of nearly every length line. Returns the bytes
// it takes with its line end, or 0 when the line must be looked at properly.
size_t ReadShortLength(std::string_view line, int64_t* length) {
  constexpr size_t kDigitsMax = 9;
  int64_t value = 0;
  size_t digits = 0;
  while (digits < line.size() && digits < kDigitsMax) {
    const auto digit = static_cast<unsigned char>(line[digits] - '0');
    if (digit > 9) {
      break;
    }
    value = value * 10 + digit;
    ++digits;
  }
  if (digits == 0 || digits + 2 > line.size() || line[digits] != '\r') {
    return 0;
  }
  if (line[0] == '0' && digits > 1) {
    return 0;
  }
  *length = value;
  // The byte behind CR is not looked at: Redis takes it for LF as well.
  return digits + 2;
}

}  // namespace

RespResult RespParser::Next(std::string_view data, const RespLimits& limits) {
  consumed_ = 0;
  while (consumed_ < data.size()) {
    const std::string_view command = data.substr(consumed_);
    RespResult result = RespResult::kCommand;
    if (arguments_missing_ == 0 && command.front() != '*') {
      result = ParseInline(command);
    } else if (arguments_missing_ > 0 || !ParseSmallArray(command, limits)) {
      result = ParseArray(command, limits);
    }
    if (result != RespResult::kCommand) {
      return result;
    }
    consumed_ += position_;
    position_ = 0;
    if (!argv_.empty()) {
      return RespResult::kCommand;
    }
  }
  return Wait(1);
}

bool RespParser::ParseSmallArray(std::string_view data, const RespLimits& limits) {
  // Nine arguments, bulks of at most seven digits: beyond them the general way costs nothing extra.
  constexpr size_t kDigitsMax = 7;
  const char* at = data.data();
  const char* const end = at + data.size();
  if (data.size() < 4 || scanned_ != 0 || at[2] != '\r') {
    return false;
  }
  const size_t count = static_cast<unsigned char>(at[1] - '0');
  if (count < 1 || count > 9) {
    return false;
  }
  at += 4;
  const size_t bulk_max_bytes = static_cast<size_t>(
      limits.must_authenticate
          ? std::min(limits.bulk_max_bytes, RespLimits::kUnauthenticatedBulkMaxBytes)
          : limits.bulk_max_bytes);
  argv_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    // Room for the shortest header and an empty bulk.
    if (end - at < 6 || at[0] != '$') {
      return false;
    }
    size_t size = static_cast<unsigned char>(at[1] - '0');
    if (size > 9) {
      return false;
    }
    const char* const digits = at + 1;
    at += 2;
    while (*at != '\r') {
      const size_t digit = static_cast<unsigned char>(*at - '0');
      if (digit > 9 || size == 0 || static_cast<size_t>(at - digits) == kDigitsMax ||
          end - at < 4) {
        return false;
      }
      size = size * 10 + digit;
      ++at;
    }
    if (size > bulk_max_bytes || static_cast<size_t>(end - at) < size + 4) {
      return false;
    }
    argv_[i] = std::string_view(at + 2, size);
    at += size + 4;
  }
  position_ = static_cast<size_t>(at - data.data());
  return true;
}

// Null: the header is read.
std::optional<RespResult> RespParser::ReadArrayHeader(std::string_view data,
                                                      const RespLimits& limits) {
  int64_t count = 0;
  size_t taken = ReadShortLength(data.substr(1), &count);
  if (taken == 0) [[unlikely]] {
    size_t line_size = 0;
    switch (FindLineEnd(data, &line_size)) {
      case Line::kPartial:
        return Wait(1);
      case Line::kTooLong:
        return Fail("too big mbulk count string");
      case Line::kFound:
        break;
    }
    const auto parsed = ParseInt64(data.substr(1, line_size - 1));
    if (!parsed.has_value()) {
      return Fail("invalid multibulk length");
    }
    count = *parsed;
    taken = line_size + 1;
  }
  if (count > RespLimits::kArgumentsMax) {
    return Fail("invalid multibulk length");
  }
  if (limits.must_authenticate && count > RespLimits::kUnauthenticatedArgumentsMax) {
    return Fail("unauthenticated multibulk length");
  }
  position_ = taken + 1;
  scanned_ = 0;
  argv_.clear();
  arguments_missing_ = std::max<int64_t>(count, 0);
  pieces_.clear();
  return std::nullopt;
}

// The same of a bulk's header.
std::optional<RespResult> RespParser::ReadBulkHeader(std::string_view data,
                                                     const RespLimits& limits) {
  const std::string_view rest = data.substr(position_);
  size_t taken = 0;
  int64_t size = 0;
  if (!rest.empty() && rest.front() == '$') {
    taken = ReadShortLength(rest.substr(1), &size);
  }
  if (taken == 0) [[unlikely]] {
    size_t line_size = 0;
    switch (FindLineEnd(data, &line_size)) {
      case Line::kPartial:
        return Wait(1);
      case Line::kTooLong:
        return Fail("too big bulk count string");
      case Line::kFound:
        break;
    }
    if (rest.front() != '$') {
      return FailExpectedBulk(rest.front());
    }
    size = ParseInt64(rest.substr(1, line_size - 1)).value_or(-1);
    taken = line_size + 1;
  }
  if (size < 0 || size > limits.bulk_max_bytes) {
    return Fail("invalid bulk length");
  }
  if (limits.must_authenticate && size > RespLimits::kUnauthenticatedBulkMaxBytes) {
    return Fail("unauthenticated bulk length");
  }
  position_ += taken + 1;
  scanned_ = 0;
  bulk_size_ = size;
  return std::nullopt;
}

RespResult RespParser::ParseArray(std::string_view data, const RespLimits& limits) {
  if (arguments_missing_ == 0) {
    const std::optional<RespResult> ended = ReadArrayHeader(data, limits);
    if (ended) return *ended;
    if (arguments_missing_ == 0) return RespResult::kCommand;
  }
  while (arguments_missing_ > 0) {
    if (bulk_size_ < 0) {
      const std::optional<RespResult> ended = ReadBulkHeader(data, limits);
      if (ended) return *ended;
    }
    const auto size = static_cast<size_t>(bulk_size_);
    const size_t available = data.size() - position_;
    if (available < size + 2) {
      return Wait(size + 2 - available);
    }
    pieces_.push_back(Piece{position_, size});
    position_ += size + 2;
    bulk_size_ = -1;
    --arguments_missing_;
  }

  argv_.clear();
  for (const Piece& piece : pieces_) {
    argv_.emplace_back(data.data() + piece.offset, piece.size);
  }
  return RespResult::kCommand;
}

RespResult RespParser::ParseInline(std::string_view data) {
  const std::string_view window = data.substr(0, RespLimits::kLineMaxBytes + 1);
  const size_t end = window.find('\n', scanned_);
  if (end == std::string_view::npos) {
    scanned_ = window.size();
    return data.size() > RespLimits::kLineMaxBytes ? Fail("too big inline request") : Wait(1);
  }
  scanned_ = 0;
  position_ = end + 1;
  argv_.clear();
  const size_t line_size = end > 0 && data[end - 1] == '\r' ? end - 1 : end;
  if (!SplitInline(data.substr(0, line_size), &argv_, &unquoted_)) {
    return Fail("unbalanced quotes in request");
  }
  return RespResult::kCommand;
}

RespParser::Line RespParser::FindLineEnd(std::string_view data, size_t* line_size) {
  const std::string_view rest = data.substr(position_);
  const std::string_view window = rest.substr(0, RespLimits::kLineMaxBytes + 1);
  const size_t end = window.find('\r', scanned_);
  if (end == std::string_view::npos) {
    scanned_ = window.size();
    return rest.size() > RespLimits::kLineMaxBytes ? Line::kTooLong : Line::kPartial;
  }
  scanned_ = end;
  if (end + 1 >= rest.size()) {
    return Line::kPartial;
  }
  *line_size = end;
  return Line::kFound;
}

RespResult RespParser::Wait(size_t wanted_bytes) {
  wanted_bytes_ = wanted_bytes;
  return RespResult::kNeedMore;
}

RespResult RespParser::Fail(std::string_view what) {
  constexpr std::string_view kPrefix = "ERR Protocol error: ";
  CHECK(kPrefix.size() + what.size() <= sizeof(error_text_));
  std::memcpy(error_text_, kPrefix.data(), kPrefix.size());
  std::memcpy(error_text_ + kPrefix.size(), what.data(), what.size());
  error_text_size_ = static_cast<uint8_t>(kPrefix.size() + what.size());
  return RespResult::kError;
}

RespResult RespParser::FailExpectedBulk(char found) {
  constexpr std::string_view kExpected = "expected '$', got '";
  char text[kExpected.size() + 2];
  std::memcpy(text, kExpected.data(), kExpected.size());
  text[kExpected.size()] = found;
  text[kExpected.size() + 1] = '\'';
  // Redis prints the byte through C strings: a NUL ends the message.
  return Fail(std::string_view(text, found == '\0' ? kExpected.size() : sizeof(text)));
}

void RespParser::Shrink() {
  CHECK(!in_command());
  if (pieces_.capacity() > kKeptArguments) {
    pieces_ = {};
    argv_ = {};
  }
  unquoted_ = {};
}

}  // namespace onetrip
