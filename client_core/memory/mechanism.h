// The work of a worker beside, or around, its clients' operations, told to whoever watches.
//
// Each of these is right by itself; what goes wrong goes wrong where two meet. Tests count who met
// whom (tests/sim/meetings.h).
#ifndef ONETRIP_CLIENT_CORE_MEMORY_MECHANISM_H_
#define ONETRIP_CLIENT_CORE_MEMORY_MECHANISM_H_

#include <cstdint>

namespace onetrip {

enum class Mechanism : uint8_t {
  kSplit,         // steps of a split of a subtable, whoever began it
  kTakeOver,      // blocks of workers that are gone get a new owner
  kExpiryWalk,    // for expired records
  kSweep,         // the leftovers of a flush become free
  kResolve,       // half-done slot writes are ended, after a node was lost
  kScrub,         // registers are scrubbed, after a node was lost
  kCopy,          // a region is copied to a node that lacks it
  kMove,          // a region goes from one node to another
  kGrow,          // regions are added
  kLeave,         // regions are given up: what lies there goes elsewhere, the index or keys
  kEndRegisters,  // all of them become records, before a move
  kExtents,       // a value in extents is written
  kLargeTree,     // ... or a tree's pages, by a change that has given up its pin
  kExhaustion,    // a register's timestamps end: its key is registered anew
  kEpochAdvance,
  kOpenBlocks,  // partly used blocks become no worker's
  kAccount,     // lost memory in a worker's own blocks is looked for
  kCompaction,  // blocks of which little is used are emptied
  kFlush,       // from its request to its answer
  kSwap,        // ... of two databases
  kHotWrite,    // a record is written without a search
  kCount,
};

// Called by the worker.
class MechanismObserver {
 public:
  virtual ~MechanismObserver() = default;
  virtual void Began(Mechanism mechanism) = 0;
  virtual void Ended(Mechanism mechanism) = 0;
};

// A mechanism at work for as long as this lives. `observer`, which may be null, outlives it.
class MechanismScope {
 public:
  MechanismScope(MechanismObserver* observer, Mechanism mechanism)
      : observer_(observer), mechanism_(mechanism) {
    if (observer_ != nullptr) observer_->Began(mechanism_);
  }
  MechanismScope(const MechanismScope&) = delete;
  MechanismScope& operator=(const MechanismScope&) = delete;
  ~MechanismScope() {
    if (observer_ != nullptr) observer_->Ended(mechanism_);
  }

 private:
  MechanismObserver* const observer_;
  const Mechanism mechanism_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_MECHANISM_H_
