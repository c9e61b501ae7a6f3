// Commands of a connection that are under way together: replies in order, keys apart.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "client_core/coro/sim_executor.h"
#include "frontend/overlap.h"

namespace onetrip {
namespace {

class OverlapTest : public testing::Test {
 protected:
  Overlap::Call& Add(std::string_view key) { return overlap_.Add(key, 2); }
  void End(Overlap::Call& call, std::string_view reply) {
    call.out().Raw(reply);
    overlap_.End(call, output_);
  }
  Task<void> AwaitTurn(Overlap::Call* call, bool* has_come) {
    co_await call->Await();
    *has_come = true;
  }

  SimExecutor executor_{1};
  Overlap overlap_{executor_};
  OutputBuffer output_;
};

TEST_F(OverlapTest, RepliesAreInTheOrderOfTheCommandsInWhateverOrderTheseEnd) {
  std::array<int, 4> order = {0, 1, 2, 3};
  const std::array<std::string_view, 4> replies = {"a", "", "c", "d"};
  do {
    std::array<Overlap::Call*, 4> calls{};
    for (size_t i = 0; i < calls.size(); ++i)
      calls[i] = &Add(std::string_view("0123").substr(i, 1));
    size_t ended = 0;
    for (const int which : order) {
      EXPECT_FALSE(overlap_.empty());
      End(*calls[which], replies[which]);
      ++ended;
      EXPECT_EQ(overlap_.empty(), ended == calls.size());
    }
    EXPECT_EQ(output_.TEST_ToString(), "acd");
    output_.Clear();
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_LT(overlap_.memory_bytes(), 16U << 10);
}

TEST_F(OverlapTest, AKeyIsTakenUntilItsCommandHasRun) {
  Overlap::Call& first = Add("a");
  Overlap::Call& second = Add("b");
  EXPECT_TRUE(overlap_.Has("a"));
  EXPECT_TRUE(overlap_.Has("b"));
  EXPECT_FALSE(overlap_.Has("ab"));
  End(second, "2");
  EXPECT_FALSE(overlap_.Has("b"));
  Overlap::Call& third = Add("b");
  EXPECT_TRUE(overlap_.Has("b"));
  EXPECT_TRUE(output_.empty());
  End(third, "3");
  End(first, "1");
  EXPECT_EQ(output_.TEST_ToString(), "123");
}

TEST_F(OverlapTest, ATurnHasComeWhenAllBeforeItAreAnswered) {
  Overlap::Call& first = Add("a");
  Overlap::Call& second = Add("b");
  Overlap::Call& third = Add("c");
  EXPECT_TRUE(first.has_come());
  bool has_come = false;
  Gate gate(executor_);
  executor_.Spawn(gate, AwaitTurn(&third, &has_come));
  End(second, "2");
  executor_.RunUntil(executor_.NowNs() + 1000);
  EXPECT_FALSE(has_come);
  EXPECT_FALSE(third.has_come());
  End(first, "1");
  executor_.RunUntil(executor_.NowNs() + 1000);
  EXPECT_TRUE(has_come);
  EXPECT_TRUE(third.has_come());
  End(third, std::string(100'000, '3'));
  EXPECT_EQ(output_.size(), 100'002U);
  EXPECT_TRUE(overlap_.empty());
}

}  // namespace
}  // namespace onetrip
