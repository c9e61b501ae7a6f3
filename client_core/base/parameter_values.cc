#include "client_core/base/parameter_values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "client_core/base/check.h"
#include "client_core/base/nearest_name.h"

namespace onetrip {
namespace {

constexpr uint64_t kKiB = 1024;
constexpr uint64_t kMiB = 1024 * kKiB;
constexpr uint64_t kGiB = 1024 * kMiB;
constexpr uint64_t kTiB = 1024 * kGiB;

struct Unit {
  std::string_view name;
  uint64_t count;
};
constexpr Unit kSizeUnits[] = {{"", 1},      {"b", 1},      {"k", 1000},
                               {"kb", kKiB}, {"kib", kKiB}, {"m", 1000000},
                               {"mb", kMiB}, {"mib", kMiB}, {"g", 1000000000},
                               {"gb", kGiB}, {"gib", kGiB}, {"t", 1000000000000},
                               {"tb", kTiB}, {"tib", kTiB}};
constexpr Unit kShownSizeUnits[] = {{"TiB", kTiB}, {"GiB", kGiB}, {"MiB", kMiB}, {"KiB", kKiB}};
constexpr uint64_t kUsPerS = 1'000'000;
constexpr Unit kTimeUnitsUs[] = {{"years", 365 * 86400 * kUsPerS},
                                 {"days", 86400 * kUsPerS},
                                 {"h", 3600 * kUsPerS},
                                 {"min", 60 * kUsPerS},
                                 {"s", kUsPerS},
                                 {"ms", 1000},
                                 {"us", 1}};

// ASCII only, whatever the locale.
std::string ToLower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

// True when all of `text` is a number in that base that fits.
template <typename Number>
bool ParseNumber(std::string_view text, int base, Number* value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, *value, base);
  return error == std::errc() && stop == end;
}

std::string Quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string NumberText(int64_t value, ParameterType type) {
  std::array<char, 24> buffer;
  const int base = type == ParameterType::kOctal ? 8 : 10;
  const auto written = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, base);
  return std::string(buffer.data(), written.ptr);
}

bool IsNumeric(ParameterType type) {
  return type == ParameterType::kInteger || type == ParameterType::kOctal ||
         type == ParameterType::kSize;
}

bool IsTime(std::string_view unit) { return unit == "us" || unit == "ms" || unit == "s"; }

// One end of the limits, as it is typed.
std::string LimitText(const ParameterRow& row, int64_t limit) {
  return row.type == ParameterType::kSize ? SizeText(static_cast<uint64_t>(limit))
                                          : NumberText(limit, row.type);
}

bool ReadNumber(const ParameterRow& row, std::string_view text, int64_t* value,
                std::string* error) {
  bool is_read = false;
  if (row.type == ParameterType::kSize) {
    uint64_t bytes = 0;
    is_read = ParseSize(text, &bytes) && bytes <= std::numeric_limits<int64_t>::max();
    *value = static_cast<int64_t>(bytes);
  } else {
    is_read = ParseNumber(text, row.type == ParameterType::kOctal ? 8 : 10, value);
  }
  if (is_read && *value >= row.min && *value <= row.max) return true;
  const std::string limits = LimitsText(row);
  const char* const kind = is_read                             ? ""
                           : row.type == ParameterType::kSize  ? "a size such as 64mb or 1GiB"
                           : row.type == ParameterType::kOctal ? "an octal mode"
                           : limits.empty()                    ? "a number"
                                                               : "";
  *error = std::string("must be ") + kind + (*kind == '\0' || limits.empty() ? "" : ", ") + limits +
           ", not " + Quoted(text);
  return false;
}

bool CheckWord(const ParameterRow& row, std::string_view text, std::string* error) {
  if (row.type == ParameterType::kAddress) {
    std::string host;
    uint16_t port = 0;
    if (text.empty() || ParseHostPort(text, &host, &port)) return true;
    *error = "must be HOST:PORT, not " + Quoted(text);
    return false;
  }
  const std::vector<std::string> choices = ChoicesOf(row);
  if (choices.empty() || std::find(choices.begin(), choices.end(), text) != choices.end()) {
    return true;
  }
  *error = row.type == ParameterType::kYesNo
               ? "must be yes or no, not " + Quoted(text)
               : std::string("must be one of ") + row.choices + ", not " + Quoted(text);
  const std::string nearest = NearestName(text, choices);
  if (!nearest.empty()) *error += "; did you mean " + nearest + "?";
  return false;
}

std::vector<std::string> SplitAt(std::string_view text, char separator) {
  std::vector<std::string> words;
  size_t begin = 0;
  while ((begin = text.find_first_not_of(separator, begin)) != std::string_view::npos) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    words.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// Classes that `text` does not name keep their limits.
bool ReadOutputLimits(std::string_view text, OutputBufferLimits* limits) {
  OutputBufferLimits read = *limits;
  const std::vector<std::string> words = SplitAt(text, ' ');
  if (words.empty() || words.size() % 4 != 0) return false;
  for (size_t i = 0; i < words.size(); i += 4) {
    const std::string kind = ToLower(words[i]);
    OutputBufferLimit limit;
    if (!ParseSize(words[i + 1], &limit.hard_bytes) ||
        !ParseSize(words[i + 2], &limit.soft_bytes) ||
        !ParseNumber(words[i + 3], 10, &limit.soft_s)) {
      return false;
    }
    if (kind == "normal") {
      read.normal = limit;
    } else if (kind == "slave" || kind == "replica") {
      read.replica = limit;
    } else if (kind == "pubsub") {
      read.pubsub = limit;
    } else {
      return false;
    }
  }
  *limits = read;
  return true;
}

bool ReadOutputLimits(std::string_view text, OutputBufferLimits* limits, std::string* error) {
  if (ReadOutputLimits(text, limits)) return true;
  *error = "must be groups of 'normal|replica|pubsub HARD SOFT SECONDS', not " + Quoted(text);
  return false;
}

std::string OutputLimitsText(const OutputBufferLimits& limits) {
  const auto text = [](const char* kind, const OutputBufferLimit& limit) {
    return std::string(kind) + " " + std::to_string(limit.hard_bytes) + " " +
           std::to_string(limit.soft_bytes) + " " + std::to_string(limit.soft_s);
  };
  return text("normal", limits.normal) + " " + text("slave", limits.replica) + " " +
         text("pubsub", limits.pubsub);
}

const ParameterField<AgentOptions>& FieldOf(const ParameterRow& row,
                                            const AgentOptions& /*options*/) {
  return row.fields.agent;
}
const ParameterField<MemnodeOptions>& FieldOf(const ParameterRow& row,
                                              const MemnodeOptions& /*options*/) {
  return row.fields.memnode;
}
const ParameterField<MasterOptions>& FieldOf(const ParameterRow& row,
                                             const MasterOptions& /*options*/) {
  return row.fields.master;
}

}  // namespace

bool ParseSize(std::string_view text, uint64_t* bytes) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  uint64_t number = 0;
  if (!ParseNumber(text.substr(0, digits), 10, &number)) return false;
  const std::string unit = ToLower(text.substr(digits));
  for (const Unit& known : kSizeUnits) {
    if (known.name == unit) return !__builtin_mul_overflow(number, known.count, bytes);
  }
  return false;
}

std::string SizeText(uint64_t bytes) {
  for (const Unit& unit : kShownSizeUnits) {
    if (bytes >= unit.count && bytes % unit.count == 0) {
      return std::to_string(bytes / unit.count) + " " + std::string(unit.name);
    }
  }
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

std::string DurationText(uint64_t count, std::string_view unit) {
  const uint64_t unit_us = unit == "s" ? kUsPerS : unit == "ms" ? 1000 : 1;
  CHECK(IsTime(unit));
  uint64_t us = 0;
  if (__builtin_mul_overflow(count, unit_us, &us)) us = std::numeric_limits<uint64_t>::max();
  for (const Unit& larger : kTimeUnitsUs) {
    if (us < larger.count) continue;
    const uint64_t shown = us / larger.count + (us % larger.count * 2 >= larger.count ? 1 : 0);
    std::string name(larger.name);
    if (shown == 1 && (name == "days" || name == "years")) name.pop_back();
    return std::to_string(shown) + " " + name;
  }
  return "0 " + std::string(unit);
}

std::string LimitsText(const ParameterRow& row) {
  if (!IsNumeric(row.type)) return "";
  const bool is_time = IsTime(row.unit);
  const std::string unit = is_time ? std::string(" ") + row.unit : "";
  if (row.max == std::numeric_limits<int64_t>::max()) {
    return row.min == 0 ? "" : "at least " + LimitText(row, row.min) + unit;
  }
  std::string text =
      (row.min == 0 && row.type == ParameterType::kSize ? "0" : LimitText(row, row.min)) + " to " +
      LimitText(row, row.max) + unit;
  if (is_time) {
    const std::string most = DurationText(static_cast<uint64_t>(row.max), row.unit);
    if (most != std::to_string(row.max) + unit) text += " (" + most + ")";
  }
  return text;
}

std::vector<std::string> ChoicesOf(const ParameterRow& row) {
  if (row.type == ParameterType::kYesNo) return {"yes", "no"};
  return SplitAt(row.choices, '|');
}

bool ParseHostPort(std::string_view text, std::string* host, uint16_t* port) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  std::string_view name = text.substr(0, colon);
  const bool has_brackets = name.starts_with('[') && name.ends_with(']');
  if (has_brackets) name = name.substr(1, name.size() - 2);
  if (name.empty() || name.find_first_of("[]") != std::string_view::npos ||
      (name.find(':') != std::string_view::npos) != has_brackets) {
    return false;
  }
  uint64_t number = 0;
  if (!ParseNumber(text.substr(colon + 1), 10, &number) ||
      number > std::numeric_limits<uint16_t>::max()) {
    return false;
  }
  *host = name;
  *port = static_cast<uint16_t>(number);
  return true;
}

bool CheckParameter(const ParameterRow& row, std::string_view text, std::string* error) {
  int64_t number = 0;
  OutputBufferLimits limits;
  if (IsNumeric(row.type)) return ReadNumber(row, text, &number, error);
  if (row.type == ParameterType::kOutputLimits) return ReadOutputLimits(text, &limits, error);
  return CheckWord(row, text, error);
}

std::string DefaultText(const ParameterRow& row) {
  std::string error;
  if (IsNumeric(row.type)) {
    int64_t number = 0;
    CHECK(ReadNumber(row, row.default_text, &number, &error));
    return NumberText(number, row.type);
  }
  if (row.type != ParameterType::kOutputLimits) return row.default_text;
  OutputBufferLimits limits;
  CHECK(ReadOutputLimits(row.default_text, &limits));
  return OutputLimitsText(limits);
}

template <typename Options>
bool SetParameter(const ParameterRow& row, std::string_view text, Options* options,
                  std::string* error) {
  const ParameterField<Options>& field = FieldOf(row, *options);
  int64_t value = 0;
  if (const auto* limits = std::get_if<OutputBufferLimits Options::*>(&field)) {
    return ReadOutputLimits(text, &(options->**limits), error);
  }
  if (IsNumeric(row.type) ? !ReadNumber(row, text, &value, error) : !CheckWord(row, text, error)) {
    return false;
  }
  if (const auto* number = std::get_if<uint64_t Options::*>(&field)) {
    options->** number = static_cast<uint64_t>(value);
  } else if (const auto* any = std::get_if<int64_t Options::*>(&field)) {
    options->** any = value;
  } else if (const auto* words = std::get_if<std::string Options::*>(&field)) {
    options->** words = text;
  }
  return true;
}

template <typename Options>
std::string ParameterText(const ParameterRow& row, const Options& options) {
  const ParameterField<Options>& field = FieldOf(row, options);
  if (const auto* number = std::get_if<uint64_t Options::*>(&field)) {
    return NumberText(static_cast<int64_t>(options.**number), row.type);
  }
  if (const auto* any = std::get_if<int64_t Options::*>(&field)) {
    return NumberText(options.**any, row.type);
  }
  if (const auto* words = std::get_if<std::string Options::*>(&field)) {
    return options.**words;
  }
  if (const auto* limits = std::get_if<OutputBufferLimits Options::*>(&field)) {
    return OutputLimitsText(options.**limits);
  }
  return "";
}

template bool SetParameter(const ParameterRow&, std::string_view, AgentOptions*, std::string*);
template bool SetParameter(const ParameterRow&, std::string_view, MemnodeOptions*, std::string*);
template bool SetParameter(const ParameterRow&, std::string_view, MasterOptions*, std::string*);
template std::string ParameterText(const ParameterRow&, const AgentOptions&);
template std::string ParameterText(const ParameterRow&, const MemnodeOptions&);
template std::string ParameterText(const ParameterRow&, const MasterOptions&);

}  // namespace onetrip
