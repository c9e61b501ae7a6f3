// Commands on values in extents: what they answer, and that they leave turns to others meanwhile.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "client_core/base/large_memory.h"
#include "client_core/base/rng.h"
#include "tests/unit/redis_client.h"

namespace onetrip {
namespace {

class RedisLargeValues : public testing::Test {
 protected:
  static constexpr size_t kBytes = size_t{2} << 20;
  static constexpr uint64_t kPieces = kBytes / kTurnBytes;

  RedisLargeValues() {
    Rng rng(1);
    value_.resize(kBytes);
    for (char& byte : value_) byte = static_cast<char>(rng.Next());
    EXPECT_EQ(InTurns({"SET", "k", value_}), "+OK\r\n");
  }

  // The reply, and in turns() how many others would have had.
  std::string InTurns(const std::vector<std::string>& arguments) {
    const uint64_t before = worker_.worker.executor().turns();
    std::string reply = client_.Call(arguments);
    turns_ = worker_.worker.executor().turns() - before;
    return reply;
  }
  static std::string Bulk(const std::string& bytes) {
    return "$" + std::to_string(bytes.size()) + "\r\n" + bytes + "\r\n";
  }
  std::string Value(const std::string& key) {
    const std::string reply = InTurns({"GET", key});
    const size_t line_end = reply.find("\r\n") + 2;
    return reply[0] == '$' && reply[1] != '-' ? reply.substr(line_end, reply.size() - line_end - 2)
                                              : reply;
  }
  [[nodiscard]] uint64_t turns() const { return turns_; }

  RedisWorker worker_;
  RedisClient client_{worker_};
  std::string value_;
  uint64_t turns_ = 0;
};

TEST_F(RedisLargeValues, AreReadAndWrittenByThePiece) {
  EXPECT_GE(turns(), 4 * kPieces) << "what SET has made, and three replicas";
  EXPECT_TRUE(Value("k") == value_);
  EXPECT_GE(turns(), kPieces);
  EXPECT_EQ(InTurns({"APPEND", "k", "tail"}), ":" + std::to_string(kBytes + 4) + "\r\n");
  EXPECT_GE(turns(), 5 * kPieces);
  EXPECT_EQ(InTurns({"COPY", "k", "j"}), ":1\r\n");
  EXPECT_GE(turns(), 5 * kPieces);
  EXPECT_TRUE(Value("j") == value_ + "tail");
  EXPECT_EQ(InTurns({"RENAME", "j", "r"}), "+OK\r\n");
  EXPECT_LT(turns(), 6 * kPieces) << "what is moved is read once";
  EXPECT_TRUE(Value("r") == value_ + "tail");
}

TEST_F(RedisLargeValues, AreRepeatedByThePiece) {
  EXPECT_TRUE(InTurns({"ECHO", value_}) == Bulk(value_));
  EXPECT_GE(turns(), kPieces - 1);
  EXPECT_TRUE(InTurns({"PING", value_}) == Bulk(value_));
  EXPECT_GE(turns(), kPieces - 1);
  client_("MULTI");
  EXPECT_EQ(InTurns({"ECHO", value_}), "+QUEUED\r\n");
  EXPECT_TRUE(InTurns({"EXEC"}) == "*1\r\n" + Bulk(value_));
  EXPECT_GE(turns(), kPieces - 1);
}

TEST_F(RedisLargeValues, AreDumpedAndRestoredByThePiece) {
  const std::string reply = InTurns({"DUMP", "k"});
  EXPECT_GE(turns(), 2 * kPieces - 2) << "read, and summed up";
  const size_t line_end = reply.find("\r\n") + 2;
  const std::string payload = reply.substr(line_end, reply.size() - line_end - 2);
  ASSERT_EQ(reply, Bulk(payload));
  EXPECT_EQ(InTurns({"RESTORE", "r", "0", payload}), "+OK\r\n");
  EXPECT_GE(turns(), 5 * kPieces) << "summed up, and written";
  EXPECT_TRUE(Value("r") == value_);
  std::string damaged = payload;
  damaged[kBytes / 2] = static_cast<char>(damaged[kBytes / 2] ^ 1);
  EXPECT_EQ(InTurns({"RESTORE", "r", "0", damaged, "REPLACE"}),
            "-ERR DUMP payload version or checksum are wrong\r\n");
}

TEST_F(RedisLargeValues, AreJoinedByThePiece) {
  const std::string other = "\xff\x0f" + std::string(3 << 19, '\x55');
  client_.Call({"SET", "o", other});
  for (const std::string operation : {"AND", "OR", "XOR", "NOT"}) {
    std::string expected = value_;
    for (size_t i = 0; i < expected.size(); ++i) {
      const char with = i < other.size() ? other[i] : '\0';
      char& byte = expected[i];
      byte = static_cast<char>(operation == "AND"   ? byte & with
                               : operation == "OR"  ? byte | with
                               : operation == "XOR" ? byte ^ with
                                                    : ~byte);
    }
    const bool is_not = operation == "NOT";
    const std::vector<std::string> call =
        is_not ? std::vector<std::string>{"BITOP", operation, "d", "k"}
               : std::vector<std::string>{"BITOP", operation, "d", "o", "missing", "k"};
    if (operation == "AND") expected.assign(kBytes, '\0');
    EXPECT_EQ(InTurns(call), ":" + std::to_string(kBytes) + "\r\n");
    EXPECT_GE(turns(), 6 * kPieces) << "read, joined, written";
    EXPECT_TRUE(Value("d") == expected) << operation;
    if (is_not || operation == "OR" || operation == "XOR") continue;
    std::string both = other;
    for (size_t i = 0; i < both.size(); ++i) both[i] = static_cast<char>(both[i] & value_[i]);
    both.resize(kBytes);
    client_.Call({"BITOP", "AND", "d", "o", "k"});
    EXPECT_TRUE(Value("d") == both);
  }
}

TEST_F(RedisLargeValues, InTransactionsAreWorkedOnByThePiece) {
  EXPECT_EQ(client_("MULTI"), "+OK\r\n");
  EXPECT_EQ(client_("GETRANGE k 0 3"), "+QUEUED\r\n");
  EXPECT_EQ(client_("SETRANGE k 2 middle"), "+QUEUED\r\n");
  EXPECT_EQ(client_("GET k"), "+QUEUED\r\n");
  EXPECT_EQ(InTurns({"GETSET", "k", value_}), "+QUEUED\r\n");
  EXPECT_GE(turns(), kPieces - 1) << "the argument is copied";
  EXPECT_EQ(client_("STRLEN k"), "+QUEUED\r\n");
  EXPECT_EQ(client_("APPEND k tail"), "+QUEUED\r\n");
  std::string changed = value_;
  changed.replace(2, 6, "middle");
  const std::string length = ":" + std::to_string(kBytes) + "\r\n";
  const std::string expected = "*6\r\n" + Bulk(value_.substr(0, 4)) + length + Bulk(changed) +
                               Bulk(changed) + length + ":" + std::to_string(kBytes + 4) + "\r\n";
  EXPECT_TRUE(InTurns({"EXEC"}) == expected);
  EXPECT_GE(turns(), 7 * kPieces) << "read, three copies, written";
  EXPECT_TRUE(Value("k") == value_ + "tail");
}

TEST_F(RedisLargeValues, AreComparedWithShortOnesByThePiece) {
  EXPECT_EQ(InTurns({"SET", "needle", "b"}), "+OK\r\n");
  EXPECT_EQ(InTurns({"SET", "hay", std::string(kBytes, 'a') + "b"}), "+OK\r\n");
  EXPECT_EQ(InTurns({"LCS", "needle", "hay"}), "$1\r\nb\r\n");
  EXPECT_GE(turns(), 8 * kPieces) << "two rows of cells of four bytes, read";
  EXPECT_EQ(InTurns({"LCS", "hay", "needle", "LEN"}), ":1\r\n");
  EXPECT_GE(turns(), 8 * kPieces);
}

}  // namespace
}  // namespace onetrip
