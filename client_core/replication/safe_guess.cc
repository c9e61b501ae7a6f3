#include "client_core/replication/safe_guess.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"

namespace onetrip {
namespace {

// After a read that met a guess, this number of reads of the register ask all replicas at once.
constexpr uint8_t kContendedReads = 64;

}  // namespace

// SWARM, Algorithm "write".
Task<Status> SafeGuess::Write(RegisterOperation& operation, RegisterHandle& handle,
                              WriteBuffers buffers, std::span<const std::byte> bytes,
                              WriteOutcome* outcome) {
  CHECK(bytes.size() <= handle.ref.shape.value_bytes_max());
  CHECK(MetaWord::CanName(handle.ref.addr, buffers.guess.addr) &&
        MetaWord::CanName(handle.ref.addr, buffers.rewrite.addr));
  if (outcome->guess.is_empty()) {
    const std::optional<RegisterTime> time = clock_.Guess(handle.times, buffers.guess.used);
    if (!time.has_value()) {
      outcome->end = RegisterEnd::kExhausted;
      co_return Status::Ok();
    }
    outcome->guess = MetaWord(*time, buffers.guess.addr);
  }
  CHECK(!std::exchange(handle.writing, true));
  const WrittenValue value{context_.membership.id, bytes};
  const MetaWord w = outcome->guess;

  // In parallel: M.write(w); m = M.read() without its write-back.
  QuorumCall first = max_register_.NewCall(operation, handle.ref);
  RegisterStep step = co_await max_register_.Write(operation, handle, w.AsFirsthand(), value, true,
                                                   nullptr, &first, outcome->begun);
  if (step.seal != 0) {
    co_await first.Wait(QuorumCall::Answers(max_register_.majority(handle.ref)),
                        operation.deadline_ns);
    outcome->spread = SpreadOfGuess(first, *outcome);
  }
  if (step.done()) {
    Tuple m = MaxRegister::Largest(first);
    if (GuessStands(m.word, w)) {
      m.value = value;
      max_register_.Verify(operation, handle, m);
      handle.lane_word = std::max(handle.lane_word, w.AsVerified());
    } else {
      step = co_await WriteOvertaken(operation, handle, buffers.rewrite, value, first, std::move(m),
                                     outcome);
    }
  }
  handle.writing = false;
  if (!step.status.ok()) co_return AfterSend(step.status);
  if (LeaseRanOut()) co_return AfterSend(kLeaseRanOut);
  if (step.seal != 0) {
    outcome->end = RegisterEnd::kInterrupted;
    outcome->seal = step.seal;
  }
  co_return Status::Ok();
}

Task<RegisterStep> SafeGuess::WriteOvertaken(RegisterOperation& operation, RegisterHandle& handle,
                                             OutBuffer buffer, const WrittenValue& value,
                                             QuorumCall& first, Tuple m, WriteOutcome* outcome) {
  const MetaWord w = outcome->guess;
  // Else a reader may have read it without a lock, and this would be too late.
  CHECK(IsHindered(first.seen()));
  ++slow_writes_;
  clock_.Resynchronise(w.time(), m.word.time());
  handle.times.seen = std::max(handle.times.seen, m.word.time());
  // Announce what overtook the guess before locking, or a reader that fails to lock the guess finds
  // nothing newer, and starves.
  if (!Planted(Bug::kNoAnnounce)) {
    RegisterStep announced = co_await max_register_.Announce(operation, handle, first, &m);
    if (!announced.done()) co_return announced;
    // The word that overtook the guess is gone with its only replica: it was never read, and the
    // guess, which is at a majority, is above all that is.
    if (GuessStands(m.word, w)) co_return announced;
  }
  if (Planted(Bug::kNeverRewrite)) co_return RegisterStep();
  if (!Planted(Bug::kNoWriteLock)) {
    const Result<bool> locked = co_await lock_.TryLock(operation, handle, w, LockMode::kWrite);
    if (!locked.ok()) co_return RegisterStep{locked.status(), 0};
    // Lost: a reader deemed the guess fresh.
    if (!locked.value()) co_return RegisterStep();
  }
  // No reader has read the guess, and none will: it is safe to write again.
  const std::optional<RegisterTime> above =
      GuessClock::Above(handle.times, m.word.time(), buffer.used);
  if (!above.has_value()) {
    co_return RegisterStep{
        Status(StatusCode::kUnknownOutcome, "a register's timestamps ended within a write"), 0};
  }
  ++rewrites_;
  const MetaWord w2 = MetaWord(*above, buffer.addr).AsVerified();
  outcome->rewrite = w2;
  QuorumCall second = max_register_.NewCall(operation, first);
  co_return co_await max_register_.Write(operation, handle, w2, value, false, &first, &second);
}

GuessSpread SafeGuess::SpreadOfGuess(const QuorumCall& first, const WriteOutcome& outcome) {
  // An earlier batch may have been answered by a node that has left since.
  const bool has_begun = outcome.begun.get() != nullptr;
  const bool is_whole = first.replicas() >= context_.view().replicas || has_begun;
  bool never_posted = false;
  for (int replica = 0; replica < first.replicas(); ++replica) {
    never_posted |= first.seen(replica).state == ReplicaSeen::State::kFailed &&
                    first.reply(replica).round_trips == 0 && !has_begun;
  }
  return SpreadOf(first.seen(), max_register_.majority_of(first.replicas()), is_whole,
                  never_posted);
}

// A READ, when the first tuple is verified or none is there.
Task<Result<ReadOutcome>> SafeGuess::Read(RegisterOperation& operation, RegisterHandle& handle,
                                          QuorumCall* begun) {
  ReadOutcome outcome;
  Tuple& m = outcome.tuple;
  const RegisterStep step = co_await max_register_.Read(operation, handle, &m, begun);
  if (LeaseRanOut()) co_return kLeaseRanOut;
  if (!step.status.ok()) co_return step.status;
  if (step.seal != 0) {
    outcome.end = RegisterEnd::kInterrupted;
    outcome.seal = step.seal;
    co_return outcome;
  }
  const ReadNext next = NextOfRead(m.word, m.everywhere);
  if (next == ReadNext::kEmpty) {
    outcome.end = RegisterEnd::kEmpty;
    co_return outcome;
  }
  if (!m.word.verified()) {
    handle.contended = kContendedReads;
  } else if (handle.contended > 0) {
    --handle.contended;
  }
  if (next == ReadNext::kReadGuess) co_return co_await ReadGuess(operation, handle, std::move(m));
  Repair(operation, handle, m);
  co_return outcome;
}

Task<Result<ReadOutcome>> SafeGuess::ReadGuess(RegisterOperation& operation, RegisterHandle& handle,
                                               Tuple first) {
  // By writer: a writer's second tuple ends the read.
  absl::InlinedVector<Tuple, 4> met;
  absl::InlinedVector<GuessSeen, 4> seen;
  MetaWord not_locked;
  ReadOutcome outcome;
  Tuple& m = outcome.tuple;
  m = std::move(first);
  // Two iterations a writer, and one more: SWARM C.2.
  for (uint32_t iteration = 0; iteration < 2 * kMaxWorkers + 2; ++iteration) {
    if (iteration > 0) {
      const RegisterStep step = co_await max_register_.Read(operation, handle, &m);
      if (LeaseRanOut()) co_return kLeaseRanOut;
      if (!step.status.ok()) co_return step.status;
      if (step.seal != 0) {
        outcome.end = RegisterEnd::kInterrupted;
        outcome.seal = step.seal;
        co_return outcome;
      }
    }
    outcome.iterations = iteration + 1;
    const GuessVerdict verdict = NextOfGuess(seen, {m.word, m.value.worker}, m.everywhere);
    switch (verdict.next) {
      case GuessNext::kReturn:
        co_return outcome;
      case GuessNext::kReturnEarlier:
        m = met[verdict.earlier];
        co_return outcome;
      case GuessNext::kReadAgain:
        met.push_back(m);
        seen.push_back({m.word, m.value.worker});
        break;
      case GuessNext::kLock: {
        const Result<bool> locked =
            co_await lock_.TryLock(operation, handle, m.word, LockMode::kRead);
        if (LeaseRanOut()) co_return kLeaseRanOut;
        if (!locked.ok()) co_return locked.status();
        if (locked.value()) {
          max_register_.Verify(operation, handle, m);
          if (!m.in_place) max_register_.CopyInPlace(operation, handle, m);
          co_return outcome;
        }
        outcome.stalls += not_locked == m.word.AsGuess() ? 1 : 0;
        not_locked = m.word.AsGuess();
        break;
      }
    }
  }
  co_return Status(StatusCode::kUnavailable, "a read met more writers than there may be");
}

void SafeGuess::Repair(RegisterOperation& operation, RegisterHandle& handle, const Tuple& m) {
  if (m.in_place || !max_register_.options().in_place) return;
  const bool again = handle.fetched == m.word.AsGuess();
  handle.fetched = m.word.AsGuess();
  if (handle.ref.shape.in_place_bytes == 0) return;
  if (again) handle.fetched = MetaWord();
  // Once is a copy that another is about to make.
  if (again) max_register_.CopyInPlace(operation, handle, m);
}

}  // namespace onetrip
