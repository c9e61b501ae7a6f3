// What names memory: the index, records, roots and registers (memory/orphan_blocks.h;
// PROTOCOLS.md).
#include "client_core/kv/chores/named_memory.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/chores/estate.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

constexpr Status kReplicasChanged(StatusCode::kUnavailable,
                                  "where replicas live has changed meanwhile");
constexpr Status kWorkerSilent(StatusCode::kUnavailable, "a worker keeps the epoch from going on");
constexpr Status kStopped(StatusCode::kUnavailable, "the worker is ending, or at it already");
constexpr uint64_t kPatienceNs = 5'000'000'000;
constexpr Status kGivesWay(StatusCode::kUnavailable, "blocks of the dead are to be taken over");

}  // namespace

Task<Status> NamedMemory::LookAtNames(Estate& estate, const View& view) {
  IndexWalk walk;
  co_return co_await walker_.ForEachGroup(
      [&](Subtable table, uint32_t group, Status* failure) {
        if (group == 0) estate.blocks.Name(table.start);
        walk.in_background = !estate.of_the_dead && !core_.allocator.is_scarce() &&
                             core_.allocator.leaving_blocks() == 0;
        return NameGroup(estate, view, table, group, failure);
      },
      &walk);
}

Task<void> NamedMemory::NameGroup(Estate& estate, const View& view, Subtable table, uint32_t group,
                                  Status* failure) {
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  if (!begun) {
    *failure = kHeld;
    co_return;
  }
  // Words are read at one replica and go on at others: all have to be those of the beginning. While
  // the operation is at slots, that does not change.
  Status status = core_.context.view().SamePlaces(view) ? Status::Ok() : kReplicasChanged;
  if (estate.gives_way != nullptr && *estate.gives_way) status = kGivesWay;
  operation.pin = core_.reclaimer.Pin();
  GroupWords words;
  if (status.ok()) status = co_await core_.index.ReadGroup(operation, &table, group, &words);
  for (uint32_t i = 0; i < kGroupWords && status.ok(); ++i) {
    const SlotWord word(words[i]);
    if (i == kGroupHeaderWord || (word.is_empty() && !word.is_dropped())) continue;
    if (word.kind() == SlotKind::kTentative && estate.of_the_dead &&
        estate.blocks.At(word.addr()) != nullptr) {
      // Whoever would commit it is gone. Whoever removes it instead of us has not unlinked it.
      const Result<SlotOutcome> killed = co_await core_.engine.Write(
          operation,
          {table.Word(group, i), word.bits(), core_.index.NewEmptyWord().bits(), GlobalAddr()});
      status = killed.status();
      continue;
    }
    estate.blocks.Name(word.addr());
    if (core_.registers && word.kind() != SlotKind::kObject)
      core_.registers->cache.SeeAny(word.addr());
    if (word.is_dropped()) continue;
    if (!word.size_class().is_valid() || !core_.context.view().Contains(word.addr())) {
      status = Status(StatusCode::kCorrupt, "a slot points outside the pool");
    } else if (word.is_register()) {
      status = co_await NameBuffers(estate, operation, word);
    } else if (word.size_class().is_root()) {
      status = co_await NameExtents(estate, operation, word);
    } else {
      status = co_await NameOrigin(estate, operation, word);
    }
  }
  if (!status.ok()) *failure = status;
}

// A record that took a register's place names it until it is replaced itself.
Task<Status> NamedMemory::NameOrigin(Estate& estate, Operation& operation, SlotWord word) {
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const auto bytes =
      static_cast<uint32_t>(std::min<uint64_t>(word.size_class().bytes(), RecordKeyEnd(0)));
  const std::byte* record = round_trip->Read(core_.context.view().Locate(word.addr(), 0), bytes);
  const Status status = co_await Post(core_.context, operation, round_trip);
  RecordOrigin origin;
  if (status.ok() && RecordHasOrigin(record, bytes, &origin)) {
    const GlobalAddr addr = SlotWord(origin.register_word).addr();
    estate.blocks.Name(addr);
    if (core_.registers) core_.registers->cache.SeeAny(addr);
  }
  co_return status;
}

// Wherever the root is: of blocks that were one worker's, some may have been taken over already.
Task<Status> NamedMemory::NameExtents(Estate& estate, Operation& operation, SlotWord root) {
  if (Planted(Bug::kExtentsNotNamed)) co_return Status::Ok();
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const auto bytes = static_cast<uint32_t>(root.size_class().bytes());
  const std::byte* record = round_trip->Read(core_.context.view().Locate(root.addr(), 0), bytes);
  const Status status = co_await Post(core_.context, operation, round_trip);
  if (!status.ok()) co_return status;
  ExtentList list;
  if (!RecordIsIntact(record, bytes) || !LoadExtentList(RecordValue(record), &list)) {
    co_return Status(StatusCode::kCorrupt, "a slot names a root that is none");
  }
  for (const ExtentRef& ref : list.extents) estate.blocks.Name(ref.addr);
  co_return status;
}

// A word may be on its way from one replica to another, carried by a read, and be overtaken behind
// it: then it is found on neither. It is overtaken on one replica more each time that all are read
// and it is not found. So once all have been read as often as there are replicas, no quorum has it
// for its largest any more, nor ever will.
Task<Status> NamedMemory::NameBuffers(Estate& estate, Operation& operation, SlotWord word) {
  if (!core_.registers) {
    co_return Status(StatusCode::kUnavailable, "this agent's engine knows no registers");
  }
  const auto head = static_cast<uint32_t>(std::min<uint64_t>(
      word.size_class().bytes(), kRegisterHeaderBytes + kRegisterKeyBytesMax + 8 * kLanesMax));
  std::vector<MetaWord> seen;
  std::vector<NamedBuffer> found;
  // A majority has it or a larger one: smaller words are never read again.
  MetaWord everywhere;
  RegisterRef ref;
  SizeClass buffer_class;
  const int times =
      Planted(Bug::kLanesNotNamed) ? 0 : core_.context.view().LiveReplicas(word.addr());
  for (int time = 0; time < times; ++time) {
    const View& view = core_.context.view();
    const int live = view.LiveReplicas(word.addr());
    const int majority = std::min(view.replicas / 2 + 1, live);
    RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
    std::array<const std::byte*, kMaxReplicas> images{};
    for (int replica = 0; replica < live; ++replica) {
      images[replica] = round_trip->Read(view.Locate(word.addr(), replica), head);
    }
    const Status status = co_await Post(core_.context, operation, round_trip);
    if (!status.ok()) co_return status;
    std::array<MetaWord, kMaxReplicas> largest{};
    for (int replica = 0; replica < live; ++replica) {
      RegisterHeader header;
      if (!LoadRegisterShape(word, images[replica], &header, &ref.shape) ||
          ref.shape.in_place_offset() > head) {
        co_return Status(StatusCode::kCorrupt, "a slot names a register that is none");
      }
      ref.addr = word.addr();
      ref.incarnation = header.incarnation;
      core_.registers->cache.See(ref.addr, ref.incarnation);
      ref.birth = Ticks{header.birth_ticks};
      buffer_class = SizeClass(header.buffer_class);
      uint8_t lane_of_largest = 0;
      largest[replica] = InNOut::LargestIn(ref, images[replica], &lane_of_largest).AsGuess();
      for (uint32_t lane = 0; lane < ref.shape.lanes; ++lane) {
        uint64_t bits;
        std::memcpy(&bits, images[replica] + ref.shape.lane_offset(lane), sizeof(bits));
        const MetaWord named = MetaWord(bits).AsGuess();
        if (named.is_empty() || std::find(seen.begin(), seen.end(), named) != seen.end()) continue;
        seen.push_back(named);
        const GlobalAddr buffer = named.buffer(word.addr());
        if (estate.blocks.At(buffer) == nullptr) continue;
        found.push_back({ref, buffer_class, {buffer, Ticks{ref.birth.value + named.time()}}});
      }
    }
    // At a majority; less would do while a node is out, until a region is copied from the others.
    std::sort(largest.begin(), largest.begin() + live, std::greater<>());
    if (live >= majority) everywhere = std::max(everywhere, largest[majority - 1]);
  }
  const Ticks overtaken{ref.birth.value + everywhere.time()};
  if (!everywhere.is_empty()) core_.registers->cache.RetireOvertaken(ref, overtaken);
  for (const NamedBuffer& named : found) {
    if (named.buffer.used < overtaken) continue;
    const Status status = co_await NameBuffer(estate, operation, named);
    if (!status.ok()) co_return status;
  }
  co_return Status::Ok();
}

// A word that others have overtaken stays in its lane when its buffer is used for something else.
Task<Status> NamedMemory::NameBuffer(Estate& estate, Operation& operation,
                                     const NamedBuffer& named) {
  const GlobalAddr at = named.buffer.addr;
  const View& view = core_.context.view();
  const int live = view.LiveReplicas(at);
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  std::array<const BufferHeader*, kMaxReplicas> headers{};
  for (int replica = 0; replica < live; ++replica) {
    headers[replica] = reinterpret_cast<const BufferHeader*>(
        round_trip->Read(view.Locate(at, replica), kBufferHeaderBytes));
  }
  const Status status = co_await Post(core_.context, operation, round_trip);
  if (!status.ok()) co_return status;
  const bool holds = std::any_of(headers.begin(), headers.begin() + live, [&](const auto* header) {
    return header->ticks == named.buffer.used.value;
  });
  if (!holds) co_return status;
  estate.blocks.Name(at);
  // A split shows a register in two subtables: in the parent, frozen, and in the child.
  std::vector<NamedBuffer>& found = estate.buffers[estate.blocks.At(at)->start.bits()];
  const bool is_known = std::any_of(found.begin(), found.end(), [&](const NamedBuffer& other) {
    return other.buffer.addr == at;
  });
  if (!is_known || Planted(Bug::kInheritedTwice)) found.push_back(named);
  co_return status;
}

// What was unlinked before everybody has let go of buffers in blocks of others was so by operations
// of the epoch then, the next, or earlier ones; they retire it in the epoch after their own at the
// latest.
Task<Status> NamedMemory::AwaitUnlinked() {
  uint64_t unlinked_until = ~uint64_t{0};
  const uint64_t deadline_ns = core_.context.executor.NowNs() + kPatienceNs;
  core_.allocator.DoubtRegisters();
  while (core_.reclaimer.retired_since() <= unlinked_until) {
    if (core_.stopping) co_return kStopped;
    if (core_.context.hold.held()) co_return kHeld;
    if (core_.context.executor.NowNs() >= deadline_ns) co_return kWorkerSilent;
    co_await core_.allocator.Maintain();
    if (core_.allocator.registers_doubted() && unlinked_until == ~uint64_t{0}) {
      unlinked_until = core_.reclaimer.current_epoch() + 2;
    }
    co_await core_.context.executor.SleepFor(core_.context.options.epoch_tick_us * 1000);
  }
  co_return Status::Ok();
}

}  // namespace onetrip
