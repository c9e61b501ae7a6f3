// The judges of a run can say no: runs that went wrong are made up here and must be told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "tests/nemesis/connection.h"
#include "tests/nemesis/deadlines.h"
#include "tests/nemesis/gaps.h"
#include "tests/nemesis/generation.h"
#include "tests/nemesis/growth.h"
#include "tests/nemesis/lasting.h"
#include "tests/support/command_model.h"

namespace onetrip {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::string_view kUnknownError = "-UNKNOWN The operation may or may not\r\n";

// A generation whose clients send what the test says, one after the other.
class ScriptedGeneration {
 public:
  ScriptedGeneration() : generation_(7, {.seed = 1, .clients = 2, .operations = 4}) {}

  void Do(const Command& command, std::string_view reply) {
    const size_t index = generation_.Start(0, command, ++now_ns_);
    generation_.Finish(index, std::string(reply), ++now_ns_);
  }
  [[nodiscard]] CheckVerdict Verdict() const { return generation_.Check().verdict; }

 private:
  Generation generation_;
  uint64_t now_ns_ = 0;
};

TEST(NemesisGenerationTest, AnAcknowledgedWriteThatIsNotReadBackIsNotLinearizable) {
  ScriptedGeneration run;
  run.Do({"SET", "k", "a"}, "+OK\r\n");
  EXPECT_EQ(run.Verdict(), CheckVerdict::kLinearizable);
  run.Do({"GET", "k"}, "$-1\r\n");
  EXPECT_EQ(run.Verdict(), CheckVerdict::kNot);
}

TEST(NemesisGenerationTest, AWriteOfUnknownOutcomeMayBeThereOrNotButNotComeAndGo) {
  for (const std::string_view unknown : {std::string_view(), kUnknownError}) {
    ScriptedGeneration run;
    run.Do({"SET", "k", "a"}, "+OK\r\n");
    run.Do({"SET", "k", "b"}, unknown);
    run.Do({"GET", "k"}, "$1\r\na\r\n");
    run.Do({"GET", "k"}, "$1\r\nb\r\n");
    EXPECT_EQ(run.Verdict(), CheckVerdict::kLinearizable);
    run.Do({"GET", "k"}, "$1\r\na\r\n");
    EXPECT_EQ(run.Verdict(), CheckVerdict::kNot);
  }
}

TEST(NemesisGenerationTest, ARefusedWriteMustNotBeSeen) {
  ScriptedGeneration run;
  run.Do({"INCR", "k"}, "-TRYAGAIN The operation was not executed\r\n");
  run.Do({"INCR", "k"}, "-OOM command not allowed\r\n");
  EXPECT_EQ(run.Verdict(), CheckVerdict::kLinearizable);
  run.Do({"GET", "k"}, "$1\r\n1\r\n");
  EXPECT_EQ(run.Verdict(), CheckVerdict::kNot);
}

TEST(NemesisGenerationTest, DamagedDataIsNeverExcused) {
  ScriptedGeneration run;
  run.Do({"GET", "k"}, "-ERR The stored data of this key is damaged\r\n");
  EXPECT_EQ(run.Verdict(), CheckVerdict::kNot);
}

TEST(NemesisGenerationTest, KeysBelongToTheirGenerationAndMixesLeaveDeadlinesOut) {
  for (uint64_t number = 0; number < 50; ++number) {
    const Generation generation(number, {.seed = 3, .clients = 3, .operations = 40});
    const std::string prefix = "g" + std::to_string(number) + ":";
    for (const std::string& key : generation.keys()) EXPECT_TRUE(key.starts_with(prefix)) << key;
    for (uint32_t client = 0; client < 3; ++client) {
      for (const Command& command : generation.program(client)) {
        if (command[0] == "FLUSHDB" || command[0] == "SWAPDB") continue;
        EXPECT_THAT(KeyOf(command), StartsWith(prefix)) << command[0] << " " << command[1];
        EXPECT_TRUE(command.size() < 4 || command[3] != "PX") << command[0] << " " << command[1];
      }
    }
  }
}

// hiredis does not tell them apart by itself.
TEST(NemesisConnectionTest, NullsOfStringsAndOfArraysStayWhatTheyAre) {
  const std::string path = testing::TempDir() + "/nulls." + std::to_string(getpid());
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(name.sun_path));
  std::memcpy(name.sun_path, path.data(), path.size());
  const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  Connection connection(path, 5000);
  ASSERT_TRUE(connection.Connect());
  const int peer = accept(listener, nullptr, nullptr);
  for (const std::string_view reply : {"*-1\r\n", "$-1\r\n", "*2\r\n*-1\r\n$-1\r\n"}) {
    ASSERT_EQ(write(peer, reply.data(), reply.size()), static_cast<ssize_t>(reply.size()));
    EXPECT_EQ(connection.Call({"PING"}), reply);
  }
  close(peer);
  close(listener);
  unlink(path.c_str());
}

TEST(NemesisLastingTest, ALostIncrementIsTold) {
  Lasting lasting(1, 1);
  for (int i = 1; i <= 3; ++i) lasting.Incremented(0, RespInteger(i), Ending::kAnswered);
  lasting.Incremented(0, "", Ending::kUnknown);
  lasting.CounterRead("a", 0, "$1\r\n3\r\n");
  lasting.CounterRead("a", 0, "$1\r\n4\r\n");
  EXPECT_THAT(lasting.failures(), IsEmpty());
  lasting.CounterRead("a", 0, "$1\r\n2\r\n");
  EXPECT_THAT(lasting.failures(), ElementsAre(HasSubstr("after 3 acknowledged INCRs and 1 of")));
}

TEST(NemesisLastingTest, AnIncrementThatHappenedTwiceIsTold) {
  Lasting lasting(1, 1);
  lasting.Incremented(0, RespInteger(1), Ending::kAnswered);
  lasting.CounterRead("a", 0, "$1\r\n2\r\n");
  EXPECT_THAT(lasting.failures(), ElementsAre(HasSubstr("counter:0")));
}

TEST(NemesisLastingTest, TwoIncrementsWithOneAnswerAreTold) {
  Lasting lasting(1, 1);
  lasting.Incremented(0, RespInteger(5), Ending::kAnswered);
  lasting.Incremented(0, RespInteger(5), Ending::kAnswered);
  EXPECT_THAT(lasting.failures(), ElementsAre(HasSubstr("answered 5 twice")));
}

TEST(NemesisLastingTest, AnAcknowledgedKeyThatIsMissingOrElseIsTold) {
  Lasting lasting(1, 1);
  const std::string key = Lasting::OnceKey(0, 4);
  lasting.WrittenOnce(key, Ending::kAnswered);
  lasting.OnceRead("a", key, RespBulk(Lasting::OnceValue(key)));
  lasting.OnceRead("a", key, "-TRYAGAIN later\r\n");
  lasting.OnceRead("a", key, "");
  EXPECT_THAT(lasting.failures(), IsEmpty());
  lasting.OnceRead("a", key, kRespNil);
  lasting.OnceRead("b", key, RespBulk("another"));
  EXPECT_THAT(lasting.failures(),
              ElementsAre(AllOf(HasSubstr(key), HasSubstr("lost"), HasSubstr("by a")),
                          AllOf(HasSubstr("another"), HasSubstr("by b"))));
}

TEST(NemesisLastingTest, AnOldValueOfARegisterIsToldUnlessItsWriteMayHaveComeLate) {
  Lasting lasting(1, 1);
  for (int i = 1; i <= 3; ++i) {
    const uint64_t value = lasting.NextValue(0);
    lasting.RegisterWritten(0, value, value == 2 ? Ending::kUnknown : Ending::kAnswered);
  }
  lasting.RegisterRead("a", 0, 3, "$1\r\n3\r\n");
  lasting.RegisterRead("a", 0, 3, "$1\r\n2\r\n");
  EXPECT_THAT(lasting.failures(), IsEmpty());
  lasting.RegisterRead("a", 0, 3, "$1\r\n1\r\n");
  lasting.RegisterRead("a", 0, 3, "$1\r\n4\r\n");
  lasting.RegisterRead("a", 0, 3, kRespNil);
  EXPECT_EQ(lasting.failures().size(), 3U);
}

constexpr Ending kOk = Ending::kAnswered;
constexpr uint64_t kMs = 1'000'000;

TEST(NemesisGapsTest, AGapEndsWithASuccessAndCountsOnlyWhileTheAgentIsUp) {
  Gaps gaps(2);
  gaps.Answered(0, {"GET", "k"}, kOk, 5 * kMs);
  EXPECT_THAT(gaps.Longest(0), IsEmpty());
  gaps.AgentUp(0, 10 * kMs);
  gaps.Answered(0, {"get", "k"}, kOk, 30 * kMs);
  gaps.Answered(0, {"GET", "k"}, Ending::kNotApplied, 40 * kMs);
  gaps.Answered(1, {"GET", "k"}, kOk, 50 * kMs);
  gaps.AgentDown(0, 100 * kMs);
  gaps.AgentUp(0, 1000 * kMs);
  gaps.End(1001 * kMs);
  ASSERT_EQ(gaps.Longest(0).size(), 2U);
  EXPECT_EQ(gaps.Longest(0)[0].ns, 70 * kMs);
  EXPECT_EQ(gaps.Longest(0)[0].start_ns, 30 * kMs);
  EXPECT_EQ(gaps.Longest(0)[1].ns, 20 * kMs);
}

TEST(NemesisGapsTest, WhileTheMemoryIsFullOnlyReadsAreExpected) {
  Gaps gaps(1);
  gaps.AgentUp(0, 0);
  gaps.MemoryFull(10);
  gaps.MemoryFree(1000);
  gaps.End(1005);
  EXPECT_EQ(gaps.Longest(0)[0].ns, 1005U);
  EXPECT_EQ(gaps.Longest(1)[0].ns, 10U);
  EXPECT_EQ(gaps.Longest(2)[0].ns, 10U);
}

TEST(NemesisGenerationTest, FlushesAndSwapsStayInDatabasesOfTheirOwn) {
  for (uint64_t number = 0; number < 200; ++number) {
    const Generation generation(number, {.seed = 3, .clients = 4, .operations = 100});
    const std::vector<uint32_t> databases = generation.databases();
    bool whole = false;
    for (uint32_t client = 0; client < 4; ++client) {
      EXPECT_THAT(databases, ::testing::Contains(generation.DatabaseOf(client)));
      for (const Command& command : generation.program(client)) {
        whole |= command[0] == "FLUSHDB" || command[0] == "SWAPDB";
        EXPECT_NE(command[0], "FLUSHALL");
        const Command sent = generation.OnTheWire(command);
        if (sent[0] != "SWAPDB") continue;
        EXPECT_THAT(sent, ElementsAre("SWAPDB", std::to_string(databases[0]),
                                      std::to_string(databases[1])));
      }
    }
    EXPECT_EQ(databases[0] != 0, Generation::MayHaveWholeKeyspaces(number));
    EXPECT_TRUE(!whole || databases[0] != 0);
    for (const std::string& key : generation.keys()) EXPECT_TRUE(key.starts_with("g")) << key;
  }
}

TEST(NemesisGenerationTest, DatabasesAreUsedAgainAndThenShared) {
  const GenerationOptions options{.seed = 3, .clients = 4, .operations = 100};
  const auto share = [&](uint64_t one, uint64_t other) {
    return Generation(one, options).SharesKeyspacesWith(Generation(other, options));
  };
  EXPECT_TRUE(share(87, 129));
  EXPECT_FALSE(share(87, 126));
  EXPECT_FALSE(share(87, 88)) << "that one is plain";
  GenerationOptions plain = options;
  plain.plain = true;
  EXPECT_FALSE(Generation(87, options).SharesKeyspacesWith(Generation(129, plain)));
}

TEST(NemesisGrowthTest, EachKindOfLossIsTold) {
  Growth growth;
  const Growth::BatchPtr batch = growth.Begin(0);
  batch->endings.fill(Ending::kAnswered);
  batch->endings[1] = Ending::kNotApplied;
  batch->endings[2] = Ending::kUnknown;
  growth.Written(batch);
  const auto bulk = [&](size_t index) { return RespBulk(Growth::Value(*batch, index)); };
  growth.Read("a", *batch, 0, bulk(0));
  growth.Read("a", *batch, 1, kRespNil);
  growth.Read("a", *batch, 2, kRespNil);
  growth.Read("a", *batch, 2, bulk(2));
  growth.Read("a", *batch, 0, kUnknownError);
  growth.Read("a", *batch, 0, "");
  EXPECT_THAT(growth.failures(), IsEmpty());
  growth.Read("a", *batch, 0, kRespNil);
  growth.Read("a", *batch, 1, bulk(1));
  growth.Read("a", *batch, 2, bulk(3));
  EXPECT_THAT(growth.failures(), ElementsAre(HasSubstr("acknowledged SET grow:0:0 is lost"),
                                             HasSubstr("refused SET grow:0:1 took effect"),
                                             HasSubstr("unknown outcome grow:0:2 is lost")));
}

TEST(NemesisGrowthTest, ABatchThatSomebodyReadsIsNotDeleted) {
  Growth growth;
  Rng rng(1);
  growth.Written(growth.Begin(0));
  EXPECT_EQ(growth.TakeOldest(0, 1), nullptr);
  growth.Written(growth.Begin(1));
  EXPECT_EQ(growth.TakeOldest(0, 1), nullptr) << "the other one's";
  growth.Written(growth.Begin(0));
  Growth::BatchPtr read;
  while (read == nullptr || read->number != 0) {
    if (read != nullptr) growth.EndRead(read);
    read = growth.BeginRead(rng);
  }
  EXPECT_EQ(growth.TakeOldest(0, 1), nullptr);
  growth.EndRead(read);
  EXPECT_EQ(growth.TakeOldest(0, 1), read);
  EXPECT_EQ(growth.live().size(), 2U);
}

TEST(NemesisDeadlinesTest, WhatIsGoneTooEarlyOrThereTooLateIsTold) {
  constexpr uint64_t kMs = 1'000'000;
  Deadlines deadlines;
  const Deadlines::Entry entry{"deadline:1", 10'000, 1000 * kMs, 1100 * kMs};
  const std::string value = RespBulk(Deadlines::Value(entry.key));
  deadlines.Read("a", entry, 1200 * kMs, 1300 * kMs, value);
  deadlines.Read("a", entry, 9000 * kMs, 9100 * kMs, kRespNil);
  deadlines.Read("a", entry, 12'000 * kMs, 12'100 * kMs, value);
  deadlines.Read("a", entry, 1200 * kMs, 1300 * kMs, kUnknownError);
  EXPECT_THAT(deadlines.failures(), IsEmpty());
  deadlines.Read("a", entry, 1200 * kMs, 1300 * kMs, kRespNil);
  deadlines.Read("a", entry, 20'000 * kMs, 20'100 * kMs, value);
  deadlines.Read("a", entry, 1200 * kMs, 1300 * kMs, RespBulk("another"));
  EXPECT_THAT(deadlines.failures(),
              ElementsAre(HasSubstr("long before its deadline"),
                          HasSubstr("long after its deadline"), HasSubstr("another")));
}

}  // namespace
}  // namespace onetrip
