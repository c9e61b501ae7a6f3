// Fabric: one-sided operations on memory nodes, the contract that every backend keeps.
//
// A worker has one Fabric and through it one ordered channel to each memory node.
//  - READ and WRITE take any length and alignment and are not atomic: a concurrent reader may see
//    any mixture at a grain of 8 bytes; an aligned 8-byte word is never torn.
//  - CAS, FAA and MAX take one aligned 8-byte word and are atomic against each other. A WRITE of
//    that word may come amid one, and be lost: no word is the target of both while it is shared.
//  - Operations on one channel take effect in order, READs among themselves and all behind a WRITE,
//    CAS, FAA or MAX; but a READ may bring what such ones behind it have changed. Nothing orders
//    two channels.
//  - What a backend gives beyond that its FabricTraits say.
//  - A node that is lost fails the operations on it: they may have taken effect, whole or in part,
//    now or later. Operations refused before they were sent surely have not.
// Knows nothing of the cluster: the LeaseGuard it is given says until when it may post.
// Single-threaded, like all of a worker.
#ifndef ONETRIP_CLIENT_CORE_FABRIC_FABRIC_H_
#define ONETRIP_CLIENT_CORE_FABRIC_FABRIC_H_

#include <coroutine>
#include <cstdint>

#include "client_core/base/clock.h"
#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/fabric/control.h"
#include "client_core/fabric/round_trip.h"
#include "client_core/layout/types.h"

namespace onetrip {

// Until when, by the executor's steady clock, a worker may touch memory nodes, and under which map.
struct LeaseGuard {
  static constexpr uint64_t kForever = ~uint64_t{0};
  uint64_t deadline_ns = kForever;
  Epoch epoch;
};

// The same for all of a process's life.
struct FabricTraits {
  bool has_max = true;  // MAX may be posted
  // A READ brings nothing that an operation behind it on its channel has changed. A queue pair of
  // RDMA does not promise that without a fence, which costs a round trip.
  bool reads_first = true;
};

class Fabric {
 public:
  explicit Fabric(const Clock& clock) : clock_(clock) {}
  virtual ~Fabric() = default;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // An empty round trip from this worker's pool.
  RoundTripPtr NewRoundTrip() { return pool_.Get(); }

  // `co_await fabric.Post(rt)`: posts and waits until every node has answered or was lost.
  //   ok               every operation took effect
  //   kFenced          the lease has run out: nothing was sent
  //   kUnknownOutcome  a node was lost: op(i).ok tells which operations surely took effect
  // On a backend whose operations complete inline the caller never suspends. The caller is resumed
  // from the executor.
  class PostAwaiter {
   public:
    PostAwaiter(Fabric& fabric, const RoundTripPtr& round_trip)
        : fabric_(fabric), round_trip_(round_trip) {}
    bool await_ready() {
      if (fabric_.lease_.deadline_ns != LeaseGuard::kForever &&
          fabric_.clock_.NowNs() >= fabric_.lease_.deadline_ns) {
        fenced_ = true;
        return true;
      }
      return fabric_.inline_ && (fabric_.Submit(round_trip_, {}), true);
    }
    bool await_suspend(std::coroutine_handle<> waiter) {
      return !fabric_.Submit(round_trip_, waiter);
    }
    Status await_resume() const {
      if (fenced_) return Status(StatusCode::kFenced, "the lease has run out");
      if (round_trip_->all_ok()) return Status::Ok();
      return Status(StatusCode::kUnknownOutcome, "a memory node was lost");
    }

   private:
    Fabric& fabric_;
    const RoundTripPtr& round_trip_;
    bool fenced_ = false;
  };
  [[nodiscard]] PostAwaiter Post(const RoundTripPtr& round_trip) {
    return PostAwaiter(*this, round_trip);
  }

  // The same in this turn. REQUIRES: completes_inline().
  Status PostInline(const RoundTripPtr& round_trip) {
    PostAwaiter post(*this, round_trip);
    CHECK(inline_);
    (void)post.await_ready();
    return post.await_resume();
  }

  // Asks a memory node for or gives it back coarse blocks (FUSEE 4.4); rare, off the data path.
  // kUnavailable: surely not done. kUnknownOutcome: the node was lost meanwhile.
  virtual Task<Result<ControlReply>> Control(NodeId node, ControlRequest request) = 0;

  // With `evicted`, evicts `node`: requests that wait for it fail soon, with their outcome unknown,
  // later ones are refused unsent, Control() is refused with kUnavailable, and settled() does not
  // wait for it. Requests sent before may still take effect there, until the node has closed the
  // channel; so its memory counts for nothing until it has been copied anew. Without `evicted`,
  // readmits the node, on a new channel. `node` may be one that is not known yet.
  virtual void SetEvicted(NodeId node, bool evicted) = 0;

  // True if a request posted to `node` now goes out on an open channel, as far as is known.
  [[nodiscard]] virtual bool Reaches(NodeId node) const = 0;

  // Hints that these bytes will be read soon, or written. No effect but on memory of this host.
  virtual void Prefetch(RemoteAddr /*at*/, uint32_t /*bytes*/) const {}
  virtual void PrefetchForWrite(RemoteAddr /*at*/, uint32_t /*bytes*/) const {}

  // True if no failed request may still take effect, but on evicted nodes: every other node that
  // failed a batch has refused the rest of that connection since. Until then the worker's epoch
  // stands still (PROTOCOLS, "What failed is not over").
  [[nodiscard]] virtual bool settled() const { return true; }

  virtual void set_lease(LeaseGuard lease) { lease_ = lease; }
  [[nodiscard]] const LeaseGuard& lease() const { return lease_; }
  // Operations always complete inside Submit.
  [[nodiscard]] bool completes_inline() const { return inline_; }
  [[nodiscard]] const FabricTraits& traits() const { return traits_; }

 protected:
  // Round trips lie in `memory`, as of RoundTripPool.
  Fabric(const Clock& clock, bool completes_inline, FabricTraits traits = {},
         RoundTripMemory* memory = nullptr)
      : clock_(clock), pool_(memory), inline_(completes_inline), traits_(traits) {
    CHECK(!completes_inline || traits.reads_first);
  }

  // Posts every operation. Returns true if all nodes have answered already (`waiter` is then not
  // resumed), else resumes `waiter` later, keeping a reference of its own until then.
  virtual bool Submit(const RoundTripPtr& round_trip, std::coroutine_handle<> waiter) = 0;

 private:
  const Clock& clock_;
  RoundTripPool pool_;
  LeaseGuard lease_;
  bool inline_ = false;
  FabricTraits traits_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_FABRIC_FABRIC_H_
