#include "client_core/control/cluster_status.h"

#include <future>
#include <utility>

#include "client_core/control/control.pb.h"
#include "client_core/control/control_stream.h"
#include "client_core/control/status_codec.h"
#include "client_core/control/usage_codec.h"

namespace onetrip {
namespace {

MemberKind KindOf(control::Role role) {
  if (role == control::ROLE_AGENT) return MemberKind::kAgent;
  return role == control::ROLE_MEMORY_NODE ? MemberKind::kMemoryNode : MemberKind::kOther;
}

// A tool is no member: the master does not expel it.
class ToolHandler final : public ControlStream::Handler {
  void OnExpelled(const std::string& /*reason*/) override {}
};

struct ToolAnswer {
  Status status;
  std::string reason;
  control::Reply reply;
};

// One request on a stream of its own.
Status AskOnce(const ControlOptions& options, const control::Request& request,
               control::Reply* reply, std::string* reason) {
  ToolHandler handler;
  ControlStream stream(options.Copy(), ControlStream::Role::kTool, &handler);
  const Status connected = stream.Connect(reason);
  if (!connected.ok()) return connected;
  std::promise<ToolAnswer> promise;
  stream.Ask(request, options.request_timeout_ms,
             [&promise](Status status, const std::string& why, const control::Reply* said) {
               ToolAnswer answer{status, why, {}};
               if (said != nullptr) answer.reply = *said;
               promise.set_value(std::move(answer));
             });
  ToolAnswer answer = promise.get_future().get();
  stream.Stop(/*leave=*/true);
  *reply = std::move(answer.reply);
  if (!answer.status.ok()) *reason = answer.reason;
  // Whoever got no answer may ask again.
  if (answer.status.code() == StatusCode::kUnknownOutcome) {
    return Status(StatusCode::kUnavailable, answer.status.message());
  }
  return answer.status;
}

}  // namespace

ClusterStatusInfo DecodeClusterStatus(const control::ClusterStatus& message) {
  ClusterStatusInfo info;
  info.cluster = message.cluster();
  info.epoch = message.epoch();
  info.replicas = message.replicas();
  info.nodes_expected = message.nodes_expected();
  info.regions = message.regions();
  info.region_bytes = message.region_bytes();
  info.regions_fully_redundant = message.regions_fully_redundant();
  info.state = message.state();
  info.waiting_for = message.waiting_for();
  info.moving = message.moving();
  info.unreached = message.unreached();
  if (message.has_usage()) info.usage = DecodePoolUsage(message.usage());
  info.short_of_memory = message.short_of_memory();
  info.master_pid = message.pid();
  info.master_uptime_s = message.uptime_s();
  for (const control::MemberStatus& from : message.members()) {
    MemberStatusInfo& member = info.members.emplace_back();
    member.kind = KindOf(from.role());
    member.member = from.member();
    member.node = from.node();
    member.state = from.state();
    member.pid = from.pid();
    member.host = from.host();
    member.address = from.address();
    member.version = from.version();
    member.lease_left_ms = from.lease_left_ms();
    member.bytes = from.bytes();
    member.unusable_bytes = from.unusable_bytes();
    member.regions = from.regions();
    member.blocks = from.report().blocks();
    member.granted_blocks = from.report().granted_blocks();
    member.operations = from.report().operations();
    member.page_bytes = from.report().page_bytes();
    member.rdma = from.rdma();
    member.workers = from.report().workers();
  }
  return info;
}

Result<ClusterStatusInfo> QueryStatus(const ControlOptions& options, std::string* reason) {
  control::Request request;
  request.mutable_get_status();
  control::Reply reply;
  const Status status = AskOnce(options, request, &reply, reason);
  if (!status.ok()) return status;
  return DecodeClusterStatus(reply.status());
}

Status AskToMoveRegions(const ControlOptions& options, uint32_t node, RegionWish wish,
                        std::string* reason) {
  control::Request request;
  request.mutable_move_regions()->set_node(node);
  request.mutable_move_regions()->set_wish(static_cast<control::MoveRegions::Wish>(wish));
  control::Reply reply;
  return AskOnce(options, request, &reply, reason);
}

Status AskToAcceptLoss(const ControlOptions& options, bool confirmed, std::string* reason) {
  control::Request request;
  request.mutable_accept_loss()->set_confirmed(confirmed);
  control::Reply reply;
  return AskOnce(options, request, &reply, reason);
}

Result<std::string> FetchBackup(const ControlOptions& options, std::string* reason) {
  control::Request request;
  request.mutable_backup();
  control::Reply reply;
  const Status status = AskOnce(options, request, &reply, reason);
  if (!status.ok()) return status;
  return std::move(*reply.mutable_backup());
}

}  // namespace onetrip
