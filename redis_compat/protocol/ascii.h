// Letters as the protocol knows them: ASCII only, whatever the process's locale says.
#ifndef ONETRIP_REDIS_COMPAT_PROTOCOL_ASCII_H_
#define ONETRIP_REDIS_COMPAT_PROTOCOL_ASCII_H_

#include <algorithm>
#include <string>
#include <string_view>

namespace onetrip {

inline constexpr char AsciiLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}
inline constexpr char AsciiUpper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - ('a' - 'A')) : c;
}

// True if `text` is `word` in any case.
inline bool EqualsIgnoreCase(std::string_view text, std::string_view word) {
  return text.size() == word.size() &&
         std::equal(text.begin(), text.end(), word.begin(),
                    [](char a, char b) { return AsciiLower(a) == AsciiLower(b); });
}

inline std::string ToLowerAscii(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), AsciiLower);
  return lower;
}
inline std::string ToUpperAscii(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), AsciiUpper);
  return upper;
}

// An argument as Redis repeats it in an error, which it prints as a C string: a NUL byte ends it.
inline std::string_view UntilNul(std::string_view argument) {
  return argument.substr(0, argument.find('\0'));
}

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PROTOCOL_ASCII_H_
