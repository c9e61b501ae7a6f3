// The checker of several keys at once says no to what each key alone would let pass.
#include "tests/support/append_history.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/linearizability.h"

namespace onetrip {
namespace {

HistoryOp Op(uint64_t start, uint64_t end, Command argv, std::string reply) {
  HistoryOp op;
  op.ending = ClassifyReply(argv, reply);
  op.argv = std::move(argv);
  op.reply = std::move(reply);
  op.start = op.start_ns = start;
  op.end = op.end_ns = end;
  return op;
}
HistoryOp Append(uint64_t start, uint64_t end, const std::string& key, const std::string& token,
                 int64_t bytes) {
  return Op(start, end, {"APPEND", key, token}, RespInteger(bytes));
}
HistoryOp Get(uint64_t start, uint64_t end, const std::string& key, const std::string& value) {
  return Op(start, end, {"GET", key}, value.empty() ? std::string(kRespNil) : RespBulk(value));
}
HistoryOp Flush(uint64_t start, uint64_t end, std::string reply = std::string(kRespOk)) {
  return Op(start, end, {"FLUSHALL"}, std::move(reply));
}

using Ops = std::vector<HistoryOp>;
const Ops kBoth = {Append(0, 1, "list:x", "a;", 2), Append(2, 3, "list:y", "b;", 2)};

Ops With(Ops ops, const Ops& more) {
  ops.insert(ops.end(), more.begin(), more.end());
  return ops;
}

// Each key alone agrees: what is wrong is wrong between them.
void ExpectNoOrder(const Ops& ops) {
  EXPECT_TRUE(CheckHistory(ops).ok());
  EXPECT_NE(CheckAppends(ops), "");
}

TEST(AppendHistory, TakesWhatOneOrderExplains) {
  EXPECT_EQ(CheckAppends({}), "");
  EXPECT_EQ(CheckAppends(With(kBoth, {Get(4, 5, "list:x", "a;"), Get(6, 7, "list:y", "b;")})), "");
  EXPECT_EQ(CheckAppends(With(kBoth, {Flush(4, 10), Get(5, 6, "list:y", "b;"),
                                      Get(7, 8, "list:x", ""), Get(9, 11, "list:y", "")})),
            "");
  // Two flushes, and both keys are filled again in between.
  EXPECT_EQ(CheckAppends(With(
                kBoth, {Flush(4, 5), Append(6, 7, "list:x", "c;", 2), Get(8, 9, "list:x", "c;"),
                        Flush(10, 11), Get(12, 13, "list:x", ""), Get(14, 15, "list:y", "")})),
            "");
}

TEST(AppendHistory, AFlushHappensToAllKeysAtOneMoment) {
  ExpectNoOrder(With(kBoth, {Flush(4, 10), Get(5, 6, "list:x", ""), Get(7, 8, "list:y", "b;")}));
  // The same, seen by an append that finds nothing.
  ExpectNoOrder(
      With(kBoth, {Flush(4, 10), Append(5, 6, "list:x", "c;", 2), Get(7, 8, "list:y", "b;")}));
  // ... or by a client that appends behind the flush of one key, and then to the other, where it is
  // flushed.
  ExpectNoOrder(With(kBoth, {Flush(4, 20), Get(5, 6, "list:x", ""), Append(7, 8, "list:y", "d;", 4),
                             Get(9, 10, "list:y", "b;d;")}));
}

TEST(AppendHistory, AFlushOfUnknownOutcomeHappensToAllKeysOrNone) {
  ExpectNoOrder(With(kBoth, {Flush(4, 5, ""), Get(6, 7, "list:x", ""), Get(8, 9, "list:y", "b;")}));
  EXPECT_EQ(CheckAppends(
                With(kBoth, {Flush(4, 5, ""), Get(6, 7, "list:x", "a;"), Get(8, 9, "list:y", "")})),
            "");
}

TEST(AppendHistory, WhatIsWrongOnOneKeyIsWrong) {
  EXPECT_NE(CheckAppends(With(kBoth, {Get(4, 5, "list:x", "")})), "") << "lost";
  EXPECT_NE(CheckAppends(With(kBoth, {Get(4, 5, "list:x", "z;")})), "") << "out of nowhere";
  EXPECT_NE(CheckAppends(With(kBoth, {Get(4, 5, "list:x", "a;a;")})), "") << "twice";
  const Ops two = With(kBoth, {Append(4, 9, "list:x", "c;", 4), Append(5, 8, "list:x", "e;", 4)});
  EXPECT_NE(
      CheckAppends(With(two, {Get(10, 11, "list:x", "a;c;e;"), Get(12, 13, "list:x", "a;e;c;")})),
      "")
      << "in two orders";
  EXPECT_NE(CheckAppends(With(two, {Get(10, 11, "list:x", "a;c;e;"), Get(12, 13, "list:x", "e;")})),
            "")
      << "without its beginning";
  EXPECT_NE(CheckAppends(With(two, {Get(10, 11, "list:x", "a;c;e;"), Get(12, 13, "list:x", "a;")})),
            "")
      << "back in time";
}

}  // namespace
}  // namespace onetrip
