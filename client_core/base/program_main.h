// ParseAndRun: what every program's main() does with its options.
#ifndef ONETRIP_CLIENT_CORE_BASE_PROGRAM_MAIN_H_
#define ONETRIP_CLIENT_CORE_BASE_PROGRAM_MAIN_H_

#include <cstdio>
#include <functional>
#include <string>

#include "client_core/base/log.h"
#include "client_core/base/options.h"

namespace onetrip {

// Parses by one of the Parse*Options(), then runs the program, prints what was asked for, or says
// what is wrong. The exit code. Main thread, before others start.
template <typename Options>
int ParseAndRun(int argc, const char* const* argv,
                ParseAction (*parse)(int, const char* const*, Options*, std::string*),
                int (*run)(const Options&,
                           const std::function<std::string(LogLevel*)>& read_level)) {
  Options options;
  std::string message;
  switch (parse(argc, argv, &options, &message)) {
    case ParseAction::kPrint:
      std::printf("%s\n", message.c_str());
      return 0;
    case ParseAction::kFail:
      // Begins with the program's name already.
      std::fprintf(stderr, "%s\n", message.c_str());
      return 1;
    case ParseAction::kRun:
      break;
  }
  return run(options, [argc, argv, parse](LogLevel* level) -> std::string {
    Options again;
    std::string why;
    if (parse(argc, argv, &again, &why) != ParseAction::kRun) return why;
    return ParseLogLevel(again.log_level, level) ? "" : "there is no log level " + again.log_level;
  });
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_PROGRAM_MAIN_H_
