// KvImpl: the operations of Kv and what they share. Private to kv/.
#ifndef ONETRIP_CLIENT_CORE_KV_KV_IMPL_H_
#define ONETRIP_CLIENT_CORE_KV_KV_IMPL_H_

#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/coro/maybe_task.h"
#include "client_core/coro/sync.h"
#include "client_core/index/index.h"
#include "client_core/kv/account_state.h"
#include "client_core/kv/index_walk.h"
#include "client_core/kv/kv.h"
#include "client_core/kv/node_wait.h"
#include "client_core/kv/prepared_sets.h"
#include "client_core/kv/registers.h"
#include "client_core/layout/extent.h"
#include "client_core/layout/register_codec.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/orphan_blocks.h"
#include "client_core/memory/reclaim.h"
#include "client_core/replication/engine.h"

namespace onetrip {

// Nothing was applied: the cluster changes its view, and has not done so in time.
inline constexpr Status kHeld(StatusCode::kUnavailable,
                              "the cluster is changing its map; the master has not finished");
// Nothing was applied: other workers won every round, or the key's subtable stayed busy.
inline constexpr Status kContended(StatusCode::kUnavailable, "others keep changing the key");

class KvImpl final : private WorkerDuties {
 public:
  KvImpl(WorkerContext& context, Engine& engine);
  ~KvImpl() override;

  Task<Status> Start();
  Task<Status> Stop();
  Task<Status> Get(Key key, ReadResult* result) { return GetPart(key, kWholeValue, result); }
  Task<Status> GetPart(Key key, ValueRange range, ReadResult* result) {
    return runs_inline_ ? GetInline(key, range, result) : GetSlowly(key, range, result);
  }
  bool TryGetAtOnce(const Key& key, ReadResult* result) {
    return runs_inline_ && !holds_registers() && GetAtOnce(key, result);
  }
  Task<Status> Set(Key key, NewRecord record) {
    return runs_inline_ ? SetInline(key, record) : SetSlowly(key, record, {});
  }
  Task<Status> Delete(Key key, bool* existed);
  Task<Status> ReadModifyWrite(Key key, Mutation& mutation);
  Task<Status> Flush(std::optional<uint32_t> database);
  Task<Status> Swap(uint32_t first, uint32_t second);
  Task<Status> CountKeys(uint32_t database, uint64_t* keys);
  Task<Status> Scan(uint32_t database, uint32_t keys_wanted, KeyVisitor& visitor, uint64_t* cursor);
  Task<Status> RandomKey(uint32_t database, std::string* key, bool* found);
  Task<Status> SampleDeadlines(uint32_t database, DeadlineSample* sample);
  Task<Status> CheckPool(PoolCounts* counts);
  void SetActiveExpiry(bool active) { active_expiry_ = active; }

  bool ShouldPrepare(uint64_t bytes) const;
  Task<Status> Prepare(std::span<const PendingSet> sets, bool may_use_reserve,
                       PreparedSets* prepared);
  Task<Status> SetPrepared(Key key, NewRecord record, PreparedSets& prepared, size_t index);

  // kTooLarge for what is too long to be stored.
  static Status CheckSizes(const Key& key, const NewRecord& record);

  // Whether operations must not start now; those on known registers.
  [[nodiscard]] bool held() const { return context_.hold.held(); }
  [[nodiscard]] bool holds_registers() const { return context_.hold.holds_registers(); }
  // Runs the operation that `start` makes when they may again.
  template <typename Start>
  Task<Status> AfterHold(Start start) {
    const uint64_t patience_ns = context_.options.op_timeout_ms * 1'000'000;
    if (!co_await context_.hold.Wait(context_.executor.NowNs() + patience_ns)) co_return kHeld;
    co_return co_await start();
  }

  void PrefetchLocation(Key key) const;
  void PrefetchRecord(Key key, KeyUse use) const;
  void ResetRoundTripMetrics();

  WorkerContext& context() { return context_; }
  const KvMetrics& metrics() const { return metrics_; }

 private:
  friend class PreparedSets;
  // So much the reserve has for keys of one command that meets a full pool on its way.
  static constexpr uint64_t kUnpreparedBytesMax = uint64_t{256} * 1024;
  // repair.cc: what the master asks when a memory node is lost or comes back, or regions move.
  void LeaveNode(NodeId node) override;
  void UseView(const View& view) override;
  [[nodiscard]] bool Reaches(NodeId node) const override { return context_.fabric.Reaches(node); }
  // A batch that has failed may still take effect, where another region lies by then.
  [[nodiscard]] bool quiet() const override {
    return reclaimer_.is_idle() && context_.fabric.settled();
  }
  void Repair(RepairOrder order, DoneFn done) override;
  Task<void> RunRepair(RepairOrder order, DoneFn done);
  Task<Status> HealDamage(const View& view);
  Task<Status> ScrubRegisters(RepairOrder order);
  Task<Status> EndRegisters(RepairOrder order);
  // Every register that the group names.
  Task<Status> ListRegisters(Operation& operation, Subtable table, uint32_t group,
                             std::vector<ListedRegister>* registers);
  Task<void> ScrubGroup(Subtable table, uint32_t group, Status* failure);
  Task<Status> ScrubRegister(ViewHold::Presence& presence, IndexKey key);
  Task<Status> FindOpenBlocks(RegistersLeft* left);
  Task<void> EndGroup(Subtable table, uint32_t group, RegistersLeft* left, Status* failure);
  // `wait_ms`: for memory that comes back.
  Task<Status> MakeRecord(ViewHold::Presence& presence, const ListedRegister& listed, bool own,
                          uint64_t wait_ms);
  // Without the pins, and away from the slots.
  Task<Status> AwaitRetired(RegisterOperation& operation, uint64_t deadline_ns);
  // The first subtable from directory entry `*entry` on, which becomes its; from `end` on none.
  Task<Status> FindSubtable(uint32_t* entry, uint32_t end);
  // Behind the last entry of subtables that may have taken keys from `table`, or from such.
  static uint32_t DirectoryEnd(const Subtable& table) {
    return std::min(kDirectoryEntries, 2U << table.depth);
  }
  // Every group of the index, some at a time, until one fails or operations are held.
  using GroupVisitor = std::function<Task<void>(Subtable table, uint32_t group, Status* failure)>;
  // Walks from where `walk`, if there is one, has come to, and leaves there how far it comes.
  Task<Status> ForEachGroup(GroupVisitor visit, IndexWalk* walk);
  // One that a repair has left unfinished, or from the beginning.
  [[nodiscard]] IndexWalk WalkOf(const RepairOrder& order) const;
  // ForEachGroup(); keeps `walk` if it comes to no end.
  Task<Status> WalkRegisters(GroupVisitor visit, IndexWalk* walk);

  // scan.cc
  struct ListedKey;
  template <typename Step>
  Task<Status> AgainWhenLost(Step step);
  Task<Status> EnterAndFindSubtable(uint32_t* entry, uint32_t end);
  // The same, from the first entry on if none is left.
  Task<Status> FindSubtableAround(uint32_t* entry, uint32_t end);
  Task<Status> ListKeys(uint32_t database, Subtable table, uint32_t group, uint32_t groups,
                        std::vector<ListedKey>* keys);
  Task<void> ListGroup(uint32_t database, Subtable table, uint32_t group,
                       std::vector<ListedKey>* keys, Status* failure);
  // Whether keys of registers are there.
  Task<Status> LookAtRegisters(uint32_t database, std::vector<ListedKey>* keys);
  Task<void> LookAtRegister(uint32_t database, ListedKey* key, Status* failure);
  void AddToSample(const std::vector<ListedKey>& keys, DeadlineSample* sample) const;

  // expiry.cc
  struct ExpiredRecord;
  struct ExpiryLook;
  void WalkForExpiredIfDue();
  Task<void> WalkForExpired();
  Task<void> LookAtNextGroups(ExpiryLook* look);
  Task<void> FindNextSubtable(ExpiryLook* look);
  Task<void> RemoveExpiredOfGroup(Subtable table, uint32_t group, ExpiryLook* look);
  Task<void> LetClientsIn(ExpiryLook* look);
  Task<Status> ListExpired(Operation& operation, Subtable table, uint32_t group, ExpiryLook* look,
                           std::vector<ExpiredRecord>* expired);

  // take_over.cc: memory of workers that are gone.
  Task<Status> TakeOverBlocks(RepairOrder order);
  struct NamedBuffer;
  struct Estate;
  Task<Status> FindOrphans(Estate& estate, const RepairOrder& order);
  // Until all that was unlinked by now is free, or on the way to the bitmaps of its blocks, and
  // everybody has let go of buffers in blocks of others.
  Task<Status> AwaitUnlinked();
  Task<Status> TakeOverBlock(Estate& estate, const OrphanBlocks::Block& block);

  // account.cc: what is lost in this worker's own blocks.
  void AccountIfDue();
  void NoteLosses();
  Task<void> AcquireOpenBlocks();
  Task<void> AwaitAccount();
  Task<void> Account();
  Task<Status> FreeLost();
  void TellUnnamed(const Estate& estate);
  Task<Status> FreeLostOf(Estate& estate, const OrphanBlocks::Block& block);

  // leave.cc: regions that are given up.
  // What lives there and is no register, of one group.
  Task<void> LeaveGroup(Subtable table, uint32_t group, RegistersLeft* left, Status* failure);
  Task<Status> LeaveKey(ViewHold::Presence& presence, const ListedRegister& listed);
  // A register that was dropped by somebody who has not lived to free its slot.
  Task<Status> LeaveDropped(Operation& operation, Entry dropped);
  // A root's extent that lies there, or the root itself. `*more`: there is another one.
  Task<Status> LeaveRoot(RegisterOperation& operation, const IndexKey& key,
                         const SearchResult& search, bool* more);
  Task<Result<GlobalAddr>> AllocateToLeave(SizeClass size_class);
  Task<Status> CopyExtent(Operation& operation, const ExtentRef& from, const ExtentRef& to);
  // Now and then: blocks there that nobody sees to become this worker's.
  void SeeToLeavingIfDue();
  Task<void> SeeToLeaving();

  // compact.cc: moves what lives in blocks of this worker's own of which little is used.
  void CompactIfScarce();
  Task<void> Compact();
  Task<void> AcquireSparseBlocks();
  // What lies at these addresses, if it is a record or a register that can be moved.
  Task<void> MoveObjects(std::vector<GlobalAddr> objects, SizeClass size_class);
  Task<void> MoveObject(GlobalAddr addr, SizeClass size_class);
  // Whether the key's slot names `addr`, or did, now that it is moved.
  Task<Result<bool>> MoveKey(ViewHold::Presence& presence, KeyspaceId keyspace, std::string name,
                             GlobalAddr addr);
  Task<Status> MoveRecord(RegisterOperation& operation, const IndexKey& key,
                          const SearchResult& search);
  // Registers of which a buffer lies in a block that is to be emptied.
  Task<void> MoveRegistersOfBuffers();
  Task<void> MoveRegister(RegisterRef ref);
  // Clients of this worker come first, unless they wait for memory.
  Task<void> LetOthersIn(uint64_t worked_since_ns);

  // named_memory.cc: names all that is named in the estate's blocks, under `view`.
  Task<Status> LookAtNames(Estate& estate, const View& view);
  Task<void> NameGroup(Estate& estate, const View& view, Subtable table, uint32_t group,
                       Status* failure);
  Task<Status> NameOrigin(Estate& estate, Operation& operation, SlotWord word);
  Task<Status> NameExtents(Estate& estate, Operation& operation, SlotWord root);
  Task<Status> NameBuffers(Estate& estate, Operation& operation, SlotWord word);
  Task<Status> NameBuffer(Estate& estate, Operation& operation, const NamedBuffer& named);

  // Until what begins now is no part of what a hold has been told of; kHeld: in vain.
  Task<Status> AwaitRelease();
  // Background work that touches slots begins here, as an operation would; but it has the time to
  // outlast a hold.
  Task<bool> WaitToBegin(Operation* operation);
  // What may touch slots waits here while they are held; false: for op_timeout_ms in vain.
  // REQUIRES: it has a presence, by which a hold sees it.
  MaybeTask<bool> EnterSlots(Operation& operation) {
    CHECK(operation.presence.IsOf(context_.hold));
    if (operation.presence.TryEnterSlots()) return true;
    return operation.presence.EnterSlots(context_.executor.NowNs() +
                                         context_.options.op_timeout_ms * 1'000'000);
  }

  // A value that lies in extents, all of them written, which no root names yet.
  struct WrittenExtents {
    ExtentList list;
    uint64_t version = 0;
  };
  // Memory reserved for a record or a register, and its bytes, ready to be written to it.
  struct Draft {
    // The operation's, which holds nothing but this draft; null: it may.
    Allocator::Holder* holder = nullptr;
    GlobalAddr addr;
    SizeClass size_class;
    std::optional<WrittenExtents> extents;  // of a root
    // What was reserved is somebody else's now.
    void Forget() {
      addr = GlobalAddr();
      extents.reset();
    }
    // Of a read-modify-write: of what it is about to give up, if that is enough for what it takes;
    // and until when it uses that, for the pool is full. 0: it is not, so far.
    SizeClass gives_up;
    uint64_t in_place_until_ns = 0;
    uint32_t bytes = 0;
    RoundTripPtr buffer;  // its arena holds the bytes
    std::byte* record = nullptr;

    bool is_register = false;
    // Of a register: the buffer of its first word, and the bytes of the bulk WRITE to it.
    OutBuffer out;
    SizeClass out_class;
    uint32_t out_bytes = 0;
    std::byte* out_bulk = nullptr;
    RegisterShape shape;
    RegisterHeader header{};
    RegisterTimes times;
    MetaWord word;
    std::string value;  // with its head
  };

  // What `status` says of a step that has done nothing which anybody could see: whether it is worth
  // another try, for a memory node was lost, and is back or out by now, as far as one can wait for
  // that. The operation has been away from the slots; it keeps its pin.
  Task<bool> MayTryAgain(Operation& operation, Status status, NodeWait* wait);
  // A search that has failed with `status`, as often as that is worth it; with the bytes of
  // `draft`, if there is one: no slot names them yet.
  Task<Status> FindAgain(Operation& operation, const IndexKey& key, onetrip::ReadExtent extent,
                         const Draft* draft, Status status, SearchResult* search);

  IndexKey MakeKey(const Key& key);
  [[nodiscard]] bool IsExpired(const std::byte* record) const;
  uint64_t NextVersion() {
    return (uint64_t{context_.membership.id.value} << 40) | (++version_ & ((1ULL << 40) - 1));
  }

  // write.cc
  Task<Status> Reserve(Draft* draft);
  // Class and bytes of the record that holds `record`, or of the root of its extents.
  static void Measure(const Key& key, const NewRecord& record, Draft* draft);
  void Encode(const IndexKey& key, const NewRecord& record, Draft* draft);
  void AddWrites(RoundTrip& round_trip, const Draft& draft) const;
  [[nodiscard]] SlotWord WordFor(const IndexKey& key, const Draft& draft, bool blind) const;
  // Writes a draft, whose memory a slot has named, to fresh memory. Renews the operation's pin.
  Task<Status> Renew(Operation& operation, const IndexKey& key, Draft* draft);
  // `draft` may have its memory already.
  Task<Status> SetRecord(RegisterOperation& operation, Key key, const IndexKey& index_key,
                         const NewRecord& record, Draft* draft);
  Task<Status> SetBlind(RegisterOperation& operation, const IndexKey& key, Draft* draft,
                        bool* inserted);
  // kOverwritten: the draft lost to another blind write, just before which it counts as written.
  enum class BlindOutcome : uint8_t { kWon, kOverwritten, kLost };
  Task<Result<BlindOutcome>> OverwriteBlindly(Operation& operation, const IndexKey& key,
                                              const SearchResult& search, const Draft& draft);
  // Inserts after a search that found nothing, splitting if need be. `done` tells whether to stop.
  Task<Status> TryInsert(Operation& operation, const IndexKey& key, const SearchResult& search,
                         bool blind, Draft* draft, bool* done);
  void AbandonObject(const Draft& draft) {
    if (draft.addr.is_null()) return;
    allocator_.Retire(draft.addr, draft.size_class);
    if (draft.is_register) registers_->cache.Retire(draft.out, draft.out_class);
  }
  void Abandon(const Draft& draft) {
    AbandonObject(draft);
    if (draft.extents) RetireAll(draft.extents->list);
  }
  // The origin of the record that `search` found, which has to be told before the record is
  // replaced; `first` then holds the WRITEs that do.
  bool TellOrigin(const SearchResult& search, RecordOrigin* origin, RoundTripPtr* first);
  void RetireOrigin(const RecordOrigin& origin);

  // extents.cc: values that no record holds.
  // An operation's part of the budget for values that are read, until the value is there.
  struct Room {
    std::optional<MemoryBudget::Turn> turn;  // it waits
    MemoryBudget::Share share;
    std::shared_ptr<LargeValue> shown;  // by the last attempt; its share is in there
  };
  [[nodiscard]] bool NeedsExtents(const NewRecord& record) const {
    return record.bytes() > context_.options.record_value_bytes_max;
  }
  // Takes memory for the extents of `record`, which is borrowed, and writes them, some at a time.
  // REQUIRES: the caller has neither pin nor presence. Whatever fails leaves nothing behind.
  Task<Status> WriteExtents(const NewRecord& record, std::optional<WrittenExtents>* written);
  Task<void> WriteExtent(const NewRecord& record, WrittenExtents* written, uint32_t number,
                         Status* failure);
  Task<Status> PostExtent(const RoundTripPtr& round_trip, const std::byte* image, uint32_t bytes,
                          ExtentRef* ref);
  // What the intact record says that `search` found; of a root, its own value.
  static void FillFromRecord(const SearchResult& search, ReadResult* result);
  // Puts what the root's extents hold of `range` in place of that. REQUIRES: `operation` has been
  // pinned since before the search. kUnavailable with a turn in `room`: it has to wait for that.
  Task<Status> ReadFromExtents(Operation& operation, ValueRange range, Room* room,
                               ReadResult* result);
  // Waits for it, without pin and presence. Ok: `operation` has both again, and begins anew.
  Task<Status> WaitForRoom(RegisterOperation& operation, Room* room);
  // Behind work without pin and presence; `draft`, unless null, gets its memory in between.
  Task<Status> BeginAnew(RegisterOperation& operation, Draft* draft);
  struct ExtentSpan {
    uint64_t first;
    uint64_t last;  // included
  };
  Task<Status> ReadExtents(Operation& operation, const ExtentList& list, uint64_t version,
                           ExtentSpan span, std::byte* into);
  Task<void> ReadExtent(Operation& operation, const ExtentList& list, uint64_t version,
                        uint32_t number, std::byte* into, Status* failure);
  void RetireAll(const ExtentList& list);
  // Of a root that this worker has taken out of the index. REQUIRES: `operation` has been pinned
  // since before then: the root is still what it was.
  Task<void> RetireExtents(Operation& operation, SlotWord root);
  // Replace() by a value in extents: writing them takes giving up the pin, so what was `seen` is
  // compared with what is there then.
  Task<Status> ReplaceByExtents(RegisterOperation& operation, const Key& key,
                                const RecordView* seen, const Change& change, Draft* draft,
                                bool* done);

  // remove.cc
  // One attempt to empty the entry that `search` found; `removed` tells.
  Task<Status> TryRemove(Operation& operation, const SearchResult& search, bool* removed);
  Task<Status> RemoveExpired(Operation& operation, uint32_t database, const IndexKey& key,
                             const SearchResult& search, bool* removed);

  // rmw.cc
  Task<Status> AttemptOnRegister(RegisterOperation& operation, const Key& key,
                                 const IndexKey& index_key, const SearchResult& search,
                                 uint64_t forgotten, Mutation& mutation, Draft* draft, bool* done);
  Task<Status> Attempt(RegisterOperation& operation, const Key& key, const IndexKey& index_key,
                       Mutation& mutation, Room* room, Draft* draft, bool* done);
  Task<Status> Replace(Operation& operation, const Key& key, const IndexKey& index_key,
                       const SearchResult& search, const Change& change, Draft* draft, bool* done);

  // in_place.cc: what may be changed in a full pool. Of what is given up for a record of class
  // `needed`, or by the end of a register; not valid: it is less than what is taken.
  [[nodiscard]] SizeClass GivenUpFor(const SearchResult& search, const Change& change,
                                     SizeClass needed) const;
  [[nodiscard]] static SizeClass GivenUpFor(const Key& key, SlotWord register_word,
                                            SizeClass thawed, const Change* change);
  Task<Status> TakeInPlace(Draft* draft);
  // The last attempt found no memory. Ok: another one may.
  Task<Status> GoOnInPlace(RegisterOperation& operation, Draft* draft);
  // The caller's pins are given up; the memory stays at hand for its next attempt.
  Task<Status> AwaitMemory(RegisterOperation& operation, SizeClass size_class,
                           Allocator::Holder* idle);

  // register_ops.cc: keys that are held as registers.
  [[nodiscard]] bool FitsRegister(const Key& key, const NewRecord& record) const;
  [[nodiscard]] bool IsExpired(const KeyValue& value) const {
    return value.deadline_ms != 0 && context_.clock.NowMs() >= value.deadline_ms;
  }
  // How many registers have been forgotten: what a search found before that changes may be one.
  [[nodiscard]] uint64_t Forgotten() const {
    return registers_ ? registers_->cache.forgotten() : 0;
  }
  // The cache entry of the register that `search` found; null: search again. `forgotten` is
  // Forgotten() from before the search.
  CachedRegister* Adopt(const IndexKey& key, const SearchResult& search, uint64_t forgotten);
  // What a step on a register came to.
  enum class RegisterResult : uint8_t {
    kDone,
    kExpired,  // the value read has had its time
    kAgain,    // the register has ended, or must: look the key up
  };
  // A write that has taken its buffers, and maybe posted its guess.
  struct BegunWrite {
    WriteBuffers buffers;
    WriteOutcome outcome;
  };
  // GET and SET of a known register where the fabric completes inline and nobody interferes.
  // Nothing suspends: no pin is needed. False: take the long way, and go on with what was begun.
  bool GetAtOnce(const Key& key, ReadResult* result);
  bool SetAtOnce(const Key& key, const NewRecord& record, BegunWrite* begun);
  // The same with the long way behind it. REQUIRES: runs_inline_.
  Task<Status> GetInline(Key key, ValueRange range, ReadResult* result);
  Task<Status> SetInline(Key key, NewRecord record);
  Task<Status> GetSlowly(Key key, ValueRange range, ReadResult* result);
  Task<Status> TryGet(RegisterOperation& operation, Key key, ValueRange range, Room* room,
                      ReadResult* result);
  Task<Status> SetSlowly(Key key, NewRecord record, BegunWrite begun);
  bool TryTakeBuffers(const CachedRegister& entry, WriteBuffers* buffers);
  // The value of a register that `record` makes, in the arena of `round_trip`.
  static std::span<const std::byte> AssembleValue(const NewRecord& record, RoundTrip& round_trip);
  bool FillResult(const RegisterRef& ref, Tuple& tuple, ReadResult* result) const;
  Task<Result<RegisterResult>> ReadRegister(RegisterOperation& operation, CachedRegister& entry,
                                            ReadResult* result);
  Task<Result<RegisterResult>> WriteRegister(RegisterOperation& operation, const IndexKey& key,
                                             CachedRegister& entry, const NewRecord& record,
                                             BegunWrite begun, Allocator::Holder* idle);
  [[nodiscard]] bool HasMajority(const CachedRegister& entry);
  // Until a write has a majority; the caller's pins are given up. kUnavailable: there was none.
  Task<Status> AwaitMajority(RegisterOperation& operation, const CachedRegister& entry);
  Task<Status> TakeBuffers(RegisterOperation& operation, CachedRegister& entry,
                           WriteBuffers* buffers, Allocator::Holder* idle);
  Task<Status> SetRegister(RegisterOperation& operation, Key key, const IndexKey& index_key,
                           const NewRecord& record, BegunWrite begun, Allocator::Holder& holder,
                           bool* as_record);
  struct RegisterSet;
  Task<Result<RegisterResult>> SetThroughIndex(RegisterOperation& operation, Key key,
                                               const IndexKey& index_key, RegisterSet* set);
  Task<Status> ReserveRegister(const IndexKey& key, Draft* draft);
  void EncodeRegister(const IndexKey& key, Draft* draft);
  // This worker has made the register of `draft`.
  void KeepRegister(const IndexKey& key, SlotWord word, const Draft& draft);
  static void SetDraftValue(const NewRecord& record, Draft* draft);

  // register_end.cc: how registers end (PROTOCOLS, "One key, two forms").
  // `reserved`, unless null or empty, is the record's memory.
  Task<Status> EndRegister(RegisterOperation& operation, const IndexKey& key, Entry slot,
                           CachedRegister& entry, bool may_wait, Draft* reserved = nullptr);
  // Of the record that takes a register's place. F is not known before the register is sealed: for
  // the value of `current`, or, if that is null or was not found, for the longest that it holds.
  static SizeClass ThawedClass(const IndexKey& key, const CachedRegister& entry,
                               const ReadResult* current = nullptr);
  // An object of `size_class` for a record that ends the register of that word, when more comes
  // back than that takes. `own`: the register lies in this worker's memory, or the caller gives up
  // as much at once.
  Task<Status> ReserveInPlaceOf(SlotWord register_word, SizeClass size_class, bool own,
                                Draft* draft);
  // The same for both records that follow a register: see MakeRecord.
  Task<Status> ReserveToEnd(SlotWord word, const IndexKey& key, const CachedRegister& entry,
                            const ReadResult& current, bool own, Draft* thawed, Draft* restated);
  // The record that `search` found is written anew, to `reserved`, and nothing else changes. The
  // memory of a register whose place it took comes back now, not when the key is written. `root`,
  // unless null, is its value then; `won`, unless null, tells whether it has it.
  Task<Status> RestateRecord(RegisterOperation& operation, const IndexKey& key,
                             const SearchResult& search, Draft* reserved, bool* done,
                             const std::string_view* root = nullptr, bool* won = nullptr);
  Task<Status> ThawRegister(RegisterOperation& operation, const IndexKey& key, Entry slot,
                            CachedRegister& entry, const Tuple& f, Draft* draft);
  // Who is credited with the register's end, if the slot says so.
  Task<Result<std::optional<uint32_t>>> DropRegister(RegisterOperation& operation, Entry slot,
                                                     uint32_t credit, bool in_background);
  Task<void> FreeDropped(ViewHold::Presence& presence, Entry dropped, SizeClass size_class);
  Task<void> FreeBeside(ViewHold::Presence presence, Entry dropped, SizeClass size_class);
  Task<Result<RegisterResult>> ResolveInterrupted(RegisterOperation& operation, const IndexKey& key,
                                                  CachedRegister& entry,
                                                  const WriteOutcome& outcome);
  Task<Result<RegisterResult>> DeleteRegister(RegisterOperation& operation, Key key,
                                              const IndexKey& index_key, CachedRegister& entry,
                                              bool* existed);
  Task<Result<std::optional<uint32_t>>> CreditedDeleter(RegisterOperation& operation,
                                                        const IndexKey& key, CachedRegister& entry,
                                                        uint32_t credit);
  Task<void> UnmapDeleted(ViewHold::Presence presence, RegisterCache::Use use);
  // Ends the register of a flushed keyspace.
  Task<Status> SweepRegister(ViewHold::Presence& presence, Entry slot, bool* gone);

  // sweep.cc
  struct Tally;
  void Count(uint32_t database, KeyspaceId keyspace, int32_t delta);
  // Where this worker counts the keys of a keyspace of the newest view that `database` has, or had
  // when the operation began.
  Tally& TallyOf(uint32_t database, KeyspaceId keyspace);
  // A seat may have been somebody else's before: its counts go on.
  Task<Status> LoadCounters();
  Task<void> PublishCounters();
  void StartTicks();
  void OnTick();
  Task<void> FinishSplits();
  // Waits until every operation has ended, on every worker, that may have started under an older
  // view than the one remembered for the sweep.
  Task<void> OutliveOldOperations();
  Task<void> Sweep();
  // What a pass over the index has met.
  struct SweepPass {
    uint64_t removed = 0;  // entries, or changed meanwhile
    uint64_t filling = 0;  // groups that are left to a later pass
  };
  Task<Status> SweepOnce(SweepPass* pass);
  Task<Status> SweepSubtable(Subtable table, SweepPass* pass);

  // Background work that the last operation made due. Inline on shm.
  void AfterWrite() {
    if (allocator_.wants_maintenance()) context_.executor.Spawn(gate_, allocator_.Maintain());
  }
  Status Finish(Histogram& histogram, const Operation& operation, Status status) {
    histogram.Record(operation.round_trips);
    if (status.code() == StatusCode::kUnknownOutcome) {
      metrics_.unknown_outcomes.Add();
      left_unnamed_ = true;
    }
    return status;
  }

  WorkerContext& context_;
  Engine& engine_;
  Reclaimer reclaimer_;
  Allocator allocator_;
  Index index_;
  std::unique_ptr<Registers> registers_;  // null: the engine has none
  bool runs_inline_ = false;              // Safe-Guess, on a fabric that completes inline
  Gate gate_;
  KvMetrics metrics_;
  uint64_t version_ = 0;
  // keys added less keys removed by this worker, per keyspace; see KeyCounters
  struct Tally {
    KeyspaceId keyspace;
    uint32_t count = 0;
    bool dirty = false;
  };
  std::array<Tally, kMaxDatabases> tallies_;
  bool publishing_ = false;
  bool sweeping_ = false;
  bool sweep_again_ = false;
  // As of when the sweep began.
  std::array<KeyspaceId, kMaxDatabases> sweep_keyspaces_{};
  uint64_t sweep_epoch_ = 0;
  bool stopping_ = false;
  bool left_unnamed_ = false;  // an outcome was unknown: its record is kept, named or not
  // Fires as often as somebody may wait for this worker's epochs.
  class TickTimer final : public Timer {
   public:
    explicit TickTimer(KvImpl& kv) : kv_(kv) {}
    void Fire() override { kv_.OnTick(); }

   private:
    KvImpl& kv_;
  };
  TickTimer tick_timer_{*this};
  bool taking_over_ = false;  // or freeing what is lost
  AccountState account_;
  LeavingLooks leaving_looks_;
  bool compacting_ = false;
  uint32_t asking_for_second_ = 0;  // ReserveToEnd
  uint64_t compaction_ended_ns_ = 0;
  IndexWalk left_walk_;  // the last that a hold has cut short
  bool finishing_splits_ = false;
  uint32_t quiet_ticks_ = 0;
  // Where and when the walk for expired records goes on, and how far the directory reaches.
  uint32_t expiry_entry_ = 0;
  uint32_t expiry_group_ = 0;
  uint32_t expiry_end_ = 1;
  uint64_t next_expiry_walk_ns_ = 0;
  bool expiring_ = false;
  bool active_expiry_ = true;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_KV_IMPL_H_
