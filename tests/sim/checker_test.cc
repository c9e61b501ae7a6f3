// The checker itself: histories known to be bad are rejected, and their good twins are not.
//
// In these histories a position is also a millisecond of true time.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/linearizability.h"

namespace onetrip {
namespace {

constexpr uint64_t kNever = HistoryOp::kNever;
constexpr uint64_t kNsPerMs = 1'000'000;

const std::string kOk(kRespOk);
const std::string kNil(kRespNil);
std::string N(int64_t number) { return RespInteger(number); }
std::string V(std::string_view value) { return RespBulk(value); }

// `words` are separated by blanks.
HistoryOp Op(uint64_t start, uint64_t end, const std::string& words, std::string reply) {
  HistoryOp op;
  std::istringstream stream(words);
  for (std::string word; stream >> word;) op.argv.push_back(word);
  op.start = start;
  op.end = end;
  op.start_ns = start * kNsPerMs;
  op.end_ns = end == kNever ? kNever : end * kNsPerMs;
  op.ending = ClassifyReply(op.argv, reply);
  op.reply = std::move(reply);
  return op;
}

HistoryOp Lost(uint64_t start, const std::string& words) { return Op(start, kNever, words, ""); }

using Ops = std::vector<HistoryOp>;

void ExpectGood(const Ops& ops, const InitialState& initial = {},
                const CheckOptions& options = {}) {
  const CheckResult result = CheckKey(ops, initial, options);
  EXPECT_EQ(result.verdict, CheckVerdict::kLinearizable) << result.message;
}

void ExpectBad(const Ops& ops, const InitialState& initial = {}, const CheckOptions& options = {}) {
  const CheckResult result = CheckKey(ops, initial, options);
  EXPECT_EQ(result.verdict, CheckVerdict::kNot) << DescribeHistory(ops);
  EXPECT_NE(result.message.find("nothing explains"), std::string::npos) << result.message;
}

void Answer(HistoryOp* op, const std::string& reply) {
  op->reply = reply;
  op->ending = ClassifyReply(op->argv, reply);
}

// The two differ in one reply: the last one.
void ExpectLastDecides(Ops ops, const std::string& bad, const std::string& good,
                       const InitialState& initial = {}, const CheckOptions& options = {}) {
  Answer(&ops.back(), bad);
  ExpectBad(ops, initial, options);
  Answer(&ops.back(), good);
  ExpectGood(ops, initial, options);
}

TEST(Checker, AcceptsConcurrentWritesInEitherOrder) {
  for (const char* winner : {"1", "2"}) {
    ExpectGood(
        {Op(0, 10, "SET k 1", kOk), Op(1, 9, "SET k 2", kOk), Op(11, 12, "GET k", V(winner))});
  }
}

TEST(Checker, RejectsAWriteThatIsVisibleTwice) {
  ExpectLastDecides({Op(0, 100, "SET k 1", kOk), Op(1, 101, "SET k 2", kOk),
                     Op(2, 3, "GET k", V("1")), Op(4, 5, "GET k", V("2")), Op(6, 7, "GET k", kNil)},
                    V("1"), V("2"));
}

TEST(Checker, RejectsALostUpdate) {
  // x = 5; INCR answers 6, SET 100 answers OK, GET gives 6 after both.
  const InitialState five = {.value = "5"};
  ExpectLastDecides(
      {Op(0, 10, "INCR k", N(6)), Op(1, 9, "SET k 100", kOk), Op(11, 12, "GET k", "")}, V("6"),
      V("100"), five);
  ExpectGood(
      {Op(0, 10, "INCR k", N(101)), Op(1, 9, "SET k 100", kOk), Op(11, 12, "GET k", V("101"))},
      five);
}

TEST(Checker, RejectsIncrementsThatAreLostOrRepeatTheirAnswer) {
  ExpectLastDecides({Op(0, 5, "INCR k", N(1)), Op(1, 6, "INCR k", "")}, N(1), N(2));
  ExpectLastDecides({Op(0, 5, "INCR k", N(1)), Op(1, 6, "INCR k", N(2)), Op(7, 8, "GET k", "")},
                    V("1"), V("2"));
}

TEST(Checker, RejectsAStaleReadAfterARead) {
  ExpectLastDecides({Op(0, 100, "SET k 2", kOk), Op(1, 2, "GET k", V("2")), Op(3, 4, "GET k", "")},
                    V("1"), V("2"), {.value = "1"});
}

TEST(Checker, RejectsAResurrectedDelete) {
  ExpectLastDecides({Op(0, 1, "DEL k", N(1)), Op(2, 3, "GET k", kNil), Op(4, 5, "GET k", "")},
                    V("7"), kNil, {.value = "7"});
}

TEST(Checker, RejectsADeleteThatTwoClientsCount) {
  ExpectLastDecides({Op(0, 5, "DEL k", N(1)), Op(1, 6, "DEL k", "")}, N(1), N(0), {.value = "7"});
}

TEST(Checker, RejectsTwoWinnersOfSetNx) {
  ExpectLastDecides({Op(0, 5, "SETNX k a", N(1)), Op(1, 6, "SETNX k b", "")}, N(1), N(0));
  ExpectLastDecides({Op(0, 5, "SET k a NX", kOk), Op(1, 6, "SET k b NX", "")}, kOk, kNil);
  ExpectGood({Op(0, 5, "SETNX k a", N(1)), Op(1, 6, "SETNX k b", N(1)), Op(2, 7, "DEL k", N(1))});
}

TEST(Checker, RejectsAValueReadBeforeItWasWritten) {
  ExpectLastDecides({Op(2, 3, "SET k 9", kOk), Op(0, 1, "GET k", "")}, V("9"), kNil);
  ExpectGood({Op(1, 3, "SET k 9", kOk), Op(0, 2, "GET k", V("9"))});
}

TEST(Checker, RejectsAppendsWhoseLengthsDoNotAddUp) {
  ExpectLastDecides({Op(0, 5, "APPEND k abc", N(3)), Op(1, 6, "APPEND k de", "")}, N(2), N(5));
  ExpectLastDecides(
      {Op(0, 5, "APPEND k abc", N(5)), Op(1, 6, "APPEND k de", N(2)), Op(7, 8, "GET k", "")},
      V("abcde"), V("deabc"));
}

TEST(Checker, RejectsAMixtureOfTwoValues) {
  ExpectLastDecides(
      {Op(0, 5, "SET k aaaa", kOk), Op(1, 6, "SET k bbbb", kOk), Op(2, 7, "GET k", "")}, V("aabb"),
      V("bbbb"));
}

TEST(Checker, LetsAWriteOfUnknownOutcomeHappenOnceAtAnyTimeOrNever) {
  const InitialState one = {.value = "1"};
  const Ops start = {Lost(0, "SET k 9"), Op(5, 6, "GET k", V("1"))};
  for (const char* last : {"1", "9"}) {
    Ops ops = start;
    ops.push_back(Op(7, 8, "GET k", V(last)));
    ExpectGood(ops, one);
  }
  ExpectLastDecides({Lost(0, "SET k 9"), Op(5, 6, "GET k", V("9")), Op(7, 8, "GET k", "")}, V("1"),
                    V("9"), one);
  ExpectBad({Op(0, 1, "GET k", V("9")), Lost(2, "SET k 9")}, one);
}

TEST(Checker, RejectsAWriteOfUnknownOutcomeThatTookEffectTwice) {
  ExpectLastDecides({Lost(0, "INCR k"), Op(1, 2, "GET k", V("1")), Op(3, 4, "GET k", "")}, V("2"),
                    V("1"));
  ExpectLastDecides({Lost(0, "SET k 9"), Op(1, 2, "GETDEL k", V("9")), Op(3, 4, "GET k", "")},
                    V("9"), kNil);
  // Two of them may well have.
  ExpectGood(
      {Lost(0, "INCR k"), Lost(1, "INCR k"), Op(2, 3, "GET k", V("1")), Op(4, 5, "GET k", V("2"))});
}

TEST(Checker, LetsAnUnknownWriteHappenAfterItsReply) {
  Ops ops = {Op(0, 1, "SET k 9", RespError("UNKNOWN The operation may or may not have happened")),
             Op(2, 3, "GET k", kNil), Op(4, 5, "GET k", V("9"))};
  ExpectGood(ops);
  ops[0] = Op(0, 1, "SET k 9", RespError("TRYAGAIN The operation was not executed"));
  ExpectBad(ops);
}

CheckOptions ClockErrorMs(uint64_t ms) {
  CheckOptions options;
  options.model.clock_error_ns = ms * kNsPerMs;
  return options;
}

TEST(Checker, RejectsAReadOfAnExpiredKeyAfterItsDeadline) {
  const auto read_at = [](uint64_t ms) {
    return Ops{Op(0, 1, "SET k v PXAT 10", kOk), Op(ms, ms, "GET k", V("v"))};
  };
  ExpectGood(read_at(9));
  ExpectBad(read_at(10));
  ExpectGood(read_at(12), {}, ClockErrorMs(3));
  ExpectBad(read_at(13), {}, ClockErrorMs(3));
}

TEST(Checker, RejectsAMissBeforeTheDeadline) {
  const auto miss_at = [](uint64_t ms) {
    return Ops{Op(0, 1, "SET k v PXAT 10", kOk), Op(ms, ms, "GET k", kNil)};
  };
  ExpectBad(miss_at(9));
  ExpectGood(miss_at(10));
  ExpectBad(miss_at(6), {}, ClockErrorMs(3));
  ExpectGood(miss_at(7), {}, ClockErrorMs(3));
}

TEST(Checker, RejectsAKeyThatComesBackAfterItWasSeenToExpire) {
  ExpectLastDecides(
      {Op(0, 1, "SET k v PXAT 10", kOk), Op(8, 9, "GET k", kNil), Op(10, 11, "GET k", "")}, V("v"),
      kNil, {}, ClockErrorMs(3));
}

TEST(Checker, GivesADeadlineFromNowTheTimeThatItsCommandTook) {
  // Set between 0 and 4 with 10 to go: gone between 10 and 14.
  const Ops set = {Op(0, 4, "SET k v PX 10", kOk)};
  const auto then = [&set](std::vector<HistoryOp> more) {
    more.insert(more.begin(), set[0]);
    return more;
  };
  ExpectBad(then({Op(9, 9, "GET k", kNil)}));
  ExpectGood(then({Op(10, 10, "GET k", kNil)}));
  ExpectGood(then({Op(13, 13, "GET k", V("v"))}));
  ExpectBad(then({Op(14, 14, "GET k", V("v"))}));
  // An answer that tells the deadline binds those after it.
  ExpectGood(then({Op(5, 5, "PTTL k", N(6)), Op(11, 11, "GET k", kNil)}));
  ExpectBad(then({Op(5, 5, "PTTL k", N(6)), Op(12, 12, "GET k", V("v"))}));
  ExpectBad(then({Op(5, 5, "PTTL k", N(10))}));
  ExpectBad(then({Op(5, 5, "PTTL k", N(-1))}));
  ExpectGood(then({Op(6, 6, "SET k w KEEPTTL", kOk), Op(14, 14, "GET k", kNil)}));
  ExpectBad(then({Op(6, 6, "SET k w KEEPTTL", kOk), Op(14, 14, "GET k", V("w"))}));
  ExpectBad(then({Op(6, 6, "SET k w", kOk), Op(14, 14, "GET k", kNil)}));
}

TEST(Checker, KnowsTheConditionsOfExpire) {
  const Ops set = {Op(0, 0, "SET k v PXAT 100", kOk)};
  for (const char* words : {"PEXPIREAT k 90 GT", "PEXPIREAT k 110 LT", "PEXPIREAT k 110 NX"}) {
    ExpectLastDecides({set[0], Op(1, 1, words, "")}, N(1), N(0));
  }
  for (const char* words : {"PEXPIREAT k 110 GT", "PEXPIREAT k 90 LT", "PEXPIRE k 9 XX"}) {
    ExpectLastDecides({set[0], Op(1, 1, words, "")}, N(0), N(1));
  }
  ExpectLastDecides({set[0], Op(1, 1, "PERSIST k", N(1)), Op(200, 201, "GET k", "")}, kNil, V("v"));
  ExpectLastDecides({set[0], Op(1, 1, "GETEX k PXAT 50", V("v")), Op(60, 61, "GET k", "")}, V("v"),
                    kNil);
  ExpectLastDecides({set[0], Op(1, 1, "PEXPIRE k 0", N(1)), Op(2, 3, "EXISTS k", "")}, N(1), N(0));
}

TEST(Checker, KnowsTheErrorsOfCommands) {
  ExpectLastDecides({Op(0, 1, "SET k abc", kOk), Op(2, 3, "INCR k", "")}, N(1),
                    RespError("ERR value is not an integer or out of range"));
  ExpectLastDecides({Op(0, 1, "SET k 9223372036854775807", kOk), Op(2, 3, "INCR k", "")}, N(1),
                    RespError("ERR increment or decrement would overflow"));
  ExpectLastDecides({Op(0, 1, "SET k v NX XX", "")}, kNil, RespError("ERR syntax error"));
  ExpectLastDecides({Op(0, 1, "SET k v PX 0", "")}, kOk,
                    RespError("ERR invalid expire time in 'set' command"));
}

TEST(Checker, ComparesRepliesByteForByte) {
  ExpectGood({Op(0, 1, "STRLEN k", ":0\r\n")});
  for (const char* reply : {":00\r\n", ":0\r\n\r\n", "$1\r\n0\r\n", "+0\r\n", ":0\n", ":0"}) {
    ExpectBad({Op(0, 1, "STRLEN k", reply)});
  }
}

TEST(Checker, TakesCommandsOnSeveralKeysAsOneStepForEach) {
  const Ops set = {Op(0, 1, "MSET a 1 b 2", kOk), Op(2, 9, "MSET a 3 b 4", kOk)};
  const auto verdict = [&set](HistoryOp last) {
    Ops ops = set;
    ops.push_back(std::move(last));
    return CheckHistory(ops).verdict;
  };
  // Half of the second MSET is there.
  EXPECT_EQ(verdict(Op(3, 4, "MGET a b", RespArray({V("3"), V("2")}))),
            CheckVerdict::kLinearizable);
  EXPECT_EQ(verdict(Op(3, 4, "MGET a b", RespArray({V("3"), V("1")}))), CheckVerdict::kNot);
  EXPECT_EQ(verdict(Op(3, 4, "MGET a b", RespArray({V("3")}))), CheckVerdict::kNot);
  EXPECT_EQ(verdict(Op(3, 4, "EXISTS a b", N(2))), CheckVerdict::kLinearizable);
  EXPECT_EQ(verdict(Op(3, 4, "EXISTS a b", N(3))), CheckVerdict::kNot);
}

TEST(Checker, RejectsACountThatTheKeysCannotAddUpTo) {
  const Ops both = {Op(0, 1, "MSET a 1 b 2", kOk), Op(2, 3, "DEL a b c", "")};
  for (int64_t count = 0; count <= 4; ++count) {
    Ops ops = both;
    Answer(&ops[1], N(count));
    EXPECT_EQ(CheckHistory(ops).verdict,
              count == 2 ? CheckVerdict::kLinearizable : CheckVerdict::kNot)
        << count;
  }
  // Another client may have been first with one of them, and has counted it.
  Ops ops = {both[0], Op(2, 5, "DEL a b", N(1)), Op(3, 4, "DEL b", N(1))};
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  Answer(&ops[2], N(0));
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kNot);
}

TEST(Checker, TakesAFlushForADeleteOfEveryKey) {
  const auto verdict = [](std::string flush_reply, const std::string& a, const std::string& b) {
    Ops ops = {Op(0, 1, "MSET a 1 b 2", kOk), Op(2, 3, "FLUSHALL", std::move(flush_reply)),
               Op(4, 5, "MGET a b", RespArray({a, b}))};
    return CheckHistory(ops).verdict;
  };
  EXPECT_EQ(verdict(kOk, kNil, kNil), CheckVerdict::kLinearizable);
  EXPECT_EQ(verdict(kOk, V("1"), kNil), CheckVerdict::kNot);
  EXPECT_EQ(verdict(kOk, kNil, V("2")), CheckVerdict::kNot);
  // Refused it has done nothing; of an unknown outcome it may have.
  const std::string refused = RespError("TRYAGAIN Nothing was flushed");
  EXPECT_EQ(verdict(refused, V("1"), V("2")), CheckVerdict::kLinearizable);
  EXPECT_EQ(verdict(refused, kNil, V("2")), CheckVerdict::kNot);
  const std::string unknown = RespError("UNKNOWN The operation may or may not");
  EXPECT_EQ(verdict(unknown, V("1"), V("2")), CheckVerdict::kLinearizable);
  EXPECT_EQ(verdict(unknown, kNil, kNil), CheckVerdict::kLinearizable);
  // An answer that no flush gives.
  EXPECT_EQ(verdict(RespError("ERR syntax error"), kNil, kNil), CheckVerdict::kNot);
}

TEST(Checker, LetsAFlushHappenOnceBetweenItsStartAndItsEnd) {
  Ops ops = {Op(0, 1, "SET k 1", kOk), Op(2, 9, "FLUSHDB", kOk), Op(3, 4, "GET k", V("1")),
             Op(5, 6, "GET k", kNil), Op(7, 8, "GET k", kNil)};
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  Answer(&ops[4], V("1"));
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kNot) << "what was flushed came back";
  // A key that is written beside it may be flushed or not.
  ops = {Op(0, 5, "FLUSHALL ASYNC", kOk), Op(1, 2, "SET k 1", kOk), Op(6, 7, "GET k", V("1"))};
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  Answer(&ops[2], kNil);
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  // Counts over several keys are looked at with the flush.
  ops = {Op(0, 1, "MSET a 1 b 2", kOk), Op(2, 3, "FLUSHALL", kOk), Op(4, 5, "DEL a b c", N(0))};
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  Answer(&ops[2], N(1));
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kNot);
}

TEST(Checker, TakesASwapForAnExchangeOfEveryKey) {
  Ops ops = {Op(0, 1, "MSET a 1 b 2", kOk),
             Op(2, 3, "SWAPDB 0 1", kOk),
             Op(4, 5, "MGET a b", RespArray({kNil, kNil})),
             Op(6, 7, "SET a 3", kOk),
             Op(8, 9, "SWAPDB 0 1", kOk),
             Op(10, 11, "MGET a b", RespArray({V("1"), V("2")})),
             Op(12, 13, "SWAPDB 0 1", kOk),
             Op(14, 15, "GET a", V("3"))};
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  for (const size_t swap : {1U, 4U, 6U}) {
    Ops refused = ops;
    Answer(&refused[swap], RespError("TRYAGAIN Nothing was swapped"));
    EXPECT_EQ(CheckHistory(refused).verdict, CheckVerdict::kNot) << swap;
    Answer(&refused[swap], RespError("UNKNOWN The operation may or may not"));
    EXPECT_EQ(CheckHistory(refused).verdict, CheckVerdict::kLinearizable) << swap;
    Answer(&refused[swap], RespError("ERR DB index is out of range"));
    EXPECT_EQ(CheckHistory(refused).verdict, CheckVerdict::kNot) << "no answer to it: " << swap;
  }
  // FLUSHDB leaves what is in the other database, FLUSHALL does not.
  for (const bool all : {false, true}) {
    ops = {Op(0, 1, "SET k 1", kOk), Op(2, 3, "SWAPDB 0 1", kOk),
           Op(4, 5, all ? "FLUSHALL" : "FLUSHDB", kOk), Op(6, 7, "SWAPDB 0 1", kOk),
           Op(8, 9, "GET k", all ? kNil : V("1"))};
    EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
    Answer(&ops[4], all ? V("1") : kNil);
    EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kNot);
  }
}

// A write lands in the database that it began in, or after the swap in the one that it finds: not
// in the other one once that was looked at.
TEST(Checker, LetsNoWriteLandInTheOtherDatabaseAfterASwap) {
  Ops ops = {Op(0, 9, "SET k 1", kOk), Op(1, 2, "SWAPDB 0 1", kOk), Op(3, 4, "GET k", kNil),
             Op(5, 6, "SWAPDB 0 1", kOk), Op(7, 8, "GET k", V("1"))};
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  ops = {Op(0, 9, "SET k 1", kOk),      Op(1, 2, "SWAPDB 0 1", kOk), Op(3, 4, "SWAPDB 0 1", kOk),
         Op(5, 6, "GET k", kNil),       Op(7, 8, "SWAPDB 0 1", kOk), Op(10, 11, "GET k", V("1")),
         Op(12, 13, "SWAPDB 0 1", kOk), Op(14, 15, "GET k", V("1"))};
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kNot);
  // Others see this there from the other database's side.
  ops = {Op(0, 5, "SET k 1", kOk), Op(1, 2, "SWAPDB 0 1", kOk), Op(3, 4, "GET k", kNil),
         Op(6, 7, "GET k", V("1"))};
  ops[2].database = ops[3].database = 1;
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kNot) << "it came there after the swap";
  Answer(&ops[2], V("1"));
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  // A key that is put away expires there.
  ops = {Op(0, 1, "SET k 1 PX 5", kOk), Op(2, 3, "SWAPDB 0 1", kOk), Op(20, 21, "SWAPDB 0 1", kOk),
         Op(22, 23, "GET k", kNil)};
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  Answer(&ops[3], V("1"));
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kNot);
}

TEST(Checker, FailsARunInWhichDataWasDamaged) {
  const CheckResult result =
      CheckHistory({Op(0, 1, "GET k", RespError("ERR The stored data of this key is damaged"))});
  EXPECT_EQ(result.verdict, CheckVerdict::kNot);
  EXPECT_NE(result.message.find("FAULT"), std::string::npos);
}

TEST(Checker, GivesUpOverBudgetAndOnCommandsThatItDoesNotKnow) {
  EXPECT_EQ(CheckKey({Op(0, 1, "PFADD k v", N(1))}, {}).verdict, CheckVerdict::kGaveUp);
  CheckOptions options;
  options.configurations_max = 10;
  Ops ops;
  for (uint64_t i = 0; i < 8; ++i) {
    ops.push_back(Op(i, 100 + i, "SET k " + std::to_string(i), kOk));
  }
  EXPECT_EQ(CheckKey(ops, {}, options).verdict, CheckVerdict::kGaveUp);
  EXPECT_EQ(CheckKey(ops, {}).verdict, CheckVerdict::kLinearizable);
}

TEST(Checker, ExplainsItselfByThePrefixTheTimelineAndTheStates) {
  const CheckResult result =
      CheckHistory({Op(0, 1, "SET k one", kOk), Op(2, 3, "SET k two", kOk),
                    Op(4, 5, "GET k", V("one")), Op(6, 7, "GET k", V("two"))});
  EXPECT_EQ(result.verdict, CheckVerdict::kNot);
  EXPECT_EQ(result.key, "k");
  EXPECT_EQ(result.prefix_ops, 3U);
  EXPECT_NE(result.message.find("SET k two -> OK"), std::string::npos) << result.message;
  EXPECT_NE(result.message.find("States before it:\n  \"two\""), std::string::npos)
      << result.message;
}

TEST(Checker, TakesManyOperationsOfUnknownOutcome) {
  // Counters that may or may not have happened, all alike; and writes that differ.
  Ops ops;
  for (uint64_t i = 0; i < 100; ++i) {
    ops.push_back(Lost(2 * i, "INCR n"));
    ops.push_back(Lost(2 * i + 1, "SET v " + std::to_string(i)));
  }
  ops.push_back(Op(1000, 1001, "GET n", V("37")));
  ops.push_back(Op(1002, 1003, "GET n", V("100")));
  ops.push_back(Op(1004, 1005, "GET v", V("12")));
  ops.push_back(Op(1006, 1007, "GET v", V("99")));
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kLinearizable);
  Ops twice = ops;
  twice.push_back(Op(1008, 1009, "GET v", V("12")));
  EXPECT_EQ(CheckHistory(twice).verdict, CheckVerdict::kNot);
  ops.push_back(Op(1008, 1009, "GET n", V("101")));
  EXPECT_EQ(CheckHistory(ops).verdict, CheckVerdict::kNot);
}

TEST(Replies, SayWhatBecameOfTheirCommand) {
  const Command set = {"SET", "k", "v"};
  const Command mset = {"MSET", "a", "1", "b", "2"};
  EXPECT_EQ(ClassifyReply(set, kOk), Ending::kAnswered);
  EXPECT_EQ(ClassifyReply(set, ""), Ending::kUnknown);
  EXPECT_EQ(ClassifyReply(set, RespError("UNKNOWN The operation may or may not")),
            Ending::kUnknown);
  EXPECT_EQ(ClassifyReply(set, RespError("TRYAGAIN The operation was not")), Ending::kNotApplied);
  EXPECT_EQ(ClassifyReply(set, RespError("OOM command not allowed")), Ending::kNotApplied);
  EXPECT_EQ(ClassifyReply(mset, RespError("OOM command not allowed")), Ending::kUnknown);
  EXPECT_EQ(ClassifyReply(mset, RespError("TRYAGAIN The operation")), Ending::kNotApplied);
  EXPECT_EQ(ClassifyReply(set, RespError("ERR The agent has lost its lease; the operation was")),
            Ending::kNotApplied);
  EXPECT_EQ(ClassifyReply(set, RespError("ERR internal error")), Ending::kFault);
  EXPECT_EQ(ClassifyReply(set, RespError("ERR syntax error")), Ending::kAnswered);
}

}  // namespace
}  // namespace onetrip
