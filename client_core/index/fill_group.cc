// A split moves the entries of a group whose keys belong to the child (PROTOCOLS.md, "Splits", 4).
// All of them are on their way at the same time, for none knows of another.
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/index/index.h"

namespace onetrip {
namespace {

// FROZEN in the parent, committed in the child, EMPTY in the parent. Returns false if the entry has
// to be looked at again.
Task<Result<bool>> TryMoveEntry(Engine& engine, Operation& operation, Entry from, GlobalAddr to,
                                SlotWord empty) {
  if (from.word.kind() == SlotKind::kTentative) {
    // A claim is its owner's alone. It is committed, and then moves, or withdrawn.
    co_return Planted(Bug::kSplitPassesClaims);
  }
  if (from.word.kind() != SlotKind::kObject && from.word.kind() != SlotKind::kFrozen) {
    co_return Status(StatusCode::kCorrupt, "a subtable that is being split holds a foreign word");
  }
  // Another worker that takes the same steps proposes the same words. The blind bit would tell them
  // apart: it is of one write only, and not of the move.
  const SlotWord object = from.word.WithKind(SlotKind::kObject);
  const SlotWord frozen = from.word.WithKind(SlotKind::kFrozen);
  if (from.word != frozen) {
    const Result<SlotOutcome> froze = co_await engine.Write(
        operation, SlotWrite::Shared(from.slot, from.word.bits(), frozen.bits()));
    if (!froze.ok()) co_return froze.status();
    if (!froze.value().won && froze.value().current != frozen.bits()) co_return false;
  }
  if (Planted(Bug::kSplitEmptiesFirst)) {
    (void)co_await engine.Write(operation, {from.slot, frozen.bits(), empty.bits(), GlobalAddr()});
  }
  const Result<SlotOutcome> copied =
      co_await engine.Write(operation, SlotWrite::Shared(to, 0, object.bits()));
  if (!copied.ok()) co_return copied.status();
  const bool is_there = copied.value().won || SlotWord(copied.value().current) == object;
  if (Planted(Bug::kSplitEmptiesFirst)) co_return true;
  // Another worker has moved it, and clients have gone on; then it has left the parent, too.
  if (!is_there) co_return false;
  // Only another worker that moves the entry can win this CAS: no other one touches a frozen entry.
  const Result<SlotOutcome> removed =
      co_await engine.Write(operation, {from.slot, frozen.bits(), empty.bits(), GlobalAddr()});
  if (!removed.ok()) co_return removed.status();
  co_return true;
}

}  // namespace

Task<void> Index::FillGroup(Quiesce::InFlightGuard in_flight, Subtable from, uint32_t child_entry,
                            GlobalAddr child, uint32_t group, Status* failure) {
  Operation operation;
  operation.in_flight = std::move(in_flight);
  const bool entered = co_await EnterSlots(operation);
  Status status = entered ? Status::Ok() : kMapChanges;
  if (status.ok() && !Planted(Bug::kSplitOpensEarly)) {
    status = co_await Persist(
        operation, [&] { return MoveGroup(operation.in_flight, from, child, group, from.depth); });
  }
  if (status.ok()) {
    status = co_await Persist(operation, [&] {
      return TurnGroupHeaders(operation, child, group, 1,
                              GroupHeader(from.depth + 1, child_entry, /*filling=*/true),
                              GroupHeader(from.depth + 1, child_entry, /*filling=*/false));
    });
  }
  if (status.ok() && Planted(Bug::kSplitOpensEarly)) {
    status = co_await MoveGroup(operation.in_flight, from, child, group, from.depth);
  }
  if (!status.ok()) *failure = status;
}

// Moves what bit `bit` of the hash sends to the child. A word that changed while we tried to freeze
// or kill it is looked at again.
Task<Status> Index::MoveGroup(Quiesce::InFlightGuard& in_flight, Subtable from, GlobalAddr to,
                              uint32_t group, uint32_t bit) {
  Operation operation;
  const LentInFlightGuard lent(in_flight, operation);
  operation.pin = reclaimer_.Pin();
  Backoff backoff(context_, operation);
  while (true) {
    bool again = false;
    GroupWords words;
    Status status = co_await ReadGroup(operation, &from, group, &words);
    if (!status.ok()) co_return status;
    GroupKeys keys;
    status = co_await ReadGroupKeys(operation, from, group, words, &keys);
    if (!status.ok()) co_return status;
    std::vector<Task<void>> entries;
    for (uint32_t i = 0; i < kGroupWords; ++i) {
      const SlotWord word(words[i]);
      if (i == kGroupHeaderWord || word.is_empty()) continue;
      if (((keys.hash[i].bits() >> bit) & 1) == 0) continue;
      entries.push_back(MoveEntry(operation.in_flight, operation.pin.Share(),
                                  {from.Word(group, i), word}, to + group * kGroupBytes + i * 8,
                                  &again, &status));
    }
    // Each is at the slots by itself, as groups are.
    operation.in_flight.LeaveSlots();
    co_await WhenAll(std::move(entries));
    const bool entered = co_await EnterSlots(operation);
    if (!status.ok()) co_return status;
    if (!entered) co_return kMapChanges;
    if (!again) co_return Status::Ok();
    if (!co_await backoff.Wait()) {
      co_return Status(StatusCode::kUnknownOutcome,
                       "a slot changes faster than a split can move it");
    }
  }
}

Task<void> Index::MoveEntry(Quiesce::InFlightGuard in_flight, EpochPin pin, Entry from,
                            GlobalAddr to, bool* again, Status* failure) {
  Operation operation;
  operation.in_flight = std::move(in_flight);
  operation.pin = std::move(pin);
  const Result<bool> moved = co_await TryMoveEntry(engine_, operation, from, to, NewEmptyWord());
  if (!moved.ok()) *failure = moved.status();
  if (moved.ok() && !*moved) *again = true;
}

}  // namespace onetrip
