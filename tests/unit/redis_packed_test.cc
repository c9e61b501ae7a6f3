// Packed collections: going through them, changing them, and what DUMP and RESTORE make of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "client_core/base/rng.h"
#include "redis_compat/values/packed.h"
#include "redis_compat/values/packed_map.h"
#include "tests/unit/redis_rdb_payloads.h"

namespace onetrip {
namespace {

using State = CollectionLoader::State;

// Lengths at which encodings change, numbers, and texts that look like them.
std::string RandomText(Rng& rng, size_t long_one = 20'000) {
  switch (rng.Below(8)) {
    case 0:
      return std::to_string(static_cast<int64_t>(rng.Below(30)) - 2);
    case 1: {
      const auto number = static_cast<int64_t>(rng.Next());
      return std::to_string(number >> rng.Below(64));
    }
    case 2:
      return "0" + std::to_string(rng.Below(100));
    case 3: {
      static constexpr size_t kEdges[] = {0,   62,  63,  64,  65,  125, 126,
                                          127, 128, 252, 253, 254, 255};
      return std::string(kEdges[rng.Below(std::size(kEdges))], 'e');
    }
    case 4:
      return std::string(rng.Below(long_one), static_cast<char>(rng.Below(256)));
    default: {
      std::string text;
      for (uint64_t left = rng.Below(12); left > 0; --left) {
        text.push_back(static_cast<char>(rng.Below(256)));
      }
      return text;
    }
  }
}

Texts RandomTexts(Rng& rng, size_t count, size_t long_one = 20'000) {
  Texts texts;
  while (texts.size() < count) texts.push_back(RandomText(rng, long_one));
  return texts;
}

// Every one of them once.
Texts RandomKeys(Rng& rng, size_t count) {
  const Texts texts = RandomTexts(rng, count, 500);
  std::set<std::string> seen;
  Texts keys;
  for (const std::string& text : texts) {
    if (seen.insert(text).second) keys.push_back(text);
  }
  return keys;
}

TEST(PackedCursor, GoesForwardsAndBackwards) {
  Rng rng(1);
  for (int round = 0; round < 100; ++round) {
    const Texts texts = RandomTexts(rng, rng.Below(40));
    std::string entries;
    std::vector<size_t> begins;
    for (const std::string& text : texts) {
      begins.push_back(entries.size());
      AppendPackedEntry(text, &entries);
      EXPECT_EQ(entries.size() - begins.back(), PackedEntryBytes(text.size()));
    }
    PackedCursor cursor(entries);
    std::string_view entry;
    for (size_t i = 0; i < texts.size(); ++i) {
      EXPECT_EQ(cursor.at(), begins[i]);
      ASSERT_TRUE(cursor.Next(&entry));
      EXPECT_EQ(entry, texts[i]);
    }
    EXPECT_FALSE(cursor.Next(&entry));
    EXPECT_EQ(cursor.at(), entries.size());
    for (size_t i = texts.size(); i > 0; --i) {
      ASSERT_TRUE(cursor.Previous(&entry));
      EXPECT_EQ(entry, texts[i - 1]);
      EXPECT_EQ(cursor.at(), begins[i - 1]);
    }
    EXPECT_FALSE(cursor.Previous(&entry));
  }
}

TEST(PackedCursor, StaysWithinDamagedBytes) {
  Rng rng(2);
  for (int round = 0; round < 5000; ++round) {
    std::string entries;
    for (const std::string& text : RandomTexts(rng, 1 + rng.Below(8), 300)) {
      AppendPackedEntry(text, &entries);
    }
    for (uint64_t left = 1 + rng.Below(3); left > 0; --left) {
      entries[rng.Below(entries.size())] = static_cast<char>(rng.Below(256));
    }
    if (rng.Below(3) == 0) entries.resize(rng.Below(entries.size()));
    const std::string_view all = entries;
    const auto is_within = [&](std::string_view entry) {
      return entry.data() >= all.data() && entry.data() + entry.size() <= all.data() + all.size();
    };
    std::string_view entry;
    PackedCursor cursor(all);
    for (size_t before = 0; cursor.Next(&entry); before = cursor.at()) {
      ASSERT_GT(cursor.at(), before);
      ASSERT_TRUE(is_within(entry));
    }
    cursor = PackedCursor::AtEnd(all);
    for (size_t behind = all.size(); cursor.Previous(&entry); behind = cursor.at()) {
      ASSERT_LT(cursor.at(), behind);
      ASSERT_TRUE(is_within(entry));
      PackedCursor again = cursor;
      std::string_view same;
      ASSERT_TRUE(again.Next(&same));
      ASSERT_EQ(same.data(), entry.data());
      ASSERT_EQ(again.at(), behind);
    }
  }
}

TEST(PackedHeader, IsRefusedIfItIsNone) {
  PackedHeader header;
  const std::string sound = PackedHeaderBytes({kPackedTable, 0x01020304});
  ASSERT_TRUE(LoadPackedHeader(sound, &header));
  EXPECT_EQ(header.flags, kPackedTable);
  EXPECT_EQ(header.elements, 0x01020304U);
  EXPECT_FALSE(LoadPackedHeader(sound.substr(1), &header));
  EXPECT_FALSE(LoadPackedHeader(std::string(kPackedHeaderBytes, '\2'), &header));
  EXPECT_FALSE(LoadPackedHeader("", &header));
  EXPECT_EQ(PackedElements("none", true).size(), 0U);
}

using Pair = std::pair<std::string, std::string>;
using Pairs = std::vector<Pair>;

std::string PackedPairs(const Pairs& pairs, bool has_values) {
  Texts entries;
  for (const auto& [key, value] : pairs) {
    entries.push_back(key);
    if (has_values) entries.push_back(value);
  }
  return Packed(kPackedTable, entries, has_values ? 2 : 1);
}

bool IsBeforeByBoth(const PackedElement& a, const PackedElement& b) {
  return a.value != b.value ? a.value < b.value : a.key < b.key;
}
void SortByBoth(Pairs* pairs) {
  std::sort(pairs->begin(), pairs->end(), [](const Pair& a, const Pair& b) {
    return a.second != b.second ? a.second < b.second : a.first < b.first;
  });
}

// The same changes to a packed collection and to pairs, which are then the same.
class BatchCheck {
 public:
  BatchCheck(uint64_t seed, bool has_values, bool is_sorted)
      : rng_(seed), has_values_(has_values), is_sorted_(is_sorted) {}

  void Run(size_t changes, size_t keys) {
    std::deque<std::string> kept;  // the map looks at it
    PackedMap map(packed_, has_values_);
    for (size_t left = changes; left > 0; --left) {
      const std::string& key = kept.emplace_back("key" + std::to_string(rng_.Below(keys)));
      const std::string& value =
          kept.emplace_back(has_values_ ? std::to_string(rng_.Below(1000)) : "");
      const auto found = std::find_if(pairs_.begin(), pairs_.end(),
                                      [&](const Pair& pair) { return pair.first == key; });
      const bool is_there = found != pairs_.end();
      switch (rng_.Below(4)) {
        case 0:
          Look(&map, key, is_there ? &*found : nullptr);
          break;
        case 1:
          ASSERT_EQ(map.Remove(key), is_there);
          if (is_there) pairs_.erase(found);
          break;
        default:
          ASSERT_EQ(map.Put(key, value), !is_there);
          if (is_there) {
            found->second = value;
          } else {
            pairs_.emplace_back(key, value);
          }
      }
      ASSERT_EQ(map.size(), pairs_.size());
    }
    if (is_sorted_) SortByBoth(&pairs_);
    const std::string made = map.Finish(kPackedTable, is_sorted_ ? IsBeforeByBoth : nullptr);
    // A key that was removed and came again may have its old place, or come last.
    if (is_sorted_) {
      ASSERT_EQ(made, PackedPairs(pairs_, has_values_));
    } else {
      Adopt(made);
    }
    packed_ = made;
  }

 private:
  void Look(PackedMap* map, const std::string& key, const Pair* pair) {
    std::string_view value = "not there";
    ASSERT_EQ(map->Find(key, &value), pair != nullptr);
    ASSERT_EQ(value, pair == nullptr ? "not there" : pair->second);
  }

  // The pairs in the order of the collection, which is that of the one before, then new keys.
  void Adopt(const std::string& made) {
    std::map<std::string, std::string> expected(pairs_.begin(), pairs_.end());
    Pairs pairs;
    PackedElements elements(made, has_values_);
    ASSERT_EQ(elements.size(), expected.size());
    PackedElement element;
    while (elements.Next(&element)) {
      pairs.emplace_back(element.key, element.value);
      const auto found = expected.find(pairs.back().first);
      ASSERT_TRUE(found != expected.end() && found->second == pairs.back().second);
      expected.erase(found);
    }
    ASSERT_TRUE(expected.empty());
    ASSERT_EQ(elements.at(), elements.entries().size());
    std::map<std::string, size_t> places;
    PackedElements before(packed_, has_values_);
    while (before.Next(&element)) places.emplace(element.key, places.size());
    size_t place = 0;
    for (const Pair& pair : pairs) {
      const auto found = places.find(pair.first);
      const size_t next = found == places.end() ? places.size() : found->second;
      ASSERT_GE(next, place);
      place = next;
    }
    pairs_ = pairs;
  }

  Rng rng_;
  const bool has_values_;
  const bool is_sorted_;
  std::string packed_;
  Pairs pairs_;
};

TEST(PackedMap, ChangesLikeAMapDoes) {
  for (const bool has_values : {false, true}) {
    for (const bool is_sorted : {false, true}) {
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        BatchCheck check(seed, has_values, is_sorted);
        Rng rng(seed);
        for (int batch = 0; batch < 40; ++batch) {
          check.Run(rng.Below(2) == 0 ? rng.Below(6) : rng.Below(120), 1 + seed * seed / 4);
          ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
        }
      }
    }
  }
}

TEST(PackedMap, WithoutChangesItIsTheSame) {
  const std::string packed = PackedPairs({{"b", "1"}, {"a", "2"}}, true);
  PackedMap map(packed, true);
  EXPECT_FALSE(map.changed());
  EXPECT_FALSE(map.Remove("c"));
  EXPECT_EQ(map.Finish(kPackedTable), packed);
  EXPECT_EQ(map.flags(), kPackedTable);
  EXPECT_EQ(PackedMap("", true).Finish(0).size(), kPackedHeaderBytes);
}

// `form`: the type byte of a payload. Loaded whole and by small pieces, it is `expected`.
void ExpectLoads(int form, const std::string& body, ValueType expected_type,
                 const std::string& expected) {
  const std::string payload = Payload(static_cast<char>(form) + body);
  for (const size_t piece : {size_t{1} << 20, size_t{1}, size_t{100}}) {
    ValueType type = ValueType::kString;
    std::string value;
    ASSERT_EQ(LoadPayload(payload, &type, &value, piece), State::kDone) << form;
    ASSERT_EQ(type, expected_type) << form;
    ASSERT_EQ(value, expected) << form;
  }
}

void ExpectDamaged(int form, const std::string& body) {
  ValueType type = ValueType::kString;
  std::string value;
  EXPECT_EQ(LoadPayload(Payload(static_cast<char>(form) + body), &type, &value), State::kDamaged)
      << form;
}

std::string Strings(const Texts& texts) {
  std::string made;
  for (const std::string& text : texts) {
    made += text.size() % 3 == 1 && text.size() < 5000 ? RdbCompressed(text) : RdbString(text);
  }
  return made;
}

std::string Nodes(const Texts& nodes) {
  std::string made = RdbLength(nodes.size());
  for (const std::string& node : nodes) made += node;
  return made;
}

TEST(RdbCollection, ListsOfAllFormsAreLoaded) {
  Rng rng(3);
  for (int round = 0; round < 30; ++round) {
    const Texts texts = RandomTexts(rng, 1 + rng.Below(30));
    const std::string list = Packed(0, texts, 1);
    ExpectLoads(1, RdbLength(texts.size()) + Strings(texts), ValueType::kList, list);
    ExpectLoads(10, RdbString(Ziplist(texts)), ValueType::kList, list);
    Texts all = texts;
    all.insert(all.end(), texts.begin(), texts.end());
    const std::string twice = Packed(0, all, 1);
    const std::string ziplist = RdbCompressed(Ziplist(texts));
    ExpectLoads(14, Nodes({ziplist, ziplist}), ValueType::kList, twice);
    const std::string listpack = RdbLength(2) + RdbString(Listpack(texts));
    ExpectLoads(18, Nodes({listpack, listpack}), ValueType::kList, twice);
    all = texts;
    all.emplace_back("plain");
    const std::string plain = RdbLength(1) + RdbString("plain");
    ExpectLoads(18, Nodes({listpack, plain}), ValueType::kList, Packed(0, all, 1));
  }
  // Redis takes no notice of empty nodes, unless all are.
  const std::string empty = RdbLength(2) + RdbString(Listpack({}));
  const std::string one = RdbLength(2) + RdbString(Listpack({"x"}));
  ExpectLoads(18, Nodes({empty, one}), ValueType::kList, Packed(0, {"x"}, 1));
  ExpectDamaged(18, RdbLength(1) + empty);
  ExpectDamaged(18, RdbLength(1) + RdbLength(1) + RdbString(""));
  ExpectDamaged(18, RdbLength(1) + RdbLength(3) + RdbString("x"));
  ExpectDamaged(1, RdbLength(0));
  ExpectDamaged(10, RdbString(Ziplist({})));
}

TEST(RdbCollection, HashesOfAllFormsAreLoaded) {
  Rng rng(4);
  for (int round = 0; round < 30; ++round) {
    const Texts keys = RandomKeys(rng, 1 + rng.Below(200));
    Texts texts;
    size_t longest = 0;
    for (const std::string& key : keys) {
      texts.push_back(key);
      texts.push_back(RandomText(rng, 300));
      longest = std::max({longest, key.size(), texts.back().size()});
    }
    const bool are_many = keys.size() > 128;
    const std::string packed = Packed(are_many ? kPackedTable : 0, texts, 2);
    const std::string limited = Packed(are_many || longest > 64 ? kPackedTable : 0, texts, 2);
    ExpectLoads(4, RdbLength(keys.size()) + Strings(texts), ValueType::kHash, limited);
    ExpectLoads(9, RdbString(Zipmap(texts)), ValueType::kHash, limited);
    ExpectLoads(9, RdbString(Zipmap(texts, 3)), ValueType::kHash, limited);
    ExpectLoads(13, RdbString(Ziplist(texts)), ValueType::kHash, packed);
    ExpectLoads(16, RdbString(Listpack(texts)), ValueType::kHash, packed);
  }
  const Texts doubled = {"a", "1", "b", "2", "a", "3"};
  ExpectDamaged(4, RdbLength(3) + Strings(doubled));
  ExpectDamaged(9, RdbString(Zipmap(doubled)));
  ExpectDamaged(13, RdbString(Ziplist(doubled)));
  ExpectDamaged(16, RdbString(Listpack(doubled)));
  ExpectDamaged(13, RdbString(Ziplist({"a", "1", "b"})));
  ExpectDamaged(16, RdbString(Listpack({"a"})));
  ExpectDamaged(16, RdbString(Listpack({})));
  ExpectDamaged(9, RdbString(Zipmap({})));
}

TEST(RdbCollection, SetsOfAllFormsAreLoaded) {
  Rng rng(5);
  for (int round = 0; round < 30; ++round) {
    std::set<int64_t> numbers;
    const int shift = static_cast<int>(rng.Below(63));
    for (uint64_t left = 1 + rng.Below(520); left > 0; --left) {
      numbers.insert(static_cast<int64_t>(rng.Next()) >> shift);
    }
    const std::vector<int64_t> ascending(numbers.begin(), numbers.end());
    Texts texts;
    for (const int64_t number : ascending) texts.push_back(std::to_string(number));
    const std::string packed =
        Packed(texts.size() <= 512 ? kPackedIntegers : kPackedTable, texts, 1);
    ExpectLoads(11, RdbString(Intset(ascending)), ValueType::kSet, packed);
    Texts mixed = texts;
    for (size_t i = 0; i < mixed.size(); ++i) std::swap(mixed[i], mixed[rng.Below(i + 1)]);
    const std::string as_they_came = Packed(kPackedTable, mixed, 1);
    ExpectLoads(2, RdbLength(mixed.size()) + Strings(mixed), ValueType::kSet,
                texts.size() <= 512 ? packed : as_they_came);
    mixed.emplace_back("text");
    ExpectLoads(2, RdbLength(mixed.size()) + Strings(mixed), ValueType::kSet,
                Packed(kPackedTable, mixed, 1));
  }
  ExpectDamaged(2, RdbLength(2) + Strings({"5", "5"}));
  ExpectDamaged(2, RdbLength(3) + Strings({"5", "x", "5"}));
  const std::vector<int64_t> falling = {2, 1};
  ExpectDamaged(11, RdbString(Intset(falling)));
  const std::vector<int64_t> doubled = {1, 1};
  ExpectDamaged(11, RdbString(Intset(doubled)));
  ExpectDamaged(11, RdbString(Intset({})));
}

std::string ScoreText(double score) {
  std::string text(kDoubleTextMax, '\0');
  text.resize(FormatDouble(score, text.data()));
  return text;
}

TEST(RdbCollection, SortedSetsOfAllFormsAreLoaded) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Rng rng(6);
  for (int round = 0; round < 40; ++round) {
    std::vector<std::pair<double, std::string>> members;
    size_t longest = 0;
    for (const std::string& key : RandomKeys(rng, 1 + rng.Below(200))) {
      static constexpr double kScores[] = {-0.0, 0.1, -kInfinite, kInfinite, 1e300, -3.25};
      const bool is_odd = rng.Below(2) == 0;
      members.emplace_back(is_odd ? kScores[rng.Below(6)] : static_cast<double>(rng.Below(50)),
                           key);
      longest = std::max(longest, key.size());
    }
    if (round % 4 == 0) std::sort(members.begin(), members.end());
    if (round % 4 == 1) std::sort(members.rbegin(), members.rend());
    Texts texts;
    std::string text_scores;
    std::string scores;
    for (const auto& [score, key] : members) {
      texts.insert(texts.end(), {key, ScoreText(score)});
      const std::string text = ScoreText(score);
      scores += RdbString(key) + DoubleBytes(score);
      text_scores += RdbString(key) + (score == kInfinite    ? std::string("\xfe")
                                       : score == -kInfinite ? std::string("\xff")
                                                             : Little(text.size(), 1) + text);
    }
    std::sort(members.begin(), members.end());
    Texts sorted;
    for (const auto& [score, key] : members) {
      sorted.insert(sorted.end(), {key, DoubleBytes(score)});
    }
    const bool are_many = members.size() > 128;
    const std::string packed = Packed(are_many ? kPackedTable : 0, sorted, 2);
    const bool is_table = are_many || longest > 64;
    // A score of -0 becomes 0 where Redis makes a payload compact.
    for (std::string& entry : sorted) {
      if (!is_table && entry == DoubleBytes(-0.0)) entry = DoubleBytes(0);
    }
    const std::string limited = Packed(is_table ? kPackedTable : 0, sorted, 2);
    const std::string length = RdbLength(members.size());
    ExpectLoads(3, length + text_scores, ValueType::kSortedSet, limited);
    ExpectLoads(5, length + scores, ValueType::kSortedSet, limited);
    ExpectLoads(12, RdbString(Ziplist(texts)), ValueType::kSortedSet, packed);
    ExpectLoads(17, RdbString(Listpack(texts)), ValueType::kSortedSet, packed);
  }
  ExpectDamaged(17, RdbString(Listpack({"a", "1", "a", "2"})));
  ExpectDamaged(12, RdbString(Ziplist({"a", "1", "a", "2"})));
  ExpectDamaged(17, RdbString(Listpack({"a", "1", "b"})));
  for (const char* const score : {"nan", "x", "1x", ""}) {
    ExpectDamaged(17, RdbString(Listpack({"a", score})));
  }
  ExpectDamaged(5, RdbLength(1) + RdbString("a") + DoubleBytes(std::nan("")));
  ExpectDamaged(5, RdbLength(1) + RdbString("a") + "1234567");
  ExpectDamaged(3, RdbLength(1) + RdbString("a") + "\xfd" + std::string(300, '1'));
  ExpectDamaged(5,
                RdbLength(2) + RdbString("a") + DoubleBytes(1) + RdbString("a") + DoubleBytes(2));
}

TEST(RdbCollection, WhatIsDumpedIsLoaded) {
  Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    Texts keys = RandomKeys(rng, 1 + rng.Below(100));
    keys.emplace_back("no number");
    Texts pairs;
    std::vector<std::pair<double, std::string>> scored;
    for (const std::string& key : keys) {
      pairs.insert(pairs.end(), {key, RandomText(rng, 300)});
      scored.emplace_back(static_cast<double>(rng.Below(20)) / 4, key);
    }
    std::sort(scored.begin(), scored.end());
    Texts sorted;
    for (const auto& [score, key] : scored) sorted.insert(sorted.end(), {key, DoubleBytes(score)});
    const std::pair<ValueType, std::string> values[] = {
        {ValueType::kList, Packed(0, RandomTexts(rng, 20), 1)},
        {ValueType::kSet, Packed(0, keys, 1)},
        {ValueType::kHash, Packed(kPackedTable, pairs, 2)},
        {ValueType::kSortedSet, Packed(kPackedTable, sorted, 2)},
    };
    for (const auto& [type, value] : values) {
      const std::string payload = DumpPayload(type, value);
      EXPECT_EQ(DumpPayload(type, value, 1), payload);
      ValueType loaded_type = ValueType::kString;
      std::string loaded;
      ASSERT_EQ(LoadPayload(payload, &loaded_type, &loaded), State::kDone);
      EXPECT_EQ(loaded_type, type);
      loaded[1] = value[1];  // the flags are those of the limits
      EXPECT_EQ(loaded, value);
    }
  }
}

TEST(RdbCollection, WhatIsTooLargeIsRefused) {
  const std::string payload = DumpPayload(ValueType::kList, Packed(0, {"abc", "defghi"}, 1));
  ValueType type = ValueType::kString;
  std::string value;
  const uint64_t bytes = kPackedHeaderBytes + PackedEntryBytes(3) + PackedEntryBytes(6);
  EXPECT_EQ(LoadPayload(payload, &type, &value, 100, bytes), State::kDone);
  EXPECT_EQ(LoadPayload(payload, &type, &value, 100, bytes - 1), State::kTooLarge);
}

// Redis reads behind the value no more than is needed, and so do we; but all of it must be there.
TEST(RdbCollection, WhatIsCutOrChangedIsRefusedOrSound) {
  Rng rng(8);
  const Texts texts = {"1", "a", "200", "bb", "-70000", std::string(70, 'x'), "5000000000", "c"};
  const std::vector<int64_t> numbers = {1, 2, 300};
  const std::string bodies[] = {
      '\1' + RdbLength(8) + Strings(texts),
      '\4' + RdbLength(4) + Strings(texts),
      '\x9' + RdbString(Zipmap(texts)),
      '\xa' + RdbString(Ziplist(texts)),
      '\xb' + RdbString(Intset(numbers)),
      '\xc' + RdbString(Ziplist({"a", "1", "b", "2.5"})),
      '\xd' + RdbString(Ziplist(texts)),
      '\xe' + RdbLength(1) + RdbCompressed(Ziplist(texts)),
      '\x10' + RdbString(Listpack(texts)),
      '\x11' + RdbString(Listpack({"a", "1", "b", "2.5"})),
      '\x12' + RdbLength(1) + RdbLength(2) + RdbString(Listpack(texts)),
  };
  for (const std::string& body : bodies) {
    ValueType type = ValueType::kString;
    std::string value;
    ASSERT_EQ(LoadPayload(Payload(body), &type, &value), State::kDone) << int{body[0]};
    for (size_t cut = 0; cut < body.size(); ++cut) {
      EXPECT_EQ(LoadPayload(Payload(body.substr(0, cut)), &type, &value), State::kDamaged) << cut;
    }
    for (int round = 0; round < 3000; ++round) {
      std::string changed = body;
      for (uint64_t left = 1 + rng.Below(2); left > 0; --left) {
        changed[rng.Below(changed.size())] = static_cast<char>(rng.Below(256));
      }
      if (LoadPayload(Payload(changed), &type, &value) != State::kDone) continue;
      std::string again;
      ASSERT_EQ(LoadPayload(DumpPayload(type, value), &type, &again), State::kDone);
      if (type == ValueType::kSortedSet) continue;  // a -0 became a 0
      ASSERT_EQ(again.substr(kPackedHeaderBytes), value.substr(kPackedHeaderBytes));
    }
  }
}

}  // namespace
}  // namespace onetrip
