// SNAPSHOT once more, with rules that can be left out: what the explorer has to notice. Kept beside
// the tests and apart from the production code on purpose.
#include <algorithm>
#include <utility>
#include <vector>

#include "client_core/replication/snapshot_rules.h"
#include "tests/explore/register_scope.h"

namespace onetrip {
namespace {

class MutableSnapshot final : public Engine {
 public:
  MutableSnapshot(RegisterMutant mutant, WorkerContext& context)
      : mutant_(mutant), context_(context) {}

  [[nodiscard]] int replicas() const { return context_.view().replicas; }
  [[nodiscard]] int Replicas(const View& view, GlobalAddr addr) const override {
    return view.LiveReplicas(addr);
  }
  [[nodiscard]] std::string_view name() const override { return "snapshot with mutants"; }

  MaybeTask<Result<SlotOutcome>> Write(Operation& operation, SlotWrite write) override {
    return WriteWithMutant(operation, write);
  }

 private:
  Task<Result<SlotOutcome>> WriteWithMutant(Operation& operation, SlotWrite write) {
    if (mutant_ == RegisterMutant::kPrimaryBeforeBackups) {
      const Result<uint64_t> found =
          co_await Cas(operation, write.slot, 0, write.v_old, write.v_new);
      if (!found.ok()) co_return found.status();
      if (found.value() != write.v_old) co_return SlotOutcome{false, found.value()};
    }
    std::vector<uint64_t> votes;
    Status status = co_await CasBackups(operation, write, &votes);
    if (!status.ok()) co_return status;
    if (mutant_ == RegisterMutant::kVotesOfAQuorum) votes.resize((replicas() + 1) / 2 - 1);
    switch (EvaluateRules(votes, write.v_new)) {
      case Verdict::kWinAll:
        break;
      case Verdict::kAskMinimum:
        if (mutant_ != RegisterMutant::kNoLookBeforeMinimum) {
          const Result<uint64_t> primary = co_await ReadPrimary(operation, write.slot);
          if (!primary.ok()) co_return primary.status();
          if (primary.value() != write.v_old) co_return SlotOutcome{false, primary.value()};
        }
        if (!WinsMinimum(votes, write.v_new)) {
          co_return co_await Lose(operation, write);
        }
        [[fallthrough]];
      case Verdict::kWinMajority:
        status = co_await FixBackups(operation, write, votes);
        if (!status.ok()) co_return status;
        break;
      case Verdict::kLose:
        co_return co_await Lose(operation, write);
    }
    if (mutant_ == RegisterMutant::kPrimaryBeforeBackups) {
      co_return SlotOutcome{true, write.v_new};
    }
    const Result<uint64_t> found = co_await Cas(operation, write.slot, 0, write.v_old, write.v_new);
    if (!found.ok()) co_return found.status();
    co_return SlotOutcome{found.value() == write.v_old, found.value()};
  }

  [[nodiscard]] bool WinsMinimum(const std::vector<uint64_t>& votes, uint64_t v_new) const {
    if (mutant_ == RegisterMutant::kEveryVoterWins) return true;
    return mutant_ != RegisterMutant::kNobodyWinsByMinimum && WinsByMinimum(votes, v_new);
  }

  Task<Result<uint64_t>> Cas(Operation& operation, GlobalAddr slot, int replica, uint64_t from,
                             uint64_t to) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    round_trip->Cas(context_.view().Locate(slot, replica), from, to);
    const Status status = co_await Post(context_, operation, round_trip);
    if (!status.ok()) co_return status;
    co_return round_trip->op(0).result;
  }

  Task<Result<uint64_t>> ReadPrimary(Operation& operation, GlobalAddr slot) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    const uint64_t* word = round_trip->ReadWord(context_.view().Locate(slot, 0));
    const Status status = co_await Post(context_, operation, round_trip);
    if (!status.ok()) co_return status;
    co_return *word;
  }

  Task<Status> CasBackups(Operation& operation, const SlotWrite& write,
                          std::vector<uint64_t>* votes) {
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    for (int backup = 1; backup < replicas(); ++backup) {
      round_trip->Cas(context_.view().Locate(write.slot, backup), write.v_old, write.v_new);
    }
    const Status status = co_await Post(context_, operation, round_trip);
    if (!status.ok()) co_return status;
    for (size_t i = 0; i < round_trip->size(); ++i) {
      const uint64_t found = round_trip->op(i).result;
      votes->push_back(found == write.v_old ? write.v_new : found);
    }
    co_return Status::Ok();
  }

  Task<Status> FixBackups(Operation& operation, const SlotWrite& write,
                          const std::vector<uint64_t>& votes) {
    if (mutant_ == RegisterMutant::kBackupsLeftUnfixed) co_return Status::Ok();
    RoundTripPtr round_trip = context_.fabric.NewRoundTrip();
    for (size_t i = 0; i < votes.size(); ++i) {
      if (votes[i] == write.v_new) continue;
      round_trip->Cas(context_.view().Locate(write.slot, static_cast<int>(i) + 1), votes[i],
                      write.v_new);
    }
    co_return co_await Post(context_, operation, round_trip);
  }

  Task<Result<SlotOutcome>> Lose(Operation& operation, const SlotWrite& write) {
    Backoff backoff(context_, operation);
    while (true) {
      const Result<uint64_t> primary = co_await ReadPrimary(operation, write.slot);
      if (!primary.ok()) co_return primary.status();
      if (primary.value() != write.v_old) co_return SlotOutcome{false, primary.value()};
      if (mutant_ == RegisterMutant::kLoserDoesNotWait) {
        // As if the winner's word were there already.
        co_return SlotOutcome{false, write.v_new};
      }
      if (!co_await backoff.Wait()) {
        co_return Status(StatusCode::kUnknownOutcome, "the winner is silent");
      }
    }
  }

  const RegisterMutant mutant_;
  WorkerContext& context_;
};

}  // namespace

std::unique_ptr<Engine> MakeMutableSnapshot(RegisterMutant mutant, WorkerContext& context) {
  return std::make_unique<MutableSnapshot>(mutant, context);
}

}  // namespace onetrip
