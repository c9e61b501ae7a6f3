// SETs whose memory is set aside before the first of them is written (store/prepared_sets.h).
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "client_core/kv/slot_store.h"

namespace onetrip {
namespace {

// So much the reserve has for keys of one command that meets a full pool on its way.
constexpr uint64_t kUnpreparedBytesMax = uint64_t{256} * 1024;

}  // namespace

// A record for each key, whatever form the key will have: a SET that gets what it needs in the
// ordinary way leaves its record where it is.
struct SlotStore::PreparedMemory final : PreparedSets::Memory {
  explicit PreparedMemory(SlotStore& in)
      : store(in), allocator(in.core_.allocator), holder(allocator) {}
  ~PreparedMemory() override {
    for (const Draft& draft : drafts) {
      if (!draft.addr.is_null()) allocator.FreeUnpublished(draft.addr, draft.size_class);
      if (draft.extents) store.drafts_.RetireAll(draft.extents->list);
    }
    GiveBackSpare();
  }
  // The next split of a subtable finds it.
  void GiveBackSpare() {
    if (!spare.is_null()) allocator.FreeUnpublished(spare, kSpareClass);
    spare = GlobalAddr();
  }

  static constexpr SizeClass kSpareClass = SizeClass::For(kSubtableBytes);
  SlotStore& store;
  Allocator& allocator;
  const Allocator::Holder holder;
  std::vector<Draft> drafts;
  GlobalAddr spare;  // for a split
};

// In a pool that was full a moment ago, and of so much that a shortage on the way is likely.
bool SlotStore::ShouldPrepare(uint64_t bytes) const {
  return bytes > kUnpreparedBytesMax || core_.allocator.is_scarce() || core_.allocator.was_full();
}

Task<Status> SlotStore::Prepare(std::span<const PendingSet> sets, bool may_use_reserve,
                                PreparedSets* prepared) {
  if (core_.holds_registers()) [[unlikely]] {
    return core_.AfterHold([this, sets, may_use_reserve, prepared] {
      return PrepareNow(sets, may_use_reserve, prepared);
    });
  }
  return PrepareNow(sets, may_use_reserve, prepared);
}

Task<Status> SlotStore::PrepareNow(std::span<const PendingSet> sets, bool may_use_reserve,
                                   PreparedSets* prepared) {
  auto memory = std::make_unique<PreparedMemory>(*this);
  memory->drafts.reserve(sets.size());
  Status status;
  for (size_t i = 0; i < sets.size() && status.ok(); ++i) {
    const auto& [key, record] = sets[i];
    Draft& draft = memory->drafts.emplace_back();
    status = CheckSizes(key, record);
    if (status.ok() && core_.NeedsExtents(record))
      status = co_await extents_.WriteExtents(record, &draft.extents);
    if (!status.ok()) break;
    drafts_.Measure(key, record, &draft);
    // A quiesce has to see what it gathers and asks for.
    status = co_await core_.AwaitRelease();
    if (!status.ok()) break;
    const Quiesce::InFlightGuard in_flight(core_.context.quiesce);
    status = co_await drafts_.Reserve(&draft);
    if (status.code() != StatusCode::kOutOfMemory || !may_use_reserve) continue;
    draft.gives_up = draft.size_class;
    status = co_await drafts_.TakeInPlace(&draft);
  }
  if (status.ok()) status = co_await core_.AwaitRelease();
  if (status.ok()) {
    const Quiesce::InFlightGuard in_flight(core_.context.quiesce);
    constexpr SizeClass kSpare = PreparedMemory::kSpareClass;
    Result<GlobalAddr> spare = co_await core_.allocator.Allocate(kSpare);
    // Hardly one of many inserts needs it; without it a lack of memory is met when it does.
    if (spare.ok()) memory->spare = spare.value();
    if (!spare.ok() && !may_use_reserve) status = spare.status();
  }
  if (status.ok()) prepared->Fill(std::move(memory));
  co_return status;
}

Task<Status> SlotStore::SetPrepared(Key key, NewRecord record, PreparedSets& prepared,
                                    size_t index) {
  if (core_.holds_registers()) [[unlikely]] {
    return core_.AfterHold([this, key, record, &prepared, index] {
      return SetPreparedNow(key, record, prepared, index);
    });
  }
  return SetPreparedNow(key, record, prepared, index);
}

Task<Status> SlotStore::SetPreparedNow(Key key, NewRecord record, PreparedSets& prepared,
                                       size_t index) {
  auto& memory = static_cast<PreparedMemory&>(*prepared.memory());
  Draft& reserved = memory.drafts[index];
  if (!reserved.extents) {
    const Status status = co_await Set(key, record);
    if (status.code() != StatusCode::kOutOfMemory) co_return status;
  }
  // A quiesce may have begun behind that.
  const Status released = co_await core_.AwaitRelease();
  if (!released.ok()) co_return released;
  memory.GiveBackSpare();
  Draft draft = std::exchange(reserved, Draft());
  draft.in_place_until_ns =
      core_.context.executor.NowNs() + core_.context.options.memory_wait_ms * 1'000'000;
  RegisterOperation operation;
  operation.in_flight = Quiesce::InFlightGuard(core_.context.quiesce);
  const IndexKey index_key = core_.MakeKey(key);
  const Status status = co_await SetRecord(operation, key, index_key, record, &draft);
  core_.AfterWrite();
  co_return core_.Finish(core_.metrics.set_round_trips, operation, status);
}

}  // namespace onetrip
