// A stream that a command changes, packed or a tree.
//
// Pure; one thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_EDIT_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_EDIT_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "redis_compat/values/stream_value.h"

namespace onetrip {

// When Redis begins another node; 0: no limit.
struct StreamNodeLimits {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

struct StreamTrim {
  enum class By : uint8_t { kNothing, kLength, kId } by = By::kNothing;
  uint64_t length = 0;  // at most as many stay
  EntryId id = {};      // those before it go
  bool whole_nodes = false;
  uint64_t limit = 0;  // no more than these go; 0: any number
};

// If something in the stream is damaged, nothing that was changed may be stored.
class StreamEdit : public StreamValue {
 public:
  // Adds an entry. `fields`: names and values in turn. REQUIRES: `id` is greater than the last one.
  void Add(const EntryId& id, std::span<const std::string_view> fields,
           const StreamNodeLimits& limits);
  // Returns how many of them were there.
  uint64_t Delete(std::span<const EntryId> ids);
  // Returns how many entries have gone.
  uint64_t Trim(const StreamTrim& trim);
  // REQUIRES: no live entry is behind it.
  void SetLastId(const EntryId& id);
  [[nodiscard]] StreamHeader& header_to_edit() { return header_; }

  // Makes a group without consumers. Its number is given here. REQUIRES: there is none of its name.
  void AddGroup(StreamGroup group);
  void RemoveGroup(const StreamGroup& group);

  // Bytes that it takes, no fewer.
  [[nodiscard]] uint64_t BytesMax() const { return kStreamHeaderBytes + elements_.BytesMax(); }
  // The stream as it is now. REQUIRES: it is packed, and not damaged.
  [[nodiscard]] std::string Finish() const;
  // The same of a tree, which gets the changes. False: it cannot have them, and was not changed;
  // and FinishPacked() makes a packed one of it and them, unless pages are missing.
  bool FinishTree();
  bool FinishPacked(std::string* packed);

 private:
  void WantTrimmed(const StreamTrim& trim);
  void PutNode(const EntryId& id, std::string_view listpack);
  // True if all of a node goes by `trim`.
  bool GoesWhole(const StreamNode& node, uint64_t live, const StreamTrim& trim);
  // Removes entries of a node which does not go as a whole.
  uint64_t TrimWithin(const StreamNode& node, const StreamTrim& trim);
  bool DeleteOne(const EntryId& id);
  // REQUIRES: it is there.
  void EraseNode(const EntryId& id);
  void CountNode(const EntryId& id, bool comes);
  void RenewFirstId();
  uint32_t FreeGroupNumber();
};

// Changes to one group: its head and its consumers are written by Finish().
class StreamGroupEdit {
 public:
  // `stream` outlives it; `group` is one of its groups.
  StreamGroupEdit(StreamEdit& stream, const StreamGroup& group) : stream_(stream), head_(group) {}

  [[nodiscard]] const StreamGroup& head() const { return head_; }
  void set_last_id(const EntryId& id) { head_.last_id = id; }
  void set_entries_read(int64_t entries) { head_.entries_read = entries; }

  // The number of a consumer, which is made if it is not there. It was seen at `now_ms`. `name`
  // outlives the edit.
  uint32_t SeeConsumer(std::string_view name, int64_t now_ms);
  // Removes a consumer with its pending entries; returns how many those were.
  uint64_t RemoveConsumer(const StreamConsumer& consumer);

  bool FindPending(const EntryId& id, StreamPending* pending) {
    return stream_.FindPending(head_.number, id, pending);
  }
  // Gives an entry to `pending.consumer`, to which it may have been given before.
  void Put(const StreamPending& pending);
  // REQUIRES: it is pending.
  void Remove(const StreamPending& pending);

  // Tells the stream. Once, behind the last change.
  void Finish();

 private:
  // Null: it is damage that something names this consumer.
  StreamConsumer* Touch(uint32_t number);
  uint32_t FreeConsumerNumber();
  void Count(uint32_t consumer, bool comes);

  StreamEdit& stream_;
  StreamGroup head_;
  std::map<uint32_t, StreamConsumer> touched_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_EDIT_H_
