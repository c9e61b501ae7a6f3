// Index: RACE hashing over SNAPSHOT-replicated slots (FUSEE 4.2).
//
// Finds, inserts and moves the slots of keys; what a slot's record means is the caller's affair,
// save that the index reads keys out of records to tell them apart. Lookups never miss a key that
// is there throughout, while subtables split under them. Single-threaded: one Index per worker.
#ifndef ONETRIP_CLIENT_CORE_INDEX_INDEX_H_
#define ONETRIP_CLIENT_CORE_INDEX_INDEX_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/base/status.h"
#include "client_core/coro/maybe_task.h"
#include "client_core/coro/sync.h"
#include "client_core/coro/task.h"
#include "client_core/index/claim_rules.h"
#include "client_core/index/decided_claims.h"
#include "client_core/index/directory.h"
#include "client_core/index/index_metrics.h"
#include "client_core/index/key_hash.h"
#include "client_core/index/location_cache.h"
#include "client_core/index/move_subtables.h"
#include "client_core/index/unfinished_splits.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/slot.h"
#include "client_core/memory/allocator.h"
#include "client_core/memory/operation.h"
#include "client_core/replication/engine.h"

namespace onetrip {

// The result of a search. A search that found nothing remembers where it looked, for Insert.
struct SearchResult {
  bool found = false;
  // Found, but on its way to another subtable, or missing with an insert not yet allowed: wait.
  bool busy = false;
  // Not searched for: it is what the caller itself wrote last. Others may have replaced it.
  bool remembered = false;
  Entry entry;
  // The record of `entry`: whole when asked for, else header and key.
  RoundTripPtr bytes;
  const std::byte* record = nullptr;
  uint32_t record_bytes = 0;

  // Not found: the subtable that was searched, and an empty slot for the key in it, if any.
  Subtable table;
  Entry empty;
  bool has_empty = false;

  // Entries and claims of the key's fingerprint that were read and are other keys'. As long as the
  // pin is held their words mean the same objects: Insert reads them no more.
  std::array<Entry, 2> others;
  uint8_t others_count = 0;  // more of them are not kept

  void NoteOther(const Entry& other) {
    if (others_count < others.size()) others[others_count++] = other;
  }
  [[nodiscard]] bool IsOther(const Entry& entry) const {
    return std::any_of(others.begin(), others.begin() + others_count, [&](const Entry& other) {
      return other.slot == entry.slot && other.word == entry.word;
    });
  }
};

// How much of a record a search reads; of a register always its key and its lanes.
enum class ReadExtent : uint8_t { kKey, kWhole };

// Reads that a caller of Find wants to have beside the one of the key that a slot's word names.
class ReadsBeside {
 public:
  virtual ~ReadsBeside() = default;
  // The word was read from its slot, alone of its fingerprint. Whether its key is the one that is
  // searched is not known yet. The search goes on behind it if not: a later one takes its place.
  virtual void BeginBeside(SlotWord word) = 0;
};

enum class InsertOutcome : uint8_t {
  kInserted,
  kSearchAgain,  // the object was never visible: use it again
  kRenew,        // a slot has named the object: retire it, take another, search again
  kFull,         // no empty slot: MakeRoom, then search again
};

// The facts that a sweep or a split needs about the record behind each word of a group.
struct GroupKeys {
  std::array<KeyHash, kGroupWords> hash;
  std::array<KeyspaceId, kGroupWords> keyspace;
};

class Index {
 public:
  // All outlive the index.
  Index(WorkerContext& context, Reclaimer& reclaimer, Allocator& allocator, Engine& engine);

  // Makes the first subtable unless another worker has. REQUIRES: completes before any other call.
  Task<Status> Open();

  // Finds the committed entry of `key`: one round trip if the location cache knows it or no
  // fingerprint matches, two else. `first` goes with the first round trip: operations that the
  // caller has put into it, or an empty one. REQUIRES: `operation` holds a pin for as long as the
  // result is used. `beside` may be null.
  MaybeTask<Status> Find(Operation& operation, const IndexKey& key, ReadExtent extent,
                         RoundTripPtr first, SearchResult* result, ReadsBeside* beside = nullptr);

  // Inserts `committed` after a search that found nothing. Its record is written on all replicas,
  // or `writes`, which may be null, holds the WRITEs. `entry` is filled when kInserted. After an
  // error, too, a slot may have named the object. kUnavailable: nothing was inserted; another
  // insert of the key has no end yet. PROTOCOLS, "Inserting by a claim".
  Task<Result<InsertOutcome>> Insert(Operation& operation, const IndexKey& key,
                                     const SearchResult& search, SlotWord committed,
                                     RoundTripPtr writes, Entry* entry);

  // Splits `table` in two, or waits a little if others split it. Returns when the groups of `hash`
  // are split; the others are in the background, under `gate`. REQUIRES: the caller holds no pin,
  // and has left the slots. kOutOfMemory: no memory for another subtable, or the directory is at
  // its depth.
  Task<Status> MakeRoom(Gate& gate, const Quiesce::InFlightGuard& in_flight, Subtable table,
                        KeyHash hash);
  // Returns true if memory was taken for subtables that nothing names, and that is not free.
  [[nodiscard]] bool HasUnnamed() const { return !spares_.empty() || !in_doubt_.empty(); }
  template <typename Visit>
  void ForEachUnnamed(Visit visit) const {
    for (const Spare& spare : spares_) visit(spare.start);
    for (const auto& [entry, start] : in_doubt_) visit(start);
  }
  // Splits that operations of this worker met, or left, unfinished, and that have been so for some
  // time: a worker has to finish them. `entry` is one of them.
  [[nodiscard]] bool MetUnfinishedSplit(uint32_t* entry) const {
    return unfinished_.IsDue(context_.executor.NowNs(), entry);
  }
  // Takes the steps that are left of the split of directory entry `entry`, if there is one, beside
  // any other worker that takes them. REQUIRES and errors as of MakeRoom(); the in-flight guard is
  // lent, and enters the slots when that is needed.
  Task<Status> FinishSplit(Quiesce::InFlightGuard& in_flight, uint32_t entry);

  // Returns true if the word now in a slot is a blind write of `key`, which lets a blind writer
  // that lost its round return success (PROTOCOLS, "A blind writer that loses").
  Task<Result<bool>> IsBlindWriteOf(Operation& operation, const IndexKey& key, Entry entry);

  // A fresh EMPTY word of this worker.
  SlotWord NewEmptyWord() {
    if (Planted(Bug::kConstantEmpty)) return SlotWord::Empty(WorkerId{0}, 0);
    return SlotWord::Empty(context_.membership.id, ++empty_sequence_);
  }

  // Remembers, or takes back, where a key is.
  void CacheLocation(KeyHash hash, Entry entry) {
    if (!cache_.Put(hash, {entry.slot, entry.word})) return;
    metrics_.cache_bytes.Set(cache_.bytes());
  }
  void PrefetchLocation(KeyHash hash) const { cache_.Prefetch(hash); }
  void PrefetchRecord(KeyHash hash) const;

  // For sweeps: which of `count` directory entries from `first` on are in use, and their subtables;
  // one of a subtable's groups; and the keys that the group's words name, for words with an
  // address.
  Task<Status> ReadDirectoryStretch(Operation& operation, uint32_t first, uint32_t count,
                                    std::vector<uint32_t>* used);
  [[nodiscard]] Subtable SubtableAt(uint32_t entry) const { return directory_.At(entry); }
  [[nodiscard]] bool KnowsSubtable(uint32_t entry) const { return directory_.Knows(entry); }
  [[nodiscard]] Subtable SubtableOf(KeyHash hash) const { return directory_.Lookup(hash); }
  // `table` may have moved since it was found, while all held; then it has its new place.
  Task<Status> ReadGroup(Operation& operation, Subtable* table, uint32_t group, GroupWords* words);
  Task<Status> ReadGroupKeys(Operation& operation, Subtable table, uint32_t group,
                             const GroupWords& words, GroupKeys* keys);
  // The same, with what was read of each: at least its header and its key, borrowed for the call.
  using EntryVisitor =
      std::function<void(uint32_t word, const EntryKey& key, const std::byte* record)>;
  Task<Status> ReadGroupEntries(Operation& operation, Subtable table, uint32_t group,
                                const GroupWords& words, EntryVisitor visit);

  // SubtableMover's.
  Task<Status> MoveSubtables(std::shared_ptr<const View> view) {
    return mover_.MoveSubtables(std::move(view));
  }
  // A new view is there. REQUIRES: if it names another directory, as above.
  void UseView(const View& view);

  [[nodiscard]] const IndexMetrics& metrics() const { return metrics_; }

 private:
  // The two combined buckets of a key in one subtable, and their group headers, read earlier and
  // later in the same batch.
  struct Buckets {
    std::array<const uint64_t*, 2> header_before;
    std::array<const uint64_t*, 2> words;
    std::array<const uint64_t*, 2> header;
  };
  // Where a subtable stands towards a key, by the group headers.
  enum class Standing : uint8_t { kHere, kFilling, kMoved, kInvalid };
  struct Candidates {
    std::array<Entry, 2 * kCombinedWords> entries;
    size_t count = 0;
  };

  // The reads of a cached location, and what it was.
  struct CachedReads {
    LocationCache::Location location;
    const uint64_t* word = nullptr;
    const std::byte* record = nullptr;
    uint32_t bytes = 0;
  };

  // search.cc
  // Adds the reads if the location is cached and can be validated in one batch; else returns false.
  bool AddCachedReads(RoundTrip& round_trip, const IndexKey& key, ReadExtent extent,
                      CachedReads* cached);
  // Returns true if the reads have found the key where it was thought to be; fills `result` then.
  bool TakeCached(const IndexKey& key, const CachedReads& cached, RoundTripPtr* bytes,
                  SearchResult* result);
  Task<Status> FindCached(Operation& operation, const IndexKey& key, ReadExtent extent,
                          RoundTripPtr first, CachedReads cached, SearchResult* result,
                          ReadsBeside* beside);
  // The key is not where `cached`, which has been read, thought that it was.
  Task<Status> FindMoved(Operation& operation, const IndexKey& key, ReadExtent extent,
                         CachedReads cached, RoundTripPtr first, SearchResult* result,
                         ReadsBeside* beside);
  // By its buckets.
  Task<Status> FindUncached(Operation& operation, const IndexKey& key, ReadExtent extent,
                            RoundTripPtr first, SearchResult* result, ReadsBeside* beside);
  Task<Status> Search(Operation& operation, const IndexKey& key, ReadExtent extent,
                      RoundTripPtr first, SearchResult* result, ReadsBeside* beside);
  void AddBucketReads(RoundTrip& round_trip, const Subtable& table, KeyHash hash, Buckets* buckets);
  static Standing StandingOf(const Buckets& buckets, const Subtable& table, KeyHash hash,
                             uint32_t* depth);
  // Returns true if one of the two groups was still being filled when its bucket was read.
  static bool WasFilling(const Buckets& buckets);
  static bool GroupIsFilling(const Buckets& buckets, const Subtable& table, KeyHash hash,
                             GlobalAddr slot);
  // Entries of the two buckets with the key's fingerprint whose kind passes `wanted`.
  template <typename Wanted>
  static Candidates Matching(const Buckets& buckets, const Subtable& table, KeyHash hash,
                             Wanted wanted);
  static bool PickEmpty(const Buckets& buckets, const Subtable& table, KeyHash hash, Entry* empty);
  [[nodiscard]] uint32_t ExtentBytes(SlotWord word, const IndexKey& key, ReadExtent extent) const;
  // The first candidate whose record holds the key; result.found tells.
  Task<Status> MatchKey(Operation& operation, const IndexKey& key, ReadExtent extent,
                        const Candidates& candidates, SearchResult* result,
                        ReadsBeside* beside = nullptr);

  // The key's entry in these buckets, or its claim if that is decided; result->found tells. False:
  // the buckets have changed meanwhile, and are to be read again.
  Task<Result<bool>> MatchBuckets(Operation& operation, const IndexKey& key, ReadExtent extent,
                                  const Buckets& buckets, const Subtable& table,
                                  SearchResult* result, ReadsBeside* beside);
  // Asks whether one of these claims, of the key's fingerprint, is the key's and decided: then the
  // primary has its commit, too, and `result` the entry.
  Task<Result<ClaimSeen>> MeetClaims(Operation& operation, const IndexKey& key, ReadExtent extent,
                                     const Candidates& claims, SearchResult* result);

  void Retire(GlobalAddr subtable) { allocator_.Retire(subtable, SizeClass::For(kSubtableBytes)); }

  // insert.cc
  // The search of a key's two buckets behind the write of one of their slots.
  struct SearchBehind final : ReadsBehind {
    SearchBehind(Index& index_in, const Subtable& table_in, KeyHash hash_in)
        : index(index_in), table(table_in), hash(hash_in) {}
    void AddTo(RoundTrip& round_trip) override {
      index.AddBucketReads(round_trip, table, hash, &buckets);
    }

    Index& index;
    const Subtable table;
    const KeyHash hash;
    Buckets buckets{};
  };
  // The next step of a claim's owner, and the other entry that calls for it, if any.
  struct ClaimVerdict {
    ClaimNext next = ClaimNext::kCommit;
    Entry other;
  };
  // `search` is made if it was not done with the claim `own`; `before` is the one ahead of it.
  Task<Result<ClaimVerdict>> VerifyClaim(Operation& operation, const IndexKey& key,
                                         const SearchResult& before, SearchBehind* search,
                                         Entry own);
  Task<Result<ClaimVerdict>> JudgeClaim(Operation& operation, const IndexKey& key,
                                        const SearchResult& before, const SearchBehind& search,
                                        Entry own);

  // split.cc
  // The replica of a record to read together with a slot of `node`.
  [[nodiscard]] RemoteAddr RecordReplica(const View& view, GlobalAddr record, NodeId node) const {
    for (int replica = 0; replica < engine_.Replicas(view, record); ++replica) {
      const RemoteAddr at = view.Locate(record, replica);
      if (at.node == node) return at;
    }
    return view.Locate(record, 0);
  }

  // Memory for a child of a split, which nothing names.
  struct Spare {
    GlobalAddr start;  // null: none
    // WRITEs of this worker may be on their way to it: no other worker may have it.
    bool may_be_written = false;
  };
  // A split that a coroutine of this worker is at. Others that would split the same subtable share
  // its answer: each that asked for memory itself would wait for it anew.
  struct SplitUnderWay {
    explicit SplitUnderWay(Executor& executor) : has_asked(executor), has_room(executor) {}
    Event has_asked;  // for memory, if it needs any
    Status memory;
    std::array<uint32_t, 2> first{};  // groups that are split before the others
    Event has_room;                   // in those; or it is over
    Status status;
  };
  using Splitting = std::map<uint32_t, std::shared_ptr<SplitUnderWay>>;  // by directory entry
  static constexpr Status kMapChanges{StatusCode::kUnavailable, "the cluster is changing its map"};
  Task<void> Split(Quiesce::InFlightGuard in_flight, Subtable table,
                   std::shared_ptr<SplitUnderWay> own);
  // REQUIRES: as of MakeRoom().
  Task<Result<Spare>> TakeSpare();
  void GiveBack(Spare spare);
  // Split at that depth, or with none FinishSplit.
  // kNotFound: the child has to be made, which `spare` is for.
  Task<Status> SplitFrom(Quiesce::InFlightGuard& in_flight, uint32_t entry,
                         std::optional<uint32_t> at_depth, Spare spare);
  // `*spare` becomes null if it was used.
  Task<Status> SplitExclusively(Operation& operation, uint32_t entry,
                                std::optional<uint32_t> at_depth, Spare* spare);
  Task<Status> TakeSteps(Operation& operation, uint32_t entry, DirectoryWord locked, Spare* spare);
  Task<Result<DirectoryWord>> PublishChild(Operation& operation, uint32_t entry, uint32_t depth,
                                           Spare* spare);
  Task<Status> OpenEntry(Operation& operation, uint32_t entry, DirectoryWord from,
                         DirectoryWord to);
  // The split of `entry` is not finished.
  void NoteUnfinished(uint32_t entry);
  Task<Status> FormatSubtable(Operation& operation, GlobalAddr start, GroupHeader header);
  Task<Status> TurnGroupHeaders(Operation& operation, GlobalAddr start, uint32_t first_group,
                                uint32_t count, GroupHeader from, GroupHeader to);
  // False if the slots are held for too long.
  Task<bool> EnterSlots(Operation& operation);
  // A group of a split: moves what belongs to the child, whose group is open then.
  Task<void> FillGroup(Quiesce::InFlightGuard in_flight, Subtable from, uint32_t child_entry,
                       GlobalAddr child, uint32_t group, Status* failure);
  Task<Status> MoveGroup(Quiesce::InFlightGuard& in_flight, Subtable from, GlobalAddr to,
                         uint32_t group, uint32_t bit);
  // Does `step`, which may be done again, until no memory node is lost under it; for some time.
  template <typename Step>
  Task<Status> Persist(Operation& operation, Step step) {
    const uint64_t wait_ns = uint64_t{context_.options.wait_timer_us} * 1000;
    const uint64_t deadline_ns =
        context_.executor.NowNs() + 2 * context_.options.op_timeout_ms * 1'000'000;
    for (uint32_t retries = 0;; ++retries) {
      const Status status = co_await step();
      const bool lost =
          status.code() == StatusCode::kUnknownOutcome || status.code() == StatusCode::kUnavailable;
      if (!lost || retries == context_.options.node_loss_retries_max ||
          context_.executor.NowNs() >= deadline_ns) {
        co_return status;
      }
      operation.in_flight.LeaveSlots();
      co_await context_.executor.SleepFor(wait_ns);
      const bool entered = co_await operation.in_flight.EnterSlots(deadline_ns);
      if (!entered) co_return status;
    }
  }
  // `pin` is of the epoch in which the entry was read. Sets `*again` if it has to be looked at
  // again.
  Task<void> MoveEntry(Quiesce::InFlightGuard in_flight, EpochPin pin, Entry from, GlobalAddr to,
                       bool* again, Status* failure);

  WorkerContext& context_;
  Reclaimer& reclaimer_;
  Allocator& allocator_;
  Engine& engine_;
  Directory directory_;
  SubtableMover mover_;
  DecidedClaims claims_;
  LocationCache cache_;
  IndexMetrics metrics_;
  uint64_t empty_sequence_ = 0;
  Splitting splitting_;
  UnfinishedSplits unfinished_;
  std::vector<Spare> spares_;  // that may be written yet
  // How often a subtable's memory was of the memory nodes' reserve; a block is ten subtables'.
  static constexpr uint32_t kOfReserveMax = 3;
  uint32_t of_reserve_ = 0;
  // By directory entry: written whole, and it is not known whether the entry names it.
  std::map<uint32_t, GlobalAddr> in_doubt_;
};

template <typename Wanted>
Index::Candidates Index::Matching(const Buckets& buckets, const Subtable& table, KeyHash hash,
                                  Wanted wanted) {
  Candidates candidates;
  for (int choice = 0; choice < 2; ++choice) {
    const uint32_t first = CombinedFirstWord(hash.side(choice));
    for (uint32_t i = 0; i < kCombinedWords; ++i) {
      if (first + i == kGroupHeaderWord) continue;
      const SlotWord word(buckets.words[choice][i]);
      if (word.is_empty() || word.fingerprint() != hash.fingerprint() || !wanted(word.kind())) {
        continue;
      }
      candidates.entries[candidates.count++] = {table.Word(hash.group(choice), first + i), word};
    }
  }
  return candidates;
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_INDEX_INDEX_H_
