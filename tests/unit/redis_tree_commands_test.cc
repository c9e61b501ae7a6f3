// Commands on collections that are trees, against the same commands on packed ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "tests/unit/redis_client.h"
#include "tests/unit/redis_tree_kv.h"

namespace onetrip {
namespace {

using Words = std::vector<std::string>;

std::string Text(const Words& words) {
  std::string text;
  for (const std::string& word : words) text += word.substr(0, 40) + ' ';
  return text;
}

// The bulks in a reply, in order of their bytes; to be compared where any order is right.
Words Bulks(const std::string& reply) {
  Words bulks;
  for (size_t at = reply.find('$'); at != std::string::npos; at = reply.find('$', at)) {
    const size_t begin = reply.find("\r\n", at) + 2;
    const size_t bytes = std::stoul(reply.substr(at + 1));
    bulks.push_back(reply.substr(begin, bytes));
    at = begin + bytes;
  }
  return bulks;
}

// One worker; the clients' stores hold collections differently. Keys of the one begin with "p".
class RedisTrees : public testing::Test {
 protected:
  // Runs a command on both, and returns its reply.
  std::string Both(Words words, bool in_any_order = false) {
    const std::string reply = trees_.Call(words);
    const std::string expected = packed_.Call(words);
    if (in_any_order) {
      Words got = Bulks(reply);
      Words wanted = Bulks(expected);
      std::sort(got.begin(), got.end());
      std::sort(wanted.begin(), wanted.end());
      EXPECT_EQ(got, wanted) << Text(words);
    } else {
      EXPECT_EQ(reply, expected) << Text(words);
    }
    return reply;
  }

  RedisWorker worker_;
  RedisWorker packed_worker_;
  TreeKv tree_kv_{worker_.worker->kv(), kTinyLimits};
  TreeKv packed_kv_{packed_worker_.worker->kv(), kNoTrees};
  RedisClient trees_{worker_, tree_kv_};
  RedisClient packed_{packed_worker_, packed_kv_};
};

std::string AnyField(Rng& rng, uint64_t fields) { return "f" + std::to_string(rng.Below(fields)); }

Words AnyHashCommand(Rng& rng, uint64_t fields) {
  const auto any_value = [&] {
    return rng.Below(4) == 0 ? std::string(rng.Below(100), 'v') : std::to_string(rng.Below(1000));
  };
  const uint64_t count = 1 + (rng.Below(10) == 0 ? rng.Below(20) : rng.Below(2));
  Words words;
  switch (rng.Below(12)) {
    case 0:
    case 1:
    case 2:
      words = {rng.Below(2) == 0 ? "HSET" : "HMSET", "h"};
      for (uint64_t i = 0; i < count; ++i) {
        words.push_back(AnyField(rng, fields));
        words.push_back(any_value());
      }
      return words;
    case 3:
    case 4:
      words = {"HDEL", "h"};
      for (uint64_t i = 0; i < 2 * count; ++i) words.push_back(AnyField(rng, fields));
      return words;
    case 5:
      return {"HSETNX", "h", AnyField(rng, fields), any_value()};
    case 6:
      return {"HINCRBY", "h", AnyField(rng, fields), "7"};
    case 7:
      return {"HINCRBYFLOAT", "h", AnyField(rng, fields), "0.5"};
    case 8:
      words = {"HMGET", "h"};
      for (uint64_t i = 0; i < count; ++i) words.push_back(AnyField(rng, fields));
      return words;
    case 9:
      return {"HGET", "h", AnyField(rng, fields)};
    case 10:
      return {"HEXISTS", "h", AnyField(rng, fields)};
    default:
      return {"HSTRLEN", "h", AnyField(rng, fields)};
  }
}

TEST_F(RedisTrees, HashesAreWhatPackedOnesAre) {
  uint64_t most_pages = 0;
  uint64_t packed_again = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    bool was_tree = false;
    for (int step = 0; step < 400 && !HasFailure(); ++step) {
      // It grows, and shrinks again.
      const uint64_t fields = step < 250 ? 200 : 20;
      if (step == 250) {
        Words words = {"HDEL", "h"};
        for (uint64_t i = 20; i < 200; ++i) words.push_back("f" + std::to_string(i));
        Both(words);
      }
      Both(AnyHashCommand(rng, fields));
      const TestPages* const pages = tree_kv_.PagesOf("h");
      if (pages != nullptr) most_pages = std::max<uint64_t>(most_pages, pages->pages());
      packed_again += was_tree && pages == nullptr ? 1 : 0;
      was_tree = pages != nullptr;
      if (step % 20 != 0) continue;
      Both({"HLEN", "h"});
      Both({"HGETALL", "h"}, /*in_any_order=*/true);
      Both({"OBJECT", "ENCODING", "h"});
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    Both({"DEL", "h"});
  }
  EXPECT_GT(most_pages, 20U);
  EXPECT_GT(packed_again, 10U);
}

TEST_F(RedisTrees, ARefusedChangeOfAHashChangesNothing) {
  Words words = {"HSET", "h"};
  for (int i = 0; i < 100; ++i) {
    words.push_back("f" + std::to_string(i));
    words.push_back("value");
  }
  Both(words);
  ASSERT_NE(tree_kv_.PagesOf("h"), nullptr);
  const uint64_t writes = tree_kv_.PagesOf("h")->writes();
  Both({"HINCRBY", "h", "f1", "1"});
  Both({"HINCRBYFLOAT", "h", "f1", "1"});
  Both({"HSETNX", "h", "f1", "1"});
  Both({"HDEL", "h", "none", "nor"});
  Both({"LPUSH", "h", "a"});
  Both({"SADD", "h", "a"});
  Both({"SISMEMBER", "h", "a"});
  EXPECT_EQ(tree_kv_.PagesOf("h")->writes(), writes);
  Both({"HSET", "h", "f1", std::string(kPageBytesMax + 1, 'l')});
  EXPECT_EQ(tree_kv_.PagesOf("h"), nullptr);
  Both({"HSET", "h", "f1", "short"});
  EXPECT_NE(tree_kv_.PagesOf("h"), nullptr);
}

TEST_F(RedisTrees, ADeadlineAndAWrongTypeTakeNoPage) {
  Words words = {"HSET", "h"};
  for (int i = 0; i < 100; ++i) {
    words.push_back("f" + std::to_string(i));
    words.push_back("value");
  }
  Both(words);
  ASSERT_NE(tree_kv_.PagesOf("h"), nullptr);
  const auto count = [this] {
    const TestPages& pages = *tree_kv_.PagesOf("h");
    return std::pair(pages.writes(), pages.pages());
  };
  const auto before = count();
  Both({"EXPIRE", "h", "1000"});
  Both({"PERSIST", "h"});
  Both({"INCR", "h"});
  Both({"APPEND", "h", "more"});
  Both({"SETRANGE", "h", "0", "more"});
  Both({"SET", "h", "v", "XX", "GET"});
  ASSERT_NE(tree_kv_.PagesOf("h"), nullptr);
  EXPECT_EQ(count(), before);
  Both({"HGETALL", "h"}, /*in_any_order=*/true);
}

TEST_F(RedisTrees, AFieldTakesAPagePerLevel) {
  Words words = {"HSET", "h"};
  for (int i = 0; i < 2000; ++i) {
    words.push_back("f" + std::to_string(i));
    words.push_back("value");
  }
  Both(words);
  TestPages& pages = *tree_kv_.PagesOf("h");
  const TreeRoot root = pages.root();
  const uint64_t levels = root.tops[0].height + 1U;
  EXPECT_GT(levels, 3U);
  uint64_t loads = pages.loads();
  Both({"HGET", "h", "f77"});
  EXPECT_EQ(pages.loads(), loads + levels);
  loads = pages.loads();
  const uint64_t writes = pages.writes();
  const uint64_t rounds = pages.rounds();
  Both({"HSET", "h", "f77", "other"});
  EXPECT_EQ(pages.writes(), writes + levels);
  EXPECT_LE(pages.rounds(), rounds + 2 * levels + 1);  // the test looks at all of them
}

std::string AnyElement(Rng& rng) {
  if (rng.Below(20) == 0) return std::string(rng.Below(150), 'e');
  return std::to_string(rng.Below(1000));
}

Words AnyListCommand(Rng& rng, uint64_t size) {
  const auto any_end = [&](const char* head, const char* tail) {
    return std::string(rng.Below(2) == 0 ? head : tail);
  };
  const auto any_index = [&] {
    const auto index = static_cast<int64_t>(rng.Below(size + 3));
    return std::to_string(rng.Below(3) == 0 ? -index : index);
  };
  const std::string key = rng.Below(8) == 0 ? "m" : "l";
  const uint64_t count = rng.Below(10) == 0 ? rng.Below(40) : 1 + rng.Below(3);
  Words words;
  switch (rng.Below(16)) {
    case 0:
    case 1:
    case 2:
      words = {any_end("LPUSH", "RPUSH"), key};
      if (rng.Below(4) == 0) words[0] += 'X';
      for (uint64_t i = 0; i <= count; ++i) words.push_back(AnyElement(rng));
      return words;
    case 3:
      return {any_end("LPOP", "RPOP"), key};
    case 4:
      return {any_end("LPOP", "RPOP"), key, std::to_string(count)};
    case 5:
    case 6:
      return {"LINDEX", key, any_index()};
    case 7:
      return {"LSET", key, any_index(), AnyElement(rng)};
    case 8:
      return {"LRANGE", key, any_index(), any_index()};
    case 9:
      return {"LTRIM", key, std::to_string(rng.Below(5)),
              std::to_string(-1 - static_cast<int>(rng.Below(5)))};
    case 10:
      return {"LMOVE", "l", "l", any_end("LEFT", "RIGHT"), any_end("LEFT", "RIGHT")};
    case 11:
      return {"LMOVE", any_end("l", "m"), any_end("l", "m"), any_end("LEFT", "RIGHT"),
              any_end("LEFT", "RIGHT")};
    case 12:
      return {"RPOPLPUSH", "l", "l"};
    case 13:
      return {"LMPOP", "2", "m", "l", any_end("LEFT", "RIGHT"), "COUNT", std::to_string(1 + count)};
    case 14:
      return {"LREM", key, any_end("1", "-1"), AnyElement(rng)};
    default:
      return {"LINSERT", key, any_end("BEFORE", "AFTER"), AnyElement(rng), AnyElement(rng)};
  }
}

uint64_t SizeIn(const std::string& reply) { return std::stoul(reply.substr(1)); }

TEST_F(RedisTrees, ListsAreWhatPackedOnesAre) {
  uint64_t most_pages = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Rng rng(seed);
    for (int step = 0; step < 300 && !HasFailure(); ++step) {
      const uint64_t size = SizeIn(Both({"LLEN", "l"}));
      Both(AnyListCommand(rng, size));
      if (rng.Below(40) == 0) {
        const auto first = std::to_string(rng.Below(size + 1));
        Both({"LTRIM", "l", first, std::to_string(rng.Below(size + 1))});
      }
      const TestPages* const pages = tree_kv_.PagesOf("l");
      if (pages != nullptr) most_pages = std::max<uint64_t>(most_pages, pages->pages());
      if (step % 10 == 0) Both({"LRANGE", "l", "0", "-1"});
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    Both({"LRANGE", "m", "0", "-1"});
    Both({"DEL", "l", "m"});
  }
  EXPECT_GT(most_pages, 20U);
}

TEST_F(RedisTrees, AQueueTakesAPagePerLevel) {
  Words words = {"RPUSH", "q"};
  for (int i = 0; i < 2000; ++i) words.push_back("element " + std::to_string(i));
  Both(words);
  Both({"LRANGE", "q", "500", "1500"});
  Both({"LPOP", "q", "700"});
  const TestPages& pages = *tree_kv_.PagesOf("q");
  const uint64_t levels = pages.root().tops[0].height + 1U;
  const uint64_t writes = pages.writes();
  const uint64_t count = pages.pages();
  for (int i = 0; i < 300; ++i) {
    Both({"RPUSH", "q", "element " + std::to_string(i)});
    Both({"LPOP", "q"});
  }
  EXPECT_LT(pages.writes() - writes, 600 * (levels + 1));
  EXPECT_LT(pages.pages(), count + count / 4);
  Both({"RPOP", "q", "1200"});
  Both({"RPOP", "q", "1200"});
  EXPECT_EQ(tree_kv_.PagesOf("q"), nullptr);
}

Words AnySetCommand(Rng& rng) {
  const auto any_member = [&] {
    return (rng.Below(10) == 0 ? std::string(30, 'm') : std::string()) +
           std::to_string(rng.Below(200));
  };
  const std::string key = rng.Below(4) == 0 ? "t" : "s";
  const uint64_t count = 1 + (rng.Below(10) == 0 ? rng.Below(30) : rng.Below(3));
  Words words;
  switch (rng.Below(6)) {
    case 0:
    case 1:
      words = {"SADD", key};
      break;
    case 2:
      words = {"SREM", key};
      break;
    case 3:
      return {"SMOVE", key, rng.Below(2) == 0 ? "s" : "t", any_member()};
    case 4:
      return {"SISMEMBER", key, any_member()};
    default:
      words = {"SMISMEMBER", key};
  }
  for (uint64_t i = 0; i < count; ++i) words.push_back(any_member());
  return words;
}

TEST_F(RedisTrees, SetsAreWhatPackedOnesAre) {
  uint64_t most_pages = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    for (int step = 0; step < 400 && !HasFailure(); ++step) {
      Both(AnySetCommand(rng));
      const TestPages* const pages = tree_kv_.PagesOf("s");
      if (pages != nullptr) most_pages = std::max<uint64_t>(most_pages, pages->pages());
      if (step % 20 != 0) continue;
      Both({"SCARD", "s"});
      Both({"SMEMBERS", "s"}, /*in_any_order=*/true);
      Both({"OBJECT", "ENCODING", "s"});
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    Both({"SMEMBERS", "t"}, /*in_any_order=*/true);
    Both({"DEL", "s", "t"});
  }
  EXPECT_GT(most_pages, 15U);
}

TEST_F(RedisTrees, AHugeBatchWritesEachPageOnce) {
  for (int first = 0; first < 10000; first += 5000) {
    Words words = {"SADD", "s"};
    for (int i = first; i < first + 5000; ++i) words.push_back("member " + std::to_string(i));
    EXPECT_EQ(trees_.Call(words), ":5000\r\n");
  }
  const TestPages& pages = *tree_kv_.PagesOf("s");
  EXPECT_LT(pages.writes(), 2 * pages.pages());
  EXPECT_EQ(trees_.Call({"SCARD", "s"}), ":10000\r\n");
}

TEST_F(RedisTrees, AnyMembersAreMembers) {
  Rng rng(7);
  for (const uint64_t count : {1U, 3U, 50U, 400U}) {
    std::set<std::string> members;
    Words words = {"SADD", "s"};
    for (int i = 0; i < 500; ++i) words.push_back(*members.insert("m" + std::to_string(i)).first);
    trees_.Call(words);
    words[0] = "HSET";
    words[1] = "h";
    trees_.Call(words);
    while (!members.empty()) {
      const auto expected = std::min<uint64_t>(count, members.size());
      Words some = Bulks(trees_.Call({"SRANDMEMBER", "s", std::to_string(count)}));
      EXPECT_EQ(std::set<std::string>(some.begin(), some.end()).size(), expected);
      some = Bulks(trees_.Call({"SRANDMEMBER", "s", "-" + std::to_string(3 * count)}));
      EXPECT_EQ(some.size(), 3 * count);
      for (const std::string& member : some) EXPECT_EQ(members.count(member), 1U);
      some = Bulks(trees_.Call({"SRANDMEMBER", "s"}));
      ASSERT_EQ(some.size(), 1U);
      EXPECT_EQ(members.count(some[0]), 1U);
      some = Bulks(trees_.Call({"SPOP", "s", std::to_string(count)}));
      EXPECT_EQ(some.size(), expected);
      for (const std::string& member : some) EXPECT_EQ(members.erase(member), 1U);
      Words left = Bulks(trees_.Call({"SMEMBERS", "s"}));
      ASSERT_EQ(std::set<std::string>(left.begin(), left.end()), members);
    }
    EXPECT_EQ(trees_.Call({"SPOP", "s"}), "$-1\r\n");
    for (const std::string& times :
         {std::to_string(count), "-" + std::to_string(count), std::string("-2000")}) {
      const Words pairs = Bulks(trees_.Call({"HRANDFIELD", "h", times, "WITHVALUES"}));
      EXPECT_GE(pairs.size(), 2 * std::min<uint64_t>(count, 250));
      for (size_t i = 0; i < pairs.size(); i += 2) {
        EXPECT_EQ(trees_.Call({"HGET", "h", pairs[i]}),
                  "$" + std::to_string(pairs[i + 1].size()) + "\r\n" + pairs[i + 1] + "\r\n");
      }
    }
  }
}

TEST_F(RedisTrees, AWalkIsTheOneOverAPackedCollection) {
  Rng rng(8);
  Words hash = {"HSET", "h"};
  Words set = {"SADD", "s"};
  for (int i = 0; i < 1000; ++i) {
    hash.insert(hash.end(), {"f" + std::to_string(i), std::to_string(i)});
    set.push_back("m" + std::to_string(i));
  }
  Both(hash);
  Both(set);
  for (const char* const count : {"1", "2", "10", "333", "5000"}) {
    for (const std::string command : {"HSCAN", "SSCAN"}) {
      std::string cursor = "0";
      size_t met = 0;
      do {
        const std::string key = command == "HSCAN" ? "h" : "s";
        const std::string reply =
            Both({command, key, cursor, "COUNT", count}, /*in_any_order=*/true);
        const Words bulks = Bulks(reply);
        ASSERT_FALSE(HasFailure() || bulks.empty());
        cursor = bulks[0];
        met += bulks.size() - 1;
      } while (cursor != "0");
      EXPECT_EQ(met, command == "HSCAN" ? 2000U : 1000U);
    }
  }
  for (const char* cursor : {"9007199254740991", "9007199254740992", "18446744073709551615"}) {
    Both({"HSCAN", "h", cursor}, /*in_any_order=*/true);
  }
  TestPages& pages = *tree_kv_.PagesOf("h");
  const uint64_t loads = pages.loads();
  trees_.Call({"HSCAN", "h", "4503599627370496", "COUNT", "10"});
  EXPECT_LT(pages.loads() - loads, 20U);
  // One in a compact encoding is shown at once.
  for (char field = 'a'; field <= 'z'; ++field) {
    Both({"HSET", "c", std::string(1, field), std::string(60, field)});
  }
  EXPECT_NE(tree_kv_.PagesOf("c"), nullptr);
  Both({"HSCAN", "c", "0", "COUNT", "1"}, /*in_any_order=*/true);
}

}  // namespace
}  // namespace onetrip
