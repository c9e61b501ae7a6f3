#include "client_core/replication/abd.h"

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"

namespace onetrip {
Task<Result<ReadOutcome>> Abd::Read(RegisterOperation& operation, RegisterHandle& handle,
                                    QuorumCall* begun) {
  ReadOutcome outcome;
  const RegisterStep step = co_await max_register_.Read(operation, handle, &outcome.tuple, begun);
  if (safe_guess_.LeaseRanOut()) co_return kLeaseRanOut;
  if (!step.status.ok()) co_return step.status;
  if (step.seal != 0) {
    outcome.end = RegisterEnd::kInterrupted;
    outcome.seal = step.seal;
  } else if (outcome.tuple.word.is_empty()) {
    outcome.end = RegisterEnd::kEmpty;
  } else if (!outcome.tuple.word.verified()) {
    co_return co_await safe_guess_.ReadGuess(operation, handle, std::move(outcome.tuple));
  }
  co_return outcome;
}

Task<Status> Abd::Write(RegisterOperation& operation, RegisterHandle& handle, WriteBuffers buffers,
                        std::span<const std::byte> bytes, WriteOutcome* outcome) {
  const OutBuffer buffer = buffers.rewrite;
  CHECK(bytes.size() <= handle.ref.shape.value_bytes_max());
  CHECK(MetaWord::CanName(handle.ref.addr, buffer.addr));
  CHECK(!std::exchange(handle.writing, true));
  const WrittenValue value{max_register_.context().membership.id, bytes};
  outcome->wordless = true;
  QuorumCall first = max_register_.NewCall(operation, handle.ref);
  RegisterStep step = co_await ReadTimestamp(operation, handle.ref, buffer.addr, value, &first);
  if (step.done()) {
    const MetaWord m = Planted(Bug::kAbdStaleTimestamp) ? MetaWord(handle.times.last, buffer.addr)
                                                        : MaxRegister::Largest(first).word;
    const std::optional<RegisterTime> above =
        GuessClock::Above(handle.times, m.time(), buffer.used);
    if (!above.has_value() || *above >= max_register_.context().options.register_time_end) {
      outcome->end = RegisterEnd::kExhausted;
    } else {
      outcome->rewrite = MetaWord(*above, buffer.addr).AsVerified();
      outcome->wordless = false;
      step = co_await WriteWord(operation, handle, outcome->rewrite, value, first);
    }
  }
  handle.writing = false;
  const bool posted = !outcome->rewrite.is_empty();
  if (step.status.ok() && safe_guess_.LeaseRanOut()) step.status = kLeaseRanOut;
  if (!step.status.ok()) co_return posted ? AfterSend(step.status) : step.status;
  if (step.seal != 0) {
    outcome->end = RegisterEnd::kInterrupted;
    outcome->seal = step.seal;
  }
  co_return Status::Ok();
}

Task<RegisterStep> Abd::ReadTimestamp(RegisterOperation& operation, const RegisterRef& ref,
                                      GlobalAddr buffer, WrittenValue value, QuorumCall* call) {
  const int needed = max_register_.majority(ref);
  InNOut& in_n_out = max_register_.in_n_out();
  for (int replica = 0; replica < call->replicas(); ++replica) {
    RoundTripPtr batch = in_n_out.WriteBufferValue(call->node(replica), buffer, value.bytes);
    if (!batch) {
      call->Exclude(replica);
      continue;
    }
    max_register_.Start(
        in_n_out.Read(call->Ask(replica), ref, /*looks_twice=*/false, std::move(batch)));
  }
  if (call->counted() < needed) {
    co_await max_register_.WaitAndWiden(operation, *call, needed, [](int /*replica*/) {});
  }
  co_return max_register_.End(operation, *call, needed);
}

// Where the first step is not known to have been taken, the buffer is written whole: a replica
// counts only if it has word and bytes.
Task<RegisterStep> Abd::WriteWord(RegisterOperation& operation, RegisterHandle& handle, MetaWord w,
                                  WrittenValue value, const QuorumCall& first) {
  const int needed = max_register_.majority(handle.ref);
  InNOut& in_n_out = max_register_.in_n_out();
  const RegisterRef& ref = handle.ref;
  const uint8_t lane = InNOut::LaneOf(value.worker, ref.shape);
  QuorumCall call = max_register_.NewCall(operation, first);
  for (int replica = 0; replica < call.replicas(); ++replica) {
    const bool there = first.counts(replica);
    const MetaWord expected =
        there ? InNOut::LaneIn(ref, first.reply(replica), lane) : handle.lane_word;
    RoundTripPtr batch = there ? in_n_out.WriteBufferHeader(ref, call.node(replica), w, value)
                               : in_n_out.WriteBuffer(ref, call.node(replica), w, value);
    if (!batch) {
      call.Exclude(replica);
      continue;
    }
    max_register_.Start(in_n_out.Write(
        call.Ask(replica), ref, {.word = w, .expected = expected, .lane = lane}, std::move(batch)));
  }
  max_register_.WriteBeside(operation, ref, call.nodes(), w, value);
  handle.lane_word = std::max(handle.lane_word, w);
  if (call.counted() < needed) {
    co_await max_register_.WaitAndWiden(operation, call, needed, [](int /*replica*/) {});
  }
  co_return max_register_.End(operation, call, needed);
}

}  // namespace onetrip
