// What the master asks of a worker when a memory node is lost or comes back, and when regions move
// (repair_order.h).
#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/check.h"
#include "client_core/base/log.h"
#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/index/resolve_slots.h"
#include "client_core/kv/heal_damage.h"
#include "client_core/kv/kv_impl.h"
#include "client_core/kv/pool_check.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"
#include "client_core/memory/copy_region.h"
#include "client_core/memory/format_regions.h"

namespace onetrip {
namespace {

constexpr Status kPoolIsFull(StatusCode::kOutOfMemory,
                             "the pool is full; other workers have to give up memory first");
constexpr uint32_t kDirectoryStretch = 1024;  // entries per READ
constexpr uint32_t kGroupsAtOnce = 16;
// Where the fabric completes inline a walk works for so long, then lets clients in.
constexpr uint64_t kTurnNs = 50'000;
// One in the background works for so long, then rests; for no longer than this, whatever it waited
// for.
constexpr uint64_t kBackgroundTurnNs = 500'000;
constexpr uint64_t kRestMaxNs = 10'000'000;
constexpr uint64_t kPatienceNs = 60'000'000'000;

Mechanism MechanismOf(RepairKind kind) {
  switch (kind) {
    case RepairKind::kResolveSlots:
      return Mechanism::kResolve;
    case RepairKind::kScrubRegisters:
      return Mechanism::kScrub;
    case RepairKind::kCopyRegion:
      return Mechanism::kCopy;
    case RepairKind::kTakeOverBlocks:
      return Mechanism::kTakeOver;
    case RepairKind::kEndRegisters:
      return Mechanism::kEndRegisters;
    case RepairKind::kMoveRegion:
      return Mechanism::kMove;
    case RepairKind::kFormatRegions:
      return Mechanism::kGrow;
    case RepairKind::kMoveSubtables:
      return Mechanism::kLeave;
  }
  CHECK(false);
}

}  // namespace

void KvImpl::LeaveNode(NodeId node) { context_.fabric.LeaveAside(node, /*aside=*/true); }

void KvImpl::UseView(const View& view) {
  for (uint16_t i = 0; i < view.node_count; ++i) {
    context_.fabric.LeaveAside(NodeId{i}, view.IsOut(NodeId{i}));
  }
  index_.UseView(view);
  allocator_.UseView(view);
  if (std::exchange(leaving_looks_.regions, view.leaving) == view.leaving) return;
  account_.rests = 1;
  leaving_looks_.in_vain = 0;
  leaving_looks_.next_ns = context_.executor.NowNs() + 2 * context_.options.account_rest_us * 1000;
}

Task<bool> KvImpl::WaitToBegin(Operation* operation) {
  const uint64_t deadline_ns = context_.executor.NowNs() + kPatienceNs;
  const bool released = co_await context_.hold.Wait(deadline_ns);
  if (!released) co_return false;
  operation->presence = ViewHold::Presence(context_.hold);
  const bool entered = co_await operation->presence.EnterSlots(deadline_ns);
  co_return entered;
}

void KvImpl::Repair(RepairOrder order, DoneFn done) {
  if (stopping_) return done(Status(StatusCode::kUnavailable, "the worker is ending"));
  context_.executor.Spawn(gate_, RunRepair(std::move(order), std::move(done)));
}

Task<void> KvImpl::RunRepair(RepairOrder order, DoneFn done) {
  Status status;
  const MechanismScope scope(context_.mechanism_observer, MechanismOf(order.kind));
  switch (order.kind) {
    case RepairKind::kResolveSlots: {
      if (order.damaged) status = co_await HealDamage(*order.view);
      if (!status.ok()) break;
      SlotResolver resolver(context_.fabric, *order.view);
      status = co_await resolver.Run();
      metrics_.slots_resolved.Add(resolver.resolved());
      break;
    }
    case RepairKind::kScrubRegisters:
      status = co_await ScrubRegisters(std::move(order));
      break;
    case RepairKind::kCopyRegion:
      status = co_await CopyRegion(context_.fabric, *order.view, order.region);
      break;
    case RepairKind::kTakeOverBlocks:
      status = co_await TakeOverBlocks(std::move(order));
      break;
    case RepairKind::kEndRegisters:
      status = co_await EndRegisters(std::move(order));
      break;
    case RepairKind::kMoveRegion:
      status = co_await MoveRegion(context_.fabric, *order.view, order.region, order.source,
                                   order.target);
      break;
    case RepairKind::kFormatRegions:
      // What this worker knows of is in use.
      status = order.region < context_.view().regions.size()
                   ? Status(StatusCode::kInvalidArgument, "the regions are there already")
                   : co_await FormatRegions(context_.fabric, *order.view, order.region);
      break;
    case RepairKind::kMoveSubtables:
      status = co_await index_.MoveSubtables(order.view);
      break;
  }
  done(status);
}

Task<Status> KvImpl::HealDamage(const View& view) {
  DamageHealer healer(context_.fabric, view, [this] { return index_.NewEmptyWord(); });
  const Status status = co_await healer.Run();
  if (healer.lost() != 0) LogError("after damaged memory was accepted, " + healer.LostText());
  LogWarning("healed " + std::to_string(healer.healed()) + " places of damaged memory" +
             (status.ok() ? "" : ", and not all: " + std::string(status.message())));
  co_return status;
}

Task<Status> KvImpl::CheckPool(PoolCounts* counts) {
  PoolCheck check(context_, reclaimer_, counts);
  co_return co_await check.Run();
}

IndexWalk KvImpl::WalkOf(const RepairOrder& order) const {
  const bool is_same = left_walk_.kind == order.kind && left_walk_.number == order.walk;
  if (is_same || (Planted(Bug::kWalkResumedAnyway) && left_walk_.kind == order.kind)) {
    return left_walk_;
  }
  IndexWalk walk;
  walk.kind = order.kind;
  walk.number = order.walk;
  return walk;
}

Task<Status> KvImpl::WalkRegisters(GroupVisitor visit, IndexWalk* walk) {
  const Status status = co_await ForEachGroup(std::move(visit), walk);
  left_walk_ = status.ok() ? IndexWalk() : *walk;
  co_return status;
}

Task<Status> KvImpl::ScrubRegisters(RepairOrder order) {
  if (!registers_ || Planted(Bug::kNoScrub)) co_return Status::Ok();
  IndexWalk walk = WalkOf(order);
  co_return co_await WalkRegisters(
      [this](Subtable table, uint32_t group, Status* failure) {
        return ScrubGroup(table, group, failure);
      },
      &walk);
}

// None is made meanwhile, so none is left afterwards. In a full pool every worker does what lies in
// its own blocks, and in open ones, one behind the other, for that memory comes back to it
// (PROTOCOLS, "The reserve").
Task<Status> KvImpl::EndRegisters(RepairOrder order) {
  if (Planted(Bug::kMovesRegisters)) co_return Status::Ok();
  IndexWalk walk = WalkOf(order);
  if (!registers_) {  // no other engine works beside it: there are none
    if (context_.view().leaving == 0) co_return Status::Ok();
    walk.leaves = true;
  }
  Status status = co_await FindOpenBlocks(&walk.left);
  if (!status.ok()) co_return status;
  if (!walk.leaves) {
    status = co_await WalkRegisters(
        [this, &walk](Subtable table, uint32_t group, Status* failure) {
          return EndGroup(table, group, &walk.left, failure);
        },
        &walk);
    AfterWrite();
    if (!status.ok()) co_return status;
    if (walk.left.any) allocator_.CloseSparse();
    if (context_.view().leaving == 0) co_return walk.left.any ? kPoolIsFull : status;
    walk.leaves = true;
    walk.next = 0;
  }
  const MechanismScope scope(context_.mechanism_observer, Mechanism::kLeave);
  status = co_await WalkRegisters(
      [this, &walk](Subtable table, uint32_t group, Status* failure) {
        return LeaveGroup(table, group, &walk.left, failure);
      },
      &walk);
  AfterWrite();
  if (!status.ok() || !walk.left.any) co_return status;
  co_return walk.left.failure.ok() ? kPoolIsFull : walk.left.failure;
}

Task<Status> KvImpl::FindOpenBlocks(RegistersLeft* left) {
  if (context_.hold.held()) co_return kHeld;
  Operation operation;
  operation.presence = ViewHold::Presence(context_.hold);
  OrphanBlocks open(context_);
  const Status status = co_await open.Find(operation, OrphanBlocks::Open);
  left->open.clear();
  for (const auto& [start, block] : open.blocks()) left->open.insert(start);
  co_return status;
}

Task<Status> KvImpl::FindSubtable(uint32_t* entry, uint32_t end) {
  while (*entry < end) {
    const uint32_t count = std::min(end - *entry, kDirectoryStretch);
    // As before a visit: ForEachGroup.
    if (context_.hold.held()) co_return kHeld;
    Operation operation;
    const bool begun = co_await WaitToBegin(&operation);
    if (!begun) co_return kHeld;
    std::vector<uint32_t> used;
    const Status status = co_await index_.ReadDirectoryStretch(operation, *entry, count, &used);
    if (!status.ok()) co_return status;
    if (!used.empty()) {
      *entry = used.front();
      co_return Status::Ok();
    }
    *entry += count;
  }
  co_return Status::Ok();
}

// Entries move from a subtable to one further on in the directory, never back: in ascending order
// none is missed, however many splits there are meanwhile.
Task<Status> KvImpl::ForEachGroup(GroupVisitor visit, IndexWalk* walk) {
  uint64_t busy_ns = 0;
  // A hold does not wait for it, and is waited for by nobody here: somebody is asked again.
  for (; !stopping_ && !context_.hold.held(); ++walk->next) {
    Status status = co_await FindSubtable(&walk->next, walk->end);
    if (!status.ok() || walk->next >= walk->end) co_return status;
    const Subtable table = index_.SubtableAt(walk->next);
    // Every subtable tells how far the directory reaches by now.
    walk->end = std::max(walk->end, DirectoryEnd(table));
    // Where the fabric completes inline clients come between any two.
    const uint32_t at_once = context_.fabric.completes_inline() ? 1 : kGroupsAtOnce;
    for (uint32_t group = 0; group < kSubtableGroups; group += at_once) {
      // A visit would wait for the hold's end, and the hold may be waiting for this to end.
      if (context_.hold.held()) co_return kHeld;
      const uint64_t began_ns = context_.executor.NowNs();
      std::vector<Task<void>> groups;
      for (uint32_t i = 0; i < at_once; ++i) groups.push_back(visit(table, group + i, &status));
      co_await WhenAll(std::move(groups));
      if (!status.ok()) co_return status;
      busy_ns += context_.executor.NowNs() - began_ns;
      if (walk->in_background && busy_ns >= kBackgroundTurnNs) {
        co_await context_.executor.SleepFor(std::min(std::exchange(busy_ns, 0), kRestMaxNs));
      } else if (!walk->in_background && busy_ns >= kTurnNs) {
        busy_ns = 0;
        if (context_.fabric.completes_inline()) co_await context_.executor.Yield();
      }
    }
    co_await context_.executor.Yield();
  }
  co_return kHeld;
}

Task<Status> KvImpl::ListRegisters(Operation& operation, Subtable table, uint32_t group,
                                   std::vector<ListedRegister>* registers) {
  GroupWords words;
  Status status = co_await index_.ReadGroup(operation, &table, group, &words);
  for (uint32_t i = 0; i < kGroupWords && status.ok(); ++i) {
    const SlotWord word(words[i]);
    if (i == kGroupHeaderWord || word.is_empty() || !word.is_register()) continue;
    if (!word.size_class().is_valid() || !context_.view().Contains(word.addr())) continue;
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const auto bytes = static_cast<uint32_t>(
        std::min<uint64_t>(word.size_class().bytes(), EntryKeyEnd(word, kRegisterKeyBytesMax)));
    const std::byte* image = round_trip->Read(context_.view().Locate(word.addr(), 0), bytes);
    status = co_await Post(context_, operation, round_trip);
    if (!status.ok()) break;
    EntryKey key;
    if (!LoadEntryKey(word, image, bytes, &key)) {
      co_return Status(StatusCode::kCorrupt, "a slot names a register that is none");
    }
    registers->push_back({word, key.keyspace, std::string(key.bytes)});
  }
  co_return status;
}

Task<void> KvImpl::ScrubGroup(Subtable table, uint32_t group, Status* failure) {
  Operation operation;
  const bool begun = co_await WaitToBegin(&operation);
  if (!begun) {
    *failure = kHeld;
    co_return;
  }
  operation.pin = reclaimer_.Pin();
  std::vector<ListedRegister> registers;
  Status status = co_await ListRegisters(operation, table, group, &registers);
  for (const ListedRegister& listed : registers) {
    if (!status.ok()) break;
    status =
        co_await ScrubRegister(operation.presence, IndexKey::Make(listed.keyspace, listed.key));
  }
  if (!status.ok()) *failure = status;
}

// A read brings the largest word to a majority of the replicas, and its bytes are brought to all; a
// register that is sealed is helped to its end, so that no later copy can change what its end is.
Task<Status> KvImpl::ScrubRegister(ViewHold::Presence& presence, IndexKey key) {
  RegisterOperation operation;
  const LentPresence lent(presence, operation);
  operation.pin = reclaimer_.Pin();
  Backoff backoff(context_, operation);
  while (true) {
    SearchResult search;
    const uint64_t forgotten = Forgotten();
    Status status = co_await index_.Find(operation, key, ReadExtent::kKey,
                                         context_.fabric.NewRoundTrip(), &search);
    if (!status.ok() || !search.found || !search.entry.word.is_register()) co_return status;
    CachedRegister* entry = Adopt(key, search, forgotten);
    if (entry != nullptr) {
      RegisterCache::Use use(registers_->cache, *entry);
      operation.shared_pin = SharedPin(reclaimer_.Pin());
      const Result<ReadOutcome> read = co_await registers_->Read(operation, entry->handle);
      if (!read.ok()) co_return read.status();
      if (read->end == RegisterEnd::kDone && !Planted(Bug::kScrubLeavesBytes)) {
        co_return co_await registers_->safe_guess.max_register().MakeWhole(
            operation, entry->handle.ref, read->tuple);
      }
      if (read->end != RegisterEnd::kInterrupted) co_return Status::Ok();
      entry->met_seal = SealWord(read->seal);
      if (!search.busy) {
        // Copies wait for this, however full the pool is.
        const Allocator::Holder holder(allocator_);
        status = co_await EndRegister(operation, key, search.entry, *entry, /*may_wait=*/false);
        if (!status.ok()) co_return status;
      }
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kContended;
  }
}

Task<void> KvImpl::EndGroup(Subtable table, uint32_t group, RegistersLeft* left, Status* failure) {
  Operation operation;
  const bool begun = co_await WaitToBegin(&operation);
  if (!begun) {
    *failure = kHeld;
    co_return;
  }
  std::vector<ListedRegister> registers;
  operation.pin = reclaimer_.Pin();
  Status status = co_await ListRegisters(operation, table, group, &registers);
  // Memory may have to be waited for.
  operation.pin.Release();
  for (const ListedRegister& listed : registers) {
    if (!status.ok()) break;
    const bool own = allocator_.Owns(listed.word.addr()) ||
                     left->open.contains(listed.word.addr().block_start().bits());
    if (!own && left->full) {
      left->any = true;
      continue;
    }
    bool& starved = left->starved[listed.word.size_class().index()];
    const uint64_t wait_ms = own && !starved ? context_.options.memory_wait_ms : 0;
    status = co_await MakeRecord(operation.presence, listed, own, wait_ms);
    if (status.code() != StatusCode::kOutOfMemory) continue;
    // What others of them give up may suffice the next time.
    if (own) starved = true;
    left->full = true;
    left->any = true;
    status = Status::Ok();
  }
  if (!status.ok()) *failure = status;
}

Task<Status> KvImpl::AwaitRetired(RegisterOperation& operation, uint64_t deadline_ns) {
  if (context_.hold.held()) co_return kHeld;
  operation.shared_pin = SharedPin();
  operation.pin.Release();
  operation.presence.LeaveSlots();
  co_await allocator_.ReserveRetiredRing(/*may_use_reserve=*/true);
  co_await allocator_.AwaitRetired(deadline_ns);
  const bool entered = co_await EnterSlots(operation);
  operation.pin = reclaimer_.Pin();
  if (!entered) co_return kHeld;
  co_return Status::Ok();
}

// Before the seals: a record that had yet to wait for the second one would keep what others wait
// for. Of several that hold the first one alone nobody would get on, so in a full pool one at a
// time asks.
Task<Status> KvImpl::ReserveToEnd(SlotWord word, const IndexKey& key, const CachedRegister& entry,
                                  const ReadResult& current, bool own, Draft* thawed,
                                  Draft* restated) {
  const SizeClass thawed_class = ThawedClass(key, entry, &current);
  const uint64_t value_bytes = current.found()
                                   ? current.record().value_bytes
                                   : entry.handle.ref.shape.value_bytes_max() - kKeyValueHeadBytes;
  const SizeClass restated_class = SizeClass::For(RecordBytes(key.bytes.size(), value_bytes));
  Status status = co_await ReserveInPlaceOf(word, restated_class, own, restated);
  if (!status.ok() || !thawed->addr.is_null()) co_return status;
  thawed->size_class = thawed_class;
  thawed->addr = allocator_.TryAllocate(thawed_class);
  if (!thawed->addr.is_null()) co_return status;
  if (asking_for_second_ > 0 && allocator_.was_full()) co_return kPoolIsFull;
  ++asking_for_second_;
  status = co_await ReserveInPlaceOf(word, thawed_class, own, thawed);
  --asking_for_second_;
  co_return status;
}

// As whoever writes to a register that is to be a record; what is in it stays. The register's
// memory is given up, too, so that in the end less is used than before.
Task<Status> KvImpl::MakeRecord(ViewHold::Presence& presence, const ListedRegister& listed,
                                bool own, uint64_t wait_ms) {
  const IndexKey key = IndexKey::Make(listed.keyspace, listed.key);
  RegisterOperation operation;
  const LentPresence lent(presence, operation);
  operation.pin = reclaimer_.Pin();
  const Allocator::Holder holder(allocator_);
  Draft thawed;
  Draft restated;
  const auto give_back = [&] {
    for (Draft* draft : {&thawed, &restated}) {
      if (draft->addr.is_null()) continue;
      allocator_.FreeUnpublished(draft->addr, draft->size_class);
      draft->addr = GlobalAddr();
    }
  };
  const absl::Cleanup at_the_end = give_back;
  Backoff backoff(context_, operation);
  const uint64_t deadline_ns = context_.executor.NowNs() + wait_ms * 1'000'000;
  while (true) {
    SearchResult search;
    const uint64_t forgotten = Forgotten();
    Status status = co_await index_.Find(operation, key, ReadExtent::kWhole,
                                         context_.fabric.NewRoundTrip(), &search);
    if (!status.ok() || !search.found) co_return status;
    bool is_short = false;
    if (!search.busy && !search.entry.word.is_register()) {
      RecordOrigin origin;
      if (!RecordHasOrigin(search.record, RecordKeyEnd(0), &origin)) co_return status;
      const uint64_t bytes = RecordBytesOf(LoadRecordHeader(search.record)) - sizeof(RecordOrigin);
      status = co_await ReserveInPlaceOf(SlotWord(origin.register_word), SizeClass::For(bytes), own,
                                         &restated);
      is_short = status.code() == StatusCode::kOutOfMemory;
      bool done = false;
      if (status.ok()) {
        status = co_await RestateRecord(operation, key, search, &restated, &done);
      }
      if (done || (!status.ok() && !is_short)) co_return status;
    }
    CachedRegister* entry = nullptr;
    if (search.entry.word.is_register()) entry = Adopt(key, search, forgotten);
    if (entry != nullptr && !search.busy) {
      RegisterCache::Use use(registers_->cache, *entry);
      ReadResult current;
      const Result<RegisterResult> read = co_await ReadRegister(operation, *entry, &current);
      // Where a read fails seals may still succeed.
      const bool is_sealed = read.ok() && read.value() == RegisterResult::kAgain;
      if (!is_sealed) {
        status =
            co_await ReserveToEnd(search.entry.word, key, *entry, current, own, &thawed, &restated);
      }
      if (status.ok()) {
        status =
            co_await EndRegister(operation, key, search.entry, *entry, /*may_wait=*/false, &thawed);
      }
      is_short = status.code() == StatusCode::kOutOfMemory;
      if (!status.ok() && !is_short) co_return status;
    }
    if (is_short) {
      if (context_.executor.NowNs() >= deadline_ns) co_return status;
      give_back();
      status = co_await AwaitRetired(operation, deadline_ns);
      if (!status.ok()) co_return status;
      operation.deadline_ns = 0;  // what is posted has as long again
      continue;
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kContended;
  }
}

}  // namespace onetrip
