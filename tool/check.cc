#include "tool/check.h"

#include <cstdio>
#include <optional>

#include "client_core/control/cluster_status.h"
#include "client_core/control/control_options.h"
#include "tool/find_cluster.h"
#include "tool/resp_probe.h"

namespace onetrip {

Result<bool> CheckPool(const CheckOptions& options, std::string* reason) {
  ControlOptions control;
  control.connect_timeout_ms = 2000;
  control.request_timeout_ms = 2000;
  const Status found =
      FindCluster(options.dir, options.master, options.secret_file, &control, nullptr, reason);
  if (!found.ok()) return found;
  const Result<ClusterStatusInfo> status = QueryStatus(control, reason);
  if (!status.ok()) return status.status();
  *reason = "no agent is there to walk the pool";
  for (const MemberStatusInfo& member : status->members) {
    if (member.kind != MemberKind::kAgent || member.address.empty()) continue;
    const std::optional<std::string> text =
        AskForText(member.address, options.password, "DEBUG CHECK-POOL", reason);
    if (!text.has_value()) continue;
    std::fwrite(text->data(), 1, text->size(), stdout);
    return text->starts_with("wrong:0\r\n");
  }
  return Status(StatusCode::kUnavailable, "check");
}

}  // namespace onetrip
