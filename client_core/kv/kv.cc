#include "client_core/kv/kv.h"

#include "client_core/kv/kv_impl.h"

namespace onetrip {

Kv::Kv(WorkerContext& context, Engine& engine) : impl_(std::make_unique<KvImpl>(context, engine)) {}
Kv::~Kv() = default;

Task<Status> Kv::Start() { return impl_->Start(); }
Task<Status> Kv::Stop() { return impl_->Stop(); }
Task<Status> Kv::Get(Key key, ReadResult* result) {
  if (impl_->held()) [[unlikely]] {
    return impl_->AfterHold([impl = impl_.get(), key, result] { return impl->Get(key, result); });
  }
  return impl_->Get(key, result);
}
Task<Status> Kv::Set(Key key, NewRecord record) {
  if (impl_->held()) [[unlikely]] {
    return impl_->AfterHold([impl = impl_.get(), key, record] { return impl->Set(key, record); });
  }
  return impl_->Set(key, record);
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
Task<Status> Kv::CountKeys(uint32_t database, uint64_t* keys) {
  if (impl_->held()) [[unlikely]] {
    return impl_->AfterHold(
        [impl = impl_.get(), database, keys] { return impl->CountKeys(database, keys); });
  }
  return impl_->CountKeys(database, keys);
}
void Kv::PrefetchLocation(Key key) const { impl_->PrefetchLocation(key); }
void Kv::PrefetchRecord(Key key) const { impl_->PrefetchRecord(key); }
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
  registers_ = std::make_unique<Registers>(context, allocator_);
  allocator_.retired_registers().SetListener(&registers_->cache);
  reclaimer_.SetBeforeEpoch(&allocator_.retired_registers());
}

KvImpl::~KvImpl() = default;

Task<Status> KvImpl::Start() {
  Status status = co_await reclaimer_.Join();
  if (!status.ok()) co_return status;
  if (registers_) {
    status = co_await allocator_.retired_registers().Join();
    if (!status.ok()) co_return status;
  }
  status = co_await index_.Open();
  if (!status.ok()) co_return status;
  if (engine_.registers() == RegisterKind::kSafeGuess) co_await allocator_.ReserveRetiredRing();
  status = co_await LoadCounters();
  if (!status.ok()) co_return status;
  StartTicks();
  co_return Status::Ok();
}

Task<Status> KvImpl::Stop() {
  stopping_ = true;
  tick_timer_.Cancel();
  co_await gate_.Close();
  if (registers_) {
    constexpr uint64_t kSettleNs = 1'000'000'000;
    co_await registers_->cache.Settle(registers_->safe_guess, reclaimer_,
                                      context_.executor.NowNs() + kSettleNs);
    co_await registers_->safe_guess.Stop();
  }
  co_await allocator_.Drain();
  // What failed may still take effect until the node has fenced it: seconds at most, or the node is
  // away for longer than a worker that ends can wait.
  const uint64_t deadline_ns =
      context_.executor.NowNs() + context_.options.op_timeout_ms * 1'000'000;
  while (true) {
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
  if (record.head.size() + record.tail.size() > kMaxValueBytes) {
    return Status(StatusCode::kTooLarge, "value is longer than 1 MiB");
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
  if (registers_) registers_->cache.Prefetch(hash);
  index_.PrefetchLocation(hash);
}

void KvImpl::PrefetchRecord(Key key) const {
  if (key.database >= kMaxDatabases) return;
  const KeyHash hash(HashKey(context_.view().keyspaces[key.database], key.bytes));
  const CachedRegister* entry = registers_ ? registers_->cache.Peek(hash) : nullptr;
  if (entry == nullptr) return index_.PrefetchRecord(hash);
  // Whatever is done with it, a majority of its replicas is.
  const View& view = context_.view();
  const RegisterRef& ref = entry->handle.ref;
  const int in_place = InNOut::InPlaceReplica(ref, view.replicas);
  for (int i = 0; i < view.replicas / 2 + 1; ++i) {
    const uint32_t bytes = i == 0 ? ref.shape.register_bytes() : ref.shape.in_place_offset();
    context_.fabric.Prefetch(view.Locate(ref.addr, (in_place + i) % view.replicas), bytes);
  }
}

// FUSEE SEARCH. Linearized when the slot is read from the primary, or, of an expired record, when
// the slot is emptied.
Task<Status> KvImpl::Get(Key key, ReadResult* result) {
  *result = ReadResult();
  if (key.bytes.size() > kMaxKeyBytes) co_return Status::Ok();
  RegisterOperation operation;
  const IndexKey index_key = MakeKey(key);
  if (registers_) {
    if (CachedRegister* entry = registers_->cache.Find(index_key); entry != nullptr) {
      if (ReadRegisterAtOnce(*entry, result)) {
        operation.round_trips = 1;
        metrics_.gets_found.Add();
        co_return Finish(metrics_.get_round_trips, operation, Status::Ok());
      }
      const Result<RegisterResult> read = co_await ReadRegister(operation, *entry, result);
      if (!read.ok() || read.value() == RegisterResult::kDone) {
        metrics_.gets_found.Add();
        co_return Finish(metrics_.get_round_trips, operation, read.status());
      }
    }
  }
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
        if (!search.busy) {
          status = co_await EndRegister(operation, index_key, search.entry, *entry, true);
          AfterWrite();
          if (status.code() == StatusCode::kOutOfMemory) {
            // Reads go on in a full pool: its time is over by this worker's clock, which has to do;
            // and what is frozen will be thawed by who froze it and has the memory for that.
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
      const RecordHeader header = LoadRecordHeader(search.record);
      result->found_ = true;
      result->record_ = {RecordValue(search.record), header.deadline_ms, header.version,
                         header.type};
      result->bytes_ = std::move(search.bytes);
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
  (result->found_ ? metrics_.gets_found : metrics_.gets_missing).Add();
  co_return Finish(metrics_.get_round_trips, operation, status);
}

}  // namespace onetrip
