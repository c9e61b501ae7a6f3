// RetiredRegisters: tells all workers which registers have left the index, so that their memory can
// be used again although they are reached through addresses that outlive operations (PROTOCOLS,
// "Retired registers").
//
// A worker publishes what it retires in a ring of its own, within an epoch e. Whoever goes on to
// epoch e + 2 has seen everybody's passing of e + 1, and therefore the entry; it forgets the
// register before it does. Its operations that still know the address began in e + 1 or earlier. So
// the memory is safe when all have passed e + 1, by the same rule as an object's.
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_RETIRED_REGISTERS_H_
#define ONETRIP_CLIENT_CORE_MEMORY_RETIRED_REGISTERS_H_

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/region_layout.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

// Who remembers registers between operations.
class RegisterListener {
 public:
  virtual ~RegisterListener() = default;
  // The register at `addr` has left the index: forget it.
  virtual void Forget(GlobalAddr addr) = 0;
  // Any register may have: look each up before it is used again.
  virtual void DoubtAll() = 0;
};

class RetiredRegisters final : public BeforeEpoch {
 public:
  struct Retired {
    GlobalAddr addr;
    SizeClass size_class;
    uint64_t unlinked;  // the caller's
  };

  RetiredRegisters(WorkerContext& context, Reclaimer& reclaimer)
      : context_(context), reclaimer_(reclaimer) {}

  // Whom to tell; outlives this.
  void SetListener(RegisterListener* listener) { listener_ = listener; }
  // Takes the worker's seat and notes what the others have published so far. REQUIRES: the worker
  // has published its first epoch and has not yet looked anything up.
  Task<Status> Join();

  void Add(const Retired& retired) { pending_.push_back(retired); }
  [[nodiscard]] bool HasPending() const { return !pending_.empty(); }
  // Many more wait than the seat's entries take in a round.
  [[nodiscard]] bool is_behind() const {
    constexpr size_t kRounds = 4;
    return pending_.size() > kRounds * kSeatRingEntries;
  }
  [[nodiscard]] uint64_t added() const { return head_ + pending_.size(); }
  // Until it is given one, the ring is that of the seat, whose few entries take as many rounds.
  [[nodiscard]] bool needs_ring() const { return given_.is_null(); }
  // Memory of kRetiredRingBytes for the ring. Once.
  void GiveRing(GlobalAddr ring) { given_ = ring; }
  [[nodiscard]] GlobalAddr given() const { return given_; }
  // The ring that it was given is to be left, since it lies where memory is given up; it may be
  // given another.
  void LeaveRing() {
    if (left_.is_null()) left_ = std::exchange(given_, GlobalAddr());
  }
  [[nodiscard]] GlobalAddr left() const { return left_; }
  // Its memory, once no worker reads it any more and all replicas say so; null: not yet.
  Task<Result<GlobalAddr>> TakeLeftRing();
  // Publishes what is pending, as far as the ring has room; `published` is what was.
  Task<Status> Publish(std::vector<Retired>* published);

  // Asks all workers, this one included, to look every register up anew. When every worker has
  // passed the epoch after the one in which this ends, by the rule of the memory, no worker uses a
  // register that was not in the index then.
  Task<Status> DoubtAll();

  // Gives the ring's memory back, if it was given any: no worker reads it any more. REQUIRES:
  // everything that was published is safe, and nothing is pending; nothing is retired afterwards.
  Task<Result<GlobalAddr>> Leave();

  // Says that nothing of this worker's can be lost in blocks that are not its own: others need not
  // look for it when it is gone. REQUIRES: Leave().
  Task<Status> SignOff();

  // These seats, of the 64 from 64 * `word` on, are live no more.
  void NoteGone(size_t word, uint64_t seats) { gone_[word] |= seats; }
  // How many workers have gone and not signed off, as far as heads have been read since.
  [[nodiscard]] uint64_t departures() const { return departures_; }

  // Forgets what others have retired.
  Task<Status> Prepare() override;

 private:
  struct Seen {
    uint64_t worker = 0;
    uint64_t head = 0;
    uint64_t doubts = 0;
    bool is_counted = false;  // as gone
  };
  struct Unsafe {
    uint64_t head;  // one behind the last entry
    uint64_t epoch;
  };
  void NoteWhatAllHaveSeen();
  // Where entries go once all have seen what is in the ring.
  [[nodiscard]] GlobalAddr NextRing() const;
  Task<Status> WriteHead(GlobalAddr ring, uint64_t head);
  Task<Status> WriteEntry(RetiredRing written);
  // The entry names no ring any more, whosever it is.
  Task<Status> ClearRing();
  Task<Status> ReadHeads(std::vector<RetiredRing>* heads);
  Task<Status> ReadRing(WorkerIndex seat, const RetiredRing& ring, uint64_t from);

  WorkerContext& context_;
  Reclaimer& reclaimer_;
  RegisterListener* listener_ = nullptr;
  std::deque<Retired> pending_;
  GlobalAddr given_;
  GlobalAddr left_;       // LeaveRing()
  GlobalAddr ring_;       // null: nothing has been published yet
  GlobalAddr told_ring_;  // that the entry names on all replicas, as far as is known
  uint64_t head_ = 0;
  uint64_t doubts_ = 0;
  uint64_t departures_ = 0;
  std::array<uint64_t, kMaxWorkers / 64> gone_{};  // seats whose heads have not been read since
  uint64_t tail_ = 0;                              // entries before it have been seen by all
  std::deque<Unsafe> unsafe_;                      // the others, in order of epoch
  std::vector<Seen> seen_;                         // by worker index
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_RETIRED_REGISTERS_H_
