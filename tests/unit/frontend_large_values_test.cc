// Large values in an agent's memory: what replies, transactions and commands on several of them
// take of the budget, and which connection loses it.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "frontend/connection.h"
#include "frontend/server.h"
#include "frontend/worker.h"
#include "tests/unit/frontend_fixture.h"

namespace onetrip {
namespace {

class LargeValuesTest : public testing::Test {
 protected:
  // More than sockets hold.
  static constexpr size_t kBytes = size_t{9} << 20;
  // A reply keeps less. On a busy host the reader may stand still for so long that it is taken for
  // one that reads no more, and the agent gets the next value before the rest of one is sent; four
  // values are twice this.
  static constexpr size_t kMostBytes = 2 * kBytes + 100;
  static constexpr int kKeys = 4;

  // Room for one value to be read, and for one request.
  static AgentOptions Options() {
    AgentOptions options = TestAgent::SmallOptions();
    options.memory_bytes = 256ULL << 20;
    options.large_value_bytes = 3 * kBytes;
    return options;
  }

  LargeValuesTest() {
    for (int i = 0; i < kKeys; ++i) {
      EXPECT_EQ(other_.Ask({"SET", Key(i), Value(i)}, "+OK\r\n"), "+OK\r\n");
    }
    // It does not grow then.
    const int receive_bytes = 256 << 10;
    setsockopt(client_.fd(), SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof(receive_bytes));
  }

  static std::string Key(int i) { return "k" + std::to_string(i); }
  static std::string Value(int i) { return std::string(kBytes, static_cast<char>('a' + i)); }
  const LargeValueBudgets& budgets() { return agent_.server().storage().large_values(); }

  // Returns true if it becomes so.
  static bool Soon(const std::function<bool()>& holds) {
    for (int i = 0; i < 20'000; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
  // Returns true if the client reads `expected`; `*most` is the most that was to be sent to it at
  // one of many moments meanwhile.
  bool Reads(const std::string& expected, size_t* most) {
    *most = 0;
    std::atomic<bool> reading{true};
    std::string got;
    std::thread reader([&] {
      got = client_.Read(expected.size());
      reading = false;
    });
    while (reading) {
      OnWorker([most](Connection& connection) {
        *most = std::max(*most, connection.output_buffer_bytes());
      });
    }
    reader.join();
    return got == expected;
  }
  void OnWorker(const std::function<void(Connection&)>& visit) {
    Worker& worker = *agent_.server().workers()[0];
    std::promise<void> done;
    worker.Post([&] {
      for (Connection* connection : worker.connections()) visit(*connection);
      done.set_value();
    });
    done.get_future().wait();
  }
  // As if a minute had passed in which client and server sent and took only what `happens` makes
  // them.
  void PassAMinute(const std::function<void()>& happens = [] {}) {
    OnWorker([](Connection& connection) { connection.Tend(SystemClock().NowNs()); });
    happens();
    OnWorker(
        [](Connection& connection) { connection.Tend(SystemClock().NowNs() + 61'000'000'000); });
  }
  // Announces a SET of kBytes and sends all of it but the last `left`.
  static void SendPart(TestClient& client, size_t left) {
    EXPECT_TRUE(client.Send("*3\r\n$3\r\nSET\r\n$1\r\nh\r\n$" + std::to_string(kBytes) + "\r\n" +
                            std::string(kBytes - left, 'h')));
  }

  TestAgent agent_{Options()};
  TestClient client_{agent_.port()};
  TestClient other_{agent_.port()};
};

TEST_F(LargeValuesTest, MGetKeepsOneValueAtATime) {
  EXPECT_TRUE(client_.Send(Resp({"MGET", "k0", "k1", "missing", "k2", "k3"})));
  size_t most = 0;
  EXPECT_TRUE(Reads("*5\r\n" + BulkReply(Value(0)) + BulkReply(Value(1)) + "$-1\r\n" +
                        BulkReply(Value(2)) + BulkReply(Value(3)),
                    &most));
  EXPECT_LT(most, kMostBytes);
  EXPECT_EQ(client_.Ask({"PING"}, "+PONG\r\n"), "+PONG\r\n");
  EXPECT_EQ(budgets().values->used_bytes(), 0U);
}

// As clients do that send a pipeline before they read.
TEST_F(LargeValuesTest, AClientMaySendMoreBeforeItTakesAnything) {
  const std::string more = Resp({"SET", "more", Value(1)});
  EXPECT_TRUE(client_.Send(Resp({"MGET", "k0", "k1", "k2", "k3"}) + more + more));
  EXPECT_EQ(client_.ReadLine(), "*4\r\n");
  for (int i = 0; i < kKeys; ++i) EXPECT_TRUE(client_.ReadBulk() == Value(i));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(client_.ReadLine(), "+OK\r\n");
  EXPECT_EQ(budgets().values->used_bytes(), 0U);
}

TEST_F(LargeValuesTest, MGetOfAClientThatGoesAwayEnds) {
  EXPECT_TRUE(client_.Send(Resp({"MGET", "k0", "k1", "k2", "k3"})));
  ASSERT_TRUE(Soon([&] { return budgets().values->used_bytes() > 0; }));
  client_.Close();
  EXPECT_TRUE(Soon([&] { return budgets().values->used_bytes() == 0; }));
  EXPECT_TRUE(Soon([&] { return agent_.server().open_clients() == 1; }));
}

TEST_F(LargeValuesTest, MGetWithoutRepliesKeepsNothing) {
  EXPECT_TRUE(client_.Send(Resp({"CLIENT", "REPLY", "OFF"}) + Resp({"MGET", "k0", "k1", "k2"}) +
                           Resp({"CLIENT", "REPLY", "ON"}) + Resp({"PING"})));
  EXPECT_EQ(client_.ReadLine(), "+OK\r\n");
  EXPECT_EQ(client_.ReadLine(), "+PONG\r\n");
  EXPECT_EQ(budgets().values->used_bytes(), 0U);
}

TEST_F(LargeValuesTest, ATransactionOverKeysKeepsOneValueAtATime) {
  EXPECT_TRUE(client_.Send(Resp({"MULTI"}) + Resp({"GET", "k0"}) + Resp({"MGET", "k1", "k2"}) +
                           Resp({"GET", "k3"}) + Resp({"EXEC"})));
  EXPECT_EQ(client_.ReadLine(), "+OK\r\n");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client_.ReadLine(), "+QUEUED\r\n");
  size_t most = 0;
  EXPECT_TRUE(Reads("*3\r\n" + BulkReply(Value(0)) + "*2\r\n" + BulkReply(Value(1)) +
                        BulkReply(Value(2)) + BulkReply(Value(3)),
                    &most));
  EXPECT_LT(most, kMostBytes);
}

TEST_F(LargeValuesTest, ATransactionOnAKeyCountsWhatItKeeps) {
  EXPECT_TRUE(client_.Send(Resp({"MULTI"}) + Resp({"GET", "k0"}) +
                           Resp({"SETRANGE", "k0", "0", "x"}) + Resp({"GET", "k0"}) +
                           Resp({"EXEC"})));
  EXPECT_EQ(client_.ReadLine(), "+OK\r\n");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client_.ReadLine(), "+QUEUED\r\n");
  EXPECT_EQ(client_.ReadLine(), "*3\r\n");
  EXPECT_EQ(budgets().values->used_bytes(), kBytes) << "what was read";
  EXPECT_EQ(budgets().requests->used_bytes(), kBytes) << "what was made of it";
  EXPECT_TRUE(client_.ReadBulk() == Value(0));
  EXPECT_EQ(client_.ReadLine(), ":" + std::to_string(kBytes) + "\r\n");
  std::string changed = Value(0);
  changed[0] = 'x';
  EXPECT_TRUE(client_.ReadBulk() == changed);
  EXPECT_TRUE(Soon([&] { return budgets().values->used_bytes() == 0; }));
  EXPECT_TRUE(Soon([&] { return budgets().requests->used_bytes() == 0; }));
}

TEST_F(LargeValuesTest, WhatIsQueuedCountsUntilItIsDiscarded) {
  EXPECT_EQ(client_.Ask({"MULTI"}, "+OK\r\n"), "+OK\r\n");
  EXPECT_EQ(client_.Ask({"SET", "q", Value(1)}, "+QUEUED\r\n"), "+QUEUED\r\n");
  EXPECT_TRUE(Soon([&] {
    const uint64_t used = budgets().requests->used_bytes();
    return used >= kBytes && used < kBytes + (1 << 20);
  }));
  EXPECT_EQ(client_.Ask({"SET", "q", Value(2)}, "+QUEUED\r\n"), "+QUEUED\r\n")
      << "it does not wait for itself";
  EXPECT_TRUE(Soon([&] { return budgets().requests->used_bytes() >= 2 * kBytes; }));
  EXPECT_EQ(client_.Ask({"DISCARD"}, "+OK\r\n"), "+OK\r\n");
  EXPECT_TRUE(Soon([&] { return budgets().requests->used_bytes() == 0; }));
}

// A part of one reply, and behind it another: that would be a wrong value.
TEST_F(LargeValuesTest, AKilledClientGetsNothingBehindWhatIsLeftOut) {
  EXPECT_EQ(other_.Ask({"MSET", "a", Value(0).substr(0, 5 << 20), "b", Value(1)}, "+OK\r\n"),
            "+OK\r\n");
  EXPECT_TRUE(client_.Send(Resp({"GET", "a"}) + Resp({"GET", "b"})));
  ASSERT_TRUE(Soon([&] { return budgets().values->waiting() > 0; }));
  EXPECT_EQ(other_.Ask({"CLIENT", "KILL", "TYPE", "normal"}, ":1\r\n"), ":1\r\n");
  const std::string sent = client_.Read(2 * kBytes);
  EXPECT_TRUE(BulkReply(Value(0).substr(0, 5 << 20)).starts_with(sent));
  EXPECT_TRUE(Soon([&] { return budgets().values->used_bytes() == 0; }));
}

TEST_F(LargeValuesTest, ATransactionOfAKilledClientDoesNotWaitForItself) {
  EXPECT_TRUE(client_.Send(Resp({"MULTI"}) + Resp({"GET", "k0"}) + Resp({"GET", "k1"}) +
                           Resp({"GET", "k2"}) + Resp({"SET", "done", "1"}) + Resp({"EXEC"})));
  ASSERT_TRUE(Soon([&] { return budgets().values->used_bytes() > 0; }));
  EXPECT_EQ(other_.Ask({"CLIENT", "KILL", "TYPE", "normal"}, ":1\r\n"), ":1\r\n");
  EXPECT_TRUE(Soon([&] { return agent_.server().open_clients() == 1; }));
  EXPECT_EQ(other_.Ask({"EXISTS", "done"}, ":1\r\n"), ":1\r\n") << "all of it was executed";
}

// Every one of them reads or makes more than the budget has at a time.
TEST_F(LargeValuesTest, CommandsOnSeveralDoNotWaitForThemselves) {
  const std::string length = ":" + std::to_string(kBytes) + "\r\n";
  EXPECT_EQ(client_.Ask({"BITOP", "OR", "d", "k0", "k1", "k2"}, length), length);
  EXPECT_EQ(client_.Ask({"COPY", "k0", "c"}, ":1\r\n"), ":1\r\n");
  EXPECT_EQ(client_.Ask({"RENAME", "c", "k1"}, "+OK\r\n"), "+OK\r\n");
  const std::string refused =
      "-ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len\r\n";
  EXPECT_EQ(client_.Ask({"LCS", "k0", "k2"}, refused), refused);
  EXPECT_EQ(budgets().values->used_bytes(), 0U);
  EXPECT_EQ(budgets().requests->used_bytes(), 0U);
}

TEST_F(LargeValuesTest, WhoKeepsOthersWaitingForAMinuteIsClosed) {
  EXPECT_TRUE(client_.Send(Resp({"GET", "k0"}) + Resp({"GET", "k1"})));
  ASSERT_TRUE(Soon([&] { return budgets().values->waiting() > 0; })) << "for what it has itself";
  PassAMinute();
  EXPECT_TRUE(Soon([&] { return agent_.server().open_clients() == 1; }));
  EXPECT_TRUE(other_.Send(Resp({"GET", "k0"})));
  EXPECT_TRUE(other_.ReadBulk() == Value(0));

  TestClient made(agent_.port());
  TestClient too(agent_.port());
  for (TestClient* client : {&made, &too}) {
    EXPECT_TRUE(client->Send(Resp({"MULTI"}) + Resp({"SET", "m", Value(2)}) + Resp({"GET", "m"}) +
                             Resp({"EXEC"})));
  }
  ASSERT_TRUE(Soon([&] { return budgets().requests->used_bytes() == 2 * kBytes; })) << "in replies";
  std::thread writer([&] { EXPECT_EQ(other_.Ask({"SET", "s", Value(3)}, "+OK\r\n"), "+OK\r\n"); });
  EXPECT_TRUE(Soon([&] { return budgets().requests->waiting() > 0; }));
  PassAMinute();
  writer.join();
  EXPECT_TRUE(Soon([&] { return agent_.server().open_clients() == 1; }));
}

TEST_F(LargeValuesTest, WhatIsAnnouncedTakesNothingBeforeItComes) {
  TestClient half(agent_.port());
  SendPart(half, kBytes - 1000);
  EXPECT_EQ(other_.Ask({"SET", "s", Value(3)}, "+OK\r\n"), "+OK\r\n");
  EXPECT_EQ(budgets().requests->used_bytes(), 0U);
  EXPECT_TRUE(half.Send(std::string(size_t{2} << 20, 'h')));
  ASSERT_TRUE(Soon([&] { return budgets().requests->used_bytes() > size_t{2} << 20; }));
  EXPECT_LT(budgets().requests->used_bytes(), size_t{5} << 20);
  EXPECT_TRUE(half.Send(std::string(kBytes - 1000 - (size_t{2} << 20), 'h') + "\r\n"));
  EXPECT_EQ(half.ReadLine(), "+OK\r\n");
  EXPECT_TRUE(Soon([&] { return budgets().requests->used_bytes() == 0; }));
}

TEST_F(LargeValuesTest, WhoTricklesIsClosedOnceOthersWait) {
  std::optional<TestClient> first;
  std::optional<TestClient> second;
  const auto both_are_in = [&] { return budgets().requests->used_bytes() >= 2 * kBytes; };
  // By how they come in, the second may have to double its buffer, and wait: then again.
  for (int attempt = 0; attempt < 20 && !both_are_in(); ++attempt) {
    first.reset();
    second.reset();
    ASSERT_TRUE(Soon([&] { return budgets().requests->used_bytes() == 0; }));
    SendPart(first.emplace(agent_.port()), 1000);
    SendPart(second.emplace(agent_.port()), 1000);
    ASSERT_TRUE(Soon([&] { return both_are_in() || budgets().requests->waiting() > 0; }));
  }
  ASSERT_TRUE(both_are_in());
  TestClient& half = *first;
  TestClient& too = *second;
  PassAMinute();
  EXPECT_EQ(agent_.server().open_clients(), 4U) << "nobody waits";
  std::thread sender([&] { EXPECT_EQ(other_.Ask({"SET", "s", Value(3)}, "+OK\r\n"), "+OK\r\n"); });
  EXPECT_TRUE(Soon([&] { return budgets().requests->waiting() > 0; }));
  PassAMinute([&] { EXPECT_TRUE(half.Send("h") && too.Send("h")); });
  sender.join();
  EXPECT_TRUE(half.Closed());
  EXPECT_TRUE(too.Closed());
}

TEST_F(LargeValuesTest, ManyAtATimeDoNotWaitForEachOther) {
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([this, i] {
      TestClient writer(agent_.port());
      const std::string key = "w" + std::to_string(i);
      EXPECT_EQ(writer.Ask({"SET", key, Value(i % kKeys)}, "+OK\r\n"), "+OK\r\n");
      EXPECT_EQ(writer.Ask({"SET", key, Value(i % kKeys)}, "+OK\r\n"), "+OK\r\n");
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_TRUE(Soon([&] { return budgets().requests->used_bytes() == 0; }));
}

}  // namespace
}  // namespace onetrip
