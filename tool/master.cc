#include "tool/master.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "client_core/control/cluster_status.h"
#include "client_core/control/control_options.h"
#include "client_core/control/kept_state.h"
#include "tool/find_cluster.h"
#include "tool/programs.h"

namespace onetrip {

Status BackUpMaster(const BackupOptions& options, std::string* reason) {
  // It may be the master's own, which is open.
  if (access(options.file.c_str(), F_OK) == 0) {
    *reason =
        options.file + " is there already, and is left as it is; name a new file, or remove it";
    return Status(StatusCode::kInvalidArgument, "the file exists");
  }
  ControlOptions control;
  control.connect_timeout_ms = 5000;
  control.request_timeout_ms = 30'000;
  const Status found = FindCluster(options.dir, options.master, options.secret_file, &control,
                                   /*record=*/nullptr, reason);
  if (!found.ok()) return found;
  const Result<std::string> copy = FetchBackup(control, reason);
  if (!copy.ok()) return copy.status();
  const Status written = WriteFileWhole(options.file, *copy, reason);
  if (!written.ok()) return written;
  std::printf("%s has the master's state: %zu bytes\n", options.file.c_str(), copy->size());
  return Status::Ok();
}

Status RebuildMaster(const std::vector<std::string>& arguments, std::string* reason) {
  const std::string program = ProgramPath("onetrip-master");
  std::vector<std::string> all = {program, "rebuild"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  argv.reserve(all.size() + 1);
  for (std::string& argument : all) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  *reason = "cannot run " + program + ": " + std::strerror(errno);
  return Status(StatusCode::kUnavailable, "not run");
}

}  // namespace onetrip
