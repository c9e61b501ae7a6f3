#include "redis_compat/commands/server/info_text.h"

#include <cstdio>

namespace onetrip {
namespace {

std::string HumanBytes(uint64_t bytes) {
  constexpr double kStep = 1024;
  constexpr std::string_view kUnits = "BKMGTP";
  auto amount = static_cast<double>(bytes);
  size_t unit = 0;
  while (amount >= kStep && unit + 1 < kUnits.size()) {
    amount /= kStep;
    ++unit;
  }
  char text[32];
  const int size = std::snprintf(text, sizeof(text), unit == 0 ? "%.0f" : "%.2f", amount);
  return std::string(text, static_cast<size_t>(size)) + kUnits[unit];
}

}  // namespace

void InfoText::Title(std::string_view title) {
  if (!text_.empty()) {
    text_ += "\r\n";
  }
  text_.append("# ").append(title).append("\r\n");
}

void InfoText::Field(std::string_view name, std::string_view value) {
  text_.append(name).append(":").append(value).append("\r\n");
}

void InfoText::Field(std::string_view name, uint64_t value) { Field(name, std::to_string(value)); }

void InfoText::Decimal(std::string_view name, double value, int digits) {
  char text[64];
  const int size = std::snprintf(text, sizeof(text), "%.*f", digits, value);
  Field(name, std::string_view(text, static_cast<size_t>(size)));
}

void InfoText::Bytes(std::string_view name, uint64_t bytes) {
  Field(name, bytes);
  Field(std::string(name) + "_human", HumanBytes(bytes));
}

void InfoText::Percent(std::string_view name, uint64_t part, uint64_t whole) {
  const double ratio =
      whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole) * 100;
  char text[64];
  const int size = std::snprintf(text, sizeof(text), "%.2f%%", ratio);
  Field(name, std::string_view(text, static_cast<size_t>(size)));
}

void InfoText::Ratio(std::string_view name, uint64_t numerator, uint64_t denominator) {
  Decimal(name,
          denominator == 0 ? 0 : static_cast<double>(numerator) / static_cast<double>(denominator),
          2);
}

void InfoText::Zeros(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    Field(name, "0");
  }
}

}  // namespace onetrip
