// Searching: the location cache, then the two combined buckets, then, while a subtable splits, the
// one its keys move to.
//
// A split moves entries from a subtable to its child and never back, turns a group's header in the
// parent before it moves the first entry, and opens the group in the child after it moved the last.
// So: headers are read before and after the buckets, in the same batch; a header that turned later
// than the bucket was read proves that nothing had moved away, one that was open before proves that
// nothing was still to come; and the parent is searched before the child. A key that is there
// throughout is then met in one of them.
#include <algorithm>

#include "client_core/base/planted_bug.h"
#include "client_core/index/index.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {
namespace {

constexpr Status kLost(StatusCode::kCorrupt, "the directory leads nowhere");
constexpr Status kRestless(StatusCode::kUnavailable, "inserts of the key come and go");

}  // namespace

uint32_t Index::ExtentBytes(SlotWord word, const IndexKey& key, ReadExtent extent) const {
  const auto all = static_cast<uint32_t>(word.size_class().bytes());
  if (word.is_register()) {
    const RegisterShape shape{.lanes = context_.options.register_lanes,
                              .key_bytes = static_cast<uint32_t>(key.bytes.size())};
    return std::min(shape.in_place_offset(), all);
  }
  return extent == ReadExtent::kWhole ? all : EntryKeyEnd(word, key.bytes.size());
}

void Index::PrefetchRecord(KeyHash hash) const {
  const LocationCache::Location* location = cache_.Peek(hash);
  if (location == nullptr) return;
  const View& view = context_.view();
  if (!view.Contains(location->slot) || !view.Contains(location->word.addr())) return;
  const RemoteAddr slot = view.Locate(location->slot, 0);
  context_.fabric.Prefetch(slot, 8);
  const uint64_t bytes = std::min<uint64_t>(location->word.size_class().bytes(), 256);
  context_.fabric.Prefetch(RecordReplica(view, location->word.addr(), slot.node),
                           static_cast<uint32_t>(bytes));
}

// FUSEE 4.6, SEARCH with the index cache: the slot and the record it held go in one batch. The slot
// is read first on the same channel, so that a slot that still holds the word proves that the
// record behind it was in place when it was read.
MaybeTask<Status> Index::Find(Operation& operation, const IndexKey& key, ReadExtent extent,
                              RoundTripPtr first, SearchResult* result, ReadsBeside* beside) {
  *result = SearchResult();
  CachedReads cached;
  if (!AddCachedReads(*first, key, extent, &cached)) {
    return FindUncached(operation, key, extent, std::move(first), result, beside);
  }
  if (!context_.fabric.completes_inline()) {
    return FindCached(operation, key, extent, std::move(first), cached, result, beside);
  }
  const Status status = PostInline(context_, operation, first);
  if (!status.ok() || TakeCached(key, cached, &first, result)) return status;
  return FindMoved(operation, key, extent, cached, std::move(first), result, beside);
}

Task<Status> Index::FindCached(Operation& operation, const IndexKey& key, ReadExtent extent,
                               RoundTripPtr first, CachedReads cached, SearchResult* result,
                               ReadsBeside* beside) {
  const Status status = co_await Post(context_, operation, first);
  if (!status.ok() || TakeCached(key, cached, &first, result)) co_return status;
  co_return co_await FindMoved(operation, key, extent, cached, std::move(first), result, beside);
}

bool Index::TakeCached(const IndexKey& key, const CachedReads& cached, RoundTripPtr* bytes,
                       SearchResult* result) {
  const LocationCache::Location& location = cached.location;
  const bool believed = *cached.word == location.word.bits() || Planted(Bug::kStaleCacheBelieved);
  if (!believed ||
      !EntryHasKey(location.word, cached.record, cached.bytes, key.keyspace, key.bytes)) {
    return false;
  }
  metrics_.cache_hits.Add();
  result->found = true;
  result->entry = {location.slot, location.word};
  result->bytes = std::move(*bytes);
  result->record = cached.record;
  result->record_bytes = cached.bytes;
  return true;
}

Task<Status> Index::FindMoved(Operation& operation, const IndexKey& key, ReadExtent extent,
                              CachedReads cached, RoundTripPtr first, SearchResult* result,
                              ReadsBeside* beside) {
  const SlotWord now(*cached.word);
  metrics_.cache_invalid.Add();
  cache_.NoteInvalid(key.hash);
  // The key's own slot, most likely, with a newer record: one more round trip tells.
  if (now.kind() == SlotKind::kObject && now.fingerprint() == key.hash.fingerprint()) {
    Candidates newer;
    newer.entries[newer.count++] = {cached.location.slot, now};
    const Status status = co_await MatchKey(operation, key, extent, newer, result, beside);
    if (!status.ok()) co_return status;
    if (result->found) {
      CacheLocation(key.hash, result->entry);
      co_return Status::Ok();
    }
  }
  first = context_.fabric.NewRoundTrip();
  co_return co_await FindUncached(operation, key, extent, std::move(first), result, beside);
}

Task<Status> Index::FindUncached(Operation& operation, const IndexKey& key, ReadExtent extent,
                                 RoundTripPtr first, SearchResult* result, ReadsBeside* beside) {
  const Status status = co_await Search(operation, key, extent, std::move(first), result, beside);
  if (status.ok() && result->found && !result->busy) CacheLocation(key.hash, result->entry);
  co_return status;
}

bool Index::AddCachedReads(RoundTrip& round_trip, const IndexKey& key, ReadExtent extent,
                           CachedReads* cached) {
  if (!cache_.Find(key.hash, &cached->location)) return false;
  const View& view = context_.view();
  // The location is in regions that are gone.
  if (!view.Contains(cached->location.slot) || !view.Contains(cached->location.word.addr())) {
    return false;
  }
  const RemoteAddr slot = view.Locate(cached->location.slot, 0);
  const RemoteAddr record = RecordReplica(view, cached->location.word.addr(), slot.node);
  // On another node than the slot's, the record could be read before the slot and be reused in
  // between. Engine raw promises nothing about that.
  if (record.node != slot.node && engine_.Replicas(view, cached->location.slot) > 1) return false;
  cached->word = round_trip.ReadWord(slot);
  cached->bytes = ExtentBytes(cached->location.word, key, extent);
  cached->record = round_trip.Read(record, cached->bytes);
  claims_.AddWitnesses(cached->location.slot, round_trip);
  return true;
}

void Index::AddBucketReads(RoundTrip& round_trip, const Subtable& table, KeyHash hash,
                           Buckets* buckets) {
  const View& view = context_.view();
  for (int choice = 0; choice < 2; ++choice) {
    buckets->header_before[choice] =
        round_trip.ReadWord(view.Locate(table.Word(hash.group(choice), kGroupHeaderWord), 0));
  }
  for (int choice = 0; choice < 2; ++choice) {
    const GlobalAddr start = table.Word(hash.group(choice), CombinedFirstWord(hash.side(choice)));
    buckets->words[choice] =
        reinterpret_cast<const uint64_t*>(round_trip.Read(view.Locate(start, 0), kCombinedBytes));
  }
  for (int choice = 0; choice < 2; ++choice) {
    buckets->header[choice] =
        round_trip.ReadWord(view.Locate(table.Word(hash.group(choice), kGroupHeaderWord), 0));
  }
  claims_.AddWitnesses(table.Word(hash.group(0), kGroupHeaderWord), round_trip);
}

Index::Standing Index::StandingOf(const Buckets& buckets, const Subtable& table, KeyHash hash,
                                  uint32_t* depth) {
  Standing standing = Standing::kHere;
  *depth = 0;
  for (const uint64_t* bits : buckets.header) {
    const GroupHeader header(*bits);
    if (!header.is_valid() || header.depth() > kMaxDepth || header.suffix() != table.entry) {
      return Standing::kInvalid;
    }
    *depth = std::max(*depth, header.depth());
    if (hash.suffix(header.depth()) != header.suffix()) {
      standing = Standing::kMoved;
    } else if (header.filling() && standing == Standing::kHere) {
      standing = Standing::kFilling;
    }
  }
  return standing;
}

bool Index::WasFilling(const Buckets& buckets) {
  for (int choice = 0; choice < 2; ++choice) {
    if (GroupHeader(*buckets.header_before[choice]).filling() ||
        GroupHeader(*buckets.header[choice]).filling()) {
      return true;
    }
  }
  return false;
}

bool Index::GroupIsFilling(const Buckets& buckets, const Subtable& table, KeyHash hash,
                           GlobalAddr slot) {
  const uint64_t group = (slot.bits() - table.start.bits()) / kGroupBytes;
  const int choice = group == hash.group(0) ? 0 : 1;
  return GroupHeader(*buckets.header[choice]).filling();
}

// RACE balances: the emptier of the two buckets takes the key.
bool Index::PickEmpty(const Buckets& buckets, const Subtable& table, KeyHash hash, Entry* empty) {
  std::array<Entry, 2> first_empty;
  std::array<uint32_t, 2> empties{};
  for (int choice = 0; choice < 2; ++choice) {
    const uint32_t first = CombinedFirstWord(hash.side(choice));
    // Slots of the main bucket come before those of the shared overflow bucket.
    const uint32_t main_bucket = hash.side(choice) == 0 ? 0 : kGroupHeaderWord;
    for (uint32_t n = 0; n < kCombinedWords; ++n) {
      const uint32_t i = (main_bucket + n) % kCombinedWords;
      if (first + i == kGroupHeaderWord) continue;
      const SlotWord word(buckets.words[choice][i]);
      if (!word.is_empty() || word.is_dropped()) continue;
      if (empties[choice]++ == 0) {
        first_empty[choice] = {table.Word(hash.group(choice), first + i), word};
      }
    }
  }
  if (empties[0] == 0 && empties[1] == 0) return false;
  *empty = first_empty[empties[1] > empties[0] ? 1 : 0];
  return true;
}

Task<Status> Index::MatchKey(Operation& operation, const IndexKey& key, ReadExtent extent,
                             const Candidates& candidates, SearchResult* result,
                             ReadsBeside* beside) {
  const View& view = context_.view();
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  std::array<const std::byte*, 2 * kCombinedWords> records{};
  for (size_t i = 0; i < candidates.count; ++i) {
    const Entry& entry = candidates.entries[i];
    if (!entry.word.size_class().is_valid() || !view.Contains(entry.word.addr())) {
      co_return Status(StatusCode::kCorrupt, "a slot points outside the pool");
    }
    const NodeId node = view.Locate(entry.slot, 0).node;
    records[i] = round_trip->Read(RecordReplica(view, entry.word.addr(), node),
                                  ExtentBytes(entry.word, key, extent));
  }
  const bool is_alone = candidates.count == 1 || Planted(Bug::kReadBesideOfAny);
  if (beside != nullptr && is_alone) beside->BeginBeside(candidates.entries[0].word);
  const Status status = co_await Post(context_, operation, round_trip);
  if (!status.ok()) co_return status;
  for (size_t i = 0; i < candidates.count; ++i) {
    const Entry& entry = candidates.entries[i];
    if (!EntryHasKey(entry.word, records[i], ExtentBytes(entry.word, key, extent), key.keyspace,
                     key.bytes)) {
      result->NoteOther(entry);
      continue;
    }
    if (!EntryHasItsClass(entry.word, records[i])) {
      co_return Status(StatusCode::kCorrupt, "a slot gives what it names another size");
    }
    result->found = true;
    result->entry = entry;
    result->record = records[i];
    result->record_bytes = ExtentBytes(entry.word, key, extent);
    result->bytes = std::move(round_trip);
    co_return Status::Ok();
  }
  co_return Status::Ok();
}

Task<Result<bool>> Index::MatchBuckets(Operation& operation, const IndexKey& key, ReadExtent extent,
                                       const Buckets& buckets, const Subtable& table,
                                       SearchResult* result, ReadsBeside* beside) {
  const Candidates candidates = Matching(buckets, table, key.hash, [](SlotKind kind) {
    return kind == SlotKind::kObject || kind == SlotKind::kFrozen;
  });
  *result = SearchResult();
  if (candidates.count > 0) {
    const Status matched = co_await MatchKey(operation, key, extent, candidates, result, beside);
    if (!matched.ok()) co_return matched;
  }
  if (result->found || Planted(Bug::kDecidedPassedBy)) co_return true;
  const Candidates claims = Matching(buckets, table, key.hash,
                                     [](SlotKind kind) { return kind == SlotKind::kTentative; });
  if (claims.count == 0 || !claims_.MayBe(table)) co_return true;
  const Result<ClaimSeen> seen = co_await MeetClaims(operation, key, extent, claims, result);
  if (!seen.ok()) co_return seen.status();
  co_return *seen != ClaimSeen::kChanged;
}

Task<Result<ClaimSeen>> Index::MeetClaims(Operation& operation, const IndexKey& key,
                                          ReadExtent extent, const Candidates& claims,
                                          SearchResult* result) {
  Candidates undecided;
  for (size_t i = 0; i < claims.count; ++i) {
    const Entry claim = claims.entries[i];
    Candidates one;
    one.entries[one.count++] = claim;
    result->found = false;
    const Status matched = co_await MatchKey(operation, key, extent, one, result);
    if (!matched.ok()) co_return matched;
    if (!result->found) continue;
    SlotWord committed;
    const Result<ClaimSeen> seen = co_await claims_.AskBackups(operation, claim, &committed);
    if (!seen.ok()) co_return seen.status();
    if (*seen == ClaimSeen::kDecided) {
      result->entry.word = committed;
      co_return co_await claims_.Turn(operation, claim, committed);
    }
    undecided.entries[undecided.count++] = claim;
  }
  result->found = false;
  if (undecided.count == 0 || Planted(Bug::kClaimNotSeenAgain)) co_return ClaimSeen::kUndecided;
  co_return co_await claims_.LookAgain(operation, {undecided.entries.data(), undecided.count});
}

Task<Status> Index::Search(Operation& operation, const IndexKey& key, ReadExtent extent,
                           RoundTripPtr first, SearchResult* result, ReadsBeside* beside) {
  if (!directory_.Knows(0)) [[unlikely]] {
    const Result<DirectoryWord> root = co_await directory_.Refresh(operation, 0);
    if (!root.ok()) co_return root.status();
    if (!root.value().is_used()) co_return kLost;
  }
  Subtable table = directory_.Lookup(key.hash);
  bool from_parent = false;
  SearchResult frozen;  // met in a parent, to be believed unless the child knows better
  // Each hop goes one subtable down, or once up to a parent.
  for (uint32_t hop = 0; hop < 2 * kMaxDepth + 2; ++hop) {
    Buckets buckets{};
    AddBucketReads(*first, table, key.hash, &buckets);
    const Status status = co_await Post(context_, operation, first);
    if (!status.ok()) co_return status;
    uint32_t depth = 0;
    const Standing standing = StandingOf(buckets, table, key.hash, &depth);
    if (standing == Standing::kInvalid) {
      co_return Status(StatusCode::kCorrupt, "a directory entry leads to no subtable");
    }
    const Result<bool> matched =
        co_await MatchBuckets(operation, key, extent, buckets, table, result, beside);
    if (!matched.ok()) co_return matched.status();
    if (!*matched) {
      if (OutOfTime(context_, operation)) co_return kRestless;
      --hop;
      first = context_.fabric.NewRoundTrip();
      continue;
    }
    if (result->found && result->entry.word.kind() == SlotKind::kObject) {
      // In a group that is still being filled, the parent's copy may yet be visible to others.
      result->busy = GroupIsFilling(buckets, table, key.hash, result->entry.slot);
      if (result->busy && table.entry != 0) NoteUnfinished(Directory::ParentEntry(table.entry));
      co_return Status::Ok();
    }
    if (result->found) {
      frozen = std::move(*result);
      *result = SearchResult();
    }
    directory_.NoteDepth(table.entry, depth);
    if (WasFilling(buckets) && !from_parent && !Planted(Bug::kFillingParentNotAsked)) {
      // The words that we read may have been copied here only afterwards; the parent had it until
      // then. The parent's headers lead back here, and here we stay.
      if (table.entry == 0) co_return kLost;
      table = directory_.At(Directory::ParentEntry(table.entry));
      CHECK(!table.start.is_null());  // it led here
      from_parent = true;
    } else if (standing == Standing::kMoved) {
      const uint32_t child = Directory::ChildEntry(table.entry, depth, key.hash);
      if (!directory_.Knows(child)) {
        const Result<DirectoryWord> word = co_await directory_.Refresh(operation, child);
        if (!word.ok()) co_return word.status();
        if (!word.value().is_used()) {
          co_return Status(StatusCode::kCorrupt, "a split subtable has no child");
        }
      }
      table = directory_.At(child);
      from_parent = true;
    } else {
      if (frozen.found) *result = std::move(frozen);
      result->busy = result->found || standing == Standing::kFilling;
      if (result->busy && table.entry != 0) NoteUnfinished(Directory::ParentEntry(table.entry));
      result->table = table;
      result->has_empty = PickEmpty(buckets, table, key.hash, &result->empty);
      co_return Status::Ok();
    }
    first = context_.fabric.NewRoundTrip();
  }
  co_return kLost;
}

Task<Result<bool>> Index::IsBlindWriteOf(Operation& operation, const IndexKey& key, Entry entry) {
  const SlotWord word = entry.word;
  if (word.kind() != SlotKind::kObject || !word.blind() ||
      word.fingerprint() != key.hash.fingerprint()) {
    co_return false;
  }
  // The slot may hold another key by now: blind words of others prove nothing about this one.
  Candidates one;
  one.entries[one.count++] = entry;
  SearchResult result;
  const Status status = co_await MatchKey(operation, key, ReadExtent::kKey, one, &result);
  if (!status.ok()) co_return status;
  co_return result.found || Planted(Bug::kBlindLoserForgetsKey);
}

Task<Status> Index::ReadGroup(Operation& operation, Subtable* moving, uint32_t group,
                              GroupWords* words) {
  if (!directory_.Knows(moving->entry)) {
    const Result<DirectoryWord> word = co_await directory_.Refresh(operation, moving->entry);
    if (!word.ok()) co_return word.status();
    if (!word.value().is_used()) co_return kLost;
  }
  moving->start = directory_.At(moving->entry).start;
  const Subtable table = *moving;
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  const auto* read = reinterpret_cast<const uint64_t*>(
      round_trip->Read(context_.view().Locate(table.Word(group, 0), 0), kGroupBytes));
  claims_.AddWitnesses(table.Word(group, 0), *round_trip);
  const Status status = co_await Post(context_, operation, round_trip);
  if (status.ok()) std::copy_n(read, kGroupWords, words->begin());
  co_return status;
}

}  // namespace onetrip
