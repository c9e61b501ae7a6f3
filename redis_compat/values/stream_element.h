// The elements of a stream, one behind the other in the order of their keys, as packed streams
// (stream_value.h) and the leaves of trees hold them:
//
//   node           1, id, listpack (stream_node.h), which says how long it is
//   group          2, name, number (4), last id, entries read (8), consumers (4), pending (4)
//   consumer name  3, group (4), name, consumer (4)
//   consumer       4, group (4), consumer (4), seen (8), pending (4), name
//   pending entry  5, group (4), id, given (8), times given (8), consumer (4)
//   given entry    6, group (4), consumer (4), id
//
// Ids are two numbers of eight bytes, names entries of packed.h. Groups and consumers are known by
// small numbers, so that what is pending takes few bytes however long the names are. Whatever is
// pending stands by its id, and once more by its consumer.
//
// Pure; any thread. Elements come from memory nodes: nothing here trusts them.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_ELEMENT_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_ELEMENT_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "redis_compat/values/stream_id.h"
#include "redis_compat/values/stream_node.h"

namespace onetrip {

enum class StreamKind : uint8_t {
  kNode = 1,
  kGroup = 2,
  kConsumerName = 3,
  kConsumer = 4,
  kPending = 5,
  kGiven = 6,
  kEnd = 7,  // no element is of it
};

// The place of an element. Parts that its kind does not have are as they are here.
struct StreamKey {
  StreamKind kind = StreamKind::kNode;
  uint32_t group = 0;
  uint32_t consumer = 0;
  EntryId id = {};
  std::string_view name = {};

  friend auto operator<=>(const StreamKey&, const StreamKey&) = default;
  friend bool operator==(const StreamKey&, const StreamKey&) = default;
};
constexpr StreamKey KeyOfNode(const EntryId& id) { return {.kind = StreamKind::kNode, .id = id}; }
// Bytes that compare as keys do.
std::string KeyBytes(const StreamKey& key);

struct StreamElement {
  StreamKey key;           // its name lies in `bytes`
  std::string_view bytes;  // all of it
  std::string_view rest;   // behind its key
};
// The element that `bytes` begin with. False: there is none.
bool LoadStreamElement(std::string_view bytes, StreamElement* element);

struct StreamGroup {
  // How many entries it has read is not known.
  static constexpr int64_t kUnknownReads = -1;

  std::string_view name = {};
  uint32_t number = 0;
  EntryId last_id = {};
  int64_t entries_read = kUnknownReads;
  uint32_t consumers = 0;
  uint32_t pending = 0;  // entries
};

struct StreamConsumer {
  std::string_view name = {};
  uint32_t number = 0;
  int64_t seen_ms = 0;   // Unix time, as all times here
  uint32_t pending = 0;  // entries
};

// An entry that was given to a consumer and is not acknowledged.
struct StreamPending {
  EntryId id = {};
  int64_t delivered_ms = 0;
  uint64_t deliveries = 0;
  uint32_t consumer = 0;
};

// Each is false for an element of another kind, or a damaged one.
bool LoadStreamNode(const StreamElement& element, StreamNode* node);
bool LoadStreamGroup(const StreamElement& element, StreamGroup* group);
bool LoadConsumerNumber(const StreamElement& element, uint32_t* number);
bool LoadStreamConsumer(const StreamElement& element, StreamConsumer* consumer);
bool LoadStreamPending(const StreamElement& element, StreamPending* pending);

std::string NodeElement(const StreamNode& node);
std::string GroupElement(const StreamGroup& group);
std::string ConsumerNameElement(uint32_t group, const StreamConsumer& consumer);
std::string ConsumerElement(uint32_t group, const StreamConsumer& consumer);
std::string PendingElement(uint32_t group, const StreamPending& pending);
std::string GivenElement(uint32_t group, const StreamPending& pending);

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_ELEMENT_H_
