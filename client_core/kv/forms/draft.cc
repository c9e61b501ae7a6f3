// Memory for what is to be written, and its bytes.
#include "client_core/kv/forms/draft.h"

#include "client_core/base/planted_bug.h"
#include "client_core/kv/core/paused.h"
#include "client_core/layout/record_codec.h"

namespace onetrip {

// Memory before anything else: an operation that holds a pin must not wait for memory, for it may
// be waiting for itself.
Task<Status> Drafts::Reserve(Draft* draft) {
  draft->addr = core_.allocator.TryAllocate(draft->size_class);
  if (!draft->addr.is_null()) co_return Status::Ok();
  Allocator::Holder* const idle = draft->extents ? nullptr : draft->holder;
  const Result<GlobalAddr> addr = co_await core_.allocator.Allocate(draft->size_class, idle);
  if (!addr.ok()) co_return addr.status();
  draft->addr = addr.value();
  co_return Status::Ok();
}

void Drafts::Measure(const Key& key, const NewRecord& record, Draft* draft) {
  const uint64_t value_bytes = draft->extents ? draft->extents->root_bytes() : record.bytes();
  const uint64_t bytes = RecordBytes(key.bytes.size(), value_bytes);
  draft->bytes = static_cast<uint32_t>(bytes);
  draft->size_class = draft->extents ? SizeClass::ForRoot(bytes) : SizeClass::For(bytes);
}

void Drafts::Encode(const IndexKey& key, const NewRecord& record, Draft* draft) {
  draft->buffer = core_.context.fabric.NewRoundTrip();
  draft->record = draft->buffer->Reserve(draft->bytes);
  RecordFields fields;
  fields.keyspace = key.keyspace;
  fields.key = key.bytes;
  std::string list;
  if (draft->extents) {
    const bool is_tree = !draft->extents->tree_root.empty();
    if (!is_tree) list = EncodeExtentList(draft->extents->list);
    fields.value_head = is_tree ? draft->extents->tree_root : list;
    fields.version = is_tree ? core_.NextVersion() : draft->extents->version;
  } else {
    fields.value_head = record.head;
    fields.value_gap = record.gap_bytes;
    fields.value_tail = record.tail;
    fields.value_rest = record.rest;
    fields.version = core_.NextVersion();
  }
  fields.deadline_ms = record.deadline_ms;
  fields.type = record.type;
  const bool is_of_its_size = draft->extents || draft->size_class == SizeClass::For(draft->bytes);
  fields.opcode = is_of_its_size ? LogOpcode::kUpdate : LogOpcode::kRestated;
  EncodeRecord(fields, draft->record);
}

void Drafts::AddWrites(RoundTrip& round_trip, const Draft& draft) const {
  const View& view = core_.context.view();
  const int replicas = core_.engine.Replicas(view, draft.addr);
  for (int replica = 0; replica < replicas; ++replica) {
    round_trip.Write(view.Locate(draft.addr, replica), draft.record, draft.bytes);
  }
  if (!draft.has_out) return;
  const int buffers = core_.engine.Replicas(view, draft.out.addr);
  for (int replica = 0; replica < buffers; ++replica) {
    round_trip.Write(view.Locate(draft.out.addr + kBufferBulkOffset, replica), draft.out_bulk,
                     draft.out_bytes);
  }
}

SlotWord Drafts::WordFor(const IndexKey& key, const Draft& draft, bool blind) const {
  if (draft.is_register) {
    return SlotWord::Register(key.hash.fingerprint(), draft.size_class, draft.addr, blind);
  }
  return SlotWord::Make(SlotKind::kObject, key.hash.fingerprint(), draft.size_class, draft.addr,
                        blind);
}

Task<Status> Drafts::Renew(Operation& operation, const IndexKey& key, Draft* draft) {
  // Extents stay: no reader follows a word that is not committed.
  AbandonObject(*draft);
  draft->addr = GlobalAddr();
  Paused paused(core_, operation);
  Status status;
  if (draft->is_register) {
    const IndexKey copy = key;
    status = co_await ReserveRegister(copy, draft);
    if (status.ok()) EncodeRegister(copy, draft);
  } else {
    status = co_await Reserve(draft);
  }
  status = co_await paused.Resume(status);
  if (!status.ok()) co_return status;
  RoundTripPtr round_trip = core_.context.fabric.NewRoundTrip();
  AddWrites(*round_trip, *draft);
  status = co_await Post(core_.context, operation, round_trip);
  co_return status;
}

Task<Status> Drafts::FindAgain(Operation& operation, const IndexKey& key,
                               onetrip::ReadExtent extent, const Draft* draft, Status status,
                               SearchResult* search) {
  RetryAcrossViews retry(core_.context, operation);
  while (!status.ok() && co_await core_.MayTryAgain(operation, status, &retry)) {
    RoundTripPtr first = core_.context.fabric.NewRoundTrip();
    if (draft != nullptr) AddWrites(*first, *draft);
    status = co_await core_.index.Find(operation, key, extent, std::move(first), search);
  }
  co_return status;
}

void Drafts::RetireAll(const ExtentList& list) {
  for (const ExtentRef& ref : list.extents) {
    if (!ref.addr.is_null()) core_.allocator.Retire(ref.addr, ref.size_class);
  }
}

}  // namespace onetrip
