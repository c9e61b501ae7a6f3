#include "client_core/kv/kv.h"

#include <algorithm>
#include <cstring>

#include "client_core/base/planted_bug.h"
#include "client_core/kv/kv_impl.h"

namespace onetrip {
namespace {

// What `range` says of a value that is there whole, or is that part already.
std::string_view PartIn(const RecordView& record, ValueRange range) {
  if (record.value.size() != record.value_bytes) return record.value;
  const ValuePart part = PartOf(record.value_bytes, range);
  return record.value.substr(part.offset, part.bytes);
}

}  // namespace

ValuePart PartOf(uint64_t value_bytes, ValueRange range) {
  const auto size = static_cast<int64_t>(value_bytes);
  if (range.first < 0 && range.last < 0 && range.first > range.last) return {};
  const auto from_front = [size](int64_t index) {
    return std::max<int64_t>(index < 0 ? size + index : index, 0);
  };
  const int64_t first = from_front(range.first);
  const int64_t last = std::min(from_front(range.last), size - 1);
  if (size == 0 || first > last) return {};
  return {static_cast<uint64_t>(first), static_cast<uint64_t>(last - first + 1)};
}

void NewRecord::CopyTo(uint64_t offset, std::span<char> to) const {
  // Takes what lies before the part that begins `length` bytes further on.
  const auto copy = [&](const char* from, uint64_t length) {
    if (offset >= length) {
      offset -= length;
      return;
    }
    const uint64_t bytes = std::min<uint64_t>(length - offset, to.size());
    if (bytes > 0 && from != nullptr) std::memcpy(to.data(), from + offset, bytes);
    if (bytes > 0 && from == nullptr) std::memset(to.data(), 0, bytes);
    to = to.subspan(bytes);
    offset = 0;
  };
  copy(head.data(), head.size());
  copy(nullptr, gap_bytes);
  copy(tail.data(), tail.size());
  copy(rest.data(), rest.size());
  CHECK(to.empty());
}

Kv::Kv(WorkerContext& context, Engine& engine) : impl_(std::make_shared<KvImpl>(context, engine)) {}
Kv::~Kv() = default;

Task<Status> Kv::Start() { return impl_->Start(); }
Task<Status> Kv::Stop() { return impl_->Stop(); }
Task<Status> Kv::Get(Key key, ReadResult* result) {
  if (impl_->holds_registers()) [[unlikely]] {
    return impl_->AfterHold([impl = impl_.get(), key, result] { return impl->Get(key, result); });
  }
  return impl_->Get(key, result);
}
Task<Status> Kv::GetPart(Key key, ValueRange range, ReadResult* result) {
  if (impl_->holds_registers()) [[unlikely]] {
    return impl_->AfterHold(
        [impl = impl_.get(), key, range, result] { return impl->GetPart(key, range, result); });
  }
  return impl_->GetPart(key, range, result);
}
bool Kv::GetAtOnce(Key key, ReadResult* result) { return impl_->TryGetAtOnce(key, result); }
Task<Status> Kv::Set(Key key, NewRecord record) {
  if (impl_->holds_registers()) [[unlikely]] {
    return impl_->AfterHold([impl = impl_.get(), key, record] { return impl->Set(key, record); });
  }
  return impl_->Set(key, record);
}
bool Kv::ShouldPrepare(uint64_t bytes) const { return impl_->ShouldPrepare(bytes); }
Task<Status> Kv::Prepare(std::span<const PendingSet> sets, bool may_use_reserve,
                         PreparedSets* prepared) {
  if (impl_->holds_registers()) [[unlikely]] {
    return impl_->AfterHold([impl = impl_.get(), sets, may_use_reserve, prepared] {
      return impl->Prepare(sets, may_use_reserve, prepared);
    });
  }
  return impl_->Prepare(sets, may_use_reserve, prepared);
}
Task<Status> Kv::SetPrepared(Key key, NewRecord record, PreparedSets& prepared, size_t index) {
  if (impl_->holds_registers()) [[unlikely]] {
    return impl_->AfterHold([impl = impl_.get(), key, record, &prepared, index] {
      return impl->SetPrepared(key, record, prepared, index);
    });
  }
  return impl_->SetPrepared(key, record, prepared, index);
}
Task<Status> Kv::Delete(Key key, bool* existed) {
  if (impl_->held()) [[unlikely]] {
    return impl_->AfterHold(
        [impl = impl_.get(), key, existed] { return impl->Delete(key, existed); });
  }
  return impl_->Delete(key, existed);
}
Task<Status> Kv::ReadModifyWrite(Key key, Mutation& mutation) {
  if (impl_->held()) [[unlikely]] {
    return impl_->AfterHold(
        [impl = impl_.get(), key, &mutation] { return impl->ReadModifyWrite(key, mutation); });
  }
  return impl_->ReadModifyWrite(key, mutation);
}
Task<Status> Kv::Flush(std::optional<uint32_t> database) { return impl_->Flush(database); }
Task<Status> Kv::Swap(uint32_t first, uint32_t second) { return impl_->Swap(first, second); }
Task<Status> Kv::CountKeys(uint32_t database, uint64_t* keys) {
  if (impl_->held()) [[unlikely]] {
    return impl_->AfterHold(
        [impl = impl_.get(), database, keys] { return impl->CountKeys(database, keys); });
  }
  return impl_->CountKeys(database, keys);
}
Task<Status> Kv::Scan(uint32_t database, uint32_t keys_wanted, KeyVisitor& visitor,
                      uint64_t* cursor) {
  return impl_->Scan(database, keys_wanted, visitor, cursor);
}
Task<Status> Kv::RandomKey(uint32_t database, std::string* key, bool* found) {
  return impl_->RandomKey(database, key, found);
}
Task<Status> Kv::SampleDeadlines(uint32_t database, DeadlineSample* sample) {
  return impl_->SampleDeadlines(database, sample);
}
Task<Status> Kv::CheckPool(PoolCounts* counts) { return impl_->CheckPool(counts); }
void Kv::SetActiveExpiry(bool active) { impl_->SetActiveExpiry(active); }
void Kv::PrefetchLocation(Key key) const { impl_->PrefetchLocation(key); }
void Kv::PrefetchRecord(Key key, KeyUse use) const { impl_->PrefetchRecord(key, use); }
size_t Kv::keys_at_once() const {
  constexpr size_t kOverANetwork = 16;
  return impl_->context().fabric.completes_inline() ? 1 : kOverANetwork;
}
Task<void> Kv::Yield() { co_await impl_->context().executor.Yield(); }
uint64_t Kv::NowMs() const { return impl_->context().clock.NowMs(); }
uint64_t Kv::NowUs() const { return impl_->context().clock.NowUs(); }
const KvMetrics& Kv::metrics() const { return impl_->metrics(); }
void Kv::ResetRoundTripMetrics() { impl_->ResetRoundTripMetrics(); }

KvImpl::KvImpl(WorkerContext& context, Engine& engine)
    : context_(context),
      engine_(engine),
      reclaimer_(context),
      allocator_(context, reclaimer_),
      index_(context, reclaimer_, allocator_, engine),
      gate_(context.executor) {
  metrics_.allocator = &allocator_.metrics();
  metrics_.index = &index_.metrics();
  metrics_.location_cache_bytes.Set(index_.cache().bytes());
  if (engine.registers() == RegisterKind::kNone) return;
  registers_ = std::make_unique<Registers>(context, allocator_, engine.registers());
  runs_inline_ = context.fabric.completes_inline() && !registers_->by_abd;
  allocator_.retired_registers().SetListener(&registers_->cache);
  reclaimer_.SetBeforeEpoch(&allocator_.retired_registers());
}

KvImpl::~KvImpl() {
  if (context_.hold.duties() == this) context_.hold.SetDuties(nullptr);
}

Task<Status> KvImpl::Start() {
  Operation operation;
  const bool begun = co_await WaitToBegin(&operation);
  if (!begun) co_return kHeld;
  Status status = co_await reclaimer_.Join();
  if (!status.ok()) co_return status;
  if (registers_) {
    status = co_await allocator_.retired_registers().Join();
    if (!status.ok()) co_return status;
  }
  status = co_await index_.Open();
  if (!status.ok()) co_return status;
  if (WritesRegisters(engine_.registers())) {
    co_await allocator_.ReserveRetiredRing();
    std::vector<RetiredRegisters::Retired> none;
    status = co_await allocator_.retired_registers().Publish(&none);
    if (!status.ok()) co_return status;
  }
  status = co_await LoadCounters();
  if (!status.ok()) co_return status;
  context_.hold.SetDuties(this);
  allocator_.SetCompaction([this] { CompactIfScarce(); });
  UseView(context_.view());
  StartTicks();
  co_return Status::Ok();
}

Task<Status> KvImpl::Stop() {
  stopping_ = true;
  tick_timer_.Cancel();
  co_await gate_.Close();
  if (registers_) {
    Operation operation;
    const bool released = co_await WaitToBegin(&operation);
    if (!released) co_return kHeld;
    constexpr uint64_t kSettleNs = 1'000'000'000;
    co_await registers_->cache.Settle(registers_->safe_guess, reclaimer_,
                                      context_.executor.NowNs() + kSettleNs);
    co_await registers_->safe_guess.Stop();
  }
  const Status rounds =
      co_await engine_.Stop(context_.executor.NowNs() + context_.options.op_timeout_ms * 1'000'000);
  if (!rounds.ok()) co_return rounds;
  const bool drained = co_await allocator_.Drain();
  // Else whoever takes the blocks over looks what of them is named.
  const bool all_is_named =
      !left_unnamed_ && metrics_.objects_left.Value() == 0 && !index_.HasUnnamed();
  if (drained && all_is_named) {
    std::vector<GlobalAddr> keep;
    if (registers_) keep = registers_->cache.KeptBuffers();
    const bool leaves_nothing = co_await allocator_.OpenAllBut(keep);
    const bool owes_look =
        account_.has_lost || account_.anew || account_.turn_ns != 0 || allocator_.trade().gave ||
        (allocator_.trade().took && account_.was_scarce) ||
        allocator_.retired_registers().departures() != account_.departures_before;
    // If that fails, others look in vain.
    if (leaves_nothing && !owes_look) (void)co_await allocator_.retired_registers().SignOff();
  }
  // What failed may still take effect until the node has fenced it: seconds at most, or the node is
  // away for longer than a worker that ends can wait.
  const uint64_t deadline_ns =
      context_.executor.NowNs() + context_.options.op_timeout_ms * 1'000'000;
  while (true) {
    Operation operation;
    const bool released = co_await WaitToBegin(&operation);
    if (!released) co_return kHeld;
    const Status status = co_await reclaimer_.Leave();
    if (status.ok() || context_.executor.NowNs() >= deadline_ns) co_return status;
    co_await context_.executor.SleepFor(context_.options.epoch_tick_us * 1000);
  }
}

void KvImpl::ResetRoundTripMetrics() {
  metrics_.get_round_trips.Reset();
  metrics_.set_round_trips.Reset();
  metrics_.del_round_trips.Reset();
  metrics_.rmw_round_trips.Reset();
  metrics_.gets_found.Reset();
  metrics_.gets_missing.Reset();
  metrics_.expired.Reset();
  metrics_.lost_rounds.Reset();
  metrics_.unknown_outcomes.Reset();
}

IndexKey KvImpl::MakeKey(const Key& key) {
  CHECK(key.database < kMaxDatabases);
  return IndexKey::Make(context_.view().keyspaces[key.database], key.bytes);
}

Status KvImpl::CheckSizes(const Key& key, const NewRecord& record) {
  if (key.bytes.size() > kMaxKeyBytes) {
    return Status(StatusCode::kTooLarge, "key is longer than 65535 bytes");
  }
  if (record.bytes() > kMaxValueBytes) {
    return Status(StatusCode::kTooLarge, "value is longer than 512 MiB");
  }
  return Status::Ok();
}

bool KvImpl::IsExpired(const std::byte* record) const {
  const uint64_t deadline_ms = LoadRecordHeader(record).deadline_ms;
  return deadline_ms != 0 && context_.clock.NowMs() >= deadline_ms;
}

void KvImpl::PrefetchLocation(Key key) const {
  if (key.database >= kMaxDatabases) return;
  const KeyHash hash(HashKey(context_.view().keyspaces[key.database], key.bytes));
  if (registers_) registers_->cache.table().Prefetch(hash);
  index_.PrefetchLocation(hash);
}

void KvImpl::PrefetchRecord(Key key, KeyUse use) const {
  if (key.database >= kMaxDatabases) return;
  const KeyHash hash(HashKey(context_.view().keyspaces[key.database], key.bytes));
  const RegisterPlace* place = registers_ ? registers_->cache.table().Find(hash) : nullptr;
  if (place == nullptr) return index_.PrefetchRecord(hash);
  const auto* entry = reinterpret_cast<const std::byte*>(place->entry);
  __builtin_prefetch(entry);
  const View& view = context_.view();
  const int live = view.LiveReplicas(place->addr);
  // As of the view in which it was remembered.
  int replica = place->in_place_replica % live;
  if (use == KeyUse::kWrite) {
    __builtin_prefetch(entry + 64);
    __builtin_prefetch(entry + 128);
    for (int i = 0; i < live; ++i) {
      context_.fabric.PrefetchForWrite(view.Locate(place->addr, i),
                                       i == replica ? place->bytes : place->in_place_from);
    }
    return;
  }
  // A read asks a majority, and of one of them the in-place copy.
  for (int i = 0; i < std::min(view.replicas / 2 + 1, live); ++i) {
    context_.fabric.Prefetch(view.Locate(place->addr, replica),
                             i == 0 ? place->bytes : place->in_place_from);
    if (++replica == live) replica = 0;
  }
}

Task<Status> KvImpl::GetInline(Key key, ValueRange range, ReadResult* result) {
  *result = ReadResult();
  if (GetAtOnce(key, result)) {
    result->record_.value = PartIn(result->record_, range);
    co_return Status::Ok();
  }
  const Status status = co_await GetSlowly(key, range, result);
  co_return status;
}

Task<bool> KvImpl::MayTryAgain(Operation& operation, Status status, NodeWait* wait) {
  const bool lost_node =
      status.code() == StatusCode::kUnknownOutcome || status.code() == StatusCode::kUnavailable;
  if (!lost_node || wait->retries == context_.options.node_loss_retries_max ||
      OutOfTime(context_, operation) || context_.hold.is_impatient()) {
    co_return false;
  }
  ++wait->retries;
  if (wait->next_ns == 0) wait->next_ns = uint64_t{context_.options.wait_timer_us} * 1000;
  operation.presence.LeaveSlots();
  co_await context_.executor.SleepFor(wait->next_ns);
  wait->next_ns =
      std::min<uint64_t>(2 * wait->next_ns, uint64_t{context_.options.wait_timer_max_us} * 1000);
  co_return co_await operation.presence.EnterSlots(operation.deadline_ns);
}

Task<Status> KvImpl::FindAgain(Operation& operation, const IndexKey& key,
                               onetrip::ReadExtent extent, const Draft* draft, Status status,
                               SearchResult* search) {
  NodeWait wait;
  while (!status.ok() && co_await MayTryAgain(operation, status, &wait)) {
    RoundTripPtr first = context_.fabric.NewRoundTrip();
    if (draft != nullptr) AddWrites(*first, *draft);
    status = co_await index_.Find(operation, key, extent, std::move(first), search);
  }
  co_return status;
}

// A read that loses a node begins again: at the latest under the view without that node it
// succeeds.
Task<Status> KvImpl::GetSlowly(Key key, ValueRange range, ReadResult* result) {
  *result = ReadResult();
  if (key.bytes.size() > kMaxKeyBytes) co_return Status::Ok();
  RegisterOperation operation;
  operation.presence = ViewHold::Presence(context_.hold);
  Room room;
  uint64_t wait_ns = uint64_t{context_.options.wait_timer_us} * 1000;
  for (uint32_t retries = 0;; ++retries) {
    Status status = co_await TryGet(operation, key, range, &room, result);
    if (room.turn) [[unlikely]] {
      status = co_await WaitForRoom(operation, &room);
      if (status.ok()) continue;
      co_return Finish(metrics_.get_round_trips, operation, status);
    }
    const bool lost_node =
        status.code() == StatusCode::kUnknownOutcome || status.code() == StatusCode::kUnavailable;
    if (!lost_node || retries == context_.options.node_loss_retries_max ||
        OutOfTime(context_, operation)) {
      result->record_.value = PartIn(result->record_, range);
      (result->found_ ? metrics_.gets_found : metrics_.gets_missing).Add();
      co_return Finish(metrics_.get_round_trips, operation, status);
    }
    operation.shared_pin = SharedPin();
    operation.pin.Release();
    operation.presence.LeaveSlots();
    co_await context_.executor.SleepFor(wait_ns);
    wait_ns = std::min<uint64_t>(2 * wait_ns, uint64_t{context_.options.wait_timer_max_us} * 1000);
  }
}

// FUSEE SEARCH. Linearized when the slot is read from the primary, or, of an expired record, when
// the slot is emptied.
Task<Status> KvImpl::TryGet(RegisterOperation& operation, Key key, ValueRange range, Room* room,
                            ReadResult* result) {
  *result = ReadResult();
  const IndexKey index_key = MakeKey(key);
  CachedRegister* known = registers_ ? registers_->cache.Find(index_key) : nullptr;
  if (known != nullptr) {
    const Result<RegisterResult> read = co_await ReadRegister(operation, *known, result);
    if (!read.ok() || read.value() == RegisterResult::kDone) co_return read.status();
  }
  const bool entered = co_await EnterSlots(operation);
  if (!entered) co_return kHeld;
  operation.pin = reclaimer_.Pin();
  Backoff backoff(context_, operation);
  Status status;
  while (true) {
    SearchResult search;
    const uint64_t forgotten = Forgotten();
    status = co_await index_.Find(operation, index_key, ReadExtent::kWhole,
                                  context_.fabric.NewRoundTrip(), &search);
    if (!status.ok() || !search.found) break;
    if (search.entry.word.is_register()) {
      CachedRegister* entry = Adopt(index_key, search, forgotten);
      if (entry != nullptr) {
        RegisterCache::Use use(registers_->cache, *entry);
        const Result<RegisterResult> read = co_await ReadRegister(operation, *entry, result);
        status = read.status();
        if (!status.ok() || read.value() == RegisterResult::kDone) break;
        if (!search.busy && !Planted(Bug::kReadAwaitsEnd)) {
          status = co_await EndRegister(operation, index_key, search.entry, *entry, true);
          AfterWrite();
          if (status.code() == StatusCode::kOutOfMemory) {
            // Reads go on in a full pool: its time is over by this worker's clock, which has to do;
            // and for what is sealed somebody may find memory in time.
            status = Status::Ok();
            if (read.value() == RegisterResult::kExpired) break;
          }
          if (!status.ok()) break;
        }
      }
      const bool go_on = co_await backoff.Wait();
      if (go_on) continue;
      status = kContended;
      break;
    }
    if (!RecordIsIntact(search.record, search.entry.word.size_class().bytes())) {
      status = Status(StatusCode::kCorrupt, "a record fails its checksum");
      break;
    }
    if (!IsExpired(search.record)) [[likely]] {
      FillFromRecord(search, result);
      if (search.entry.word.size_class().is_root()) [[unlikely]] {
        status = co_await ReadFromExtents(operation, range, room, result);
      }
      break;
    }
    bool removed = false;
    if (!search.busy) {
      status = co_await RemoveExpired(operation, key.database, index_key, search, &removed);
      AfterWrite();
      if (!status.ok() || removed) break;
    } else if (!co_await backoff.Wait()) {
      status = kContended;
      break;
    }
    if (OutOfTime(context_, operation)) {
      status = kContended;
      break;
    }
  }
  co_return status;
}

}  // namespace onetrip
