// An engine's write of a slot as a Task, for tests that wait for it.
#ifndef ONETRIP_TESTS_SUPPORT_WRITE_SLOT_H_
#define ONETRIP_TESTS_SUPPORT_WRITE_SLOT_H_

#include "client_core/coro/task.h"
#include "client_core/replication/engine.h"

namespace onetrip {

// Both outlive it.
inline Task<Result<SlotOutcome>> WriteSlot(Engine* engine, Operation* operation, SlotWrite write) {
  co_return co_await engine->Write(*operation, write);
}

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SUPPORT_WRITE_SLOT_H_
