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
#include "client_core/memory/allocator_blocks.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/block_sweeper.h"
#include "client_core/memory/foreign_frees.h"
#include "client_core/memory/holders.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/retired_registers.h"
#include "client_core/memory/retirement.h"
#include "client_core/memory/stale_locks.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Allocator : private AllocatorBlocks {
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
  [[nodiscard]] bool was_full() const {
    return full_until_ns_ != 0 && context_.executor.NowNs() < full_until_ns_;
  }
  // This class is wanted: others are to give what they do not need, and compaction begins.
  void TellShortage(SizeClass size_class);
  // Its last blocks of objects, too, are anybody's, if at most half is used: what lives there may
  // find room with somebody who has blocks of the same classes. For a worker that can win no
  // memory by itself.
  void CloseSparse();
  // Waits until what is retired by now is free again, but not beyond `deadline_ns` nor while all
  // hold. REQUIRES: the caller holds no pin.
  Task<void> AwaitRetired(uint64_t deadline_ns);
  // Whether blocks were opened since the last call.
  bool TakeHasOpened() { return std::exchange(has_opened_, false); }
  // Which blocks have gone from hand to hand in a shortage since the last call.
  struct Trade {
    bool gave = false;
    bool took = false;
  };
  Trade TakeTrade() { return std::exchange(trade_, Trade()); }
  [[nodiscard]] const Trade& trade() const { return trade_; }
  // Whether it has got blocks since the last call in which something may be lost: it has claimed
  // them, or a backup alone knows of something that is free.
  bool TakeMayLack() { return std::exchange(may_lack_, false); }
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
  Task<Status> GrantBeside(SizeClass size_class, SizeClass buffer_class, GlobalAddr near);

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
  // Makes this worker the owner of a block of `from`, who is gone, on all replicas: what is not
  // `named` there, by index, is free. REQUIRES: the caller is at slots; nothing can reach or free
  // that any more, and all that others freed in the block is in its bitmap (see OrphanBlocks).
  // kUnavailable: a replica did not answer; kCorrupt: one says otherwise about the block. Both
  // leave it for somebody else.
  // `freed`: what the bitmap shows, by index; it comes back without the caller.
  Task<Status> TakeOver(GlobalAddr start, SizeClass size_class, WorkerId from,
                        const std::vector<bool>& named, std::vector<bool>* freed);

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
  //
  // Gets an open block of any class of which little is used; false: there is none.
  Task<bool> AcquireSparse();
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

  // Takes open blocks of a region that stays, some at a time, whatever is free there: what is lost
  // in one is found only by its owner. Whether there may be more; not ok: it could not get one.
  // They are open again after EndAccount(), or when somebody else is short.
  Task<Result<bool>> AcquireOpenIn(uint32_t region);

  // Regions that are given up (PROTOCOLS): nothing is allocated in blocks of those, and each goes
  // back when all of it is free.
  //
  // A new view is there. REQUIRES: no operation is under way if it has other regions, or others
  // that leave, than the last.
  void UseView(const View& view);
  // How many such blocks this worker has.
  [[nodiscard]] size_t leaving_blocks() const { return blocks_.leaving_count(); }
  // Takes open blocks of such regions, some at a time, so that somebody looks what is lost there.
  // Whether there may be more.
  Task<bool> AcquireLeaving();
  // Claims what the primaries of regions from `first_region` on say is this worker's and it does
  // not know of, since an answer was lost. False: but for what it is just giving back. REQUIRES:
  // `operation` has a presence.
  Task<Result<bool>> ClaimGranted(Operation& operation, uint32_t first_region);

  // Free blocks are few: a memory node has told this worker, or another one.
  [[nodiscard]] bool is_tight() const {
    return reclaimer_.others_tight() || context_.executor.NowNs() < tight_until_ns_;
  }
  // Whether blocks of this worker's are on their way to others.
  [[nodiscard]] bool gives() const {
    return opens() || !to_return_.empty() || sweeper_.owes_sweeps() || compacts_ ||
           !emptying_.empty() || blocks_.leaving_count() != 0;
  }
  // Whether blocks of this worker's are about to be open.
  [[nodiscard]] bool opens() const {
    return !closing_.empty() || !opening_.empty() || !telling_.empty();
  }
  // Whether some of that class: whoever wants one gets it back.
  bool ClosesOneOf(SizeClass size_class);
  // Whether this worker, or another one, needs memory that it does not get.
  [[nodiscard]] bool is_scarce() const {
    return reclaimer_.others_want() != 0 || context_.executor.NowNs() < short_until_ns_;
  }

  // The other workers' retired registers, and when to forget them.
  RetiredRegisters& retired_registers() { return retirement_.registers(); }
  Retirement& retirement() { return retirement_; }

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
  using Want = OwnBlocks::Want;
  Task<Result<GlobalAddr>> AllocateWanted(Want want);
  Task<void> WaitForMemory(const Want& want, uint64_t wait_ns);

  Task<void> LeaveRing();

  [[nodiscard]] Reclaimer::Backlog backlog() const;

  // Chooses blocks for others who are short of these classes, a bit each.
  void CloseFor(uint64_t classes);
  void CloseAllButOne(const std::vector<OwnBlock*>& list);
  // REQUIRES: it has something free, and is not kept.
  void Close(OwnBlock& block);
  // Opens those that nobody can hold anything of any more.
  void OpenClosed();
  // The block is not this worker's any more; its free objects are on their way to the bitmap.
  void Disown(OwnBlock& block);
  // Makes the memory nodes open what has been disowned, as far as they answer.
  Task<void> TellOpened();
  Task<Status> TellOpened(Opening* opening);
  // An open block that its primary has given this worker, on the other replicas.
  Task<Status> AcquireOnBackups(GlobalAddr start, SizeClass size_class);
  // Whether this worker opens it, and a memory node may not have heard.
  [[nodiscard]] bool IsOpening(GlobalAddr start) const;
  // Or gives it back, and a memory node may not have heard.
  [[nodiscard]] bool IsGoing(GlobalAddr start) const;
  // Likewise opens it, and they are being told.
  [[nodiscard]] bool IsOpeningNow(GlobalAddr start) const;
  // A node has granted it, who had heard of all that this worker has told it of its last life; what
  // may yet be told some node would take it from under this worker's hands. False: something is
  // being told.
  bool HasComeBack(GlobalAddr start);
  [[nodiscard]] static bool IsAmong(const std::vector<GlobalAddr>& blocks, GlobalAddr start) {
    return std::find(blocks.begin(), blocks.end(), start) != blocks.end();
  }
  // While one is alive nobody asks the node for a block, and nobody has: it might grant the one
  // that it is being told of, perhaps again.
  class NotAsked {
   public:
    NotAsked(Allocator& allocator, NodeId node) : allocator_(allocator), node_(node) {
      allocator_.not_asked_.push_back(node);
    }
    NotAsked(const NotAsked&) = delete;
    NotAsked& operator=(const NotAsked&) = delete;
    ~NotAsked() { allocator_.not_asked_.erase(std::ranges::find(allocator_.not_asked_, node_)); }

   private:
    Allocator& allocator_;
    NodeId node_;
  };
  // An open block that its primary has given this worker, as one of its own, in `list`.
  Task<Result<GlobalAddr>> AdoptOpened(GlobalAddr start, SizeClass size_class, uint32_t list);
  // Acquires one of any class: of the region of `within`, or, if that is null, of any that is given
  // up. kOutOfMemory: the node has none.
  Task<Result<GlobalAddr>> AcquireAnyOpen(NodeId node, GlobalAddr within);
  Task<Status> TakeOverOnReplicas(GlobalAddr start, SizeClass size_class, WorkerId from);
  Task<Status> AddFreed(GlobalAddr start, std::vector<bool>* freed, std::vector<bool>* used);
  Task<Result<ControlReply>> AskToTakeOver(GlobalAddr start, SizeClass size_class, int replica,
                                           WorkerId from, WorkerId to);
  // Others were told what this worker is short of, and may yet do something about it.
  [[nodiscard]] bool OthersMayGive() const;

  // A block (or span) of `size_class` from any memory node; kOutOfMemory when all are full.
  Task<Status> GrantBlock(Want want);
  // The same from one node, or from one region of which it is the primary: `within`, null: any.
  // kCorrupt: what it says makes no sense.
  Task<Result<GlobalAddr>> GrantBy(NodeId node, Want want, GlobalAddr within);
  // What the primary `node` gives for the request; kDone and kOpened only.
  Task<Result<ControlReply>> AskForBlock(NodeId node, ControlRequest request);
  // This worker's compaction may bring something.
  [[nodiscard]] bool MayCompact() const;
  // Blocks that were to be emptied, and are not in time, serve allocations again.
  void FillAgainWhatIsLate();
  // ... or, before somebody is refused, one that has what is wanted. False: there is none.
  bool FillAgainFor(const Want& want);
  void FillAgain(OwnBlock& block);
  // Those of which something is used, but little; of which least is first.
  [[nodiscard]] std::vector<OwnBlock*> SparseBlocks(uint32_t used_percent_max) const;
  Task<Status> GrantOnBackups(GlobalAddr block, SizeClass size_class);
  // kUnavailable: others than those that were asked are the replicas of `block` by now.
  [[nodiscard]] Status HaveAskedAll(GlobalAddr block, const RegionPlacement& asked) const;
  Task<void> ReturnFreeBlocks(bool all);
  // Gives a block back to its memory nodes. What a backup does not answer is told again when it
  // can't arrive any more; until then the primary does not hear of it, and grants it to nobody.
  Task<void> ReturnBlock(GlobalAddr start, SizeClass size_class);
  Task<Status> TellReturned(NodeId node, GlobalAddr start, SizeClass size_class);
  Task<void> ReturnAgain();
  // A block that is this worker's as far as its primary is concerned, or may be, and that it does
  // not use. Somebody else may have had it since it last knew: all of it counts as used, and what
  // nothing names there is found as lost.
  Task<void> Claim(GlobalAddr start, SizeClass size_class);
  Task<void> ClaimAgain();
  // When claims have waited in vain for that: for some ticks nobody asks a memory node for a block,
  // so that what is claimed is none of what is asked for.
  void PauseAskingInTime();
  // What was granted by an answer that never came.
  Task<void> ClaimUnheard(const ViewHold::Presence& presence);
  void ClaimLater(GlobalAddr start, SizeClass size_class);
  WorkerContext& context_;
  Reclaimer& reclaimer_;
  AllocatorMetrics metrics_;
  Holders holders_;
  OwnBlocks blocks_;
  StaleLocks locks_;
  ForeignFrees foreign_;
  BlockSweeper sweeper_;
  Retirement retirement_;
  std::vector<Closing> closing_;
  std::vector<Opening> opening_;
  std::deque<Returning> to_return_;
  std::deque<Granted> to_claim_;
  bool has_unheard_grant_ = false;  // perhaps: a memory node did not answer
  uint64_t next_claim_walk_ns_ = 0;
  uint32_t claims_waited_ = 0;
  uint64_t not_asking_until_ns_ = 0;  // PauseAskingInTime
  std::vector<Emptying> emptying_;
  std::vector<GlobalAddr> returning_;  // blocks that are on their way back to their nodes
  std::vector<GlobalAddr> returning_to_backups_;  // ... whose primary is yet to hear
  std::vector<GlobalAddr> taking_;                // ... that are about to become this worker's
  uint32_t asking_ = 0;                           // memory nodes that are asked for a block
  std::vector<NodeId> not_asked_;                 // nodes that are not asked for one now
  bool compacts_ = false;
  std::function<void()> begin_compaction_;
  uint64_t compaction_barren_until_ns_ = 0;
  uint64_t tight_until_ns_ = 0;
  std::vector<Opening> telling_;  // of which memory nodes are being told
  bool has_opened_ = false;
  Trade trade_;
  bool may_lack_ = false;  // see TakeMayLack
  bool accounting_ = false;
  uint64_t account_generation_ = 0;
  uint64_t account_epoch_ = 0;
  // What this worker is short of, until when it says so, since which epoch it has, and until when
  // nobody is asked again in vain.
  SizeClass short_of_;
  uint64_t short_until_ns_ = 0;
  uint64_t short_since_epoch_ = 0;
  uint64_t barren_until_ns_ = 0;
  uint32_t next_grant_node_ = 0;
  uint32_t gathering_ = 0;  // sweeps and returns under way, which may bring memory
  bool maintaining_ = false;
  uint64_t full_until_ns_ = 0;  // the pool was full a moment ago: it is not asked before
  Epoch flushed_view_;          // the view when memory was last short, and when that was first seen
  uint64_t flushed_ns_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_
