// Kv: the keys of one cluster as one worker offers them, by value semantics (FUSEE 4).
// A pure interface: kv/slot_store.h implements it over the index; staged_store.h on a copy of a
// key.
//
// Every operation is linearizable per key, no matter which workers use it. A record carries a
// value, a deadline and a type byte that the store does not interpret; a record whose deadline has
// passed is not there. Single-threaded: one Kv per worker. Keys and values that are passed in are
// borrowed until the Task completes. A Task is awaited in the turn that it was made in: an
// operation counts as started from the call.
//
// Every operation may answer
//   kOutOfMemory     nothing was applied; reads and deletes go on
//   kTooLarge        key above kMaxKeyBytes or value above kMaxValueBytes; nothing was applied
//   kUnknownOutcome  a memory node was lost, or the operation outlived its time: it may have
//                    happened or may yet happen
//   kUnavailable     nothing was applied: the key's subtable stayed busy, or the cluster is
//                    changing its map and has not finished within op_timeout_ms
//   kFenced          the lease has run out; nothing was sent
//   kCorrupt         remote memory holds bytes that no worker wrote
#ifndef ONETRIP_CLIENT_CORE_STORE_STORE_H_
#define ONETRIP_CLIENT_CORE_STORE_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "client_core/base/large_memory.h"
#include "client_core/base/memory_budget.h"
#include "client_core/base/status.h"
#include "client_core/coro/maybe_task.h"
#include "client_core/coro/task.h"
#include "client_core/fabric/round_trip.h"
#include "client_core/layout/register_layout.h"
#include "client_core/store/store_metrics.h"
#include "client_core/tree/tree.h"

namespace onetrip {

class PreparedSets;
struct PendingSet;
struct PoolCounts;

// A mutation of a client that begins others of the same key before it has ended: they take effect
// in the order in which they began.
struct InOrder {
  const void* client = nullptr;  // names it
  // The store's: whatever mutation of the key the client begins from now on comes behind this one.
  bool has_place = false;
};

// A key of a database; the view maps the database to the keyspace it is stored under.
struct Key {
  uint32_t database = 0;
  std::string_view bytes;
  // The store's: the key's hash, and under which keyspace it is that, plus one. 0: not computed.
  uint64_t hashed_under = 0;
  uint64_t hash = 0;
  // Null: the client begins no mutation of this key before its last one has ended.
  InOrder* in_order = nullptr;
};

struct RecordView;

// Looks at a collection that is held as a tree, of which it needs a few pages.
class TreeReader {
 public:
  virtual ~TreeReader() = default;
  // Called once more, with another tree, after pages were missing; only the last call counts, and
  // none does if the result has a value: it would have been too many pages.
  // `record` has no value.
  virtual void Read(const RecordView& record, Tree& tree) = 0;
};

// Which bytes of a value, both ends included, counted from 0, or from its end when negative: as
// GETRANGE counts.
struct ValueRange {
  int64_t first = 0;
  int64_t last = -1;
  bool unless_large = false;     // nothing of a value that lies in extents
  TreeReader* reader = nullptr;  // reads a value that is a tree; null: all of its leaves are
};
inline constexpr ValueRange kWholeValue{0, -1};
inline constexpr ValueRange kNoValue{1, 0};
inline constexpr ValueRange kUnlessLarge{0, -1, true};

struct ValuePart {
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
// The part that `range` means for a value of `value_bytes` bytes.
ValuePart PartOf(uint64_t value_bytes, ValueRange range);

// Memory with a value that was read from extents, and its share of the budget for such.
struct LargeValue {
  LargeMemory memory;
  MemoryBudget::Share share;
};

struct RecordView {
  std::string_view value;    // the part that was asked for
  uint64_t value_bytes = 0;  // the length of the whole value
  uint64_t deadline_ms = 0;  // Unix milliseconds by the cluster clock; 0: never
  uint64_t version = 0;      // differs for every write of the key; its form does not matter
  uint8_t type = 0;
  // Keeps a value that lies in extents, for others that want to keep it, too; null for other
  // values.
  const std::shared_ptr<LargeValue>* holder = nullptr;
  // The value as a tree, which is changed in place; for those alone who ask for that.
  Tree* tree = nullptr;
};

// The result of a read. The bytes of record() live as long as this object.
class ReadResult {
 public:
  [[nodiscard]] bool found() const { return found_; }
  // REQUIRES: found().
  [[nodiscard]] const RecordView& record() const { return record_; }
  // The holder that keeps the value beyond this object; null if only this object does.
  [[nodiscard]] const std::shared_ptr<LargeValue>& holder() const { return large_; }
  // The shape of the register that holds the key, without buffers as long as it holds its first
  // value; without lanes: a record does. REQUIRES: found().
  [[nodiscard]] const RegisterShape& shape() const { return shape_; }

 private:
  friend class Extents;
  friend class RecordForm;
  friend class Records;
  friend class RegisterForm;
  friend class SlotStore;
  friend class StagedKv;
  RoundTripPtr bytes_;
  std::shared_ptr<LargeValue> large_;
  RecordView record_;
  RegisterShape shape_{.lanes = 0};
  bool found_ = false;
};

// The value to store: `head`, `gap_bytes` zero bytes, `tail`, `rest`.
struct NewRecord {
  std::string_view head{};
  std::string_view tail{};
  uint64_t deadline_ms = 0;
  uint8_t type = 0;
  uint64_t gap_bytes = 0;
  std::string_view rest{};
  // The value, in place of those bytes: the one that the mutation saw, changed, or a new one, which
  // is the mutation's. Only a read-modify-write writes it.
  Tree* tree = nullptr;

  [[nodiscard]] uint64_t bytes() const {
    return head.size() + gap_bytes + tail.size() + rest.size();
  }
  // The value's bytes from `offset` on. REQUIRES: it has as many as `to`.
  void CopyTo(uint64_t offset, std::span<char> to) const;
};

// kTooLarge for what is too long to be stored.
Status CheckSizes(const Key& key, const NewRecord& record);

// The change that a read-modify-write makes to the record it saw.
struct Change {
  enum class Kind : uint8_t { kKeep, kKeepAsRecord, kDelete, kWrite };
  static Change Keep() { return {}; }
  // It stays what it is, in the form whose removal takes no memory.
  static Change KeepAsRecord() { return {Kind::kKeepAsRecord, {}, nullptr}; }
  static Change Delete() { return {Kind::kDelete, {}, nullptr}; }
  // `version`, unless null, is told the version that the record gets.
  static Change Write(NewRecord record, uint64_t* version = nullptr) {
    return {Kind::kWrite, record, version};
  }

  Kind kind = Kind::kKeep;
  NewRecord record;  // may point into the record seen, or into the Mutation
  uint64_t* version = nullptr;
  // Behind it the caller gives up as much memory as it takes: it may have some of the reserve.
  bool frees_as_much = false;
};

class Mutation {
 public:
  virtual ~Mutation() = default;
  // `current` is null when the key is missing or expired. Called once per attempt; only the last
  // call took effect, so it must derive everything from `current` anew.
  virtual Change Apply(const RecordView* current) = 0;
  // The part that it looks at of a value in extents; of other values it sees all.
  [[nodiscard]] virtual ValueRange wanted() const { return kWholeValue; }
  // The bytes, at most, by which a value that is there becomes longer, if it is most likely to
  // change; nothing: whether it does is to be seen.
  [[nodiscard]] virtual std::optional<uint64_t> growth() const { return std::nullopt; }
  // True: a value that is held as a tree is shown as one. Where pages of it are missing, whatever
  // Apply() returns is of no account: it is called anew once they are there.
  [[nodiscard]] virtual bool takes_trees() const { return false; }
};

// The use that an operation is about to make of a key.
enum class KeyUse : uint8_t { kRead, kWrite };

// The facts that a walk tells of a key beside its name.
struct KeyFacts {
  uint64_t deadline_ms = 0;  // as RecordView's
  uint8_t type = 0;
};

// A walk over keys tells a KeyVisitor what it meets. Strings are borrowed for the call.
class KeyVisitor {
 public:
  virtual ~KeyVisitor() = default;
  // Returns true to go on with a key of that name; it may have gone already. Asked of every key.
  virtual bool Wants(std::string_view key) = 0;
  // A key that is wanted is there.
  virtual void Visit(std::string_view key, const KeyFacts& facts) = 0;
};

// The counts that a part of the index shows of a database's keys.
struct DeadlineSample {
  uint64_t keys = 0;
  uint64_t with_deadline = 0;
  uint64_t left_ms = 0;   // until these deadlines, all added up
  bool is_whole = false;  // it was no part, but all of the index
};

class Kv {
 public:
  virtual ~Kv() = default;

  // `result` is cleared first and filled if the key is there.
  virtual Task<Status> Get(Key key, ReadResult* result) = 0;
  // The same, reading no more than it must of a value that lies in extents; record().value is that
  // part.
  virtual Task<Status> GetPart(Key key, ValueRange range, ReadResult* result) = 0;
  // The same as Get() where nothing has to be waited for. False: `result` means nothing and nothing
  // has happened; Get() tells. `result` is as it was made.
  virtual bool GetFast(Key key, ReadResult* result) = 0;
  // Get() behind the fast path of this key that said false: that is not tried once more.
  virtual Task<Status> GetBehind(Key key, ReadResult* result) { return Get(key, result); }
  // Stores without looking at what was there.
  virtual Task<Status> Set(Key key, NewRecord record) = 0;
  // The same, begun in this turn; it has its answer at once where nothing has to be waited for.
  // What is left must be awaited in this turn.
  virtual MaybeTask<Status> StartSet(Key key, NewRecord record) { return Set(key, record); }
  // Returns true if memory for several SETs of `bytes` in all should be set aside before the first.
  [[nodiscard]] virtual bool ShouldPrepare(uint64_t bytes) const = 0;
  // Sets it aside. Not ok: nothing is. `may_use_reserve`: of the memory nodes, for what others of
  // the same command have gone before.
  virtual Task<Status> Prepare(std::span<const PendingSet> sets, bool may_use_reserve,
                               PreparedSets* prepared) = 0;
  // As Set(), of the one at `index` of those that were prepared; once for each. kOutOfMemory: the
  // key is a register, and the reserve is used up.
  virtual Task<Status> SetPrepared(Key key, NewRecord record, PreparedSets& prepared,
                                   size_t index) = 0;
  // Removes; `existed` tells whether it was there.
  virtual Task<Status> Delete(Key key, bool* existed) = 0;
  // Replaces atomically what `mutation` saw by what it made of it. `mutation` is borrowed.
  virtual Task<Status> ReadModifyWrite(Key key, Mutation& mutation) = 0;

  // Empties `database`, or all. A key that was there is not seen by any operation that starts on
  // any worker after this completes.
  virtual Task<Status> Flush(std::optional<uint32_t> database) = 0;
  // Lets two databases exchange their keys, all of them at one moment, for all workers.
  // REQUIRES: both are below kMaxDatabases.
  virtual Task<Status> Swap(uint32_t first, uint32_t second) = 0;
  // Keys of `database`, expired ones that are not removed yet included. Exact when no write is
  // running and no worker has been killed since the database was last emptied.
  virtual Task<Status> CountKeys(uint32_t database, uint64_t* keys) = 0;

  // One step of a walk over the keys of `database`. `*cursor` is 0 to begin, then what the step
  // before has left there; 0: that was the last one. Any worker may take the next step, at any
  // time. A key that is there from the first step's call to the last one's return is met, however
  // the index grows; perhaps more than once. A step meets about `keys_wanted` keys, wanted by the
  // visitor or not; fewer at the end, and where it finds few keys of this database. What a step
  // that fails has told is true, but the step has to be taken again.
  virtual Task<Status> Scan(uint32_t database, uint32_t keys_wanted, KeyVisitor& visitor,
                            uint64_t* cursor) = 0;
  // Any key of `database`.
  virtual Task<Status> RandomKey(uint32_t database, std::string* key, bool* found) = 0;
  // Which share of `database`'s keys has a deadline: by those in two subtables, some thousands.
  virtual Task<Status> SampleDeadlines(uint32_t database, DeadlineSample* sample) = 0;

  // Counts what is named in the whole pool, and what is wrong there, in a quiet cluster: PoolCheck.
  // Takes about a round trip per key. Not ok: a node did not answer, or the map changed.
  virtual Task<Status> CheckPool(PoolCounts* counts) = 0;

  // Makes this worker remove expired keys that no command meets, or not. It does from Start() on.
  virtual void SetActiveExpiry(bool active) = 0;

  // The sizes that collections' trees are made with.
  [[nodiscard]] virtual const TreeLimits& tree_limits() const = 0;
  // On how many keys at a time a command over several should work: 1 where nothing waits for a
  // network.
  [[nodiscard]] virtual size_t keys_at_once() const = 0;

  // Hints that `key` will be used soon: pulls its lines of the location cache, then, when called a
  // second time with the first stage done, of index and record. Each returns at once. The key keeps
  // its hash, for the second stage and the operation.
  virtual void PrefetchLocation(Key* key) const = 0;
  virtual void PrefetchRecord(const Key& key, KeyUse use) const = 0;

  // Lets others of this worker go on, amid work that takes long.
  virtual Task<void> Yield() = 0;

  // The cluster clock, by which deadlines count.
  [[nodiscard]] virtual uint64_t NowMs() const = 0;
  [[nodiscard]] virtual uint64_t NowUs() const = 0;

  // Counters. The worker writes them, and sets back what CONFIG RESETSTAT names; other threads may
  // read them at any time.
  [[nodiscard]] virtual StoreMetrics& metrics() = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_STORE_STORE_H_
