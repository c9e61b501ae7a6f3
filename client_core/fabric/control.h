// Requests of a worker to a memory node's process: for coarse blocks, and nothing else.
//
// MemoryEndpoint is a node as the backends see it: bytes and a control entry. The node's process
// implements it; fabric backends execute on it.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_CONTROL_H_
#define ONETRIP_CLIENT_CORE_FABRIC_CONTROL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"

namespace onetrip {

struct ControlRequest {
  enum class Kind : uint8_t {
    kAlloc,  // grant `size_class.blocks()` contiguous free blocks of a region this node is primary
             // of: that of `block`, or any if that is null. Or an open block of that class
    kGrant,  // record the grant of exactly the blocks at `block`: on the region's other replicas.
             // Open blocks count as free
    kFree,   // take back the blocks at `block`
    kTakeOver,      // they are `owner`'s from now on: the primary's only if they are `from`'s, the
                    // other replicas', which may know less, whoever has them. Where `owner` or
                    // `from` is kNobody, on every replica only if they are `from`'s, or `owner`'s
                    // already
    kAllocReserve,  // as kAlloc, from the blocks, too, that the node keeps for what gives back more
                    // than it takes, and for a few subtables
    kAllocSparse,   // the open block of which least is used, of any class but spans and roots; none
                    // of which more than three quarters are. `size_class` says nothing
    kAllocOpen,     // an open block of any class: of the region of `block`, or of any that is given
                    // up if that is null. `size_class` says nothing
  };
  static constexpr Kind kLastKind = Kind::kAllocOpen;
  Kind kind = Kind::kAlloc;
  SizeClass size_class;
  WorkerId owner;
  GlobalAddr block;  // kGrant, kFree, kTakeOver: the first block; kAlloc, kAllocOpen: see there
  WorkerId from{};   // kTakeOver
};

struct ControlReply {
  enum class Outcome : uint8_t {
    kDone,
    kFull,      // kAlloc: no region has that many contiguous free blocks, or only the reserve is
                // left; kGrant, kFree, kTakeOver: the region is missing here
    kConflict,  // kGrant: a block is taken; kFree: it is not the caller's; kTakeOver: the blocks
                // are not one grant of that class, or not `from`'s
    kOpened,  // kAlloc: the block was open, and is the caller's now; what is free the bitmap tells
  };
  static constexpr Outcome kLastOutcome = Outcome::kOpened;
  Outcome outcome = Outcome::kDone;
  GlobalAddr block;
  SizeClass size_class{};  // kOpened: of the block
  bool is_tight = false;   // kAlloc: the node has few free blocks left
};

// A request that a worker has started and does not wait for.
struct PendingControl {
  std::atomic<bool> done{false};      // set last
  std::optional<ControlReply> reply;  // nothing: the node was lost meanwhile; it may have been done
};

// A memory node's memory and its control entry. Thread-safe: every worker may use it at any time.
class MemoryEndpoint {
 public:
  virtual ~MemoryEndpoint() = default;

  // Constant for the endpoint's life.
  [[nodiscard]] virtual std::byte* base() const = 0;
  [[nodiscard]] virtual uint64_t bytes() const = 0;

  virtual ControlReply Handle(const ControlRequest& request) = 0;
  // Starts the same, without waiting for it. What is in this process is done at once.
  virtual std::shared_ptr<const PendingControl> Start(const ControlRequest& request) {
    auto pending = std::make_shared<PendingControl>();
    const ControlReply reply = Handle(request);
    if (reachable()) pending->reply = reply;
    pending->done.store(true, std::memory_order_release);
    return pending;
  }

  // True while the node answers; false from the moment it is lost.
  [[nodiscard]] bool reachable() const { return reachable_.load(std::memory_order_acquire); }
  void SetReachable(bool reachable) { reachable_.store(reachable, std::memory_order_release); }

 private:
  std::atomic<bool> reachable_{true};
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_CONTROL_H_
