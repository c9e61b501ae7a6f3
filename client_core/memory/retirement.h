// Retirement: objects that this worker has unlinked, from then until no operation can reach them
// and they are free: in the lists of their own blocks, or on their way to the owners of others
// (PROTOCOLS, "Memory", "Retired registers").
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_RETIREMENT_H_
#define ONETRIP_CLIENT_CORE_MEMORY_RETIREMENT_H_

#include <cstddef>
#include <cstdint>
#include <deque>

#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/memory/allocator_metrics.h"
#include "client_core/memory/foreign_frees.h"
#include "client_core/memory/own_blocks.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/retired_registers.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Retirement {
 public:
  struct Object {
    GlobalAddr addr;
    SizeClass size_class;
    uint64_t epoch;     // when all have passed it the object is free
    uint64_t unlinked;  // the epoch in which that happened
  };

  // All outlive it.
  Retirement(WorkerContext& context, Reclaimer& reclaimer, AllocatorMetrics& metrics,
             OwnBlocks& blocks, ForeignFrees& foreign)
      : context_(context),
        reclaimer_(reclaimer),
        metrics_(metrics),
        blocks_(blocks),
        foreign_(foreign),
        registers_(context, reclaimer) {}

  // The object is free: it goes back to the free list of its own block, or to those for its owner.
  // REQUIRES: no operation can reach it.
  void Release(GlobalAddr addr, SizeClass size_class);

  // Takes an object that no slot names any more. REQUIRES: this worker unlinked it, and retires it
  // once.
  void Retire(GlobalAddr addr, SizeClass size_class);
  // The same for a register: all workers forget its address first.
  void RetireRegister(GlobalAddr addr, SizeClass size_class);
  // Releases some of the objects whose epoch all have passed. True: there may be more.
  bool ReleaseSome();
  // Tells the others of retired registers, as far as the ring has room.
  Task<void> PublishRegisters();

  // Objects and registers that are not free yet; registers that are to be published count as one.
  [[nodiscard]] size_t count() const { return retired_.size() + (registers_.HasPending() ? 1 : 0); }
  // Registers that are to be published are not among them.
  [[nodiscard]] const std::deque<Object>& objects() const { return retired_; }
  // The first epoch in which something was unlinked that is not free yet; without any, as large as
  // can be.
  [[nodiscard]] uint64_t retired_since() const;

  // Maintenance is due, by the number or the bytes that were retired since BeginTick().
  [[nodiscard]] bool wants_maintenance() const {
    return since_tick_ >= context_.options.retired_objects_max ||
           bytes_since_tick_ >= kTickRetiredBytes;
  }
  void BeginTick() { since_tick_ = bytes_since_tick_ = 0; }

  // Asks all workers, with the next DoubtRegisters(), to look every register up before they use it
  // again: one may have left the index by the hand of a worker that died before it told them.
  void WantDoubt() {
    doubt_wanted_ = true;
    doubted_epoch_ = 0;
  }
  [[nodiscard]] bool wants_doubt() const { return doubt_wanted_; }
  Task<void> DoubtRegisters();
  // True when no worker uses a register any more that was not in the index when they were asked.
  [[nodiscard]] bool registers_doubted() const {
    return doubted_epoch_ != 0 && reclaimer_.IsSafe(doubted_epoch_);
  }

  // The ring that tells others of this worker's registers, and theirs.
  [[nodiscard]] RetiredRegisters& registers() { return registers_; }
  [[nodiscard]] const RetiredRegisters& registers() const { return registers_; }

 private:
  static constexpr uint64_t kTickRetiredBytes = 512 * 1024;

  struct UnlinkedCount {
    uint64_t epoch;
    uint64_t objects;
  };

  void NoteRetired(GlobalAddr addr, SizeClass size_class);
  // When it is unlinked, and when it is free.
  uint64_t NoteUnlinked();
  void NoteReleased(uint64_t unlinked);

  WorkerContext& context_;
  Reclaimer& reclaimer_;
  AllocatorMetrics& metrics_;
  OwnBlocks& blocks_;
  ForeignFrees& foreign_;
  RetiredRegisters registers_;
  std::deque<Object> retired_;          // in order of epoch
  std::deque<UnlinkedCount> unlinked_;  // not released yet, by when they were unlinked
  uint32_t since_tick_ = 0;
  uint64_t bytes_since_tick_ = 0;
  bool doubt_wanted_ = false;
  uint64_t doubted_epoch_ = 0;  // 0: not yet
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_RETIREMENT_H_
