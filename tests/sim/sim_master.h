// SimMaster: the master's process of a simulated world: the product's state machine, driven as
// master/master_driver.cc drives it (event, store, messages, in this order), in virtual time.
//
// The store is in memory and slow: while it is written the process does nothing else. A crash loses
// everything that is not in it, a write under way perhaps; the next life begins with what it holds.
// What the master says is watched over all lives: it must never contradict itself.
#ifndef ONETRIP_TESTS_SIM_SIM_MASTER_H_
#define ONETRIP_TESTS_SIM_SIM_MASTER_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client_core/coro/sim_executor.h"
#include "master/coordinator.h"
#include "master/membership.h"
#include "tests/sim/control_connection.h"
#include "tests/sim/control_settings.h"
#include "tests/sim/trace.h"

namespace onetrip {

class SimMaster final : private ControlConnection::MasterEnd {
 public:
  static constexpr uint64_t kCluster = 0xc0ffee;

  // Up from the start. What it is given outlives it.
  SimMaster(SimExecutor& world, const ControlSettings& settings, const ClusterShape& shape,
            Trace& trace);
  SimMaster(const SimMaster&) = delete;
  SimMaster& operator=(const SimMaster&) = delete;
  ~SimMaster() override;

  // A connection of `end`, the process `name`; lives as long as this object. Later it shows if a
  // master is there to hear it.
  ControlConnection& Dial(const std::string& name, ControlConnection::MemberEnd& end);

  void Crash();
  void Restart();
  [[nodiscard]] bool up() const { return coordinator_.has_value(); }
  // Another process answers at its address from now on, until Restart(): one that refuses every
  // member and proves nothing, a master with an empty data directory, or one with a copy of the
  // state as it was when the map had just been made. The master itself is down.
  enum class Impostor : uint8_t { kStranger, kEmptyDirectory, kOldCopy };
  void Impersonate(Impostor impostor);
  // Stands still: what arrives meanwhile waits.
  void SetPaused(bool paused);
  // Every write fails, as on a full disk.
  void SetStoreFailing(bool failing) { store_failing_ = failing; }

  // The operator asks it what is to become of a node's regions, with a tool; no answer is awaited.
  void AskToMoveRegions(uint32_t node, NodeWish wish);
  // Nodes that it calls drained, whose loss must not matter; none while regions are to be moved
  // that have room elsewhere, or while it is down.
  [[nodiscard]] bool SettledMoves(std::vector<NodeId>* drained) const;
  // The text that `status` says of moves.
  [[nodiscard]] std::string moving() const {
    return up() ? coordinator_->Status(NowUs()).moving : "the master is away";
  }

  // Called when newest_view() is another one.
  void SetOnView(std::function<void()> on_view) { on_view_ = std::move(on_view); }

  // The first wrong thing that it said; empty if nothing.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] uint64_t flushes() const { return flushes_; }
  [[nodiscard]] uint64_t swaps() const { return swaps_; }
  // Views with fewer regions than the last.
  [[nodiscard]] uint64_t shrunk() const { return shrunk_; }
  // How often blocks of the dead have been taken over.
  [[nodiscard]] uint64_t taken_over() const { return taken_over_; }
  [[nodiscard]] uint64_t expelled() const { return expelled_; }
  // The newest view that any member was sent. REQUIRES: a member was sent one.
  [[nodiscard]] const View& newest_view() const { return *newest_view_; }

 private:
  // An event of the state machine, and what is done when it is known whether it happened: nothing
  // does while the store fails.
  using EventFn = std::function<void(Coordinator&, uint64_t now_us)>;
  using SettleFn = std::function<void(bool happened)>;
  struct Writing {
    CoordinatorEffects effects;
    SettleFn settle;
    std::optional<Coordinator> before;  // there if the write fails
  };

  void Heard(ControlConnection& connection, FromMemberMessage message) override;
  static void OnTickTime(void* master);
  static void OnWritten(void* master);
  void Enqueue(std::function<void()> work);
  // Does what there is to do, until it has to wait for the store.
  void Work();
  void Tick();
  void Begin(uint64_t cluster);
  void OnHello(ControlConnection& connection, const MemberHello& hello);
  void Save(const DurableChange& change);
  void OnMessage(ControlConnection& connection, const MemberMessage& message);
  void OnEnd(ControlConnection& connection, bool has_ended);
  // Drives `event`, again and again until the store takes it.
  void DriveUntilItHappens(const EventFn& event);
  void Drive(const EventFn& event, const SettleFn& settle);
  void Perform(CoordinatorEffects effects);
  void Watch(const ControlConnection& connection, const MasterMessage& message);
  void WatchView(const View& view);
  void WatchTime(uint64_t time_us);
  void Fail(std::string text);
  [[nodiscard]] uint64_t NowUs() const { return world_.NowNs() / 1000; }
  [[nodiscard]] uint64_t TickNs() const { return settings_.lease_ms * 1'000'000 / 4; }

  SimExecutor& world_;
  const ControlSettings& settings_;
  Trace& trace_;
  CoordinatorOptions options_;
  std::vector<std::unique_ptr<ControlConnection>> connections_;  // by id - 1; of all lives

  // Survives a crash.
  DurableState disk_;
  DurableState old_copy_;                  // from when it had just made the map
  std::optional<DurableState> set_aside_;  // the true one, while another process has another
  bool stranger_answers_ = false;
  uint64_t lives_ = 0;
  bool store_failing_ = false;

  // One life.
  std::optional<Coordinator> coordinator_;
  uint64_t changes_ = 0;                             // times that it may have become another one
  mutable std::optional<uint64_t> unsettled_as_of_;  // SettledMoves: `changes_`, when it was false
  bool paused_ = false;
  std::deque<std::function<void()>> inbox_;
  size_t batch_ = 0;  // events of the inbox, to be done before the next tick
  bool tick_due_ = false;
  uint64_t next_tick_ns_ = 0;
  std::optional<Writing> writing_;
  uint64_t written_ns_ = 0;  // when writing_ will be
  std::vector<EventFn> retries_;

  // Everything that it has said, over all lives.
  std::string failure_;
  std::set<uint32_t> workers_given_;
  std::shared_ptr<const View> newest_view_;
  std::function<void()> on_view_;
  std::map<uint64_t, std::shared_ptr<const View>> views_;
  uint64_t told_us_ = 0;
  uint64_t flushes_ = 0;
  uint64_t swaps_ = 0;  // swaps in which nothing was flushed
  uint64_t expelled_ = 0;
  uint64_t shrunk_ = 0;
  uint64_t take_over_ = 0;  // the last order
  uint64_t taken_over_ = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_SIM_SIM_MASTER_H_
