// ReplyWriter and OutputBuffer: the bytes of every kind of reply, and that none is lost or moved.
#include "redis_compat/protocol/resp_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "redis_compat/protocol/output_buffer.h"

namespace onetrip {
namespace {

template <typename Write>
std::string Reply(int protocol, Write write) {
  OutputBuffer buffer;
  ReplyWriter out(buffer, protocol);
  write(out);
  return buffer.TEST_ToString();
}

// Compares the replies that the two protocols make of the same call.
template <typename Write>
void ExpectReplies(Write write, std::string_view resp2, std::string_view resp3) {
  EXPECT_EQ(Reply(2, write), resp2);
  EXPECT_EQ(Reply(3, write), resp3);
}
template <typename Write>
void ExpectReply(Write write, std::string_view both) {
  ExpectReplies(write, both, both);
}

TEST(ReplyWriter, WritesWhatBothProtocolsShare) {
  ExpectReply([](ReplyWriter& out) { out.Ok(); }, "+OK\r\n");
  ExpectReply([](ReplyWriter& out) { out.Simple("PONG"); }, "+PONG\r\n");
  ExpectReply([](ReplyWriter& out) { out.Bulk("abc"); }, "$3\r\nabc\r\n");
  ExpectReply([](ReplyWriter& out) { out.Bulk(""); }, "$0\r\n\r\n");
  ExpectReply([](ReplyWriter& out) { out.BulkInteger(-12); }, "$3\r\n-12\r\n");
  ExpectReply([](ReplyWriter& out) { out.Array(12); }, "*12\r\n");
}

TEST(ReplyWriter, WritesHeadersOfEverySize) {
  for (const size_t count : {0U, 1U, 9U, 10U, 99U, 100U, 101U, 12345U}) {
    ExpectReply([count](ReplyWriter& out) { out.Array(count); },
                "*" + std::to_string(count) + "\r\n");
    ExpectReply([count](ReplyWriter& out) { out.Bulk(std::string(count, 'x')); },
                "$" + std::to_string(count) + "\r\n" + std::string(count, 'x') + "\r\n");
  }
}

TEST(ReplyWriter, WritesTheWholeRangeOfIntegers) {
  for (const int64_t value :
       {int64_t{0}, int64_t{7}, int64_t{-1}, int64_t{10}, std::numeric_limits<int64_t>::max(),
        std::numeric_limits<int64_t>::min()}) {
    ExpectReply([value](ReplyWriter& out) { out.Integer(value); },
                ":" + std::to_string(value) + "\r\n");
  }
}

TEST(ReplyWriter, DegradesWhatResp2DoesNotHave) {
  ExpectReplies([](ReplyWriter& out) { out.Null(); }, "$-1\r\n", "_\r\n");
  ExpectReplies([](ReplyWriter& out) { out.NullArray(); }, "*-1\r\n", "_\r\n");
  ExpectReplies([](ReplyWriter& out) { out.Map(2); }, "*4\r\n", "%2\r\n");
  ExpectReplies([](ReplyWriter& out) { out.Set(2); }, "*2\r\n", "~2\r\n");
  ExpectReplies([](ReplyWriter& out) { out.Push(3); }, "*3\r\n", ">3\r\n");
  ExpectReplies([](ReplyWriter& out) { out.Bool(true); }, ":1\r\n", "#t\r\n");
  ExpectReplies([](ReplyWriter& out) { out.Bool(false); }, ":0\r\n", "#f\r\n");
  ExpectReplies([](ReplyWriter& out) { out.Double(3.5); }, "$3\r\n3.5\r\n", ",3.5\r\n");
  ExpectReplies([](ReplyWriter& out) { out.Double(-std::numeric_limits<double>::infinity()); },
                "$4\r\n-inf\r\n", ",-inf\r\n");
  ExpectReplies([](ReplyWriter& out) { out.BigNumber("-123"); }, "$4\r\n-123\r\n", "(-123\r\n");
  ExpectReplies([](ReplyWriter& out) { out.Verbatim("hi", "txt"); }, "$2\r\nhi\r\n",
                "=6\r\ntxt:hi\r\n");
}

TEST(ReplyWriter, AnErrorIsOneLine) {
  ExpectReply([](ReplyWriter& out) { out.Error("ERR a\r\nb"); }, "-ERR a  b\r\n");
}

TEST(ReplyWriter, RemembersTheWordOfTheLastError) {
  OutputBuffer buffer;
  ReplyWriter out(buffer, 2);
  EXPECT_EQ(out.errors(), 0U);
  out.Error("WRONGTYPE Operation");
  EXPECT_EQ(out.last_error_word(), "WRONGTYPE");
  out.Error("nowordhereatallbutaverylongstringofletters and a blank");
  EXPECT_EQ(out.last_error_word(), "ERR");
  EXPECT_EQ(out.errors(), 2U);
}

TEST(ReplyWriter, CanBeSentElsewhere) {
  OutputBuffer kept;
  OutputBuffer dropped;
  ReplyWriter out(kept, 2);
  EXPECT_EQ(out.Redirect(&dropped), &kept);
  out.Ok();
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(dropped.TEST_ToString(), "+OK\r\n");
}

TEST(OutputBuffer, GivesBackWhatWasAppendedInOrder) {
  Rng rng(1);
  OutputBuffer buffer;
  std::string expected;
  for (int step = 0; step < 20'000; ++step) {
    if (rng.Below(3) > 0) {
      const size_t size = rng.Below(50) == 0 ? rng.Below(60'000) : rng.Below(200);
      const std::string piece(size, static_cast<char>('a' + step % 26));
      if (rng.Below(10) == 0) {
        OutputBuffer other;
        other.Append(piece.substr(0, size / 2));
        if (rng.Below(2) == 0) other.AppendShared(nullptr, "shared");
        other.Append(std::string_view(piece).substr(size / 2));
        other.Consume(rng.Below(other.size() + 1));
        expected += other.TEST_ToString();
        buffer.AppendAll(other);
        ASSERT_TRUE(other.empty());
        continue;
      } else if (rng.Below(10) == 0) {
        auto owner = std::make_shared<const std::string>(piece);
        buffer.AppendShared(owner, *owner);
      } else {
        buffer.Append(piece);
      }
      expected += piece;
    } else {
      const size_t size = rng.Below(expected.size() + 1);
      buffer.Consume(size);
      expected.erase(0, size);
    }
    ASSERT_EQ(buffer.size(), expected.size());
    if (step % 64 == 0) {
      ASSERT_EQ(buffer.TEST_ToString(), expected);
    }
  }
}

TEST(OutputBuffer, LetsGoOfForeignBytesOnceTheyAreSentOrTakenBack) {
  auto owner = std::make_shared<const std::string>(100'000, 'v');
  OutputBuffer buffer;
  ReplyWriter out(buffer, 2);
  out.Ok();
  const uint64_t begin = buffer.position();
  out.BulkShared(owner, std::string_view(*owner).substr(10));
  EXPECT_EQ(buffer.TEST_ToString(), "+OK\r\n$99990\r\n" + std::string(99'990, 'v') + "\r\n");
  EXPECT_EQ(owner.use_count(), 2);
  EXPECT_TRUE(buffer.RollBackTo(begin));
  EXPECT_EQ(buffer.TEST_ToString(), "+OK\r\n");
  EXPECT_EQ(owner.use_count(), 1);
  out.BulkShared(owner, *owner);
  out.Ok();
  buffer.Consume(buffer.size() - 7);
  EXPECT_EQ(buffer.TEST_ToString(), "\r\n+OK\r\n");
  EXPECT_EQ(owner.use_count(), 1);
}

TEST(OutputBuffer, RollsBackToAPlaceNotYetSent) {
  Rng rng(2);
  for (int round = 0; round < 300; ++round) {
    OutputBuffer buffer;
    std::string expected;
    for (uint64_t i = rng.Below(10); i > 0; --i) {
      const std::string piece(rng.Below(30'000), 'a');
      buffer.Append(piece);
      expected += piece;
    }
    const size_t sent = rng.Below(expected.size() + 1);
    buffer.Consume(sent);
    expected.erase(0, sent);
    const uint64_t place = buffer.position();
    for (uint64_t i = rng.Below(10); i > 0; --i) {
      buffer.Append(std::string(rng.Below(30'000), 'b'));
    }
    const size_t sent_later = rng.Below(expected.size() + 1);
    buffer.Consume(sent_later);
    expected.erase(0, sent_later);
    ASSERT_TRUE(buffer.RollBackTo(place));
    ASSERT_EQ(buffer.TEST_ToString(), expected);
    buffer.Append("tail");
    ASSERT_EQ(buffer.TEST_ToString(), expected + "tail");
  }
}

TEST(OutputBuffer, DoesNotRollBackWhatIsGone) {
  OutputBuffer buffer;
  const uint64_t place = buffer.position();
  buffer.Append("abc");
  buffer.Consume(1);
  EXPECT_FALSE(buffer.RollBackTo(place));
  EXPECT_EQ(buffer.TEST_ToString(), "bc");
}

TEST(OutputBuffer, HandsOutAsManyChunksAsAskedFor) {
  OutputBuffer buffer;
  for (int i = 0; i < 5; ++i) {
    buffer.Append(std::string(OutputBuffer::kChunkBytes, 'x'));
  }
  std::vector<std::string_view> views(3);
  EXPECT_EQ(buffer.Views(views), 3U);
  std::vector<std::string_view> more(10);
  EXPECT_EQ(buffer.Views(more), 5U);
}

TEST(OutputBuffer, KeepsOneChunkAndGivesTheRestBack) {
  OutputBuffer buffer;
  buffer.Append("small");
  buffer.Append(std::string(size_t{1} << 20, 'x'));
  EXPECT_GT(buffer.memory_bytes(), size_t{1} << 20);
  buffer.Clear();
  EXPECT_LE(buffer.memory_bytes(), OutputBuffer::kChunkBytes);
  buffer.Append("again");
  EXPECT_EQ(buffer.TEST_ToString(), "again");
  buffer.Clear();
  buffer.Release();
  EXPECT_EQ(buffer.memory_bytes(), 0U);
  buffer.Append("and again");
  EXPECT_EQ(buffer.TEST_ToString(), "and again");
}

}  // namespace
}  // namespace onetrip
