// The checker of the explorer: histories known to be good and bad.
#include <gtest/gtest.h>

#include "tests/explore/monitor.h"
#include "tests/explore/register_scope.h"

namespace onetrip {
namespace {

// Three clients: two write and one reads; operations of a client run one after the other.
class ExploreMonitor : public testing::Test {
 protected:
  static RegisterScope MakeScope() {
    RegisterScopeOptions options;
    options.programs = {"WI", "W", "RRR"};
    return RegisterScope(options);
  }
  static uint64_t ValueBy(size_t client, size_t op) {
    return RegisterScope::ValueOf(RegisterScope::WordOf(client, op, 0, false).bits());
  }
  void Start(size_t client, size_t op) { state_ = monitor_.Start(state_, client, op); }
  bool Return(size_t client, size_t op, uint64_t result) {
    state_ = monitor_.Return(state_, client, op, result);
    return state_ != Monitor::kViolated;
  }

  const RegisterScope scope_ = MakeScope();
  Monitor monitor_{scope_};
  Monitor::StateId state_ = Monitor::kInitial;
};

TEST_F(ExploreMonitor, ReadOfAWriteStillOpenIsFine) {
  Start(0, 0);
  Start(2, 0);
  EXPECT_TRUE(Return(2, 0, ValueBy(0, 0)));
  EXPECT_TRUE(Return(0, 0, 0));
}

TEST_F(ExploreMonitor, ReadBackIntoThePastIsNot) {
  Start(0, 0);
  Start(2, 0);
  ASSERT_TRUE(Return(2, 0, ValueBy(0, 0)));
  Start(2, 1);
  EXPECT_FALSE(Return(2, 1, 0));
}

TEST_F(ExploreMonitor, StaleReadAfterAWriteReturnedIsNot) {
  Start(0, 0);
  ASSERT_TRUE(Return(0, 0, 0));
  Start(2, 0);
  EXPECT_FALSE(Return(2, 0, 0));
}

TEST_F(ExploreMonitor, WriteThatIsSeenTwiceIsNot) {
  Start(0, 0);
  Start(1, 0);
  Start(2, 0);
  ASSERT_TRUE(Return(2, 0, ValueBy(0, 0)));
  Start(2, 1);
  ASSERT_TRUE(Return(2, 1, ValueBy(1, 0)));
  Start(2, 2);
  EXPECT_FALSE(Return(2, 2, ValueBy(0, 0)));
}

TEST_F(ExploreMonitor, LostUpdateIsNot) {
  Start(0, 0);
  ASSERT_TRUE(Return(0, 0, 0));
  Start(0, 1);
  Start(1, 0);
  ASSERT_TRUE(Return(1, 0, 0));
  // It replaced the first write, so the second one came after it and must be there now.
  ASSERT_TRUE(Return(0, 1, ValueBy(0, 0)));
  Start(2, 0);
  EXPECT_FALSE(Return(2, 0, ValueBy(0, 1)));
}

TEST_F(ExploreMonitor, UnknownWriteMayHappenLateOrNever) {
  Start(0, 0);
  state_ = monitor_.ReturnUnknown(state_, 0, 0);
  Start(2, 0);
  ASSERT_TRUE(Return(2, 0, 0));
  EXPECT_TRUE(monitor_.MayBe(state_, 0));
  Start(2, 1);
  ASSERT_TRUE(Return(2, 1, ValueBy(0, 0)));
  EXPECT_FALSE(monitor_.MayBe(state_, 0));
}

TEST_F(ExploreMonitor, UnknownReadIsForgotten) {
  Start(2, 0);
  state_ = monitor_.ReturnUnknown(state_, 2, 0);
  EXPECT_EQ(state_, Monitor::kInitial);
}

}  // namespace
}  // namespace onetrip
