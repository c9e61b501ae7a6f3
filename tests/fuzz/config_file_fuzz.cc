// Fuzz target: whatever a config file holds, it is read or refused with a line of it, and entries
// that are written out again as TOML are read as they were.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/config_file.h"

namespace onetrip {
namespace {

// A basic string of TOML. Lines end at \n, so that it is escaped.
std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + "\"";
}

void CheckText(std::string_view text) {
  std::vector<ConfigEntry> entries;
  std::string error;
  if (!ParseConfigText(text, &entries, &error)) {
    int lines = 1;
    for (const char c : text) lines += c == '\n' ? 1 : 0;
    const int line = std::atoi(error.c_str());
    CHECK(line >= 1 && line <= lines);
    return;
  }
  std::string again;
  for (const ConfigEntry& entry : entries) {
    CHECK(entry.key.size() + entry.text.size() <= text.size());
    again += Quoted(entry.key) + " = " + Quoted(entry.text) + "\n";
  }
  std::vector<ConfigEntry> read;
  CHECK(ParseConfigText(again, &read, &error));
  CHECK(read.size() == entries.size());
  for (size_t i = 0; i < read.size(); ++i) {
    CHECK(read[i].key == entries[i].key && read[i].text == entries[i].text);
  }
}

}  // namespace
}  // namespace onetrip

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  onetrip::CheckText(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
