// IndexWalker: walks over every group of the index, beside clients, splits and holds, and what
// walks remember between their turns. Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CHORES_INDEX_WALK_H_
#define ONETRIP_CLIENT_CORE_KV_CHORES_INDEX_WALK_H_

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "client_core/base/status.h"
#include "client_core/cluster/repair_order.h"
#include "client_core/kv/core/core.h"
#include "client_core/layout/size_class.h"
#include "client_core/layout/slot.h"
#include "client_core/layout/types.h"

namespace onetrip {

// The obstacles that a walk that makes records of registers has met.
struct RegistersLeft {
  bool full = false;  // the pool
  bool any = false;   // for want of memory, or of what `failure` says
  Status failure;     // the first other one: what is behind it is not held up by it
  // Registers of this class have waited in vain for memory that comes back.
  std::array<bool, SizeClass::kCount> starved{};
  // Blocks that were open when the walk began.
  absl::flat_hash_set<uint64_t> open;
};

// A key that is to be met, and what its slot said.
struct ListedRegister {
  SlotWord word;
  KeyspaceId keyspace;
  std::string key;
};

// Over every group of the index, from where it has come to.
struct IndexWalk {
  RepairKind kind = RepairKind::kScrubRegisters;
  uint64_t number = 0;  // RepairOrder::walk
  uint32_t next = 0;    // the directory entry to begin with
  uint32_t end = 2;     // how far the directory reaches, as far as is known
  RegistersLeft left{};
  bool in_background = false;  // rests for as long as it works
  bool leaves = false;  // kEndRegisters: registers are done; what lies where regions leave is not
};

// Behind the last entry of subtables that may have taken keys from `table`, or from such.
inline uint32_t DirectoryEnd(const Subtable& table) {
  return std::min(kDirectoryEntries, 2U << table.depth);
}

class IndexWalker {
 public:
  // A visit begins and ends its own operation; it tells what fails by `*failure`.
  using GroupVisitor = std::function<Task<void>(Subtable table, uint32_t group, Status* failure)>;

  explicit IndexWalker(KvCore& core) : core_(core) {}

  // The first subtable from directory entry `*entry` on, which becomes its; from `end` on none.
  Task<Status> FindSubtable(uint32_t* entry, uint32_t end);
  // The same as an operation.
  Task<Status> EnterAndFindSubtable(uint32_t* entry, uint32_t end);
  // The same, from the first entry on if none is left.
  Task<Status> FindSubtableAround(uint32_t* entry, uint32_t end);
  // Every group of the index, some at a time, until one fails or operations are held: from where
  // `walk` has come to, and leaves there how far it comes.
  Task<Status> ForEachGroup(GroupVisitor visit, IndexWalk* walk);
  // One that a repair has left unfinished, or from the beginning.
  [[nodiscard]] IndexWalk WalkOf(const RepairOrder& order) const;
  // ForEachGroup(); keeps `walk` if it comes to no end.
  Task<Status> WalkRegisters(GroupVisitor visit, IndexWalk* walk);
  // Every register that the group names.
  Task<Status> ListRegisters(Operation& operation, Subtable table, uint32_t group,
                             std::vector<ListedRegister>* registers);

 private:
  KvCore& core_;
  IndexWalk left_walk_;  // the last that a quiesce has cut short
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CHORES_INDEX_WALK_H_
