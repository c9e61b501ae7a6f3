// Paused: an operation that has given up its pins and left the slots, to wait for what may need
// either: memory, a split, a register's memory that comes back. Private to kv/; the worker's
// thread.
#ifndef ONETRIP_CLIENT_CORE_KV_CORE_PAUSED_H_
#define ONETRIP_CLIENT_CORE_KV_CORE_PAUSED_H_

#include "client_core/base/status.h"
#include "client_core/coro/task.h"
#include "client_core/kv/core/core.h"

namespace onetrip {

class Paused {
 public:
  // The operation's reads mean nothing from here on. Both outlive it.
  Paused(KvCore& core, Operation& operation) : core_(core), operation_(operation) {
    operation_.pin.Release();
    operation_.in_flight.LeaveSlots();
  }
  Paused(KvCore& core, RegisterOperation& operation)
      : Paused(core, static_cast<Operation&>(operation)) {
    operation.shared_pin = SharedPin();
  }
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;

  // Once, behind the wait: enters the slots again and pins. `status`, what the wait came to, unless
  // the slots are held for too long: kHeld.
  Task<Status> Resume(Status status) {
    const bool entered = co_await core_.EnterSlots(operation_);
    operation_.pin = core_.reclaimer.Pin();
    co_return entered ? status : kHeld;
  }

 private:
  KvCore& core_;
  Operation& operation_;
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_KV_CORE_PAUSED_H_
