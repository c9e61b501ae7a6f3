// MaxRegister: a reliable max register over r In-n-Out registers (SWARM 2.3, appendix A; PROTOCOLS,
// "Registers"): what was written to, or read from, a majority is never gone back behind.
//
// Writes go to all replicas and are done at q = r/2 + 1. Reads ask a preferred majority that
// contains the replica with the in-place copy, and the others only when that takes several times
// as long as round trips take lately ("widening"), fails, or a read has lately found a guess.
// Stragglers go on in the background
// under this object's gate. Single-threaded, like all of a worker.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_MAX_REGISTER_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_MAX_REGISTER_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "client_core/base/planted_bug.h"
#include "client_core/base/status.h"
#include "client_core/coro/sync.h"
#include "client_core/coro/task.h"
#include "client_core/memory/operation.h"
#include "client_core/memory/worker_context.h"
#include "client_core/replication/in_n_out.h"
#include "client_core/replication/quorum_call.h"

namespace onetrip {

// One client operation on a register. Its pin is shared with stragglers: give it here, not in the
// base.
struct RegisterOperation : Operation {
  SharedPin shared_pin;
};

// How a step ended: done, refused by a seal, or failed.
//   kUnavailable, kFenced   too few replicas answered
//   kNotFound               the memory at this address is another register's: drop the cached
//   address
struct [[nodiscard]] RegisterStep {
  Status status;
  uint64_t seal = 0;  // not 0: no majority of open replicas; this seal was met. `status` is ok

  [[nodiscard]] bool done() const { return status.ok() && seal == 0; }
};

// The content of a max register: a write's word and, once fetched, its value.
struct Tuple {
  MetaWord word;  // VERIFIED if any replica says so
  uint8_t lane = 0;
  bool in_place = false;  // the value came from the in-place copy
  bool has_value = false;
  // A guess that every replica of the register, none missing, held first-hand and as its largest.
  // Its writer never locks readers out of it: PROTOCOLS, "A guess that is everywhere".
  bool everywhere = false;
  WrittenValue value;  // borrows from `holder`
  RoundTripPtr holder;
};

class MaxRegister {
 public:
  // `context` outlives it.
  MaxRegister(WorkerContext& context, const RegisterOptions& options)
      : context_(context),
        options_(options),
        in_n_out_(context, options),
        gate_(context.executor),
        round_trip_ns_(options.widen_first_ns / kWidenFactor),
        avoid_until_ns_(context.view().node_count) {}

  // M.read(): the largest tuple, with its value, at a majority when this returns. `m` may hold the
  // tuple of an earlier read: its value is not fetched again if it is still the largest. An empty
  // word: nothing was ever written.
  // `begun`, if not null, is a call that BeginRead has begun for a register at that address; if it
  // turns out to be another's it counts for nothing.
  Task<RegisterStep> Read(RegisterOperation& operation, RegisterHandle& handle, Tuple* m,
                          QuorumCall* begun = nullptr);
  // Begins the read of the register that a slot's `word` names, as far as it needs no more than
  // InNOut::ReadNamed.
  void BeginRead(SlotWord word, const RegisterShape& expected, QuorumCall* call);

  // M.read() without its write-back: the largest word of a majority; no value. Of a contended
  // register it asks all replicas, and waits for all, at most as long as before widening, when that
  // may save a round trip.
  Task<RegisterStep> ReadLanes(RegisterOperation& operation, RegisterHandle& handle,
                               QuorumCall* call, Tuple* m);

  // The write whose buffer a read of the register takes along with the lanes, since its value has
  // no copy in place: the latest that this worker remembers. Empty: none.
  [[nodiscard]] static MetaWord BufferBeside(const RegisterHandle& handle) {
    if (handle.ref.shape.in_place_bytes > 0) return {};
    return std::max(handle.lane_word, handle.fetched);
  }

  // Header and lanes at one replica, of which `handle` remembers what makes the next write's
  // guess stand, and its CAS succeed at once where the fabric has no MAX.
  void NoteLanes(RegisterHandle& handle, const std::byte* image);

  // M.write(word, value) to all replicas, done at a majority. `call` is new, and holds what each
  // has answered. With `read_lanes` M.read() without write-back runs in parallel: Largest(call).
  // `before`, if not null: an earlier write to the same lane, whose answers say what it holds.
  // `begun`, if not null: an earlier batch of this very write, which has been answered.
  Task<RegisterStep> Write(RegisterOperation& operation, RegisterHandle& handle, MetaWord word,
                           WrittenValue value, bool read_lanes, const QuorumCall* before,
                           QuorumCall* call, const RoundTripPtr& begun = {});

  // M.write(*m) where `m` is of the answers of `call`: nothing is sent if a majority holds it. If
  // its bytes are gone with the nodes that held them, m was at no majority: reads again, and *m is
  // what is the largest then.
  Task<RegisterStep> Announce(RegisterOperation& operation, RegisterHandle& handle,
                              QuorumCall& call, Tuple* m);

  // The value of *m, which is of the answers of `call`, from the in-place copy among them or from a
  // buffer. False: no replica that answers has it.
  Task<bool> Value(RegisterOperation& operation, const RegisterHandle& handle,
                   const QuorumCall& call, Tuple* m);

  // The part of every M.write that counts for nothing yet: the bytes of `word` go, too, where its
  // buffer is live and the register, not of `nodes` there, is still to come back (PROTOCOLS, "Words
  // and their bytes"). In the background, until it is done; nothing is copied before that.
  void WriteBeside(RegisterOperation& operation, const RegisterRef& ref, const ReplicaNodes& nodes,
                   MetaWord word, const WrittenValue& value);
  // Returns true if there is such a place.
  [[nodiscard]] bool HasBeside(const RegisterRef& ref, GlobalAddr buffer);
  // For scrubs: the bytes of m, which was read, are wherever its buffer is live.
  Task<Status> MakeWhole(RegisterOperation& operation, const RegisterRef& ref, const Tuple& m);

  // M.write(word as VERIFIED), in the background; see InNOut::Verify.
  void Verify(RegisterOperation& operation, const RegisterHandle& handle, const Tuple& m);
  // Returns true if the in-place area may be written over: what lies there, on the one replica that
  // is copied to, is no longer the value of the largest word. Another view may have another one.
  [[nodiscard]] bool MayCopyInPlace(const RegisterHandle& handle) const {
    return handle.past_first == context_.view().epoch || Planted(Bug::kFirstCopiedOver);
  }
  // The in-place copy of m, in the background, if there may be one; see InNOut::CopyInPlace.
  void CopyInPlace(RegisterOperation& operation, const RegisterHandle& handle, const Tuple& m);

  // The largest word among the replicas that count.
  [[nodiscard]] static Tuple Largest(const QuorumCall& call);

  // Calls Ask(replica) for those not asked yet when `call` takes too long, and waits until it is
  // decided or the operation is out of time.
  template <typename Ask>
  Task<void> WaitAndWiden(RegisterOperation& operation, QuorumCall& call, int needed, Ask ask);
  // Runs one replica's step: inline where the fabric completes inline, else in the background.
  void Start(Task<void> step);
  // The result of `call`.
  [[nodiscard]] RegisterStep End(RegisterOperation& operation, const QuorumCall& call, int needed);

  // When a step that would like more than a majority stops waiting for the rest.
  [[nodiscard]] uint64_t WidenDeadlineNs() const { return context_.executor.NowNs() + WidenNs(); }
  // A step on the replicas that are live now.
  [[nodiscard]] QuorumCall NewCall(const RegisterOperation& operation, const RegisterRef& ref) {
    return {context_.executor, ReplicaNodes::Of(context_.view(), ref.addr), operation.shared_pin};
  }
  // A step that builds on the answers of `before`: its replicas have the same numbers.
  [[nodiscard]] QuorumCall NewCall(const RegisterOperation& operation, const QuorumCall& before) {
    return {context_.executor, before.nodes(), operation.shared_pin};
  }
  // Returns true if there are channels to a majority of the replicas: a write that is posted
  // without them is of unknown outcome.
  [[nodiscard]] bool ReachesMajority(const RegisterRef& ref) const {
    const View& view = context_.view();
    const int live = view.LiveReplicas(ref.addr);
    const auto& nodes = view.regions[ref.addr.region()].nodes;
    int needed = majority_of(live);
    for (int i = 0; i < live && needed > 0; ++i) {
      if (context_.fabric.Reaches(nodes[i])) --needed;
    }
    return needed <= 0;
  }
  [[nodiscard]] const RegisterOptions& options() const { return options_; }
  // A majority of all replicas, the missing ones counted; all live ones if these are fewer, which
  // is so only where an operator accepted the loss (PROTOCOLS, "A loss that is accepted").
  [[nodiscard]] int majority_of(int live) const { return MajorityOf(context_.view(), live); }
  [[nodiscard]] int majority(const RegisterRef& ref) const { return MajorityAt(ref.addr); }
  WorkerContext& context() { return context_; }
  InNOut& in_n_out() { return in_n_out_; }
  // Stragglers and background steps. Close it before `this` goes.
  Gate& gate() { return gate_; }
  // How often a step asked more replicas than the preferred ones.
  [[nodiscard]] uint64_t widened() const { return widened_; }
  // How often a word's value was on no replica that answered: its nodes were lost, or its buffer
  // was reused too early.
  [[nodiscard]] uint64_t restarts() const { return restarts_; }

 private:
  static constexpr uint64_t kWidenFactor = 4;

  static int MajorityOf(const View& view, int live) {
    return std::min(view.replicas / 2 + 1, live);
  }
  // The replicas in the order in which reads ask them: the one with the in-place copy first, those
  // that have lately been slow or lost last. Returns how many have not been.
  int Order(GlobalAddr addr, const QuorumCall& call, std::array<uint8_t, kMaxReplicas>* order);
  // The nodes that `call` still waits for are asked last until they have answered, or for avoid_ns.
  void Avoid(const RegisterOperation& operation, const RegisterHandle& handle,
             const QuorumCall& call);
  Task<void> AskAgain(RegisterRef ref, int replica, ReplicaNodes nodes, SharedPin pin);
  // Posts `batch`, one WRITE to `to` on `node`, until it is done or has become pointless.
  Task<void> FinishBeside(NodeId node, GlobalAddr to, RoundTripPtr batch, SharedPin pin);
  [[nodiscard]] int MajorityAt(GlobalAddr addr) const {
    const View& view = context_.view();
    return MajorityOf(view, view.LiveReplicas(addr));
  }
  // True if what the replicas of `call` have shown is all of that register.
  [[nodiscard]] static bool IsOf(const RegisterRef& ref, const QuorumCall& call);
  void TakeInPlace(const RegisterHandle& handle, const QuorumCall& call, Tuple* m);
  // Remembers it if the answers of `call` say that MayCopyInPlace.
  void NotePastFirst(RegisterHandle& handle, const QuorumCall& call);
  // The value of *m if its buffer was read beside the lanes: PROTOCOLS, "A value with no copy in
  // place".
  static void TakeBeside(const RegisterHandle& handle, const QuorumCall& call, Tuple* m);
  // Fetches the value of *m from a replica of `call` that holds it. False: no such replica answers
  // with the right bytes.
  Task<bool> FetchValue(RegisterOperation& operation, const RegisterHandle& handle,
                        const QuorumCall& call, Tuple* m);
  // Writes m, bytes and word, to replicas that do not hold it until a majority does.
  Task<RegisterStep> WriteBack(RegisterOperation& operation, const RegisterHandle& handle,
                               const QuorumCall& call, const Tuple& m);
  // When to widen, and measuring what that rests on.
  [[nodiscard]] uint64_t WidenNs() const;
  void Measure(uint64_t duration_ns);

  WorkerContext& context_;
  const RegisterOptions options_;
  InNOut in_n_out_;
  Gate gate_;
  uint64_t round_trip_ns_;                // lately, smoothed
  std::vector<uint64_t> avoid_until_ns_;  // by node
  uint64_t widened_ = 0;
  uint64_t restarts_ = 0;
};

template <typename Ask>
Task<void> MaxRegister::WaitAndWiden(RegisterOperation& operation, QuorumCall& call, int needed,
                                     Ask ask) {
  const uint64_t start_ns = context_.executor.NowNs();
  (void)OutOfTime(context_, operation);  // the deadline counts from the first wait
  const bool may_widen = !call.all_asked();
  if (may_widen) {
    co_await call.Wait(needed, std::min(start_ns + WidenNs(), operation.deadline_ns));
    if (call.counted() < needed && call.sealed() == 0) {
      ++widened_;
      ++operation.round_trips;  // the others' answers come after a wait for the first ones
      for (int replica = 0; replica < call.replicas(); ++replica) {
        if (!call.asked(replica)) ask(replica);
      }
    }
  }
  co_await call.Wait(needed, operation.deadline_ns);
  if (call.counted() >= needed && !call.is_beside()) {
    Measure(context_.executor.NowNs() - start_ns);
  }
}

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_MAX_REGISTER_H_
