#include "client_core/control/kept_state.h"

#include <fcntl.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "client_core/control/control.pb.h"

namespace onetrip {
namespace {

struct StateFileHeader {
  uint64_t magic = 0x0a54535350495254;  // "TRIPSST\n"
  uint64_t checksum = 0;                // XXH3 of what follows
};
static_assert(sizeof(StateFileHeader) == 16);

}  // namespace

void KeptState::Restore(const control::Recalled& message) {
  version_ = message.version();
  changes_.assign(message.changes().begin(), message.changes().end());
}

void KeptState::Add(const control::KeepState& message) {
  if (message.whole()) changes_.clear();
  if (!message.whole() && changes_.empty()) return;
  changes_.push_back(message.change());
  version_ = message.version();
}

void KeptState::Fill(control::Recalled* message) const {
  message->set_version(version_);
  for (const std::string& change : changes_) message->add_changes(change);
}

std::string EncodeStateFile(const control::Recalled& message) {
  const std::string body = message.SerializeAsString();
  StateFileHeader header;
  header.checksum = XXH3_64bits(body.data(), body.size());
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  return bytes + body;
}

Status DecodeStateFile(const std::string& bytes, control::Recalled* message) {
  StateFileHeader header;
  const uint64_t magic = header.magic;
  if (bytes.size() >= sizeof(header)) std::memcpy(&header, bytes.data(), sizeof(header));
  const std::string body = bytes.substr(std::min(bytes.size(), sizeof(header)));
  if (bytes.size() < sizeof(header) || header.magic != magic ||
      header.checksum != XXH3_64bits(body.data(), body.size()) || !message->ParseFromString(body)) {
    return Status(StatusCode::kCorrupt, "not a copy of a master's state");
  }
  return Status::Ok();
}

Status WriteFileWhole(const std::string& path, const std::string& bytes, std::string* reason) {
  const std::string fresh = path + ".new";
  const auto fail = [&](const char* what) {
    *reason = "cannot " + std::string(what) + " " + fresh + ": " + std::strerror(errno);
    unlink(fresh.c_str());
    return Status(StatusCode::kUnavailable, "the master's state is not kept");
  };
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return fail("make");
  size_t written = 0;
  while (written < bytes.size()) {
    const ssize_t count = write(fd, bytes.data() + written, bytes.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    written += static_cast<size_t>(count);
  }
  const bool done = written == bytes.size() && fdatasync(fd) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  if (!done) return fail("write");
  if (rename(fresh.c_str(), path.c_str()) != 0) return fail("rename");
  return Status::Ok();
}

Status ReadStateFile(const std::string& path, control::Recalled* message, std::string* reason) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open()) {
    *reason = "cannot read " + path + ": " + std::strerror(errno);
    return Status(StatusCode::kUnavailable, "no file");
  }
  Status status = DecodeStateFile(bytes, message);
  if (!status.ok()) *reason = path + " is no copy of a master's state, or is damaged";
  return status;
}

}  // namespace onetrip
