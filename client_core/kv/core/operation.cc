// How operations wait: for a quiesce, for a node that was lost, for memory.
#include "client_core/kv/core/core.h"
#include "client_core/kv/core/paused.h"

namespace onetrip {
namespace {

// How long background work waits for a quiesce to end.
constexpr uint64_t kPatienceNs = 60'000'000'000;

}  // namespace

Task<bool> KvCore::WaitToBegin(Operation* operation) {
  const uint64_t deadline_ns = context.executor.NowNs() + kPatienceNs;
  const bool released = co_await context.quiesce.Wait(deadline_ns);
  if (!released) co_return false;
  operation->in_flight = Quiesce::InFlightGuard(context.quiesce);
  const bool entered = co_await operation->in_flight.EnterSlots(deadline_ns);
  co_return entered;
}

Task<Status> KvCore::AwaitRelease() {
  const uint64_t patience_ns = context.options.op_timeout_ms * 1'000'000;
  const bool released = co_await context.quiesce.Wait(context.executor.NowNs() + patience_ns);
  co_return released ? Status::Ok() : kHeld;
}

Task<bool> KvCore::MayTryAgain(Operation& operation, Status status, RetryAcrossViews* retry) {
  if (!retry->IsWorth(status) || context.quiesce.is_impatient()) co_return false;
  operation.in_flight.LeaveSlots();
  co_await retry->Wait();
  co_return co_await operation.in_flight.EnterSlots(operation.deadline_ns);
}

Task<Status> KvCore::AwaitMemory(RegisterOperation& operation, SizeClass size_class,
                                 Allocator::Holder* idle) {
  Paused paused(*this, operation);
  const Result<GlobalAddr> addr = co_await allocator.Allocate(size_class, idle);
  if (addr.ok()) allocator.FreeUnpublished(addr.value(), size_class);
  co_return co_await paused.Resume(addr.status());
}

}  // namespace onetrip
