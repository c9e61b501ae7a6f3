#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/coro/frame_pool.h"
#include "frontend/connection.h"
#include "tests/unit/frontend_fixture.h"

namespace onetrip {
namespace {

class ConnectionTest : public testing::Test {
 protected:
  TestAgent agent_;
  TestClient client_{agent_.port()};
};

TEST_F(ConnectionTest, AnswersInlineAndMultibulkCommands) {
  EXPECT_TRUE(client_.Send("PING\r\n"));
  EXPECT_EQ(client_.ReadLine(), "+PONG\r\n");
  EXPECT_TRUE(client_.Send("set \"a key\" 'a value'\r\nget \"a key\"\r\n"));
  EXPECT_EQ(client_.ReadLine(), "+OK\r\n");
  EXPECT_EQ(client_.ReadBulk(), "a value");
  EXPECT_EQ(client_.Ask({"ECHO", "hello"}, "$5\r\nhello\r\n"), "$5\r\nhello\r\n");
}

TEST_F(ConnectionTest, RepliesToADeepPipelineInOrder) {
  // Sanitizers take a hundred times as long.
  constexpr int kCommands = kPoolFrames ? 100'000 : 3'000;
  std::string request;
  std::string expected;
  for (int i = 0; i < kCommands; ++i) {
    const std::string key = "k" + std::to_string(i % 100);
    const std::string value = std::to_string(i);
    request += Resp({"SET", key, value}) + Resp({"GET", key});
    expected += "+OK\r\n" + BulkReply(value);
  }
  std::thread sender([&] { EXPECT_TRUE(client_.Send(request)); });
  EXPECT_EQ(client_.Read(expected.size()), expected);
  sender.join();
}

// Keys are looked ahead for in the database that is selected when the batch begins.
TEST_F(ConnectionTest, APipelineMayChangeItsDatabaseBetweenCommandsOnOneKey) {
  const std::string request = Resp({"SET", "k", "zero"}) + Resp({"SELECT", "1"}) +
                              Resp({"GET", "k"}) + Resp({"SET", "k", "one"}) + Resp({"GET", "k"}) +
                              Resp({"SELECT", "0"}) + Resp({"GET", "k"}) +
                              Resp({"SWAPDB", "0", "1"}) + Resp({"GET", "k"}) + Resp({"DEL", "k"}) +
                              Resp({"GET", "k"}) + Resp({"SELECT", "1"}) + Resp({"GET", "k"});
  const std::string expected = "+OK\r\n+OK\r\n$-1\r\n+OK\r\n" + BulkReply("one") + "+OK\r\n" +
                               BulkReply("zero") + "+OK\r\n" + BulkReply("one") +
                               ":1\r\n$-1\r\n+OK\r\n" + BulkReply("zero");
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(client_.Send(request));
    EXPECT_EQ(client_.Read(expected.size()), expected);
    // As it began: database 0, and nothing under the key.
    EXPECT_EQ(client_.Ask({"DEL", "k"}, ":1\r\n"), ":1\r\n");
    EXPECT_EQ(client_.Ask({"SELECT", "0"}, "+OK\r\n"), "+OK\r\n");
  }
}

TEST_F(ConnectionTest, APipelineSentWholeBeforeAReplyIsReadDoesNotDeadlock) {
  const std::string value(1000, 'v');
  EXPECT_EQ(client_.Ask({"SET", "k", value}, "+OK\r\n"), "+OK\r\n");
  std::string request;
  // Megabytes of replies: more than all socket buffers hold.
  constexpr int kCommands = kPoolFrames ? 20'000 : 8'000;
  for (int i = 0; i < kCommands; ++i) request += Resp({"GET", "k"});
  EXPECT_TRUE(client_.Send(request));
  const std::string reply = BulkReply(value);
  const std::string replies = client_.Read(reply.size() * kCommands);
  ASSERT_EQ(replies.size(), reply.size() * kCommands);
  for (int i = 0; i < kCommands; ++i) {
    ASSERT_EQ(replies.compare(reply.size() * static_cast<size_t>(i), reply.size(), reply), 0);
  }
}

TEST_F(ConnectionTest, AnyCuttingOfTheInputGivesTheSameReplies) {
  const std::string big(50'000, 'b');
  const std::string request = Resp({"SET", "a", "1"}) + Resp({"INCR", "a"}) + "GET a\r\n" +
                              Resp({"SET", "big", big}) + Resp({"STRLEN", "big"}) + "PING\r\n";
  const std::string expected = "+OK\r\n:2\r\n$1\r\n2\r\n+OK\r\n:50000\r\n+PONG\r\n";
  Rng rng(3);
  for (int round = 0; round < (kPoolFrames ? 30 : 5); ++round) {
    std::string_view rest = request;
    while (!rest.empty()) {
      const size_t piece =
          std::min<size_t>(rest.size(), 1 + rng.Below(rng.Below(2) == 0 ? 20 : 30'000));
      ASSERT_TRUE(client_.Send(rest.substr(0, piece)));
      rest.remove_prefix(piece);
      if (rng.Below(3) == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    ASSERT_EQ(client_.Read(expected.size()), expected) << "round " << round;
  }
}

TEST_F(ConnectionTest, AMebibyteGoesInAndOut) {
  std::string value(1 << 20, '\0');
  Rng rng(5);
  for (char& byte : value) byte = static_cast<char>(rng.Next());
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(client_.Ask({"SET", "big", value}, "+OK\r\n"), "+OK\r\n");
    EXPECT_TRUE(client_.Send(Resp({"GET", "big"})));
    EXPECT_TRUE(client_.ReadBulk() == value) << "the bytes differ";
  }
}

TEST_F(ConnectionTest, ProtocolErrorsAnswerWhatCameBeforeThenClose) {
  EXPECT_TRUE(client_.Send("PING\r\n*1\r\n:4\r\nPING\r\n"));
  EXPECT_EQ(client_.ReadLine(), "+PONG\r\n");
  EXPECT_EQ(client_.ReadLine(), "-ERR Protocol error: expected '$', got ':'\r\n");
  EXPECT_TRUE(client_.Closed());
}

TEST_F(ConnectionTest, QuitAnswersAndRunsNothingBehindIt) {
  EXPECT_TRUE(client_.Send(Resp({"SET", "q", "1"}) + Resp({"QUIT"}) + Resp({"SET", "q", "2"})));
  EXPECT_EQ(client_.Read(10), "+OK\r\n+OK\r\n");
  EXPECT_TRUE(client_.Closed());
  TestClient other(agent_.port());
  EXPECT_EQ(other.Ask({"GET", "q"}, "$1\r\n1\r\n"), "$1\r\n1\r\n");
}

TEST_F(ConnectionTest, ACrossProtocolRequestIsHungUpOn) {
  EXPECT_TRUE(client_.Send("POST / HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_TRUE(client_.Closed());
}

TEST_F(ConnectionTest, ClientReplyOffAndSkipSilenceExactlyWhatTheySay) {
  EXPECT_TRUE(client_.Send("CLIENT REPLY SKIP\r\nSET s 1\r\nINCR s\r\n"));
  EXPECT_EQ(client_.ReadLine(), ":2\r\n");
  EXPECT_TRUE(client_.Send("CLIENT REPLY OFF\r\nINCR s\r\nPING\r\nCLIENT REPLY ON\r\nGET s\r\n"));
  EXPECT_EQ(client_.ReadLine(), "+OK\r\n");
  EXPECT_EQ(client_.ReadBulk(), "3");
}

TEST_F(ConnectionTest, AClientThatGoesAwayMidCommandIsForgotten) {
  for (int i = 0; i < 50; ++i) {
    TestClient brief(agent_.port());
    EXPECT_TRUE(brief.Send(i % 2 == 0 ? "*3\r\n$3\r\nSET\r\n$1" : Resp({"GET", "x"}) + "PI"));
  }
  while (agent_.server().open_clients() > 1) std::this_thread::yield();
  EXPECT_EQ(client_.Ask({"PING"}, "+PONG\r\n"), "+PONG\r\n");
}

TEST_F(ConnectionTest, HelloSwitchesTheConnectionToResp3) {
  EXPECT_TRUE(client_.Send(Resp({"HELLO", "3"}) + Resp({"GET", "missing"})));
  EXPECT_EQ(client_.ReadLine(), "%7\r\n");
  std::string line;
  do {
    line = client_.ReadLine();
  } while (line != "_\r\n" && !line.empty());
  EXPECT_EQ(line, "_\r\n");
}

}  // namespace
}  // namespace onetrip
