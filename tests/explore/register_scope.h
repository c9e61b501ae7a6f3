// RegisterScope: clients that read and write one slot of SNAPSHOT, as SET, GET and
// read-modify-write of one key do when its record is there.
//
//   R  reads the primary
//   W  reads the slot, then writes blindly; a loser that finds a blind word in the primary has
//      happened just before it (SlotStore::SetBlind)
//   I  reads the slot and replaces exactly what it read, until that succeeds; returns it
//
// Slot words are real ones, of objects whose addresses tell their writer.
#ifndef ONETRIP_TESTS_EXPLORE_REGISTER_SCOPE_H_
#define ONETRIP_TESTS_EXPLORE_REGISTER_SCOPE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/layout/slot.h"
#include "client_core/replication/engine.h"
#include "tests/explore/scope.h"

namespace onetrip {

// Deliberate bugs, each a rule of the protocol left out.
enum class RegisterMutant : uint8_t {
  kNone,
  kBlindLoserAlwaysOk,    // whatever word overtook it
  kStaleExpected,         // W expects the word it wrote last without reading the slot
  kLoserDoesNotWait,      // a loser returns before the primary has changed
  kVotesOfAQuorum,        // one backup's vote decides instead of all
  kPrimaryBeforeBackups,  // the decision is visible before it is made
  kBackupsLeftUnfixed,    // the winner leaves backups that others took as they are
  kEveryVoterWins,        // rule 3 without the comparison
  kNoLookBeforeMinimum,   // rule 3 without reading the primary first
  kNobodyWinsByMinimum,   // no writer wins by rule 3
};

struct RegisterScopeOptions {
  // One word per client, of the letters R, W and I.
  std::vector<std::string_view> programs;
  int replicas = 3;
  Scope::Faults faults;
  bool commits_log = false;
  RegisterMutant mutant = RegisterMutant::kNone;
  // Off: only what clients saw decides, not what the memory nodes look like on the way.
  bool checks_memory = true;
  // The engine that carries the mutants, though it has none: it must pass where they fail.
  bool uses_mutable_engine = false;
};

class RegisterScope final : public Scope {
 public:
  explicit RegisterScope(RegisterScopeOptions options);

  static constexpr GlobalAddr kSlot{0, 64};
  static constexpr uint32_t kNoteLost = 1;  // a: the word it expected

  // A word that `client` offers in attempt `attempt` of operation `op`.
  static SlotWord WordOf(size_t client, size_t op, size_t attempt, bool blind);
  // The object's value while a slot holds `word`; the initial one is 0.
  static uint64_t ValueOf(uint64_t word);

  [[nodiscard]] const RegisterScopeOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<const View>& view() const { return view_; }

  [[nodiscard]] std::unique_ptr<ExploredClient> MakeClient(
      const ClientEnvironment& environment) const override;
  [[nodiscard]] bool clients_remember() const override {
    return options_.mutant == RegisterMutant::kStaleExpected;
  }
  [[nodiscard]] uint64_t InitialWord(RemoteAddr at) const override;
  [[nodiscard]] uint64_t InitialValue() const override { return 0; }
  [[nodiscard]] SpecStep Apply(uint64_t value, size_t client, size_t op) const override;
  [[nodiscard]] std::string OnAccess(const AppliedAccess& access,
                                     const MemoryView& memory) const override;
  [[nodiscard]] std::string OnNote(size_t client, const Note& note,
                                   const MemoryView& memory) const override;
  [[nodiscard]] std::string OnQuiet(const MemoryView& memory, bool crashed) const override;
  [[nodiscard]] bool FinalValue(const MemoryView& memory, uint32_t crashed_nodes,
                                uint64_t* value) const override;
  [[nodiscard]] std::string WordName(uint64_t word) const override;
  [[nodiscard]] std::string CellName(RemoteAddr at) const override;

 private:
  [[nodiscard]] RemoteAddr Replica(int replica) const { return view_->Locate(kSlot, replica); }

  const RegisterScopeOptions options_;
  std::shared_ptr<const View> view_;
};

// SNAPSHOT with the mutants that are the engine's; without one, the same protocol as
// client_core/replication/snapshot.cc.
std::unique_ptr<Engine> MakeMutableSnapshot(RegisterMutant mutant, WorkerContext& context);

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_REGISTER_SCOPE_H_
