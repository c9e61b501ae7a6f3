#include "redis_compat/protocol/inline_split.h"

namespace onetrip {
namespace {

// True for a byte that separates arguments; the C locale's isspace().
bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// True for a byte that ends an argument without quotes: vertical tab and form feed do not.
bool EndsWord(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

char Unescape(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'b':
      return '\b';
    case 'a':
      return '\a';
    default:
      return c;
  }
}

// A position in a line; reads past the end give NUL, which a line cannot contain.
class Cursor {
 public:
  explicit Cursor(std::string_view line) : line_(line) {}

  [[nodiscard]] char Peek(size_t ahead = 0) const {
    return at_ + ahead < line_.size() ? line_[at_ + ahead] : '\0';
  }
  [[nodiscard]] bool at_end() const { return at_ >= line_.size(); }
  void Skip(size_t count = 1) { at_ += count; }
  void SkipBlanks() {
    while (!at_end() && IsBlank(Peek())) Skip();
  }

 private:
  std::string_view line_;
  size_t at_ = 0;
};

// Behind the closing quote of an argument only a blank may follow.
bool CloseQuote(Cursor& cursor) {
  cursor.Skip();
  return cursor.at_end() || IsBlank(cursor.Peek());
}

// Both read up to and with the closing quote; false if it is missing or something follows it.
bool ReadDoubleQuoted(Cursor& cursor, std::string* out) {
  while (!cursor.at_end()) {
    const char c = cursor.Peek();
    if (c == '"') {
      return CloseQuote(cursor);
    }
    if (c != '\\' || cursor.Peek(1) == '\0') {
      out->push_back(c);
      cursor.Skip();
      continue;
    }
    const int high = HexDigit(cursor.Peek(2));
    const int low = HexDigit(cursor.Peek(3));
    if (cursor.Peek(1) == 'x' && high >= 0 && low >= 0) {
      out->push_back(static_cast<char>(high * 16 + low));
      cursor.Skip(4);
    } else {
      out->push_back(Unescape(cursor.Peek(1)));
      cursor.Skip(2);
    }
  }
  return false;
}

bool ReadSingleQuoted(Cursor& cursor, std::string* out) {
  while (!cursor.at_end()) {
    const char c = cursor.Peek();
    if (c == '\'') {
      return CloseQuote(cursor);
    }
    const bool escaped = c == '\\' && cursor.Peek(1) == '\'';
    out->push_back(escaped ? '\'' : c);
    cursor.Skip(escaped ? 2 : 1);
  }
  return false;
}

bool ReadArgument(Cursor& cursor, std::string* out) {
  while (!cursor.at_end() && !EndsWord(cursor.Peek())) {
    const char c = cursor.Peek();
    cursor.Skip();
    if (c == '"') {
      return ReadDoubleQuoted(cursor, out);
    }
    if (c == '\'') {
      return ReadSingleQuoted(cursor, out);
    }
    out->push_back(c);
  }
  return true;
}

void SplitPlain(std::string_view line, std::vector<std::string_view>* arguments) {
  size_t at = 0;
  while (true) {
    while (at < line.size() && IsBlank(line[at])) ++at;
    if (at == line.size()) {
      return;
    }
    const size_t begin = at;
    while (at < line.size() && !EndsWord(line[at])) ++at;
    arguments->push_back(line.substr(begin, at - begin));
  }
}

}  // namespace

bool SplitInline(std::string_view line, std::vector<std::string_view>* arguments,
                 std::string* storage) {
  line = line.substr(0, line.find('\0'));
  if (line.find_first_of("\"'") == std::string_view::npos) {
    SplitPlain(line, arguments);
    return true;
  }
  // Unquoted text is never longer than the line, so the views stay put while it grows.
  storage->clear();
  storage->reserve(line.size());
  Cursor cursor(line);
  for (cursor.SkipBlanks(); !cursor.at_end(); cursor.SkipBlanks()) {
    const size_t begin = storage->size();
    if (!ReadArgument(cursor, storage)) {
      return false;
    }
    arguments->push_back(std::string_view(storage->data() + begin, storage->size() - begin));
  }
  return true;
}

}  // namespace onetrip
