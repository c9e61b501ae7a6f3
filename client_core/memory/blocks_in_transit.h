// BlocksInTransit: blocks that are on their way to this worker or from it, while memory nodes may
// not have heard, and those that have gone (PROTOCOLS, "Open blocks"). A block that comes back is
// not told of again, and none is taken while a node is being told that it is not this worker's.
//
// It only remembers them; Grants, Claims, BlockOpener and BlockReturner ask and tell.
//
// Single-threaded; one per worker.
#ifndef ONETRIP_CLIENT_CORE_MEMORY_BLOCKS_IN_TRANSIT_H_
#define ONETRIP_CLIENT_CORE_MEMORY_BLOCKS_IN_TRANSIT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/layout/global_addr.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/types.h"

namespace onetrip {

class BlocksInTransit {
 public:
  // A block, or a span, as memory nodes know it.
  struct Granted {
    GlobalAddr start;
    SizeClass size_class;
  };
  // A block that is no longer this worker's, as far as it is concerned, and has yet to be open.
  struct Opening {
    GlobalAddr start;
    SizeClass size_class;
    bool asked_primary = false;  // and did not hear of it
  };
  // A block that has yet to be free. Its primary has not heard of that.
  struct Returning {
    GlobalAddr start;
    SizeClass size_class;
    NodeId primary;
  };
  // Blocks have gone from worker to worker in a shortage.
  struct Trade {
    bool gave = false;
    bool took = false;
  };

  // Keeps a block in a set as long as it lives. The set outlives it.
  class Mark {
   public:
    Mark(std::vector<GlobalAddr>& set, GlobalAddr start) : set_(set), start_(start) {
      set_.push_back(start_);
    }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    ~Mark();

   private:
    std::vector<GlobalAddr>& set_;
    GlobalAddr start_;
  };

  // To this worker: the block is about to become its own.
  [[nodiscard]] Mark MarkTaken(GlobalAddr start) { return {taking_, start}; }
  [[nodiscard]] bool IsTaken(GlobalAddr start) const { return Has(taking_, start); }
  // A node has granted the block, and had heard by then of all that this worker had told it of the
  // block's last life; what may yet be told some node would take it from under this worker's
  // hands, and is dropped. False: something is being told.
  bool HasComeBack(GlobalAddr start);

  // Blocks that are this worker's as far as their primaries are concerned, or may be, and that it
  // does not use.
  void ClaimLater(GlobalAddr start, SizeClass size_class);
  void DropClaim(GlobalAddr start);
  [[nodiscard]] size_t claim_count() const { return to_claim_.size(); }
  Granted NextClaim();

  // Back to their memory nodes.
  [[nodiscard]] Mark MarkReturning(GlobalAddr start) { return {returning_, start}; }
  [[nodiscard]] Mark MarkReturningToBackups(GlobalAddr start) {
    return {returning_to_backups_, start};
  }
  [[nodiscard]] bool IsReturning(GlobalAddr start) const { return Has(returning_, start); }
  void ReturnLater(Returning one) { to_return_.push_back(one); }
  // False: there was none.
  bool DropReturn(GlobalAddr start);
  [[nodiscard]] size_t return_count() const { return to_return_.size(); }
  [[nodiscard]] size_t ReturnsWaiting(NodeId primary, SizeClass size_class) const;
  Returning NextReturn();

  // On their way to be open. The memory nodes are told of some at a time: the list that
  // BeginTelling() gives stays as it is until EndTelling().
  void OpenLater(Opening one) { opening_.push_back(one); }
  void DropOpening(GlobalAddr start);
  [[nodiscard]] bool has_opening() const { return !opening_.empty(); }
  [[nodiscard]] bool is_telling() const { return !telling_.empty(); }
  std::vector<Opening>& BeginTelling();
  void EndTelling() { telling_.clear(); }
  // True while nodes are being told of it.
  [[nodiscard]] bool IsOpeningNow(GlobalAddr start) const;
  // True for some block of that class.
  [[nodiscard]] bool OpensOneOf(SizeClass size_class) const;

  // True while this worker opens the block or gives it back, and a node may not have heard.
  [[nodiscard]] bool IsGoing(GlobalAddr start) const;

  void NoteGave() { trade_.gave = true; }
  void NoteTook() { trade_.took = true; }
  // Since the last TakeTrade().
  [[nodiscard]] const Trade& trade() const { return trade_; }
  Trade TakeTrade() { return std::exchange(trade_, Trade()); }

  // A new view is there: whatever memory nodes were to hear of regions that are gone, they have
  // heard.
  void UseView(const View& view);

 private:
  static bool Has(const std::vector<GlobalAddr>& set, GlobalAddr start);
  [[nodiscard]] bool IsOpening(GlobalAddr start) const;

  std::vector<GlobalAddr> taking_;
  std::deque<Granted> to_claim_;
  std::vector<GlobalAddr> returning_;             // being told of
  std::vector<GlobalAddr> returning_to_backups_;  // ... and the primary is yet to hear
  std::deque<Returning> to_return_;
  std::vector<Opening> opening_;
  std::vector<Opening> telling_;
  Trade trade_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_MEMORY_BLOCKS_IN_TRANSIT_H_
