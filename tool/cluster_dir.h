// ClusterDir: the directory of a local cluster: its description (what the cluster is made of, which
// processes it has, which files they made), the secret, their logs, the master's state and, if the
// cluster keeps its data, the memory nodes' files.
//
// The description outlives the processes: `up` in the same directory starts what is missing as it
// was, and a persistent cluster stays one. Only files that the cluster made are ever removed.
#ifndef ONETRIP_TOOL_CLUSTER_DIR_H_
#define ONETRIP_TOOL_CLUSTER_DIR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "tool/process.h"

namespace onetrip {

// The parts of a cluster: options of `up` that the directory remembers.
struct ClusterShape {
  // "shm", "tcp", "verbs", or "mixed": agents take shm and tcp in turn.
  std::string fabric = "shm";
  std::string device;  // the RDMA one, for verbs; empty: the only one
  int16_t gid_index = -1;
  bool persistent = false;  // memory nodes keep their memory in files
  std::string memory;       // each memory node's, as onetrip-memnode takes it
  uint16_t replicas = 0;    // 0: not known, the directory is of an older version
  uint16_t nodes = 0;       // memory nodes that form the cluster; others join later
  std::string engine;       // the agents'; empty: their default
  uint64_t threads = 1;     // each agent's
  uint16_t port = 0;        // the first agent's; the others follow
  std::string bind = "127.0.0.1";
};

struct ClusterRecord {
  ClusterShape shape;
  bool formed = false;          // `up` succeeded once: it may hold data
  std::string secret_file;      // empty: processes of an older version, which have no secret
  size_t memnodes_started = 0;  // those that were ended since counted
  // Files and directories, relative to the cluster's, that were not there before a process of the
  // cluster, or the tool, made them. Parents come before what is in them.
  std::vector<std::string> made;
  ProcessRecord master;
  std::vector<ProcessRecord> memnodes;
  std::vector<ProcessRecord> agents;

  // All of them, the master first.
  [[nodiscard]] std::vector<const ProcessRecord*> all() const;
  [[nodiscard]] std::vector<ProcessRecord*> all();
};

class ClusterDir {
 public:
  // Makes the directory, with mode 0700, if it is missing; takes its lock, so that no two commands
  // change one cluster at a time. `must_exist`: refuses one without a description.
  static Result<std::unique_ptr<ClusterDir>> Open(const std::string& path, bool must_exist,
                                                  std::string* reason);
  // Reads the description without a lock; for looking only.
  static Result<ClusterRecord> Read(const std::string& path, std::string* reason);
  ~ClusterDir();
  ClusterDir(const ClusterDir&) = delete;
  ClusterDir& operator=(const ClusterDir&) = delete;

  [[nodiscard]] bool has_record() const;
  // True if a master's state lies here without a description: a master that was started by hand, or
  // an older version, left it.
  [[nodiscard]] bool has_unknown_state() const;
  [[nodiscard]] Result<ClusterRecord> Load(std::string* reason) const {
    return Read(path_, reason);
  }
  Status Save(const ClusterRecord& record, std::string* reason) const;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string log(const std::string& process) const {
    return path_ + "/logs/" + process + ".log";
  }
  [[nodiscard]] std::string master_dir() const { return path_ + "/master"; }
  [[nodiscard]] std::string backing(size_t node) const {
    return path_ + "/memory/node-" + std::to_string(node) + ".img";
  }
  [[nodiscard]] std::string socket(size_t node) const {
    return path_ + "/run/node-" + std::to_string(node) + ".sock";
  }
  // How many memory nodes, numbered from 0 on without a gap, have a file.
  [[nodiscard]] size_t backed_nodes() const;

  // Notes in *record that the directory was made, if Open() has made it.
  void ClaimItself(ClusterRecord* record) const;
  // Notes in *record that `name` (relative) is about to be made, unless it exists.
  void Claim(const std::string& name, ClusterRecord* record) const;
  // Makes a folder of the directory with mode 0700, if it is missing, and claims it.
  Status MakeFolder(const std::string& name, ClusterRecord* record, std::string* reason) const;
  // Makes a secret from the system's random numbers in a file of mode 0600, unless the record has
  // one and its file is there.
  Status MakeSecret(ClusterRecord* record, std::string* reason) const;

  // Removes what this cluster made, the description last, and nothing else: a folder that holds
  // other files stays.
  void Clear(const ClusterRecord& record);

 private:
  ClusterDir(std::string path, int lock, bool created)
      : path_(std::move(path)), lock_(lock), created_(created) {}

  const std::string path_;
  const int lock_;  // descriptor of the lock file
  const bool created_;
  bool is_cleared_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_TOOL_CLUSTER_DIR_H_
