// Processes that map a node's memory: who they are, and their end.
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "memnode/backing.h"

namespace onetrip {
namespace {

constexpr int kClientsPollMs = 5;

// True if the process maps the file that `inode` and `path` name.
bool Maps(const std::string& process, uint64_t inode, const std::string& path) {
  std::ifstream maps(process + "/maps");
  const std::string number = " " + std::to_string(inode) + " ";
  for (std::string line; std::getline(maps, line);) {
    if (line.find(number) != std::string::npos && line.ends_with(path)) return true;
  }
  return false;
}

// Sends SIGKILL to every process but this one that maps the file.
void KillMappers(uint64_t inode, const std::string& path) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0 || pid == getpid()) continue;
    // The descriptor first: what is then seen to map the file is what it stands for.
    const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    if (!process.valid() || !Maps(entry.path(), inode, path)) continue;
    syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
  }
}

}  // namespace

bool Backing::HasClients() const {
  if (options_.kind != BackingOptions::Kind::kFile) return false;
  if (flock(fd_.get(), LOCK_EX | LOCK_NB) != 0) return true;
  flock(fd_.get(), LOCK_UN);
  return false;
}

Status Backing::EndClients(uint64_t grace_ms, uint64_t kill_ms, std::string* reason) {
  struct stat info {};
  if (options_.kind != BackingOptions::Kind::kFile || fstat(fd_.get(), &info) != 0) {
    return Status::Ok();
  }
  std::error_code ignored;
  const std::string path = std::filesystem::canonical(options_.path, ignored);
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto grace_end = start + std::chrono::milliseconds(grace_ms);
  const auto end = grace_end + std::chrono::milliseconds(kill_ms);
  while (HasClients()) {
    const auto now = Clock::now();
    if (now >= end) {
      *reason = "processes still map backing file " + options_.path +
                " and could not be ended; end them by hand";
      return Status(StatusCode::kUnavailable, "the node's memory cannot be had");
    }
    if (now >= grace_end) KillMappers(info.st_ino, path);
    std::this_thread::sleep_for(std::chrono::milliseconds(kClientsPollMs));
  }
  return Status::Ok();
}

}  // namespace onetrip
