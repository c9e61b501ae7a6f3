// RecordForm: keys whose slots name a record, or the root of a value in extents. Private to kv/;
// the worker's thread.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_RECORD_FORM_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_RECORD_FORM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "client_core/kv/core/core.h"
#include "client_core/kv/core/counters.h"
#include "client_core/kv/forms/draft.h"
#include "client_core/kv/forms/extents.h"
#include "client_core/kv/forms/form.h"
#include "client_core/kv/forms/record.h"

namespace onetrip {

// A collection that a mutation has seen as a tree.
struct ShownTree {
  explicit ShownTree(PageCache& cache) : pages(cache) {}

  TreeRoot root;
  LoadedPages pages;
  std::optional<Tree> tree;
  RecordView record;
};

class RecordForm final : public Form {
 public:
  RecordForm(KvCore& core, Counters& counters, Drafts& drafts, Extents& extents, Records& records)
      : core_(core), counters_(counters), drafts_(drafts), extents_(extents), records_(records) {}

  MaybeTask<Result<Step>> Get(RegisterOperation& operation, const FoundKey& found, ValueRange range,
                              Room* room, ReadResult* result) override;
  Task<Result<Step>> Overwrite(RegisterOperation& operation, const FoundKey& found,
                               const NewRecord& record, Draft* draft) override;
  Task<Result<Step>> Delete(RegisterOperation& operation, const FoundKey& found,
                            bool* existed) override;
  Task<Result<Step>> Mutate(RegisterOperation& operation, const FoundKey& found, Mutation& mutation,
                            Room* room, Draft* draft) override;
  Task<Status> Sweep(Operation& operation, Entry entry, bool* gone) override;
  Task<Status> NameMemory(OrphanInventory& inventory, Operation& operation, SlotWord word) override;
  [[nodiscard]] Sight See(const std::byte* image, uint64_t now_ms, KeyFacts* facts) const override;

 private:
  Task<Result<Step>> GetExpired(Operation& operation, const FoundKey& found);
  Task<Result<Step>> GetLarge(Operation& operation, ValueRange range, Room* room,
                              ReadResult* result);
  Task<Status> Replace(Operation& operation, const Key& key, const IndexKey& index_key,
                       const SearchResult& search, const Change& change, Draft* draft, bool* done);
  // Replace() by a value in extents, or by a tree: writing them takes giving up the pin, so what
  // was `seen`, of a root with `root` as its value, is compared with what is there then.
  Task<Status> ReplaceByExtents(RegisterOperation& operation, const Key& key,
                                const RecordView* seen, std::string_view root, const Change& change,
                                Draft* draft, bool* done);
  // Replace() by a tree, with few new pages if it is a change of what was `seen`.
  Task<Status> ReplaceByTree(RegisterOperation& operation, const FoundKey& found,
                             const RecordView* seen, const Change& change, Draft* draft,
                             bool* done);
  // Retires what a root that this worker has replaced names, but for pages that the tree `changed`,
  // which was made of it, names still.
  Task<void> RetireBehindRoot(Operation& operation, SlotWord root, const Tree* changed);
  // Shows `mutation` the tree whose root was found, and reads what pages it needs. False: they are
  // too many, and it has to see the whole value.
  Task<Result<bool>> ApplyToTree(RegisterOperation& operation, Mutation& mutation, ShownTree* shown,
                                 Change* change);
  Task<Status> NameOrigin(OrphanInventory& inventory, Operation& operation, SlotWord word);
  Task<Status> NameExtents(OrphanInventory& inventory, Operation& operation, SlotWord root);

  KvCore& core_;
  Counters& counters_;
  Drafts& drafts_;
  Extents& extents_;
  Records& records_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_RECORD_FORM_H_
