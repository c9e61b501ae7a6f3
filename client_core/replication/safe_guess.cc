#include "client_core/replication/safe_guess.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <utility>

#include "client_core/base/planted_bug.h"

namespace onetrip {
namespace {

constexpr Status kLeaseRanOut{StatusCode::kFenced, "the lease ran out during the operation"};

// After a read that met a guess so many reads of the register ask all replicas at once.
constexpr uint8_t kContendedReads = 64;

// A write some of whose operations were posted.
Status AfterPost(const Status& status) {
  const bool claims_nothing_happened =
      status.code() == StatusCode::kUnavailable || status.code() == StatusCode::kFenced;
  return claims_nothing_happened
             ? Status(StatusCode::kUnknownOutcome, "too few replicas confirmed a write")
             : status;
}

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
    outcome->spread = SpreadOf(first, *outcome);
  }
  if (step.done()) {
    Tuple m = MaxRegister::Largest(first);
    if (m.word.AsGuess() <= w) {
      m.value = value;
      max_register_.Verify(operation, handle, m);
      handle.lane_word = std::max(handle.lane_word, w.AsVerified());
    } else {
      step = co_await WriteOvertaken(operation, handle, buffers.rewrite, value, first, std::move(m),
                                     outcome);
    }
  }
  handle.writing = false;
  if (!step.status.ok()) co_return AfterPost(step.status);
  if (LeaseRanOut()) co_return AfterPost(kLeaseRanOut);
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
  // Or somebody may have read it without a lock, and this would be too late.
  CHECK(IsHindered(first));
  ++slow_writes_;
  clock_.Resynchronise(w.time(), m.word.time());
  handle.times.seen = std::max(handle.times.seen, m.word.time());
  // Announce what overtook the guess before locking, or a reader that fails to lock the guess finds
  // nothing newer, and starves.
  if (!Planted(Bug::kNoAnnounce)) {
    RegisterStep announced = co_await max_register_.Announce(operation, handle, first, &m);
    if (!announced.done()) co_return announced;
    // What overtook the guess is gone with its only replica: it was never read, and the guess,
    // which is at a majority, is above all that is.
    if (m.word.AsGuess() <= w) co_return announced;
  }
  if (Planted(Bug::kNeverRewrite)) co_return RegisterStep();
  if (!Planted(Bug::kNoWriteLock)) {
    const Result<bool> locked = co_await lock_.TryLock(operation, handle, w, LockMode::kWrite);
    if (!locked.ok()) co_return RegisterStep{locked.status(), 0};
    // Lost: a reader deemed the guess fresh.
    if (!locked.value()) co_return RegisterStep();
  }
  // Nobody has read the guess, and nobody will: it is safe to write again.
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

bool SafeGuess::IsHindered(const QuorumCall& first) {
  for (int replica = 0; replica < first.replicas(); ++replica) {
    const ReplicaReply& reply = first.reply(replica);
    const bool answered =
        reply.state == ReplicaReply::State::kCounted || reply.state == ReplicaReply::State::kSealed;
    if (answered && !reply.firsthand) return true;
  }
  return false;
}

// PROTOCOLS, "A guess that is everywhere".
GuessSpread SafeGuess::SpreadOf(const QuorumCall& first, const WriteOutcome& outcome) {
  int fresh = 0;
  // An earlier batch may have been answered by a node that has left since.
  bool hindered =
      IsHindered(first) || (first.replicas() < context_.view().replicas && !outcome.begun);
  for (int replica = 0; replica < first.replicas(); ++replica) {
    const ReplicaReply& reply = first.reply(replica);
    const bool answered =
        reply.state == ReplicaReply::State::kCounted || reply.state == ReplicaReply::State::kSealed;
    if (answered && reply.firsthand) ++fresh;
    const bool not_posted =
        reply.state == ReplicaReply::State::kFailed && reply.round_trips == 0 && !outcome.begun;
    hindered |= not_posted;
  }
  if (fresh >= max_register_.majority_of(first.replicas())) return GuessSpread::kFresh;
  return hindered ? GuessSpread::kHindered : GuessSpread::kUnknown;
}

// A READ, when the first tuple is verified or none is there.
Task<Result<ReadOutcome>> SafeGuess::Read(RegisterOperation& operation, RegisterHandle& handle) {
  ReadOutcome outcome;
  Tuple& m = outcome.tuple;
  const RegisterStep step = co_await max_register_.Read(operation, handle, &m);
  if (LeaseRanOut()) co_return kLeaseRanOut;
  if (!step.status.ok()) co_return step.status;
  if (step.seal != 0) {
    outcome.end = RegisterEnd::kInterrupted;
    outcome.seal = step.seal;
    co_return outcome;
  }
  if (m.word.is_empty()) {
    outcome.end = RegisterEnd::kEmpty;
    co_return outcome;
  }
  if (!m.word.verified()) {
    handle.contended = kContendedReads;
    if (!m.everywhere) co_return co_await ReadGuess(operation, handle, std::move(m));
  } else if (handle.contended > 0) {
    --handle.contended;
  }
  Repair(operation, handle, m);
  co_return outcome;
}

Task<Result<ReadOutcome>> SafeGuess::ReadGuess(RegisterOperation& operation, RegisterHandle& handle,
                                               Tuple first) {
  // By writer: a writer's second tuple ends the read.
  absl::InlinedVector<Tuple, 4> seen;
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
    if (m.word.verified() || m.everywhere) co_return outcome;
    if (Planted(Bug::kReadAwaitsVerified)) continue;
    const auto same_writer = [&](const Tuple& t) {
      return Planted(Bug::kSeenPerRegister) ? t.word.AsGuess() != m.word.AsGuess()
                                            : t.value.worker == m.value.worker;
    };
    const auto same_tuple = [&](const Tuple& t) { return t.word.AsGuess() == m.word.AsGuess(); };
    const auto before = std::find_if(seen.begin(), seen.end(), same_writer);
    if (std::any_of(seen.begin(), seen.end(), same_tuple) || Planted(Bug::kNoSecondRead)) {
      // Read twice: its timestamp was fresh.
      if (Planted(Bug::kNoReaderLock)) co_return outcome;
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
    } else if (before != seen.end()) {
      // The writer has moved on, so that write was complete; what is returned is that write.
      if (!Planted(Bug::kSameWriterNewest)) m = *before;
      co_return outcome;
    } else {
      seen.push_back(m);
    }
  }
  co_return Status(StatusCode::kUnavailable, "a read met more writers than there may be");
}

void SafeGuess::Repair(RegisterOperation& operation, RegisterHandle& handle, const Tuple& m) {
  if (m.in_place || !max_register_.options().in_place) return;
  const bool again = handle.not_in_place == m.word.AsGuess();
  handle.not_in_place = again ? MetaWord() : m.word.AsGuess();
  // Once is a copy that another is about to make.
  if (again) max_register_.CopyInPlace(operation, handle, m);
}

}  // namespace onetrip
