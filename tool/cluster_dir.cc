#include "tool/cluster_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "client_core/base/secret.h"

namespace onetrip {
namespace {

using Json = nlohmann::json;

// How the directory itself is noted among what was made.
constexpr const char* kItself = ".";

std::string RecordPath(const std::string& path) { return path + "/cluster.json"; }

// Why the description in `path` cannot be read.
std::string NoCluster(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    return "there is no cluster in " + path + "; name its directory with --dir";
  }
  return "cannot read " + RecordPath(path) + ": " + std::strerror(error);
}

// A script that ends processes by the record must not meet the number 0, which means its own group.
Json PidToJson(pid_t pid) { return pid == 0 ? Json(nullptr) : Json(pid); }

Json ToJson(const ProcessRecord& process) {
  Json json = {{"name", process.name},          {"number", process.number},
               {"pid", PidToJson(process.pid)}, {"started", process.started},
               {"address", process.address},    {"log", process.log},
               {"log_from", process.log_from}};
  if (process.node.has_value()) json["node"] = *process.node;
  return json;
}

ProcessRecord ProcessFromJson(const Json& json) {
  ProcessRecord process;
  process.name = json.at("name");
  const size_t dash = process.name.rfind('-');
  const size_t named =
      dash == std::string::npos ? 0 : std::strtoull(process.name.c_str() + dash + 1, nullptr, 10);
  process.number = json.value("number", named);
  if (!json.at("pid").is_null()) process.pid = json.at("pid");
  process.started = json.at("started");
  process.address = json.at("address");
  process.log = json.at("log");
  process.log_from = json.value("log_from", uint64_t{0});
  if (json.contains("node")) process.node = json.at("node").get<uint32_t>();
  return process;
}

// The files that an older version, which did not note them, made for a cluster that keeps no data.
std::vector<std::string> MadeByOlderVersion(const Json& json) {
  std::vector<std::string> made = {".",
                                   "logs",
                                   "run",
                                   "memory",
                                   "master",
                                   "master/master.db",
                                   "master/master.db-wal",
                                   "master/master.db-shm",
                                   "logs/master.log"};
  if (json.at("persistent").get<bool>()) return {};
  for (const char* kind : {"memnodes", "agents"}) {
    for (const Json& process : json.at(kind)) {
      made.push_back("logs/" + process.at("name").get<std::string>() + ".log");
      made.push_back("run/node-" + std::to_string(ProcessFromJson(process).number) + ".sock");
    }
  }
  return made;
}

ClusterShape ShapeFromJson(const Json& json) {
  ClusterShape shape;
  shape.fabric = json.at("fabric");
  shape.persistent = json.at("persistent");
  shape.memory = json.value("memory", "");
  shape.replicas = json.value("replicas", uint16_t{0});
  shape.nodes = json.value("nodes", static_cast<uint16_t>(json.at("memnodes").size()));
  shape.engine = json.value("engine", "");
  shape.threads = json.value("threads", uint64_t{1});
  shape.port = json.value("port", uint16_t{0});
  shape.bind = json.value("bind", "127.0.0.1");
  shape.device = json.value("device", "");
  shape.gid_index = json.value("gid_index", int16_t{-1});
  return shape;
}

// The directory may have been moved, or be a copy of another one, whose files are not its own.
void FindFilesIn(const std::string& path, ClusterRecord* record) {
  const std::filesystem::path folder = std::filesystem::absolute(path).lexically_normal();
  if (!record->secret_file.empty()) record->secret_file = (folder / "secret").string();
  for (ProcessRecord* process : record->all()) {
    if (process->log.empty()) continue;
    process->log = (folder / "logs" / std::filesystem::path(process->log).filename()).string();
  }
}

Status Fail(std::string* reason, const std::string& what) {
  *reason = what;
  return Status(StatusCode::kInvalidArgument, "cluster directory");
}

}  // namespace

std::vector<const ProcessRecord*> ClusterRecord::all() const {
  std::vector<const ProcessRecord*> result{&master};
  for (const ProcessRecord& memnode : memnodes) result.push_back(&memnode);
  for (const ProcessRecord& agent : agents) result.push_back(&agent);
  return result;
}

std::vector<ProcessRecord*> ClusterRecord::all() {
  std::vector<ProcessRecord*> result{&master};
  for (ProcessRecord& memnode : memnodes) result.push_back(&memnode);
  for (ProcessRecord& agent : agents) result.push_back(&agent);
  return result;
}

Result<std::unique_ptr<ClusterDir>> ClusterDir::Open(const std::string& path, bool must_exist,
                                                     std::string* reason) {
  if (path.empty())
    return Fail(reason, "--dir needs the name of a directory, and got an empty one");
  const std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  if (must_exist && access(RecordPath(absolute).c_str(), R_OK) != 0) {
    return Fail(reason, NoCluster(absolute, errno));
  }
  std::error_code error;
  const bool created = !must_exist && std::filesystem::create_directories(absolute, error);
  if (error) return Fail(reason, "cannot make " + absolute + ": " + error.message());
  if (created) chmod(absolute.c_str(), 0700);
  const std::string lock_path = absolute + "/lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return Fail(reason, "cannot write to " + absolute + ": " + std::strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return Fail(reason, "another onetrip command is at work in " + absolute + "; try again later");
  }
  return std::unique_ptr<ClusterDir>(new ClusterDir(absolute, lock, created));
}

ClusterDir::~ClusterDir() {
  // Nothing came of it: an earlier command would have left a description.
  if (!is_cleared_ && !has_record()) {
    unlink((path_ + "/lock").c_str());
    if (created_) rmdir(path_.c_str());
  }
  close(lock_);
}

bool ClusterDir::has_record() const { return access(RecordPath(path_).c_str(), F_OK) == 0; }

Result<ClusterRecord> ClusterDir::Read(const std::string& path, std::string* reason) {
  std::ifstream file(RecordPath(path));
  if (!file) return Fail(reason, NoCluster(path, errno));
  try {
    const Json json = Json::parse(file);
    ClusterRecord record;
    record.shape = ShapeFromJson(json);
    record.formed = json.value("formed", true);
    record.secret_file = json.value("secret_file", "");
    record.made = json.contains("made") ? json.at("made").get<std::vector<std::string>>()
                                        : MadeByOlderVersion(json);
    record.master = ProcessFromJson(json.at("master"));
    for (const Json& memnode : json.at("memnodes")) {
      record.memnodes.push_back(ProcessFromJson(memnode));
    }
    record.memnodes_started = json.value("memnodes_started", record.memnodes.size());
    for (const Json& agent : json.at("agents")) record.agents.push_back(ProcessFromJson(agent));
    FindFilesIn(path, &record);
    return record;
  } catch (const Json::exception& broken) {
    return Fail(reason, RecordPath(path) + " is damaged: " + broken.what());
  }
}

Status ClusterDir::Save(const ClusterRecord& record, std::string* reason) const {
  const ClusterShape& shape = record.shape;
  Json json = {{"fabric", shape.fabric},
               {"persistent", shape.persistent},
               {"memory", shape.memory},
               {"replicas", shape.replicas},
               {"nodes", shape.nodes},
               {"engine", shape.engine},
               {"threads", shape.threads},
               {"port", shape.port},
               {"bind", shape.bind},
               {"device", shape.device},
               {"gid_index", shape.gid_index},
               {"formed", record.formed},
               {"secret_file", record.secret_file},
               {"memnodes_started", record.memnodes_started},
               {"made", record.made},
               {"master", ToJson(record.master)},
               {"memnodes", Json::array()},
               {"agents", Json::array()}};
  for (const ProcessRecord& memnode : record.memnodes) json["memnodes"].push_back(ToJson(memnode));
  for (const ProcessRecord& agent : record.agents) json["agents"].push_back(ToJson(agent));
  const std::string path = RecordPath(path_);
  const std::string fresh = path + ".new";
  const int fd = open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  const std::string text = json.dump(2) + "\n";
  bool ok = fd >= 0 && write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
            fsync(fd) == 0;
  if (fd >= 0) ok = close(fd) == 0 && ok;
  if (!ok || std::rename(fresh.c_str(), path.c_str()) != 0) {
    return Fail(reason, "cannot write " + path + ": " + std::strerror(errno));
  }
  return Status::Ok();
}

bool ClusterDir::has_unknown_state() const {
  return !has_record() && access((master_dir() + "/master.db").c_str(), F_OK) == 0;
}

size_t ClusterDir::backed_nodes() const {
  size_t count = 0;
  while (access(backing(count).c_str(), F_OK) == 0) ++count;
  return count;
}

void ClusterDir::ClaimItself(ClusterRecord* record) const {
  if (created_) record->made.emplace_back(kItself);
}

void ClusterDir::Claim(const std::string& name, ClusterRecord* record) const {
  struct stat ignored {};
  if (lstat((path_ + "/" + name).c_str(), &ignored) == 0) return;
  if (std::find(record->made.begin(), record->made.end(), name) == record->made.end()) {
    record->made.push_back(name);
  }
}

Status ClusterDir::MakeFolder(const std::string& name, ClusterRecord* record,
                              std::string* reason) const {
  Claim(name, record);
  const std::string folder = path_ + "/" + name;
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return Status::Ok();
  return Fail(reason, "cannot make " + folder + ": " + std::strerror(errno));
}

Status ClusterDir::MakeSecret(ClusterRecord* record, std::string* reason) const {
  const std::string path = path_ + "/secret";
  if (!record->secret_file.empty() && access(record->secret_file.c_str(), F_OK) == 0) {
    return Status::Ok();
  }
  std::array<std::byte, 32> random;
  FillRandom(random);
  std::string text;
  for (const std::byte byte : random) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += kDigits[static_cast<unsigned>(byte) >> 4];
    text += kDigits[static_cast<unsigned>(byte) & 15];
  }
  text += "\n";
  Claim("secret", record);
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    return Fail(reason, "cannot make the secret " + path + ": " + std::strerror(errno) +
                            (errno == EEXIST ? "; it is not this cluster's, move it away" : ""));
  }
  const bool ok = fchmod(fd, 0600) == 0 &&
                  write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                  fsync(fd) == 0;
  const int error = errno;
  close(fd);
  if (!ok) {
    unlink(path.c_str());
    return Fail(reason, "cannot write the secret " + path + ": " + std::strerror(error));
  }
  record->secret_file = path;
  return Status::Ok();
}

void ClusterDir::Clear(const ClusterRecord& record) {
  is_cleared_ = true;
  std::error_code ignored;
  std::vector<std::string> made = record.made;
  std::reverse(made.begin(), made.end());
  // A folder is removed only when it is empty.
  for (const std::string& name : made) {
    if (name != kItself) std::filesystem::remove(path_ + "/" + name, ignored);
  }
  std::filesystem::remove(RecordPath(path_), ignored);
  std::filesystem::remove(path_ + "/lock", ignored);
  if (std::find(made.begin(), made.end(), kItself) != made.end()) {
    std::filesystem::remove(path_, ignored);  // fails, as it should, when something is left
  }
}

}  // namespace onetrip
