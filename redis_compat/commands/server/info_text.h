// InfoText: the lines of INFO, in Redis's number formats.
#ifndef ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_INFO_TEXT_H_
#define ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_INFO_TEXT_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace onetrip {

class InfoText {
 public:
  // Begins a section: "# title", with an empty line in front unless it is the first.
  void Title(std::string_view title);

  // "name:value".
  void Field(std::string_view name, std::string_view value);
  void Field(std::string_view name, uint64_t value);
  // With `digits` behind the point.
  void Decimal(std::string_view name, double value, int digits);
  // "name:n" in bytes and "name_human:1.50M".
  void Bytes(std::string_view name, uint64_t bytes);
  // "name:12.50%"; 0 of 0 is 0.
  void Percent(std::string_view name, uint64_t part, uint64_t whole);
  // "name:1.25"; x over 0 is 0.
  void Ratio(std::string_view name, uint64_t numerator, uint64_t denominator);
  // Things that Redis counts and that cannot happen here.
  void Zeros(std::initializer_list<std::string_view> names);

  // The text so far, to which a caller appends lines of its own.
  [[nodiscard]] std::string* body() { return &text_; }
  [[nodiscard]] std::string Take() && { return std::move(text_); }

 private:
  std::string text_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_COMMANDS_SERVER_INFO_TEXT_H_
