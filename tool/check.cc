#include "tool/check.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "client_core/control/cluster_status.h"
#include "client_core/control/control_options.h"
#include "tool/find_cluster.h"
#include "tool/resp_probe.h"

namespace onetrip {
namespace {

std::optional<uint64_t> NumberOf(std::string_view text, std::string_view name) {
  const size_t at = text.find(std::string(name) + ":");
  uint64_t value = 0;
  if (at == std::string_view::npos) return std::nullopt;
  const char* first = text.data() + at + name.size() + 1;
  const auto [end, error] = std::from_chars(first, text.data() + text.size(), value);
  return error == std::errc() ? std::optional<uint64_t>(value) : std::nullopt;
}

// Prints the memory that members report beside the memory that the check found named: memory that
// is in use and not named is lost until an agent looks for it, which agents do in turn once one of
// them has died, and when memory is short.
void PrintMemory(const ControlOptions& control, std::string_view counts) {
  std::string reason;
  const Result<ClusterStatusInfo> status = QueryStatus(control, &reason);
  const std::optional<uint64_t> named = NumberOf(counts, "named_bytes");
  if (!status.ok() || !status->usage.has_value() || !named.has_value()) return;
  const PoolUsage& usage = *status->usage;
  const uint64_t known = *named + usage.free_in_blocks() + usage.retired_bytes;
  const uint64_t objects =
      usage.granted_bytes - std::min(usage.granted_bytes, usage.overhead_bytes);
  const auto line = [](const char* name, uint64_t value) {
    std::fputs((std::string(name) + ":" + std::to_string(value) + "\r\n").c_str(), stdout);
  };
  line("live_bytes", *named);
  line("free_bytes", usage.free_in_blocks() + usage.free_block_bytes());
  line("retired_bytes", usage.retired_bytes);
  line("lost_bytes", objects - std::min(objects, known));
}

}  // namespace

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
    PrintMemory(control, *text);
    return text->starts_with("wrong:0\r\n");
  }
  return Status(StatusCode::kUnavailable, "check");
}

}  // namespace onetrip
