#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "frontend/admin/admin.h"
#include "frontend/server.h"
#include "tests/unit/frontend_fixture.h"

namespace onetrip {
namespace {

AgentOptions WithThreads(uint64_t threads) {
  AgentOptions options = TestAgent::SmallOptions();
  options.threads = threads;
  return options;
}

std::string InfoField(TestClient& client, std::string_view section, const std::string& field) {
  client.Send(Resp({"INFO", section}));
  const std::string text = client.ReadBulk();
  const size_t at = text.find("\n" + field + ":");
  if (at == std::string::npos) return "no field " + field + " in " + text;
  const size_t start = at + field.size() + 2;
  return text.substr(start, text.find("\r\n", start) - start);
}

TEST(ServerTest, WorkersShareTheKeys) {
  TestAgent agent(WithThreads(3));
  std::vector<std::thread> threads;
  constexpr int kClients = 6;
  constexpr int kIncrements = 500;
  threads.reserve(kClients);
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&agent] {
      TestClient client(agent.port());
      for (int j = 0; j < kIncrements; ++j) {
        ASSERT_TRUE(client.Send(Resp({"INCR", "shared"})));
        ASSERT_EQ(client.ReadLine()[0], ':');
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  TestClient client(agent.port());
  EXPECT_TRUE(client.Send(Resp({"GET", "shared"})));
  EXPECT_EQ(client.ReadBulk(), std::to_string(kClients * kIncrements));
}

TEST(ServerTest, ClientListSeesTheClientsOfAllWorkers) {
  TestAgent agent(WithThreads(3));
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 6; ++i) {
    clients.push_back(std::make_unique<TestClient>(agent.port()));
    const std::string name = "client" + std::to_string(i);
    EXPECT_EQ(clients.back()->Ask({"CLIENT", "SETNAME", name}, "+OK\r\n"), "+OK\r\n");
  }
  EXPECT_TRUE(clients[0]->Send(Resp({"CLIENT", "LIST"})));
  const std::string list = clients[0]->ReadBulk();
  for (int i = 0; i < 6; ++i) {
    EXPECT_NE(list.find(" name=client" + std::to_string(i) + " "), std::string::npos) << list;
  }
  EXPECT_EQ(InfoField(*clients[0], "clients", "connected_clients"), "6");
}

TEST(ServerTest, ClientKillEndsAClientOfAnotherWorker) {
  TestAgent agent(WithThreads(2));
  TestClient first(agent.port());
  TestClient second(agent.port());
  EXPECT_TRUE(second.Send(Resp({"CLIENT", "ID"})));
  const std::string id = second.ReadLine().substr(1);
  EXPECT_EQ(first.Ask({"CLIENT", "KILL", "ID", id.substr(0, id.size() - 2)}, ":1\r\n"), ":1\r\n");
  EXPECT_TRUE(second.Closed());
  EXPECT_EQ(first.Ask({"PING"}, "+PONG\r\n"), "+PONG\r\n");
}

TEST(ServerTest, AClientMayKillItself) {
  TestAgent agent;
  TestClient client(agent.port());
  EXPECT_EQ(client.Ask({"CLIENT", "KILL", "SKIPME", "no"}, ":1\r\n"), ":1\r\n");
  EXPECT_TRUE(client.Closed());
}

TEST(ServerTest, ProtectedModeRefusesOtherHostsUntilThereIsAPassword) {
  TestAgent agent;
  TestClient local(agent.port());
  EXPECT_EQ(local.Ask({"PING"}, "+PONG\r\n"), "+PONG\r\n");
  const std::string elsewhere = "127.0.0.2";
  TestClient stranger(agent.port(), elsewhere);
  EXPECT_EQ(stranger.ReadLine().substr(0, 8), "-DENIED ");
  EXPECT_TRUE(stranger.Closed());
  EXPECT_EQ(local.Ask({"CONFIG", "SET", "requirepass", "pw"}, "+OK\r\n"), "+OK\r\n");
  TestClient known(agent.port(), elsewhere);
  EXPECT_EQ(known.Ask({"AUTH", "pw"}, "+OK\r\n"), "+OK\r\n");
  EXPECT_EQ(local.Ask({"CONFIG", "SET", "requirepass", "", "protected-mode", "no"}, "+OK\r\n"),
            "+OK\r\n");
  TestClient welcome(agent.port(), elsewhere);
  EXPECT_EQ(welcome.Ask({"PING"}, "+PONG\r\n"), "+PONG\r\n");
  EXPECT_EQ(InfoField(local, "stats", "rejected_connections"), "1");
}

TEST(ServerTest, ClientsBeyondMaxclientsAreToldAndClosed) {
  TestAgent agent;
  TestClient first(agent.port());
  EXPECT_EQ(first.Ask({"CONFIG", "SET", "maxclients", "2"}, "+OK\r\n"), "+OK\r\n");
  TestClient second(agent.port());
  EXPECT_EQ(second.Ask({"PING"}, "+PONG\r\n"), "+PONG\r\n");
  TestClient third(agent.port());
  EXPECT_EQ(third.ReadLine(), "-ERR max number of clients reached\r\n");
  EXPECT_TRUE(third.Closed());
  EXPECT_EQ(InfoField(first, "stats", "rejected_connections"), "1");
  second.Close();
  while (agent.server().open_clients() > 1) std::this_thread::yield();
  TestClient fourth(agent.port());
  EXPECT_EQ(fourth.Ask({"PING"}, "+PONG\r\n"), "+PONG\r\n");
}

TEST(ServerTest, IdleClientsAreClosedAfterTheTimeout) {
  TestAgent agent;
  TestClient client(agent.port());
  EXPECT_EQ(client.Ask({"CONFIG", "SET", "timeout", "1"}, "+OK\r\n"), "+OK\r\n");
  EXPECT_TRUE(client.Closed());
}

TEST(ServerTest, AClientThatNeverReadsIsClosedAtItsOutputLimit) {
  AgentOptions options = TestAgent::SmallOptions();
  options.output_limits.normal.hard_bytes = 8 << 20;
  TestAgent agent(options);
  TestClient client(agent.port());
  const std::string value(1 << 20, 'v');
  EXPECT_EQ(client.Ask({"SET", "big", value}, "+OK\r\n"), "+OK\r\n");
  std::string request;
  for (int i = 0; i < 200; ++i) request += Resp({"GET", "big"});
  client.Send(request);
  TestClient other(agent.port());
  while (agent.server().open_clients() > 1) std::this_thread::yield();
  EXPECT_EQ(other.Ask({"PING"}, "+PONG\r\n"), "+PONG\r\n");
}

TEST(ServerTest, AnUnfinishedRequestBeyondItsLimitClosesTheClient) {
  TestAgent agent;
  TestClient client(agent.port());
  EXPECT_EQ(client.Ask({"CONFIG", "SET", "client-query-buffer-limit", "1048576"}, "+OK\r\n"),
            "+OK\r\n");
  std::string request = "*100\r\n$4\r\nMSET\r\n";
  for (int i = 0; i < 4; ++i) request += "$600000\r\n" + std::string(600'000, 'x') + "\r\n";
  client.Send(request);
  EXPECT_TRUE(client.Closed());
}

TEST(ServerTest, AUnixSocketServesAndGoesAwayAtTheEnd) {
  AgentOptions options = TestAgent::SmallOptions();
  options.unixsocket = "/tmp/onetrip_frontend_test_" + std::to_string(getpid()) + ".sock";
  TestAgent agent(options);
  TestClient client(options.unixsocket);
  EXPECT_EQ(client.Ask({"SET", "a", "1"}, "+OK\r\n"), "+OK\r\n");
  EXPECT_TRUE(client.Send(Resp({"CLIENT", "LIST"})));
  EXPECT_NE(client.ReadBulk().find("addr=" + options.unixsocket + ":0"), std::string::npos);
  agent.Stop();
  EXPECT_NE(access(options.unixsocket.c_str(), F_OK), 0);
}

TEST(ServerTest, StoppingSendsWhatWasExecutedAndClosesEveryone) {
  TestAgent agent(WithThreads(2));
  std::vector<std::unique_ptr<TestClient>> clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(std::make_unique<TestClient>(agent.port()));
    EXPECT_EQ(clients.back()->Ask({"PING"}, "+PONG\r\n"), "+PONG\r\n");
  }
  agent.Stop();
  for (const auto& client : clients) EXPECT_TRUE(client->Closed());
}

TEST(ServerTest, StoppingUnderLoadNeitherHangsNorCrashes) {
  TestAgent agent(WithThreads(2));
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&agent, i] {
      TestClient client(agent.port());
      const std::string request = Resp({"INCR", "n"}) + Resp({"CLIENT", "LIST"});
      // Every other client never reads.
      while (client.Send(request)) {
        if (i % 2 == 0 && client.ReadLine().empty()) break;
        if (i % 2 == 0 && client.ReadBulk().empty()) break;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  agent.Stop();
  for (std::thread& thread : threads) thread.join();
}

TEST(ServerTest, RoundTripsAreCountedAndReset) {
  TestAgent agent;
  TestClient client(agent.port());
  EXPECT_EQ(client.Ask({"SET", "a", "1"}, "+OK\r\n"), "+OK\r\n");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(client.Ask({"GET", "a"}, "$1\r\n1\r\n"), "$1\r\n1\r\n");
  EXPECT_EQ(InfoField(client, "onetrip", "rtt_per_get"), "1.000");
  EXPECT_EQ(InfoField(client, "onetrip", "rtt_per_get_histogram"), "1=10");
  EXPECT_NE(InfoField(client, "onetrip", "rtt_per_set"), "0.000");
  EXPECT_EQ(client.Ask({"CONFIG", "RESETSTAT"}, "+OK\r\n"), "+OK\r\n");
  EXPECT_EQ(InfoField(client, "onetrip", "rtt_per_set"), "0.000");
  EXPECT_EQ(InfoField(client, "stats", "total_connections_received"), "0");
}

TEST(ServerTest, InfoMemoryStaysBelowWhatThePoolHolds) {
  TestAgent agent;
  TestClient client(agent.port());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(client.Ask({"SET", "key" + std::to_string(i), std::string(1000, 'v')}, "+OK\r\n"),
              "+OK\r\n");
  }
  const uint64_t used = std::stoull(InfoField(client, "memory", "used_memory"));
  const uint64_t max = std::stoull(InfoField(client, "memory", "maxmemory"));
  EXPECT_GE(used, 100'000U);
  EXPECT_LE(used, max);
  EXPECT_GE(max, 59ULL << 20);
}

TEST(ServerTest, StartFailuresAreOneLineThatNamesTheCause) {
  const SystemClock clock;
  std::string reason;
  AgentOptions options = TestAgent::SmallOptions();
  TestAgent agent;
  {
    options.port = agent.port();
    const auto cluster = Embedded::Create(options, clock, &reason);
    ASSERT_TRUE(cluster.ok()) << reason;
    Server server(options, clock, *cluster.value(), MakeWorkerHooks);
    EXPECT_FALSE(server.Start(&reason).ok());
    EXPECT_NE(reason.find("is taken by another process"), std::string::npos) << reason;
  }
  {
    options.port = 0;
    const auto cluster = Embedded::Create(options, clock, &reason);
    ASSERT_TRUE(cluster.ok()) << reason;
    Server server(options, clock, *cluster.value(), MakeWorkerHooks);
    EXPECT_FALSE(server.Start(&reason).ok());
    EXPECT_NE(reason.find("nowhere to listen"), std::string::npos) << reason;
  }
  options.memory_bytes = 1ULL << 45;
  EXPECT_FALSE(Embedded::Create(options, clock, &reason).ok());
  EXPECT_NE(reason.find("3 memory nodes of 33554432 MiB are more"), std::string::npos) << reason;
  EXPECT_NE(reason.find("give a smaller --memory or --replicas"), std::string::npos) << reason;
  options.replicas = 1;
  EXPECT_FALSE(Embedded::Create(options, clock, &reason).ok());
  EXPECT_NE(reason.find("1 memory node of 33554432 MiB is more"), std::string::npos) << reason;
  EXPECT_TRUE(reason.ends_with("give a smaller --memory")) << reason;
  options.memory_bytes = 8ULL << 20;
  EXPECT_FALSE(Embedded::Create(options, clock, &reason).ok());
  EXPECT_NE(reason.find("give a larger --memory"), std::string::npos) << reason;
  EXPECT_EQ(reason.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace onetrip
