// LockScope: clients that call TimestampLock::TryLock on one lock, as a writer and the readers of
// its guesses do.
//
//   R, W  in mode READ or WRITE, at the time of a first guess
//   r, w  at that of a later one, whose write uses the same buffer again
//
// What must hold is SWARM's appendix B. An operation that got the lock returns 1, and the
// sequential object gives one time to one mode: true exclusion. One that did not is checked when it
// learns so: another client has asked for a later time, or for the other mode: true safety. A lock
// word never goes back, nor changes its mode for one time. A call takes as many round trips as the
// word may change under it, and one more: wait-freedom.
#ifndef ONETRIP_TESTS_EXPLORE_LOCK_SCOPE_H_
#define ONETRIP_TESTS_EXPLORE_LOCK_SCOPE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/replication/max_register.h"
#include "tests/explore/scope.h"

namespace onetrip {

struct LockOptions {
  std::vector<std::string_view> programs;  // one word per client, of the letters R, W, r and w
  Scope::Faults faults = {};
  int leftovers = 0;  // the number of replicas that hold the lock of a write before these
};

class LockScope final : public Scope {
 public:
  explicit LockScope(LockOptions options);

  static constexpr uint32_t kNoteNotLocked = 1;  // a: the lock word that was asked for

  [[nodiscard]] const LockOptions& options() const { return options_; }
  [[nodiscard]] const std::shared_ptr<const View>& view() const { return view_; }
  [[nodiscard]] const RegisterRef& ref() const { return ref_; }
  // The guess that operation `op` of `client` is about, and the mode it asks for.
  [[nodiscard]] MetaWord Guess(size_t client, size_t op) const;
  [[nodiscard]] LockMode Mode(size_t client, size_t op) const;
  [[nodiscard]] LockWord Asked(size_t client, size_t op) const;
  // Round trips of an operation about `guess`, at most.
  [[nodiscard]] uint32_t RoundTripsMax(MetaWord guess) const;

  [[nodiscard]] std::unique_ptr<ExploredClient> MakeClient(
      const ClientEnvironment& environment) const override;
  [[nodiscard]] bool clients_remember() const override { return false; }
  [[nodiscard]] bool polls_are_idle() const override { return false; }
  [[nodiscard]] bool asks_quorums() const override { return true; }
  // The value that a call returns is all that it leaves behind.
  [[nodiscard]] bool IsLookedAtLater(const PostedRound& /*round*/,
                                     const CellTable& /*cells*/) const override {
    return false;
  }
  [[nodiscard]] uint64_t InitialWord(RemoteAddr at) const override;
  [[nodiscard]] uint64_t InitialValue() const override { return 0; }
  [[nodiscard]] SpecStep Apply(uint64_t value, size_t client, size_t op) const override;
  [[nodiscard]] std::string OnAccess(const AppliedAccess& access,
                                     const MemoryView& memory) const override;
  [[nodiscard]] std::string OnNote(size_t client, const Note& note,
                                   const MemoryView& memory) const override;
  [[nodiscard]] bool FinalValue(const MemoryView& /*memory*/, uint32_t /*crashed_nodes*/,
                                uint64_t* /*value*/) const override {
    return false;
  }
  [[nodiscard]] std::string WordName(uint64_t word) const override;

 private:
  const LockOptions options_;
  std::shared_ptr<const View> view_;
  const RegisterRef ref_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_EXPLORE_LOCK_SCOPE_H_
