// ForeignFrees: objects that this worker frees in blocks of others. It sets their bits in the
// blocks' bitmaps by FAA, backups before the primary, and the owners collect them (FUSEE 4.4;
// PROTOCOLS, "Memory").
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_FOREIGN_FREES_H_
#define ONETRIP_CLIENT_CORE_MEMORY_FOREIGN_FREES_H_

#include <cstdint>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/memory/worker_context.h"

namespace onetrip {

class ForeignFrees {
 public:
  // `context` outlives it.
  explicit ForeignFrees(WorkerContext& context) : context_(context) {}

  // Keeps an object of the block that starts at `block` for Flush(). REQUIRES: no operation can
  // reach it.
  void Add(GlobalAddr block, uint16_t index);
  [[nodiscard]] bool empty() const { return foreign_.empty(); }
  // Sets the bits of all that was added. Returns the first failure: bits that a backup has not
  // answered are late; bits that the primary has not answered are lost for its owner, until a look
  // for lost memory finds them.
  Task<Status> Flush();

  // Bits that a backup has not answered: they may arrive there yet, and the primary, whose owner
  // would use the object anew, hears of them afterwards.
  [[nodiscard]] bool has_late() const { return !late_.empty(); }
  // REQUIRES: the fabric is settled, and no epoch has been published since.
  Task<void> TellLate();
  // True once a primary may have missed a bit.
  [[nodiscard]] bool has_lost_bits() const { return has_lost_bits_; }

  // A new view is there: regions that are gone take no bits.
  void UseView(const View& view);

 private:
  struct Bits {
    GlobalAddr word;  // in the bitmap
    uint64_t bits;
  };
  struct Late {
    Bits free;
    RegionPlacement told;
  };

  WorkerContext& context_;
  std::vector<Bits> foreign_;
  std::vector<Late> late_;
  bool has_lost_bits_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_FOREIGN_FREES_H_
