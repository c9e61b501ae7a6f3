#include "client_core/base/config_file.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace onetrip {
namespace {

constexpr std::string_view kBareKey =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
constexpr std::string_view kDigits = "0123456789";

std::string_view SkipBlanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" \t"), text.size()));
}

void AppendUtf8(uint32_t code, std::string* out) {
  const auto byte = [out](uint32_t bits) { out->push_back(static_cast<char>(bits)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) {
    byte(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    byte(0xE0 | code >> 12);
    byte(0x80 | (code >> 6 & 0x3F));
  } else {
    byte(0xF0 | code >> 18);
    byte(0x80 | (code >> 12 & 0x3F));
    byte(0x80 | (code >> 6 & 0x3F));
  }
  byte(0x80 | (code & 0x3F));
}

// Takes the escape sequence at the front of *rest, behind its backslash.
bool TakeEscape(std::string_view* rest, std::string* out) {
  constexpr std::string_view kLetters = "btnfr\"\\";
  constexpr std::string_view kMeant = "\b\t\n\f\r\"\\";
  if (rest->empty()) return false;
  const char letter = rest->front();
  rest->remove_prefix(1);
  if (const size_t at = kLetters.find(letter); at != std::string_view::npos) {
    out->push_back(kMeant[at]);
    return true;
  }
  const size_t digits = letter == 'u' ? 4 : letter == 'U' ? 8 : 0;
  if (digits == 0 || rest->size() < digits) return false;
  uint32_t code = 0;
  const char* end = rest->data() + digits;
  const auto [stop, error] = std::from_chars(rest->data(), end, code, 16);
  const bool is_scalar = code < 0xD800 || (code > 0xDFFF && code <= 0x10FFFF);
  if (error != std::errc() || stop != end || !is_scalar) return false;
  rest->remove_prefix(digits);
  AppendUtf8(code, out);
  return true;
}

// Takes a string in quotes of either kind from the front of *rest.
bool TakeQuoted(std::string_view* rest, std::string* out, std::string* error) {
  const char quote = rest->front();
  if (rest->starts_with("\"\"\"") || rest->starts_with("'''")) {
    *error = "a value must be on one line, in single or double quotes";
    return false;
  }
  rest->remove_prefix(1);
  while (!rest->empty() && rest->front() != quote) {
    const char c = rest->front();
    rest->remove_prefix(1);
    if (c != '\\' || quote == '\'') {
      out->push_back(c);
    } else if (!TakeEscape(rest, out)) {
      *error = "there is no such escape in TOML; write a backslash as \\\\, or the text in '...'";
      return false;
    }
  }
  if (rest->empty()) {
    *error = std::string("a closing ") + quote + " is missing";
    return false;
  }
  rest->remove_prefix(1);
  return true;
}

// A decimal integer, with an underscore between digits at most. Other prefixes than '-' and '+',
// and fractions, are left to the row: none takes them.
bool IsNumber(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return !text.empty() && kDigits.find(text.front()) != std::string_view::npos &&
         kDigits.find(text.back()) != std::string_view::npos &&
         text.find("__") == std::string_view::npos &&
         text.find_first_not_of("0123456789_.") == std::string_view::npos;
}

bool TakeBare(std::string_view* rest, ConfigEntry* entry, std::string* error) {
  const size_t end = std::min(rest->find_first_of(" \t#"), rest->size());
  const std::string_view word = rest->substr(0, end);
  rest->remove_prefix(end);
  entry->text = word;
  entry->is_boolean = word == "true" || word == "false";
  if (entry->is_boolean) return true;
  if (IsNumber(word)) {
    std::erase(entry->text, '_');
    if (entry->text.starts_with('+')) entry->text.erase(0, 1);
    return true;
  }
  if (word.starts_with('[') || word.starts_with('{')) {
    *error = entry->key + " takes one value, no list";
  } else if (word.empty()) {
    *error = entry->key + " has no value";
  } else {
    *error = entry->key + ": what is no number is written in quotes: \"" + entry->text + "\"";
  }
  return false;
}

bool TakeKey(std::string_view* rest, std::string* key, std::string* error) {
  if (rest->starts_with('"') || rest->starts_with('\'')) return TakeQuoted(rest, key, error);
  const size_t end = std::min(rest->find_first_not_of(kBareKey), rest->size());
  *key = rest->substr(0, end);
  rest->remove_prefix(end);
  if (!key->empty()) return true;
  *error = "a line must be KEY = VALUE";
  return false;
}

// One line that is neither empty nor a comment.
bool ParseLine(std::string_view rest, ConfigEntry* entry, std::string* error) {
  if (rest.starts_with('[')) {
    *error = "options are in no section; leave the line '" + std::string(rest) + "' away";
    return false;
  }
  if (!TakeKey(&rest, &entry->key, error)) return false;
  rest = SkipBlanks(rest);
  if (!rest.starts_with('=')) {
    *error = "'=' is missing behind " + entry->key + "; a line must be KEY = VALUE";
    return false;
  }
  rest = SkipBlanks(rest.substr(1));
  const bool is_quoted = rest.starts_with('"') || rest.starts_with('\'');
  if (is_quoted ? !TakeQuoted(&rest, &entry->text, error) : !TakeBare(&rest, entry, error)) {
    return false;
  }
  rest = SkipBlanks(rest);
  if (rest.empty() || rest.starts_with('#')) return true;
  *error = entry->key + " takes one value; '" + std::string(rest) + "' is too much";
  return false;
}

}  // namespace

bool ParseConfigText(std::string_view text, std::vector<ConfigEntry>* entries, std::string* error) {
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    line = SkipBlanks(line);
    while (line.ends_with(' ') || line.ends_with('\t')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    ConfigEntry entry;
    entry.line = number;
    std::string what;
    if (ParseLine(line, &entry, &what)) {
      const auto earlier =
          std::find_if(entries->begin(), entries->end(),
                       [&entry](const ConfigEntry& other) { return other.key == entry.key; });
      if (earlier == entries->end()) {
        entries->push_back(std::move(entry));
        continue;
      }
      what = entry.key + " is given twice, in line " + std::to_string(earlier->line) +
             " already; keep one";
    }
    *error = std::to_string(number) + ": " + what;
    return false;
  }
  return true;
}

bool ReadConfigFile(const std::string& path, std::vector<ConfigEntry>* entries,
                    std::string* error) {
  std::error_code ignored;
  std::ifstream file(path);
  // A directory would read as an empty file.
  if (!file || std::filesystem::is_directory(path, ignored)) {
    *error = "cannot read config file " + path + "; give --config a readable TOML file";
    return false;
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (ParseConfigText(text, entries, error)) return true;
  *error = path + ":" + *error;
  return false;
}

}  // namespace onetrip
