// Elements that are taken from a list, or move between two, while others change these.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client_core/store/forwarding_store.h"
#include "redis_compat/values/list_value.h"
#include "redis_compat/values/value.h"
#include "tests/unit/redis_client.h"

namespace onetrip {
namespace {

// Another client's write: `key` becomes a list of these elements, or goes.
struct Write {
  int before = 0;  // the command's read-modify-write that follows, counted from 1; 0: each
  std::string key;
  std::vector<std::string_view> elements;
};

class InterferingKv final : public ForwardingKv {
 public:
  InterferingKv(Kv& store, std::vector<Write> writes)
      : ForwardingKv(store), writes_(std::move(writes)) {}

  Task<Status> ReadModifyWrite(Key key, Mutation& mutation) override {
    ++mutations_;
    for (const Write& write : writes_) {
      if (write.before != 0 && write.before != mutations_) continue;
      const Status status = co_await Do(write);
      if (!status.ok()) co_return status;
    }
    co_return co_await store_.ReadModifyWrite(key, mutation);
  }

 private:
  Task<Status> Do(const Write& write) {
    if (write.elements.empty()) {
      bool existed = false;
      co_return co_await store_.Delete({0, write.key}, &existed);
    }
    // Other elements each time, if it is done again and again.
    std::vector<std::string_view> elements = write.elements;
    const std::string count = std::to_string(mutations_);
    if (write.before == 0) elements.insert(elements.begin(), count);
    const std::string list = ListValue({}).Push(ListEnd::kTail, elements);
    NewRecord record;
    record.head = list;
    record.type = static_cast<uint8_t>(ValueType::kList);
    co_return co_await store_.Set({0, write.key}, record);
  }

  const std::vector<Write> writes_;
  int mutations_ = 0;
};

std::string Bulk(std::string_view value) {
  return "$" + std::to_string(value.size()) + "\r\n" + std::string(value) + "\r\n";
}
std::string Array(const std::vector<std::string>& values) {
  std::string reply = "*" + std::to_string(values.size()) + "\r\n";
  for (const std::string& value : values) reply += Bulk(value);
  return reply;
}
constexpr char kNil[] = "$-1\r\n";

// The list `from` is a, b, c; `to` is x.
class RedisListRaces : public testing::Test {
 protected:
  RedisListRaces() {
    client_("RPUSH from a b c");
    client_("RPUSH to x");
  }

  std::string MoveAmid(std::vector<Write> writes) {
    InterferingKv interfering(worker_.worker->kv(), std::move(writes));
    RedisClient other(worker_, interfering);
    return other("LMOVE from to LEFT RIGHT");
  }
  void ExpectLists(const std::vector<std::string>& from, const std::vector<std::string>& to) {
    EXPECT_EQ(client_("LRANGE from 0 -1"), Array(from));
    EXPECT_EQ(client_("LRANGE to 0 -1"), Array(to));
  }

  RedisWorker worker_;
  RedisClient client_{worker_};
};

TEST_F(RedisListRaces, AloneAnElementMoves) {
  EXPECT_EQ(MoveAmid({}), Bulk("a"));
  ExpectLists({"b", "c"}, {"x", "a"});
}

TEST_F(RedisListRaces, AnElementThatAnotherClientHasTakenIsNotMovedToo) {
  EXPECT_EQ(MoveAmid({{2, "from", {"b", "c"}}}), Bulk("b"));
  ExpectLists({"c"}, {"x", "b"});
}

TEST_F(RedisListRaces, AnElementThatCameBeforeItMovesInItsPlace) {
  EXPECT_EQ(MoveAmid({{2, "from", {"z", "a", "b", "c"}}}), Bulk("z"));
  ExpectLists({"a", "b", "c"}, {"x", "z"});
}

TEST_F(RedisListRaces, NothingMovesFromAListThatWent) {
  EXPECT_EQ(MoveAmid({{2, "from", {}}}), kNil);
  ExpectLists({}, {"x"});
}

TEST_F(RedisListRaces, TheListMovedToMayChangeMeanwhile) {
  EXPECT_EQ(MoveAmid({{2, "from", {"b", "c"}}, {3, "to", {"x", "a", "y"}}}), Bulk("b"));
  ExpectLists({"c"}, {"x", "y", "b"});
}

// A third client must not have the element that another one has by then.
TEST_F(RedisListRaces, AnElementThatWasTakenFromTheTargetGoesFromTheSource) {
  EXPECT_EQ(MoveAmid({{2, "from", {"z", "a", "b"}}, {3, "to", {"x"}}}), Bulk("a"));
  ExpectLists({"z", "b"}, {"x"});
}

// Applies a change to a list, as a try that is lost, before it is applied to what is there.
class RepeatingKv final : public ForwardingKv {
 public:
  using ForwardingKv::ForwardingKv;

  Task<Status> ReadModifyWrite(Key key, Mutation& mutation) override {
    const std::string_view elements[] = {"p", "q", "r"};
    const std::string list = ListValue({}).Push(ListEnd::kTail, elements);
    const RecordView lost{list, list.size(), 0, 1, static_cast<uint8_t>(ValueType::kList)};
    (void)mutation.Apply(&lost);
    co_return co_await store_.ReadModifyWrite(key, mutation);
  }
};

TEST_F(RedisListRaces, NothingIsAnsweredOfATryThatIsLost) {
  RepeatingKv repeating(worker_.worker->kv());
  RedisClient other(worker_, repeating);
  for (const std::string_view line : {"LPOP none", "RPOP none", "LMOVE none none LEFT RIGHT"}) {
    EXPECT_EQ(other(line), kNil) << line;
  }
  EXPECT_EQ(other("LPOP none 2"), "*-1\r\n");
  EXPECT_EQ(other("LMPOP 1 none LEFT"), "*-1\r\n");
  for (const std::string_view line :
       {"LPUSHX none a", "LREM none 0 p", "LINSERT none BEFORE p a", "LLEN none"}) {
    EXPECT_EQ(other(line), ":0\r\n") << line;
  }
  EXPECT_EQ(other("LSET none 0 a"), "-ERR no such key\r\n");
  EXPECT_EQ(other("LREM from 0 p"), ":0\r\n");
  EXPECT_EQ(other("LINSERT from AFTER p a"), ":-1\r\n");
  EXPECT_EQ(other("RPUSH from d"), ":4\r\n");
  EXPECT_EQ(other("LPOP from 2"), Array({"a", "b"}));
  EXPECT_EQ(other("LMOVE from to LEFT LEFT"), Bulk("c"));
  EXPECT_EQ(other("LTRIM from 0 9"), "+OK\r\n");
  ExpectLists({"d"}, {"c", "x"});
}

TEST_F(RedisListRaces, AListThatChangesAgainAndAgainIsGivenUpWithNothingMoved) {
  const std::string reply = MoveAmid({{0, "from", {"y"}}});
  EXPECT_TRUE(reply.starts_with("-TRYAGAIN ")) << reply;
  EXPECT_EQ(client_("LRANGE to 0 -1"), Array({"x"}));
}

}  // namespace
}  // namespace onetrip
