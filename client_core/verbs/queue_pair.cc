#include "client_core/verbs/queue_pair.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>

namespace onetrip {
namespace {

constexpr uint8_t kPort = 1;
constexpr uint32_t kSequenceMask = 0xffffff;
// 4.096 us * 2^17 = .54 s, which devices may stretch to four times that, and seven attempts: a peer
// that is gone is given up after four seconds or more, and long before that the master's view says
// so. 7 retries would mean for ever to some devices.
constexpr uint8_t kTimeout = 17;
constexpr uint8_t kRetries = 6;
constexpr uint8_t kMinRnrTimer = 12;
constexpr uint8_t kHopsMax = 64;

constexpr Status kNotMade(StatusCode::kUnavailable, "there is no queue pair");

}  // namespace

VerbsQueuePair::VerbsQueuePair(VerbsDevice& device, ibv_qp* pair, int may, uint32_t inline_bytes,
                               uint32_t sequence)
    : device_(device), pair_(pair), may_(may), inline_bytes_(inline_bytes) {
  std::copy(std::begin(device.gid().raw), std::end(device.gid().raw), own_.gid.begin());
  own_.number = pair->qp_num;
  own_.sequence = sequence;
  own_.mtu = static_cast<uint8_t>(device.mtu());
  own_.reads_max = device.reads_max();
  own_.lid = device.lid();
}

Result<std::unique_ptr<VerbsQueuePair>> VerbsQueuePair::Make(VerbsDevice& device,
                                                             ibv_cq* completions, VerbsDepth depth,
                                                             int may, Rng& rng,
                                                             std::string* reason) {
  ibv_qp_init_attr wanted{};
  wanted.send_cq = completions;
  wanted.recv_cq = completions;
  wanted.qp_type = IBV_QPT_RC;
  wanted.cap.max_send_wr = depth.requests;
  wanted.cap.max_recv_wr = 1;
  wanted.cap.max_send_sge = 1;
  wanted.cap.max_recv_sge = 1;
  wanted.cap.max_inline_data = depth.inline_bytes;
  ibv_qp* const pair = ibv_create_qp(device.domain(), &wanted);
  if (pair == nullptr) {
    *reason = "the RDMA device " + device.name() + " makes no queue pair for " +
              std::to_string(depth.requests) + " requests: " + std::strerror(errno);
    return kNotMade;
  }
  const auto sequence = static_cast<uint32_t>(rng.Next()) & kSequenceMask;
  return std::unique_ptr<VerbsQueuePair>(
      new VerbsQueuePair(device, pair, may, wanted.cap.max_inline_data, sequence));
}

VerbsQueuePair::~VerbsQueuePair() { device_.Demand(ibv_destroy_qp(pair_), "ends a queue pair"); }

Status VerbsQueuePair::Connect(const TcpQueuePair& peer, std::string* reason) {
  if (peer.mtu < IBV_MTU_256 || peer.mtu > IBV_MTU_4096 || peer.reads_max == 0) {
    *reason = "the other end of a queue pair makes no sense";
    return kNotMade;
  }
  if (!device_.MayLookFor(peer.gid)) {
    *reason = "the other end's host was not found on the RDMA device's network a moment ago";
    return kNotMade;
  }
  const auto began = std::chrono::steady_clock::now();
  ibv_qp_attr init{};
  init.qp_state = IBV_QPS_INIT;
  init.port_num = kPort;
  init.qp_access_flags = static_cast<unsigned>(may_);
  int error = ibv_modify_qp(pair_, &init,
                            IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

  ibv_qp_attr receives{};
  receives.qp_state = IBV_QPS_RTR;
  receives.path_mtu = static_cast<ibv_mtu>(std::min(own_.mtu, peer.mtu));
  receives.dest_qp_num = peer.number;
  receives.rq_psn = peer.sequence;
  receives.max_dest_rd_atomic = std::min(own_.reads_max, peer.reads_max);
  receives.min_rnr_timer = kMinRnrTimer;
  receives.ah_attr.is_global = device_.is_ethernet() ? 1 : 0;
  receives.ah_attr.dlid = peer.lid;
  receives.ah_attr.port_num = kPort;
  std::copy(peer.gid.begin(), peer.gid.end(), receives.ah_attr.grh.dgid.raw);
  receives.ah_attr.grh.sgid_index = static_cast<uint8_t>(device_.gid_index());
  receives.ah_attr.grh.hop_limit = kHopsMax;
  if (error == 0) {
    error = ibv_modify_qp(pair_, &receives,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
  }

  ibv_qp_attr sends{};
  sends.qp_state = IBV_QPS_RTS;
  sends.sq_psn = own_.sequence;
  sends.timeout = kTimeout;
  sends.retry_cnt = kRetries;
  sends.rnr_retry = kRetries;
  sends.max_rd_atomic = receives.max_dest_rd_atomic;
  if (error == 0) {
    error = ibv_modify_qp(pair_, &sends,
                          IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                              IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
  }
  if (error == 0) return Status::Ok();
  // The kernel has looked for the host of that GID.
  constexpr auto kLong = std::chrono::milliseconds(200);
  if (std::chrono::steady_clock::now() - began > kLong) device_.NoteSilent(peer.gid);
  *reason = "the RDMA device " + device_.name() + " does not connect a queue pair from its GID " +
            std::to_string(device_.gid_index()) + ": " + std::strerror(error);
  return kNotMade;
}

void VerbsQueuePair::Fail() {
  ibv_qp_attr broken{};
  broken.qp_state = IBV_QPS_ERR;
  (void)ibv_modify_qp(pair_, &broken, IBV_QP_STATE);  // destroying it does the same
}

}  // namespace onetrip
