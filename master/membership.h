// Membership: the master's state as a pure state machine: cluster map, worker ids,
// keyspaces. No clock, no I/O, no thread: whoever drives it makes its effects durable and known.
#ifndef ONETRIP_MASTER_MEMBERSHIP_H_
#define ONETRIP_MASTER_MEMBERSHIP_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/master_client.h"
#include "client_core/cluster/view.h"
#include "master/placement.h"

namespace onetrip {

struct ClusterShape {
  uint16_t nodes = 3;
  int replicas = 3;
  uint64_t node_bytes = 1ULL << 30;  // per memory node; whole regions of it are used
};

class MembershipState {
 public:
  // kInvalidArgument: fewer nodes than replicas, more replicas than kMaxReplicas, or not one region
  // per node.
  static Result<MembershipState> Create(const ClusterShape& shape);
  // The state of a cluster that there was before, or whose map was made elsewhere: `view` without
  // its seats, the members on the seats, and the first ids that no member has had. REQUIRES: seats
  // within kMaxWorkers.
  static MembershipState Restore(View view, std::span<const Membership> seats, uint32_t next_worker,
                                 uint32_t next_keyspace);
  MembershipState() = default;

  [[nodiscard]] const View& view() const { return view_; }

  // Each of these four makes a new view with the next epoch.

  // A member with an id that no member ever had. kUnavailable: kMaxWorkers are members, or the ids
  // are used up.
  Result<Membership> Join();
  // Frees the member's index. kInvalidArgument: it is not a member.
  Status Leave(const Membership& membership);
  // A fresh keyspace for `database`, or for all.
  Status FlushKeyspaces(std::optional<uint32_t> database);
  // Two databases exchange their keyspaces. kInvalidArgument: one is none.
  Status SwapKeyspaces(uint32_t first, uint32_t second);

  // The steps of a change that several make together; NextEpoch() ends it, and makes it one view.
  // Results and errors are those of Join, Leave, FlushKeyspaces and SwapKeyspaces.
  Result<Membership> TakeSeat();
  Status FreeSeat(const Membership& membership);
  Status FreshKeyspaces(std::optional<uint32_t> database);
  Status ExchangeKeyspaces(uint32_t first, uint32_t second);
  // REQUIRES: the view has the node, by id.
  void SetNode(NodeId node, uint64_t incarnation, const NodeAddress& address);
  // REQUIRES: likewise.
  void SetNodeOut(NodeId node, bool out);
  // Its replicas are missing from now on, and it is out. REQUIRES: likewise, and another replica of
  // each of its regions lives. Returns the regions that have changed.
  std::vector<uint32_t> LoseNode(NodeId node);
  // The copy on `node` is complete, and is the last of the live replicas. REQUIRES: it is missing.
  void CopyDone(uint32_t region, NodeId node);
  // Replicas missing on `lost` go to nodes with room: ReplaceNode() of placement.h with
  // `node_bytes`. Those that the view does not name yet are `nodes` by id; it names all up to the
  // highest with a region then. Returns the regions that have changed.
  std::vector<uint32_t> ReplaceNode(NodeId lost, std::span<const uint64_t> node_bytes,
                                    std::span<const NodeInfo> nodes);
  // A replica is on another node from now on. REQUIRES: it was where `move` says; the view names
  // the other node.
  void MoveReplica(const RegionMove& move);
  // The view has more regions, numbered behind those that there are. REQUIRES: it names their
  // nodes, and has nothing in those places.
  void AddRegions(std::span<const RegionPlacement> regions);
  // The view names `nodes` by id, as far as it did not, with what they are now.
  void NameNodes(std::span<const NodeInfo> nodes);
  void SetRecordsOnly(bool records_only) { view_.records_only = records_only; }
  // The last `regions` regions leave. REQUIRES: not all.
  void SetLeaving(uint16_t regions);
  void SetDirectory(uint8_t directory) { view_.directory = directory; }
  // The view lacks the regions that leave.
  void CutRegions();
  // Makes the missing replica on `node` the one that is copied next. REQUIRES: likewise.
  void CopyNext(uint32_t region, NodeId node);
  void NextEpoch() { ++view_.epoch.value; }
  // Ids below this one have been given out already.
  void RaiseNextWorker(uint32_t next_worker) { next_worker_ = std::max(next_worker_, next_worker); }

  // The first ids that no member has had.
  [[nodiscard]] uint32_t next_worker() const { return next_worker_; }
  [[nodiscard]] uint32_t next_keyspace() const { return next_keyspace_; }

 private:
  struct Seat {
    WorkerId worker;
    bool taken = false;
  };

  void GrowSeats(size_t count);

  View view_;
  std::vector<Seat> seats_;  // by worker index
  uint32_t next_worker_ = 1;
  uint32_t next_keyspace_ = 1;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_MEMBERSHIP_H_
