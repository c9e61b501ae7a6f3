// NodeSession: a memory node's part in what the master does to the cluster: its place in the map,
// serving, fences and views (docs/MASTER.md).
//
// Pure: no threads, sockets or clocks. The process that has it hands in what happens, one event at
// a time, and does what TakeEffects() says, in that order; so the gRPC client and the simulated one
// run the same text. It outlives streams: on each the node says again what it holds and where it
// serves, and before that it refuses whom the master has expelled meanwhile.
#ifndef ONETRIP_CLIENT_CORE_CLUSTER_NODE_SESSION_H_
#define ONETRIP_CLIENT_CORE_CLUSTER_NODE_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/messages.h"
#include "client_core/cluster/view.h"
#include "client_core/layout/types.h"

namespace onetrip {

// How old a node's memory is, and what its node has seen (ImageAge in layout/shm_wire.h).
struct NodeAge {
  uint64_t mark = 0;
  uint64_t told = 0;
  uint64_t epoch = 0;
  uint32_t next_worker = 0;
};

// The offer of a memory node.
struct NodeOffer {
  uint64_t bytes = 0;        // the memory's, whole regions
  uint64_t incarnation = 0;  // names the memory
  // Of memory of an earlier life: whose it is.
  bool adopted = false;
  uint64_t owner_cluster = 0;
  NodeId owner_node{};
  // Why that memory cannot be trusted, one line; empty: it can. The place is given once the view
  // does not count on it any more, which may take as long as other nodes are away.
  std::string damage = {};
  bool accepted = false;  // it cannot, but is to count as it is
  // How old that memory is; zeros: not known.
  NodeAge age = {};
  bool accepts_old = false;  // it counts even if it is older than what the master remembers
  // The copy of the master's state that an earlier process kept, as a file has it; empty: none.
  std::string state = {};
};

// The master's answer to it. The node listens only afterwards, so that its address is said later.
struct NodePlace {
  uint64_t cluster = 0;
  NodeId node{};
  View view;  // whose placement the node must hold
  std::vector<WorkerId> expelled;
  uint64_t mark = 0;          // that the master remembers: the next life's must be above it
  std::string outdated = {};  // the memory is an older copy, why in one line; it counts for nothing
};

// The steps that the process is to do next.
namespace node_effect {

// Ask the master on the stream that is up, and wait for as long as that lasts: OnPlace() or
// OnNoPlace().
struct AskForPlace {
  JoinNodeRequest request;
};
// The node has its place, for the first time of this process. Once it listens: OnServes().
struct TakePlace {
  NodePlace place;
};
// It has its place again: refuse `expelled`, whatever becomes of that take the view, and then:
// OnTakenUp().
struct TakePlaceAgain {
  std::shared_ptr<const View> view;
  std::vector<WorkerId> expelled;
};
// Tell the master where agents find the node: OnServeAnswer().
struct AskToServe {
  NodeAddress address;
};
// The master has answered that agents are told of the node.
struct Serve {};
// Refuse these workers, behind what was to be done before: OnFenced().
struct Fence {
  FenceMessage fence;
};
// Take the view, behind what was to be done before.
struct UseView {
  std::shared_ptr<const View> view;
};
// Break the stream that is up and open another.
struct OpenAnother {
  std::string reason;
};
// The process cannot be a node of the cluster; `reason` is one line.
struct GiveUp {
  Status status;
  std::string reason;
};
// An ERROR line.
struct Complain {
  std::string text;
};

}  // namespace node_effect

// A FencedMessage is to be sent on the stream that is up, or dropped: the master asks again.
using NodeEffect =
    std::variant<FencedMessage, node_effect::AskForPlace, node_effect::TakePlace,
                 node_effect::TakePlaceAgain, node_effect::AskToServe, node_effect::Serve,
                 node_effect::Fence, node_effect::UseView, node_effect::OpenAnother,
                 node_effect::GiveUp, node_effect::Complain>;

class NodeSession {
 public:
  explicit NodeSession(NodeOffer offer) : offer_(std::move(offer)) {}

  // In the order in which they are to be done.
  [[nodiscard]] std::vector<NodeEffect> TakeEffects() { return std::exchange(effects_, {}); }

  // ---- Events ----

  // A stream is up; the memory is of this age now.
  void OnWelcome(const NodeAge& age);
  // The master's answers. `attending`: a stream is up; without one a question has failed because
  // its stream broke, and is put again on the next.
  void OnPlace(NodePlace place);
  void OnNoPlace(Status status, const std::string& why, bool attending);
  void OnServeAnswer(Status status, const std::string& why, bool attending);
  // The process listens at `address`, which it does for as long as it lives.
  void OnServes(const NodeAddress& address);
  void OnTakenUp() { AskToServe(); }
  void OnFence(FenceMessage fence);
  void OnFenced(uint64_t id, Status status, const std::string& reason);
  void OnView(std::shared_ptr<const View> view);

  // ---- What it knows ----

  // The epoch of the newest view that the master has sent; 0: none.
  [[nodiscard]] uint64_t epoch() const { return epoch_; }
  [[nodiscard]] bool has_place() const { return node_.has_value(); }
  // The master has given it its place on the newest stream.
  [[nodiscard]] bool in_place() const { return in_place_; }

 private:
  void AskToServe();
  // The master refuses a node that had its place: that may mend, and memory that is given up does
  // not come back.
  void AskAgain(const std::string& why);

  const NodeOffer offer_;
  std::vector<NodeEffect> effects_;
  std::optional<NodeId> node_;  // once it has a place
  uint64_t cluster_ = 0;        // ... and whose
  std::optional<NodeAddress> address_;
  bool in_place_ = false;
  bool serving_ = false;  // the master has answered so, on whatever stream
  uint64_t epoch_ = 0;
  std::string told_;  // why it was refused, in the log
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_CLUSTER_NODE_SESSION_H_
