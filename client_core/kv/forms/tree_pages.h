// TreePages: the pages of collections' trees (tree/page.h): read behind their root, written before
// it, retired once no root names them. Private to kv/; the worker's thread.
//
// Pages follow the rules of extents: no slot names a page before it is on all replicas, and a page
// belongs to the roots of one key that follow each other: who takes a root out of the index retires
// the pages that the next one does not name.
#ifndef ONETRIP_CLIENT_CORE_KV_FORMS_TREE_PAGES_H_
#define ONETRIP_CLIENT_CORE_KV_FORMS_TREE_PAGES_H_

#include <absl/container/flat_hash_set.h>
#include <absl/container/node_hash_map.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/kv/core/core.h"
#include "client_core/kv/core/page_cache.h"
#include "client_core/kv/forms/draft.h"
#include "client_core/tree/tree.h"

namespace onetrip {

// Pages that an operation has read, or that its worker has kept. REQUIRES: the operation has been
// pinned since before it read the root.
class LoadedPages final : public PageSource {
 public:
  explicit LoadedPages(PageCache& cache) : cache_(cache) {}

  const std::string_view* Find(const PageRef& page) const override;
  // With these, too, it would have no more than that, but for what its worker keeps.
  [[nodiscard]] bool HasRoomFor(std::span<const PageRef> missing, uint64_t bytes_max) const;
  // `holder` keeps the bytes.
  void Add(const PageRef& page, std::string_view bytes, RoundTripPtr holder);

 private:
  struct Page {
    uint64_t checksum;
    std::string_view bytes;
    RoundTripPtr holder;
    std::shared_ptr<const std::string> cached;
  };
  PageCache& cache_;
  uint64_t bytes_ = 0;                                 // that were read
  mutable absl::node_hash_map<uint64_t, Page> pages_;  // by address
};

class TreePages {
 public:
  TreePages(KvCore& core, Drafts& drafts) : core_(core), drafts_(drafts) {}

  // Reads pages that a tree misses, each from one replica, of a later view if a node is lost.
  // kCorrupt: one is not what it should be. kUnavailable: nodes are lost, or it gives way to a
  // quiesce that waits for long.
  Task<Status> Load(Operation& operation, std::span<const PageRef> missing, LoadedPages* pages,
                    bool gives_way = true);
  // Reads leaves that stand side by side: their bytes, joined, to `into`.
  Task<Status> ReadLeaves(Operation& operation, std::span<const PageRef> leaves, std::byte* into);

  // Gives the new pages of a balanced tree their places, of the classes that they need.
  static std::vector<NewPage> Place(Tree& tree, std::span<const ExtentRef> places);
  // Writes pages that no slot names, some at a time.
  Task<Status> Write(Operation& operation, std::span<const NewPage> pages);

  // Takes memory for the new pages of a balanced tree, if there is some without a wait, and writes
  // them. `in_place`, unless null: the pool is full, and the tree takes no more than it gives up;
  // so it may be of the memory nodes' reserve, and if there is none, this becomes the class that is
  // short. kOutOfMemory: nothing was taken, for there is none or the pages are too many.
  Task<Status> WriteSoon(Operation& operation, Tree& tree, SizeClass* in_place,
                         std::optional<WrittenExtents>* written);
  // The same for any number of pages, and waits for memory. REQUIRES: the caller has neither pin
  // nor in-flight guard. Whatever fails leaves nothing behind.
  Task<Status> WriteInTurns(Tree& tree, std::optional<WrittenExtents>* written);

  // Visits the pages of the first `orders` orders of a root: each level from left to right, those
  // above others first. Not ok: some were not read, and not all visited. As Load().
  using Visit = std::function<void(const PageName& name, bool is_leaf)>;
  Task<Status> ForEach(Operation& operation, const TreeRoot& root, size_t orders, Visit visit,
                       bool gives_way = true);
  // Retires all pages of a root that this worker has taken out of the index.
  Task<Status> Retire(Operation& operation, const TreeRoot& root);
  void RetireAll(std::span<const PageRef> pages);
  // Remembers new pages, if there are any, for the next change, once a root names them.
  void Keep(const std::optional<WrittenExtents>& written);
  // A planted bug's: while others may read them.
  void FreeDropped(const Tree& changed);

 private:
  // WRITEs of the first of them to all replicas; returns their number.
  size_t AddSome(RoundTrip& round_trip, std::span<const NewPage> pages) const;
  // Takes memory for the new pages, as WriteSoon(). What was taken is in `places`, whatever comes.
  Task<Status> TakeSoon(std::span<const uint32_t> bytes, SizeClass* in_place,
                        std::vector<ExtentRef>* places);
  Task<Status> TakeInTurns(std::span<const uint32_t> bytes, std::vector<ExtentRef>* places);
  Task<Status> WriteSome(std::span<const NewPage> pages, size_t* written);
  // The inner pages on one level, some of them in a turn. `read` knows those that were read before.
  Task<Status> VisitBelow(Operation& operation, std::span<const PageName> names, size_t level,
                          const Visit& visit, bool gives_way, absl::flat_hash_set<uint64_t>* read,
                          std::vector<PageName>* below);

  KvCore& core_;
  Drafts& drafts_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_FORMS_TREE_PAGES_H_
