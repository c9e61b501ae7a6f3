// How operations wait: for a hold, for a node that was lost, for memory.
#include <algorithm>

#include "client_core/kv/core/core.h"

namespace onetrip {
namespace {

// How long background work waits for a hold to end.
constexpr uint64_t kPatienceNs = 60'000'000'000;

}  // namespace

Task<bool> KvCore::WaitToBegin(Operation* operation) {
  const uint64_t deadline_ns = context.executor.NowNs() + kPatienceNs;
  const bool released = co_await context.hold.Wait(deadline_ns);
  if (!released) co_return false;
  operation->presence = ViewHold::Presence(context.hold);
  const bool entered = co_await operation->presence.EnterSlots(deadline_ns);
  co_return entered;
}

Task<Status> KvCore::AwaitRelease() {
  const uint64_t patience_ns = context.options.op_timeout_ms * 1'000'000;
  const bool released = co_await context.hold.Wait(context.executor.NowNs() + patience_ns);
  co_return released ? Status::Ok() : kHeld;
}

Task<bool> KvCore::MayTryAgain(Operation& operation, Status status, NodeWait* wait) {
  const bool lost_node =
      status.code() == StatusCode::kUnknownOutcome || status.code() == StatusCode::kUnavailable;
  if (!lost_node || wait->retries == context.options.node_loss_retries_max ||
      OutOfTime(context, operation) || context.hold.is_impatient()) {
    co_return false;
  }
  ++wait->retries;
  if (wait->next_ns == 0) wait->next_ns = uint64_t{context.options.wait_timer_us} * 1000;
  operation.presence.LeaveSlots();
  co_await context.executor.SleepFor(wait->next_ns);
  wait->next_ns =
      std::min<uint64_t>(2 * wait->next_ns, uint64_t{context.options.wait_timer_max_us} * 1000);
  co_return co_await operation.presence.EnterSlots(operation.deadline_ns);
}

Task<Status> KvCore::AwaitMemory(RegisterOperation& operation, SizeClass size_class,
                                 Allocator::Holder* idle) {
  operation.shared_pin = SharedPin();
  operation.pin.Release();
  operation.presence.LeaveSlots();
  const Result<GlobalAddr> addr = co_await allocator.Allocate(size_class, idle);
  if (addr.ok()) allocator.FreeUnpublished(addr.value(), size_class);
  const bool entered = co_await EnterSlots(operation);
  operation.pin = reclaimer.Pin();
  co_return entered ? addr.status() : kHeld;
}

}  // namespace onetrip
