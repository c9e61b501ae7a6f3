#include "redis_compat/dispatch/scan_options.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "redis_compat/values/glob.h"

namespace onetrip {

bool ScanOptions::Fits(std::string_view name) const {
  return pattern == "*" || GlobMatch(pattern, name, GlobCase::kExact);
}

uint64_t TakeScanCursor(ArgumentReader& arguments) {
  const std::string text(arguments.Take());
  char* end = nullptr;
  errno = 0;
  const uint64_t cursor = std::strtoull(text.c_str(), &end, 10);
  const bool blank = !text.empty() && std::isspace(static_cast<unsigned char>(text[0])) != 0;
  const bool is_cursor = !blank && *end == '\0' && errno != ERANGE;
  arguments.Require(is_cursor, "ERR invalid cursor");
  return is_cursor ? cursor : 0;
}

void ReadScanOptions(ArgumentReader& arguments, ScanOf of, ScanOptions* options) {
  while (arguments.HasMore()) {
    const bool known =
        arguments.Integer("COUNT", &options->count, {.min = 1, .out_of_range = kSyntaxError}) ||
        arguments.Value("MATCH", &options->pattern) ||
        (of == ScanOf::kKeys && arguments.Value("TYPE", &options->type));
    if (!known) arguments.SyntaxError();
  }
}

}  // namespace onetrip
