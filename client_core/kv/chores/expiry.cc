// Active expiry: records whose time has passed give their memory back though no command meets it.
//
// Every worker walks over the whole index, round and round, each from another place on, and removes
// what is expired as a command that meets it does: by a conditional write of the very word that it
// saw. So walks need no coordination: a loser has nothing to do, and a worker that is gone leaves
// nothing undone. A walk rests when many records in a row had time left; it rests longer the more
// workers there are, so that all of them together look no more often than one. Registers have no
// deadlines.
#include "client_core/kv/chores/expiry.h"

#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

// The groups that a walk reads at the same time.
constexpr uint32_t kGroupsAtOnce = 16;
static_assert(kSubtableGroups % kGroupsAtOnce == 0);
// A walk rests when it has found nothing in this number of records: expired keys are then at most
// about as rare. Groups are cheap, and another walk may have emptied them just now.
constexpr uint64_t kRecordsInVain = 512;
constexpr uint64_t kGroupsInVain = 4096;
// The groups of the index, or somewhat fewer.
uint64_t GroupsWithin(uint32_t directory_end) {
  return uint64_t{std::max(directory_end, 2U)} / 2 * kSubtableGroups;
}
// A walk works for this time, then leaves clients four times as much.
constexpr uint64_t kTurnNs = 50'000;
constexpr uint64_t kPauseFactor = 4;
// Removals between two turns of clients where the fabric completes inline; each takes some 3 us.
constexpr size_t kRemovalsPerTurn = 4;

std::optional<uint32_t> DatabaseOf(const View& view, KeyspaceId keyspace) {
  for (uint32_t database = 0; database < kMaxDatabases; ++database) {
    if (view.keyspaces[database] == keyspace) return database;
  }
  return std::nullopt;
}

uint32_t LiveWorkers(const View& view) {
  uint32_t count = 0;
  for (const uint64_t seats : view.live_seats) count += std::popcount(seats);
  return std::max(count, 1U);
}

}  // namespace

// A record that is expired, as it was read.
struct ExpiryWalk::ExpiredRecord {
  Entry entry;
  uint32_t database = 0;
  KeyspaceId keyspace;
  std::string name;
  std::array<std::byte, RecordKeyEnd(0)> start;
};

// The result of a part of a walk.
struct ExpiryWalk::ExpiryLook {
  uint64_t groups = 0;
  uint64_t records = 0;
  uint64_t removed = 0;
  uint64_t yielded_ns = 0;
  Status status;
};

void ExpiryWalk::WalkForExpiredIfDue() {
  if (core_.context.options.expiry_rest_us == 0 || !active_expiry_ || expiring_) return;
  if (core_.context.executor.NowNs() < next_expiry_walk_ns_) return;
  core_.context.executor.Spawn(core_.gate, WalkForExpired());
}

Task<void> ExpiryWalk::WalkForExpired() {
  const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kExpiryWalk);
  expiring_ = true;
  uint64_t groups_in_vain = 0;
  uint64_t records_in_vain = 0;
  uint64_t busy_ns = 0;
  while (active_expiry_ && !core_.stopping && records_in_vain < kRecordsInVain &&
         groups_in_vain < std::min(kGroupsInVain, GroupsWithin(expiry_end_))) {
    const uint64_t began_ns = core_.context.executor.NowNs();
    ExpiryLook look;
    co_await LookAtNextGroups(&look);
    if (!look.status.ok()) break;
    core_.AfterWrite();
    groups_in_vain = look.removed > 0 ? 0 : groups_in_vain + look.groups;
    records_in_vain = look.removed > 0 ? 0 : records_in_vain + look.records;
    busy_ns += core_.context.executor.NowNs() - began_ns - look.yielded_ns;
    if (busy_ns < kTurnNs) {
      co_await core_.context.executor.Yield();
    } else {
      co_await core_.context.executor.SleepFor(kPauseFactor * std::exchange(busy_ns, 0));
    }
  }
  expiring_ = false;
  next_expiry_walk_ns_ = core_.context.executor.NowNs() + LiveWorkers(core_.context.view()) *
                                                              core_.context.options.expiry_rest_us *
                                                              1000;
}

// One group in a turn where the fabric completes inline: clients wait for it.
Task<void> ExpiryWalk::LookAtNextGroups(ExpiryLook* look) {
  if (expiry_group_ == 0) {
    co_await FindNextSubtable(look);
    if (!look->status.ok()) co_return;
  }
  const Subtable table = core_.index.SubtableAt(expiry_entry_);
  const uint32_t count = core_.context.fabric.completes_inline() ? 1 : kGroupsAtOnce;
  std::vector<Task<void>> groups;
  for (uint32_t i = 0; i < count; ++i) {
    groups.push_back(RemoveExpiredOfGroup(table, expiry_group_ + i, look));
  }
  co_await WhenAll(std::move(groups));
  look->groups += count;
  expiry_group_ += count;
  if (expiry_group_ == kSubtableGroups) {
    expiry_group_ = 0;
    ++expiry_entry_;
  }
}

// The next one, behind the last one the first. When the index has grown, any: else all workers
// would go on close behind each other.
Task<void> ExpiryWalk::FindNextSubtable(ExpiryLook* look) {
  while (true) {
    if (core_.context.quiesce.held()) {
      look->status = kHeld;
      co_return;
    }
    look->status = co_await walker_.FindSubtableAround(&expiry_entry_, expiry_end_);
    if (!look->status.ok()) co_return;
    const uint32_t end = DirectoryEnd(core_.index.SubtableAt(expiry_entry_));
    if (end <= expiry_end_) co_return;
    expiry_end_ = end;
    // Most subtables are in the lower half.
    expiry_entry_ = static_cast<uint32_t>(core_.context.executor.rng().Below(end / 2));
  }
}

Task<void> ExpiryWalk::RemoveExpiredOfGroup(Subtable table, uint32_t group, ExpiryLook* look) {
  // A quiesce does not wait for an operation that has not begun.
  if (core_.context.quiesce.held()) {
    look->status = kHeld;
    co_return;
  }
  Operation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  const bool entered = co_await core_.EnterSlots(operation);
  CHECK(entered);
  operation.pin = core_.reclaimer.Pin();
  std::vector<ExpiredRecord> expired;
  Status status = co_await ListExpired(operation, table, group, look, &expired);
  for (size_t i = 0; i < expired.size() && status.ok(); ++i) {
    if (i % kRemovalsPerTurn == 0 && core_.context.fabric.completes_inline())
      co_await LetClientsIn(look);
    const ExpiredRecord& record = expired[i];
    SearchResult search;
    search.entry = record.entry;
    search.record = record.start.data();
    if (Planted(Bug::kWalkRemovesWhatIsNow)) {
      RoundTripPtr again = core_.context.fabric.NewRoundTrip();
      const uint64_t* word = again->ReadWord(core_.context.view().Locate(record.entry.slot, 0));
      status = co_await Post(core_.context, operation, again);
      search.entry.word = SlotWord(*word);
      const bool is_record = status.ok() && search.entry.word.kind() == SlotKind::kObject &&
                             !search.entry.word.is_register();
      if (!is_record) continue;
    }
    bool gone = false;
    const IndexKey key = IndexKey::Make(record.keyspace, record.name);
    status = co_await records_.RemoveExpired(operation, record.database, key, search, &gone);
    look->removed += gone ? 1 : 0;
  }
  if (!status.ok()) look->status = status;
}

Task<void> ExpiryWalk::LetClientsIn(ExpiryLook* look) {
  const uint64_t began_ns = core_.context.executor.NowNs();
  co_await core_.context.executor.Yield();
  look->yielded_ns += core_.context.executor.NowNs() - began_ns;
}

Task<Status> ExpiryWalk::ListExpired(Operation& operation, Subtable table, uint32_t group,
                                     ExpiryLook* look, std::vector<ExpiredRecord>* expired) {
  GroupWords words;
  const Status status = co_await core_.index.ReadGroup(operation, &table, group, &words);
  if (!status.ok()) co_return status;
  // A split may carry on an entry of a group that it fills, whatever has become of it there.
  if (GroupHeader(words[kGroupHeaderWord]).filling()) co_return Status::Ok();
  for (uint64_t& bits : words) {
    const SlotWord word(bits);
    if (word.kind() != SlotKind::kObject || word.is_register()) bits = 0;
  }
  const auto list = [&](uint32_t i, const EntryKey& key, const std::byte* record) {
    ++look->records;
    if (!core_.IsExpired(record)) return;
    const auto database = DatabaseOf(core_.context.view(), key.keyspace);
    if (!database) return;  // flushed: the sweep's
    const Entry entry{table.Word(group, i), SlotWord(words[i])};
    ExpiredRecord found{entry, *database, key.keyspace, std::string(key.bytes), {}};
    std::memcpy(found.start.data(), record, found.start.size());
    expired->push_back(std::move(found));
  };
  co_return co_await core_.index.ReadGroupEntries(operation, table, group, words, list);
}

}  // namespace onetrip
