// Transactions on one key, which may take several attempts: what others hear of those.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "redis_compat/dispatch/command_table.h"
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
  EXPECT_EQ(worker_.hooks.stats().keyspace_hits(), 2U);
  EXPECT_EQ(worker_.hooks.stats().keyspace_misses(), 0U);
  EXPECT_EQ(worker_.hooks.stats().error_replies(), 1U);
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

constexpr const char* kRefused =
    "-EXECABORT Transaction discarded because the keys that it watches and uses are more than one: "
    "WATCH works for transactions on a single key so far. Nothing was executed.\r\n";

class RedisWatch : public testing::Test {
 protected:
  // Returns the answer of EXEC behind `watches` (whole commands), a MULTI and the queued `body`.
  std::string Exec(const std::vector<std::string>& watches, const std::vector<std::string>& body) {
    for (const std::string& command : watches) EXPECT_EQ(client_(command), "+OK\r\n") << command;
    EXPECT_EQ(client_("MULTI"), "+OK\r\n");
    for (const std::string& command : body) EXPECT_EQ(client_(command), "+QUEUED\r\n") << command;
    return client_("EXEC");
  }

  RedisWorker worker_;
  RedisClient client_{worker_};
  RedisClient other_{worker_};
};

TEST_F(RedisWatch, OverSeveralKeysIsRefusedAndNothingIsExecuted) {
  EXPECT_EQ(Exec({"WATCH a b"}, {"SET a 1"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a", "WATCH b"}, {"SET a 1"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a b"}, {}), kRefused);
  EXPECT_EQ(Exec({"WATCH a"}, {"SET b 1"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a"}, {"SET a 1", "GET b"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a"}, {"MGET a b"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a"}, {"SET a 1", "DBSIZE"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a"}, {"FLUSHALL"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a"}, {"COPY a a DB 1"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a"}, {"MOVE a 1"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a", "SELECT 1"}, {"SET a 1"}), kRefused);
  EXPECT_EQ(Exec({"WATCH a"}, {"SELECT 0", "SET a 1"}), kRefused);  // database 1's
  EXPECT_EQ(client_("SELECT 0"), "+OK\r\n");
  EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
}

TEST_F(RedisWatch, IsForgottenByAnExecThatWasRefused) {
  EXPECT_EQ(Exec({"WATCH a b"}, {"SET a 1"}), kRefused);
  EXPECT_EQ(other_("SET a 2"), "+OK\r\n");
  EXPECT_EQ(Exec({}, {"SET a 3", "SET b 3"}), "*2\r\n+OK\r\n+OK\r\n");
}

TEST_F(RedisWatch, OfOneKeyGuardsWhatIsAboutThatKey) {
  EXPECT_EQ(Exec({"WATCH a", "WATCH a a"}, {"SET a 1", "MGET a a"}),
            "*2\r\n+OK\r\n*2\r\n$1\r\n1\r\n$1\r\n1\r\n");
  EXPECT_EQ(Exec({"WATCH a"}, {}), "*0\r\n");
}

TEST_F(RedisWatch, OfOneKeyAllowsCommandsWithoutKeysThatRunOnceInOrder) {
  EXPECT_EQ(Exec({"WATCH a"}, {"PING", "SET a 2", "ECHO x", "GET a", "INCR a", "PING"}),
            "*6\r\n+PONG\r\n+OK\r\n$1\r\nx\r\n$1\r\n2\r\n:3\r\n+PONG\r\n");
  EXPECT_EQ(client_("WATCH a"), "+OK\r\n");
  EXPECT_EQ(other_("SET a 9"), "+OK\r\n");
  EXPECT_EQ(Exec({}, {"CLIENT SETNAME me", "SET a 1"}), "*-1\r\n");
  EXPECT_EQ(client_("CLIENT GETNAME"), "$-1\r\n");
  EXPECT_EQ(client_("GET a"), "$1\r\n9\r\n");
}

TEST_F(RedisWatch, FollowsSelectInsideTheTransaction) {
  EXPECT_EQ(Exec({"WATCH a", "SELECT 3"}, {"SELECT 0", "SELECT 99", "SET a 1", "SELECT 5"}),
            "*4\r\n+OK\r\n-ERR DB index is out of range\r\n+OK\r\n+OK\r\n");
  EXPECT_EQ(client_("GET a"), "$-1\r\n");
  EXPECT_EQ(client_("SELECT 0"), "+OK\r\n");
  EXPECT_EQ(client_("GET a"), "$1\r\n1\r\n");
}

}  // namespace
}  // namespace onetrip
