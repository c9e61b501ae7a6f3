// Compaction: what lives in blocks of which little is used is moved by ordinary writes, so that
// whole blocks become free, for whatever size class is wanted (PROTOCOLS, "Compaction").
#include "client_core/kv/chores/compact.h"

#include <absl/cleanup/cleanup.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/layout/entry_codec.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

// WhenShort: while a worker waits for memory. Ahead: before that, when free blocks are few.
constexpr uint32_t kUsedPercentWhenShort = 75;
constexpr uint32_t kUsedPercentAhead = 50;
constexpr size_t kBlocksWhenShort = 32;
constexpr size_t kBlocksAhead = 4;

constexpr uint32_t kSparseAtOnce = 8;      // open blocks that a round begins with
constexpr size_t kObjectsAtOnce = 16;      // that are moved together
constexpr size_t kRegistersAtOnce = 4096;  // that are looked at in a turn
constexpr uint64_t kRestDivisorWhenShort = 10;
// Ahead of a shortage clients have this many times the time of a round.
constexpr uint64_t kRestFactor = 4;

}  // namespace

void Compactor::CompactIfScarce() {
  const bool is_short = core_.allocator.is_scarce();
  const bool is_due =
      is_short || core_.allocator.is_tight() || core_.context.options.compacts_always != 0;
  if (!is_due || compacting_ || core_.stopping || core_.held()) return;
  const uint64_t rest_ns = core_.context.options.compaction_rest_us * 1000;
  const uint64_t since_ns = core_.context.executor.NowNs() - compaction_ended_ns_;
  if (since_ns < (is_short ? rest_ns / kRestDivisorWhenShort : rest_ns)) return;
  core_.context.executor.Spawn(core_.gate, Compact());
}

Task<void> Compactor::Compact() {
  compacting_ = true;
  core_.allocator.compaction().Begin();
  const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kCompaction);
  const bool is_short = core_.allocator.is_scarce();
  co_await AcquireSparseBlocks();
  const std::vector<Compaction::Sparse> blocks = core_.allocator.compaction().BeginEmptying(
      is_short ? kUsedPercentWhenShort : kUsedPercentAhead,
      is_short ? kBlocksWhenShort : kBlocksAhead, is_short);
  // Blocks that were another worker's may hold buffers, whatever they serve here.
  bool any_buffers = is_short && !blocks.empty();
  for (const Compaction::Sparse& block : blocks) {
    if (core_.stopping || core_.held()) break;
    any_buffers = any_buffers || block.is_buffers;
    // Some objects live on in blocks that were made blocks of buffers in a full pool.
    const bool has_objects = !block.is_buffers || is_short;
    if (!has_objects || !core_.allocator.compaction().IsEmptying(block.start)) continue;
    co_await MoveObjects(core_.allocator.compaction().UsedIn(block.start), block.size_class);
  }
  if (any_buffers && core_.registers) co_await MoveRegistersOfBuffers();
  compaction_ended_ns_ = core_.context.executor.NowNs();
  core_.allocator.compaction().End(!blocks.empty());
  compacting_ = false;
}

// Only the worker that acquires a block moves what lies in it, and an open block has no worker.
Task<void> Compactor::AcquireSparseBlocks() {
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  if (!begun) co_return;
  for (uint32_t i = 0; i < kSparseAtOnce && !core_.stopping && !core_.held(); ++i) {
    const bool got_one = co_await core_.allocator.grants().AcquireSparse();
    if (!got_one) break;
  }
}

Task<void> Compactor::MoveObjects(std::vector<GlobalAddr> objects, SizeClass size_class) {
  for (size_t first = 0; first < objects.size() && !core_.stopping && !core_.held();
       first += kObjectsAtOnce) {
    const uint64_t began_ns = core_.context.executor.NowNs();
    std::vector<Task<void>> tasks;
    for (size_t i = first; i < std::min(objects.size(), first + kObjectsAtOnce); ++i) {
      tasks.push_back(MoveObject(objects[i], size_class));
    }
    co_await WhenAll(std::move(tasks));
    core_.AfterWrite();
    co_await LetOthersIn(began_ns);
  }
}

Task<void> Compactor::LetOthersIn(uint64_t worked_since_ns) {
  co_await core_.context.executor.Yield();
  if (core_.allocator.is_scarce() || core_.stopping) co_return;
  const uint64_t worked_ns = core_.context.executor.NowNs() - worked_since_ns;
  co_await core_.context.executor.SleepFor(kRestFactor * worked_ns);
}

// Objects carry their keys, but do not say what they are: what the key's slot names is true.
Task<void> Compactor::MoveObject(GlobalAddr addr, SizeClass size_class) {
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  if (!begun || !core_.allocator.compaction().IsEmptying(addr)) co_return;
  operation.pin = core_.reclaimer.Pin();
  const SlotWord as_record =
      SlotWord::Make(SlotKind::kObject, 0, size_class, addr, /*blind=*/false);
  const SlotWord as_register = SlotWord::Register(0, size_class, addr, /*blind=*/false);
  const auto bytes = static_cast<uint32_t>(
      std::min<uint64_t>(size_class.bytes(), EntryKeyEnd(as_record, kMaxKeyBytes)));
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const std::byte* image = round_trip->Read(core_.context.view().Locate(addr, 0), bytes);
  const Status status = co_await Post(core_.context, operation, round_trip);
  operation.pin.Release();
  if (!status.ok()) co_return;
  for (const SlotWord word : {as_record, as_register}) {
    EntryKey key;
    if (!LoadEntryKey(word, image, bytes, &key)) continue;
    std::string name(key.bytes);
    const Result<bool> moved =
        co_await MoveKey(operation.in_flight, key.keyspace, std::move(name), addr);
    // An object that could not be moved now stays where it is.
    if (!moved.ok() || moved.value()) co_return;
  }
}

Task<Result<bool>> Compactor::MoveKey(Quiesce::InFlightGuard& in_flight, KeyspaceId keyspace,
                                      std::string name, GlobalAddr addr) {
  SearchResult search;
  {
    RegisterOperation operation;
    const LentInFlightGuard lent(in_flight, operation);
    operation.pin = core_.reclaimer.Pin();
    const IndexKey key = IndexKey::Make(keyspace, name);
    const Status status = co_await core_.index.Find(operation, key, ReadExtent::kWhole,
                                                    core_.context.fabric.NewRoundTrip(), &search);
    if (!status.ok()) co_return status;
    if (!search.found || search.busy) co_return false;
    RecordOrigin origin;
    const bool took_its_place = !search.entry.word.is_register() &&
                                RecordHasOrigin(search.record, RecordKeyEnd(0), &origin) &&
                                SlotWord(origin.register_word).addr() == addr;
    const bool is_it = search.entry.word.addr() == addr;
    if (!is_it && !took_its_place) co_return false;
    if (!search.entry.word.is_register() && !took_its_place) {
      const Status moved = co_await MoveRecord(operation, key, search);
      if (!moved.ok()) co_return moved;
      co_return true;
    }
  }
  if (!core_.registers) co_return true;
  // Not of the reserve: a block that does not become free in time serves all allocations again.
  const ListedRegister listed{search.entry.word, keyspace, std::move(name)};
  const RecordRoom room =
      Planted(Bug::kCompactionTakesReserve) ? RecordRoom::kReserve : RecordRoom::kInPlace;
  const Status status = co_await records_only_.MakeRecord(in_flight, listed, room, /*wait_ms=*/0);
  if (!status.ok()) co_return status;
  co_return true;
}

// Where others are, of its size or, while memory is short, somewhat larger; or nowhere: a block
// more for it would bring nothing.
Task<Status> Compactor::MoveRecord(RegisterOperation& operation, const IndexKey& key,
                                   const SearchResult& search) {
  const SizeClass size_class = search.entry.word.size_class();
  if (size_class.is_root() || !RecordIsIntact(search.record, size_class.bytes())) {
    co_return Status::Ok();
  }
  const Allocator::Holder holder(core_.allocator);
  Draft draft;
  draft.size_class =
      SizeClass::For(RecordBytes(key.bytes.size(), RecordValue(search.record).size()));
  const Allocator::Object object =
      core_.allocator.compaction().TryAllocateToMove(draft.size_class, core_.allocator.is_scarce());
  draft.addr = object.addr;
  if (!object.addr.is_null()) draft.size_class = object.size_class;
  const absl::Cleanup unused = [&] {
    if (!draft.addr.is_null()) core_.allocator.FreeUnpublished(draft.addr, draft.size_class);
  };
  bool done = false;
  const Status status = co_await records_.RestateRecord(operation, key, search, &draft, &done);
  if (done) core_.metrics.objects_moved.Add();
  co_return status;
}

// The writer of the word that names a buffer gives it back, with its register.
Task<void> Compactor::MoveRegistersOfBuffers() {
  size_t next = 0;
  bool more = true;
  while (more && !core_.stopping && !core_.held()) {
    const uint64_t began_ns = core_.context.executor.NowNs();
    std::vector<RegisterRef> found;
    more = core_.registers->cache.FindByBuffers(
        kRegistersAtOnce, &next,
        [this](GlobalAddr addr) { return core_.allocator.compaction().IsEmptying(addr); }, &found);
    for (const RegisterRef& ref : found) {
      if (core_.stopping || core_.held()) co_return;
      co_await MoveRegister(ref);
    }
    core_.AfterWrite();
    co_await LetOthersIn(began_ns);
  }
}

Task<void> Compactor::MoveRegister(RegisterRef ref) {
  Operation operation;
  const bool begun = co_await core_.WaitToBegin(&operation);
  // The register may have ended since it was found, and its region been given up.
  if (!begun || !core_.context.view().Contains(ref.addr)) co_return;
  operation.pin = core_.reclaimer.Pin();
  const uint32_t bytes = kRegisterHeaderBytes + ref.shape.key_bytes;
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const std::byte* image = round_trip->Read(core_.context.view().Locate(ref.addr, 0), bytes);
  const Status status = co_await Post(core_.context, operation, round_trip);
  operation.pin.Release();
  if (!status.ok()) co_return;
  RegisterHeader header;
  std::memcpy(&header, image, sizeof(header));
  // The register may have ended, and another object may use its memory.
  if (header.incarnation != ref.incarnation) co_return;
  std::string name(reinterpret_cast<const char*>(image + kRegisterHeaderBytes),
                   ref.shape.key_bytes);
  (void)co_await MoveKey(operation.in_flight, KeyspaceId{header.keyspace}, std::move(name),
                         ref.addr);
}

}  // namespace onetrip
