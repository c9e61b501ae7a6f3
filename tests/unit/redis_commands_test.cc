// Commands on keys, through parser and dispatch, on a real little cluster.
//
// What redis-server answers is compared at length elsewhere, by the compatibility test; here are
// the rules one at a time.
#include <gtest/gtest.h>

#include <string>

#include "client_core/layout/record.h"
#include "redis_compat/protocol/reply_status.h"
#include "tests/unit/redis_client.h"

namespace onetrip {
namespace {

constexpr char kOk[] = "+OK\r\n";
constexpr char kNil[] = "$-1\r\n";
constexpr char kSyntax[] = "-ERR syntax error\r\n";
constexpr char kNotInteger[] = "-ERR value is not an integer or out of range\r\n";

std::string Bulk(const std::string& value) {
  return "$" + std::to_string(value.size()) + "\r\n" + value + "\r\n";
}

class RedisCommands : public testing::Test {
 protected:
  RedisWorker worker_;
  RedisClient client_{worker_};
};

TEST_F(RedisCommands, SetStoresAndGetReads) {
  EXPECT_EQ(client_("GET k"), kNil);
  EXPECT_EQ(client_("SET k v"), kOk);
  EXPECT_EQ(client_("get k"), Bulk("v"));
  const std::string bytes("\0\r\n\xff", 4);
  EXPECT_EQ(client_.Call({"SET", bytes, bytes}), kOk);
  EXPECT_EQ(client_.Call({"GET", bytes}), Bulk(bytes));
}

TEST_F(RedisCommands, SetObeysItsConditions) {
  EXPECT_EQ(client_("SET k 1 XX"), kNil);
  EXPECT_EQ(client_("SET k 1 NX"), kOk);
  EXPECT_EQ(client_("SET k 2 NX"), kNil);
  EXPECT_EQ(client_("SET k 3 XX GET"), Bulk("1"));
  EXPECT_EQ(client_("SET k 4 NX GET"), Bulk("3"));
  EXPECT_EQ(client_("SET n 1 NX GET"), kNil);
  EXPECT_EQ(client_("MGET k n"), "*2\r\n" + Bulk("3") + Bulk("1"));
  EXPECT_EQ(client_("SET k 1 NX XX"), kSyntax);
  EXPECT_EQ(client_("SET k 1 EX 10 PX 10"), kSyntax);
}

TEST_F(RedisCommands, SetDropsTheDeadlineUnlessToldToKeepIt) {
  EXPECT_EQ(client_("SET k 1 EX 100"), kOk);
  EXPECT_EQ(client_("TTL k"), ":100\r\n");
  EXPECT_EQ(client_("SET k 2 KEEPTTL"), kOk);
  EXPECT_EQ(client_("TTL k"), ":100\r\n");
  EXPECT_EQ(client_("SET k 3"), kOk);
  EXPECT_EQ(client_("TTL k"), ":-1\r\n");
  EXPECT_EQ(client_("PTTL nokey"), ":-2\r\n");
  EXPECT_EQ(client_("SET k 1 EX 0"), "-ERR invalid expire time in 'set' command\r\n");
}

TEST_F(RedisCommands, ADeadlineInThePastMakesTheKeyGoAway) {
  EXPECT_EQ(client_("SET k 1"), kOk);
  EXPECT_EQ(client_("SET k 2 PXAT 1"), kOk);
  EXPECT_EQ(client_("GET k"), kNil);
  EXPECT_EQ(client_("EXISTS k"), ":0\r\n");
  EXPECT_EQ(client_("SET k 3 XX"), kNil);
  EXPECT_EQ(client_("INCR k"), ":1\r\n");
  EXPECT_EQ(client_("TTL k"), ":-1\r\n");
}

TEST_F(RedisCommands, EditsKeepTheDeadline) {
  EXPECT_EQ(client_("SET k 1 EX 100"), kOk);
  EXPECT_EQ(client_("INCR k"), ":2\r\n");
  EXPECT_EQ(client_("APPEND k 0"), ":2\r\n");
  EXPECT_EQ(client_("SETRANGE k 0 3"), ":2\r\n");
  EXPECT_EQ(client_("INCRBYFLOAT k 0.5"), Bulk("30.5"));
  EXPECT_EQ(client_("TTL k"), ":100\r\n");
  EXPECT_EQ(client_("GETSET k x"), Bulk("30.5"));
  EXPECT_EQ(client_("TTL k"), ":-1\r\n");
}

TEST_F(RedisCommands, CountersRefuseWhatIsNoNumberAndWhatOverflows) {
  EXPECT_EQ(client_("INCR n"), ":1\r\n");
  EXPECT_EQ(client_("INCRBY n 41"), ":42\r\n");
  EXPECT_EQ(client_("DECRBY n 2"), ":40\r\n");
  EXPECT_EQ(client_("DECR n"), ":39\r\n");
  EXPECT_EQ(client_("INCRBY n x"), kNotInteger);
  EXPECT_EQ(client_("SET n 9223372036854775807"), kOk);
  EXPECT_EQ(client_("INCR n"), "-ERR increment or decrement would overflow\r\n");
  EXPECT_EQ(client_("DECRBY n -9223372036854775808"), "-ERR decrement would overflow\r\n");
  EXPECT_EQ(client_("SET n 007"), kOk);
  EXPECT_EQ(client_("INCR n"), kNotInteger);
  EXPECT_EQ(client_("INCRBYFLOAT n x"), "-ERR value is not a valid float\r\n");
  EXPECT_EQ(client_("INCRBYFLOAT n inf"), "-ERR increment would produce NaN or Infinity\r\n");
}

TEST_F(RedisCommands, RangesCountFromBothEnds) {
  EXPECT_EQ(client_("SET k abcdef"), kOk);
  EXPECT_EQ(client_("GETRANGE k 0 -1"), Bulk("abcdef"));
  EXPECT_EQ(client_("GETRANGE k -3 -2"), Bulk("de"));
  EXPECT_EQ(client_("GETRANGE k 4 99"), Bulk("ef"));
  EXPECT_EQ(client_("GETRANGE k 4 1"), Bulk(""));
  EXPECT_EQ(client_("GETRANGE nokey 0 -1"), Bulk(""));
  EXPECT_EQ(client_("SETRANGE k 2 XY"), ":6\r\n");
  EXPECT_EQ(client_("GET k"), Bulk("abXYef"));
  EXPECT_EQ(client_("SETRANGE k 8 Z"), ":9\r\n");
  EXPECT_EQ(client_("GET k"), Bulk(std::string("abXYef\0\0Z", 9)));
  EXPECT_EQ(client_("SETRANGE nokey 0 ''"), ":0\r\n");
  EXPECT_EQ(client_("EXISTS nokey"), ":0\r\n");
  EXPECT_EQ(client_("STRLEN k"), ":9\r\n");
}

TEST_F(RedisCommands, ValuesEndAtTheLimit) {
  const std::string value(kRecordValueBytesMax, 'x');
  EXPECT_EQ(client_("CONFIG SET proto-max-bulk-len 1048576"), kOk);
  EXPECT_EQ(client_.Call({"SET", "k", value}), kOk);
  EXPECT_EQ(client_("GET k"), Bulk(value));
  const std::string too_long = "-ERR string exceeds maximum allowed size (proto-max-bulk-len)\r\n";
  EXPECT_EQ(client_("APPEND k y"), too_long);
  EXPECT_EQ(client_("SETRANGE k 1048576 y"), too_long);
  EXPECT_EQ(client_("SETRANGE k 9223372036854775807 y"), too_long);
  EXPECT_EQ(client_("SETRANGE k 1048575 y"), ":1048576\r\n");
}

TEST_F(RedisCommands, AKeyTooLongToBeStoredIsNotThere) {
  const std::string key(kMaxKeyBytes + 1, 'k');
  EXPECT_EQ(client_.Call({"GET", key}), kNil);
  EXPECT_EQ(client_.Call({"DEL", key}), ":0\r\n");
  EXPECT_EQ(client_.Call({"MGET", key, "a"}), std::string("*2\r\n") + kNil + kNil);
  EXPECT_EQ(client_.Call({"SET", key, "v"}), "-ERR key exceeds maximum allowed size\r\n");
  EXPECT_EQ(client_.Call({"INCR", key}), "-ERR key exceeds maximum allowed size\r\n");
}

TEST_F(RedisCommands, ManyKeysAreWorkedOnInOrder) {
  EXPECT_EQ(client_("MSET a 1 b 2 a 3"), kOk);
  EXPECT_EQ(client_("MGET a b c"), "*3\r\n" + Bulk("3") + Bulk("2") + kNil);
  EXPECT_EQ(client_("EXISTS a a c"), ":2\r\n");
  EXPECT_EQ(client_("DEL a c b a"), ":2\r\n");
  EXPECT_EQ(client_("MSET a 1 b"), "-ERR wrong number of arguments for 'mset' command\r\n");
  const std::string long_key(70000, 'k');
  EXPECT_TRUE(client_.Call({"MSET", "fresh", "1", long_key, "2"}).starts_with("-ERR key exceeds"));
  EXPECT_EQ(client_("EXISTS fresh"), ":0\r\n") << "none of them is set";
}

TEST_F(RedisCommands, GetDelAndSetNxTellWhatTheyFound) {
  EXPECT_EQ(client_("SETNX k 1"), ":1\r\n");
  EXPECT_EQ(client_("SETNX k 2"), ":0\r\n");
  EXPECT_EQ(client_("TYPE k"), "+string\r\n");
  EXPECT_EQ(client_("GETDEL k"), Bulk("1"));
  EXPECT_EQ(client_("GETDEL k"), kNil);
  EXPECT_EQ(client_("TYPE k"), "+none\r\n");
}

TEST_F(RedisCommands, DatabasesAreApart) {
  EXPECT_EQ(client_("SET k 0"), kOk);
  EXPECT_EQ(client_("SELECT 1"), kOk);
  EXPECT_EQ(client_("GET k"), kNil);
  EXPECT_EQ(client_("SET k 1"), kOk);
  EXPECT_EQ(client_("DBSIZE"), ":1\r\n");
  EXPECT_EQ(client_("FLUSHDB"), kOk);
  EXPECT_EQ(client_("DBSIZE"), ":0\r\n");
  EXPECT_EQ(client_("SELECT 0"), kOk);
  EXPECT_EQ(client_("GET k"), Bulk("0"));
  EXPECT_EQ(client_("FLUSHALL ASYNC"), kOk);
  EXPECT_EQ(client_("GET k"), kNil);
  EXPECT_EQ(client_("FLUSHALL SYNC ASYNC"), kSyntax);
}

TEST_F(RedisCommands, InfoCountsKeysHitsAndCalls) {
  worker_.hooks.manual_clock().Advance(1);  // at 0 nothing is timed
  EXPECT_EQ(client_("SET k 0"), kOk);
  EXPECT_EQ(client_("GET k"), Bulk("0"));
  EXPECT_EQ(client_("GET nokey"), kNil);
  EXPECT_EQ(client_("INCRBY k x"), kNotInteger);
  EXPECT_EQ(client_("GET"), "-ERR wrong number of arguments for 'get' command\r\n");
  const std::string info = client_("INFO everything");
  for (const std::string_view line :
       {"db0:keys=1,", "keyspace_hits:1\r\n", "keyspace_misses:1\r\n", "errorstat_ERR:count=2\r\n",
        "cmdstat_set:calls=1,", "total_error_replies:2\r\n", "# Onetrip\r\nrtt:1\r\n",
        "latency_percentiles_usec_get:p50="}) {
    EXPECT_NE(info.find(line), std::string::npos) << line << "\n" << info;
  }
  EXPECT_NE(info.find("cmdstat_get:calls=2"), std::string::npos);
  EXPECT_NE(info.find("rejected_calls=1,failed_calls=0"), std::string::npos);
  EXPECT_EQ(client_("CONFIG SET latency-tracking no"), kOk);
  EXPECT_EQ(client_("INFO latencystats").find("latency_percentiles"), std::string::npos);
  EXPECT_EQ(client_("CONFIG SET latency-tracking yes"), kOk);
  EXPECT_EQ(client_("CONFIG RESETSTAT"), kOk);
  EXPECT_EQ(client_("INFO latencystats").find("usec_get"), std::string::npos);
  EXPECT_NE(client_("INFO stats").find("keyspace_hits:0\r\n"), std::string::npos);
  // A command that writes and answers with the old value has looked for it.
  for (const std::string_view call :
       {"GETSET k 1", "SET k 2 GET", "GETDEL k", "GETDEL k", "SETNX k 3"}) {
    client_(call);
  }
  const std::string stats = client_("INFO stats");
  EXPECT_NE(stats.find("keyspace_hits:3\r\nkeyspace_misses:1\r\n"), std::string::npos) << stats;
}

TEST_F(RedisCommands, APipelineIsAnsweredInOrder) {
  EXPECT_EQ(client_.Send("SET k 1\r\nINCR k\r\nFOO\r\nGET k\r\n"),
            "+OK\r\n:2\r\n-ERR unknown command 'FOO', with args beginning with: \r\n" + Bulk("2"));
}

// Another client writes to `victim` just before a read-modify-write of `key`.
class InterferingKv final : public ForwardingKv {
 public:
  InterferingKv(Kv& store, std::string key, std::string victim, std::string value)
      : ForwardingKv(store),
        key_(std::move(key)),
        victim_(std::move(victim)),
        value_(std::move(value)) {}

  Task<Status> ReadModifyWrite(Key key, Mutation& mutation) override {
    if (key.bytes == key_) {
      const Status status = co_await store_.Set({key.database, victim_}, {.head = value_});
      if (!status.ok()) co_return status;
    }
    co_return co_await store_.ReadModifyWrite(key, mutation);
  }

 private:
  const std::string key_, victim_, value_;
};

TEST_F(RedisCommands, MsetnxGivesBackWhatItHasTakenAndNothingElse) {
  EXPECT_EQ(client_("SET c 0"), kOk);
  EXPECT_EQ(client_("MSETNX a 1 b 2 c 3"), ":0\r\n");
  EXPECT_EQ(client_("MGET a b c"), "*3\r\n" + std::string(kNil) + kNil + Bulk("0"));
  // The same value, but written by another client.
  InterferingKv interfering(worker_.worker->kv(), "c", "a", "1");
  RedisClient other(worker_, interfering);
  EXPECT_EQ(other("MSETNX a 1 b 2 c 3"), ":0\r\n");
  EXPECT_EQ(client_("MGET a b c"), "*3\r\n" + Bulk("1") + kNil + Bulk("0"));
}

TEST_F(RedisCommands, CommandsOnStringsRefuseValuesOfAnotherType) {
  EXPECT_EQ(client_("SET s 1"), kOk);
  constexpr uint8_t kNoType = 9;
  NewRecord record;
  record.head = "1";
  record.type = kNoType;
  const Key key{0, "other"};
  ASSERT_TRUE(BlockOn(worker_.worker.executor(), worker_.worker->kv().Set(key, record)).ok());
  for (const std::string_view line : {"GET other",
                                      "GETEX other",
                                      "GETEX other PERSIST",
                                      "GETDEL other",
                                      "GETSET other 2",
                                      "SET other 2 GET",
                                      "SET other 2 XX GET",
                                      "APPEND other 2",
                                      "STRLEN other",
                                      "GETRANGE other 0 -1",
                                      "SETRANGE other 0 2",
                                      "INCR other",
                                      "DECRBY other 2",
                                      "INCRBYFLOAT other 1",
                                      "SETBIT other 1 1",
                                      "GETBIT other 1",
                                      "BITCOUNT other",
                                      "BITPOS other 1",
                                      "BITOP AND to s other",
                                      "BITFIELD other GET u8 0",
                                      "BITFIELD other SET u8 0 1",
                                      "BITFIELD_RO other GET u8 0",
                                      "DUMP other",
                                      "PFADD other x",
                                      "PFCOUNT other",
                                      "PFCOUNT other s",
                                      "PFMERGE other s",
                                      "PFDEBUG ENCODING other",
                                      "PFDEBUG TODENSE other"}) {
    EXPECT_EQ(client_(line), "-" + std::string(kWrongTypeError) + "\r\n") << line;
  }
  EXPECT_EQ(client_("LCS s other"), "-ERR The specified keys must contain string values\r\n");
  EXPECT_EQ(client_("MGET s other"), "*2\r\n" + Bulk("1") + kNil);
  EXPECT_EQ(client_("SET other 2 NX"), kNil);
  EXPECT_EQ(client_("EXISTS other"), ":1\r\n");
  EXPECT_EQ(client_("TYPE other"), "+unknown\r\n");
  EXPECT_EQ(client_("SET other 2"), kOk);
  EXPECT_EQ(client_("GET other"), Bulk("2"));
}

TEST_F(RedisCommands, AnErrorRepeatsAnArgumentUpToItsFirstNulByte) {
  const std::string nul("a\0b", 3);
  EXPECT_EQ(client_.Call({"EXPIRE", "k", "10", nul}), "-ERR Unsupported option a\r\n");
  EXPECT_EQ(client_.Call({"FUNCTION", "LIST", nul}), "-ERR Unknown argument a\r\n");
  EXPECT_EQ(client_.Call({"HELLO", "2", nul}), "-ERR Syntax error in HELLO option 'a'\r\n");
  EXPECT_EQ(client_.Call({"CLIENT", "KILL", "USER", nul}), "-ERR No such user 'a'\r\n");
  EXPECT_EQ(client_.Call({"CLIENT", "LIST", "TYPE", nul}), "-ERR Unknown client type 'a'\r\n");
  EXPECT_EQ(client_.Call({"ACL", "CAT", nul}), "-ERR Unknown category 'a'\r\n");
  EXPECT_EQ(client_.Call({nul}), "-ERR unknown command 'a', with args beginning with: \r\n");
}

TEST_F(RedisCommands, KeysEndsWhenNobodyWaitsForItAnyMore) {
  for (int i = 0; i < 3000; ++i) client_("SET key:" + std::to_string(i) + " v");
  EXPECT_EQ(client_("KEYS nothing"), "*0\r\n");
  client_.session().abandoned = true;
  EXPECT_EQ(client_("KEYS nothing"), "-ERR The connection has been closed\r\n");
}

}  // namespace
}  // namespace onetrip
