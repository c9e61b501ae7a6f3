// A C client library against a running agent: what an application that links hiredis relies on.
//
// The agent's port and unix socket come from ONETRIP_PORT and ONETRIP_SOCKET; run.py starts the
// agent and this program. hiredis 0.14 speaks RESP2 only.

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "tests/clients/hiredis_connection.h"

namespace onetrip {
namespace {

std::string Environment(const char* name) {
  const char* value = getenv(name);
  return value == nullptr ? "" : value;
}

HiredisConnection ConnectTcp() {
  return HiredisConnection::ToPort(std::stoi(Environment("ONETRIP_PORT")));
}

class HiredisTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (Environment("ONETRIP_PORT").empty()) GTEST_SKIP() << "ONETRIP_PORT is not set";
    connection_.emplace(ConnectTcp());
    ASSERT_FALSE(connection_->failed());
    ASSERT_NE(Call({"FLUSHALL"}), nullptr);
  }

  Reply Call(const std::vector<std::string>& args) { return connection_->Call(args); }
  void Append(const std::vector<std::string>& args) { connection_->Append(args); }
  Reply Next() { return connection_->Next(); }

  std::optional<HiredisConnection> connection_;
};

TEST_F(HiredisTest, RepliesHaveTheirTypes) {
  EXPECT_EQ(Call({"SET", "k", "v"})->type, REDIS_REPLY_STATUS);
  EXPECT_EQ(Call({"GET", "k"})->type, REDIS_REPLY_STRING);
  EXPECT_EQ(Call({"GET", "none"})->type, REDIS_REPLY_NIL);
  EXPECT_EQ(Call({"INCR", "n"})->type, REDIS_REPLY_INTEGER);
  EXPECT_EQ(Call({"INCR", "k"})->type, REDIS_REPLY_ERROR);
  EXPECT_EQ(Call({"MGET", "k", "none"})->type, REDIS_REPLY_ARRAY);
}

TEST_F(HiredisTest, SetGetIncrAndMsetDoWhatTheySay) {
  EXPECT_EQ(Text(Call({"SET", "k", "hello"})), "OK");
  EXPECT_EQ(Text(Call({"GET", "k"})), "hello");
  EXPECT_EQ(Call({"INCR", "n"})->integer, 1);
  EXPECT_EQ(Call({"INCRBY", "n", "41"})->integer, 42);
  EXPECT_EQ(Text(Call({"MSET", "a", "1", "b", "2"})), "OK");
  const Reply many = Call({"MGET", "a", "b", "c"});
  ASSERT_EQ(many->elements, 3U);
  EXPECT_STREQ(many->element[0]->str, "1");
  EXPECT_STREQ(many->element[1]->str, "2");
  EXPECT_EQ(many->element[2]->type, REDIS_REPLY_NIL);
  EXPECT_EQ(Call({"DEL", "a", "b", "c"})->integer, 2);
}

TEST_F(HiredisTest, APipelineIsAnsweredInOrder) {
  constexpr int kCommands = 20000;
  for (int i = 0; i < kCommands; ++i) {
    Append({"SET", "k" + std::to_string(i % 100), std::to_string(i)});
    Append({"GET", "k" + std::to_string(i % 100)});
  }
  for (int i = 0; i < kCommands; ++i) {
    ASSERT_EQ(Text(Next()), "OK");
    ASSERT_EQ(Text(Next()), std::to_string(i));
  }
}

TEST_F(HiredisTest, KeysAndValuesMayHoldAnyBytes) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  EXPECT_EQ(Text(Call({"SET", bytes, bytes + bytes})), "OK");
  EXPECT_EQ(Text(Call({"GET", bytes})), bytes + bytes);
  EXPECT_EQ(Text(Call({"SET", "", ""})), "OK");
  EXPECT_EQ(Text(Call({"GET", ""})), "");
  const std::string like_resp = "*1\r\n$4\r\nPING\r\n";
  EXPECT_EQ(Text(Call({"SET", "k", like_resp})), "OK");
  EXPECT_EQ(Text(Call({"GET", "k"})), like_resp);
}

TEST_F(HiredisTest, AValueOfOneMebibyteComesBackWhole) {
  std::string value(size_t{1} << 20, '\0');
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 131 >> 3);
  EXPECT_EQ(Text(Call({"SET", "big", value})), "OK");
  EXPECT_EQ(Text(Call({"GET", "big"})), value);
  EXPECT_EQ(Call({"STRLEN", "big"})->integer, 1 << 20);
}

TEST_F(HiredisTest, DataOutlivesTheConnection) {
  EXPECT_EQ(Text(Call({"SET", "k", "kept"})), "OK");
  ASSERT_TRUE(connection_->Reconnect());
  EXPECT_EQ(Text(Call({"GET", "k"})), "kept");
  connection_ = ConnectTcp();
  EXPECT_EQ(Text(Call({"GET", "k"})), "kept");
}

TEST_F(HiredisTest, AProtocolErrorClosesAndAReconnectHeals) {
  EXPECT_EQ(redisAppendFormattedCommand(connection_->context(), "*1\r\n$x\r\n", 8), REDIS_OK);
  const Reply error = Next();
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(Text(error), "ERR Protocol error: invalid bulk length");
  EXPECT_EQ(Call({"PING"}), nullptr);
  ASSERT_TRUE(connection_->Reconnect());
  EXPECT_EQ(Text(Call({"PING"})), "PONG");
}

TEST_F(HiredisTest, TheUnixSocketServesTheSameData) {
  EXPECT_EQ(Text(Call({"SET", "k", "same"})), "OK");
  connection_ = HiredisConnection::ToSocket(Environment("ONETRIP_SOCKET"));
  ASSERT_FALSE(connection_->failed());
  EXPECT_EQ(Text(Call({"GET", "k"})), "same");
}

TEST_F(HiredisTest, ManyContextsInterleave) {
  std::vector<HiredisConnection> connections;
  connections.reserve(50);
  for (int i = 0; i < 50; ++i) connections.push_back(ConnectTcp());
  for (int round = 0; round < 20; ++round) {
    for (HiredisConnection& connection : connections) connection.Append({"INCR", "shared"});
    for (HiredisConnection& connection : connections) {
      const Reply reply = connection.Next();
      ASSERT_NE(reply, nullptr);
      EXPECT_EQ(reply->type, REDIS_REPLY_INTEGER);
    }
  }
  EXPECT_EQ(Text(Call({"GET", "shared"})), "1000");
}

}  // namespace
}  // namespace onetrip
