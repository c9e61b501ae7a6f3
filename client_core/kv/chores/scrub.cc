// Brings every register to all of its replicas, before a region is copied.
#include "client_core/kv/chores/scrub.h"

#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"

namespace onetrip {

Task<Status> Scrubber::ScrubRegisters(RepairOrder order) {
  if (!core_.registers || Planted(Bug::kNoScrub)) co_return Status::Ok();
  IndexWalk walk = walker_.WalkOf(order);
  co_return co_await walker_.WalkRegisters(
      [this](Subtable table, uint32_t group, Status* failure) {
        return ScrubGroup(table, group, failure);
      },
      &walk);
}

Task<void> Scrubber::ScrubGroup(Subtable table, uint32_t group, Status* failure) {
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  if (!begun) {
    *failure = kHeld;
    co_return;
  }
  operation.pin = core_.reclaimer.Pin();
  std::vector<ListedRegister> registers;
  Status status = co_await walker_.ListRegisters(operation, table, group, &registers);
  // Copies wait for this: where round trips are slow, one behind the other would take minutes.
  std::vector<Task<void>> scrubs;
  for (const ListedRegister& listed : registers) {
    if (!status.ok()) break;
    scrubs.push_back(ScrubListed(operation.in_flight, listed, failure));
  }
  operation.in_flight.LeaveSlots();  // each is there by itself
  co_await WhenAll(std::move(scrubs));
  if (!status.ok()) *failure = status;
}

Task<void> Scrubber::ScrubListed(Quiesce::InFlightGuard in_flight, const ListedRegister& listed,
                                 Status* failure) {
  const Status status =
      co_await ScrubRegister(in_flight, IndexKey::Make(listed.keyspace, listed.key));
  if (!status.ok()) *failure = status;
}

// A read brings the largest word to a majority of the replicas, and its bytes are brought to all; a
// register that is sealed is helped to its end, so that no later copy can change what its end is.
Task<Status> Scrubber::ScrubRegister(Quiesce::InFlightGuard& in_flight, IndexKey key) {
  RegisterOperation operation;
  const LentInFlightGuard lent(in_flight, operation);
  operation.pin = core_.reclaimer.Pin();
  Backoff backoff(core_.context, operation);
  while (true) {
    SearchResult search;
    const uint64_t forgotten = core_.Forgotten();
    Status status = co_await core_.index.Find(operation, key, ReadExtent::kKey,
                                              core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok() || !search.found || !search.entry.word.is_register()) co_return status;
    CachedRegister* entry = registers_.Adopt(key, search, forgotten);
    if (entry != nullptr) {
      RegisterCache::Use use(core_.registers->cache, *entry);
      operation.shared_pin = SharedPin(core_.reclaimer.Pin());
      const Result<ReadOutcome> read = co_await core_.registers->Read(operation, entry->handle);
      if (!read.ok()) co_return read.status();
      if (read->end == RegisterEnd::kDone && !Planted(Bug::kScrubLeavesBytes)) {
        co_return co_await core_.registers->safe_guess.max_register().MakeWhole(
            operation, entry->handle.ref, read->tuple);
      }
      if (read->end != RegisterEnd::kInterrupted) co_return Status::Ok();
      entry->met_seal = SealWord(read->seal);
      if (!search.busy) {
        // Copies wait for this, however full the pool is.
        const Allocator::Holder holder(core_.allocator);
        status =
            co_await ends_.EndRegister(operation, key, search.entry, *entry, /*may_wait=*/false);
        if (!status.ok()) co_return status;
      }
    }
    const bool in_time = co_await backoff.Wait();
    if (!in_time) co_return kContended;
  }
}

}  // namespace onetrip
