// Collections as Redis serializes them: from packed ones to payloads for DUMP, and from payloads of
// every type that redis-server 7.0 restores to packed ones.
//
// Pure; one thread. Both go on by the piece, for a collection may be large. What is loaded comes
// from clients: nothing here trusts it.
#ifndef ONETRIP_REDIS_COMPAT_VALUES_RDB_COLLECTION_H_
#define ONETRIP_REDIS_COMPAT_VALUES_RDB_COLLECTION_H_

#include <absl/container/flat_hash_set.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis_compat/values/entry_reader.h"
#include "redis_compat/values/packed_map.h"
#include "redis_compat/values/rdb_unpack.h"
#include "redis_compat/values/rdb_wire.h"
#include "redis_compat/values/value.h"

namespace onetrip {

// Makes the payload of a collection, but for its footer: the plain form of its type, which Redis
// brings into a compact one as it loads it.
class CollectionDumper {
 public:
  // Room that is enough for the packed collection `value`, and for the footer.
  static size_t BytesMax(std::string_view value);

  // `value` and `to` outlive it. REQUIRES: it is a collection's type; BytesMax() are there.
  CollectionDumper(ValueType type, std::string_view value, std::span<char> to);
  // Makes about `bytes` more. False: it is done.
  bool Advance(size_t bytes);
  [[nodiscard]] size_t made() const { return made_; }

 private:
  bool DumpElement();
  void Put(std::string_view bytes);
  void PutString(std::string_view string);

  const ValueType type_;
  PackedElements elements_;
  const std::span<char> to_;
  std::string head_;
  size_t made_ = 0;
  uint32_t dumped_ = 0;
};

// When Redis holds a collection in its compact encodings.
struct CollectionLimits {
  CompactLimits hash;
  CompactLimits sorted_set;
  uint64_t integer_set_members = 0;
};

class CollectionLoader {
 public:
  enum class State : uint8_t { kMore, kDone, kDamaged, kTooLarge, kNoMemory };

  // `payload` outlives it. REQUIRES: LoadDumpChecksum().
  CollectionLoader(std::string_view payload, const CollectionLimits& limits, uint64_t bytes_max);
  // Loads about `bytes` more.
  State Advance(size_t bytes);
  // Memory that it takes now, about.
  [[nodiscard]] uint64_t memory_bytes() const;

  // The collection and its type. REQUIRES: kDone.
  [[nodiscard]] ValueType type() const;
  std::string TakeValue() { return std::move(made_); }

 private:
  enum class Step : uint8_t { kStrings, kString, kEntries, kKeys, kReverse };
  struct Form;
  static const Form kForms[];

  void Begin();
  // Each goes a step, and tells its cost by spent_.
  void GoOn();
  void TakeString();
  void Decompress(size_t bytes);
  void GoOnWith(StringUnpacker::State string);
  void TakeEntry();
  void CheckKey();
  void ReverseElement();

  // A string of the payload is there: an element, or a piece of several.
  void OnString(std::string_view string);
  void AddEntry(std::string_view entry);
  void AddScore(double score);
  void AddToIntegers(std::string_view member);
  void Append(std::string_view entry);
  // After the last entry: what is left is to see that it is sound, and in order.
  void BeginChecks();
  void EndChecks();
  void SortIntegers();
  void SortElements();
  void StoreHeader(uint8_t flags);
  void End(State how) { state_ = how; }

  const CollectionLimits limits_;
  const uint64_t bytes_max_;
  RdbReader payload_;
  const Form* form_ = nullptr;
  State state_ = State::kMore;
  Step step_ = Step::kStrings;
  size_t spent_ = 0;

  uint64_t strings_left_ = 0;
  bool is_element_ = false;  // the string that is being taken
  StringUnpacker string_;
  std::unique_ptr<EntryReader> entries_;

  std::string made_;
  uint64_t added_ = 0;  // entries
  size_t longest_ = 0;  // a key, or a value in a hash
  bool are_integers_ = false;
  std::vector<int64_t> integers_;

  PackedElements checked_{{}, false};
  absl::flat_hash_set<std::string_view> keys_;
  PackedElement before_;
  bool ascends_ = true;
  bool descends_ = true;
  std::string ordered_;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_VALUES_RDB_COLLECTION_H_
