// Leaver: writes anew elsewhere what lives in regions that are given up (leave.cc). Private to kv/;
// the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_LEAVE_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_LEAVE_H_

#include <cstddef>
#include <cstdint>

#include "client_core/kv/chores/index_walk.h"
#include "client_core/kv/chores/lost_memory.h"
#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/record.h"
#include "client_core/kv/forms/register_end.h"
#include "client_core/kv/forms/tree_pages.h"

namespace onetrip {

class Leaver {
 public:
  Leaver(KvCore& core, Records& records, TreePages& pages, RegisterEnds& ends, LostMemory& lost)
      : core_(core), records_(records), pages_(pages), ends_(ends), lost_(lost) {}

  // Gives up what lives there and is no register, of one group.
  Task<void> LeaveGroup(Subtable table, uint32_t group, RegistersLeft* left, Status* failure);
  // At every tick: now and then, blocks there that no worker sees to become this worker's.
  void SeeToLeavingIfDue();
  // A new view: regions may leave now.
  void UseView(const View& view);
  // The last looks have freed no block there.
  [[nodiscard]] bool looks_in_vain() const { return looks_.in_vain != 0; }

 private:
  // This worker's looks at blocks of regions that are given up.
  struct Looks {
    uint16_t regions = 0;  // View::leaving
    bool under_way = false;
    uint32_t in_vain = 0;  // in a row: no block there has become free
    size_t blocks = 0;     // this worker's, at the last look
    uint64_t next_ns = 0;
  };
  Task<Status> LeaveKey(Quiesce::InFlightGuard& in_flight, const ListedRegister& listed);
  // A register that was dropped by a worker that has not lived to free its slot.
  Task<Status> LeaveDropped(Operation& operation, Entry dropped);
  // A root's extent that lies there, or the root itself. `*more`: there is another one.
  Task<Status> LeaveRoot(RegisterOperation& operation, const IndexKey& key,
                         const SearchResult& search, bool* more);
  // A tree's pages that lie there, a few of them, or its root.
  Task<Status> LeaveTree(RegisterOperation& operation, const IndexKey& key,
                         const SearchResult& search, const TreeRoot& root, bool* more);
  Task<Result<GlobalAddr>> AllocateToLeave(SizeClass size_class);
  Task<Status> CopyExtent(Operation& operation, const ExtentRef& from, const ExtentRef& to);
  Task<void> SeeToLeaving();

  KvCore& core_;
  Records& records_;
  TreePages& pages_;
  RegisterEnds& ends_;
  LostMemory& lost_;
  Looks looks_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_LEAVE_H_
