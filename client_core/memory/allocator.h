// Allocator: second-level memory management of one worker (FUSEE 4.4; PROTOCOLS, "Memory").
//
// Memory nodes grant coarse blocks; the worker cuts each into objects of one size class and keeps
// their free lists locally, so that an allocation on the data path costs no round trip. An object
// that a worker unlinks is retired and, once no operation can still reach it, given back: to the
// free list if the block is its own, else as a bit in the block's bitmap, by FAA, which the owner
// sweeps. A block that is wholly free goes back to its memory node. One that is partly used is
// opened when others are short of memory, and at the end of the worker's life: it is nobody's then,
// its bitmap tells what is free, and its memory node gives it to whoever asks (PROTOCOLS, "Open
// blocks").
#ifndef ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_
#define ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/coro/sync.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/block_opener.h"
#include "client_core/memory/block_returner.h"
#include "client_core/memory/block_sweeper.h"
#include "client_core/memory/blocks_in_transit.h"
#include "client_core/memory/claims.h"
#include "client_core/memory/foreign_frees.h"
#include "client_core/memory/grants.h"
#include "client_core/memory/holders.h"
#include "client_core/memory/node_requests.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/retired_registers.h"
#include "client_core/memory/retirement.h"
#include "client_core/memory/shortage.h"
#include "client_core/memory/stale_locks.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Allocator {
 public:
  Allocator(WorkerContext& context, Reclaimer& reclaimer);
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  ~Allocator();

  // The scope of an operation that allocates: see Holders.
  class Holder : public Holders::Holder {
   public:
    explicit Holder(Allocator& allocator) : Holders::Holder(allocator.holders_) {}
  };

  // An object of `size_class` from local memory; null when Allocate() is needed.
  GlobalAddr TryAllocate(SizeClass size_class) { return blocks_.TakeObject(size_class); }

  // The same, asking memory nodes and waiting for retired memory, or for a view without a node that
  // does not answer, if need be, at most memory_wait_ms. kOutOfMemory when the pool holds nothing
  // more; kUnavailable when a node has not answered. While the worker is held nobody waits for a
  // view, since the view may wait for the caller. REQUIRES: the caller holds no epoch pin, which
  // could keep the memory it waits for from coming back.
  // `idle`, if not null, is the caller's, who holds nothing: whoever waits for holders does not
  // wait for it meanwhile.
  Task<Result<GlobalAddr>> Allocate(SizeClass size_class, Holder* idle = nullptr);

  // The same for a caller that holds a pin: asks memory nodes, but waits for nothing that is
  // retired.
  Task<Result<GlobalAddr>> AllocatePinned(SizeClass size_class, bool may_use_reserve = false);

  struct Object {
    GlobalAddr addr;
    SizeClass size_class;
  };
  // An object of `size_class` for a caller that holds a pin and gives up one of `replaced`, or as
  // much, in its place. When the pool is full it may be one of that class or larger, which then
  // serves the next caller, and in the end one of the memory nodes' reserve (PROTOCOLS, "The
  // reserve").
  Task<Result<Object>> AllocateInPlaceOf(SizeClass replaced, SizeClass size_class);
  // Whether that has just found the pool full.
  [[nodiscard]] bool was_full() const { return shortage_.was_full(); }
  // This class is wanted: others are to give what they do not need, and compaction begins.
  void TellShortage(SizeClass size_class);
  // Waits until what is retired by now is free again, but not beyond `deadline_ns` nor while all
  // hold. REQUIRES: the caller holds no pin.
  Task<void> AwaitRetired(uint64_t deadline_ns);
  // Whether it lies in a block of this worker's.
  [[nodiscard]] bool Owns(GlobalAddr addr) { return blocks_.Find(addr) != nullptr; }

  static constexpr size_t kBuffersOfAWrite = OwnBlocks::kBuffersOfAWrite;
  // As TryAllocate() for out-of-place buffers of the register at `near`: on its nodes, within the
  // reach of its words, and in memory that has been a buffer or nothing since it was zeroed, so
  // that no timestamp lock finds a leftover (PROTOCOLS, "Buffers").
  GlobalAddr TryAllocateBuffer(SizeClass size_class, GlobalAddr near) {
    return blocks_.TakeBuffer(size_class, near);
  }
  // Whether TryAllocateBuffer would succeed `count` times; one block may have to do.
  [[nodiscard]] bool HasBuffers(SizeClass size_class, GlobalAddr near, size_t count) {
    return blocks_.HasBuffers(size_class, near, count);
  }
  Task<Result<GlobalAddr>> AllocateBuffer(SizeClass size_class, GlobalAddr near,
                                          Holder* idle = nullptr);
  // As TryAllocate(), in a block near which this worker has a buffer of that class free; null:
  // there is none.
  GlobalAddr TryAllocateBeside(SizeClass size_class, SizeClass buffer_class) {
    return blocks_.TakeBeside(size_class, buffer_class);
  }
  // Whether not all regions have the same nodes: there may be room elsewhere, if none is left near
  // some register.
  [[nodiscard]] bool has_elsewhere() const { return blocks_.has_elsewhere(); }
  // Asks for what TryAllocateBeside needs, without a wait: a block of buffers near `near`, or one
  // for objects near buffers that this worker has elsewhere, since memory nodes have no room left
  // on the nodes of `near`. kOutOfMemory: neither.
  Task<Status> GrantBeside(SizeClass size_class, SizeClass buffer_class, GlobalAddr near) {
    return grants_.GrantBeside(size_class, buffer_class, near);
  }

  // Gives back an object that no slot has ever named.
  void FreeUnpublished(GlobalAddr addr, SizeClass size_class) {
    retirement_.Release(addr, size_class);
  }

  // Gives back an object that a slot named until now, when no operation can reach it any more.
  // REQUIRES: this worker unlinked it, and retires it once.
  void Retire(GlobalAddr addr, SizeClass size_class) {
    if (accounting_) KnowOf(addr);
    retirement_.Retire(addr, size_class);
  }

  // The same for a register: all workers forget its address first.
  void RetireRegister(GlobalAddr addr, SizeClass size_class) {
    if (accounting_) KnowOf(addr);
    retirement_.RetireRegister(addr, size_class);
  }
  // Gets the memory that telling others of retired registers takes, before the pool is full; a
  // failure is made up for later. `may_use_reserve`: of the memory nodes.
  Task<void> ReserveRetiredRing(bool may_use_reserve = false);
  // The object there, in a block of this worker's, is known to it alone though something names it:
  // the block stays its own as long as it lives.
  void KeepBlockOf(GlobalAddr addr) { blocks_.KeepBlockOf(addr); }
  // What nothing names any more and nobody gives back, in blocks of this worker's own (PROTOCOLS,
  // "What is lost comes back"). From BeginAccount() to EndAccount() what is in use now is suspect
  // until it is free, retired, or known to somebody.
  void BeginAccount();
  void EndAccount();
  [[nodiscard]] bool accounting() const { return accounting_; }
  // Nobody holds anything of it any more that nothing names.
  [[nodiscard]] bool AccountMayGoOn() const {
    return holders_.HaveEndedSince(account_generation_) && reclaimer_.IsSafe(account_epoch_);
  }
  struct Suspects {
    GlobalAddr start;
    SizeClass size_class;
  };
  // The blocks of which something is suspect.
  [[nodiscard]] std::vector<Suspects> SuspectBlocks() const;
  [[nodiscard]] bool IsSuspect(GlobalAddr addr);
  void KnowOf(GlobalAddr addr);
  // Collects what others have freed there. Of `unused`, by index, what is suspect is collected even
  // if a backup alone knows that it is free: whoever used it has given it up by now. kUnavailable:
  // it is being collected, or could not be.
  Task<Status> CollectForAccount(GlobalAddr start, const std::vector<bool>& unused);
  // REQUIRES: it is suspect, and what others had freed of its block has been collected in this
  // turn.
  void FreeLost(GlobalAddr addr);

  // Compaction (PROTOCOLS): the caller moves what lives in blocks of this worker's own of which
  // little is used, so that whole blocks become free. Nothing is allocated in a block that is
  // chosen until it is free, or until it has taken too long.

  // Chooses blocks of which at most `used_percent_max` are in use, `blocks_max` at most, those of
  // which least is first. What is in blocks of objects fits into what the others of their class
  // have free, or, with `may_widen`, of somewhat larger classes; what buffers belong to is another
  // matter.
  struct Sparse {
    GlobalAddr start;
    SizeClass size_class;
    bool is_buffers;
  };
  std::vector<Sparse> BeginEmptying(uint32_t used_percent_max, size_t blocks_max, bool may_widen);
  // From local memory, for what lives in a block that is emptied; null: there is none. With
  // `may_widen` it may be an object of a larger class.
  Object TryAllocateToMove(SizeClass size_class, bool may_widen);
  // What is allocated there, or freed by others and not collected yet. REQUIRES: it was chosen.
  [[nodiscard]] std::vector<GlobalAddr> UsedIn(GlobalAddr start);
  // Whether it is still this worker's, and to be emptied.
  [[nodiscard]] bool IsEmptying(GlobalAddr addr) {
    const OwnBlock* const block = blocks_.Find(addr);
    return block != nullptr && block->emptying;
  }
  // Who begins one at once when memory is short; until it says that there was nothing to move,
  // whoever is short waits for it. Others wait from BeginCompaction() on.
  void SetCompaction(std::function<void()> begin) { begin_compaction_ = std::move(begin); }
  void BeginCompaction() { compacts_ = true; }
  void EndCompaction(bool moved_any);

  // Regions that are given up (PROTOCOLS): nothing is allocated in blocks of those, and each goes
  // back when all of it is free.
  //
  // A new view is there. REQUIRES: no operation is under way if it has other regions, or others
  // that leave, than the last.
  void UseView(const View& view);
  // How many such blocks this worker has.
  [[nodiscard]] size_t leaving_blocks() const { return blocks_.leaving_count(); }
  // Free blocks are few: a memory node has told this worker, or another one.
  [[nodiscard]] bool is_tight() const { return shortage_.is_tight(); }
  // Whether blocks of this worker's are on their way to others.
  [[nodiscard]] bool gives() const {
    return opener_.opens() || transit_.return_count() > 0 || sweeper_.owes_sweeps() || compacts_ ||
           !emptying_.empty() || blocks_.leaving_count() != 0;
  }
  // Whether this worker, or another one, needs memory that it does not get.
  [[nodiscard]] bool is_scarce() const { return shortage_.is_scarce(); }

  // The other workers' retired registers, and when to forget them.
  RetiredRegisters& retired_registers() { return retirement_.registers(); }
  Retirement& retirement() { return retirement_; }
  Grants& grants() { return grants_; }
  BlockOpener& opener() { return opener_; }
  Claims& claims() { return claims_; }
  BlocksInTransit& transit() { return transit_; }

  // Background work is due: Maintain() should run soon.
  [[nodiscard]] bool wants_maintenance() const { return retirement_.wants_maintenance(); }
  // Advances epochs, takes back what has become safe, hands foreign objects to their owners, sweeps
  // some of its own blocks, returns wholly free ones. Concurrent calls return at once.
  Task<void> Maintain();
  // Maintains until nothing is retired, or a second has passed, then returns what it can. At the
  // end of a worker's life; nobody holds anything any more. False: something is still retired, or
  // others may yet read where registers were told of.
  Task<bool> Drain();
  // After that: opens all blocks but those in which `keep` lies, of which somebody else has to look
  // what is still named. REQUIRES: Drain() said true, and every object is free or named. True:
  // nothing of this worker's can be lost in blocks that are not its own.
  Task<bool> OpenAllBut(const std::vector<GlobalAddr>& keep);

  [[nodiscard]] const AllocatorMetrics& metrics() const { return metrics_; }
  [[nodiscard]] size_t retired_count() const { return retirement_.count(); }

 private:
  struct Emptying {
    GlobalAddr start;
    uint64_t until_ns;
  };
  using Want = OwnBlocks::Want;
  Task<Result<GlobalAddr>> AllocateWanted(Want want);
  Task<void> WaitForMemory(const Want& want, uint64_t wait_ns);

  Task<void> LeaveRing();

  [[nodiscard]] Reclaimer::Backlog backlog() const;
  [[nodiscard]] uint64_t MayGive(uint64_t classes) const;
  // Sweeps and returns are under way, which may bring memory.
  [[nodiscard]] bool IsGathering() const {
    return locks_.is_clearing() || sweeper_.is_sweeping() || returner_.is_returning() ||
           transit_.is_telling();
  }

  // This worker's compaction may bring something.
  [[nodiscard]] bool MayCompact() const;
  // Blocks that were to be emptied, and are not in time, serve allocations again.
  void FillAgainWhatIsLate();
  // ... or, before somebody is refused, one that has what is wanted. False: there is none.
  bool FillAgainFor(const Want& want);
  void FillAgain(OwnBlock& block);
  // Those of which something is used, but little; of which least is first.
  [[nodiscard]] std::vector<OwnBlock*> SparseBlocks(uint32_t used_percent_max) const;

  WorkerContext& context_;
  Reclaimer& reclaimer_;
  AllocatorMetrics metrics_;
  Holders holders_;
  OwnBlocks blocks_;
  StaleLocks locks_;
  ForeignFrees foreign_;
  BlockSweeper sweeper_;
  Retirement retirement_;
  Shortage shortage_;
  BlocksInTransit transit_;
  NodeRequests requests_;
  BlockReturner returner_;
  Grants grants_;
  BlockOpener opener_;
  Claims claims_;
  std::vector<Emptying> emptying_;
  bool compacts_ = false;
  std::function<void()> begin_compaction_;
  uint64_t compaction_barren_until_ns_ = 0;
  bool accounting_ = false;
  uint64_t account_generation_ = 0;
  uint64_t account_epoch_ = 0;
  bool maintaining_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_
