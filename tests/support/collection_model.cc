#include "tests/support/collection_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

// No value of a workload begins so.
constexpr std::string_view kMark = "\x01<collection>";
constexpr std::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

enum class Verb : uint8_t {
  kPush,
  kPop,
  kRange,
  kFieldSet,
  kFieldGet,
  kFieldAdd,
  kFieldDel,
  kAll,
  kMemberAdd,
  kMemberDel,
  kIsMember,
  kScoreSet,
  kScoreAdd,
  kScoreDel,
  kScores,
  kPopLowest,
  kSize,
  kEntryAdd,
  kEntryDel,
  kEntryTrim,
  kEntries,
  kLength,
  kGroupMake,
  kGroupRead,
  kGroupDone,
  kGroupTell,
};
struct Row {
  std::string_view name;
  Verb verb;
  char type;
  bool reads = false;
  bool at_head = false;
};
constexpr auto kRows = std::to_array<Row>({
    {"lpush", Verb::kPush, 'l', false, true},
    {"rpush", Verb::kPush, 'l'},
    {"lpop", Verb::kPop, 'l', false, true},
    {"rpop", Verb::kPop, 'l'},
    {"lrange", Verb::kRange, 'l', true},
    {"llen", Verb::kSize, 'l', true},
    {"hset", Verb::kFieldSet, 'h'},
    {"hget", Verb::kFieldGet, 'h', true},
    {"hincrby", Verb::kFieldAdd, 'h'},
    {"hdel", Verb::kFieldDel, 'h'},
    {"hgetall", Verb::kAll, 'h', true},
    {"hlen", Verb::kSize, 'h', true},
    {"sadd", Verb::kMemberAdd, 's'},
    {"srem", Verb::kMemberDel, 's'},
    {"sismember", Verb::kIsMember, 's', true},
    {"scard", Verb::kSize, 's', true},
    {"zadd", Verb::kScoreSet, 'z'},
    {"zincrby", Verb::kScoreAdd, 'z'},
    {"zrem", Verb::kScoreDel, 'z'},
    {"zrange", Verb::kScores, 'z', true},
    {"zpopmin", Verb::kPopLowest, 'z'},
    {"zcard", Verb::kSize, 'z', true},
    {"xadd", Verb::kEntryAdd, 'x'},
    {"xdel", Verb::kEntryDel, 'x'},
    {"xtrim", Verb::kEntryTrim, 'x'},
    {"xrange", Verb::kEntries, 'x', true},
    {"xlen", Verb::kLength, 'x', true},
    {"xgroup", Verb::kGroupMake, 'x'},
    {"xreadgroup", Verb::kGroupRead, 'x'},
    {"xack", Verb::kGroupDone, 'x'},
    {"xpending", Verb::kGroupTell, 'x', true},
});

const Row* FindRow(std::string_view name) {
  const auto row = std::find_if(kRows.begin(), kRows.end(),
                                [name](const Row& candidate) { return candidate.name == name; });
  return row == kRows.end() ? nullptr : &*row;
}

int64_t Number(std::string_view text) {
  int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

// An element of a list or set is a key alone. Scores of the workload are whole numbers. A stream is
// its last id, as an element of its own, and then its entries, which have one field each: it is
// there without any, too. The value of the first element is its one group, if it has that.
struct Element {
  std::string key;
  std::string value;
};
using Elements = std::vector<Element>;

void AppendText(std::string_view text, std::string* to) {
  to->append(std::to_string(text.size())).append(":").append(text);
}

std::string ToText(char type, const Elements& elements) {
  std::string text(kMark);
  text.push_back(type);
  for (const Element& element : elements) {
    AppendText(element.key, &text);
    AppendText(element.value, &text);
  }
  return text;
}

std::string TakeText(std::string_view* from) {
  const size_t colon = from->find(':');
  CHECK(colon != std::string_view::npos);
  const auto bytes = static_cast<size_t>(Number(from->substr(0, colon)));
  std::string text(from->substr(colon + 1, bytes));
  from->remove_prefix(colon + 1 + bytes);
  return text;
}

Elements FromText(std::string_view text) {
  Elements elements;
  text.remove_prefix(kMark.size() + 1);
  while (!text.empty()) {
    std::string key = TakeText(&text);
    elements.push_back({std::move(key), TakeText(&text)});
  }
  return elements;
}

Elements::iterator FindKey(Elements& elements, std::string_view key) {
  return std::find_if(elements.begin(), elements.end(),
                      [key](const Element& element) { return element.key == key; });
}

// True if the key is new.
bool Put(Elements& elements, const std::string& key, const std::string& value) {
  const auto found = FindKey(elements, key);
  const bool is_new = found == elements.end();
  if (is_new) {
    elements.push_back({key, value});
  } else {
    found->value = value;
  }
  return is_new;
}

int64_t Remove(Elements& elements, std::string_view key) {
  const auto found = FindKey(elements, key);
  if (found == elements.end()) return 0;
  elements.erase(found);
  return 1;
}

// Both sums as the commands answer them.
std::string Add(Elements& elements, const std::string& key, std::string_view amount) {
  const auto found = FindKey(elements, key);
  const int64_t old = found == elements.end() ? 0 : Number(found->value);
  std::string sum = std::to_string(old + Number(amount));
  Put(elements, key, sum);
  return sum;
}

void SortByScore(Elements& elements) {
  std::sort(elements.begin(), elements.end(), [](const Element& a, const Element& b) {
    const int64_t left = Number(a.value);
    const int64_t right = Number(b.value);
    return left != right ? left < right : a.key < b.key;
  });
}

void SortByKey(Elements& elements) {
  std::sort(elements.begin(), elements.end(),
            [](const Element& a, const Element& b) { return a.key < b.key; });
}

std::string Pairs(const Elements& elements) {
  std::vector<std::string> texts;
  for (const Element& element : elements) {
    texts.push_back(RespBulk(element.key));
    texts.push_back(RespBulk(element.value));
  }
  return RespArray(texts);
}

std::string Pop(Elements& elements, bool at_head) {
  if (elements.empty()) return std::string(kRespNil);
  const auto last = at_head ? elements.begin() : elements.end() - 1;
  std::string reply = RespBulk(last->key);
  elements.erase(last);
  return reply;
}

std::string Keys(const Elements& elements) {
  std::vector<std::string> texts;
  for (const Element& element : elements) texts.push_back(RespBulk(element.key));
  return RespArray(texts);
}

std::string Size(const Elements& elements) {
  return RespInteger(static_cast<int64_t>(elements.size()));
}

std::pair<int64_t, int64_t> IdOf(std::string_view text) {
  const size_t dash = text.find('-');
  return {Number(text), Number(text.substr(dash + 1))};
}

// XADD key id field value.
std::string AddEntry(Elements& elements, const Command& argv) {
  const std::string& id = argv[2];
  if (elements.empty()) elements.push_back({"0-0", ""});
  Element& last = elements.front();
  if (IdOf(id) <= IdOf(last.key)) {
    return RespError(
        "ERR The ID specified in XADD is equal or smaller than the target stream top item");
  }
  last.key = id;
  elements.push_back({id, argv[4]});
  return RespBulk(id);
}

// Ids of entries alone: the last one that was given may be that of one.
std::string RemoveEntry(Elements& elements, std::string_view id) {
  if (elements.empty()) return RespInteger(0);
  const auto found = std::find_if(elements.begin() + 1, elements.end(),
                                  [id](const Element& entry) { return entry.key == id; });
  const bool was_there = found != elements.end();
  if (was_there) elements.erase(found);
  return RespInteger(was_there ? 1 : 0);
}

int64_t Length(const Elements& elements) {
  return elements.empty() ? 0 : static_cast<int64_t>(elements.size()) - 1;
}

// XTRIM key MAXLEN length.
std::string TrimEntries(Elements& elements, int64_t length) {
  const int64_t going = std::max<int64_t>(0, Length(elements) - length);
  if (going > 0) elements.erase(elements.begin() + 1, elements.begin() + 1 + going);
  return RespInteger(going);
}

// The name of the field, which is the same in all entries.
constexpr std::string_view kField = "f";

std::string EntryReply(const Element& entry) {
  const std::string fields = RespArray({RespBulk(kField), RespBulk(entry.value)});
  return RespArray({RespBulk(entry.key), fields});
}

std::string AllEntries(const Elements& elements) {
  std::vector<std::string> texts;
  for (int64_t i = 1; i <= Length(elements); ++i) {
    texts.push_back(EntryReply(elements[static_cast<size_t>(i)]));
  }
  return RespArray(texts);
}

// The group of a stream: how far it has read, and the consumers to which entries were given.
struct Group {
  std::string last_id = "0-0";
  std::map<std::pair<int64_t, int64_t>, std::pair<std::string, std::string>> pending;  // id, whose

  static bool IsIn(const Elements& elements) {
    return !elements.empty() && !elements.front().value.empty();
  }
  explicit Group(const Elements& elements) {
    std::string_view text = elements.front().value;
    last_id = TakeText(&text);
    while (!text.empty()) {
      std::string id = TakeText(&text);
      pending[IdOf(id)] = {id, TakeText(&text)};
    }
  }
  Group() = default;
  void PutIn(Elements* elements) const {
    std::string text;
    AppendText(last_id, &text);
    for (const auto& [place, one] : pending) {
      AppendText(one.first, &text);
      AppendText(one.second, &text);
    }
    elements->front().value = std::move(text);
  }
};

// XGROUP CREATE key group 0 MKSTREAM.
std::string MakeGroup(Elements& elements) {
  if (Group::IsIn(elements)) return RespError("BUSYGROUP Consumer Group name already exists");
  if (elements.empty()) elements.push_back({"0-0", ""});
  Group().PutIn(&elements);
  return std::string(kRespOk);
}

std::string NoGroup(const std::string& key, const std::string& group, std::string_view where) {
  return RespError("NOGROUP No such key '" + key + "' or consumer group '" + group + "'" +
                   std::string(where));
}

// XREADGROUP GROUP group consumer COUNT count STREAMS key >.
std::string ReadByGroup(Elements& elements, const Command& argv) {
  if (!Group::IsIn(elements)) {
    return NoGroup(argv[7], argv[2], " in XREADGROUP with GROUP option");
  }
  Group group(elements);
  const auto count = static_cast<size_t>(Number(argv[5]));
  std::vector<std::string> given;
  for (size_t i = 1; i < elements.size() && given.size() < count; ++i) {
    const std::string& id = elements[i].key;
    if (IdOf(id) <= IdOf(group.last_id)) continue;
    group.last_id = id;
    group.pending[IdOf(id)] = {id, argv[3]};
    given.push_back(EntryReply(elements[i]));
  }
  if (given.empty()) return std::string(kRespNullArray);
  group.PutIn(&elements);
  return RespArray({RespArray({RespBulk(argv[7]), RespArray(given)})});
}

// XACK key group id.
std::string Acknowledge(Elements& elements, const Command& argv) {
  if (!Group::IsIn(elements)) return RespInteger(0);
  Group group(elements);
  const bool was_there = group.pending.erase(IdOf(argv[3])) > 0;
  group.PutIn(&elements);
  return RespInteger(was_there ? 1 : 0);
}

// XPENDING key group.
std::string TellPending(const Elements& elements, const Command& argv) {
  if (!Group::IsIn(elements)) return NoGroup(argv[1], argv[2], "");
  const Group group(elements);
  const std::string size = RespInteger(static_cast<int64_t>(group.pending.size()));
  const std::string nil(kRespNil);
  if (group.pending.empty()) return RespArray({size, nil, nil, std::string(kRespNullArray)});
  std::map<std::string, int64_t> counts;
  for (const auto& [place, one] : group.pending) ++counts[one.second];
  std::vector<std::string> consumers;
  consumers.reserve(counts.size());
  for (const auto& [name, count] : counts) {
    consumers.push_back(RespArray({RespBulk(name), RespBulk(std::to_string(count))}));
  }
  return RespArray({size, RespBulk(group.pending.begin()->second.first),
                    RespBulk(group.pending.rbegin()->second.first), RespArray(consumers)});
}

// Applies the command to the elements; its reply.
std::string Apply(const Row& row, const Command& argv, Elements& elements) {
  int64_t count = 0;
  switch (row.verb) {
    case Verb::kPush:
      for (size_t i = 2; i < argv.size(); ++i) {
        elements.insert(row.at_head ? elements.begin() : elements.end(), {argv[i], ""});
      }
      return Size(elements);
    case Verb::kPop:
      return Pop(elements, row.at_head);
    case Verb::kRange:
      return Keys(elements);
    case Verb::kFieldSet:
      for (size_t i = 2; i < argv.size(); i += 2) count += Put(elements, argv[i], argv[i + 1]);
      return RespInteger(count);
    case Verb::kFieldGet: {
      const auto found = FindKey(elements, argv[2]);
      return found == elements.end() ? std::string(kRespNil) : RespBulk(found->value);
    }
    case Verb::kFieldAdd:
      return RespInteger(Number(Add(elements, argv[2], argv[3])));
    case Verb::kAll:
      return Pairs(elements);
    case Verb::kMemberAdd:
      for (size_t i = 2; i < argv.size(); ++i) count += Put(elements, argv[i], "");
      return RespInteger(count);
    case Verb::kFieldDel:
    case Verb::kMemberDel:
    case Verb::kScoreDel:
      for (size_t i = 2; i < argv.size(); ++i) count += Remove(elements, argv[i]);
      return RespInteger(count);
    case Verb::kIsMember:
      return RespInteger(FindKey(elements, argv[2]) == elements.end() ? 0 : 1);
    case Verb::kScoreSet:
      for (size_t i = 2; i < argv.size(); i += 2) count += Put(elements, argv[i + 1], argv[i]);
      SortByScore(elements);
      return RespInteger(count);
    case Verb::kScoreAdd: {
      const std::string sum = Add(elements, argv[3], argv[2]);
      SortByScore(elements);
      return RespBulk(sum);
    }
    case Verb::kScores:
      return Pairs(elements);
    case Verb::kPopLowest: {
      const Elements lowest(elements.begin(), elements.begin() + (elements.empty() ? 0 : 1));
      elements.erase(elements.begin(), elements.begin() + static_cast<long>(lowest.size()));
      return Pairs(lowest);
    }
    case Verb::kSize:
      return Size(elements);
    case Verb::kEntryAdd:
      return AddEntry(elements, argv);
    case Verb::kEntryDel:
      return RemoveEntry(elements, argv[2]);
    case Verb::kEntryTrim:
      return TrimEntries(elements, Number(argv[3]));
    case Verb::kEntries:
      return AllEntries(elements);
    case Verb::kLength:
      return RespInteger(Length(elements));
    case Verb::kGroupMake:
      return MakeGroup(elements);
    case Verb::kGroupRead:
      return ReadByGroup(elements, argv);
    case Verb::kGroupDone:
      return Acknowledge(elements, argv);
    case Verb::kGroupTell:
      return TellPending(elements, argv);
  }
  CHECK(false);
}

}  // namespace

bool IsCollectionCommand(std::string_view name) { return FindRow(name) != nullptr; }

bool CollectionCommandReads(std::string_view name) {
  const Row* const row = FindRow(name);
  return row != nullptr && row->reads;
}

std::string ReplyInOrder(const Command& argv, std::string reply) {
  const Row* const row = argv.empty() ? nullptr : FindRow(CommandName(argv));
  std::vector<std::string> texts;
  if (row == nullptr || row->verb != Verb::kAll || !SplitArray(reply, &texts)) return reply;
  if (texts.size() % 2 != 0) return reply;
  Elements elements;
  for (size_t i = 0; i < texts.size(); i += 2) elements.push_back({texts[i], texts[i + 1]});
  // By the field, not by what a bulk string has in front of it.
  const auto field = [](const Element& element) {
    const std::string_view key = element.key;
    return key.substr(key.find('\n') + 1);
  };
  std::sort(elements.begin(), elements.end(),
            [&field](const Element& a, const Element& b) { return field(a) < field(b); });
  texts.clear();
  for (Element& element : elements) {
    texts.push_back(std::move(element.key));
    texts.push_back(std::move(element.value));
  }
  return RespArray(texts);
}

bool IsCollection(std::string_view value) { return value.starts_with(kMark); }

std::string_view CollectionTypeName(std::string_view value) {
  switch (value[kMark.size()]) {
    case 'l':
      return "list";
    case 'h':
      return "hash";
    case 's':
      return "set";
    case 'x':
      return "stream";
    default:
      return "zset";
  }
}

CollectionOutcome StepCollection(const Command& argv, std::optional<std::string_view> value) {
  const Row& row = *FindRow(CommandName(argv));
  if (value && (!IsCollection(*value) || (*value)[kMark.size()] != row.type)) {
    return {RespError(kWrongType), std::string(*value)};
  }
  Elements elements;
  if (value) elements = FromText(*value);
  CollectionOutcome outcome;
  outcome.reply = Apply(row, argv, elements);
  // Neither has an order that its clients may count on.
  if (row.type == 'h' || row.type == 's') SortByKey(elements);
  if (!elements.empty()) outcome.next = ToText(row.type, elements);
  return outcome;
}

}  // namespace onetrip
