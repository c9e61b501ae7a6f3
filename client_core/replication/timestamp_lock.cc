#include "client_core/replication/timestamp_lock.h"

#include "client_core/base/planted_bug.h"

namespace onetrip {

// Lines 5 to 8 of TRYLOCK on one replica: a lock word never goes back to an earlier time, and never
// changes its mode for one time.
Task<void> TimestampLock::LockReplica(QuorumCall::Share share, RegisterRef ref, GlobalAddr buffer,
                                      LockWord lock) {
  WorkerContext& context = max_register_.context();
  ReplicaReply& reply = share.reply();
  RemoteAddr at;
  if (!max_register_.in_n_out().Find(share.node(), buffer, &at)) co_return;
  LockWord expected;
  for (uint32_t attempt = 0; attempt <= options_.cas_retries_max; ++attempt) {
    RoundTripPtr batch = context.fabric.NewRoundTrip();
    batch->Cas(at, expected.bits(), lock.bits());
    const Status status = co_await context.fabric.Post(batch);
    ++reply.round_trips;
    RemoteAddr still_at;
    if (!status.ok() || !max_register_.in_n_out().Find(at.node, ref.addr, &still_at)) break;
    const LockWord found(batch->op(0).result);
    if (found == expected || found.ticks() >= lock.ticks()) {
      reply.lock = found == expected ? lock : found;
      co_return share.Report(ReplicaSeen::State::kCounted);
    }
    expected = found;
  }
  share.Report(ReplicaSeen::State::kFailed);
}

// Lines 9 to 12.
Task<Result<bool>> TimestampLock::TryLock(RegisterOperation& operation,
                                          const RegisterHandle& handle, MetaWord guess,
                                          LockMode mode) {
  CHECK(!guess.is_in_register());
  const int needed = Planted(Bug::kLockAtMinority) ? 1 : max_register_.majority(handle.ref);
  const LockWord lock({handle.ref.birth.value + guess.time()}, mode);
  QuorumCall call = max_register_.NewCall(operation, handle.ref);
  for (int replica = 0; replica < call.replicas(); ++replica) {
    max_register_.Start(
        LockReplica(call.Ask(replica), handle.ref, guess.buffer(handle.ref.addr), lock));
  }
  if (call.counted() < needed) {
    co_await max_register_.WaitAndWiden(operation, call, needed, [](int /*replica*/) {});
  }
  const RegisterStep step = max_register_.End(operation, call, needed);
  if (!step.status.ok()) co_return step.status;
  for (int replica = 0; replica < call.replicas(); ++replica) {
    if (call.counts(replica) && call.reply(replica).lock != lock) co_return false;
  }
  co_return true;
}

}  // namespace onetrip
