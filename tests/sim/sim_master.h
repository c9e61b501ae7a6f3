// SimMaster: the master's real state machine behind a slow network, and sometimes not there.
#ifndef ONETRIP_TESTS_SIM_SIM_MASTER_H_
#define ONETRIP_TESTS_SIM_SIM_MASTER_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client_core/coro/sim_executor.h"
#include "master/local_master.h"

namespace onetrip {

// The master itself, as all agents share it.
class SimMaster {
 public:
  SimMaster(MembershipState state, SimExecutor& world)
      : world_(world), master_(std::move(state), world.clock()) {}

  // Down: requests fail as surely not done. What it has committed it still has afterwards.
  void SetDown(bool down) { down_ = down; }

 private:
  friend class SimMasterClient;
  SimExecutor& world_;
  LocalMaster master_;
  std::vector<class SimMasterClient*> clients_;
  bool down_ = false;
};

// One agent's connection to it: requests take their time, a new view is heard of at once.
class SimMasterClient final : public MasterClient {
 public:
  // `process`: the agent's executor.
  SimMasterClient(Executor& process, SimMaster& server) : process_(process), server_(server) {
    server_.clients_.push_back(this);
    view_version_.store(server_.master_.view_version());
    clock_offset_us_.store(server_.master_.clock_offset_us());
  }
  ~SimMasterClient() override { std::erase(server_.clients_, this); }
  SimMasterClient(const SimMasterClient&) = delete;
  SimMasterClient& operator=(const SimMasterClient&) = delete;

  [[nodiscard]] std::shared_ptr<const View> view() const override { return server_.master_.view(); }
  Task<Result<Membership>> Join(ViewHold& hold) override {
    co_await process_.SleepFor(Latency());
    if (server_.down_) co_return Down();
    Result<Membership> membership = co_await server_.master_.Join(hold);
    Announce();
    co_await process_.SleepFor(Latency());
    co_return membership;
  }
  Task<Status> Leave(ViewHold& hold, Membership membership) override {
    co_await process_.SleepFor(Latency());
    if (server_.down_) co_return Down();
    const Status status = co_await server_.master_.Leave(hold, membership);
    Announce();
    co_return status;
  }
  Task<Status> FlushKeyspaces(ViewHold& hold, std::optional<uint32_t> database) override {
    co_await process_.SleepFor(Latency());
    if (server_.down_) co_return Down();
    const Status status = co_await server_.master_.FlushKeyspaces(hold, database);
    Announce();
    co_return status;
  }

 private:
  uint64_t Latency() { return 2000 + server_.world_.rng().Below(100'000); }
  static Status Down() { return Status(StatusCode::kUnavailable, "the master does not answer"); }
  void Announce() {
    for (SimMasterClient* client : server_.clients_) {
      client->view_version_.store(server_.master_.view_version());
    }
  }

  Executor& process_;
  SimMaster& server_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_SIM_MASTER_H_
