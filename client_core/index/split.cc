// Growing while serving: a full subtable gives half of its keys to a new one (RACE hashing).
//
// The directory entry of the subtable says that it is being split. The child is made with every
// group marked as filling; then each group's header in the parent turns to the new depth, and its
// entries move one by one: FROZEN in the parent (readable, not writable), committed in the child at
// the same place, EMPTY in the parent. When a group of the parent holds none of the child's keys
// any more, the child's group is open. A worker that inserts meanwhile learns from the headers,
// which it reads after its own entry is visible, that its key moves.
//
// Every step is a compare-and-swap from a word that never comes back to one that is the same for
// every proposer. So any number of workers may take the steps of one split at the same time, and a
// worker that meets a split that its splitter has left finishes it: see PROTOCOLS.md, "Splits".
#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/log.h"
#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/index/index.h"
#include "client_core/layout/region_layout.h"

namespace onetrip {
namespace {

// A split that a worker meets has this number of the longest waits to come to its end; then the
// worker finishes it.
constexpr uint64_t kPatienceTimers = 20;

// Returns true if a group's header is `wanted`, or what later splits have made of it.
bool HasReached(GroupHeader header, GroupHeader wanted) {
  if (!header.is_valid() || header.suffix() != wanted.suffix()) return false;
  if (header.depth() != wanted.depth()) return header.depth() > wanted.depth();
  return wanted.filling() || !header.filling();
}

Task<void> PostBeside(WorkerContext& context, Operation& operation, RoundTripPtr& round_trip,
                      Status* failure) {
  const Status status = co_await Post(context, operation, round_trip);
  if (!status.ok()) *failure = status;
}

}  // namespace

Task<Status> Index::FormatSubtable(Operation& operation, GlobalAddr start, GroupHeader header) {
  RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
  auto* words = reinterpret_cast<uint64_t*>(round_trip->Reserve(kSubtableBytes));
  for (uint32_t i = 0; i < kSubtableBytes / 8; ++i) {
    words[i] = i % kGroupWords == kGroupHeaderWord ? header.bits() : 0;
  }
  const View& view = context_.view();
  for (int replica = 0; replica < engine_.Replicas(view, start); ++replica) {
    round_trip->Write(view.Locate(start, replica), reinterpret_cast<std::byte*>(words),
                      kSubtableBytes);
  }
  co_return co_await Post(context_, operation, round_trip);
}

// By CAS, for a WRITE of a worker that is late would take a header back.
Task<Status> Index::TurnGroupHeaders(Operation& operation, GlobalAddr start, uint32_t first_group,
                                     uint32_t count, GroupHeader from, GroupHeader to) {
  std::vector<RoundTripPtr> round_trips;
  const View& view = context_.view();
  for (uint32_t group = first_group; group < first_group + count;) {
    RoundTripPtr& round_trip = round_trips.emplace_back(context_.fabric.NewRoundTrip());
    for (; group < first_group + count && round_trip->HasRoom(kMaxReplicas); ++group) {
      const GlobalAddr at = start + group * kGroupBytes + kGroupHeaderWord * 8;
      for (int replica = 0; replica < engine_.Replicas(view, at); ++replica) {
        if (Planted(Bug::kSplitHeaderWritten)) {
          round_trip->WriteWord(view.Locate(at, replica), to.bits());
        } else {
          round_trip->Cas(view.Locate(at, replica), from.bits(), to.bits());
        }
      }
    }
  }
  Status status;
  std::vector<Task<void>> posts;
  posts.reserve(round_trips.size());
  for (RoundTripPtr& round_trip : round_trips) {
    posts.push_back(PostBeside(context_, operation, round_trip, &status));
  }
  co_await WhenAll(std::move(posts));
  if (!status.ok() || Planted(Bug::kSplitHeaderWritten)) co_return status;
  for (const RoundTripPtr& round_trip : round_trips) {
    for (size_t i = 0; i < round_trip->size(); ++i) {
      const uint64_t found = round_trip->op(i).result;
      if (found != from.bits() && !HasReached(GroupHeader(found), to)) {
        co_return Status(StatusCode::kCorrupt, "a group of a subtable has another one's header");
      }
    }
  }
  co_return Status::Ok();
}

Task<Result<Index::Spare>> Index::TakeSpare() {
  if (!spares_.empty()) {
    const Spare spare = spares_.back();
    spares_.pop_back();
    // A worker's look for lost objects may be past the place where it gets its name.
    allocator_.accounting().KnowOf(spare.start);
    co_return spare;
  }
  constexpr SizeClass kClass = SizeClass::For(kSubtableBytes);
  Result<GlobalAddr> start = co_await allocator_.Allocate(kClass);
  // In a full pool, where a key's own memory was there since others have left, it still needs a
  // slot. But subtables do not come back, and the reserve is for what does.
  if (start.status().code() == StatusCode::kOutOfMemory && of_reserve_ < kOfReserveMax) {
    start = co_await allocator_.AllocatePinned(kClass, /*may_use_reserve=*/true);
    of_reserve_ += start.ok() ? 1 : 0;
  }
  if (!start.ok()) co_return start.status();
  // It may stay here for long without a name, as a spare or in doubt.
  allocator_.KeepBlockOf(start.value());
  co_return Spare{start.value()};
}

void Index::GiveBack(Spare spare) {
  if (spare.start.is_null()) return;
  if (spare.may_be_written) {
    spares_.push_back(spare);
  } else {
    allocator_.FreeUnpublished(spare.start, SizeClass::For(kSubtableBytes));
  }
}

// One coroutine of a worker at a time splits a subtable: two would write the same word, which
// SNAPSHOT takes for one writer.
Task<Status> Index::MakeRoom(Gate& gate, const Quiesce::InFlightGuard& in_flight, Subtable table,
                             KeyHash hash) {
  const auto [at, is_ours] = splitting_.try_emplace(table.entry);
  if (!is_ours) {
    const std::shared_ptr<SplitUnderWay> other = at->second;
    co_await other->has_asked.Wait();
    if (other->memory.code() == StatusCode::kOutOfMemory) co_return other->memory;
    co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_us} * 1000);
    co_return Status::Ok();
  }
  const auto own = at->second = std::make_shared<SplitUnderWay>(context_.executor);
  own->first = {hash.group(0), hash.group(1)};
  if (!context_.executor.Spawn(gate, Split(in_flight, table, own))) {
    splitting_.erase(table.entry);
    co_return Status(StatusCode::kUnavailable, "the worker is ending");
  }
  co_await own->has_room.Wait();
  co_return own->status;
}

Task<void> Index::Split(Quiesce::InFlightGuard in_flight, Subtable table,
                        std::shared_ptr<SplitUnderWay> own) {
  const absl::Cleanup ended = [&] {
    splitting_.erase(table.entry);
    own->has_asked.Set();
    own->has_room.Set();
  };
  const Allocator::Holder holder(allocator_);
  const Result<Spare> spare = co_await TakeSpare();
  own->status = own->memory = spare.status();
  own->has_asked.Set();
  if (!spare.ok()) co_return;
  own->status = co_await SplitFrom(in_flight, table.entry, table.depth, spare.value());
  // Whoever began it may have gone on.
  if (own->status.code() == StatusCode::kCorrupt) {
    LogError("a split of the index: " + std::string(own->status.message()));
  }
}

Task<Status> Index::FinishSplit(Quiesce::InFlightGuard& in_flight, uint32_t entry) {
  unfinished_.Done(entry);
  if (Planted(Bug::kSplitLeftUnfinished)) co_return Status::Ok();
  const auto [at, is_ours] = splitting_.try_emplace(entry);
  if (!is_ours) co_return Status::Ok();
  const auto own = at->second = std::make_shared<SplitUnderWay>(context_.executor);
  own->has_asked.Set();
  const absl::Cleanup ended = [&] { splitting_.erase(entry); };
  const Allocator::Holder holder(allocator_);
  Status status = co_await SplitFrom(in_flight, entry, std::nullopt, Spare());
  if (status.code() == StatusCode::kNotFound) {
    own->has_asked.Reset();
    const Result<Spare> spare = co_await TakeSpare();
    status = own->memory = spare.status();
    own->has_asked.Set();
    if (spare.ok()) status = co_await SplitFrom(in_flight, entry, std::nullopt, spare.value());
  }
  if (!status.ok()) NoteUnfinished(entry);
  co_return status;
}

// The caller has taken memory for the child if it may need it: no operation waits for memory at a
// slot.
Task<Status> Index::SplitFrom(Quiesce::InFlightGuard& in_flight, uint32_t entry,
                              std::optional<uint32_t> at_depth, Spare spare) {
  Status status;
  {
    Operation operation;
    const LentInFlightGuard lent(in_flight, operation);
    const bool entered = co_await EnterSlots(operation);
    status = kMapChanges;
    if (entered) status = co_await SplitExclusively(operation, entry, at_depth, &spare);
    // The caller may have to wait for memory next.
    operation.in_flight.LeaveSlots();
  }
  GiveBack(spare);
  co_return status;
}

Task<Status> Index::SplitExclusively(Operation& operation, uint32_t entry,
                                     std::optional<uint32_t> at_depth, Spare* spare) {
  const Result<DirectoryWord> seen = co_await directory_.Refresh(operation, entry);
  if (!seen.ok()) co_return seen.status();
  DirectoryWord word = seen.value();
  if (at_depth.has_value()) {
    // The worker that swings the directory entry splits; others wait, and then finish the split.
    bool mine = !word.locked() && word.depth() == *at_depth;
    if (mine && *at_depth == kMaxDepth) {
      co_return Status(StatusCode::kOutOfMemory, "the index cannot grow beyond its directory");
    }
    if (mine) {
      const DirectoryWord locked =
          DirectoryWord::Splitting(word.subtable(), word.depth(), context_.membership.index);
      // An earlier attempt of this worker may go on beside this one.
      const Result<SlotOutcome> outcome = co_await engine_.Write(
          operation, SlotWrite::Shared(directory_.AddrOf(entry), word.bits(), locked.bits()));
      if (!outcome.ok()) co_return outcome.status();
      mine = outcome.value().won || outcome.value().current == locked.bits();
      word = mine ? locked : DirectoryWord(outcome.value().current);
    }
    if (!mine) {
      operation.in_flight.LeaveSlots();
      if (word.locked()) NoteUnfinished(word.filling() ? Directory::ParentEntry(entry) : entry);
      co_await context_.executor.SleepFor(uint64_t{context_.options.wait_timer_us} * 1000);
      co_return Status::Ok();
    }
  } else if (!word.splitting()) {
    co_return Status::Ok();
  }
  const Status status = co_await TakeSteps(operation, entry, word, spare);
  if (status.ok()) unfinished_.Done(entry);
  if (!status.ok() && status.code() != StatusCode::kNotFound) NoteUnfinished(entry);
  co_return status;
}

void Index::NoteUnfinished(uint32_t entry) {
  const uint64_t patience_ns = kPatienceTimers * context_.options.wait_timer_max_us * 1000;
  unfinished_.Met(entry, context_.executor.NowNs() + patience_ns / 2 +
                             context_.executor.rng().Below(patience_ns / 2 + 1));
}

// PROTOCOLS "Splits", 2 to 5, from wherever others have come to.
Task<Status> Index::TakeSteps(Operation& operation, uint32_t entry, DirectoryWord locked,
                              Spare* spare) {
  const MechanismScope scope(context_.mechanism_observer, Mechanism::kSplit);
  const uint32_t depth = locked.depth();
  const Subtable table{locked.subtable(), entry, depth};
  const uint32_t child_entry = entry | (1U << depth);
  const Result<DirectoryWord> made =
      co_await PublishChild(operation, child_entry, depth + 1, spare);
  if (!made.ok()) co_return made.status();
  const DirectoryWord child = made.value();
  const GlobalAddr child_start = child.subtable();

  Status status = co_await Persist(operation, [&] {
    return TurnGroupHeaders(operation, table.start, 0, kSubtableGroups,
                            GroupHeader(depth, entry, /*filling=*/false),
                            GroupHeader(depth + 1, entry, /*filling=*/false));
  });
  if (!status.ok()) co_return status;
  directory_.Keep(child_entry, child);
  directory_.NoteDepth(entry, depth + 1);
  // The groups know nothing of each other. Each is at the slots by itself, and may leave them for a
  // quiesce, which would wait for us in vain.
  operation.in_flight.LeaveSlots();
  const std::shared_ptr<SplitUnderWay> own = splitting_.at(entry);
  std::array<uint32_t, kSubtableGroups> order;
  std::iota(order.begin(), order.end(), 0U);
  const auto is_first = [&](uint32_t group) {
    return group == own->first[0] || group == own->first[1];
  };
  std::stable_partition(order.begin(), order.end(), is_first);
  for (auto next = order.begin(); next != order.end();) {
    std::vector<Task<void>> groups;
    for (uint32_t i = 0; i < context_.options.split_groups_at_once; ++i) {
      groups.push_back(
          FillGroup(operation.in_flight, table, child_entry, child_start, *next++, &status));
    }
    co_await WhenAll(std::move(groups));
    if (!status.ok()) co_return status;
    own->has_room.Set();
  }
  const bool again = co_await EnterSlots(operation);
  if (!again) co_return kMapChanges;

  // The child first: the parent's next split may only begin when this one is over.
  if (child.filling() || (child.locked() && Planted(Bug::kSplitUnlocksLate))) {
    status = co_await OpenEntry(operation, child_entry, child,
                                DirectoryWord::Open(child_start, depth + 1));
    if (!status.ok()) co_return status;
  }
  status =
      co_await OpenEntry(operation, entry, locked, DirectoryWord::Open(table.start, depth + 1));
  co_return status;
}

// Takes the child that is in the directory already. Else `*spare` becomes the child, and null.
Task<Result<DirectoryWord>> Index::PublishChild(Operation& operation, uint32_t entry,
                                                uint32_t depth, Spare* spare) {
  const Result<DirectoryWord> seen = co_await directory_.Refresh(operation, entry);
  if (!seen.ok()) co_return seen.status();
  const auto doubtful = in_doubt_.find(entry);
  if (doubtful != in_doubt_.end()) {
    allocator_.accounting().KnowOf(doubtful->second);  // as in TakeSpare()
  }
  if (seen.value().is_used()) {
    if (doubtful != in_doubt_.end()) {
      if (doubtful->second != seen.value().subtable()) GiveBack({doubtful->second});
      in_doubt_.erase(doubtful);
    }
    co_return seen.value();
  }
  GlobalAddr start;
  if (doubtful != in_doubt_.end()) {
    // Its entry may appear yet, so it is not written again. Where a region leaves, it moves as
    // every subtable does.
    start = doubtful->second;
  }
  if (start.is_null()) {
    if (spare->start.is_null())
      co_return Status(StatusCode::kNotFound, "a split has no memory yet");
    start = std::exchange(*spare, Spare()).start;
    if (context_.view().IsLeaving(start)) {
      Retire(start);
      co_return Status(StatusCode::kNotFound, "a split has no memory yet");
    }
    const Status status = co_await Persist(operation, [&] {
      return FormatSubtable(operation, start, GroupHeader(depth, entry, /*filling=*/true));
    });
    if (!status.ok()) {
      // A WRITE may be on its way: only one of ours, which comes behind it, may follow.
      GiveBack({start, /*may_be_written=*/true});
      co_return status;
    }
    in_doubt_[entry] = start;
  }
  const DirectoryWord child = DirectoryWord::Filling(start, depth, context_.membership.index);
  const Result<SlotOutcome> outcome = co_await engine_.Write(
      operation, SlotWrite::Shared(directory_.AddrOf(entry), 0, child.bits()));
  if (!outcome.ok()) co_return outcome.status();
  in_doubt_.erase(entry);
  if (outcome.value().won) {
    metrics_.subtable_bytes.Add(kSubtableBytes);
    co_return child;
  }
  const DirectoryWord current(outcome.value().current);
  if (current == child) co_return child;
  GiveBack({start});
  if (!current.is_used()) {
    co_return Status(StatusCode::kCorrupt, "a directory entry was emptied");
  }
  co_return current;
}

// Others may have done so, and have begun to split it again.
Task<Status> Index::OpenEntry(Operation& operation, uint32_t entry, DirectoryWord from,
                              DirectoryWord to) {
  const Result<SlotOutcome> outcome = co_await engine_.Write(
      operation, SlotWrite::Shared(directory_.AddrOf(entry), from.bits(), to.bits()));
  if (!outcome.ok()) co_return outcome.status();
  if (outcome.value().won && from.splitting()) metrics_.splits.Add();
  if (!outcome.value().won) {
    const DirectoryWord current(outcome.value().current);
    const bool sound =
        current.subtable() == to.subtable() && current.depth() >= to.depth() && !current.filling();
    if (!sound) co_return Status(StatusCode::kCorrupt, "a directory entry went back");
  }
  co_return Status::Ok();
}

Task<Status> Index::ReadDirectoryStretch(Operation& operation, uint32_t first, uint32_t count,
                                         std::vector<uint32_t>* used) {
  std::vector<uint32_t> splitting;
  const Status status =
      co_await directory_.RefreshStretch(operation, first, count, used, &splitting);
  for (const uint32_t entry : splitting) NoteUnfinished(entry);
  co_return status;
}

Task<bool> Index::EnterSlots(Operation& operation) {
  CHECK(operation.in_flight.IsOf(context_.quiesce));
  const bool entered = co_await operation.in_flight.EnterSlots(
      context_.executor.NowNs() + context_.options.op_timeout_ms * 1'000'000);
  co_return entered;
}

}  // namespace onetrip
