// RetryAcrossViews: which failures are worth another try, how often, and how long between them.
#include <gtest/gtest.h>

#include <cstdint>

#include "client_core/kv/core/retry.h"
#include "tests/support/test_cluster.h"

namespace onetrip {
namespace {

constexpr Status kLost(StatusCode::kUnknownOutcome, "a node did not answer");

class RetryAcrossViewsTest : public testing::Test {
 protected:
  explicit RetryAcrossViewsTest(DataPathOptions options = {})
      : worker_(cluster_, EngineKind::kSnapshot, options) {}

  WorkerContext& context() { return worker_->context(); }

  SystemClock clock_;
  TestCluster cluster_{clock_, {.nodes = 3, .replicas = 3, .node_bytes = 64ULL << 20}};
  ShmWorker worker_;
  Operation operation_;
};

class TwoRetries : public RetryAcrossViewsTest {
 protected:
  TwoRetries() : RetryAcrossViewsTest({.node_loss_retries_max = 2}) {}
};

class NoPatience : public RetryAcrossViewsTest {
 protected:
  NoPatience() : RetryAcrossViewsTest({.op_timeout_ms = 0}) {}
};

TEST_F(RetryAcrossViewsTest, OnlyALostNodeIsWorthIt) {
  const RetryAcrossViews retry(context(), operation_);
  EXPECT_TRUE(retry.IsWorth(kLost));
  EXPECT_TRUE(retry.IsWorth(Status(StatusCode::kUnavailable, "no channel")));
  EXPECT_FALSE(retry.IsWorth(Status::Ok()));
  EXPECT_FALSE(retry.IsWorth(Status(StatusCode::kOutOfMemory, "full")));
  EXPECT_FALSE(retry.IsWorth(Status(StatusCode::kCorrupt, "bytes")));
  EXPECT_FALSE(retry.IsWorth(Status(StatusCode::kFenced, "late")));
}

TEST_F(TwoRetries, AreAllThatTheOptionAllows) {
  RetryAcrossViews retry(context(), operation_);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(retry.IsWorth(kLost));
    BlockOn(worker_.executor(), retry.Wait());
  }
  EXPECT_FALSE(retry.IsWorth(kLost));
}

TEST_F(NoPatience, AnOperationOutOfTimeIsNotBegunAgain) {
  const RetryAcrossViews retry(context(), operation_);
  EXPECT_FALSE(retry.IsWorth(kLost));
}

}  // namespace
}  // namespace onetrip
