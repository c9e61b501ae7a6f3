// Packed streams: entries, groups, trimming, what DUMP and RESTORE make of them, and damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "redis_compat/values/rdb_stream.h"
#include "redis_compat/values/stream_edit.h"
#include "redis_compat/values/stream_radix.h"

namespace onetrip {
namespace {

using Words = std::vector<std::string>;
using Fields = Words;
using Entries = std::map<EntryId, Fields>;

constexpr StreamNodeLimits kSmallNodes{5, 300};

std::span<const EntryId> One(const EntryId& id) { return {&id, 1}; }

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

Entries EntriesOf(StreamValue& stream, const StreamRange& range) {
  Entries found;
  StreamEntries entries(stream, range);
  StreamEntry entry;
  while (entries.Next(&entry)) found[entry.id] = FieldsOf(entry);
  EXPECT_FALSE(stream.is_damaged());
  return found;
}

std::vector<EntryId> NodeIdsOf(StreamValue& stream) {
  std::vector<EntryId> ids;
  StreamNode node;
  for (EntryId id; stream.NodeFrom(id, &node); StepForward(&id)) {
    id = node.id;
    ids.push_back(id);
  }
  return ids;
}

void ExpectHolds(StreamValue& stream, const Entries& model) {
  ASSERT_EQ(stream.header().length, model.size());
  EXPECT_EQ(EntriesOf(stream, {}), model);
  EXPECT_EQ(EntriesOf(stream, {.reverse = true}), model);
  EXPECT_EQ(stream.header().first_id, model.empty() ? EntryId() : model.begin()->first);
  EXPECT_EQ(stream.LastLiveId(), model.empty() ? EntryId() : model.rbegin()->first);
  const std::vector<EntryId> nodes = NodeIdsOf(stream);
  EXPECT_EQ(stream.header().nodes, nodes.size());
  EXPECT_EQ(stream.header().radix_nodes, CountRadixNodes(nodes));
}

// A stream of some entries, with a group whose consumers have some of them pending.
std::string SomeStream(uint64_t seed, uint64_t entries) {
  Rng rng(seed);
  StreamEdit stream;
  EXPECT_TRUE(stream.Load(std::string_view()));
  const auto read = static_cast<int64_t>(entries / 2);
  stream.AddGroup({.name = "group", .last_id = {entries / 2, 0}, .entries_read = read});
  StreamGroup found;
  EXPECT_TRUE(stream.FindGroup("group", &found));
  StreamGroupEdit group(stream, found);
  const Words names = {"c0", "c1", "c2", "c3"};
  for (uint64_t i = 1; i <= entries; ++i) {
    const Fields fields = RandomFields(rng);
    stream.Add({i, 0}, ViewsOf(fields), kSmallNodes);
    if (rng.Below(3) != 0) continue;
    const std::string& name = names[rng.Below(names.size())];
    const uint32_t consumer = group.SeeConsumer(name, static_cast<int64_t>(i));
    group.Put({{i, 0}, static_cast<int64_t>(1000 + i), 1 + rng.Below(300), consumer});
  }
  group.Finish();
  stream.AddGroup({.name = "another"});
  for (uint64_t i = 1; i <= entries; i += 4) EXPECT_EQ(stream.Delete(One({i, 0})), 1U);
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
          ASSERT_EQ(stream.Delete(One(some)), found != model.end() ? 1U : 0U);
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
  ASSERT_TRUE(stream.Load(std::string_view()));
  const Fields fields = {"a", "b"};
  for (uint64_t i = 1; i <= 23; ++i) stream.Add({i, 0}, ViewsOf(fields), {5, 0});
  ASSERT_EQ(stream.header().nodes, 5U);
  StreamTrim trim{.by = StreamTrim::By::kLength, .length = 4, .whole_nodes = true, .limit = 9};
  EXPECT_EQ(stream.Trim(trim), 5U);
  trim.limit = 0;
  EXPECT_EQ(stream.Trim(trim), 10U);
  EXPECT_EQ(stream.Trim(trim), 0U);
  EXPECT_EQ(stream.header().length, 8U);
  EXPECT_EQ(stream.header().first_id, (EntryId{16, 0}));
}

// Text that tells what is pending in a group, by id; and by consumer.
std::string PendingOf(StreamValue& stream, const StreamGroup& group) {
  std::string text;
  StreamPending pending;
  const auto add_all = [&](StreamPendings pendings) {
    while (pendings.Next(&pending)) {
      text += std::to_string(pending.id.ms) + ':' + std::to_string(pending.consumer) + ' ';
    }
    text += "; ";
  };
  add_all(StreamPendings(stream, group.number, {}));
  for (const StreamConsumer& consumer : stream.Consumers(group.number)) {
    text += std::string(consumer.name) + '=' + std::to_string(consumer.pending) + ' ';
    StreamPendings pendings(stream, group.number, {});
    pendings.OfConsumer(consumer.number);
    add_all(pendings);
  }
  return text;
}

TEST(StreamValueTest, GroupsKeepTheirOrderAndWhatIsPending) {
  StreamEdit stream;
  ASSERT_TRUE(stream.Load(std::string_view()));
  StreamGroup found;
  for (const char* const name : {"y", "x", "z"}) {
    stream.AddGroup({.name = name});
    ASSERT_TRUE(stream.FindGroup(name, &found));
    StreamGroupEdit group(stream, found);
    for (const char* const consumer : {"c", "a", "b", ""}) {
      const uint32_t number = group.SeeConsumer(consumer, 5);
      for (uint64_t i = 1; i < 3; ++i) group.Put({{10 * i + number, 0}, 7, 1, number});
    }
    // From one to another, and away.
    group.Put({{10, 0}, 8, 2, group.SeeConsumer("a", 6)});
    group.Put({{11, 0}, 8, 2, group.SeeConsumer("a", 6)});
    StreamPending pending;
    ASSERT_TRUE(group.FindPending({12, 0}, &pending));
    group.Remove(pending);
    EXPECT_FALSE(group.FindPending({12, 0}, &pending));
    group.Finish();
  }
  const std::string all = "10:1 11:1 13:3 20:0 21:1 22:2 23:3 ; ";
  ASSERT_TRUE(stream.FindGroup("x", &found));
  EXPECT_EQ(PendingOf(stream, found), all +
                                          "=2 13:3 23:3 ; a=3 10:1 11:1 21:1 ; b=1 22:2 ; "
                                          "c=1 20:0 ; ");
  EXPECT_EQ(found.consumers, 4U);
  EXPECT_EQ(found.pending, 7U);
  StreamConsumer consumer;
  ASSERT_TRUE(stream.FindConsumer(found.number, "a", &consumer));
  StreamGroupEdit group(stream, found);
  EXPECT_EQ(group.RemoveConsumer(consumer), 3U);
  group.Finish();
  EXPECT_FALSE(stream.FindConsumer(found.number, "a", &consumer));
  ASSERT_TRUE(stream.FindGroup("y", &found));
  stream.RemoveGroup(found);
  EXPECT_FALSE(stream.FindGroup("y", &found));
  ASSERT_FALSE(stream.is_damaged());
  const std::string value = stream.Finish();
  StreamValue again;
  ASSERT_TRUE(again.Load(value));
  const std::vector<StreamGroup> groups = again.Groups();
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(again.header().groups, 2U);
  EXPECT_EQ(PendingOf(again, groups[0]),
            "13:3 20:0 22:2 23:3 ; =2 13:3 23:3 ; b=1 22:2 ; c=1 20:0 ; ");
  EXPECT_TRUE(PendingOf(again, groups[1]).starts_with(all));
  const std::string_view bytes_of_it = value;
  for (size_t bytes = 1; bytes < value.size(); ++bytes) {
    StreamValue cut;
    cut.Load(bytes_of_it.substr(0, bytes));
    cut.Groups();
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
      // Groups and consumers may have other numbers.
      EXPECT_EQ(loaded.size(), value.size());
      EXPECT_EQ(Dump(loaded, piece), payload);
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
    EXPECT_TRUE(stream.is_damaged() || count == stream.header().length);
    for (const StreamGroup& group : stream.Groups()) PendingOf(stream, group);
    stream.Delete(One({2 + rng.Below(3), 0}));
    stream.Trim({.by = StreamTrim::By::kLength, .length = 5});
    stream.Add(kStreamIdMax, ViewsOf(fields), kSmallNodes);
    if (stream.is_damaged()) continue;
    StreamValue again;
    const std::string finished = stream.Finish();
    again.Load(finished);
  }
}

TEST(StreamValueTest, RadixTreeNodesAreCountedAsRedisHasThem) {
  const auto count = [](const std::vector<EntryId>& ids) { return CountRadixNodes(ids); };
  EXPECT_EQ(count({}), 1U);
  EXPECT_EQ(count({{1, 1}}), 2U);
  // The common bytes, where they part, and the two last bytes.
  EXPECT_EQ(count({{1, 1}, {1, 2}}), 4U);
  // They part before the last byte: what is left of each is a node of its own.
  EXPECT_EQ(count({{1, 1}, {2, 1}}), 6U);
}

TEST(StreamValueTest, RadixTreeNodesAreCountedAsNodesComeAndGo) {
  const std::string listpack = [] {
    const std::vector<std::string_view> fields = {"f", "v"};
    return MakeStreamNode(fields);
  }();
  Rng rng(9);
  for (int round = 0; round < 30; ++round) {
    StreamElements elements;
    std::set<EntryId> ids;
    uint32_t nodes = 1;
    const uint64_t bits = 1 + rng.Below(20);
    for (int step = 0; step < 300; ++step) {
      EntryId id{rng.Below(uint64_t{1} << bits) << rng.Below(44), rng.Below(3)};
      if (rng.Below(3) == 0 && !ids.empty()) id = *ids.lower_bound(std::min(id, *ids.rbegin()));
      StreamElement element;
      if (elements.Find({.kind = StreamKind::kNode, .id = id}, &element)) {
        elements.Erase(element);
        ids.erase(id);
        nodes -= RadixNodesFor(id, elements);
      } else {
        nodes += RadixNodesFor(id, elements);
        elements.Put(NodeElement({id, listpack}));
        ids.insert(id);
      }
      ASSERT_EQ(nodes, CountRadixNodes({ids.begin(), ids.end()})) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace onetrip
