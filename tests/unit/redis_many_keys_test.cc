// Commands over very many keys: other connections have their turn meanwhile.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/redis_client.h"

namespace onetrip {
namespace {

class RedisManyKeys : public testing::Test {
 protected:
  static constexpr int kKeys = 5000;
  static constexpr uint64_t kTurnsAtLeast = 15;

  // Calls `name` with all keys, each with `value` behind it unless that is empty, and tells in
  // turns() how many turns others would have had.
  std::string Over(std::vector<std::string> arguments, const std::string& value = "") {
    for (int i = 0; i < kKeys; ++i) {
      arguments.push_back("k" + std::to_string(i));
      if (!value.empty()) arguments.push_back(value);
    }
    const uint64_t before = worker_.worker.executor().turns();
    std::string reply = client_.Call(arguments);
    turns_ = worker_.worker.executor().turns() - before;
    return reply;
  }
  [[nodiscard]] uint64_t turns() const { return turns_; }

  RedisWorker worker_;
  RedisClient client_{worker_};
  uint64_t turns_ = 0;
};

TEST_F(RedisManyKeys, LeaveTurnsToOthers) {
  const std::string all = ":" + std::to_string(kKeys) + "\r\n";
  EXPECT_EQ(Over({"MSET"}, "v"), "+OK\r\n");
  EXPECT_GE(turns(), kTurnsAtLeast);
  EXPECT_TRUE(Over({"MGET"}).ends_with("$1\r\nv\r\n"));
  EXPECT_GE(turns(), kTurnsAtLeast);
  EXPECT_EQ(Over({"EXISTS"}), all);
  EXPECT_GE(turns(), kTurnsAtLeast);
  EXPECT_EQ(Over({"BITOP", "AND", "and"}), ":1\r\n");
  EXPECT_GE(turns(), kTurnsAtLeast);
  EXPECT_EQ(Over({"DEL"}), all);
  EXPECT_GE(turns(), kTurnsAtLeast);
  EXPECT_EQ(Over({"PFMERGE", "hll"}), "+OK\r\n");
  EXPECT_GE(turns(), kTurnsAtLeast);
  EXPECT_EQ(Over({"MSETNX"}, "v"), ":1\r\n");
  EXPECT_GE(turns(), kTurnsAtLeast);
  EXPECT_TRUE(Over({"MSETNX"}, "w").ends_with(":0\r\n"));
}

TEST_F(RedisManyKeys, InOneTransactionLeaveTurnsToOthers) {
  std::string commands = "MULTI\r\n";
  for (int i = 0; i < kKeys; ++i) commands += "SET k" + std::to_string(i) + " v\r\n";
  client_.Send(commands);
  const uint64_t before = worker_.worker.executor().turns();
  EXPECT_TRUE(client_.Send("EXEC\r\n").ends_with("+OK\r\n"));
  EXPECT_GE(worker_.worker.executor().turns() - before, kTurnsAtLeast);
}

// Comparing each with all others would take minutes.
TEST_F(RedisManyKeys, MayBeWatched) {
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Over({"WATCH"}), "+OK\r\n");
  EXPECT_EQ(client_.Send("MULTI\r\nPING\r\nEXEC\r\n").substr(0, 20), "+OK\r\n+QUEUED\r\n-EXECA");
}

}  // namespace
}  // namespace onetrip
