#include "client_core/base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace onetrip {
namespace {

constexpr size_t kFarthest = 64;  // Longer texts are no mistyped names.

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// Restricted Damerau-Levenshtein distance.
size_t Distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> rows(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
      }
    }
  }
  return rows[a.size()][b.size()];
}

}  // namespace

std::string NearestName(std::string_view typed, std::span<const std::string> known) {
  constexpr size_t kPartMin = 3;
  const std::string wanted = Lower(typed);
  if (wanted.empty() || wanted.size() > kFarthest) return "";
  const std::string* nearest = nullptr;
  size_t least = kFarthest;
  for (const std::string& name : known) {
    const std::string candidate = Lower(name);
    const size_t distance = Distance(wanted, candidate);
    if (distance >= least || distance * 3 > std::max(wanted.size(), candidate.size())) continue;
    least = distance;
    nearest = &name;
  }
  if (nearest != nullptr || wanted.size() < kPartMin) return nearest == nullptr ? "" : *nearest;
  for (const std::string& name : known) {
    if (Lower(name).find(wanted) != std::string::npos) return name;
  }
  for (const std::string& name : known) {
    if (name.size() >= kPartMin && wanted.find(Lower(name)) != std::string::npos) return name;
  }
  return "";
}

}  // namespace onetrip
