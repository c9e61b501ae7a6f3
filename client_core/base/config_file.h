// Config file: the lines of a TOML file of options, `key = value` at its top level.
//
// Options are flat, so that a file is a list of keys, each with one string, number or boolean; what
// TOML has beyond that (tables, arrays, dates, strings of several lines) is refused by line. Pure
// but for the reading of the file; any thread.
#ifndef ONETRIP_CLIENT_CORE_BASE_CONFIG_FILE_H_
#define ONETRIP_CLIENT_CORE_BASE_CONFIG_FILE_H_

#include <string>
#include <string_view>
#include <vector>

namespace onetrip {

struct ConfigEntry {
  int line = 0;  // From 1.
  std::string key;
  std::string text;         // Without quotes and escapes; of a number without its underscores.
  bool is_boolean = false;  // `text` is "true" or "false", written without quotes.
};

// Reads TOML. False: *error is "LINE: what is wrong".
bool ParseConfigText(std::string_view text, std::vector<ConfigEntry>* entries, std::string* error);

// Reads the file at `path`. False: *error begins with the path, and the line if there is one.
bool ReadConfigFile(const std::string& path, std::vector<ConfigEntry>* entries, std::string* error);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_BASE_CONFIG_FILE_H_
