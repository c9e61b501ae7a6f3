// The steps that commands on lists, sets, sorted sets, hashes and streams take around their storage
// operation.
//
// A change of a collection is one read-modify-write of its record: however many elements it
// touches, others see all of the change or nothing, on every host. A large one is held as a tree,
// of which commands read and write a few pages (redis_compat/values/collection_tree.h).
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_COLLECTION_ACCESS_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_COLLECTION_ACCESS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "redis_compat/dispatch/key_access.h"
#include "redis_compat/values/packed.h"
#include "redis_compat/values/tree_map.h"

namespace onetrip {

inline constexpr char kDamagedStreamError[] = "ERR the stream at this key is damaged";
inline constexpr char kCollectionTooLargeError[] =
    "ERR the collection would be larger than a value may be (512 MiB)";

// Returns true if a read with a reader has found a tree, which that has seen.
inline bool IsTree(const ReadResult& result) {
  return result.found() && result.record().value.empty() && result.record().value_bytes > 0;
}

// Takes the collection that a read has found, and counts the lookup. `value` is empty if there is
// none, or a tree. False: it has answered that the read failed, or WRONGTYPE. `result` outlives
// `value`.
inline bool TakeCollection(CommandContext& context, Status status, const ReadResult& result,
                           ValueType type, std::string_view* value) {
  if (AnsweredReadFailure(context, status)) return false;
  CountLookup(context, result.found());
  *value = {};
  if (!result.found()) return true;
  if (!IsOfType(&result.record(), type)) [[unlikely]] {
    context.out.Error(kWrongTypeError);
    return false;
  }
  *value = result.record().value;
  return true;
}

// Reads the key at argv[1] for a command that may run beside others, and answers with as much as an
// element: what is large is read when its turn has come. `reader`, unless null, reads a tree.
Task<Status> ReadInTurn(CommandContext& context, ReadResult* result, TreeReader* reader = nullptr);

// Answers with the number of elements of the collection at argv[1].
Task<void> ReplySize(CommandContext& context, ValueType type);

// A read-modify-write of a collection. Of a value of another type nothing becomes but WRONGTYPE.
class CollectionMutation : public CommandMutation {
 public:
  // `context` outlives it.
  CollectionMutation(CommandContext& context, ValueType type) : context_(context), type_(type) {}

  Change Apply(const RecordView* current) final;

  // True if the last Apply() saw a value.
  [[nodiscard]] bool found() const { return current_ != nullptr; }

 protected:
  // As Apply(), of the collection's value; empty: there is none. REQUIRES: it is of the type.
  virtual Change ApplyTo(std::string_view current) = 0;
  // The same of one that is held as a tree, for those that take trees. This one joins its leaves.
  virtual Change ApplyToTree(Tree& tree);
  // ApplyTo() of all leaves of a tree, joined.
  Change ApplyToJoined(Tree& tree);

  // For the end of ApplyTo(): the key gets `value`, a packed collection, and keeps its deadline; or
  // goes, if that has no element and is no stream.
  Change Replace(std::string value) { return Store(std::move(value), /*keeps_deadline=*/true); }
  // The same without a deadline, as by a write that does not look at what was there.
  Change ReplaceAnew(std::string value) {
    return Store(std::move(value), /*keeps_deadline=*/false);
  }
  // For the end of ApplyToTree(): the tree gets these changes, and `flags` beside its own; or the
  // key goes, if it has no element then.
  Change Replace(TreeMap& changes, uint8_t flags);
  // The same once it has them, and elements.
  Change KeepTree(Tree& tree);
  // Names the write that has made what the last Apply() saw. REQUIRES: found().
  [[nodiscard]] uint64_t version() const { return current_->version; }

 private:
  Change Store(std::string value, bool keeps_deadline);

  CommandContext& context_;
  const ValueType type_;
  const RecordView* current_ = nullptr;
  std::string made_;
  std::optional<Tree> made_tree_;  // has what `made_` has
  MemoryBudget::Share share_;      // counts `made_`
};

// Runs a mutation of the key at argv[1]. False: it has answered that it failed, or refused.
Task<bool> Mutate(CommandContext& context, CollectionMutation& mutation);
// The same of another key.
Task<bool> MutateAt(CommandContext& context, Key key, CollectionMutation& mutation);

// Claims the key at argv[1] among the commands of this worker that move elements out of one.
Task<void> ClaimSource(CommandContext& context, KeyClaims::Claim* claim);

// Lets others, and the client, go on amid a reply of many elements: after each element
//   if (pace.IsDue()) co_await pace.Rest(context);
class ReplyPace {
 public:
  // `holder` keeps the collection that the elements are read from, if it is a large one: a client
  // that does not take them must not keep others from reading.
  explicit ReplyPace(std::shared_ptr<LargeValue> holder = nullptr) : holder_(std::move(holder)) {}
  [[nodiscard]] bool IsDue() { return ++told_ % kElementsPerTurn == 0; }
  Task<void> Rest(CommandContext& context);

 private:
  static constexpr uint64_t kElementsPerTurn = 2000;
  // No more than this of a reply from a large collection waits to be sent.
  static constexpr size_t kWaitingBytes = size_t{1} << 20;
  const std::shared_ptr<LargeValue> holder_;
  uint64_t told_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_COLLECTION_ACCESS_H_
