// Shortage: how scarce memory is, as far as this worker knows: what it is short of and tells others
// with its epoch, what others and memory nodes have said, and who has just been asked in vain
// (PROTOCOLS, "Open blocks", "Compaction").
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_SHORTAGE_H_
#define ONETRIP_CLIENT_CORE_MEMORY_SHORTAGE_H_

#include <cstdint>

#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"
#include "client_core/memory/reclaim.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class Shortage {
 public:
  // Both outlive it.
  Shortage(WorkerContext& context, const Reclaimer& reclaimer)
      : context_(context), reclaimer_(reclaimer) {}

  // This worker is short of `size_class`; the others hear of it with the next epoch.
  void Tell(SizeClass size_class);
  // The class that this worker says that it is short of; not valid: none.
  [[nodiscard]] SizeClass told() const {
    return NowNs() < short_until_ns_ ? short_of_ : SizeClass();
  }
  // True while this worker, or another one, needs memory that it does not get.
  [[nodiscard]] bool is_scarce() const {
    return reclaimer_.others_want() != 0 || NowNs() < short_until_ns_;
  }

  // A memory node has told this worker that it has few free blocks.
  void NoteTight();
  [[nodiscard]] bool says_tight() const { return NowNs() < tight_until_ns_; }
  // ... or has told another worker.
  [[nodiscard]] bool is_tight() const { return reclaimer_.others_tight() || says_tight(); }

  // The pool was found full: for a moment it is not asked again.
  void NoteFull();
  [[nodiscard]] bool was_full() const { return full_until_ns_ != 0 && NowNs() < full_until_ns_; }
  // A memory node has given a block, and has more than a few.
  void NotePlenty() { full_until_ns_ = 0; }
  // True if the pool was found full, and no memory node has had plenty since.
  [[nodiscard]] bool is_lean() const { return full_until_ns_ != 0; }

  // Others were told what this worker is short of, and may yet do something about it.
  [[nodiscard]] bool OthersMayGive() const;
  // They have given nothing: they are not waited for again before half a second has passed.
  void NoteInVain();

  // True while a flush, which the view that came after the last shortage may be of, has yet to
  // retire memory. REQUIRES: memory is short now.
  [[nodiscard]] bool MayFollowFlush();

 private:
  [[nodiscard]] uint64_t NowNs() const { return context_.executor.NowNs(); }

  WorkerContext& context_;
  const Reclaimer& reclaimer_;
  // The class, until when others are told, and since which epoch they are.
  SizeClass short_of_;
  uint64_t short_until_ns_ = 0;
  uint64_t short_since_epoch_ = 0;
  uint64_t in_vain_until_ns_ = 0;  // others are not waited for before
  uint64_t tight_until_ns_ = 0;
  uint64_t full_until_ns_ = 0;
  Epoch flushed_view_;  // the view when memory was last short, and when that was first seen
  uint64_t flushed_ns_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_SHORTAGE_H_
