// StagedKv: a Kv that does what is asked of one key to a copy of it, and stores the outcome at
// once.
//
// It makes a transaction on one key linearizable: Load() reads the key, the operations between work
// on the copy and take no round trip, and Store() is one read-modify-write that changes nothing if
// the key is not as Load() found it. Other keys go straight to the store. Single-threaded.
#ifndef ONETRIP_CLIENT_CORE_STORE_STAGED_STORE_H_
#define ONETRIP_CLIENT_CORE_STORE_STAGED_STORE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "client_core/store/forwarding_store.h"

namespace onetrip {

// The state of a key at one moment; by value, so that it may be kept.
struct KeyVersion {
  bool found = false;
  uint64_t version = 0;

  friend bool operator==(const KeyVersion&, const KeyVersion&) = default;
};

inline KeyVersion VersionIn(const RecordView* record) {
  return record == nullptr ? KeyVersion{} : KeyVersion{true, record->version};
}

class StagedKv final : public ForwardingKv {
 public:
  // `store` and the bytes of `key` outlive it. Large values that it makes count in `made`, unless
  // that is null; one that it reads keeps its share as long as the copy, or a reply, keeps it.
  StagedKv(Kv& store, Key key, std::shared_ptr<MemoryBudget> made = nullptr)
      : ForwardingKv(store), key_(key), made_(std::move(made)) {}

  // Reads the key and forgets what was staged. REQUIRES: no ReadResult of this is alive.
  Task<Status> Load();
  // The version that the last Load() found.
  [[nodiscard]] const KeyVersion& loaded() const { return loaded_; }
  // Stores what was staged if the key is still as loaded(); `stored` tells. Without a change to
  // store it is: the outcome is that of the moment of Load().
  Task<Status> Store(bool* stored);
  // Frees the values that were replaced. REQUIRES: no ReadResult of this is alive.
  void ForgetReplaced();

  Task<Status> Get(Key key, ReadResult* result) override;
  Task<Status> GetPart(Key key, ValueRange range, ReadResult* result) override;
  bool GetFast(Key /*key*/, ReadResult* /*result*/) override { return false; }
  Task<Status> Set(Key key, NewRecord record) override;
  Task<Status> SetPrepared(Key key, NewRecord record, PreparedSets& prepared,
                           size_t index) override;
  Task<Status> Delete(Key key, bool* existed) override;
  Task<Status> ReadModifyWrite(Key key, Mutation& mutation) override;
  // The copy is a value in one piece.
  [[nodiscard]] const TreeLimits& tree_limits() const override { return kNoTrees; }
  // One operation at a time works on the copy.
  [[nodiscard]] size_t keys_at_once() const override { return 1; }

 private:
  [[nodiscard]] bool IsStaged(const Key& key) const {
    return key.database == key_.database && key.bytes == key_.bytes;
  }
  // The copy as it stands; null when there is no such key.
  [[nodiscard]] const RecordView* Current();
  // The bytes of `record` in memory of their own: by the piece, in turns, unless others were
  // faster again and again. Null when the host has no memory.
  Task<std::shared_ptr<LargeValue>> Copy(NewRecord record);
  // Makes the copy what `record` says, unless the host has no memory for it.
  Task<Status> Keep(NewRecord record);
  // The holder that keeps the copy's value for others, too; null for a small one.
  [[nodiscard]] std::shared_ptr<LargeValue>* Holder();

  static constexpr TreeLimits kNoTrees{.packed_bytes = UINT32_MAX};
  // After this number of loads, values that fit into a record are copied in one turn.
  static constexpr uint32_t kPatientLoads = 8;

  const Key key_;
  const std::shared_ptr<MemoryBudget> made_;
  uint32_t loads_ = 0;
  KeyVersion loaded_;
  RegisterShape shape_{.lanes = 0};  // the shape in which the last Load() found it
  ReadResult seen_;                  // by the last Load(), unless values_ has what it saw
  // The last one is current_'s, unless that is seen_'s; reads may still look at others.
  std::deque<std::shared_ptr<LargeValue>> values_;
  RecordView current_;
  bool exists_ = false;
  bool changed_ = false;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_STORE_STAGED_STORE_H_
