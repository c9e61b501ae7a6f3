// ResolveSlots: the representative last writer (FUSEE 5.2 and Algorithm 3, lines 5-7;
// PROTOCOLS, "Memory nodes that are lost and come back").
//
// A worker that dies in a SNAPSHOT write, or loses a memory node in it, leaves replicas of a slot
// that differ, and the next writer would wait for it. While no operation touches slots, one worker
// makes them alike in its place. The primary's word stands: it is what readers have seen, and no
// write is acknowledged before it is there; a claim of an insert alone has not been seen, and ends
// (index/claim_rules.h). A primary that was a backup, before a node was lost,
// holds what the last complete write left or the beginning of the next; if what its word names is
// nowhere whole, no reader can have seen it, and another replica's word is taken.
#ifndef ONETRIP_CLIENT_CORE_INDEX_RESOLVE_SLOTS_H_
#define ONETRIP_CLIENT_CORE_INDEX_RESOLVE_SLOTS_H_

#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/fabric/fabric.h"
#include "client_core/layout/slot.h"

namespace onetrip {

class SlotResolver {
 public:
  // Resolves the replicas that are live in `view`, which outlives the resolver, as `fabric` does.
  // `new_empty` returns an EMPTY word that no slot has held.
  SlotResolver(Fabric& fabric, const View& view, std::function<SlotWord()> new_empty)
      : fabric_(fabric), view_(view), new_empty_(std::move(new_empty)) {}

  // Not ok: some slots may differ still; to be called again, by any worker. REQUIRES: no worker has
  // an operation under way that touches slots, nor starts one.
  Task<Status> Run();
  // Words that differed, or were claims.
  [[nodiscard]] uint64_t resolved() const { return resolved_; }

 private:
  // One word as its live replicas hold it.
  struct Found {
    GlobalAddr at;
    int replicas = 0;
    std::array<uint64_t, kMaxReplicas> words{};
  };

  Task<Status> ResolveDirectory(std::vector<GlobalAddr>* subtables);
  Task<Status> ResolveSubtables(const GlobalAddr* subtables, size_t count);
  // Reads `words` words from `at` on on every live replica, into `round_trip`.
  void AddReads(RoundTrip& round_trip, GlobalAddr at, uint32_t words,
                std::vector<const uint64_t*>* images) const;
  Task<Status> Resolve(Found found, bool is_slot);
  Task<Result<uint64_t>> ChooseWord(const Found& found);
  // Returns true if a slot may hold `word`, which the replica on `node` has: what it names is
  // there, and on all live replicas by the end of the call.
  Task<Result<bool>> MakeWhole(SlotWord word, NodeId node);
  Task<Status> CarryBuffers(SlotWord word, const std::byte* image, NodeId node);
  Fabric& fabric_;
  const View& view_;
  const std::function<SlotWord()> new_empty_;
  uint64_t resolved_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_RESOLVE_SLOTS_H_
