// SubtableMover: the index leaves regions that are given up (PROTOCOLS, "Regions that are given
// up").
//
// All workers stand still meanwhile: no slot is amid a write, and no split amid a step. So
// subtables are copied as they are, half a split or not, and the directory that is not in force is
// written for the copies. The next view names it, or it counts for nothing. The worker's thread.
#ifndef ONETRIP_CLIENT_CORE_INDEX_MOVE_SUBTABLES_H_
#define ONETRIP_CLIENT_CORE_INDEX_MOVE_SUBTABLES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/view.h"
#include "client_core/coro/task.h"
#include "client_core/index/directory.h"
#include "client_core/layout/global_addr.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/engine.h"

namespace onetrip {

class SubtableMover {
 public:
  // All outlive it.
  SubtableMover(WorkerContext& context, Allocator& allocator, Engine& engine, Directory& directory)
      : context_(context), allocator_(allocator), engine_(engine), directory_(directory) {}

  // Copies subtables that lie in regions that leave to others, and writes the directory that `view`
  // names, and that is not in force, for them. UseView() learns whether that view has come.
  // kInvalidArgument: that directory is in force, or a view is awaited already. REQUIRES: all
  // workers stand still, and nothing is under way.
  Task<Status> MoveSubtables(std::shared_ptr<const View> view);
  // A new view is there: what was moved, or what it was moved to, is given up.
  void UseView(const View& view);

 private:
  struct MovedSubtable {
    GlobalAddr from;
    GlobalAddr to;
  };
  Task<Status> CopySubtables(const View& view, std::vector<uint64_t>* words);
  Task<Status> CopySubtable(const View& view, MovedSubtable moved);
  Task<Status> ReadWholeDirectory(const View& view, std::vector<uint64_t>* words);
  Task<Status> WriteWholeDirectory(const View& view, const std::vector<uint64_t>& words);
  void Retire(GlobalAddr subtable);

  WorkerContext& context_;
  Allocator& allocator_;
  Engine& engine_;
  Directory& directory_;
  // For the view of that epoch, which has not come yet, and the directory that it names.
  std::vector<MovedSubtable> moved_;
  bool awaits_view_ = false;
  Epoch moved_epoch_;
  uint8_t moved_directory_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_MOVE_SUBTABLES_H_
