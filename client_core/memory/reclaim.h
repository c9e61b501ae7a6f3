// Epoch-based reclamation across workers, without the master (PROTOCOLS, "Memory").
//
// Every operation pins the epoch it starts in. A worker publishes in the root area the epoch it has
// passed: every operation it started earlier has completed on every node. The smallest published
// epoch lets all go on to the next. Memory retired in epoch e is reused when every live worker has
// passed e + 1, for then no operation that could have read its address before it was unlinked is
// still running: an operation finds addresses only through slots it reads itself.
//
// An entry counts only if the view says that its seat's worker lives: what a dead worker left there
// holds no worker back, once it can do nothing any more. A worker's first epoch is published when
// all others have a view with its seat, and is no smaller than any that the table holds, the dead's
// included: epochs only grow, whatever views of the living those have who join.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_RECLAIM_H_
#define ONETRIP_CLIENT_CORE_MEMORY_RECLAIM_H_

#include <array>
#include <cstdint>
#include <numeric>
#include <utility>

#include "client_core/base/check.h"
#include "client_core/base/planted_bug.h"
#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/layout/region_layout.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Reclaimer;

// Prepares what has to happen before a worker goes on to the next epoch.
class BeforeEpoch {
 public:
  virtual ~BeforeEpoch() = default;
  // Not ok: the worker stays in its epoch for now.
  virtual Task<Status> Prepare() = 0;
};

// Pins the epoch of an operation. Movable; ends with its scope.
class EpochPin {
 public:
  EpochPin() = default;
  EpochPin(EpochPin&& other) noexcept
      : pins_(std::exchange(other.pins_, nullptr)),
        observer_(other.observer_),
        ticket_(other.ticket_) {}
  EpochPin& operator=(EpochPin&& other) noexcept {
    std::swap(pins_, other.pins_);
    std::swap(observer_, other.observer_);
    std::swap(ticket_, other.ticket_);
    return *this;
  }
  ~EpochPin() { Release(); }

  void Release() {
    if (pins_ == nullptr) return;
    --*std::exchange(pins_, nullptr);
    if (observer_ != nullptr) observer_->Unpinned(ticket_);
  }

  [[nodiscard]] bool is_held() const { return pins_ != nullptr; }
  // Another pin of the same epoch; none if this is none.
  [[nodiscard]] EpochPin Share() const {
    return pins_ == nullptr ? EpochPin() : EpochPin(pins_, observer_);
  }

 private:
  friend class Reclaimer;
  EpochPin(uint32_t* pins, MemoryObserver* observer) : pins_(pins), observer_(observer) {
    ++*pins_;
    if (observer_ != nullptr) ticket_ = observer_->Pinned();
  }
  uint32_t* pins_ = nullptr;
  MemoryObserver* observer_ = nullptr;
  uint64_t ticket_ = 0;
};

class Reclaimer {
 public:
  explicit Reclaimer(WorkerContext& context) : context_(context) {}
  ~Reclaimer();

  // `before` is asked whenever all workers allow the next epoch; it outlives the reclaimer's use.
  void SetBeforeEpoch(BeforeEpoch* before) { before_ = before; }

  // Publishes this worker's first epoch. REQUIRES: completes before any Pin.
  Task<Status> Join();
  // Withdraws from the table. REQUIRES: nothing is pinned. kUnavailable: nothing was done, since a
  // failed batch may still take effect (Fabric::settled).
  Task<Status> Leave();

  // Keeps everything an operation can find from being reused until the pin is released. REQUIRES:
  // released only when every batch of the operation has completed on every node.
  EpochPin Pin() {
    CHECK(current_ != 0);
    return EpochPin(&pins_[current_ % pins_.size()], context_.memory_observer);
  }

  // True if nothing is pinned.
  [[nodiscard]] bool is_idle() const {
    return std::accumulate(pins_.begin(), pins_.end(), 0U) == 0;
  }
  // True if `pin` is one of the current epoch.
  [[nodiscard]] bool IsOfCurrentEpoch(const EpochPin& pin) const {
    return pin.pins_ == &pins_[current_ % pins_.size()];
  }
  // The tag for memory that is unlinked now.
  [[nodiscard]] uint64_t current_epoch() const { return current_; }
  // True if memory retired under `tag` may be reused.
  [[nodiscard]] bool IsSafe(uint64_t tag) const {
    return tag + (Planted(Bug::kEpochTooEarly) ? 1 : 2) <= smallest_passed_;
  }

  // A worker's memory that is retired and not yet given back: how many bytes, and the first epoch
  // in which it unlinked some of it; without any, as large as can be. And what memory it is short
  // of.
  struct Backlog {
    uint64_t bytes = 0;
    uint64_t retired_since = ~uint64_t{0};
    SizeClass wanted = {};  // not valid: none
    bool gives = false;
    bool tight = false;
  };
  // One round trip: publishes what this worker has passed and its backlog, reads everybody's.
  // Concurrent calls join the one that runs. kUnavailable: as for Leave.
  Task<Status> Tick(Backlog backlog);

  // Bytes that other workers had retired and not yet given back, as of the last Tick.
  [[nodiscard]] uint64_t others_retired_bytes() const { return others_retired_bytes_; }
  [[nodiscard]] uint64_t smallest_passed() const { return smallest_passed_; }
  // As of the last Tick: what anybody unlinked in earlier epochs than this is in a list of free
  // objects or a bitmap, or was of a worker that died before.
  [[nodiscard]] uint64_t retired_since() const { return retired_since_; }
  // As of the last Tick: the size classes of which others are short, a bit each; and whether
  // another worker is about to open or to give back blocks.
  [[nodiscard]] uint64_t others_want() const { return others_want_; }
  [[nodiscard]] bool others_give() const { return others_give_; }
  // ... and whether a memory node has told another worker that it has few free blocks.
  [[nodiscard]] bool others_tight() const { return others_tight_; }

 private:
  // The oldest epoch with an operation still running, or the current one.
  [[nodiscard]] uint64_t Passed() const {
    if (Planted(Bug::kPassedWhilePinned)) return current_;
    return current_ > 1 && pins_[(current_ - 1) % pins_.size()] != 0 ? current_ - 1 : current_;
  }
  [[nodiscard]] Status CheckSettled() const;
  // True if entry `index` of the table is that of a worker that runs operations. Uses the newest
  // view: a worker that had published when the table was read is in it.
  [[nodiscard]] bool Counts(const EpochEntry& entry, uint32_t index) const {
    return entry.passed != 0 && context_.view().IsLive(WorkerIndex{static_cast<uint16_t>(index)});
  }
  // One round trip: writes our entry, then reads the table. `others_largest_passed` may be null.
  Task<Status> Publish(uint64_t passed, Backlog backlog, uint64_t* others_largest_passed);

  WorkerContext& context_;
  BeforeEpoch* before_ = nullptr;
  uint64_t current_ = 0;  // 0: not joined
  uint64_t smallest_passed_ = 0;
  uint64_t others_retired_bytes_ = 0;
  uint64_t retired_since_ = 0;
  uint64_t others_want_ = 0;
  bool others_give_ = false;
  bool others_tight_ = false;
  // By epoch modulo its size: the current epoch is at most one ahead of the oldest pinned one.
  std::array<uint32_t, 4> pins_{};
  bool ticking_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_RECLAIM_H_
