// LocalMaster: the master inside this process, for the embedded agent, tests and the simulation.
#ifndef ONETRIP_MASTER_LOCAL_MASTER_H_
#define ONETRIP_MASTER_LOCAL_MASTER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "client_core/base/clock.h"
#include "client_core/cluster/master_client.h"
#include "client_core/cluster/quiesce.h"
#include "master/membership.h"

namespace onetrip {

// Thread-safe: one for all workers of the process. Outlives their executors.
class LocalMaster final : public MasterClient {
 public:
  // `clock` outlives it; its wall time at this moment becomes the cluster's.
  LocalMaster(MembershipState state, const Clock& clock);

  [[nodiscard]] std::shared_ptr<const View> view() const override;
  Task<Result<Membership>> Join(Quiesce& hold) override;
  Task<Status> Leave(Quiesce& hold, Membership membership) override;
  Task<Status> FlushKeyspaces(Quiesce& hold, std::optional<uint32_t> database) override;
  // Waits as long as the slowest worker takes to end what is under way.
  Task<Status> SwapKeyspaces(Quiesce& hold, uint32_t first, uint32_t second) override;

 private:
  using MailboxPtr = std::shared_ptr<Quiesce::Mailbox>;
  struct Swap;
  class SwapAwaiter;

  // Makes the state's view the committed one. REQUIRES: mutex_ held.
  void Commit();
  // It waits for its turn; the first of several makes all workers hold.
  void Enqueue(Swap* swap);
  // Every worker stands still, or is gone: makes all swaps that wait, and lets the workers go on.
  void CommitSwaps();

  mutable std::mutex mutex_;
  MembershipState state_;
  std::shared_ptr<const View> view_;
  std::vector<MailboxPtr> workers_;
  std::vector<Swap*> swaps_;  // that wait; not empty: workers hold, or are about to
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_LOCAL_MASTER_H_
