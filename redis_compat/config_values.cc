#include "redis_compat/config_values.h"

#include <algorithm>
#include <array>
#include <vector>

#include "client_core/base/parameter_values.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/inline_split.h"
#include "redis_compat/protocol/numbers.h"

namespace onetrip {
namespace {

struct MemoryUnit {
  std::string_view name;
  int64_t bytes;
};
constexpr std::array<MemoryUnit, 8> kMemoryUnits = {{{"", 1},
                                                     {"b", 1},
                                                     {"k", 1000},
                                                     {"kb", 1024},
                                                     {"m", 1000 * 1000},
                                                     {"mb", 1024 * 1024},
                                                     {"g", 1000 * 1000 * 1000},
                                                     {"gb", 1024 * 1024 * 1024}}};

// The letters of notify-keyspace-events that 'A' stands for, and those it does not, in the order
// in which CONFIG GET shows them.
constexpr std::string_view kAllEvents = "g$lshzxetd";
constexpr std::string_view kOtherEvents = "KEmn";

bool CheckRange(const ParameterRow& row, int64_t value, std::string* canonical,
                std::string* error) {
  if (value < row.min || value > row.max) {
    *error = "argument must be between " + std::to_string(row.min) + " and " +
             std::to_string(row.max) + " inclusive";
    return false;
  }
  *canonical = std::to_string(std::clamp(value, row.nearest_min, row.nearest_max));
  return true;
}

bool CheckChoice(const ParameterRow& row, std::string_view value, std::string* canonical,
                 std::string* error) {
  std::string all;
  for (const std::string& choice : ChoicesOf(row)) {
    if (EqualsIgnoreCase(value, choice)) {
      *canonical = choice;
      return true;
    }
    all += (all.empty() ? "" : ", ") + choice;
  }
  *error = "argument(s) must be one of the following: " + all;
  return false;
}

bool CheckSave(std::string_view value, std::string* canonical, std::string* error) {
  std::vector<std::string_view> words;
  std::string storage;
  *error = "Invalid save parameters";
  if (!SplitInline(value, &words, &storage) || words.size() % 2 != 0) {
    return false;
  }
  canonical->clear();
  for (size_t i = 0; i < words.size(); i += 2) {
    const auto seconds = ParseInt64(words[i]);
    const auto changes = ParseInt64(words[i + 1]);
    if (!seconds || *seconds < 1 || !changes || *changes < 0) {
      return false;
    }
    *canonical += (i == 0 ? "" : " ") + std::to_string(*seconds) + " " + std::to_string(*changes);
  }
  return true;
}

bool CheckKeyEvents(std::string_view value, std::string* canonical, std::string* error) {
  const auto given = [value](char letter) { return value.find(letter) != std::string_view::npos; };
  if (value.find_first_not_of("Ag$lshzxeKEtmdn") != std::string_view::npos) {
    *error = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
    return false;
  }
  std::string events;
  for (const char letter : kAllEvents) {
    if (given(letter) || given('A')) events += letter;
  }
  if (events == kAllEvents) {
    events = "A";
  }
  for (const char letter : kOtherEvents) {
    if (given(letter)) events += letter;
  }
  *canonical = events;
  return true;
}

// Reads "CLASS hard soft seconds" as often as it comes, over the limits of all classes in
// `current`.
bool CheckOutputLimits(std::string_view current, std::string_view value, std::string* canonical,
                       std::string* error) {
  constexpr size_t kWordsPerClass = 4;
  std::vector<std::string_view> limits;
  std::vector<std::string_view> words;
  std::string storage;
  (void)SplitInline(current, &limits, &storage);  // Ours: it has no quotes.
  if (!SplitInline(value, &words, &storage) || words.size() % kWordsPerClass != 0) {
    *error = "Wrong number of arguments in buffer limit configuration.";
    return false;
  }
  std::vector<std::string> merged(limits.begin(), limits.end());
  for (size_t i = 0; i < words.size(); i += kWordsPerClass) {
    const std::string name =
        EqualsIgnoreCase(words[i], "replica") ? "slave" : ToLowerAscii(words[i]);
    size_t at = 0;
    while (at < merged.size() && merged[at] != name) at += kWordsPerClass;
    if (at >= merged.size()) {
      *error = "Invalid client class specified in buffer limit configuration.";
      return false;
    }
    const auto hard = ParseMemory(words[i + 1]);
    const auto soft = ParseMemory(words[i + 2]);
    const auto seconds = ParseInt64(words[i + 3]);
    if (!hard || !soft || !seconds || *seconds < 0) {
      *error = "Error in hard, soft or soft_seconds setting in buffer limit configuration.";
      return false;
    }
    merged[at + 1] = std::to_string(*hard);
    merged[at + 2] = std::to_string(*soft);
    merged[at + 3] = std::to_string(*seconds);
  }
  canonical->clear();
  for (const std::string& word : merged) {
    canonical->append(canonical->empty() ? "" : " ").append(word);
  }
  return true;
}

}  // namespace

std::optional<int64_t> ParseMemory(std::string_view text) {
  const size_t unit_at = text.find_first_not_of("0123456789");
  const std::string_view unit = unit_at == std::string_view::npos ? "" : text.substr(unit_at);
  std::string_view digits = text.substr(0, unit_at);
  while (digits.size() > 1 && digits.front() == '0') {
    digits.remove_prefix(1);
  }
  const auto count = digits.empty() ? 0 : ParseInt64(digits);
  if (!count) {
    return std::nullopt;
  }
  for (const MemoryUnit& known : kMemoryUnits) {
    int64_t bytes = 0;
    if (EqualsIgnoreCase(unit, known.name) &&
        !__builtin_mul_overflow(*count, known.bytes, &bytes)) {
      return bytes;
    }
  }
  return std::nullopt;
}

bool CheckConfigValue(const ParameterRow& row, std::string_view current, std::string_view value,
                      std::string* canonical, std::string* error) {
  switch (row.type) {
    case ParameterType::kText:
    case ParameterType::kPath:
    case ParameterType::kAddress:
      *canonical = value;
      return true;
    case ParameterType::kYesNo:
      if (!EqualsIgnoreCase(value, "yes") && !EqualsIgnoreCase(value, "no")) {
        *error = "argument must be 'yes' or 'no'";
        return false;
      }
      *canonical = ToLowerAscii(value);
      return true;
    case ParameterType::kInteger: {
      const auto number = ParseInt64(value);
      if (!number) {
        *error = "argument couldn't be parsed into an integer";
        return false;
      }
      return CheckRange(row, *number, canonical, error);
    }
    case ParameterType::kSize: {
      const auto bytes = ParseMemory(value);
      if (!bytes) {
        *error = "argument must be a memory value";
        return false;
      }
      return CheckRange(row, *bytes, canonical, error);
    }
    case ParameterType::kChoice:
      return CheckChoice(row, value, canonical, error);
    case ParameterType::kSave:
      return CheckSave(value, canonical, error);
    case ParameterType::kKeyEvents:
      return CheckKeyEvents(value, canonical, error);
    case ParameterType::kOutputLimits:
      return CheckOutputLimits(current, value, canonical, error);
    case ParameterType::kOctal:
    case ParameterType::kSwitch:
      break;  // CONFIG knows no parameter of these.
  }
  *error = "argument cannot be set";
  return false;
}

}  // namespace onetrip
