// Values in extents (layout/extent.h): written before their root, read behind it, retired with it.
//
// Extents are written without a pin and with an in-flight guard each, for 512 MiB take a while: an
// epoch or a quiesce waits for one of them at most. No slot names an extent yet, so that whatever
// else happens it can be given back. All copying is done by the piece: others of this worker get a
// turn between any two.
#include "client_core/kv/forms/extents.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/coro/sync.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {
namespace {

// Extents that an operation has on the network at once: bounds its memory beside the value's.
constexpr size_t kExtentsAtOnce = 4;

size_t AtOnce(const Fabric& fabric) { return fabric.completes_inline() ? 1 : kExtentsAtOnce; }

// Bytes of one extent to copy in a turn: all that are worked on at once share it.
uint32_t PieceBytes(const WorkerContext& context) {
  const size_t shared = context.options.turn_bytes / AtOnce(context.fabric);
  return static_cast<uint32_t>(std::max<size_t>(shared, 1));
}

constexpr Status kDamaged(StatusCode::kCorrupt, "an extent fails its checksum");
constexpr Status kNotARoot(StatusCode::kCorrupt, "a root lists no extents");
constexpr Status kNeverFits(StatusCode::kOutOfMemory, "the pool is smaller than the value");
constexpr Status kNoRoom(StatusCode::kUnavailable, "large values take all memory that they may");
constexpr Status kNoHostMemory(StatusCode::kOutOfMemory, "the host has no memory for the value");
constexpr Status kHoldWaits(StatusCode::kUnavailable, "the cluster waits for a long read");

}  // namespace

Task<Status> Extents::WriteExtents(const NewRecord& record,
                                   std::optional<WrittenExtents>* written) {
  const MechanismScope scope(core_.context.mechanism_observer, Mechanism::kExtents);
  const uint32_t extent_bytes = core_.context.options.extent_bytes;
  const uint64_t count = (record.bytes() + extent_bytes - 1) / extent_bytes;
  if (count > kExtentsMax) co_return Status(StatusCode::kTooLarge, "value has too many extents");
  if (record.bytes() > core_.context.view().regions.size() * kRegionBytes) co_return kNeverFits;
  WrittenExtents& extents = written->emplace(
      WrittenExtents{PlanExtents(record.bytes(), extent_bytes), core_.NextVersion()});
  Status status;
  for (uint32_t first = 0; first < count && status.ok();) {
    std::vector<Task<void>> writes;
    for (size_t i = 0; i < AtOnce(core_.context.fabric) && first < count; ++i) {
      writes.push_back(WriteExtent(record, &extents, first++, &status));
    }
    co_await WhenAll(std::move(writes));
  }
  if (!status.ok()) {
    drafts_.RetireAll(extents.list);
    written->reset();
    core_.AfterWrite();
  }
  // No slot can name what was written: whatever became of it, nothing was applied.
  if (status.code() == StatusCode::kUnknownOutcome) {
    co_return Status(StatusCode::kUnavailable, "a memory node was lost");
  }
  co_return status;
}

Task<void> Extents::WriteExtent(const NewRecord& record, WrittenExtents* written, uint32_t number,
                                Status* failure) {
  const uint32_t bytes = written->list.BytesOf(number);
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  std::byte* image = round_trip->Reserve(kExtentHeaderBytes + bytes);
  std::byte* piece = image + kExtentHeaderBytes;
  const uint64_t begin = uint64_t{number} * written->list.extent_bytes;
  for (uint32_t from = 0; from < bytes; from += PieceBytes(core_.context)) {
    co_await core_.context.executor.Yield();
    record.CopyTo(begin + from, {reinterpret_cast<char*>(piece) + from,
                                 std::min(PieceBytes(core_.context), bytes - from)});
  }
  const ExtentHeader header = MakeExtentHeader(written->version, number, piece, bytes);
  std::memcpy(image, &header, sizeof(header));
  Operation waiting;
  waiting.deadline_ns =
      core_.context.executor.NowNs() + core_.context.options.op_timeout_ms * 1'000'000;
  RetryAcrossViews retry(core_.context, waiting);
  Status status;
  while (true) {
    const bool released = co_await core_.context.quiesce.Wait(waiting.deadline_ns);
    status = kHeld;
    if (!released) break;
    status = co_await PostExtent(round_trip, image, kExtentHeaderBytes + bytes,
                                 &written->list.extents[number]);
    if (!retry.IsWorth(status)) break;
    co_await retry.Wait();
    // A WRITE that has failed may still be on its way: it keeps its operations and its bytes.
    RoundTripPtr anew = core_.context.fabric.NewRoundTrip();
    std::byte* copy = anew->Reserve(kExtentHeaderBytes + bytes);
    std::memcpy(copy, image, kExtentHeaderBytes + bytes);
    round_trip = std::move(anew);
    image = copy;
  }
  if (!status.ok()) *failure = status;
}

// Written once more, the extent is the same bytes at the same place, which no other object has.
Task<Status> Extents::PostExtent(const RoundTripPtr& round_trip, const std::byte* image,
                                 uint32_t bytes, ExtentRef* ref) {
  Operation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  if (ref->addr.is_null()) ref->addr = core_.allocator.TryAllocate(ref->size_class);
  if (ref->addr.is_null()) {
    const Result<GlobalAddr> addr = co_await core_.allocator.Allocate(ref->size_class);
    if (!addr.ok()) co_return addr.status();
    ref->addr = addr.value();
  }
  // The replicas are of one view, whatever comes meanwhile: none is left out.
  std::array<RemoteAddr, kMaxReplicas> at;
  const View& view = core_.context.view();
  const int replicas = core_.engine.Replicas(view, ref->addr);
  for (int i = 0; i < replicas; ++i) at[i] = view.Locate(ref->addr, i);
  const int in_a_turn = core_.context.fabric.completes_inline() ? 1 : replicas;
  Status status;
  for (int first = 0; first < replicas; first += in_a_turn) {
    for (uint32_t from = 0; from < bytes && status.ok(); from += PieceBytes(core_.context)) {
      if (core_.context.fabric.completes_inline()) co_await core_.context.executor.Yield();
      round_trip->ClearOps();
      for (int i = first; i < first + in_a_turn; ++i) {
        round_trip->Write({at[i].node, at[i].offset + from}, image + from,
                          std::min(PieceBytes(core_.context), bytes - from));
      }
      status = co_await Post(core_.context, operation, round_trip);
    }
  }
  co_return status;
}

Task<Status> Extents::ReadFromExtents(Operation& operation, ValueRange range, Room* room,
                                      ReadResult* result) {
  if (IsTreeRoot(result->record_.value))
    co_return co_await ReadFromTree(operation, range, room, result);
  ExtentList list;
  const bool is_root = LoadExtentList(result->record_.value, &list);
  const ValuePart part = PartOf(list.value_bytes, range.unless_large ? kNoValue : range);
  result->found_ = false;
  result->record_.value = {};
  result->record_.value_bytes = list.value_bytes;
  if (!is_root) co_return kNotARoot;
  if (part.bytes > 0) {
    // Whole extents, for a checksum covers a whole one.
    const uint64_t first = part.offset / list.extent_bytes;
    const uint64_t last = (part.offset + part.bytes - 1) / list.extent_bytes;
    const uint64_t bytes = (last - first) * list.extent_bytes + list.BytesOf(last);
    Status status = TakeLarge(bytes, room, result);
    if (!status.ok()) co_return status;
    status = co_await ReadExtents(operation, list, result->record_.version, {first, last},
                                  result->large_->memory.start());
    if (!status.ok()) co_return status;
    const std::byte* value = result->large_->memory.start() + (part.offset % list.extent_bytes);
    result->record_.value = {reinterpret_cast<const char*>(value), part.bytes};
  }
  result->found_ = true;
  co_return Status::Ok();
}

Status Extents::TakeLarge(uint64_t bytes, Room* room, ReadResult* result) {
  // A mutation may keep what an attempt has shown it, and that one has lost: it must not wait for
  // the memory that it has itself.
  if (room->shown != nullptr) room->share = std::move(std::exchange(room->shown, nullptr)->share);
  if (core_.context.options.large_values != nullptr && room->share.bytes() < bytes) {
    room->share = {};
    room->turn.emplace(core_.context.options.large_values, bytes);
    if (!room->turn->Take(&room->share)) return kNoRoom;
    room->turn.reset();
  }
  LargeMemory memory = LargeMemory::TryMake(bytes);
  if (memory.start() == nullptr) return kNoHostMemory;
  result->large_ = std::make_shared<LargeValue>();
  result->large_->memory = std::move(memory);
  result->large_->share = std::move(room->share);
  room->shown = result->large_;
  return Status::Ok();
}

Task<Status> Extents::WaitForRoom(RegisterOperation& operation, Room* room) {
  constexpr uint64_t kLookAgainNs = 500'000;
  operation.shared_pin = SharedPin();
  operation.pin.Release();
  operation.in_flight = Quiesce::InFlightGuard();
  while (!room->turn->Take(&room->share)) co_await core_.context.executor.SleepFor(kLookAgainNs);
  room->turn.reset();
  co_return co_await BeginAnew(operation, nullptr);
}

Task<Status> Extents::BeginAnew(RegisterOperation& operation, Draft* draft) {
  // The operation did not spend the long time on waiting for others.
  operation.deadline_ns = 0;
  const uint64_t patience_ns = core_.context.options.op_timeout_ms * 1'000'000;
  const bool released =
      co_await core_.context.quiesce.Wait(core_.context.executor.NowNs() + patience_ns);
  if (!released) co_return kHeld;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  Status reserved;
  if (draft != nullptr) reserved = co_await drafts_.Reserve(draft);
  // Also where it failed: its caller may try something else.
  const bool entered = co_await core_.EnterSlots(operation);
  operation.pin = core_.reclaimer.Pin();
  co_return entered ? reserved : kHeld;
}

Task<Status> Extents::ReadExtents(Operation& operation, const ExtentList& list, uint64_t version,
                                  ExtentSpan span, std::byte* into) {
  Status status;
  for (uint64_t next = span.first; next <= span.last && status.ok();) {
    std::vector<Task<void>> reads;
    for (size_t i = 0; i < AtOnce(core_.context.fabric) && next <= span.last; ++i, ++next) {
      reads.push_back(ReadExtent(operation, list, version, static_cast<uint32_t>(next),
                                 into + (next - span.first) * list.extent_bytes, &status));
    }
    co_await WhenAll(std::move(reads));
    if (status.ok() && next <= span.last && core_.context.quiesce.is_impatient())
      co_return kHoldWaits;
  }
  co_return status;
}

Task<void> Extents::ReadExtent(Operation& operation, const ExtentList& list, uint64_t version,
                               uint32_t number, std::byte* into, Status* failure) {
  const GlobalAddr addr = list.extents[number].addr;
  const uint32_t bytes = list.BytesOf(number);
  if (!core_.context.view().Contains(addr)) {
    *failure = kNotARoot;
    co_return;
  }
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  const std::byte* read =
      round_trip->Read(core_.context.view().Locate(addr, 0), kExtentHeaderBytes);
  for (uint32_t from = 0; from < bytes; from += PieceBytes(core_.context)) {
    if (core_.context.fabric.completes_inline()) co_await core_.context.executor.Yield();
    round_trip->ReadTo(core_.context.view().Locate(addr + kExtentHeaderBytes + from, 0),
                       into + from, std::min(PieceBytes(core_.context), bytes - from));
    const Status status = co_await Post(core_.context, operation, round_trip);
    if (!status.ok()) {
      *failure = status;
      co_return;
    }
    round_trip->ClearOps();
  }
  ExtentHeader header;
  std::memcpy(&header, read, sizeof(header));
  if (!ExtentIsIntact(header, version, number, into, bytes)) *failure = kDamaged;
}

// One replica that answers will do: the root is whole on all of them, for a slot has named it.
Task<void> Extents::RetireExtents(Operation& operation, SlotWord root) {
  if (Planted(Bug::kExtentsKept)) co_return;
  const auto bytes = static_cast<uint32_t>(root.size_class().bytes());
  for (int replica = 0; replica < core_.engine.Replicas(core_.context.view(), root.addr());
       ++replica) {
    RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
    const std::byte* record =
        round_trip->Read(core_.context.view().Locate(root.addr(), replica), bytes);
    const Status status = co_await Post(core_.context, operation, round_trip);
    if (!status.ok() || !RecordIsIntact(record, bytes)) continue;
    TreeRoot tree;
    if (LoadTreeRoot(RecordValue(record), &tree)) {
      const Status retired = co_await pages_.Retire(operation, tree);
      if (!retired.ok()) break;
      co_return;
    }
    ExtentList list;
    if (!LoadExtentList(RecordValue(record), &list)) continue;
    drafts_.RetireAll(list);
    co_return;
  }
  core_.metrics.objects_left.Add();
}

}  // namespace onetrip
