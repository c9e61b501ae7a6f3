// ClusterDir: the directory of a local cluster: a record of its processes, their logs, the master's
// state and, if the cluster keeps its data, the memory nodes' files.
#ifndef ONETRIP_TOOL_CLUSTER_DIR_H_
#define ONETRIP_TOOL_CLUSTER_DIR_H_

#include <memory>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "tool/process.h"

namespace onetrip {

// In the order in which they were started.
struct ClusterRecord {
  std::string fabric;
  bool persistent = false;      // memory nodes keep their memory in files
  std::string memory;           // of each memory node, as onetrip-memnode takes it
  size_t memnodes_started = 0;  // those that were ended since counted
  ProcessRecord master;
  std::vector<ProcessRecord> memnodes;
  std::vector<ProcessRecord> agents;

  // All of them, the master first.
  [[nodiscard]] std::vector<const ProcessRecord*> all() const;
};

class ClusterDir {
 public:
  // Makes the directory, with mode 0700, if it is missing; takes its lock, so that no two commands
  // change one cluster at a time. `must_exist`: refuses one without a record.
  static Result<std::unique_ptr<ClusterDir>> Open(const std::string& path, bool must_exist,
                                                  std::string* reason);
  // Reads the record without a lock; for looking only.
  static Result<ClusterRecord> Read(const std::string& path, std::string* reason);
  ~ClusterDir();
  ClusterDir(const ClusterDir&) = delete;
  ClusterDir& operator=(const ClusterDir&) = delete;

  [[nodiscard]] bool has_record() const;
  [[nodiscard]] Result<ClusterRecord> Load(std::string* reason) const {
    return Read(path_, reason);
  }
  Status Save(const ClusterRecord& record, std::string* reason) const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string log_dir() const { return path_ + "/logs"; }
  [[nodiscard]] std::string run_dir() const { return path_ + "/run"; }
  [[nodiscard]] std::string master_dir() const { return path_ + "/master"; }
  [[nodiscard]] std::string backing(size_t node) const {
    return path_ + "/memory/node-" + std::to_string(node) + ".img";
  }
  // One more than the highest number of a memory node that has a file; 0: none has.
  [[nodiscard]] size_t backed_nodes() const;

  // Removes everything that `up` made; `keep_data`: but not the master's state and the nodes'
  // files. The directory itself goes if it is empty then.
  void Clear(bool keep_data);

 private:
  ClusterDir(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}

  const std::string path_;
  int lock_;  // descriptor of the lock file
};

}  // namespace onetrip

#endif  // ONETRIP_TOOL_CLUSTER_DIR_H_
