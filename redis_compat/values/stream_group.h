// Consumer groups of streams: who reads a stream how far, and which entries were given to whom and
// are not acknowledged yet.
//
// Pure; one thread. Groups come from memory nodes: nothing here trusts them.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_STREAM_GROUP_H_
#define ONETRIP_REDIS_COMPAT_VALUES_STREAM_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/values/stream_id.h"

namespace onetrip {

struct StreamConsumer {
  std::string name;
  int64_t seen_ms = 0;  // Unix time, as all times here
};

struct StreamPending {
  EntryId id;
  int64_t delivered_ms = 0;
  uint64_t deliveries = 0;
  uint32_t consumer = 0;  // its place among the consumers
};

class StreamGroup {
 public:
  // How many entries it has read is not known.
  static constexpr int64_t kUnknownReads = -1;
  static constexpr uint32_t kNoConsumer = UINT32_MAX;

  // False: `body` is no group.
  bool Load(std::string_view body);
  void AppendTo(std::string* to) const;

  EntryId last_id;
  int64_t entries_read = kUnknownReads;

  // By name.
  [[nodiscard]] const std::vector<StreamConsumer>& consumers() const { return consumers_; }
  // The consumer's place, or kNoConsumer.
  [[nodiscard]] uint32_t FindConsumer(std::string_view name) const;
  // The same; makes one that is not there. Either was seen at `now_ms`.
  uint32_t SeeConsumer(std::string_view name, int64_t now_ms);
  // Removes a consumer with its pending entries; returns how many those were.
  uint64_t RemoveConsumer(uint32_t consumer);

  // Pending entries, by id. A place in it holds until one is added.
  [[nodiscard]] std::vector<StreamPending>& pending() { return pending_; }
  [[nodiscard]] const std::vector<StreamPending>& pending() const { return pending_; }
  // The place of the first one that is not before `id`.
  [[nodiscard]] size_t FindPlace(const EntryId& id) const;
  // Null: it is not pending.
  StreamPending* FindPending(const EntryId& id);
  // The pending entry of `id`; one that is not there is added, and is of kNoConsumer.
  StreamPending& AddPending(const EntryId& id);
  // Removes those that were given to kNoConsumer, which is how single ones go.
  void Sweep();
  // Pending entries of each consumer.
  [[nodiscard]] std::vector<uint64_t> CountPending() const;

 private:
  std::vector<StreamConsumer> consumers_;
  std::vector<StreamPending> pending_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_STREAM_GROUP_H_
