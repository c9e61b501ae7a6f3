#include "client_core/kv/prepared_sets.h"

#include <span>
#include <utility>
#include <vector>

#include "client_core/kv/kv_impl.h"

namespace onetrip {

// A record for each key, whatever form the key will have: a SET that gets what it needs in the
// ordinary way leaves its record where it is.
struct PreparedSets::Memory {
  explicit Memory(KvImpl& store) : kv(store), holder(store.allocator_) {}
  ~Memory() {
    for (const KvImpl::Draft& draft : drafts) {
      if (!draft.addr.is_null()) kv.allocator_.FreeUnpublished(draft.addr, draft.size_class);
      if (draft.extents) kv.RetireAll(draft.extents->list);
    }
    GiveBackSpare();
  }
  // Whoever splits a subtable next finds it.
  void GiveBackSpare() {
    if (!spare.is_null()) kv.allocator_.FreeUnpublished(spare, kSpareClass);
    spare = GlobalAddr();
  }

  static constexpr SizeClass kSpareClass = SizeClass::For(kSubtableBytes);
  KvImpl& kv;
  const Allocator::Holder holder;
  std::vector<KvImpl::Draft> drafts;
  GlobalAddr spare;  // for a split
};

PreparedSets::PreparedSets() = default;
PreparedSets::~PreparedSets() = default;

// In a pool that was full a moment ago, and of so much that a shortage on the way is likely.
bool KvImpl::ShouldPrepare(uint64_t bytes) const {
  return bytes > kUnpreparedBytesMax || allocator_.is_scarce() || allocator_.was_full();
}

Task<Status> KvImpl::Prepare(std::span<const PendingSet> sets, bool may_use_reserve,
                             PreparedSets* prepared) {
  auto memory = std::make_unique<PreparedSets::Memory>(*this);
  memory->drafts.reserve(sets.size());
  Status status;
  for (size_t i = 0; i < sets.size() && status.ok(); ++i) {
    const auto& [key, record] = sets[i];
    Draft& draft = memory->drafts.emplace_back();
    status = CheckSizes(key, record);
    if (status.ok() && NeedsExtents(record)) status = co_await WriteExtents(record, &draft.extents);
    if (!status.ok()) break;
    Measure(key, record, &draft);
    // What it gathers and asks for a hold has to see.
    status = co_await AwaitRelease();
    if (!status.ok()) break;
    const ViewHold::Presence presence(context_.hold);
    status = co_await Reserve(&draft);
    if (status.code() != StatusCode::kOutOfMemory || !may_use_reserve) continue;
    draft.gives_up = draft.size_class;
    status = co_await TakeInPlace(&draft);
  }
  if (status.ok()) status = co_await AwaitRelease();
  if (status.ok()) {
    const ViewHold::Presence presence(context_.hold);
    constexpr SizeClass kSpare = PreparedSets::Memory::kSpareClass;
    Result<GlobalAddr> spare = co_await allocator_.Allocate(kSpare);
    // Hardly one of many inserts needs it; without it a lack of memory is met when it does.
    if (spare.ok()) memory->spare = spare.value();
    if (!spare.ok() && !may_use_reserve) status = spare.status();
  }
  if (status.ok()) prepared->memory_ = std::move(memory);
  co_return status;
}

Task<Status> KvImpl::AwaitRelease() {
  const uint64_t patience_ns = context_.options.op_timeout_ms * 1'000'000;
  const bool released = co_await context_.hold.Wait(context_.executor.NowNs() + patience_ns);
  co_return released ? Status::Ok() : kHeld;
}

Task<Status> KvImpl::SetPrepared(Key key, NewRecord record, PreparedSets& prepared, size_t index) {
  PreparedSets::Memory& memory = *prepared.memory_;
  Draft& reserved = memory.drafts[index];
  if (!reserved.extents) {
    const Status status = co_await Set(key, record);
    if (status.code() != StatusCode::kOutOfMemory) co_return status;
  }
  // A hold may have begun behind that.
  const Status released = co_await AwaitRelease();
  if (!released.ok()) co_return released;
  memory.GiveBackSpare();
  Draft draft = std::exchange(reserved, Draft());
  draft.in_place_until_ns = context_.executor.NowNs() + context_.options.memory_wait_ms * 1'000'000;
  RegisterOperation operation;
  operation.presence = ViewHold::Presence(context_.hold);
  const IndexKey index_key = MakeKey(key);
  const Status status = co_await SetRecord(operation, key, index_key, record, &draft);
  AfterWrite();
  co_return Finish(metrics_.set_round_trips, operation, status);
}

}  // namespace onetrip
