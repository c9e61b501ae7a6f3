// Chores: what one worker does beside its clients' operations, a class each with its own state, and
// the tick that makes them due. Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_CHORES_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_CHORES_H_

#include <cstdint>

#include "client_core/kv/chores/compact.h"
#include "client_core/kv/chores/expiry.h"
#include "client_core/kv/chores/index_walk.h"
#include "client_core/kv/chores/leave.h"
#include "client_core/kv/chores/lost_memory.h"
#include "client_core/kv/chores/named_memory.h"
#include "client_core/kv/chores/records_only.h"
#include "client_core/kv/chores/scan.h"
#include "client_core/kv/chores/scrub.h"
#include "client_core/kv/chores/sweep.h"
#include "client_core/kv/chores/take_over.h"
#include "client_core/kv/core/core.h"

namespace onetrip {

class Chores {
 public:
  // The arguments outlive it; `store` is the one that it is a part of.
  Chores(KvCore& core, Forms& forms, Records& records, TreePages& pages, RegisterForm& registers,
         RegisterEnds& ends, Kv& store)
      : core_(core),
        walker(core),
        scanner(core, forms, walker, store),
        expiry(core, records, walker),
        sweeper(core, forms),
        names(core, forms, walker),
        lost(core, names),
        take_over(core, names, lost),
        leaver(core, records, pages, ends, lost),
        records_only(core, records, registers, ends, walker, leaver),
        scrubber(core, registers, ends, walker),
        compactor(core, records, records_only) {}

  void StartTicks();
  void StopTicks() { tick_timer_.Cancel(); }

 private:
  KvCore& core_;

 public:
  IndexWalker walker;
  Scanner scanner;
  ExpiryWalk expiry;
  Sweeper sweeper;
  NamedMemory names;
  LostMemory lost;
  TakeOver take_over;
  Leaver leaver;
  RecordsOnly records_only;
  Scrubber scrubber;
  Compactor compactor;

 private:
  // Fires as often as a worker may wait for this worker's epochs.
  class TickTimer final : public Timer {
   public:
    explicit TickTimer(Chores& chores) : chores_(chores) {}
    void Fire() override { chores_.OnTick(); }

   private:
    Chores& chores_;
  };
  void OnTick();
  Task<void> FinishSplits();

  TickTimer tick_timer_{*this};
  bool finishing_splits_ = false;
  uint32_t quiet_ticks_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_CHORES_H_
