// Nodes of streams: some entries that follow each other, in a listpack as Redis has them in its
// radix tree and in RDB.
//
//   live entries, deleted ones, names, each name, 0: the fields of the first entry, which others
//   mostly have too; then for each entry
//   flags, ms and sequence (both less those of the node's id), its values; or, unless its fields
//   are the node's: their number, and each name with its value; then how many of these there are
//
// A deleted entry stays until its node goes. Pure; any thread. Nodes come from memory nodes and
// from clients: nothing here trusts them.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_NODE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_NODE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "redis_compat/values/listpack.h"
#include "redis_compat/values/stream_id.h"

namespace onetrip {

// The first id and the entries; those tell theirs by what they have more.
struct StreamNode {
  EntryId id;
  std::string_view listpack;
};

struct StreamNodeHead {
  uint64_t live = 0;
  uint64_t deleted = 0;
  uint64_t names = 0;
  // Bytes of the listpack at which these begin.
  size_t names_at = 0;
  size_t entries_at = 0;
};
bool LoadStreamNodeHead(std::string_view listpack, StreamNodeHead* head);
// The number of live entries alone; 0 of a damaged one.
uint64_t LiveEntries(const StreamNode& node);

struct StreamEntry {
  EntryId id;
  std::string_view listpack;
  uint64_t fields = 0;
  // Bytes of the listpack at which these begin.
  size_t flags_at = 0;
  size_t names_at = 0;  // 0: each stands before its value
  size_t values_at = 0;
  bool is_deleted = false;
};

// Goes through the entries of a node, deleted ones too.
class StreamNodeReader {
 public:
  // The node's bytes outlive it.
  explicit StreamNodeReader(const StreamNode& node);

  // Gives the next one. False: there is none, or the node is damaged.
  bool Next(StreamEntry* entry);
  // True if it has met damage; known for sure when Next() has come to the end.
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }
  [[nodiscard]] const StreamNodeHead& head() const { return head_; }

 private:
  bool Damaged() {
    is_damaged_ = true;
    return false;
  }
  bool TakeEntry(StreamEntry* entry);

  StreamNode node_;
  StreamNodeHead head_;
  ListpackCursor cursor_;
  uint64_t live_ = 0;
  uint64_t deleted_ = 0;
  EntryId before_;
  bool is_damaged_ = false;
};

// Goes through the fields of an entry that a reader has given.
class StreamFields {
 public:
  explicit StreamFields(const StreamEntry& entry)
      : left_(entry.fields),
        has_names_(entry.names_at == 0),
        names_(entry.listpack, entry.names_at),
        values_(entry.listpack, entry.values_at) {}
  // Gives the next one; both live until the next call. False: there is none.
  bool Next(std::string_view* name, std::string_view* value);

 private:
  uint64_t left_;
  bool has_names_;
  ListpackCursor names_;
  ListpackCursor values_;
  ListpackNumberText name_number_;
  ListpackNumberText value_number_;
};

// The listpack of a node with one entry, which has the node's id. `fields`: names and values in
// turn.
std::string MakeStreamNode(std::span<const std::string_view> fields);
// That of a node with one entry more; empty: the node is damaged. REQUIRES: `id` is greater than
// all of its.
std::string AppendToStreamNode(const StreamNode& node, const EntryId& id,
                               std::span<const std::string_view> fields);
// That of a node with entries deleted, whose flags lie at these bytes; empty: it is damaged.
// REQUIRES: a reader has given them, and they are not deleted.
std::string DeleteFromStreamNode(std::string_view listpack, std::span<const size_t> flags_at);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_NODE_H_
