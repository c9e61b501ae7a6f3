// Drafts of registers (SWARM 5).
#include <cstring>
#include <utility>

#include "client_core/kv/forms/draft.h"
#include "client_core/layout/entry_codec.h"

namespace onetrip {
namespace {

// So often room is looked for elsewhere before it is waited for.
constexpr int kGrantsBeside = 4;
// Memory for the buffers of later writes is asked for once in this time, whether there was any: a
// block that serves no key goes back at once where memory is short.
constexpr uint64_t kNotBesideNs = 100'000'000;

}  // namespace

void Drafts::SetDraftValue(const NewRecord& record, Draft* draft) {
  const uint64_t head = KeyValueHead(record.deadline_ms, record.type);
  draft->value.resize(sizeof(head) + record.bytes());
  std::memcpy(draft->value.data(), &head, sizeof(head));
  record.CopyTo(0, std::span(draft->value).subspan(sizeof(head)));
}

bool Drafts::WantsBuffersBeside(const RegisterPlan& plan, GlobalAddr addr) {
  return !core_.allocator.HasBuffers(plan.buffer_class, addr, Allocator::kBuffersOfAWrite) &&
         core_.context.executor.NowNs() >= not_beside_until_ns_[plan.buffer_class.index()];
}

// A register and, if its first value does not fit into it, a buffer on the same nodes.
Task<Status> Drafts::ReserveRegister(const IndexKey& key, Draft* draft) {
  const RegisterPlan plan = PlanRegister(key.bytes.size(), draft->value.size(),
                                         core_.registers->Lanes(core_.context.options));
  draft->is_register = true;
  draft->shape = plan.shape;
  draft->size_class = plan.size_class;
  draft->out_class = plan.buffer_class;
  draft->has_out = draft->value.size() > plan.shape.in_place_bytes;
  draft->addr = GlobalAddr();
  // An operation that waits for the first time holds nothing. One that waits again, since the last
  // memory that there was served for the one or for the other, keeps what it has.
  GlobalAddr addr;
  bool has_waited = false;
  int grants = 0;
  while (true) {
    if (addr.is_null()) {
      addr = core_.allocator.TryAllocateBeside(plan.size_class, plan.buffer_class);
    }
    if (addr.is_null()) addr = core_.allocator.TryAllocate(plan.size_class);
    if (addr.is_null()) {
      const Result<GlobalAddr> allocated =
          co_await core_.allocator.Allocate(plan.size_class, draft->holder);
      if (!allocated.ok()) co_return allocated.status();
      addr = allocated.value();
    }
    if (draft->has_out) {
      draft->out = core_.registers->cache.TryTake(plan.buffer_class, addr);
      if (!draft->out.addr.is_null()) break;
    } else if (grants == kGrantsBeside || !WantsBuffersBeside(plan, addr)) {
      break;
    }
    const GlobalAddr near = addr;
    if (!has_waited)
      core_.allocator.FreeUnpublished(std::exchange(addr, GlobalAddr()), plan.size_class);
    if (!draft->has_out)
      not_beside_until_ns_[plan.buffer_class.index()] =
          core_.context.executor.NowNs() + kNotBesideNs;
    // Where it would lie there may be no room for buffers though there is elsewhere.
    if (!has_waited && grants++ < kGrantsBeside) {
      Status beside;
      if (draft->has_out || core_.allocator.has_elsewhere()) {
        beside = co_await core_.allocator.GrantBeside(plan.size_class, plan.buffer_class, near);
      } else {
        beside = co_await core_.allocator.GrantBuffers(plan.buffer_class, near);
      }
      if (beside.ok()) continue;
    }
    if (!draft->has_out) continue;
    Allocator::Holder* const idle = has_waited ? nullptr : draft->holder;
    const Status status = co_await core_.registers->cache.Refill(plan.buffer_class, near, idle);
    has_waited = true;
    if (status.ok()) continue;
    if (!addr.is_null()) core_.allocator.FreeUnpublished(addr, plan.size_class);
    co_return status;
  }
  draft->addr = addr;
  co_return Status::Ok();
}

// A register with its first word, which is verified: no other worker can have written yet. All of
// it is on all replicas before a slot names it, so that no WRITE of it comes late.
void Drafts::EncodeRegister(const IndexKey& key, Draft* draft) {
  const Ticks used = draft->has_out ? draft->out.used : Ticks();
  draft->times = core_.registers->clock.Times(core_.registers->clock.Birth(used));
  const std::optional<RegisterTime> time = core_.registers->clock.Guess(draft->times, used);
  CHECK(time.has_value());  // a register that is born now
  draft->word =
      draft->has_out ? MetaWord(*time, draft->out.addr).AsVerified() : MetaWord::InRegister(*time);
  draft->out.used = Ticks{draft->times.birth.value + *time};
  draft->header = {.log_word = 0,
                   .keyspace = key.keyspace.value,
                   .key_bytes = static_cast<uint16_t>(key.bytes.size()),
                   .lanes = static_cast<uint8_t>(draft->shape.lanes),
                   .buffer_class = draft->out_class.index(),
                   .incarnation = core_.NextVersion(),
                   .birth_ticks = draft->times.birth.value,
                   .final_word = 0,
                   .seal = 0};
  const WrittenValue value{core_.context.membership.id,
                           std::as_bytes(std::span(draft->value.data(), draft->value.size()))};
  draft->buffer = core_.context.fabric.NewRoundTrip();
  if (draft->has_out) {
    draft->out_bytes = BufferBulkBytes(draft->value.size());
    draft->out_bulk = draft->buffer->Reserve(draft->out_bytes);
    EncodeBuffer(draft->out.used, value, draft->out_bulk);
  }
  draft->bytes = draft->shape.register_bytes();
  draft->record = draft->buffer->Reserve(draft->bytes);
  std::memset(draft->record, 0, draft->bytes);
  std::memcpy(draft->record, &draft->header, sizeof(draft->header));
  std::memcpy(draft->record + kRegisterHeaderBytes, key.bytes.data(), key.bytes.size());
  const uint64_t word = draft->word.bits();
  const uint8_t lane = InNOut::LaneOf(core_.context.membership.id, draft->shape);
  std::memcpy(draft->record + draft->shape.lane_offset(lane), &word, sizeof(word));
  if (!draft->has_out) {
    EncodeInPlace(draft->word, value, draft->record + draft->shape.in_place_offset());
  }
}

}  // namespace onetrip
