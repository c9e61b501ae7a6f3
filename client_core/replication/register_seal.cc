#include "client_core/replication/register_seal.h"

#include <utility>

#include "client_core/base/planted_bug.h"

namespace onetrip {

Task<Result<SealOutcome>> RegisterSeal::Seal(RegisterOperation& operation,
                                             const RegisterHandle& handle, SealWord seal,
                                             bool with_value) {
  QuorumCall call = max_register_.NewCall(operation, handle.ref);
  InNOut& in_n_out = max_register_.in_n_out();
  for (int replica = 0; replica < call.replicas(); ++replica) {
    max_register_.Start(in_n_out.Seal(call.Ask(replica), handle.ref, seal));
  }
  const int needed = max_register_.majority(handle.ref);
  if (call.counted() < call.replicas()) {
    (void)OutOfTime(max_register_.context(), operation);
    co_await call.Wait(call.replicas(), max_register_.WidenDeadlineNs());
    co_await call.Wait(needed, operation.deadline_ns);
  }
  const RegisterStep step = max_register_.End(operation, call, needed);
  if (!step.status.ok()) co_return step.status;

  SealOutcome outcome;
  int mine = 0;
  outcome.one_deleter = true;
  for (int replica = 0; replica < call.replicas(); ++replica) {
    if (!call.counts(replica)) continue;
    const SealWord found(call.seen(replica).seal);
    mine += found == seal ? 1 : 0;
    if (!found.is_deleted() ||
        (outcome.deleter.has_value() && *outcome.deleter != found.deleter())) {
      outcome.one_deleter = false;
    }
    if (found.is_deleted()) outcome.deleter = found.deleter();
  }
  outcome.all_mine = mine == (Planted(Bug::kDeleteOfMajority) ? needed : call.replicas());
  outcome.f = MaxRegister::Largest(call);
  if (outcome.f.word.is_empty()) {
    co_return Status(StatusCode::kCorrupt, "a register that a slot names was never written");
  }
  if (!with_value) co_return std::move(outcome);
  const bool valued = co_await max_register_.Value(operation, handle, call, &outcome.f);
  if (!valued) {
    co_return Status(StatusCode::kNotFound, "the last value of a register is on no replica");
  }
  co_return std::move(outcome);
}

Task<Result<FinalWord>> RegisterSeal::ReadFinal(RegisterOperation& operation,
                                                const RegisterHandle& handle) {
  QuorumCall call = max_register_.NewCall(operation, handle.ref);
  InNOut& in_n_out = max_register_.in_n_out();
  for (int replica = 0; replica < call.replicas(); ++replica) {
    max_register_.Start(in_n_out.ReadFinal(call.Ask(replica), handle.ref));
  }
  const int needed = max_register_.majority(handle.ref);
  if (call.counted() < needed) {
    (void)OutOfTime(max_register_.context(), operation);
    co_await call.Wait(needed, operation.deadline_ns);
  }
  const RegisterStep step = max_register_.End(operation, call, needed);
  if (!step.status.ok()) co_return step.status;
  // All that ever is written there is one word.
  FinalWord final_word;
  for (int replica = 0; replica < call.replicas(); ++replica) {
    if (!call.counts(replica) || call.reply(replica).final_word == 0) continue;
    final_word = FinalWord(call.reply(replica).final_word);
  }
  co_return final_word;
}

void RegisterSeal::AddFinal(WorkerContext& context, RoundTrip& round_trip, GlobalAddr addr,
                            uint64_t final_bits) {
  if (Planted(Bug::kFinalNotWritten)) return;
  const View& view = context.view();
  for (int replica = 0; replica < view.LiveReplicas(addr); ++replica) {
    round_trip.WriteWord(view.Locate(addr + kFinalOffset, replica), final_bits);
  }
}

}  // namespace onetrip
