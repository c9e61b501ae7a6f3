// Commands on streams that are damaged, and changes that the store has made anew.
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/rng.h"
#include "client_core/store/forwarding_store.h"
#include "redis_compat/values/stream_edit.h"
#include "redis_compat/values/value.h"
#include "tests/unit/redis_client.h"

namespace onetrip {
namespace {

constexpr std::string_view kDamaged = "-ERR the stream at this key is damaged\r\n";

// Each on the key KEY.
constexpr std::string_view kCommands[] = {
    "XADD KEY 90-1 f v",
    "XADD KEY 91-1 f v g w",
    "XADD KEY MAXLEN ~ 3 92-1 f v",
    "XADD KEY 1-1 f v",
    "XLEN KEY",
    "XRANGE KEY - +",
    "XREVRANGE KEY + - COUNT 2",
    "XGROUP CREATE KEY h 0",
    "XGROUP CREATE KEY h 0",
    "XGROUP CREATECONSUMER KEY h c",
    "XREADGROUP GROUP h c COUNT 3 STREAMS KEY >",
    "XREADGROUP GROUP h d STREAMS KEY >",
    "XREADGROUP GROUP h d STREAMS KEY 0",
    "XACK KEY h 5-0 6-0",
    "XCLAIM KEY h e 0 90-1 91-1 FORCE JUSTID",
    "XAUTOCLAIM KEY h f 0 0 COUNT 2",
    "XPENDING KEY h",
    "XDEL KEY 5-0 6-0 90-1",
    "XREAD COUNT 1 STREAMS KEY 0",
    "XSETID KEY 99",
    "XTRIM KEY MAXLEN 2",
    "XINFO STREAM KEY",
    "XINFO GROUPS KEY",
    "XGROUP SETID KEY h 0",
    "XGROUP DELCONSUMER KEY h d",
    "XGROUP DESTROY KEY h",
    "XINFO STREAM KEY FULL",
    "DUMP KEY",
};

std::string On(std::string_view command, std::string_view key) {
  std::string text(command);
  return text.replace(text.find("KEY"), 3, key);
}

std::string StreamOfTen() {
  StreamEdit stream;
  EXPECT_TRUE(stream.Load(std::string_view()));
  const std::vector<std::string_view> fields = {"name", "value"};
  for (uint64_t i = 1; i <= 10; ++i) stream.Add({i, 0}, fields, {3, 0});
  stream.AddGroup({.name = "g"});
  StreamGroup found;
  EXPECT_TRUE(stream.FindGroup("g", &found));
  StreamGroupEdit group(stream, found);
  const uint32_t consumer = group.SeeConsumer("c", 7);
  group.Put({.id = {5, 0}, .consumer = consumer});
  group.Finish();
  return stream.Finish();
}

void Store(RedisWorker& worker, std::string_view key, std::string_view value) {
  NewRecord record;
  record.head = value;
  record.type = static_cast<uint8_t>(ValueType::kStream);
  Kv& kv = worker.worker->kv();
  EXPECT_TRUE(BlockOn(worker.worker.executor(), kv.Set({0, key}, record)).ok());
}

// A store in which another write always comes between, once.
class TwiceKv final : public ForwardingKv {
 public:
  explicit TwiceKv(Kv& store) : ForwardingKv(store) {}

  Task<Status> ReadModifyWrite(Key key, Mutation& mutation) override {
    Twice twice(mutation);
    co_return co_await store_.ReadModifyWrite(key, twice);
  }

 private:
  class Twice final : public Mutation {
   public:
    explicit Twice(Mutation& mutation) : mutation_(mutation) {}
    Change Apply(const RecordView* current) override {
      mutation_.Apply(nullptr);
      mutation_.Apply(current);
      return mutation_.Apply(current);
    }
    [[nodiscard]] ValueRange wanted() const override { return mutation_.wanted(); }

   private:
    Mutation& mutation_;
  };
};

TEST(StreamCommandsTest, AChangeThatIsMadeAnewIsTheSame) {
  RedisWorker worker;
  RedisClient once(worker);
  TwiceKv kv(worker.worker->kv());
  RedisClient twice(worker, kv);
  Store(worker, "one", StreamOfTen());
  Store(worker, "two", StreamOfTen());
  for (const std::string_view command : kCommands) {
    // Its payload and this reply tell times, too.
    const bool has_times = command == "DUMP KEY" || command == "XINFO STREAM KEY FULL";
    const std::string of_one = once(On(command, "one"));
    std::string of_two = twice(On(command, "two"));
    const size_t name = of_two.find("two");
    if (name != std::string::npos) of_two.replace(name, 3, "one");
    EXPECT_TRUE(has_times || of_one == of_two) << command << ": " << of_one << " or " << of_two;
  }
}

TEST(StreamCommandsTest, ADamagedStreamIsAnErrorOfEachCommand) {
  RedisWorker worker;
  RedisClient client(worker);
  const std::string value = StreamOfTen();
  for (const size_t bytes : {size_t{8}, size_t{75}, size_t{100}, value.size() - 1}) {
    for (const std::string_view command : kCommands) {
      if (command == "XLEN KEY") continue;  // it reads the header alone
      Store(worker, "k", value.substr(0, bytes));
      EXPECT_EQ(client(On(command, "k")), kDamaged) << command << " of " << bytes;
    }
  }
}

TEST(StreamCommandsTest, CommandsLiveThroughDamageOfAnyByte) {
  RedisWorker worker;
  RedisClient client(worker);
  const std::string value = StreamOfTen();
  Rng rng(5);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = value;
    damaged[rng.Below(damaged.size())] = static_cast<char>(rng.Next());
    Store(worker, "k", damaged);
    for (const std::string_view command : kCommands) {
      EXPECT_FALSE(client(On(command, "k")).empty()) << command;
    }
  }
}

}  // namespace
}  // namespace onetrip
