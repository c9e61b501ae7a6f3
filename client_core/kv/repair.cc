// What the master asks of a worker when a memory node is lost or comes back, and when regions move
// (repair_order.h).
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
#include "client_core/memory/copy_region.h"

namespace onetrip {
namespace {

constexpr uint32_t kDirectoryStretch = 1024;  // entries per READ
constexpr uint32_t kGroupsAtOnce = 16;
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
  }
  CHECK(false);
}

}  // namespace

void KvImpl::LeaveNode(NodeId node) { context_.fabric.LeaveAside(node, /*aside=*/true); }

void KvImpl::UseView(const View& view) {
  for (uint16_t i = 0; i < view.node_count; ++i) {
    context_.fabric.LeaveAside(NodeId{i}, view.IsOut(NodeId{i}));
  }
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

KvImpl::Walk KvImpl::WalkOf(const RepairOrder& order) const {
  const bool is_same = left_walk_.kind == order.kind && left_walk_.number == order.walk;
  if (is_same || (Planted(Bug::kWalkResumedAnyway) && left_walk_.kind == order.kind)) {
    return left_walk_;
  }
  return Walk{.kind = order.kind, .number = order.walk};
}

Task<Status> KvImpl::VisitRegisters(RepairOrder order, RegisterVisitor visit) {
  Walk walk = WalkOf(order);
  const Status status = co_await ForEachGroup(
      [this, visit](Subtable table, uint32_t group, Status* failure) {
        return ScrubGroup(table, group, visit, failure);
      },
      &walk);
  left_walk_ = status.ok() ? Walk() : walk;
  co_return status;
}

Task<Status> KvImpl::ScrubRegisters(RepairOrder order) {
  if (!registers_ || Planted(Bug::kNoScrub)) co_return Status::Ok();
  co_return co_await VisitRegisters(std::move(order), &KvImpl::ScrubRegister);
}

// None is made meanwhile, so none is left afterwards.
Task<Status> KvImpl::EndRegisters(RepairOrder order) {
  if (!registers_) {
    co_return Status(StatusCode::kUnavailable, "this agent's engine knows no registers");
  }
  if (Planted(Bug::kMovesRegisters)) co_return Status::Ok();
  co_return co_await VisitRegisters(std::move(order), &KvImpl::MakeRecord);
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
Task<Status> KvImpl::ForEachGroup(GroupVisitor visit, Walk* walk) {
  Walk from_the_beginning;
  if (walk == nullptr) walk = &from_the_beginning;
  // A hold does not wait for it, and is waited for by nobody here: somebody is asked again.
  for (; !stopping_ && !context_.hold.held(); ++walk->next) {
    Status status = co_await FindSubtable(&walk->next, walk->end);
    if (!status.ok() || walk->next >= walk->end) co_return status;
    const Subtable table = index_.SubtableAt(walk->next);
    // Every subtable tells how far the directory reaches by now.
    walk->end = std::max(walk->end, DirectoryEnd(table));
    for (uint32_t group = 0; group < kSubtableGroups; group += kGroupsAtOnce) {
      // A visit would wait for the hold's end, and the hold may be waiting for this to end.
      if (context_.hold.held()) co_return kHeld;
      std::vector<Task<void>> groups;
      for (uint32_t i = 0; i < kGroupsAtOnce; ++i) {
        groups.push_back(visit(table, group + i, &status));
      }
      co_await WhenAll(std::move(groups));
      if (!status.ok()) co_return status;
    }
    co_await context_.executor.Yield();
  }
  co_return kHeld;
}

Task<void> KvImpl::ScrubGroup(Subtable table, uint32_t group, RegisterVisitor visit,
                              Status* failure) {
  Operation operation;
  const bool begun = co_await WaitToBegin(&operation);
  if (!begun) {
    *failure = kHeld;
    co_return;
  }
  operation.pin = reclaimer_.Pin();
  GroupWords words;
  Status status = co_await index_.ReadGroup(operation, table, group, &words);
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
      status = Status(StatusCode::kCorrupt, "a slot names a register that is none");
      break;
    }
    status = co_await (this->*visit)(operation.presence, IndexKey::Make(key.keyspace, key.bytes));
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
        status = co_await EndRegister(operation, key, search.entry, *entry, /*may_wait=*/false);
        if (!status.ok()) co_return status;
      }
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kContended;
  }
}

// As whoever writes to a register that is to be a record; what is in it stays.
Task<Status> KvImpl::MakeRecord(ViewHold::Presence& presence, IndexKey key) {
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
    if (entry != nullptr && !search.busy) {
      operation.shared_pin = SharedPin(reclaimer_.Pin());
      status = co_await EndRegister(operation, key, search.entry, *entry, /*may_wait=*/false);
      if (!status.ok()) co_return status;
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kContended;
  }
}

}  // namespace onetrip
