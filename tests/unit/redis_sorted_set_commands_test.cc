// Commands on sorted sets that are trees, against the same commands on packed ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "tests/unit/redis_client.h"
#include "tests/unit/redis_tree_kv.h"

namespace onetrip {
namespace {

using Arguments = std::vector<std::string>;

// The key is "z".
class SortedSetCommands : public testing::Test {
 protected:
  // Runs a command on both forms, and returns its reply.
  std::string Both(const Arguments& words) {
    const std::string reply = trees_.Call(words);
    std::string text;
    for (const std::string& word : words) text += word.substr(0, 40) + ' ';
    EXPECT_EQ(reply, packed_.Call(words)) << text;
    return reply;
  }
  // Adds members "m0", "m1" and so on with such scores.
  void Fill(uint64_t members, const char* score = nullptr) {
    Arguments words = {"ZADD", "z"};
    for (uint64_t i = 0; i < members; ++i) {
      words.push_back(score != nullptr ? score : std::to_string(i * 7 % 100));
      words.push_back("m" + std::to_string(i));
    }
    Both(words);
  }
  void CompareAll() {
    Both({"ZRANGE", "z", "0", "-1", "WITHSCORES"});
    Both({"ZCARD", "z"});
    Both({"OBJECT", "ENCODING", "z"});
  }
  TestPages* pages() { return tree_kv_.PagesOf("z"); }

  RedisWorker worker_;
  RedisWorker packed_worker_;
  TreeKv tree_kv_{worker_.worker->kv(), kTinyLimits};
  TreeKv packed_kv_{packed_worker_.worker->kv(), kNoTrees};
  RedisClient trees_{worker_, tree_kv_};
  RedisClient packed_{packed_worker_, packed_kv_};
};

std::string NameIn(Rng& rng, uint64_t members) { return "m" + std::to_string(rng.Below(members)); }

std::string ScoreText(Rng& rng) {
  const Arguments special = {"0", "-0", "inf", "-inf", "1.5", "1e300", "3"};
  if (rng.Below(6) == 0) return special[rng.Below(special.size())];
  return std::to_string(static_cast<int64_t>(rng.Below(200)) - 100);
}

std::string ScoreBoundText(Rng& rng) { return (rng.Below(2) == 0 ? "(" : "") + ScoreText(rng); }

std::string LexBoundText(Rng& rng, uint64_t members) {
  if (rng.Below(6) == 0) return rng.Below(2) == 0 ? "-" : "+";
  return (rng.Below(2) == 0 ? "(" : "[") + NameIn(rng, members);
}

std::string RankText(Rng& rng, uint64_t members) {
  return std::to_string(static_cast<int64_t>(rng.Below(2 * members)) -
                        static_cast<int64_t>(members));
}

Arguments AnyWrite(Rng& rng, uint64_t members) {
  const uint64_t count = 1 + rng.Below(rng.Below(5) == 0 ? 30 : 3);
  Arguments words;
  switch (rng.Below(12)) {
    case 0:
      return {"ZINCRBY", "z", ScoreText(rng), NameIn(rng, members)};
    case 1:
      return {rng.Below(2) == 0 ? "ZPOPMIN" : "ZPOPMAX", "z", std::to_string(rng.Below(4))};
    case 2:
      return {"ZMPOP", "2", "none", "z", rng.Below(2) == 0 ? "MIN" : "MAX", "COUNT", "2"};
    case 3:
    case 4:
      words = {"ZREM", "z"};
      for (uint64_t i = 0; i < 2 * count; ++i) words.push_back(NameIn(rng, members));
      return words;
    case 5: {
      const std::string first = RankText(rng, members);
      return {"ZREMRANGEBYRANK", "z", first, std::to_string(std::stoll(first) + 3)};
    }
    case 6: {
      const int64_t low = static_cast<int64_t>(rng.Below(200)) - 100;
      return {"ZREMRANGEBYSCORE", "z", std::to_string(low), "(" + std::to_string(low + 4)};
    }
    default:
      words = {"ZADD", "z"};
      for (const char* const option : {"NX", "XX", "GT", "LT", "CH"}) {
        const bool fits = words.size() == 2 || std::string_view(option) == "CH";
        if (fits && rng.Below(6) == 0) words.push_back(option);
      }
      for (uint64_t i = 0; i < count; ++i) {
        words.push_back(ScoreText(rng));
        words.push_back(NameIn(rng, members));
      }
      return words;
  }
}

Arguments WithLimit(Rng& rng, Arguments words) {
  if (rng.Below(2) == 0) return words;
  words.insert(words.end(), {"LIMIT", std::to_string(rng.Below(20)), RankText(rng, 20)});
  return words;
}

Arguments AnyRead(Rng& rng, uint64_t members) {
  const auto rank = [&] { return RankText(rng, members); };
  const auto score = [&] { return ScoreBoundText(rng); };
  switch (rng.Below(12)) {
    case 0:
      return {"ZSCORE", "z", NameIn(rng, members)};
    case 1:
      return {"ZMSCORE", "z", NameIn(rng, members), NameIn(rng, members), "none"};
    case 2:
      return {"ZRANK", "z", NameIn(rng, members)};
    case 3:
      return {"ZREVRANK", "z", NameIn(rng, members)};
    case 4:
      return {"ZCOUNT", "z", score(), score()};
    case 5:
      return {"ZRANGE", "z", rank(), rank(), "WITHSCORES"};
    case 6:
      return {"ZREVRANGE", "z", rank(), rank(), "WITHSCORES"};
    case 7:
      return WithLimit(rng, {"ZRANGEBYSCORE", "z", score(), score()});
    case 8:
      return WithLimit(rng, {"ZREVRANGEBYSCORE", "z", score(), score(), "WITHSCORES"});
    case 9:
      return WithLimit(rng, {"ZRANGE", "z", score(), score(), "BYSCORE", "REV"});
    case 10:
      return {"GEOPOS", "z", NameIn(rng, members), NameIn(rng, members)};
    default:
      return {"GEODIST", "z", NameIn(rng, members), NameIn(rng, members)};
  }
}

TEST_F(SortedSetCommands, TreesAnswerAsPackedOnesDo) {
  uint64_t most_pages = 0;
  uint64_t packed_again = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Rng rng(seed);
    bool was_tree = false;
    for (int step = 0; step < 400 && !HasFailure(); ++step) {
      // It grows, and shrinks again.
      const uint64_t members = step < 250 ? 150 : 20;
      if (step == 0) Fill(100);
      if (step == 250) Both({"ZREMRANGEBYRANK", "z", "3", "-1"});
      Both(AnyWrite(rng, members));
      for (int i = 0; i < 3; ++i) Both(AnyRead(rng, members));
      if (pages() != nullptr) most_pages = std::max<uint64_t>(most_pages, pages()->pages());
      packed_again += was_tree && pages() == nullptr ? 1 : 0;
      was_tree = pages() != nullptr;
      if (step % 20 == 0) CompareAll();
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    Both({"DEL", "z"});
  }
  EXPECT_GT(most_pages, 50U);
  EXPECT_GE(packed_again, 10U);
}

TEST_F(SortedSetCommands, RangesOfMembersOfOneScore) {
  Fill(200, "5");
  ASSERT_NE(pages(), nullptr);
  for (uint64_t seed = 1; seed <= 300 && !HasFailure(); ++seed) {
    Rng rng(seed);
    const std::string low = LexBoundText(rng, 200);
    const std::string high = LexBoundText(rng, 200);
    Both({"ZLEXCOUNT", "z", low, high});
    Both(WithLimit(rng, {"ZRANGEBYLEX", "z", low, high}));
    Both(WithLimit(rng, {"ZREVRANGEBYLEX", "z", high, low}));
    Both(WithLimit(rng, {"ZRANGE", "z", low, high, "BYLEX"}));
    if (seed % 10 == 0) {
      Both({"ZREMRANGEBYLEX", "z", low, high});
      Fill(200, "5");
    }
  }
  CompareAll();
}

TEST_F(SortedSetCommands, TheShortestMembersAreInRangesWithoutAnEnd) {
  using namespace std::string_literals;
  Arguments words = {"ZADD", "z", "0", "", "0", "\0"s};
  for (int i = 1; i < 60; ++i)
    words.insert(words.end(),
                 {"0", std::string(1, '\0') + std::string(70, static_cast<char>('a' + i % 26)) +
                           std::to_string(i)});
  Both(words);
  ASSERT_NE(pages(), nullptr);
  for (const char* low : {"-", "[", "("}) {
    Both({"ZLEXCOUNT", "z", low, "+"});
    Both({"ZRANGEBYLEX", "z", low, "+", "LIMIT", "0", "3"});
    Both({"ZREVRANGEBYLEX", "z", "+", low});
  }
  Both({"ZREMRANGEBYLEX", "z", "-", "[\0"s});
  CompareAll();
}

TEST_F(SortedSetCommands, ARefusedChangeChangesNothing) {
  Fill(100);
  ASSERT_NE(pages(), nullptr);
  Both({"ZADD", "z", "inf", "m1"});
  const uint64_t writes = pages()->writes();
  Both({"ZINCRBY", "z", "-inf", "m1"});
  Both({"ZADD", "z", "NX", "5", "m1"});
  Both({"ZADD", "z", "XX", "5", "none"});
  Both({"ZADD", "z", "GT", "INCR", "-1", "m2"});
  Both({"ZREM", "z", "none"});
  Both({"ZPOPMIN", "z", "0"});
  Both({"ZREMRANGEBYSCORE", "z", "(99", "100"});
  Both({"LPUSH", "z", "a"});
  EXPECT_EQ(pages()->writes(), writes);
  Both({"ZADD", "z", "1", std::string(kPageBytesMax + 1, 'l')});
  EXPECT_EQ(pages(), nullptr);
  Both({"ZPOPMIN", "z", "10"});
  Both({"ZREM", "z", std::string(kPageBytesMax + 1, 'l')});
  EXPECT_NE(pages(), nullptr);
  CompareAll();
}

TEST_F(SortedSetCommands, SourcesAndTargetsMayBeTrees) {
  Fill(150);
  Both({"ZUNIONSTORE", "a", "2", "z", "z"});
  ASSERT_NE(tree_kv_.PagesOf("a"), nullptr);
  Both({"ZRANGESTORE", "b", "z", "10", "100"});
  ASSERT_NE(tree_kv_.PagesOf("b"), nullptr);
  Both({"ZRANGESTORE", "z", "z", "20", "90"});
  Both({"ZRANGE", "a", "0", "-1", "WITHSCORES"});
  Both({"ZRANGE", "b", "0", "-1", "WITHSCORES"});
  Both({"ZINTERCARD", "2", "a", "z"});
  CompareAll();
  Arguments places = {"GEOADD", "g"};
  for (int i = 0; i < 60; ++i) {
    places.insert(places.end(),
                  {std::to_string(i), std::to_string(i - 30), "p" + std::to_string(i)});
  }
  Both(places);
  ASSERT_NE(tree_kv_.PagesOf("g"), nullptr);
  Both({"GEOSEARCH", "g", "FROMMEMBER", "p30", "BYRADIUS", "1000", "km", "ASC"});
  Both({"GEOHASH", "g", "p1", "p2", "none"});
  Both({"GEOADD", "g", "CH", "10", "10", "p1"});
  Both({"GEOPOS", "g", "p1"});
}

// The bulks of a reply, but for the first `skipped`.
Arguments BulksIn(const std::string& reply, size_t skipped) {
  Arguments bulks;
  for (size_t at = reply.find('$'); at != std::string::npos; at = reply.find('$', at)) {
    const size_t begin = reply.find("\r\n", at) + 2;
    const size_t bytes = std::stoul(reply.substr(at + 1));
    if (skipped == 0) bulks.push_back(reply.substr(begin, bytes));
    skipped -= skipped > 0 ? 1 : 0;
    at = begin + bytes;
  }
  return bulks;
}

TEST_F(SortedSetCommands, AWalkShowsEachMemberOnceWithItsScore) {
  Fill(150);
  ASSERT_NE(pages(), nullptr);
  std::map<std::string, std::string> shown;
  std::string cursor = "0";
  int steps = 0;
  do {
    const std::string reply = trees_.Call({"ZSCAN", "z", cursor, "COUNT", "10"});
    cursor = BulksIn(reply, 0).front();
    const Arguments members = BulksIn(reply, 1);
    for (size_t i = 0; i + 1 < members.size(); i += 2) {
      EXPECT_TRUE(shown.emplace(members[i], members[i + 1]).second) << members[i];
    }
    ASSERT_LT(++steps, 60);
  } while (cursor != "0");
  EXPECT_EQ(shown.size(), 150U);
  EXPECT_GT(steps, 8);
  for (const auto& [member, score] : shown) {
    EXPECT_EQ(BulksIn(trees_.Call({"ZSCORE", "z", member}), 0), Arguments{score});
  }
}

TEST_F(SortedSetCommands, MembersChosenAtRandomAreThereWithTheirScores) {
  Fill(150);
  ASSERT_NE(pages(), nullptr);
  for (const char* const count : {"7", "-7", "200", "-2000"}) {
    const Arguments chosen = BulksIn(trees_.Call({"ZRANDMEMBER", "z", count, "WITHSCORES"}), 0);
    const std::string_view text = count;
    EXPECT_EQ(chosen.size(), text == "200" ? 300U : text == "-2000" ? 4000U : 14U);
    std::set<std::string> members;
    for (size_t i = 0; i + 1 < chosen.size(); i += 2) {
      members.insert(chosen[i]);
      if (i > 40) continue;
      EXPECT_EQ(BulksIn(trees_.Call({"ZSCORE", "z", chosen[i]}), 0), Arguments{chosen[i + 1]});
    }
    EXPECT_TRUE(text[0] == '-' || members.size() == chosen.size() / 2);
  }
}

TEST_F(SortedSetCommands, AMemberTakesAPagePerLevelOfEachOrder) {
  Fill(2000);
  const TreeRoot root = pages()->root();
  const uint64_t by_score = root.tops[0].height + 1U;
  const uint64_t by_position = root.tops[1].height + 1U;
  EXPECT_GT(by_score, 3U);
  uint64_t loads = pages()->loads();
  Both({"ZSCORE", "z", "m77"});
  EXPECT_EQ(pages()->loads(), loads + by_position);
  loads = pages()->loads();
  Both({"ZRANK", "z", "m77"});
  EXPECT_EQ(pages()->loads(), loads + by_position + by_score);
  const uint64_t writes = pages()->writes();
  const uint64_t rounds = pages()->rounds();
  Both({"ZADD", "z", "50.5", "new"});
  // They may have been divided.
  EXPECT_LE(pages()->writes(), writes + 2 * (by_position + by_score));
  // Both orders at once, and what the test looks at.
  EXPECT_LE(pages()->rounds(), rounds + 2 * std::max(by_score, by_position) + 2);
}

}  // namespace
}  // namespace onetrip
