// Makes records of all registers, before regions move.
#include "client_core/kv/chores/records_only.h"

#include <absl/cleanup/cleanup.h>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/core/paused.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

constexpr Status kPoolIsFull(StatusCode::kOutOfMemory,
                             "the pool is full; other workers have to give up memory first");

}  // namespace

// None is made meanwhile, so none is left afterwards. In a full pool every worker does what lies in
// its own blocks, and in open ones, one behind the other, for that memory comes back to it
// (PROTOCOLS, "The reserve").
Task<Status> RecordsOnly::EndRegisters(RepairOrder order) {
  if (Planted(Bug::kMovesRegisters)) co_return Status::Ok();
  IndexWalk walk = walker_.WalkOf(order);
  if (!core_.registers) {  // no other engine works beside it: there are none
    if (core_.context.view().leaving == 0) co_return Status::Ok();
    walk.leaves = true;
  }
  Status status = co_await FindOpenBlocks(&walk.left);
  if (!status.ok()) co_return status;
  if (!walk.leaves) {
    status = co_await walker_.WalkRegisters(
        [this, &walk](Subtable table, uint32_t group, Status* failure) {
          return EndGroup(table, group, &walk.left, failure);
        },
        &walk);
    core_.AfterWrite();
    if (!status.ok()) co_return status;
    if (walk.left.any) core_.allocator.opener().CloseSparse();
    if (core_.context.view().leaving == 0) co_return walk.left.any ? kPoolIsFull : status;
    walk.leaves = true;
    walk.next = 0;
  }
  const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kLeave);
  status = co_await walker_.WalkRegisters(
      [this, &walk](Subtable table, uint32_t group, Status* failure) {
        return leaver_.LeaveGroup(table, group, &walk.left, failure);
      },
      &walk);
  core_.AfterWrite();
  if (!status.ok() || !walk.left.any) co_return status;
  co_return walk.left.failure.ok() ? kPoolIsFull : walk.left.failure;
}

Task<Status> RecordsOnly::FindOpenBlocks(RegistersLeft* left) {
  if (core_.context.quiesce.held()) co_return kHeld;
  Operation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  OrphanBlocks open(core_.context);
  const Status status = co_await open.Find(operation, OrphanBlocks::Open);
  left->open.clear();
  for (const auto& [start, block] : open.blocks()) left->open.insert(start);
  co_return status;
}

Task<void> RecordsOnly::EndGroup(Subtable table, uint32_t group, RegistersLeft* left,
                                 Status* failure) {
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  if (!begun) {
    *failure = kHeld;
    co_return;
  }
  std::vector<ListedRegister> registers;
  operation.pin = core_.reclaimer.Pin();
  Status status = co_await walker_.ListRegisters(operation, table, group, &registers);
  // Memory may have to be waited for.
  operation.pin.Release();
  for (const ListedRegister& listed : registers) {
    if (!status.ok()) break;
    const bool own = core_.allocator.Owns(listed.word.addr()) ||
                     left->open.contains(listed.word.addr().block_start().bits());
    if (!own && left->full) {
      left->any = true;
      continue;
    }
    bool& starved = left->starved[listed.word.size_class().index()];
    const uint64_t wait_ms = own && !starved ? core_.context.options.memory_wait_ms : 0;
    status = co_await MakeRecord(operation.in_flight, listed,
                                 own ? RecordRoom::kReserve : RecordRoom::kOrdinary, wait_ms);
    if (status.code() != StatusCode::kOutOfMemory) continue;
    // The memory that other registers give up may suffice the next time.
    if (own) starved = true;
    left->full = true;
    left->any = true;
    status = Status::Ok();
  }
  if (!status.ok()) *failure = status;
}

Task<Status> RecordsOnly::AwaitRetired(RegisterOperation& operation, uint64_t deadline_ns) {
  if (core_.context.quiesce.held()) co_return kHeld;
  Paused paused(core_, operation);
  co_await core_.allocator.ReserveRetiredRing(/*may_use_reserve=*/true);
  co_await core_.allocator.AwaitRetired(deadline_ns);
  co_return co_await paused.Resume(Status::Ok());
}

// Before the seals: a record that had yet to wait for the second one would keep what others wait
// for. Several that hold only the first one each would stop one another, so in a full pool one at a
// time asks.
Task<Status> RecordsOnly::ReserveToEnd(SlotWord word, const IndexKey& key,
                                       const CachedRegister& entry, const ReadResult& current,
                                       RecordRoom room, Draft* thawed, Draft* restated) {
  const SizeClass thawed_class = ends_.ThawedClass(key, entry, &current);
  const uint64_t value_bytes = current.found()
                                   ? current.record().value_bytes
                                   : entry.handle.ref.shape.value_bytes_max() - kKeyValueHeadBytes;
  const SizeClass restated_class = SizeClass::For(RecordBytes(key.bytes.size(), value_bytes));
  Status status = co_await ends_.ReserveInPlaceOf(word, restated_class, room, restated);
  if (!status.ok() || !thawed->addr.is_null()) co_return status;
  thawed->size_class = thawed_class;
  thawed->addr = core_.allocator.TryAllocate(thawed_class);
  if (!thawed->addr.is_null()) co_return status;
  if (asking_for_second_ > 0 && core_.allocator.was_full()) co_return kPoolIsFull;
  ++asking_for_second_;
  status = co_await ends_.ReserveInPlaceOf(word, thawed_class, room, thawed);
  --asking_for_second_;
  co_return status;
}

// Does what a writer to a register that is to be a record does; the register's value stays. The
// register's memory is given up, too, so that in the end less is used than before.
Task<Status> RecordsOnly::MakeRecord(Quiesce::InFlightGuard& in_flight,
                                     const ListedRegister& listed, RecordRoom room,
                                     uint64_t wait_ms) {
  const IndexKey key = IndexKey::Make(listed.keyspace, listed.key);
  RegisterOperation operation;
  const LentInFlightGuard lent(in_flight, operation);
  operation.pin = core_.reclaimer.Pin();
  const Allocator::Holder holder(core_.allocator);
  Draft thawed;
  Draft restated;
  const auto give_back = [&] {
    for (Draft* draft : {&thawed, &restated}) {
      if (draft->addr.is_null()) continue;
      core_.allocator.FreeUnpublished(draft->addr, draft->size_class);
      draft->addr = GlobalAddr();
    }
  };
  const absl::Cleanup at_the_end = give_back;
  Backoff backoff(core_.context, operation);
  const uint64_t deadline_ns = core_.context.executor.NowNs() + wait_ms * 1'000'000;
  while (true) {
    SearchResult search;
    const uint64_t forgotten = core_.Forgotten();
    Status status = co_await core_.index.Find(operation, key, ReadExtent::kWhole,
                                              core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok() || !search.found) co_return status;
    bool is_short = false;
    if (!search.busy && !search.entry.word.is_register()) {
      RecordOrigin origin;
      if (!RecordHasOrigin(search.record, RecordKeyEnd(0), &origin)) co_return status;
      const uint64_t bytes = RecordBytesOf(LoadRecordHeader(search.record)) - sizeof(RecordOrigin);
      status = co_await ends_.ReserveInPlaceOf(SlotWord(origin.register_word),
                                               SizeClass::For(bytes), room, &restated);
      is_short = status.code() == StatusCode::kOutOfMemory;
      bool done = false;
      if (status.ok()) {
        status = co_await records_.RestateRecord(operation, key, search, &restated, &done);
      }
      if (done || (!status.ok() && !is_short)) co_return status;
    }
    CachedRegister* entry = nullptr;
    if (search.entry.word.is_register()) entry = registers_.Adopt(key, search, forgotten);
    if (entry != nullptr && !search.busy) {
      RegisterCache::Use use(core_.registers->cache, *entry);
      ReadResult current;
      const Result<RegisterResult> read =
          co_await registers_.ReadRegister(operation, *entry, &current);
      // Where a read fails seals may still succeed.
      const bool is_sealed = read.ok() && read.value() == RegisterResult::kAgain;
      if (!is_sealed) {
        status = co_await ReserveToEnd(search.entry.word, key, *entry, current, room, &thawed,
                                       &restated);
      }
      if (status.ok()) {
        status = co_await ends_.EndRegister(operation, key, search.entry, *entry,
                                            /*may_wait=*/false, &thawed);
      }
      is_short = status.code() == StatusCode::kOutOfMemory;
      if (!status.ok() && !is_short) co_return status;
    }
    if (is_short) {
      if (core_.context.executor.NowNs() >= deadline_ns) co_return status;
      give_back();
      status = co_await AwaitRetired(operation, deadline_ns);
      if (!status.ok()) co_return status;
      operation.deadline_ns = 0;  // posted work has as long again
      continue;
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kContended;
  }
}

}  // namespace onetrip
