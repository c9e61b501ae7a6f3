// Streams as Redis serializes them: from packed ones to payloads for DUMP, and from payloads of
// both types that redis-server 7.0 restores to packed ones.
//
// Pure; one thread. Both go on by the piece, for a stream may be large. What is loaded comes from
// clients: nothing here trusts it.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_RDB_STREAM_H_
#define ONETRIP_REDIS_COMPAT_VALUES_RDB_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis_compat/values/rdb_collection.h"
#include "redis_compat/values/rdb_unpack.h"
#include "redis_compat/values/rdb_wire.h"
#include "redis_compat/values/stream_value.h"
#include "redis_compat/values/value.h"

namespace onetrip {

// Makes the payload of a stream, but for its footer.
class StreamDumper {
 public:
  // `stream`, a packed one, outlives it.
  explicit StreamDumper(StreamValue& stream) : stream_(stream), groups_(stream.Groups()) {}
  // Room that is enough for it, and for the footer.
  [[nodiscard]] size_t BytesMax() const;

  // Begins to write to `to`, which outlives it. REQUIRES: BytesMax() are there.
  void Begin(std::span<char> to);
  // Makes about `bytes` more. False: it is done, or the stream is damaged.
  bool Advance(size_t bytes);
  [[nodiscard]] bool is_damaged() const { return stream_.is_damaged(); }
  [[nodiscard]] size_t made() const { return made_; }

 private:
  void DumpNode(const StreamNode& node);
  void DumpHeader();
  void DumpGroup(const StreamGroup& group);
  void Put(std::string_view bytes);
  void PutString(std::string_view string);
  void PutLength(uint64_t length);
  void PutRawId(const EntryId& id);

  StreamValue& stream_;
  const std::vector<StreamGroup> groups_;
  std::span<char> to_;
  std::string head_;
  size_t made_ = 0;
  StreamKey next_node_;
  size_t next_group_ = 0;
  bool has_header_ = false;
};

bool IsStreamDump(std::string_view payload);

class StreamLoader {
 public:
  using State = CollectionLoader::State;

  // `payload` outlives it. REQUIRES: LoadDumpChecksum(), IsStreamDump().
  StreamLoader(std::string_view payload, uint64_t bytes_max);
  // Loads about `bytes` more.
  State Advance(size_t bytes);
  // Memory that it takes now, about.
  [[nodiscard]] uint64_t memory_bytes() const {
    return made_.capacity() + groups_.bytes() + string_.memory_bytes();
  }

  // The stream. REQUIRES: kDone.
  [[nodiscard]] static ValueType type() { return ValueType::kStream; }
  std::string TakeValue() { return std::move(made_); }

 private:
  enum class Step : uint8_t { kNode, kCompressed, kEntries, kGroup };

  // Each goes a step, and tells its cost by spent_.
  void TakeNode();
  void Decompress(size_t bytes);
  void GoOnWith(StringUnpacker::State string);
  void TakeEntry();
  void TakeHeader();
  void TakeGroup();
  bool LoadGroup();
  bool LoadConsumers(StreamGroup* group, std::span<StreamPending> pendings);
  bool LoadConsumer(uint32_t group, StreamConsumer* consumer, std::span<StreamPending> pendings);
  // A string in one go.
  bool TakeText(std::string* text);
  bool TakeRawId(EntryId* id);
  bool TakeIdAsLengths(EntryId* id);
  void End(State how) { state_ = how; }

  const uint64_t bytes_max_;
  RdbReader payload_;
  bool has_counts_ = false;  // its type tells more
  State state_ = State::kMore;
  Step step_ = Step::kNode;
  size_t spent_ = 0;

  uint64_t nodes_left_ = 0;
  uint64_t groups_left_ = 0;
  StringUnpacker string_;
  StreamNode node_;
  std::optional<StreamNodeReader> entries_;

  // Elements of groups, by their kinds, in order.
  struct GroupElements {
    std::string heads;
    std::string names;
    std::string consumers;
    std::string pendings;
    std::string givens;
    [[nodiscard]] uint64_t bytes() const {
      return heads.size() + names.size() + consumers.size() + pendings.size() + givens.size();
    }
  };

  StreamHeader header_;
  std::vector<EntryId> node_ids_;
  GroupElements groups_;
  uint64_t live_ = 0;
  EntryId last_entry_;  // deleted ones count
  bool has_entry_ = false;
  EntryId first_live_;
  std::string group_before_;
  std::string consumer_before_;
  std::string made_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_RDB_STREAM_H_
