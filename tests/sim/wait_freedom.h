// WaitFreedom: whether GETs end within their bound while other agents stand still in the middle of
// their writes (SWARM C.2; client_core/PROTOCOLS.md, "Waiting").
//
// A GET waits for no other agent, with one exception: it meets a register that has been sealed,
// whose slot is in the middle of a SNAPSHOT write by an agent that does not go on. Only the master
// may finish that write; the GET gives up after op_timeout_ms.
#ifndef ONETRIP_TESTS_SIM_WAIT_FREEDOM_H_
#define ONETRIP_TESTS_SIM_WAIT_FREEDOM_H_

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/cluster/view.h"
#include "client_core/fabric/sim.h"
#include "tests/sim/agent.h"
#include "tests/sim/plan.h"
#include "tests/support/history.h"

namespace onetrip {

// Events that a GET has met on its way, on which its bound depends.
struct MetByRead {
  uint64_t helps = 0;      // registers whose end it helped with: it froze them
  uint64_t forgotten = 0;  // registers that its agent may have forgotten under its lookups
  uint64_t polls = 0;      // looks at the primary slot of a round that it lost
  uint64_t lost_cas = 0;   // CASes that found another word than expected
};

// The most round trips of a GET beside `writers` workers that write, if no node is lost and no
// subtable splits.
constexpr uint64_t ReadRoundTripsMax(uint32_t writers, const MetByRead& met) {
  // The cached slot, its newer record, the buckets, what has the key's fingerprint.
  constexpr uint64_t kLookup = 4;
  // M.read: the lanes, the buffer, each widened once; its write-back; a lock.
  constexpr uint64_t kIteration = 6;
  // The seals; F, widened once; a round that is won: two CASes, log, the backups, a look at the
  // primary.
  constexpr uint64_t kHelp = 8;
  const uint64_t iterations = 2 * uint64_t{writers} + 1;
  // The register known beforehand, the one that a lookup finds, another after each that has ended.
  return (1 + met.helps + met.forgotten) * kLookup + (2 + met.helps) * iterations * kIteration +
         met.helps * kHelp + met.polls + met.lost_cas;
}

struct WaitFreedomReport {
  uint64_t reads = 0;         // GETs that were watched
  uint64_t among_frozen = 0;  // GETs that began when an agent stood still
  uint64_t helped = 0;        // ... and helped to end a register
  uint64_t excused = 0;       // ... and waited in vain, as they may
  uint64_t round_trips_max = 0;
};

// Watches the GETs of agents that no fault of the plan freezes. Passes on what it observes.
class WaitFreedom final : public SimObserver {
 public:
  // `next` and the nodes outlive it. `view`: where things lie. REQUIRES: agents that are not frozen
  // have one client each.
  WaitFreedom(const Plan& plan, SimObserver& next, std::vector<MemoryEndpoint*> nodes,
              const View& view);

  void Posted(const SimFabric& fabric, NodeId node, const RoundTrip& round_trip,
              uint64_t ops) override;
  void Applied(const SimFabric& fabric, NodeId node, const FabricOp& op) override;
  void Answered(const SimFabric& fabric, NodeId node, bool ok) override;

  // How things stand in the whole cluster.
  struct Moment {
    size_t frozen = 0;             // agents that stand still
    uint64_t registers_ended = 0;  // so far
  };
  // A command of `agent` begins.
  void Began(Agent& agent, const Moment& moment);
  // It has ended. What is wrong; empty: nothing.
  std::string Ended(Agent& agent, const HistoryOp& op, const Moment& moment);

  [[nodiscard]] const WaitFreedomReport& report() const { return report_; }

 private:
  // The counts of one agent's fabric.
  struct Meter {
    uint64_t seals = 0;
    uint64_t polls = 0;
    uint64_t lost_cas = 0;
    uint64_t round_trips = 0;  // for its GETs so far; not kept up
    bool among_frozen = false;
  };
  Meter& MeterOf(const SimFabric& fabric);
  // Returns true if the key's register is sealed and its slot in the middle of a SNAPSHOT write.
  [[nodiscard]] bool WaitsForTheMaster(std::string_view key) const;
  [[nodiscard]] const std::byte* At(GlobalAddr addr, int replica) const;
  [[nodiscard]] uint64_t WordAt(GlobalAddr addr, int replica) const;

  SimObserver& next_;
  const std::vector<MemoryEndpoint*> nodes_;
  const View view_;
  std::set<uint32_t> frozen_;  // agents that the plan freezes, sooner or later
  uint32_t writers_ = 0;
  std::vector<Meter> meters_;  // by fabric
  std::vector<Meter> begun_;   // ... when its agent's command began
  WaitFreedomReport report_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_WAIT_FREEDOM_H_
