#include "memnode/socket_place.h"

#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "memnode/backing.h"

namespace onetrip {
namespace {

constexpr size_t kPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;

std::string Variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

// *is_own: made for memory nodes only, so the one that leaves it last may remove it.
std::string RuntimeDirectory(bool* is_own) {
  // A systemd service has a list of directories: the first one counts. systemd removes it.
  const std::string service = Variable("RUNTIME_DIRECTORY");
  *is_own = service.empty();
  if (!service.empty()) return service.substr(0, service.find(':'));
  if (geteuid() == 0) return "/run/onetrip";
  const std::string session = Variable("XDG_RUNTIME_DIR");
  if (!session.empty()) return session + "/onetrip";
  return "/tmp/onetrip-" + std::to_string(geteuid());
}

}  // namespace

Result<SocketPlace> SocketPlace::Choose(const std::string& given, uint64_t memory,
                                        std::string* reason) {
  SocketPlace place;
  std::error_code error;
  if (given.empty()) {
    place.path_ =
        RuntimeDirectory(&place.is_own_directory_) + "/memory-" + HexName(memory) + ".sock";
  } else {
    // Agents have other working directories.
    place.path_ = std::filesystem::absolute(given, error);
    place.is_own_directory_ =
        !std::filesystem::exists(std::filesystem::path(place.path_).parent_path(), error);
  }
  if (place.path_.size() > kPathBytesMax) {
    *reason = "the unix socket's path has more than " + std::to_string(kPathBytesMax) +
              " bytes: " + place.path_ + "; give a shorter --socket";
    return Status(StatusCode::kInvalidArgument, "socket path too long");
  }
  const Status directory = EnsurePrivateDirectory(place.path_, reason);
  if (!directory.ok()) return directory;
  return place;
}

void SocketPlace::Leave() const {
  if (is_own_directory_) rmdir(std::filesystem::path(path_).parent_path().c_str());
}

}  // namespace onetrip
