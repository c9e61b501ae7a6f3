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

std::vector<std::string> MemnodeArgv(const ClusterDir& dir, const ClusterRecord& record,
                                     size_t number) {
  std::vector<std::string> argv = {ProgramPath("onetrip-memnode"),
                                   "--master",
                                   record.master.address,
                                   "--memory",
                                   record.memory,
                                   "--fabric",
                                   record.fabric == "mixed" ? "both" : record.fabric,
                                   "--listen",
                                   "127.0.0.1:0",
                                   "--socket",
                                   dir.run_dir() + "/node-" + std::to_string(number) + ".sock"};
  if (record.persistent) argv.insert(argv.end(), {"--backing", dir.backing(number)});
  return argv;
}

}  // namespace onetrip
