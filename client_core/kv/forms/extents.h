// Extents: values that no record holds: written before their root, read behind it, retired with it
// (layout/extent.h). Private to kv/; the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_EXTENTS_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_EXTENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "client_core/kv/core/core.h"
#include "client_core/kv/forms/draft.h"
#include "client_core/kv/forms/tree_pages.h"

namespace onetrip {

// An operation's part of the budget for values that are read, until the value is there.
struct Room {
  std::optional<MemoryBudget::Ticket> turn;  // it waits
  MemoryBudget::Share share;
  std::shared_ptr<LargeValue> shown;  // by the last attempt; its share is in there
};

class Extents {
 public:
  Extents(KvCore& core, Drafts& drafts) : core_(core), drafts_(drafts), pages_(core, drafts) {}

  [[nodiscard]] TreePages& pages() { return pages_; }

  // Takes memory for the extents of `record`, which is borrowed, and writes them, some at a time.
  // REQUIRES: the caller has neither pin nor in-flight guard. Whatever fails leaves nothing behind.
  Task<Status> WriteExtents(const NewRecord& record, std::optional<WrittenExtents>* written);
  // Puts what the root's extents, or a tree's leaves, hold of `range` in place of that; or has its
  // reader read the tree. REQUIRES: `operation` has been pinned since before the search.
  // kUnavailable with a turn in `room`: it has to wait for that.
  Task<Status> ReadFromExtents(Operation& operation, ValueRange range, Room* room,
                               ReadResult* result);
  // Waits for it, without pin and in-flight guard. Ok: `operation` has both again, and begins anew.
  Task<Status> WaitForRoom(RegisterOperation& operation, Room* room);
  // Behind work without pin and in-flight guard; `draft`, unless null, gets its memory in between.
  // The operation has both again, whether that was there or not; but for kHeld.
  Task<Status> BeginAnew(RegisterOperation& operation, Draft* draft);
  // Retires those of a root, or its pages, that this worker has taken out of the index. REQUIRES:
  // `operation` has been pinned since before then: the root is still what it was.
  Task<void> RetireExtents(Operation& operation, SlotWord root);

 private:
  // Memory for `bytes` of a value that is read, for which a share of the budget is taken.
  Status TakeLarge(uint64_t bytes, Room* room, ReadResult* result);
  Task<Status> ReadFromTree(Operation& operation, ValueRange range, Room* room, ReadResult* result);
  // False: it would take too many pages.
  Task<Result<bool>> ReadTreeBy(TreeReader& reader, Operation& operation, const TreeRoot& root,
                                ReadResult* result);
  struct ExtentSpan {
    uint64_t first;
    uint64_t last;  // included
  };
  Task<void> WriteExtent(const NewRecord& record, WrittenExtents* written, uint32_t number,
                         Status* failure);
  Task<Status> PostExtent(const RoundTripPtr& round_trip, const std::byte* image, uint32_t bytes,
                          ExtentRef* ref);
  Task<Status> ReadExtents(Operation& operation, const ExtentList& list, uint64_t version,
                           ExtentSpan span, std::byte* into);
  Task<void> ReadExtent(Operation& operation, const ExtentList& list, uint64_t version,
                        uint32_t number, std::byte* into, Status* failure);

  KvCore& core_;
  Drafts& drafts_;
  TreePages pages_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_EXTENTS_H_
