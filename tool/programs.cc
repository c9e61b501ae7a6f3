#include "tool/programs.h"

#include <unistd.h>

#include <algorithm>
#include <array>

namespace onetrip {

std::string ProgramPath(const std::string& name) {
  std::array<char, 4096> self;
  const ssize_t length = readlink("/proc/self/exe", self.data(), self.size());
  const std::string path(self.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
  return path.substr(0, path.rfind('/') + 1) + name;
}

}  // namespace onetrip
