// Streams as packed values:
//
//   0..7    the header of packed.h; its elements are the live entries
//   8..55   ids: the last one, that of the first live entry, the greatest that was deleted
//   56..63  entries that were ever added
//   64..75  nodes, nodes of the radix tree that Redis would have of them, groups
//   76..    elements (stream_element.h)
//
// Large ones are trees (stream_leaves.h) of the same header and elements. An entry is found without
// a look into nodes that end before it. A stream may be empty, and stay.
//
// Pure; one thread. Streams come from memory nodes: nothing here trusts them.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_VALUE_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/values/packed.h"
#include "redis_compat/values/stream_elements.h"

namespace onetrip {

inline constexpr size_t kStreamHeaderBytes = 76;

struct StreamHeader {
  uint64_t length = 0;  // live entries
  EntryId last_id;
  EntryId first_id;
  EntryId max_deleted_id;
  uint64_t entries_added = 0;
  uint32_t nodes = 0;
  uint32_t radix_nodes = 1;  // stream_radix.h
  uint32_t groups = 0;
};
// True if an entry behind `id` may have been deleted.
bool HasGapsBehind(const StreamHeader& header, const EntryId& id);
// How many entries were ever added up to the one of that id, or StreamGroup::kUnknownReads.
int64_t EntriesAddedUpTo(const StreamHeader& header, const EntryId& id);

// The first bytes of a packed stream, kStreamHeaderBytes of them.
std::string StreamHeaderBytes(const StreamHeader& header);
// False: `value` does not begin with them.
bool LoadStreamHeader(std::string_view value, StreamHeader* header);

// Ids, both ends included.
struct StreamRange {
  EntryId first = {};
  EntryId last = kStreamIdMax;
  bool reverse = false;
};

// A stream in either form. Where pages are missing nothing is found.
class StreamValue {
 public:
  StreamValue() = default;

  // `value`, which is packed, outlives it; empty: an empty stream. False: it is damaged.
  bool Load(std::string_view value);
  // `tree` outlives it.
  bool Load(Tree& tree);
  // A stream of nodes that CopyNodes() has made, of which the header tells nothing.
  bool LoadNodes(std::string_view nodes) { return elements_.Load(nodes); }
  // Makes a copy of the nodes in which the entries of a range are: of all, or the first `count`.
  void CopyNodes(const StreamRange& range, uint64_t count, std::string* nodes);

  [[nodiscard]] const StreamHeader& header() const { return header_; }
  [[nodiscard]] StreamElements& elements() { return elements_; }
  // Something in it was found to be damaged.
  [[nodiscard]] bool is_damaged() const { return elements_.is_damaged(); }

  // The node in which `id` would be; the first one from an id on; the one before an id.
  bool FindNode(const EntryId& id, StreamNode* node);
  bool NodeFrom(const EntryId& id, StreamNode* node);
  bool NodeBefore(const EntryId& id, StreamNode* node);
  bool LastNode(StreamNode* node);
  // Finds a live entry.
  bool Find(const EntryId& id, StreamEntry* entry);
  // The id of the last live entry, or 0-0.
  EntryId LastLiveId();

  // False: there is no such group, or consumer.
  bool FindGroup(std::string_view name, StreamGroup* group);
  bool FindConsumer(uint32_t group, std::string_view name, StreamConsumer* consumer);
  // The consumer of a number that something in the stream names. False: that is damage.
  bool ConsumerOf(uint32_t group, uint32_t number, StreamConsumer* consumer);
  bool FindPending(uint32_t group, const EntryId& id, StreamPending* pending);
  // The first pending entry of a group from an id on, and its last one.
  bool PendingFrom(uint32_t group, const EntryId& id, StreamPending* pending);
  bool LastPending(uint32_t group, StreamPending* pending);
  // The first one of those that were given to one consumer.
  bool GivenFrom(uint32_t group, uint32_t consumer, const EntryId& id, StreamPending* pending);
  // Asks for the pages of what will be gone through, so that they are read together: of entries, or
  // of what is pending in a group. `count`: as many, or all if it is 0.
  void WantEntries(const StreamRange& range, uint64_t count);
  void WantPending(uint32_t group, const EntryId& first, uint64_t count);
  void WantGiven(uint32_t group, uint32_t consumer, const EntryId& first, uint64_t count);
  // All of them, by name.
  std::vector<StreamGroup> Groups();
  std::vector<StreamConsumer> Consumers(uint32_t group);

 protected:
  StreamHeader header_;
  StreamElements elements_;

 private:
  // True if the header tells what there is.
  bool CheckElements();
};

// Goes through the live entries of a range.
class StreamEntries {
 public:
  // `stream` outlives it.
  StreamEntries(StreamValue& stream, const StreamRange& range);
  // Gives the next one. False: there is none, or the stream is damaged.
  bool Next(StreamEntry* entry);
  // The node of the one that it gave last.
  [[nodiscard]] const StreamNode& node() const { return node_; }

 private:
  // Fills `entries_` from the next node. False: there is none in the range.
  bool TakeNode();
  bool NextNode(StreamNode* node);
  bool CheckOrder(const StreamEntry& first, const StreamEntry& last);

  StreamValue& stream_;
  const StreamRange range_;
  bool has_begun_ = false;
  bool is_over_ = false;              // no node behind is in the range
  StreamNode node_;                   // the last one that it took
  EntryId met_;                       // the last id in the direction of the range, deleted or not
  std::vector<StreamEntry> entries_;  // those of a node, in the order of the range
  size_t next_entry_ = 0;
};

// Goes through the pending entries of a group, or of one of its consumers, by id.
class StreamPendings {
 public:
  // `stream` outlives it.
  StreamPendings(StreamValue& stream, uint32_t group, const EntryId& first)
      : stream_(stream), group_(group), next_(first) {}
  void OfConsumer(uint32_t consumer) {
    has_consumer_ = true;
    consumer_ = consumer;
  }
  bool Next(StreamPending* pending);

 private:
  StreamValue& stream_;
  const uint32_t group_;
  EntryId next_;
  bool has_consumer_ = false;
  uint32_t consumer_ = 0;
  bool is_over_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_VALUE_H_
