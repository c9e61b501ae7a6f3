#include "tool/find_cluster.h"

#include <utility>

namespace onetrip {
namespace {

Status UseSecret(const std::string& secret_file, ControlOptions* control, std::string* reason) {
  if (secret_file.empty()) return Status::Ok();
  Result<Secret> secret = LoadSecretFile(secret_file, reason);
  if (!secret.ok()) return secret.status();
  control->secret = std::move(secret.value());
  return Status::Ok();
}

}  // namespace

Status UseRecord(const ClusterRecord& record, ControlOptions* control, std::string* reason) {
  control->master = record.master.address;
  return UseSecret(record.secret_file, control, reason);
}

Status FindCluster(const std::string& dir, const std::string& master,
                   const std::string& secret_file, ControlOptions* control, ClusterRecord* record,
                   std::string* reason) {
  control->master = master;
  if (!master.empty()) return UseSecret(secret_file, control, reason);
  Result<ClusterRecord> read = ClusterDir::Read(dir, reason);
  if (!read.ok()) return read.status();
  const Status used = UseRecord(*read, control, reason);
  if (record != nullptr) *record = std::move(*read);
  if (!used.ok() || secret_file.empty()) return used;
  return UseSecret(secret_file, control, reason);
}

}  // namespace onetrip
