#include "redis_compat/protocol/resp_writer.h"

#include <algorithm>

#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

// Copies `text` to `out` with line ends turned to blanks: an error is one line by definition.
char* CopyOneLine(std::string_view text, char* out) {
  return std::transform(text.begin(), text.end(), out,
                        [](char c) { return c == '\r' || c == '\n' ? ' ' : c; });
}

char* EndLine(char* p) {
  p[0] = '\r';
  p[1] = '\n';
  return p + 2;
}

}  // namespace

char* ReplyWriter::WriteHeaderSlow(char* p, uint64_t count) {
  return EndLine(FormatUint64(count, p));
}

void ReplyWriter::Header(char type, uint64_t count) {
  char* const start = buffer_->Reserve(kHeaderMax);
  buffer_->Commit(static_cast<size_t>(WriteHeader(start, type, count) - start));
}

void ReplyWriter::Simple(std::string_view text) {
  char* const start = buffer_->Reserve(text.size() + 3);
  *start = '+';
  std::memcpy(start + 1, text.data(), text.size());
  EndLine(start + 1 + text.size());
  buffer_->Commit(text.size() + 3);
}

void ReplyWriter::Error(std::string_view message) {
  char* const start = buffer_->Reserve(message.size() + 3);
  *start = '-';
  EndLine(CopyOneLine(message, start + 1));
  buffer_->Commit(message.size() + 3);

  ++errors_;
  // The word that clients dispatch on; a message without one counts as a plain error.
  const size_t blank = message.substr(0, sizeof(error_word_)).find(' ');
  const std::string_view word = blank == std::string_view::npos ? "ERR" : message.substr(0, blank);
  std::memcpy(error_word_, word.data(), word.size());
  error_word_size_ = static_cast<uint8_t>(word.size());
}

void ReplyWriter::Integer(int64_t value) {
  char* const start = buffer_->Reserve(kHeaderMax);
  *start = ':';
  char* const end = EndLine(FormatInt64(value, start + 1));
  buffer_->Commit(static_cast<size_t>(end - start));
}

void ReplyWriter::BulkInteger(int64_t value) {
  char text[kInt64TextMax];
  char* const end = FormatInt64(value, text);
  Bulk(std::string_view(text, static_cast<size_t>(end - text)));
}

void ReplyWriter::Bool(bool value) {
  if (resp3_) {
    Raw(value ? "#t\r\n" : "#f\r\n");
  } else {
    Raw(value ? ":1\r\n" : ":0\r\n");
  }
}

void ReplyWriter::Double(double value) {
  char text[kDoubleTextMax];
  const std::string_view written(text, FormatDouble(value, text));
  if (!resp3_) {
    Bulk(written);
    return;
  }
  Raw(",");
  Raw(written);
  Raw("\r\n");
}

void ReplyWriter::BigNumber(std::string_view digits) {
  if (!resp3_) {
    Bulk(digits);
    return;
  }
  Raw("(");
  Raw(digits);
  Raw("\r\n");
}

void ReplyWriter::Verbatim(std::string_view text, std::string_view format) {
  if (!resp3_) {
    Bulk(text);
    return;
  }
  Header('=', text.size() + format.size() + 1);
  Raw(format);
  Raw(":");
  Raw(text);
  Raw("\r\n");
}

}  // namespace onetrip
