// A stream that a command changes: nodes and groups that stay are copied as they lie.
//
// Pure; one thread.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_EDIT_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_EDIT_H_

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>

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

class StreamEdit : public StreamValue {
 public:
  // Something in the stream is damaged: nothing that was changed may be stored.
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }

  // Adds an entry. `fields`: names and values in turn. REQUIRES: `id` is greater than the last one.
  void Add(const EntryId& id, std::span<const std::string_view> fields,
           const StreamNodeLimits& limits);
  // True if the entry was there.
  bool Delete(const EntryId& id);
  // Returns how many entries have gone.
  uint64_t Trim(const StreamTrim& trim);
  [[nodiscard]] StreamHeader& header_to_edit() { return header_; }

  // Gives the stream a group, a new one or in place of the one of that name.
  void PutGroup(std::string_view name, const StreamGroup& group);
  // False: there is none.
  bool RemoveGroup(std::string_view name);

  // The stream as it is now. REQUIRES: it is not damaged.
  [[nodiscard]] std::string Finish() const;

 private:
  std::string_view Keep(std::string bytes) { return made_.emplace_back(std::move(bytes)); }
  // True if all of a node goes by `trim`.
  bool GoesWhole(const StreamNode& node, uint64_t live, const StreamTrim& trim);
  // Removes entries of a node which does not go as a whole.
  uint64_t TrimWithin(StreamNode* node, const StreamTrim& trim);
  void RenewFirstId();
  void ReplaceListpack(StreamNode* node, std::string listpack);

  std::deque<std::string> made_;  // bytes of changed nodes and groups
  bool is_damaged_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_EDIT_H_
