#include "client_core/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>

namespace onetrip {
namespace {

constinit std::atomic<uint64_t> logged_errors{0};

spdlog::logger& Logger() {
  // Never destroyed: a line written during exit must still find it.
  static spdlog::logger* const logger = [] {
    auto* created =
        new spdlog::logger("onetrip", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    created->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
    return created;
  }();
  return *logger;
}

spdlog::level::level_enum LibraryLevel(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      break;
  }
  return spdlog::level::off;
}

// The text is an argument, never the format: it may hold braces.
void Write(LogLevel level, std::string_view text) {
  Logger().log(LibraryLevel(level), "{}", spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace

void SetLogLevel(LogLevel level) { Logger().set_level(LibraryLevel(level)); }

bool ParseLogLevel(std::string_view name, LogLevel* level) {
  struct Name {
    std::string_view text;
    LogLevel level;
  };
  static constexpr Name kNames[] = {{"debug", LogLevel::kDebug},
                                    {"info", LogLevel::kInfo},
                                    {"warning", LogLevel::kWarning},
                                    {"error", LogLevel::kError},
                                    {"off", LogLevel::kOff}};
  for (const Name& known : kNames) {
    if (known.text == name) {
      *level = known.level;
      return true;
    }
  }
  return false;
}

void LogDebug(std::string_view text) { Write(LogLevel::kDebug, text); }
void LogInfo(std::string_view text) { Write(LogLevel::kInfo, text); }
void LogWarning(std::string_view text) { Write(LogLevel::kWarning, text); }

void LogError(std::string_view text) {
  logged_errors.fetch_add(1, std::memory_order_relaxed);
  Write(LogLevel::kError, text);
}

uint64_t LoggedErrors() { return logged_errors.load(std::memory_order_relaxed); }

}  // namespace onetrip
