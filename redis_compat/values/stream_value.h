// Streams as packed values:
//
//   0..7    the header of packed.h; its elements are the live entries
//   8..55   ids: the last one, that of the first live entry, the greatest that was deleted
//   56..63  entries that were ever added
//   64..75  bytes of all nodes, nodes, groups
//   76..    nodes (stream_node.h): id and listpack, which says how long it is
//   ..      groups, by name: name, as an entry of packed.h, bytes of the group (4), the group
//
// An entry is found without a look into nodes that end before it. A stream may be empty, and stay.
// Pure; one thread. Streams come from memory nodes: nothing here trusts them.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_VALUE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/values/packed.h"
#include "redis_compat/values/stream_group.h"
#include "redis_compat/values/stream_node.h"

namespace onetrip {

inline constexpr size_t kStreamHeaderBytes = 76;

struct StreamHeader {
  uint64_t length = 0;  // live entries
  EntryId last_id;
  EntryId first_id;
  EntryId max_deleted_id;
  uint64_t entries_added = 0;
};
// True if an entry behind `id` may have been deleted.
bool HasGapsBehind(const StreamHeader& header, const EntryId& id);
// How many entries were ever added up to the one of that id, or StreamGroup::kUnknownReads.
int64_t EntriesAddedUpTo(const StreamHeader& header, const EntryId& id);

// The parts behind the header.
struct StreamParts {
  uint64_t node_bytes = 0;
  uint64_t nodes = 0;
  uint64_t groups = 0;
};
// Overwrites the first bytes of `value`, which has as many.
void StoreStreamHeader(const StreamHeader& header, const StreamParts& parts, std::string* value);
// Append what lies there.
void AppendStreamNode(const StreamNode& node, std::string* value);
void AppendStreamGroup(std::string_view name, std::string_view body, std::string* value);

// Ids, both ends included.
struct StreamRange {
  EntryId first = {};
  EntryId last = kStreamIdMax;
  bool reverse = false;
};

class StreamValue {
 public:
  struct Group {
    std::string_view name;
    std::string_view body;  // StreamGroup::Load() takes it
  };

  // `value` outlives it; empty: an empty stream. False: it is damaged.
  bool Load(std::string_view value);

  [[nodiscard]] const StreamHeader& header() const { return header_; }
  [[nodiscard]] const std::vector<StreamNode>& nodes() const { return nodes_; }
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }

  // Finds a live entry. False: it is not there, or its node is damaged, which `is_damaged` notes.
  bool Find(const EntryId& id, StreamEntry* entry, bool* is_damaged) const;
  // Null: there is no such group.
  [[nodiscard]] const Group* FindGroup(std::string_view name) const;

  // The place of the node in which `id` would be.
  [[nodiscard]] size_t FindNode(const EntryId& id) const;

 protected:
  StreamHeader header_;
  std::vector<StreamNode> nodes_;
  std::vector<Group> groups_;

 private:
  bool LoadParts(std::string_view nodes, std::string_view groups, const StreamParts& parts);
};

// Goes through the live entries of a range.
class StreamEntries {
 public:
  // `stream` outlives it.
  StreamEntries(const StreamValue& stream, const StreamRange& range);
  // Gives the next one. False: there is none, or a node is damaged.
  bool Next(StreamEntry* entry);
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }

 private:
  // Fills `entries_` from the next node. False: there is none in the range.
  bool TakeNode();

  const StreamValue& stream_;
  const StreamRange range_;
  size_t next_node_;      // forwards: the next one; backwards: the one behind it
  bool is_over_ = false;  // no node behind is in the range
  bool is_damaged_ = false;
  std::vector<StreamEntry> entries_;  // those of a node, in the order of the range
  size_t next_entry_ = 0;
};

// The id of the last live entry, or 0-0. False: a node is damaged.
bool FindLastStreamId(const StreamValue& stream, EntryId* id);

// Nodes that Redis's radix tree would have for a stream's.
uint64_t CountRadixTreeNodes(const std::vector<StreamNode>& nodes);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_VALUE_H_
