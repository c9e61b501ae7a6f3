// Log: the process's few words to its operator, one line each on stderr.
//
// For events, never for operations: no line per command. ERROR means that a human must act; a
// simulation run fails on it, which is why errors are counted. The logging library stays in log.cc,
// because its header costs more to compile than most of our files.
#ifndef ONETRIP_CLIENT_CORE_BASE_LOG_H_
#define ONETRIP_CLIENT_CORE_BASE_LOG_H_

#include <cstdint>
#include <string_view>

namespace onetrip {

enum class LogLevel : uint8_t { kDebug, kInfo, kWarning, kError, kOff };

// Lines below `level` are dropped; kInfo until the first call. Any thread.
void SetLogLevel(LogLevel level);

// Sets *level from "debug", "info", "warning", "error" or "off"; false when `name` is none of them.
bool ParseLogLevel(std::string_view name, LogLevel* level);

// Each writes one line with time and level before it returns. Any thread; takes a lock, so not on
// the data path.
void LogDebug(std::string_view text);
void LogInfo(std::string_view text);
void LogWarning(std::string_view text);
void LogError(std::string_view text);

// LogError calls of this process so far, dropped lines included. Any thread.
uint64_t LoggedErrors();

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_LOG_H_
