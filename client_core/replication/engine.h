// Engine: how one 8-byte slot is kept the same on its replicas, and in which form keys are held.
//
// The index, and every write of a record, change slots only through an engine. `snapshot` is
// FUSEE's protocol, `swarm` the same with Safe-Guess registers for keys. Baselines: `abd` is
// `swarm` with ABD in Safe-Guess's place, `raw` writes one replica without concurrency control.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_ENGINE_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "client_core/base/status.h"
#include "client_core/coro/maybe_task.h"
#include "client_core/layout/global_addr.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/slot_step.h"

namespace onetrip {

// The outcome of a slot write.
struct SlotOutcome {
  // The slot went exactly from v_old to v_new: a compare-and-swap that succeeded.
  bool won = false;
  // Lost: the word seen in the primary once it was no longer v_old.
  uint64_t current = 0;
  // Lost, and a WRITE of this round may still arrive at the log of v_new: its object must not be
  // offered to another round.
  bool spent = false;
};

// READs that a writer of a slot wants to have of the state behind its write. They go with the CAS
// that makes the write visible, and take effect behind it, if they are of the primary's node.
class ReadsBehind {
 public:
  virtual ~ReadsBehind() = default;
  virtual void AddTo(RoundTrip& round_trip) = 0;
  // Holds what was read; null: the write has not won, or became visible by another way.
  RoundTripPtr done;
};

struct SlotWrite {
  GlobalAddr slot;
  // Read from the primary by this operation, or put there by this worker. Of a commit: what the
  // backups hold, and the primary held before it was claimed.
  uint64_t v_old = 0;
  uint64_t v_new = 0;  // differs from every other writer's, and from all the slot has held lately
  // The log entry: the first word of the record that v_new names. Null when v_new names none.
  GlobalAddr log;
  // Operations that go with the first round trip, ahead of the engine's own on each channel: the
  // WRITEs of the record that v_new names, if they have not been posted yet. Borrowed; may be null.
  RoundTrip* first = nullptr;
  // Borrowed until the write returns; may be null.
  ReadsBehind* behind = nullptr;
  // Others may propose the same v_new for the same reason; then it makes no difference whose round
  // it was, and no writer is told that it won.
  bool shared = false;
  SlotStep step = SlotStep::kRound;

  static SlotWrite Shared(GlobalAddr slot, uint64_t v_old, uint64_t v_new) {
    SlotWrite write{slot, v_old, v_new, GlobalAddr()};
    write.shared = true;
    return write;
  }
};

// The round trip that a write begins with.
inline RoundTripPtr FirstRoundTrip(WorkerContext& context, const SlotWrite& write) {
  return write.first != nullptr ? RoundTripPtr(write.first) : context.fabric.NewRoundTrip();
}

// The status of an operation that failed after one of its mutations was sent: no longer "surely not
// applied".
constexpr Status AfterSend(Status status) {
  const bool claims_nothing_happened =
      status.code() == StatusCode::kFenced || status.code() == StatusCode::kUnavailable;
  return claims_nothing_happened
             ? Status(StatusCode::kUnknownOutcome, "the operation was cut short")
             : status;
}

// kNone: there are no registers. kMet: keys are written as records; registers that other workers
// made are read, and become records when they are written. kSafeGuess, kAbd: keys are written as
// registers, by that protocol.
enum class RegisterKind : uint8_t { kNone, kMet, kSafeGuess, kAbd };
constexpr bool WritesRegisters(RegisterKind kind) {
  return kind == RegisterKind::kSafeGuess || kind == RegisterKind::kAbd;
}

class Engine {
 public:
  virtual ~Engine() = default;

  // The number of replicas of the slot or object at `addr` that this engine writes; the first is
  // the primary. They change with the view. REQUIRES: view.Contains(addr).
  [[nodiscard]] virtual int Replicas(const View& view, GlobalAddr addr) const = 0;
  [[nodiscard]] virtual std::string_view name() const = 0;
  // How keys that are read and written blindly are held, beside the slots.
  [[nodiscard]] virtual RegisterKind registers() const { return RegisterKind::kNone; }

  // Changes a slot, by one step of SlotStep. kUnknownOutcome: a node was lost or the wait for the
  // winner outlived the operation; v_new may yet appear, and the engine goes on to see to it that
  // the slot's round has an end.
  virtual MaybeTask<Result<SlotOutcome>> Write(Operation& operation, SlotWrite write) = 0;
  // At the end of a worker that gives no more writes: waits for what goes on behind them, at most
  // until `until_ns`. Not ok: a round has no end yet, and the worker must not leave in order.
  virtual Task<Status> Stop(uint64_t /*until_ns*/) { co_return Status::Ok(); }
};

// kSwarm: SNAPSHOT slots; keys as Safe-Guess registers where that can be. kAbd: the same with ABD.
// kSnapshot: records only.
enum class EngineKind : uint8_t { kSwarm, kSnapshot, kRaw, kAbd };

// `context` outlives the engine.
std::unique_ptr<Engine> MakeEngine(EngineKind kind, WorkerContext& context);

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_ENGINE_H_
