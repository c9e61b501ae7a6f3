// Commands on streams that are trees, against the same commands on packed ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
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

Words Split(std::string_view line) {
  Words words(1);
  for (const char c : line) c == ' ' ? (void)words.emplace_back() : words.back().push_back(c);
  return words;
}

// One worker for each form; both see the same time, which passes with the commands.
class StreamTrees : public testing::Test {
 protected:
  explicit StreamTrees(const TreeLimits& limits = kTinyLimits)
      : tree_kv_(worker_.worker->kv(), limits) {}

  // Runs a command on both, and returns its reply.
  std::string Both(const Words& words) {
    now_ms_ += 3;
    tree_kv_.set_now_ms(now_ms_);
    packed_kv_.set_now_ms(now_ms_);
    std::string reply = trees_.Call(words);
    EXPECT_EQ(reply, packed_.Call(words)) << Text(words);
    return reply;
  }
  std::string Both(std::string_view line) { return Both(Split(line)); }
  void SetNodes(const std::string& entries, const std::string& bytes) {
    Both({"CONFIG", "SET", "stream-node-max-entries", entries});
    Both({"CONFIG", "SET", "stream-node-max-bytes", bytes});
  }
  void Compare(const std::string& key) {
    Both({"XLEN", key});
    Both({"XINFO", "STREAM", key});
    Both({"XINFO", "GROUPS", key});
    Both({"XINFO", "STREAM", key, "FULL", "COUNT", "0"});
    Both({"DUMP", key});
  }
  // Fills a stream of entries 1-0, 2-0 and so on.
  void Fill(const std::string& key, uint64_t entries, const std::string& value = "value") {
    for (uint64_t i = 1; i <= entries; ++i) Both({"XADD", key, std::to_string(i), "field", value});
  }
  // Pages that a command writes.
  uint64_t Writes(const Words& words) {
    const uint64_t before = tree_kv_.PagesOf(words[1])->writes();
    Both(words);
    return tree_kv_.PagesOf(words[1])->writes() - before;
  }
  uint64_t Loads(const Words& words, const std::string& key) {
    const uint64_t before = tree_kv_.PagesOf(key)->loads();
    trees_.Call(words);
    return tree_kv_.PagesOf(key)->loads() - before;
  }

  RedisWorker worker_;
  RedisWorker packed_worker_;
  TreeKv tree_kv_;
  TreeKv packed_kv_{packed_worker_.worker->kv(), kNoTrees};
  RedisClient trees_{worker_, tree_kv_};
  RedisClient packed_{packed_worker_, packed_kv_};
  // The stores see their own, which is before it.
  uint64_t now_ms_ = 4'000'000'000'000;
};

class AnyStreamCommand {
 public:
  explicit AnyStreamCommand(uint64_t seed) : rng_(seed) {}

  Rng& rng() { return rng_; }

  Words Make() {
    switch (rng_.Below(4)) {
      case 0:
      case 1:
        return Entries();
      case 2:
        return Group();
      default:
        return Pending();
    }
  }

 private:
  // One that is there, perhaps.
  std::string Id() {
    const uint64_t low = last_ - std::min<uint64_t>(last_, 60);
    return std::to_string(low + rng_.Below(last_ - low + 2)) + "-" + std::to_string(rng_.Below(3));
  }
  std::string Number(uint64_t below) { return std::to_string(rng_.Below(below)); }
  std::string Name(const std::string& prefix) {
    const std::string name = prefix + Number(4);
    return rng_.Below(3) == 0 ? name + std::string(30, 'n') : name;
  }
  std::string Value() {
    if (rng_.Below(20) == 0) return std::string(rng_.Below(300), 'v');
    return Number(1000);
  }
  void AddTrim(Words* words) {
    const std::string kind = rng_.Below(2) == 0 ? "MAXLEN" : "MINID";
    words->push_back(kind);
    const bool whole = rng_.Below(2) == 0;
    if (whole) words->push_back("~");
    words->push_back(kind == "MAXLEN" ? Number(60) : Id());
    if (whole && rng_.Below(3) == 0) words->insert(words->end(), {"LIMIT", Number(20)});
  }
  void AddIds(Words* words, uint64_t most) {
    const uint64_t ids = 1 + rng_.Below(most);
    for (uint64_t i = 0; i < ids; ++i) words->push_back(Id());
  }
  Words Add() {
    Words words = {"XADD", "s"};
    if (rng_.Below(12) == 0) AddTrim(&words);
    last_ += rng_.Below(2);
    sequence_ = (sequence_ + 1) % 3;
    last_ += sequence_ == 0 ? 1 : 0;
    words.push_back(std::to_string(last_) + "-" + std::to_string(sequence_));
    words.insert(words.end(), {rng_.Below(5) == 0 ? "other" : "f", Value()});
    return words;
  }
  Words Entries() {
    Words words;
    switch (rng_.Below(12)) {
      case 0:
        words = {"XDEL", "s"};
        AddIds(&words, 4);
        return words;
      case 1:
        if (rng_.Below(4) != 0) return Add();
        words = {"XTRIM", "s"};
        AddTrim(&words);
        return words;
      case 2:
        return {"XRANGE", "s", Id(), Id(), "COUNT", Number(10)};
      case 3:
        return {"XREVRANGE", "s", Id(), Id(), "COUNT", Number(10)};
      case 4:
        return {"XREAD", "COUNT", Number(10), "STREAMS", "s", Id()};
      case 5:
        if (rng_.Below(6) != 0) return Add();
        return {"XSETID", "s", std::to_string(last_) + "-3", "ENTRIESADDED", Number(3000)};
      default:
        return Add();
    }
  }
  Words Group() {
    switch (rng_.Below(14)) {
      case 0:
      case 1:
      case 2:
        return {"XGROUP", "CREATE", "s", Name("g"), rng_.Below(2) == 0 ? "$" : Id(), "MKSTREAM"};
      case 3:
        return {"XGROUP", "SETID", "s", Name("g"), Id()};
      case 4:
        if (rng_.Below(3) != 0) return {"XINFO", "STREAM", "s"};
        return {"XGROUP", "DESTROY", "s", Name("g")};
      case 5:
        return {"XGROUP", "CREATECONSUMER", "s", Name("g"), Name("c")};
      case 6:
        return {"XGROUP", "DELCONSUMER", "s", Name("g"), Name("c")};
      case 7:
        return {"XINFO", "CONSUMERS", "s", Name("g")};
      case 8:
        return {"XINFO", "GROUPS", "s"};
      default:
        return Read(">");
    }
  }
  Words Read(const std::string& id) {
    Words words = {"XREADGROUP", "GROUP", Name("g"), Name("c"), "COUNT", Number(12)};
    if (rng_.Below(8) == 0) words.push_back("NOACK");
    words.insert(words.end(), {"STREAMS", "s", id});
    return words;
  }
  Words Pending() {
    Words words;
    switch (rng_.Below(8)) {
      case 0:
        return Read(Id());
      case 1:
      case 2:
        words = {"XACK", "s", Name("g")};
        AddIds(&words, 8);
        return words;
      case 3:
        return {"XPENDING", "s", Name("g")};
      case 4:
        words = {"XPENDING", "s", Name("g"), "IDLE", Number(300), Id(), "+", Number(20)};
        if (rng_.Below(2) == 0) words.push_back(Name("c"));
        return words;
      case 5:
        words = {"XCLAIM", "s", Name("g"), Name("c"), Number(100)};
        AddIds(&words, 6);
        if (rng_.Below(3) == 0) words.emplace_back("FORCE");
        if (rng_.Below(3) == 0) words.emplace_back("JUSTID");
        if (rng_.Below(5) == 0) words.insert(words.end(), {"RETRYCOUNT", Number(9)});
        if (rng_.Below(5) == 0) words.insert(words.end(), {"LASTID", Id()});
        return words;
      default:
        return {"XAUTOCLAIM", "s",  Name("g"), Name("c"),
                Number(100),  Id(), "COUNT",   std::to_string(1 + rng_.Below(6))};
    }
  }

  Rng rng_;
  uint64_t last_ = 1;
  uint64_t sequence_ = 0;
};

class StreamTreesOf : public StreamTrees, public testing::WithParamInterface<TreeLimits> {
 protected:
  StreamTreesOf() : StreamTrees(GetParam()) {}
};

TEST_P(StreamTreesOf, StreamsAreWhatPackedOnesAre) {
  uint64_t most_pages = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    AnyStreamCommand any(seed);
    SetNodes(std::to_string(1 + any.rng().Below(6)), "200");
    for (int step = 0; step < 600 && !HasFailure(); ++step) {
      Both(any.Make());
      const TestPages* const pages = tree_kv_.PagesOf("s");
      if (pages != nullptr) most_pages = std::max<uint64_t>(most_pages, pages->pages());
      if (step % 10 == 0) Compare("s");
      if (step % 150 == 149) Both("XTRIM s MAXLEN 0");
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
    Both("XRANGE s - +");
    Both("DEL s");
  }
  EXPECT_GT(most_pages, 15U);
}

INSTANTIATE_TEST_SUITE_P(Sizes, StreamTreesOf,
                         testing::Values(kTinyLimits, TreeLimits{.leaf_bytes = 400,
                                                                 .inner_bytes = 120,
                                                                 .root_bytes = 150,
                                                                 .packed_bytes = 600}));

TEST_F(StreamTrees, AnEntryTakesAPagePerLevel) {
  SetNodes("5", "4096");
  Fill("s", 2000);
  TestPages& pages = *tree_kv_.PagesOf("s");
  const uint64_t levels = pages.root().tops[0].height + 1U;
  EXPECT_GT(levels, 4U);
  for (uint64_t i = 2001; i <= 2050; ++i) {
    EXPECT_LE(Writes({"XADD", "s", std::to_string(i), "field", "value"}), 2 * levels);
  }
  EXPECT_LE(Writes({"XDEL", "s", "777"}), levels);
  EXPECT_LE(Writes({"XADD", "s", "MAXLEN", "~", "2000", "2051", "field", "value"}), 2 * levels + 2);
  EXPECT_LE(Writes({"XTRIM", "s", "MAXLEN", "1998"}), levels + 1);
  EXPECT_LE(Loads({"XRANGE", "s", "900", "+", "COUNT", "5"}, "s"), 2 * levels);
  EXPECT_LE(Loads({"XREAD", "COUNT", "2", "STREAMS", "s", "1200"}, "s"), 3 * levels);
  EXPECT_LE(Loads({"XINFO", "STREAM", "s"}, "s"), 2 * levels);
  EXPECT_EQ(Loads({"XLEN", "s"}, "s"), 0U);
  Compare("s");
}

TEST_F(StreamTrees, PagesOfAWalkAreReadTogether) {
  SetNodes("5", "4096");
  Fill("s", 2000);
  TestPages& pages = *tree_kv_.PagesOf("s");
  const uint64_t levels = pages.root().tops[0].height + 1U;
  const auto rounds = [&](const std::string& line) {
    const uint64_t before = pages.rounds();
    trees_.Call(Split(line));
    return pages.rounds() - before;
  };
  EXPECT_LE(rounds("XRANGE s - +"), 2 * levels);
  EXPECT_LE(rounds("XRANGE s 500 1500"), 3 * levels);
  EXPECT_LE(rounds("XREVRANGE s 1500 - COUNT 300"), 3 * levels);
  EXPECT_LE(rounds("XREAD STREAMS s 100"), 4 * levels);
  Both("XGROUP CREATE s g 0");
  const uint64_t before = pages.rounds();
  Both("XREADGROUP GROUP g c COUNT 1000 STREAMS s >");
  EXPECT_LE(pages.rounds() - before, 8 * levels);
  Both("XREADGROUP GROUP g d COUNT 500 STREAMS s >");
}

TEST_F(StreamTrees, AGroupOfManyTakesFewPages) {
  SetNodes("5", "4096");
  Fill("s", 1000);
  Both("XGROUP CREATE s g 0");
  Both("XGROUP CREATE s other 0");
  for (int i = 0; i < 8; ++i) {
    Both({"XREADGROUP", "GROUP", "g", "c" + std::to_string(i % 4), "COUNT", "120", "STREAMS", "s",
          ">"});
  }
  Compare("s");
  const TestPages& pages = *tree_kv_.PagesOf("s");
  const uint64_t levels = pages.root().tops[0].height + 1U;
  // Its head, its consumer, and the entry by its id and by its consumer.
  EXPECT_LE(Writes({"XACK", "s", "g", "500"}), 4 * levels + 2);
  EXPECT_LE(Writes({"XCLAIM", "s", "g", "c1", "0", "501", "JUSTID"}), 6 * levels + 2);
  const uint64_t before = pages.writes();
  Both("XREADGROUP GROUP g c1 COUNT 1 STREAMS s >");
  Both("XREADGROUP GROUP g c1 COUNT 3 STREAMS s 140");
  EXPECT_LE(pages.writes() - before, 14 * levels);
  EXPECT_LE(Loads(Split("XPENDING s g 300 + 5 c2"), "s"), 8 * levels);
  EXPECT_LE(Loads(Split("XPENDING s g"), "s"), 6 * levels);
  Both("XPENDING s g");
  Both("XGROUP DELCONSUMER s g c0");
  Both("XGROUP DELCONSUMER s g c0");
  Compare("s");
  Both("XGROUP DESTROY s g");
  Both("XGROUP DESTROY s other");
  Both("XTRIM s MAXLEN 0");
  EXPECT_EQ(tree_kv_.PagesOf("s"), nullptr);
  Compare("s");
}

TEST_F(StreamTrees, WhatFitsNoPageIsPacked) {
  Fill("s", 50);
  ASSERT_NE(tree_kv_.PagesOf("s"), nullptr);
  const std::string long_name(20'000, 'g');
  Both({"XGROUP", "CREATE", "s", long_name, "0"});
  EXPECT_EQ(tree_kv_.PagesOf("s"), nullptr);
  Both({"XREADGROUP", "GROUP", long_name, "c", "COUNT", "3", "STREAMS", "s", ">"});
  Compare("s");
  Both({"XGROUP", "DESTROY", "s", long_name});
  EXPECT_NE(tree_kv_.PagesOf("s"), nullptr);
  Both("XGROUP CREATE s g 0");
  Both({"XGROUP", "CREATECONSUMER", "s", "g", long_name});
  EXPECT_EQ(tree_kv_.PagesOf("s"), nullptr);
  Both({"XGROUP", "DELCONSUMER", "s", "g", long_name});
  EXPECT_NE(tree_kv_.PagesOf("s"), nullptr);
  Both({"XADD", "s", "60", "f", std::string(kPageBytesMax + 1, 'l')});
  EXPECT_EQ(tree_kv_.PagesOf("s"), nullptr);
  Both("XADD s 61 f v");
  EXPECT_EQ(tree_kv_.PagesOf("s"), nullptr);
  Both("XDEL s 60");
  Both("XRANGE s - +");
  Both("XTRIM s MINID 61");
  Compare("s");
}

TEST_F(StreamTrees, ARefusedChangeChangesNothing) {
  Fill("s", 50);
  Both("XGROUP CREATE s g 0");
  const uint64_t writes = tree_kv_.PagesOf("s")->writes();
  for (const std::string_view line : {"XADD s 50-0 f v",
                                      "XADD s NOMKSTREAM 1 f v",
                                      "XDEL s 51 52",
                                      "XTRIM s MAXLEN 50",
                                      "XTRIM s MINID 1",
                                      "XSETID s 49",
                                      "XSETID s 60 ENTRIESADDED 3",
                                      "XACK s g 1 2",
                                      "XACK s none 1",
                                      "XCLAIM s none c 0 1",
                                      "XCLAIM s g c 0 x",
                                      "XAUTOCLAIM s g c 0 0",
                                      "XGROUP CREATE s g 0",
                                      "XGROUP DESTROY s h",
                                      "XGROUP DELCONSUMER s g c",
                                      "XGROUP SETID s h 0",
                                      "XREADGROUP GROUP h c STREAMS s >",
                                      "LPUSH s a",
                                      "SADD s a",
                                      "XINFO CONSUMERS s h",
                                      "XPENDING s h",
                                      "XREAD STREAMS s >",
                                      "XREAD STREAMS s 99"}) {
    Both(line);
  }
  Both("EXPIRE s 1000");
  Both("PERSIST s");
  EXPECT_EQ(tree_kv_.PagesOf("s")->writes(), writes);
}

}  // namespace
}  // namespace onetrip
