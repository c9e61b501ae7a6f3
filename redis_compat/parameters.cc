#include "redis_compat/parameters.h"

#include <algorithm>
#include <cstdint>

#include "client_core/base/check.h"
#include "client_core/base/parameter_table.h"
#include "client_core/base/parameter_values.h"
#include "client_core/base/secret.h"
#include "redis_compat/config_values.h"
#include "redis_compat/protocol/ascii.h"
#include "redis_compat/protocol/numbers.h"
#include "redis_compat/values/glob.h"

namespace onetrip {
namespace {

// The row at `index` of the table.
const ParameterRow& Row(size_t index) { return ParameterTable()[index]; }
constexpr size_t kNowhere = SIZE_MAX;

// The position of CONFIG's parameter of that name, which may be its second; kNowhere: there is
// none.
size_t IndexOf(std::string_view name) {
  if (name.empty()) return kNowhere;
  const std::span<const ParameterRow> rows = ParameterTable();
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].config != ConfigUse::kNone &&
        (EqualsIgnoreCase(name, rows[i].name) || EqualsIgnoreCase(name, rows[i].second_name))) {
      return i;
    }
  }
  return kNowhere;
}

// A canonical value as LiveOptions has it.
int64_t LiveValue(ParameterType type, const std::string& canonical) {
  switch (type) {
    case ParameterType::kYesNo:
      return canonical == "yes" ? 1 : 0;
    case ParameterType::kInteger:
    case ParameterType::kSize:
      return ParseInt64(canonical).value_or(0);
    default:
      return canonical.empty() ? 0 : 1;
  }
}

using NamedValues = std::vector<std::pair<std::string, std::string>>;

bool Contains(const NamedValues& found, std::string_view name) {
  return std::any_of(found.begin(), found.end(),
                     [name](const auto& pair) { return EqualsIgnoreCase(pair.first, name); });
}

}  // namespace

ServerConfig::ServerConfig() {
  const std::span<const ParameterRow> rows = ParameterTable();
  values_.resize(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].config == ConfigUse::kNone) continue;
    values_[i] = DefaultText(rows[i]);
    Publish(i);
  }
}

bool ServerConfig::IsPassword(std::string_view password) const {
  const std::lock_guard lock(mutex_);
  const std::string& expected = values_[IndexOf("requirepass")];
  return EqualInConstantTime(std::as_bytes(std::span(expected)),
                             std::as_bytes(std::span(password)));
}

NamedValues ServerConfig::Get(std::span<const std::string_view> patterns) const {
  NamedValues found;
  const std::lock_guard lock(mutex_);
  for (const std::string_view pattern : patterns) {
    if (pattern.find_first_of("[*?") == std::string_view::npos) {
      // A plain name comes back as the client spelled it.
      const size_t index = IndexOf(pattern);
      if (index != kNowhere && !Contains(found, pattern)) {
        found.emplace_back(pattern, values_[index]);
      }
      continue;
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      if (Row(i).config == ConfigUse::kNone) continue;
      for (const std::string_view name : {Row(i).name, Row(i).second_name}) {
        if (!name.empty() && GlobMatch(pattern, name, GlobCase::kIgnore) &&
            !Contains(found, name)) {
          found.emplace_back(name, values_[i]);
        }
      }
    }
  }
  return found;
}

std::string ServerConfig::Value(std::string_view name) const {
  const size_t index = IndexOf(name);
  if (index == kNowhere) {
    return "";
  }
  const std::lock_guard lock(mutex_);
  return values_[index];
}

bool ServerConfig::Knows(std::string_view name) const { return IndexOf(name) != kNowhere; }

std::string_view ServerConfig::FirstName(std::string_view name) {
  const size_t index = IndexOf(name);
  CHECK(index != kNowhere);
  return Row(index).name;
}

bool ServerConfig::IsMutable(std::string_view name) const {
  const size_t index = IndexOf(name);
  CHECK(index != kNowhere);
  return Row(index).config == ConfigUse::kSet;
}

bool ServerConfig::Check(std::string_view name, std::string_view value, std::string* canonical,
                         std::string* error) const {
  const size_t index = IndexOf(name);
  CHECK(index != kNowhere);
  const std::string current = Value(name);
  if (!CheckConfigValue(Row(index), current, value, canonical, error)) {
    return false;
  }
  if (*Row(index).fixed_because == '\0' || *canonical == current) {
    return true;
  }
  *error = Row(index).fixed_because;
  return false;
}

void ServerConfig::Store(std::string_view name, std::string canonical) {
  const size_t index = IndexOf(name);
  CHECK(index != kNowhere);
  const std::lock_guard lock(mutex_);
  values_[index] = std::move(canonical);
  Publish(index);
}

uint64_t ServerConfig::noted_call_ns() const {
  constexpr uint64_t kNsPerUs = 1000;
  constexpr uint64_t kNsPerMs = 1'000'000;
  const int64_t slow_us = slow_call_us();
  const uint64_t latency_ms = latency_threshold_ms();
  const uint64_t slow_ns = slow_us < 0 ? UINT64_MAX : static_cast<uint64_t>(slow_us) * kNsPerUs;
  return latency_ms == 0 ? slow_ns : std::min(slow_ns, latency_ms * kNsPerMs);
}

bool ServerConfig::SetByServer(std::string_view name, std::string_view value) {
  std::string canonical;
  std::string error;
  const size_t index = IndexOf(name);
  if (index == kNowhere || !CheckConfigValue(Row(index), Value(name), value, &canonical, &error)) {
    return false;
  }
  Store(name, std::move(canonical));
  return true;
}

void ServerConfig::Publish(size_t index) {
  const ParameterRow& row = Row(index);
  if (row.live == nullptr) return;
  (live_.*row.live).store(LiveValue(row.type, values_[index]), std::memory_order_relaxed);
}

}  // namespace onetrip
