#include "client_core/base/host_id.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace onetrip {

std::string HostId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat mounts {};
  if (!(file >> boot) || stat("/proc/self/ns/mnt", &mounts) != 0) {
    return "unknown/" + std::to_string(getpid());
  }
  return boot + "/" + std::to_string(mounts.st_ino);
}

std::string ProcessSpace() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat ids {};
  if (!(file >> boot) || stat("/proc/self/ns/pid", &ids) != 0) return "";
  return boot + "/" + std::to_string(ids.st_ino);
}

bool HasEnded(uint64_t pid) {
  constexpr uint64_t kExiting = 0x4;  // PF_EXITING of the kernel's task flags
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) {
    return access("/proc/self/stat", R_OK) == 0 && pid != 0 && pid <= INT32_MAX &&
           kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH;
  }
  // The second field is a name in brackets, which may hold anything.
  const size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return false;
  std::istringstream fields(line.substr(name_end + 1));
  char state = 0;
  std::string skipped;
  uint64_t flags = 0;
  fields >> state;
  for (int field = 0; field < 5; ++field) fields >> skipped;
  if (!(fields >> flags)) return false;
  return state == 'Z' || state == 'X' || (flags & kExiting) != 0;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

}  // namespace onetrip
