#include "tool/cluster_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

namespace onetrip {
namespace {

using Json = nlohmann::json;

std::string RecordPath(const std::string& path) { return path + "/cluster.json"; }

Json ToJson(const ProcessRecord& process) {
  return {{"name", process.name},
          {"pid", process.pid},
          {"started", process.started},
          {"address", process.address},
          {"log", process.log}};
}

ProcessRecord ProcessFromJson(const Json& json) {
  return {json.at("name"), json.at("pid"), json.at("started"), json.at("address"), json.at("log")};
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

Result<std::unique_ptr<ClusterDir>> ClusterDir::Open(const std::string& path, bool must_exist,
                                                     std::string* reason) {
  const std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  if (must_exist && access(RecordPath(absolute).c_str(), F_OK) != 0) {
    return Fail(reason, "there is no cluster in " + absolute + "; name its directory with --dir");
  }
  std::error_code error;
  if (!must_exist && std::filesystem::create_directories(absolute, error)) {
    chmod(absolute.c_str(), 0700);
  }
  const std::string lock_path = absolute + "/lock";
  const int lock = open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock < 0) return Fail(reason, "cannot write to " + absolute + ": " + std::strerror(errno));
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    return Fail(reason, "another onetrip command is at work in " + absolute + "; try again later");
  }
  return std::unique_ptr<ClusterDir>(new ClusterDir(absolute, lock));
}

ClusterDir::~ClusterDir() { close(lock_); }

bool ClusterDir::has_record() const { return access(RecordPath(path_).c_str(), F_OK) == 0; }

Result<ClusterRecord> ClusterDir::Read(const std::string& path, std::string* reason) {
  std::ifstream file(RecordPath(path));
  if (!file) {
    return Fail(reason, "there is no cluster in " + path + "; name its directory with --dir");
  }
  try {
    const Json json = Json::parse(file);
    ClusterRecord record;
    record.fabric = json.at("fabric");
    record.persistent = json.at("persistent");
    record.memory = json.value("memory", "");
    record.master = ProcessFromJson(json.at("master"));
    for (const Json& memnode : json.at("memnodes")) {
      record.memnodes.push_back(ProcessFromJson(memnode));
    }
    record.memnodes_started = json.value("memnodes_started", record.memnodes.size());
    for (const Json& agent : json.at("agents")) record.agents.push_back(ProcessFromJson(agent));
    return record;
  } catch (const Json::exception& broken) {
    return Fail(reason, RecordPath(path) + " is damaged: " + broken.what());
  }
}

Status ClusterDir::Save(const ClusterRecord& record, std::string* reason) const {
  Json json = {{"fabric", record.fabric},         {"persistent", record.persistent},
               {"memory", record.memory},         {"memnodes_started", record.memnodes_started},
               {"master", ToJson(record.master)}, {"memnodes", Json::array()},
               {"agents", Json::array()}};
  for (const ProcessRecord& memnode : record.memnodes) json["memnodes"].push_back(ToJson(memnode));
  for (const ProcessRecord& agent : record.agents) json["agents"].push_back(ToJson(agent));
  const std::string path = RecordPath(path_);
  const std::string fresh = path + ".new";
  std::ofstream file(fresh);
  file << json.dump(2) << "\n";
  file.close();
  if (!file || std::rename(fresh.c_str(), path.c_str()) != 0) {
    return Fail(reason, "cannot write " + path + ": " + std::strerror(errno));
  }
  return Status::Ok();
}

size_t ClusterDir::backed_nodes() const {
  size_t count = 0;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(path_ + "/memory", ignored)) {
    size_t number = 0;
    const std::string name = file.path().filename();
    if (std::sscanf(name.c_str(), "node-%zu.img", &number) == 1 && file.path() == backing(number)) {
      count = std::max(count, number + 1);
    }
  }
  return count;
}

void ClusterDir::Clear(bool keep_data) {
  std::error_code ignored;
  std::vector<std::string> names = {RecordPath(path_), run_dir(), log_dir()};
  if (!keep_data) names.insert(names.end(), {master_dir(), path_ + "/memory"});
  for (const std::string& name : names) std::filesystem::remove_all(name, ignored);
  std::filesystem::remove(path_ + "/lock", ignored);
  std::filesystem::remove(path_, ignored);  // fails, as it should, when something is left
}

}  // namespace onetrip
