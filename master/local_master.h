// LocalMaster: the master inside this process, for the embedded agent, tests and the simulation.
#ifndef ONETRIP_MASTER_LOCAL_MASTER_H_
#define ONETRIP_MASTER_LOCAL_MASTER_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "client_core/base/clock.h"
#include "client_core/cluster/master_client.h"
#include "master/membership.h"

namespace onetrip {

// Thread-safe: one for all workers of the process.
class LocalMaster final : public MasterClient {
 public:
  // `clock` outlives it; its wall time at this moment becomes the cluster's.
  LocalMaster(MembershipState state, const Clock& clock);

  [[nodiscard]] std::shared_ptr<const View> view() const override;
  Task<Result<Membership>> Join(ViewHold& hold) override;
  Task<Status> Leave(ViewHold& hold, Membership membership) override;
  Task<Status> FlushKeyspaces(ViewHold& hold, std::optional<uint32_t> database) override;

 private:
  // Makes the state's view the committed one. REQUIRES: mutex_ held.
  void Commit();

  mutable std::mutex mutex_;
  MembershipState state_;
  std::shared_ptr<const View> view_;
};

}  // namespace onetrip

#endif  // ONETRIP_MASTER_LOCAL_MASTER_H_
