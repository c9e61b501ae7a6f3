#include "client_core/base/host_id.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

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

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 ? name : "unknown";
}

}  // namespace onetrip
