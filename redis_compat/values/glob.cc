#include "redis_compat/values/glob.h"

#include <cstddef>
#include <utility>

#include "redis_compat/protocol/ascii.h"

namespace onetrip {
namespace {

char Fold(char c, GlobCase letters) { return letters == GlobCase::kIgnore ? AsciiLower(c) : c; }

// Matches one character against the set that follows '['; moves `at` behind the set. A set that
// is never closed ends with the pattern.
bool MatchSet(std::string_view pattern, size_t* at, char c, GlobCase letters) {
  size_t i = *at;
  const bool negated = i < pattern.size() && pattern[i] == '^';
  if (negated) {
    ++i;
  }
  bool found = false;
  while (i < pattern.size() && pattern[i] != ']') {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      ++i;
      found |= pattern[i] == c;
      ++i;
    } else if (i + 2 < pattern.size() && pattern[i + 1] == '-') {
      auto low = static_cast<unsigned char>(Fold(pattern[i], letters));
      auto high = static_cast<unsigned char>(Fold(pattern[i + 2], letters));
      if (low > high) {
        std::swap(low, high);
      }
      const auto folded = static_cast<unsigned char>(Fold(c, letters));
      found |= folded >= low && folded <= high;
      i += 3;
    } else {
      found |= Fold(pattern[i], letters) == Fold(c, letters);
      ++i;
    }
  }
  *at = i < pattern.size() ? i + 1 : i;
  return found != negated;
}

// Matches one character against the pattern element at `at`, which is no star; moves `at` on.
bool MatchOne(std::string_view pattern, size_t* at, char c, GlobCase letters) {
  switch (pattern[*at]) {
    case '?':
      ++*at;
      return true;
    case '[':
      ++*at;
      return MatchSet(pattern, at, c, letters);
    case '\\':
      if (*at + 1 < pattern.size()) {
        ++*at;
      }
      break;
    default:
      break;
  }
  const bool same = Fold(pattern[*at], letters) == Fold(c, letters);
  ++*at;
  return same;
}

}  // namespace

bool GlobMatch(std::string_view pattern, std::string_view text, GlobCase letters) {
  // As Redis has it: a star stands for nothing only where something else matches.
  if (text.empty()) return pattern.empty();
  size_t p = 0;
  size_t t = 0;
  // Behind the last star, and where in the text it was tried: only the last star need ever give
  // more, which bounds the work.
  size_t star_pattern = std::string_view::npos;
  size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star_pattern = ++p;
      star_text = t;
      continue;
    }
    if (p < pattern.size() && MatchOne(pattern, &p, text[t], letters)) {
      ++t;
      continue;
    }
    if (star_pattern == std::string_view::npos) {
      return false;
    }
    p = star_pattern;
    t = ++star_text;
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

bool HasGlobSyntax(std::string_view pattern) {
  return pattern.find_first_of("*?[\\") != std::string_view::npos;
}

}  // namespace onetrip
