// The checker on collections: histories known to be bad are rejected, and their good twins are not.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/collection_model.h"
#include "tests/support/linearizability.h"

namespace onetrip {
namespace {

const std::string kWrongType =
    RespError("WRONGTYPE Operation against a key holding the wrong kind of value");
std::string N(int64_t number) { return RespInteger(number); }
std::string V(std::string_view value) { return RespBulk(value); }
std::string A(const std::vector<std::string>& values) {
  std::vector<std::string> elements;
  elements.reserve(values.size());
  for (const std::string& value : values) elements.push_back(V(value));
  return RespArray(elements);
}

Command Words(const std::string& words) {
  Command command;
  std::istringstream stream(words);
  for (std::string word; stream >> word;) command.push_back(word);
  return command;
}

HistoryOp Op(uint64_t start, uint64_t end, const std::string& words, const std::string& reply) {
  HistoryOp op;
  op.argv = Words(words);
  op.start = op.start_ns = start;
  op.end = op.end_ns = end;
  op.ending = ClassifyReply(op.argv, reply);
  op.reply = reply;
  return op;
}

void Answer(HistoryOp* op, const std::string& reply) {
  op->reply = reply;
  op->ending = ClassifyReply(op->argv, reply);
}

// The two differ in one reply: the last one.
void ExpectLastDecides(std::vector<HistoryOp> ops, const std::string& bad,
                       const std::string& good) {
  Answer(&ops.back(), bad);
  EXPECT_EQ(CheckKey(ops, {}).verdict, CheckVerdict::kNot) << DescribeHistory(ops);
  Answer(&ops.back(), good);
  const CheckResult result = CheckKey(ops, {});
  EXPECT_EQ(result.verdict, CheckVerdict::kLinearizable) << result.message;
}

TEST(CheckerOfCollections, RejectsAnElementThatTwoHavePopped) {
  ExpectLastDecides(
      {Op(0, 1, "RPUSH k a b", N(2)), Op(2, 9, "LPOP k", V("a")), Op(3, 8, "LPOP k", "")}, V("a"),
      V("b"));
}

TEST(CheckerOfCollections, RejectsALostPush) {
  ExpectLastDecides(
      {Op(0, 9, "RPUSH k a", N(1)), Op(1, 8, "RPUSH k b", N(2)), Op(10, 11, "LRANGE k 0 -1", "")},
      A({"b"}), A({"a", "b"}));
}

TEST(CheckerOfCollections, RejectsHalfOfACommand) {
  ExpectLastDecides({Op(0, 9, "HSET k a 1 b 2", N(2)), Op(1, 2, "HGETALL k", "")}, A({"a", "1"}),
                    A({"a", "1", "b", "2"}));
}

TEST(CheckerOfCollections, RejectsAHashThatFadesAndComesBack) {
  ExpectLastDecides({Op(0, 1, "HSET k a 1", N(1)), Op(2, 20, "HDEL k a", N(1)),
                     Op(3, 4, "HGETALL k", RespArray({})), Op(5, 6, "HGET k a", "")},
                    V("1"), std::string(kRespNil));
}

TEST(CheckerOfCollections, RejectsALostIncrement) {
  ExpectLastDecides({Op(0, 9, "HINCRBY k n 1", N(1)), Op(1, 8, "HINCRBY k n 1", "")}, N(1), N(2));
  ExpectLastDecides({Op(0, 9, "ZINCRBY k 3 m", V("3")), Op(1, 8, "ZINCRBY k 2 m", "")}, V("2"),
                    V("5"));
}

TEST(CheckerOfCollections, RejectsScoresOutOfOrder) {
  ExpectLastDecides({Op(0, 1, "ZADD k 2 a 1 b", N(2)), Op(2, 3, "ZRANGE k 0 -1 WITHSCORES", "")},
                    A({"a", "2", "b", "1"}), A({"b", "1", "a", "2"}));
}

TEST(CheckerOfCollections, RejectsAMemberThatIsAddedTwice) {
  ExpectLastDecides({Op(0, 9, "SADD k a", N(1)), Op(1, 8, "SADD k a", "")}, N(1), N(0));
}

TEST(CheckerOfCollections, RejectsAnEntryThatIsLostOrOutOfPlace) {
  const std::vector<HistoryOp> ops = {Op(0, 9, "XADD k 1-1 f a", V("1-1")),
                                      Op(1, 8, "XADD k 2-1 f b", V("2-1")),
                                      Op(10, 11, "XRANGE k - +", "")};
  const std::string first = RespArray({V("1-1"), A({"f", "a"})});
  const std::string second = RespArray({V("2-1"), A({"f", "b"})});
  ExpectLastDecides(ops, RespArray({second}), RespArray({first, second}));
  ExpectLastDecides(ops, RespArray({second, first}), RespArray({first, second}));
}

TEST(CheckerOfCollections, KnowsThatAStreamRemembersItsLastId) {
  const std::string refused =
      RespError("ERR The ID specified in XADD is equal or smaller than the target stream top item");
  ExpectLastDecides({Op(0, 1, "XADD k 2-1 f a", V("2-1")), Op(2, 3, "XDEL k 2-1", N(1)),
                     Op(4, 5, "XLEN k", N(0)), Op(6, 7, "XADD k 1-1 f a", "")},
                    V("1-1"), refused);
  ExpectLastDecides({Op(0, 1, "XADD k 2-1 f a", V("2-1")), Op(2, 3, "XTRIM k MAXLEN 0", N(1)),
                     Op(4, 5, "TYPE k", "")},
                    "+none\r\n", "+stream\r\n");
}

TEST(CheckerOfCollections, RejectsAnEntryThatIsGivenTwice) {
  const std::vector<HistoryOp> ops = {
      Op(0, 1, "XADD k 1-1 f a", V("1-1")),
      Op(2, 3, "XGROUP CREATE k g 0 MKSTREAM", std::string(kRespOk)),
      Op(4, 9, "XREADGROUP GROUP g c COUNT 2 STREAMS k >", "*-1\r\n"),
      Op(5, 8, "XREADGROUP GROUP g d COUNT 2 STREAMS k >", "")};
  const std::string entry = RespArray({V("1-1"), A({"f", "a"})});
  const std::string given = RespArray({RespArray({V("k"), RespArray({entry})})});
  ExpectLastDecides(ops, "*-1\r\n", given);
  std::vector<HistoryOp> and_done = ops;
  and_done.back().reply = given;
  and_done.push_back(Op(10, 11, "XACK k g 1-1", N(1)));
  and_done.push_back(Op(12, 13, "XPENDING k g", ""));
  const std::string nil(kRespNil);
  ExpectLastDecides(and_done, RespArray({N(1), V("1-1"), V("1-1"), RespArray({A({"d", "1"})})}),
                    RespArray({N(0), nil, nil, "*-1\r\n"}));
}

TEST(CheckerOfCollections, KnowsTypes) {
  ExpectLastDecides({Op(0, 1, "HSET k a 1", N(1)), Op(2, 3, "LPUSH k a", "")}, N(1), kWrongType);
  ExpectLastDecides({Op(0, 1, "SET k v", std::string(kRespOk)), Op(2, 3, "SADD k a", "")}, N(1),
                    kWrongType);
  ExpectLastDecides({Op(0, 1, "SADD k a", N(1)), Op(2, 3, "GET k", "")}, V("a"), kWrongType);
  ExpectLastDecides({Op(0, 1, "SADD k a", N(1)), Op(2, 3, "TYPE k", "")}, "+string\r\n",
                    "+set\r\n");
  ExpectLastDecides({Op(0, 1, "SADD k a", N(1)), Op(2, 3, "SET k v GET", "")},
                    std::string(kRespNil), kWrongType);
}

TEST(CheckerOfCollections, KnowsThatAnEmptyOneIsGone) {
  ExpectLastDecides(
      {Op(0, 1, "RPUSH k a", N(1)), Op(2, 3, "RPOP k", V("a")), Op(4, 5, "EXISTS k", "")}, N(1),
      N(0));
  ExpectLastDecides({Op(0, 1, "ZADD k 1 a", N(1)), Op(2, 3, "ZPOPMIN k", A({"a", "1"})),
                     Op(4, 5, "SET k v NX", "")},
                    std::string(kRespNil), std::string(kRespOk));
}

TEST(CheckerOfCollections, OverwritesAndDeletesThem) {
  ExpectLastDecides({Op(0, 1, "RPUSH k a", N(1)), Op(2, 3, "SET k v", std::string(kRespOk)),
                     Op(4, 5, "GET k", "")},
                    kWrongType, V("v"));
  ExpectLastDecides(
      {Op(0, 1, "RPUSH k a", N(1)), Op(2, 3, "DEL k", N(1)), Op(4, 5, "RPUSH k b", "")}, N(2),
      N(1));
}

TEST(CheckerOfCollections, TakesAllCommandsOfItsTable) {
  for (const char* const words : {"LPUSH k a",
                                  "RPUSH k a",
                                  "LPOP k",
                                  "RPOP k",
                                  "LRANGE k 0 -1",
                                  "LLEN k",
                                  "HSET k a 1",
                                  "HGET k a",
                                  "HINCRBY k a 1",
                                  "HDEL k a",
                                  "HGETALL k",
                                  "HLEN k",
                                  "SADD k a",
                                  "SREM k a",
                                  "SISMEMBER k a",
                                  "SCARD k",
                                  "ZADD k 1 a",
                                  "ZINCRBY k 1 a",
                                  "ZREM k a",
                                  "ZRANGE k 0 -1 WITHSCORES",
                                  "ZPOPMIN k",
                                  "ZCARD k",
                                  "XADD k 1-1 f a",
                                  "XDEL k 1-1",
                                  "XTRIM k MAXLEN 2",
                                  "XRANGE k - +",
                                  "XLEN k",
                                  "XGROUP CREATE k g 0 MKSTREAM",
                                  "XREADGROUP GROUP g c COUNT 2 STREAMS k >",
                                  "XACK k g 1-1",
                                  "XPENDING k g"}) {
    const Command command = Words(words);
    ASSERT_TRUE(IsCollectionCommand(CommandName(command))) << words;
    const CollectionOutcome outcome = StepCollection(command, std::nullopt);
    EXPECT_FALSE(outcome.reply.empty()) << words;
    EXPECT_FALSE(CollectionCommandReads(CommandName(command)) && outcome.next) << words;
  }
}

}  // namespace
}  // namespace onetrip
