// Walks over the keys of a database (SCAN, KEYS, RANDOMKEY, and INFO's count of deadlines).
//
// A walk goes through the directory in ascending order, and through a subtable's groups. A split
// moves entries from a subtable to the same group of one further on, and empties a slot only once
// the entry is committed there: a key that is there throughout is ahead of the walk until it is
// met. So a place in the directory is all that a walk needs to remember, and a cursor is one.
//
// A record in a slot is there until its deadline. A register may have ended before its slot is
// emptied, so it is read.
#include "client_core/kv/chores/scan.h"

#include <bit>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/index/decided_claims.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

// The reads that a walk has on the network at the same time.
constexpr uint32_t kAtOnce = 16;
// A step looks at this number of groups before it gives up looking for keys.
constexpr uint32_t kGroupsPerStep = 16 * kSubtableGroups;

// Where a walk goes on.
//   23.. log2 of where the directory ends, as far as the walk knows   22..7 entry   6..0 group
struct Place {
  uint32_t entry = 0;
  uint32_t group = 0;
  uint32_t end = 2;

  // Any number is a place: cursors come from clients.
  static Place At(uint64_t cursor) {
    Place place;
    place.group = cursor % kSubtableGroups;
    place.entry = (cursor / kSubtableGroups) % kDirectoryEntries;
    const uint64_t depth = cursor / kSubtableGroups / kDirectoryEntries;
    place.end = 1U << std::clamp<uint64_t>(depth, 1, kMaxDepth);
    return place;
  }
  [[nodiscard]] uint64_t Cursor() const {
    const auto depth = static_cast<uint64_t>(std::countr_zero(end));
    return (depth * kDirectoryEntries + entry) * kSubtableGroups + group;
  }
  void Advance(uint32_t groups) {
    group += groups;
    if (group < kSubtableGroups) return;
    group = 0;
    ++entry;
  }
};
static_assert(kSubtableGroups == 128 && kMaxDepth == 16 && kDirectoryEntries == 1U << 16);

bool IsThere(SlotKind kind) { return kind == SlotKind::kObject || kind == SlotKind::kFrozen; }

}  // namespace

namespace {

// Keeps one of the keys it is told, each with the same likelihood.
class KeySample final : public KeyVisitor {
 public:
  KeySample(Rng& rng, std::string* key) : rng_(rng), key_(key) {}
  bool Wants(std::string_view /*key*/) override { return true; }
  void Visit(std::string_view key, const KeyFacts& /*facts*/) override {
    if (rng_.Below(++count_) == 0) *key_ = key;
  }
  [[nodiscard]] bool has_one() const { return count_ > 0; }

 private:
  Rng& rng_;
  std::string* key_;
  uint64_t count_ = 0;
};

}  // namespace

struct Scanner::ListedKey {
  std::string name;
  KeyFacts facts;
  bool must_ask = false;  // only GET tells whether it is there
  bool is_there = true;
};

Task<Status> Scanner::Scan(uint32_t database, uint32_t keys_wanted, KeyVisitor& visitor,
                           uint64_t* cursor) {
  CHECK(database < kMaxDatabases);
  Place place = Place::At(*cursor);
  const uint64_t groups_max = std::max<uint64_t>(kGroupsPerStep, 10ULL * keys_wanted);
  uint64_t groups = 0;
  uint64_t met = 0;
  uint32_t at_once = 1;
  while (true) {
    if (place.group == 0 || !core_.index.KnowsSubtable(place.entry)) {
      const uint32_t asked = place.entry;
      const Status status = co_await AgainWhenLost(
          [this, &place] { return walker_.EnterAndFindSubtable(&place.entry, place.end); });
      if (!status.ok()) co_return status;
      if (place.entry != asked) place.group = 0;
      if (place.entry >= place.end) {
        *cursor = 0;
        co_return Status::Ok();
      }
    }
    // Only now: the next step must not be one that finds out that there is none.
    if (met >= keys_wanted || groups >= groups_max) {
      *cursor = place.Cursor();
      co_return Status::Ok();
    }
    const Subtable table = core_.index.SubtableAt(place.entry);
    if (!Planted(Bug::kScanForgetsGrowth)) place.end = std::max(place.end, DirectoryEnd(table));
    const uint32_t count = std::min(at_once, kSubtableGroups - place.group);
    std::vector<ListedKey> keys;
    Status status = co_await AgainWhenLost(
        [&] { return ListKeys(database, table, place.group, count, &keys); });
    if (!status.ok()) co_return status;
    // Large steps where there are few keys, or many are wanted; else no more than asked for.
    met += keys.size();
    const uint64_t missing = met < keys_wanted ? keys_wanted - met : 0;
    at_once = keys.empty() ? std::min(2 * at_once, kAtOnce)
                           : static_cast<uint32_t>(std::clamp<uint64_t>(missing / 8, 1, kAtOnce));
    std::erase_if(keys, [&visitor](const ListedKey& key) { return !visitor.Wants(key.name); });
    status = co_await LookAtKeys(database, &keys);
    if (!status.ok()) co_return status;
    for (const ListedKey& key : keys) {
      if (key.is_there) visitor.Visit(key.name, key.facts);
    }
    groups += count;
    place.Advance(count);
    co_await core_.context.executor.Yield();
  }
}

template <typename Step>
Task<Status> Scanner::AgainWhenLost(Step step) {
  constexpr Status kLost(StatusCode::kUnavailable, "a memory node was lost");
  Operation waiting;
  RetryAcrossViews retry(core_.context, waiting);
  while (true) {
    const Status status = co_await step();
    if (!MayHaveLostNode(status)) co_return status;
    if (!retry.IsWorth(status) || core_.context.quiesce.is_impatient()) co_return kLost;
    co_await retry.Wait();
  }
}

// The keys of `groups` groups that may be there.
Task<Status> Scanner::ListKeys(uint32_t database, Subtable table, uint32_t group, uint32_t groups,
                               std::vector<ListedKey>* keys) {
  keys->clear();
  Status status;
  std::vector<Task<void>> parts;
  for (uint32_t i = 0; i < groups; ++i) {
    parts.push_back(ListGroup(database, table, group + i, keys, &status));
  }
  co_await WhenAll(std::move(parts));
  co_return status;
}

Task<void> Scanner::ListGroup(uint32_t database, Subtable table, uint32_t group,
                              std::vector<ListedKey>* keys, Status* failure) {
  Operation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  const bool entered = co_await core_.EnterSlots(operation);
  if (!entered) {
    *failure = kHeld;
    co_return;
  }
  operation.pin = core_.reclaimer.Pin();
  GroupWords words;
  Status status = co_await core_.index.ReadGroup(operation, &table, group, &words);
  if (status.ok()) {
    DecidedClaims claims(core_.context, core_.engine);
    status = co_await claims.Settle(operation, table, group, &words);
  }
  if (status.ok()) {
    for (uint64_t& bits : words) {
      if (!IsThere(SlotWord(bits).kind())) bits = 0;
    }
    const KeyspaceId keyspace = core_.context.view().keyspaces[database];
    const uint64_t now_ms = core_.context.clock.NowMs();
    const auto list = [&](uint32_t i, const EntryKey& key, const std::byte* record) {
      if (key.keyspace != keyspace) return;
      ListedKey listed;
      listed.name = key.bytes;
      const Sight sight = forms_.Of(SlotWord(words[i])).See(record, now_ms, &listed.facts);
      if (sight == Sight::kGone) return;
      listed.must_ask = sight == Sight::kAsk;
      keys->push_back(std::move(listed));
    };
    status = co_await core_.index.ReadGroupEntries(operation, table, group, words, list);
  }
  if (!status.ok()) *failure = status;
}

Task<Status> Scanner::LookAtKeys(uint32_t database, std::vector<ListedKey>* keys) {
  Status status;
  for (size_t first = 0; first < keys->size() && status.ok();) {
    std::vector<Task<void>> reads;
    for (; first < keys->size() && reads.size() < kAtOnce; ++first) {
      ListedKey& key = (*keys)[first];
      if (key.must_ask) reads.push_back(LookAtKey(database, &key, &status));
    }
    co_await WhenAll(std::move(reads));
  }
  co_return status;
}

Task<void> Scanner::LookAtKey(uint32_t database, ListedKey* key, Status* failure) {
  const Key name{database, key->name};
  ReadResult result;
  const Status status = co_await store_.Get(name, &result);
  if (!status.ok()) *failure = status;
  key->is_there = result.found();
  if (result.found()) key->facts = {result.record().deadline_ms, result.record().type};
}

// From a random place on, so that subtables are as likely as they have keys.
Task<Status> Scanner::RandomKey(uint32_t database, std::string* key, bool* found) {
  constexpr uint32_t kSample = 64;
  Rng& rng = core_.context.executor.rng();
  const KeyHash hash(rng.Next());
  const Subtable table = core_.index.SubtableOf(hash);
  uint64_t cursor = Place{table.entry, hash.group(0), DirectoryEnd(table)}.Cursor();
  KeySample sample(rng, key);
  bool wrapped = cursor == 0;
  Status status;
  while (status.ok() && !sample.has_one()) {
    status = co_await Scan(database, kSample, sample, &cursor);
    if (cursor != 0) continue;
    if (std::exchange(wrapped, true)) break;
  }
  *found = sample.has_one();
  co_return status;
}

// Any part of the index does: keys are spread over it by their hashes.
Task<Status> Scanner::SampleDeadlines(uint32_t database, DeadlineSample* sample) {
  constexpr uint32_t kSubtables = 2;
  *sample = {};
  uint32_t entry = core_.index.SubtableOf(KeyHash(core_.context.executor.rng().Next())).entry;
  uint32_t end = std::max(entry + 1, DirectoryEnd(core_.index.SubtableAt(0)));
  uint32_t first = end;
  for (uint32_t subtables = 0;; ++subtables) {
    Status status = co_await AgainWhenLost([&] { return walker_.FindSubtableAround(&entry, end); });
    if (!status.ok()) co_return status;
    sample->is_whole = entry == first;
    if (sample->is_whole || subtables == kSubtables) co_return Status::Ok();
    if (subtables == 0) first = entry;
    const Subtable table = core_.index.SubtableAt(entry++);
    end = std::max(end, DirectoryEnd(table));
    for (uint32_t group = 0; group < kSubtableGroups; group += kAtOnce) {
      std::vector<ListedKey> keys;
      status =
          co_await AgainWhenLost([&] { return ListKeys(database, table, group, kAtOnce, &keys); });
      if (!status.ok()) co_return status;
      AddToSample(keys, sample);
      co_await core_.context.executor.Yield();
    }
  }
}

// Registers have no deadlines, so a sample need not look at them.
void Scanner::AddToSample(const std::vector<ListedKey>& keys, DeadlineSample* sample) const {
  const uint64_t now_ms = core_.context.clock.NowMs();
  sample->keys += keys.size();
  for (const ListedKey& key : keys) {
    if (key.facts.deadline_ms == 0) continue;
    ++sample->with_deadline;
    sample->left_ms += key.facts.deadline_ms - std::min(now_ms, key.facts.deadline_ms);
  }
}

}  // namespace onetrip
