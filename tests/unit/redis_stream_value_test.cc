// Packed streams: entries, groups, trimming, what DUMP and RESTORE make of them, and damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "redis_compat/values/rdb_stream.h"
#include "redis_compat/values/stream_edit.h"

namespace onetrip {
namespace {

using Fields = std::vector<std::string>;
using Entries = std::map<EntryId, Fields>;

constexpr StreamNodeLimits kSmallNodes{5, 300};

std::vector<std::string_view> ViewsOf(const Fields& fields) {
  return {fields.begin(), fields.end()};
}

// Names that mostly repeat; texts, numbers, and texts that look like numbers.
Fields RandomFields(Rng& rng) {
  Fields fields;
  for (uint64_t left = 1 + rng.Below(3); left > 0; --left) {
    fields.push_back(rng.Below(4) == 0 ? std::to_string(rng.Below(300)) : "name");
    const auto number = static_cast<int64_t>(rng.Next()) >> rng.Below(64);
    switch (rng.Below(4)) {
      case 0:
        fields.push_back(std::to_string(number));
        break;
      case 1:
        fields.push_back("0" + std::to_string(number));
        break;
      default:
        fields.push_back(std::string(rng.Below(120), static_cast<char>(rng.Below(256))));
    }
  }
  return fields;
}

Fields FieldsOf(const StreamEntry& entry) {
  Fields fields;
  StreamFields reader(entry);
  std::string_view name;
  std::string_view value;
  while (reader.Next(&name, &value)) {
    fields.emplace_back(name);
    fields.emplace_back(value);
  }
  return fields;
}

Entries EntriesOf(const StreamValue& stream, const StreamRange& range) {
  Entries found;
  StreamEntries entries(stream, range);
  StreamEntry entry;
  while (entries.Next(&entry)) found[entry.id] = FieldsOf(entry);
  EXPECT_FALSE(entries.is_damaged());
  return found;
}

void ExpectHolds(const StreamValue& stream, const Entries& model) {
  ASSERT_EQ(stream.header().length, model.size());
  EXPECT_EQ(EntriesOf(stream, {}), model);
  EXPECT_EQ(EntriesOf(stream, {.reverse = true}), model);
  EXPECT_EQ(stream.header().first_id, model.empty() ? EntryId() : model.begin()->first);
  EntryId last;
  ASSERT_TRUE(FindLastStreamId(stream, &last));
  EXPECT_EQ(last, model.empty() ? EntryId() : model.rbegin()->first);
}

// A stream of some entries, with a group whose consumers have some of them pending.
std::string SomeStream(uint64_t seed, uint64_t entries) {
  Rng rng(seed);
  StreamEdit stream;
  EXPECT_TRUE(stream.Load({}));
  StreamGroup group;
  group.last_id = {entries / 2, 0};
  group.entries_read = static_cast<int64_t>(entries / 2);
  for (uint64_t i = 1; i <= entries; ++i) {
    const Fields fields = RandomFields(rng);
    stream.Add({i, 0}, ViewsOf(fields), kSmallNodes);
    if (rng.Below(3) != 0) continue;
    const std::string name = "c" + std::to_string(rng.Below(4));
    const uint32_t consumer = group.SeeConsumer(name, static_cast<int64_t>(i));
    StreamPending& pending = group.AddPending({i, 0});
    pending.delivered_ms = static_cast<int64_t>(1000 + i);
    pending.deliveries = 1 + rng.Below(300);
    pending.consumer = consumer;
  }
  stream.PutGroup("group", group);
  stream.PutGroup("another", StreamGroup());
  for (uint64_t i = 1; i <= entries; i += 4) EXPECT_TRUE(stream.Delete({i, 0}));
  EXPECT_FALSE(stream.is_damaged());
  return stream.Finish();
}

std::string Dump(std::string_view value, size_t piece) {
  StreamValue stream;
  EXPECT_TRUE(stream.Load(value));
  StreamDumper dumper(stream);
  std::string made(dumper.BytesMax(), '\0');
  dumper.Begin(made);
  while (dumper.Advance(piece)) {
  }
  EXPECT_FALSE(dumper.is_damaged());
  made.resize(dumper.made());
  return made + DumpFooter(Crc64(made));
}

StreamLoader::State Load(std::string_view payload, size_t piece, std::string* value,
                         uint64_t bytes_max = uint64_t{1} << 20) {
  StreamLoader loader(payload, bytes_max);
  StreamLoader::State state = StreamLoader::State::kMore;
  while (state == StreamLoader::State::kMore) state = loader.Advance(piece);
  *value = loader.TakeValue();
  return state;
}

TEST(StreamValueTest, IdsAreSteppedOverWhatEndsASequence) {
  EntryId id{7, UINT64_MAX};
  EXPECT_TRUE(StepForward(&id));
  EXPECT_EQ(id, (EntryId{8, 0}));
  EXPECT_TRUE(StepBack(&id));
  EXPECT_EQ(id, (EntryId{7, UINT64_MAX}));
  id = kStreamIdMax;
  EXPECT_FALSE(StepForward(&id));
  EXPECT_EQ(id, EntryId());
  EXPECT_FALSE(StepBack(&id));
  EXPECT_EQ(id, kStreamIdMax);
  char text[kStreamIdTextMax];
  EXPECT_EQ(std::string(text, FormatStreamId(id, text)),
            "18446744073709551615-18446744073709551615");
}

TEST(StreamValueTest, IdsAreParsedAsRedisDoes) {
  EntryId id;
  bool has_sequence = true;
  EXPECT_TRUE(ParseStreamId("5", {.missing_sequence = 9}, &id));
  EXPECT_EQ(id, (EntryId{5, 9}));
  EXPECT_TRUE(ParseStreamId("007-+1", {}, &id));
  EXPECT_EQ(id, (EntryId{7, 1}));
  EXPECT_TRUE(ParseStreamId("1--05", {}, &id));
  EXPECT_EQ(id, (EntryId{1, UINT64_MAX - 4}));
  for (const char* const text : {"", "-", "+", "-1", "1-", "1--5", "a", "1-a", "1-*", "*", "1-1-1",
                                 "18446744073709551616", "99999999999999999999999"}) {
    EXPECT_FALSE(ParseStreamId(text, {}, &id)) << text;
  }
  EXPECT_TRUE(ParseStreamId("+", {.takes_ends = true}, &id));
  EXPECT_EQ(id, kStreamIdMax);
  EXPECT_TRUE(ParseStreamId("3-*", {.takes_any_sequence = true}, &id, &has_sequence));
  EXPECT_FALSE(has_sequence);
  EXPECT_FALSE(ParseStreamId(std::string(128, '1'), {}, &id));
}

TEST(StreamValueTest, HoldsWhatAModelHoldsWhateverIsDone) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Rng rng(seed);
    Entries model;
    std::string value;
    EntryId last;
    for (int step = 0; step < 150; ++step) {
      StreamEdit stream;
      ASSERT_TRUE(stream.Load(value));
      const EntryId some{rng.Below(last.ms + 2), rng.Below(2)};
      switch (rng.Below(8)) {
        case 0: {
          const auto found = model.find(some);
          ASSERT_EQ(stream.Delete(some), found != model.end());
          if (found != model.end()) model.erase(found);
          break;
        }
        case 1: {
          const uint64_t before = model.size();
          model.erase(model.begin(), model.lower_bound(some));
          ASSERT_EQ(stream.Trim({.by = StreamTrim::By::kId, .id = some}), before - model.size());
          break;
        }
        case 2: {
          const uint64_t length = rng.Below(40);
          const uint64_t before = model.size();
          while (model.size() > length) model.erase(model.begin());
          const StreamTrim trim{.by = StreamTrim::By::kLength, .length = length};
          ASSERT_EQ(stream.Trim(trim), before - model.size());
          break;
        }
        default:
          last = {last.ms + rng.Below(2), last.sequence + 1};
          model[last] = RandomFields(rng);
          stream.Add(last, ViewsOf(model[last]), kSmallNodes);
      }
      ASSERT_FALSE(stream.is_damaged());
      value = stream.Finish();
      StreamValue again;
      ASSERT_TRUE(again.Load(value));
      ExpectHolds(again, model);
      EXPECT_EQ(again.header().last_id, last);
      const StreamRange range{.first = some, .last = {some.ms + 3, 1}};
      EXPECT_EQ(EntriesOf(again, range),
                Entries(model.lower_bound(range.first), model.upper_bound(range.last)));
    }
  }
}

TEST(StreamValueTest, TrimmingByWholeNodesKeepsToItsLimit) {
  StreamEdit stream;
  ASSERT_TRUE(stream.Load({}));
  const Fields fields = {"a", "b"};
  for (uint64_t i = 1; i <= 23; ++i) stream.Add({i, 0}, ViewsOf(fields), {5, 0});
  ASSERT_EQ(stream.nodes().size(), 5U);
  StreamTrim trim{.by = StreamTrim::By::kLength, .length = 4, .whole_nodes = true, .limit = 9};
  EXPECT_EQ(stream.Trim(trim), 5U);
  trim.limit = 0;
  EXPECT_EQ(stream.Trim(trim), 10U);
  EXPECT_EQ(stream.Trim(trim), 0U);
  EXPECT_EQ(stream.header().length, 8U);
  EXPECT_EQ(stream.header().first_id, (EntryId{16, 0}));
}

TEST(StreamValueTest, GroupsKeepTheirOrderAndWhatIsPending) {
  StreamGroup group;
  for (const char* const name : {"c", "a", "b", ""}) {
    const uint32_t consumer = group.SeeConsumer(name, 5);
    for (uint64_t i = 0; i < 3; ++i) {
      const uint64_t sequence = name[0] == 'a' ? 2 : 1;
      group.AddPending({10 * i + consumer, sequence}).consumer = consumer;
    }
  }
  EXPECT_EQ(group.consumers().size(), 4U);
  EXPECT_TRUE(
      std::is_sorted(group.pending().begin(), group.pending().end(),
                     [](const StreamPending& a, const StreamPending& b) { return a.id < b.id; }));
  const uint64_t of_a = group.CountPending()[group.FindConsumer("a")];
  const uint64_t all = group.pending().size();
  EXPECT_EQ(group.RemoveConsumer(group.FindConsumer("a")), of_a);
  EXPECT_EQ(group.pending().size(), all - of_a);
  EXPECT_EQ(group.FindConsumer("a"), StreamGroup::kNoConsumer);
  std::string body;
  group.AppendTo(&body);
  StreamGroup again;
  ASSERT_TRUE(again.Load(body));
  std::string same;
  again.AppendTo(&same);
  EXPECT_EQ(same, body);
  for (size_t bytes = 0; bytes < body.size(); ++bytes) {
    EXPECT_FALSE(again.Load(body.substr(0, bytes)));
  }
}

TEST(StreamValueTest, ComesBackFromDumpAndRestoreInPiecesOfAnySize) {
  for (const uint64_t entries : {0, 1, 7, 200}) {
    const std::string value = SomeStream(entries + 1, entries);
    const std::string payload = Dump(value, 1 << 20);
    for (const size_t piece : {size_t{1}, size_t{50}, size_t{100'000}}) {
      EXPECT_EQ(Dump(value, piece), payload);
      std::string loaded;
      ASSERT_EQ(Load(payload, piece, &loaded), StreamLoader::State::kDone);
      EXPECT_EQ(loaded, value);
    }
    std::string loaded;
    EXPECT_EQ(Load(payload, 1000, &loaded, value.size() - 1), StreamLoader::State::kTooLarge);
  }
}

TEST(StreamValueTest, APayloadThatIsCutOrChangedIsRefusedOrSound) {
  const std::string payload = Dump(SomeStream(3, 12), 1 << 20);
  const std::string body = payload.substr(0, payload.size() - kDumpFooterBytes);
  std::string loaded;
  for (size_t bytes = 1; bytes < body.size(); ++bytes) {
    EXPECT_EQ(Load(body.substr(0, bytes) + DumpFooter(0), 100, &loaded),
              StreamLoader::State::kDamaged);
  }
  Rng rng(1);
  for (int i = 0; i < 5'000; ++i) {
    std::string changed = body;
    const size_t at = 1 + rng.Below(body.size() - 1);
    changed[at] = static_cast<char>(rng.Next());
    if (Load(changed + DumpFooter(0), 100, &loaded) != StreamLoader::State::kDone) continue;
    StreamValue stream;
    ASSERT_TRUE(stream.Load(loaded));
    EXPECT_EQ(EntriesOf(stream, {}).size(), stream.header().length);
  }
}

TEST(StreamValueTest, DamageIsMetAndNeverBelieved) {
  const std::string value = SomeStream(4, 12);
  Rng rng(2);
  const Fields fields = {"name", "value"};
  for (int i = 0; i < 8'000; ++i) {
    std::string damaged =
        value.substr(0, rng.Below(4) == 0 ? rng.Below(value.size()) : value.size());
    if (!damaged.empty()) damaged[rng.Below(damaged.size())] = static_cast<char>(rng.Next());
    StreamEdit stream;
    if (!stream.Load(damaged)) continue;
    StreamEntries entries(stream, {.reverse = rng.Below(2) == 0});
    StreamEntry entry;
    uint64_t count = 0;
    for (; entries.Next(&entry); ++count) FieldsOf(entry);
    EXPECT_TRUE(entries.is_damaged() || count == stream.header().length);
    for (const StreamValue::Group& packed : stream.groups()) StreamGroup().Load(packed.body);
    stream.Delete({2 + rng.Below(3), 0});
    stream.Trim({.by = StreamTrim::By::kLength, .length = 5});
    stream.Add(kStreamIdMax, ViewsOf(fields), kSmallNodes);
    if (stream.is_damaged()) continue;
    StreamValue again;
    again.Load(stream.Finish());
  }
}

TEST(StreamValueTest, RadixTreeNodesAreCountedAsRedisHasThem) {
  const auto count = [](const std::vector<EntryId>& ids) {
    std::vector<StreamNode> nodes;
    for (const EntryId& id : ids) nodes.push_back({id, {}});
    return CountRadixTreeNodes(nodes);
  };
  EXPECT_EQ(count({}), 1U);
  EXPECT_EQ(count({{1, 1}}), 2U);
  // The common bytes, where they part, and the two last bytes.
  EXPECT_EQ(count({{1, 1}, {1, 2}}), 4U);
  // They part before the last byte: what is left of each is a node of its own.
  EXPECT_EQ(count({{1, 1}, {2, 1}}), 6U);
}

}  // namespace
}  // namespace onetrip
