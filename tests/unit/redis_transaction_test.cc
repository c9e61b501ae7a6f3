// Transactions on one key, which may take several attempts: what others hear of those.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "redis_compat/command_table.h"
#include "tests/support/racing_kv.h"
#include "tests/unit/redis_client.h"

namespace onetrip {
namespace {

class RedisTransaction : public testing::Test {
 protected:
  CommandTotals Totals() {
    CommandTotals totals;
    worker_.hooks.SumCommandStats(&totals);
    return totals;
  }
  uint64_t Calls(std::string_view name) {
    return Totals().commands[CommandId(*FindCommand(name))].calls;
  }

  RedisWorker worker_;
  // Two attempts are in vain.
  RacingKv racing_{worker_.worker->kv(), 2, "10"};
  RedisClient client_{worker_, racing_};
};

TEST_F(RedisTransaction, AttemptsInVainAreNeitherCountedNorShown) {
  worker_.hooks.observation().monitors = 1;
  EXPECT_EQ(client_.Send("MULTI\r\nINCR k\r\nGET k\r\nGETSET k x\r\nINCR k\r\nEXEC\r\n"),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n"
            "*4\r\n:11\r\n$2\r\n11\r\n$2\r\n11\r\n"
            "-ERR value is not an integer or out of range\r\n");
  EXPECT_EQ(Calls("incr"), 2U);
  EXPECT_EQ(Calls("get"), 1U);
  EXPECT_EQ(Calls("exec"), 1U);
  const CommandTotals totals = Totals();
  EXPECT_EQ(totals.keyspace_hits, 2U);
  EXPECT_EQ(totals.keyspace_misses, 0U);
  EXPECT_EQ(totals.error_replies, 1U);
  EXPECT_EQ(totals.commands[CommandId(*FindCommand("incr"))].failed, 1U);
  const std::string& shown = worker_.hooks.monitored();
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 6) << shown;
  EXPECT_LT(shown.find("\"INCR\" \"k\""), shown.find("\"GET\" \"k\""));
  EXPECT_LT(shown.find("\"GET\" \"k\""), shown.find("\"EXEC\""));
}

TEST_F(RedisTransaction, WatchSeesTheFirstWriteOfOthers) {
  EXPECT_EQ(client_.Send("WATCH k\r\nMULTI\r\nINCR k\r\nEXEC\r\n"),
            "+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n");
  EXPECT_EQ(Calls("incr"), 0U);
}

}  // namespace
}  // namespace onetrip
