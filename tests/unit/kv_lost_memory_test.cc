// A worker notices that it has lost memory, and looks for it.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr ClusterShape kShape{.nodes = 3, .replicas = 3, .node_bytes = 32ULL << 20};

// Counts looks for lost memory.
class LookCounter final : public MechanismObserver {
 public:
  void Began(Mechanism mechanism) override { looks += mechanism == Mechanism::kAccount ? 1 : 0; }
  void Ended(Mechanism /*mechanism*/) override {}
  int looks = 0;
};

// One worker, whose network the test cuts.
class LostMemoryTest : public testing::Test {
 protected:
  LostMemoryTest() {
    DataPathOptions options;
    options.location_cache_bytes = 1 << 18;
    options.epoch_tick_us = 1000;
    options.account_rest_us = 1000;
    options.op_timeout_ms = 50;
    auto fabric = std::make_unique<SimFabric>(executor_, cluster_.endpoints(), kWholeSteps);
    fabric_ = fabric.get();
    worker_ = std::make_unique<TestWorker>(cluster_, executor_, std::move(fabric),
                                           EngineKind::kSnapshot, options);
    worker_->context().mechanism_observer = &counter_;
    worker_->Start();
  }
  // Nothing is given back: the last outcomes are not known.
  ~LostMemoryTest() override { BlockOn(executor_, Sleep()); }

  Task<void> Sleep() { co_await executor_.SleepFor(20'000'000); }
  void SleepLong() {
    for (int i = 0; i < 100; ++i) BlockOn(executor_, Sleep());
  }
  static void SetCut(SimFabric& fabric, bool cut) {
    for (uint16_t node = 0; node < kShape.nodes; ++node) fabric.SetCut(NodeId{node}, cut);
  }
  // Cuts the network amid a write, ever later in it, until the outcome of one is not known; resets
  // the counter of such before the worker's next tick.
  void LeaveAnOutcomeUnknown() {
    bool is_unknown = false;
    for (uint64_t after_ns = 200; !is_unknown; after_ns += 200) {
      ASSERT_LT(after_ns, 100'000U);
      looks_before_ = counter_.looks;
      executor_.At(
          executor_.NowNs() + after_ns,
          [](void* fabric) { SetCut(*static_cast<SimFabric*>(fabric), true); }, fabric_);
      const Status status = worker_->Set("key", std::string(100, 'v'));
      is_unknown = status.code() == StatusCode::kUnknownOutcome;
      ASSERT_EQ(unknown().Value(), is_unknown ? 1U : 0U);
      unknown().Reset();
      BlockOn(executor_, Sleep());
      SetCut(*fabric_, false);
      // A write that has failed may have left something: it is looked for before the next.
      if (!is_unknown) SleepLong();
    }
  }
  Counter& unknown() { return worker_->kv().metrics().unknown_outcomes; }

  SimExecutor executor_{1};
  TestCluster cluster_{executor_.clock(), kShape};
  LookCounter counter_;
  int looks_before_ = 0;  // before the write whose outcome is not known
  SimFabric* fabric_ = nullptr;
  std::unique_ptr<TestWorker> worker_;
};

// The worker compares, at its ticks, a count that CONFIG RESETSTAT does not set back. A counter
// that it does would hide the loss, if it were reset before the next tick or had grown to the same
// value again by then.
TEST_F(LostMemoryTest, AnUnknownOutcomeIsNoticedThoughItsCounterIsReset) {
  ASSERT_TRUE(worker_->Set("key", "v").ok());
  SleepLong();
  const int looks = counter_.looks;
  SleepLong();
  ASSERT_EQ(counter_.looks, looks) << "nothing is lost";
  LeaveAnOutcomeUnknown();
  SleepLong();
  EXPECT_GT(counter_.looks, looks_before_);
}

}  // namespace
}  // namespace onetrip
