// VerbsQueuePair: one reliable connected queue pair between a worker and a memory node, connected
// by hand: both ends exchange TcpQueuePair over their tcp channel.
//
// Sequence numbers are drawn at random, so that packets of an earlier queue pair of that number
// are not taken for this one's. One thread.
#ifndef ONETRIP_CLIENT_CORE_VERBS_QUEUE_PAIR_H_
#define ONETRIP_CLIENT_CORE_VERBS_QUEUE_PAIR_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>
#include <string>

#include "client_core/base/rng.h"
#include "client_core/base/status.h"
#include "client_core/layout/tcp_wire.h"
#include "client_core/verbs/device.h"

namespace onetrip {

struct VerbsDepth {
  uint32_t requests = 1;      // posted and not completed
  uint32_t inline_bytes = 0;  // that a WRITE may carry in its request; what there is may be more
};

class VerbsQueuePair {
 public:
  // `device` and `completions` outlive it. The other end may do what `may` says to memory that is
  // registered for it: IBV_ACCESS_*. *reason, if it fails: one line.
  static Result<std::unique_ptr<VerbsQueuePair>> Make(VerbsDevice& device, ibv_cq* completions,
                                                      VerbsDepth depth, int may, Rng& rng,
                                                      std::string* reason);
  VerbsQueuePair(const VerbsQueuePair&) = delete;
  VerbsQueuePair& operator=(const VerbsQueuePair&) = delete;
  // Returns when the device touches no memory for it any more.
  ~VerbsQueuePair();

  [[nodiscard]] const TcpQueuePair& address() const { return own_; }
  [[nodiscard]] uint32_t inline_bytes() const { return inline_bytes_; }
  // From here on requests go out and come in. Once. *reason, if it fails: one line.
  Status Connect(const TcpQueuePair& peer, std::string* reason);
  // 0, or the error and the first request that was not posted.
  int Post(ibv_send_wr* chain, ibv_send_wr** bad) { return ibv_post_send(pair_, chain, bad); }
  // Whatever is under way fails, and nothing more is accepted from the other end.
  void Fail();

 private:
  VerbsQueuePair(VerbsDevice& device, ibv_qp* pair, int may, uint32_t inline_bytes,
                 uint32_t sequence);

  VerbsDevice& device_;
  ibv_qp* const pair_;
  const int may_;
  const uint32_t inline_bytes_;
  TcpQueuePair own_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_VERBS_QUEUE_PAIR_H_
