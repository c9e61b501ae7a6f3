// SNAPSHOT: replicated slots without a primary server (FUSEE 4.3, Algorithms 1 and 2).
//
// A round of a slot begins with all replicas equal. Writers CAS the backups from v_old, all learn
// the same votes, one of them wins, repairs the backups, commits its log and changes the primary;
// the others wait for that. Readers read the primary only. The winner knows that the slot went
// exactly from v_old to v_new, so a SNAPSHOT write is a compare-and-swap.
#ifndef ONETRIP_CLIENT_CORE_REPLICATION_SNAPSHOT_H_
#define ONETRIP_CLIENT_CORE_REPLICATION_SNAPSHOT_H_

#include <array>

#include "client_core/layout/types.h"
#include "client_core/replication/engine.h"

namespace onetrip {

class Snapshot : public Engine {
 public:
  explicit Snapshot(WorkerContext& context)
      : context_(context), replicas_(context.view().replicas) {}

  [[nodiscard]] int replicas() const override { return replicas_; }
  [[nodiscard]] std::string_view name() const override { return "snapshot"; }
  [[nodiscard]] RegisterKind registers() const override { return RegisterKind::kMet; }
  Task<Result<SlotOutcome>> Write(Operation& operation, SlotWrite write) override;

 private:
  struct Votes {
    std::array<uint64_t, kMaxReplicas> word{};
    size_t count = 0;
    [[nodiscard]] std::span<const uint64_t> words() const { return {word.data(), count}; }
  };

  Task<Status> CasBackups(Operation& operation, const SlotWrite& write, Votes* votes);
  Task<Status> FixBackups(Operation& operation, const SlotWrite& write, const Votes& votes);
  Task<Status> CommitLog(Operation& operation, const SlotWrite& write);
  Task<Result<SlotOutcome>> CasPrimary(Operation& operation, const SlotWrite& write);
  Task<Result<uint64_t>> ReadPrimary(Operation& operation, GlobalAddr slot);
  Task<Result<SlotOutcome>> AwaitChange(Operation& operation, const SlotWrite& write);

  WorkerContext& context_;
  const int replicas_;
};

// The same slots; keys are held as Safe-Guess registers where that can be (SWARM 5).
class Swarm final : public Snapshot {
 public:
  using Snapshot::Snapshot;
  [[nodiscard]] std::string_view name() const override { return "swarm"; }
  [[nodiscard]] RegisterKind registers() const override { return RegisterKind::kSafeGuess; }
};

}  // namespace onetrip

#endif  // ONETRIP_CLIENT_CORE_REPLICATION_SNAPSHOT_H_
