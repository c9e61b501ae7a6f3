// Allocator: second-level memory management of one worker (FUSEE 4.4; PROTOCOLS, "Memory").
//
// Memory nodes grant coarse blocks; the worker cuts each into objects of one size class and keeps
// their free lists locally, so that an allocation on the data path costs no round trip. An object
// that a worker unlinks is retired and, once no operation can still reach it, given back: to the
// free list if the block is its own, else as a bit in the block's bitmap, by FAA, which the owner
// sweeps. A block that is wholly free goes back to its memory node. One that is partly used is
// opened when others are short of memory, and at the end of the worker's life: it has no owner
// then, its bitmap tells which objects are free, and its memory node gives it to the next worker
// that asks (PROTOCOLS, "Open blocks").
//
// Each of these concerns is a part with its own state; the allocator wires them, has the calls of
// the data path, and gives each part its turn in Maintain(). Chores ask the parts themselves:
//
//   OwnBlocks      blocks and free lists        Grants         gets blocks from memory nodes
//   StaleLocks     memory becomes buffers       BlockReturner  gives blocks back to them
//   Retirement     until no operation reads     BlockOpener    gives blocks to other workers
//   ForeignFrees   bits in blocks of others     Claims         blocks of the dead, and unheard ones
//   BlockSweeper   bits in own blocks           Compaction     blocks that are being emptied
//   Shortage       who is short of memory       Accounting     objects that are lost
//   Holders        who holds unnamed memory     NodeRequests, BlocksInTransit: what is under way
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_
#define ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/accounting.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/block_opener.h"
#include "client_core/memory/block_returner.h"
#include "client_core/memory/block_sweeper.h"
#include "client_core/memory/blocks_in_transit.h"
#include "client_core/memory/claims.h"
#include "client_core/memory/compaction.h"
#include "client_core/memory/foreign_frees.h"
#include "client_core/memory/grants.h"
#include "client_core/memory/holders.h"
#include "client_core/memory/node_requests.h"
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
  using Object = OwnBlocks::Object;
  static constexpr size_t kBuffersOfAWrite = OwnBlocks::kBuffersOfAWrite;

  // Both outlive it.
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
  // more; kUnavailable when a node has not answered. While the worker is held no call waits for a
  // view, since the view may wait for the caller. REQUIRES: the caller holds no epoch pin, which
  // could keep the memory it waits for from coming back.
  // `idle` is the caller's holder, which holds nothing, or null: no block waits for it meanwhile.
  Task<Result<GlobalAddr>> Allocate(SizeClass size_class, Holder* idle = nullptr);

  // The same for a caller that holds a pin: asks memory nodes, but waits for nothing that is
  // retired.
  Task<Result<GlobalAddr>> AllocatePinned(SizeClass size_class, bool may_use_reserve = false);

  // An object of `size_class` for a caller that holds a pin and gives up one of `replaced`, or as
  // much, in its place. When the pool is full it may be one of that class or larger, which then
  // serves the next caller, and in the end, with `may_use_reserve`, one of the memory nodes'
  // reserve (PROTOCOLS, "The reserve").
  Task<Result<Object>> AllocateInPlaceOf(SizeClass replaced, SizeClass size_class,
                                         bool may_use_reserve = true);
  // True if that has just found the pool full.
  [[nodiscard]] bool was_full() const { return shortage_.was_full(); }

  // True if, since that has last found the pool full, no more has become free than a small part of
  // what this worker has: changes that can do with the memory of what they change must not take any
  // other.
  [[nodiscard]] bool is_lean() const { return was_full() || (shortage_.is_lean() && HasLittle()); }

  // As TryAllocate() for out-of-place buffers of the register at `near`: on its nodes, within the
  // reach of its words, and in memory that has been a buffer or nothing since it was zeroed, so
  // that no timestamp lock finds a leftover (PROTOCOLS, "Buffers").
  GlobalAddr TryAllocateBuffer(SizeClass size_class, GlobalAddr near) {
    return blocks_.TakeBuffer(size_class, near);
  }
  // True if TryAllocateBuffer would succeed `count` times; one block may have to do.
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
  // Gets a block for TryAllocateBuffer() from a memory node, if one has it free: waits for nothing.
  Task<Status> GrantBuffers(SizeClass buffer_class, GlobalAddr near) {
    return grants_.Grant({.size_class = buffer_class, .near = near});
  }
  // True if not all regions have the same nodes: there may be room elsewhere, if none is left near
  // some register.
  [[nodiscard]] bool has_elsewhere() const { return blocks_.has_elsewhere(); }
  // Gets memory for TryAllocateBeside(): see Grants.
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
    if (accounting_.is_open()) accounting_.KnowOf(addr);
    retirement_.Retire(addr, size_class);
  }
  // The same for a register: all workers forget its address first.
  void RetireRegister(GlobalAddr addr, SizeClass size_class) {
    if (accounting_.is_open()) accounting_.KnowOf(addr);
    retirement_.RetireRegister(addr, size_class);
  }
  [[nodiscard]] size_t retired_count() const { return retirement_.count(); }
  // Waits until all that is retired by now is free again, but not beyond `deadline_ns` nor while
  // all hold. REQUIRES: the caller holds no pin.
  Task<void> AwaitRetired(uint64_t deadline_ns);
  // Gets the memory that telling others of retired registers takes, before the pool is full; a
  // failure is made up for later. `may_use_reserve`: of the memory nodes.
  Task<void> ReserveRetiredRing(bool may_use_reserve = false);
  // The other workers' retired registers, and when to forget them.
  RetiredRegisters& retired_registers() { return retirement_.registers(); }

  // True if the address lies in a block of this worker's.
  [[nodiscard]] bool Owns(GlobalAddr addr) { return blocks_.Find(addr) != nullptr; }
  // See OwnBlocks.
  void KeepBlockOf(GlobalAddr addr) { blocks_.KeepBlockOf(addr); }
  // The number of blocks that this worker has in regions that are given up.
  [[nodiscard]] size_t leaving_blocks() const { return blocks_.leaving_count(); }

  // This class is wanted: others are to give blocks that they do not need, and compaction begins.
  void TellShortage(SizeClass size_class);
  // True while this worker, or another one, needs memory that it does not get.
  [[nodiscard]] bool is_scarce() const { return shortage_.is_scarce(); }
  // True while free blocks are few: a memory node has told this worker, or another one.
  [[nodiscard]] bool is_tight() const { return shortage_.is_tight(); }
  // True while blocks of this worker's are on their way to others.
  [[nodiscard]] bool gives() const {
    return opener_.opens() || transit_.return_count() > 0 || sweeper_.owes_sweeps() ||
           compaction_.is_under_way() || blocks_.leaving_count() != 0;
  }

  // Background work is due: Maintain() should run soon.
  [[nodiscard]] bool wants_maintenance() const { return retirement_.wants_maintenance(); }
  // Advances epochs, takes back objects that have become safe, hands foreign ones to their owners,
  // sweeps some of its own blocks, returns wholly free ones. Concurrent calls return at once.
  Task<void> Maintain();
  // A new view is there: nothing is allocated in blocks of regions that are given up, and each goes
  // back when all of it is free (PROTOCOLS, "Regions that are given up"). REQUIRES: no operation is
  // under way if the view has other regions, or others that leave, than the last.
  void UseView(const View& view);

  // At the end of a worker's life; no operation holds anything any more: maintains until nothing is
  // retired, or a second has passed, then returns the blocks that it can. False: something is still
  // retired, or others may yet read where registers were told of.
  Task<bool> Drain();
  // After that: opens all blocks but those in which `keep` lies; the worker that takes those over
  // looks what is still named there. REQUIRES: Drain() said true, and every object is free or
  // named. True: nothing of this worker's can be lost in blocks that are not its own.
  Task<bool> OpenAllBut(const std::vector<GlobalAddr>& keep);

  // The parts that chores work with.
  Accounting& accounting() { return accounting_; }
  Claims& claims() { return claims_; }
  Compaction& compaction() { return compaction_; }
  Grants& grants() { return grants_; }
  BlockOpener& opener() { return opener_; }
  Retirement& retirement() { return retirement_; }
  BlocksInTransit& transit() { return transit_; }
  [[nodiscard]] const AllocatorMetrics& metrics() const { return metrics_; }

 private:
  // Memory for subtables and the ring of retired registers does not count.
  [[nodiscard]] bool HasLittle() const;
  using Want = OwnBlocks::Want;

  Task<Result<GlobalAddr>> AllocateWanted(Want want);
  Task<void> WaitForMemory(const Want& want, uint64_t wait_ns);
  // True while sweeps and returns are under way, which may bring memory.
  [[nodiscard]] bool IsGathering() const {
    return locks_.is_clearing() || sweeper_.is_sweeping() || returner_.is_returning() ||
           transit_.is_telling();
  }
  [[nodiscard]] Reclaimer::Backlog backlog() const;
  // Those of the classes, a bit each, in which blocks may be closed for others.
  [[nodiscard]] uint64_t MayGive(uint64_t classes) const;
  // Retires the ring of retired registers if it lies in a region that is given up.
  Task<void> LeaveRing();

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
  Accounting accounting_;
  Compaction compaction_;
  bool maintaining_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_ALLOCATOR_H_
