// Commands about connections and the server: handshake, CLIENT, CONFIG, COMMAND, errors, limits.
#include <gtest/gtest.h>

#include <string>

#include "redis_compat/parameters.h"
#include "redis_compat/protocol/reply_status.h"
#include "tests/unit/redis_client.h"

namespace onetrip {
namespace {

constexpr char kOk[] = "+OK\r\n";
constexpr char kNoAuth[] = "-NOAUTH Authentication required.\r\n";
constexpr char kWrongPass[] = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

class RedisSession : public testing::Test {
 protected:
  RedisWorker worker_;
  RedisClient client_{worker_};
};

TEST_F(RedisSession, HelloSwitchesTheProtocol) {
  EXPECT_EQ(client_("HELLO 3").substr(0, 3), "%7\r");
  EXPECT_EQ(client_("GET nokey"), "_\r\n");
  EXPECT_EQ(client_("HELLO 2").substr(0, 4), "*14\r");
  EXPECT_EQ(client_("GET nokey"), "$-1\r\n");
  EXPECT_EQ(client_("HELLO 4"), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_EQ(client_("HELLO x"), "-ERR Protocol version is not an integer or out of range\r\n");
  EXPECT_EQ(client_("HELLO 3 FOO"), "-ERR Syntax error in HELLO option 'FOO'\r\n");
  EXPECT_EQ(client_("GET nokey"), "$-1\r\n");
}

TEST_F(RedisSession, ThePasswordGuardsEverythingButTheHandshake) {
  ASSERT_EQ(client_("CONFIG SET requirepass sesame"), kOk);
  EXPECT_EQ(client_("PING"), "+PONG\r\n") << "who is in stays in";
  RedisClient stranger(worker_);
  EXPECT_EQ(stranger("PING"), kNoAuth);
  EXPECT_EQ(stranger("FOO"), "-ERR unknown command 'FOO', with args beginning with: \r\n");
  EXPECT_EQ(stranger("AUTH wrong"), kWrongPass);
  EXPECT_EQ(stranger("AUTH other sesame"), kWrongPass);
  EXPECT_EQ(stranger("HELLO 3 AUTH default wrong"), kWrongPass);
  EXPECT_EQ(stranger("HELLO 3").substr(0, 14), "-NOAUTH HELLO ");
  EXPECT_EQ(stranger("AUTH sesame"), kOk);
  EXPECT_EQ(stranger("PING"), "+PONG\r\n");
  EXPECT_EQ(stranger("RESET"), "+RESET\r\n");
  EXPECT_EQ(stranger("PING"), kNoAuth);
  EXPECT_EQ(stranger("HELLO 3 AUTH default sesame SETNAME bob").substr(0, 3), "%7\r");
  EXPECT_EQ(stranger("CLIENT GETNAME"), "$3\r\nbob\r\n");
}

TEST_F(RedisSession, StrangersMaySendLittle) {
  ASSERT_EQ(client_("CONFIG SET requirepass sesame"), kOk);
  RedisClient stranger(worker_);
  EXPECT_EQ(stranger.Send("*11\r\n"), "-ERR Protocol error: unauthenticated multibulk length\r\n");
  EXPECT_TRUE(stranger.session().close_after_reply);
}

TEST_F(RedisSession, ResetForgetsWhatWasAgreed) {
  EXPECT_EQ(client_("SELECT 3"), kOk);
  EXPECT_EQ(client_("CLIENT SETNAME bob"), kOk);
  client_("HELLO 3");
  EXPECT_EQ(client_("RESET"), "+RESET\r\n");
  EXPECT_EQ(client_.session().database, 0U);
  EXPECT_EQ(client_.session().protocol, 2);
  EXPECT_EQ(client_("CLIENT GETNAME"), "$-1\r\n");
}

TEST_F(RedisSession, RepliesCanBeTurnedOff) {
  EXPECT_EQ(client_("CLIENT REPLY OFF"), "");
  EXPECT_EQ(client_("PING"), "");
  EXPECT_EQ(client_("SET k v"), "");
  EXPECT_EQ(client_("FOO"), "");
  EXPECT_EQ(client_("CLIENT REPLY SKIP"), "");
  EXPECT_EQ(client_("CLIENT REPLY ON"), kOk);
  EXPECT_EQ(client_("GET k"), "$1\r\nv\r\n");
  EXPECT_EQ(client_("CLIENT REPLY SKIP"), "");
  EXPECT_EQ(client_("GET k"), "");
  EXPECT_EQ(client_("GET k"), "$1\r\nv\r\n");
  EXPECT_EQ(client_("CLIENT REPLY OFF"), "");
  EXPECT_EQ(client_("RESET"), "+RESET\r\n");
  EXPECT_EQ(client_("PING"), "+PONG\r\n");
}

TEST_F(RedisSession, QuitAnswersAndCloses) {
  EXPECT_EQ(client_.Send("QUIT\r\nPING\r\n"), kOk);
  EXPECT_TRUE(client_.session().close_after_reply);
}

TEST_F(RedisSession, ABrowserIsHungUpOn) {
  EXPECT_EQ(client_.Send("POST / HTTP/1.1\r\nHost: localhost\r\n\r\nSET k v\r\n"), "");
  EXPECT_TRUE(client_.session().close_after_reply);
}

TEST_F(RedisSession, ErrorsRepeatAtMostSoMuchOfTheRequest) {
  const std::string long_text(300, 'x');
  EXPECT_EQ(client_.Call({long_text, "a\nb", long_text, "c"}),
            "-ERR unknown command '" + std::string(128, 'x') +
                "', with args beginning with: 'a b' '" + std::string(122, 'x') + "' \r\n");
  EXPECT_EQ(client_.Call({"config", long_text}),
            "-ERR unknown subcommand '" + std::string(128, 'x') + "'. Try CONFIG HELP.\r\n");
  EXPECT_EQ(client_("CLIENT ID x"), "-ERR wrong number of arguments for 'client|id' command\r\n");
}

TEST_F(RedisSession, ClientsAreListedAndKilled) {
  ClientSnapshot other;
  other.id = 77;
  other.address = "127.0.0.1:7777";
  worker_.hooks.clients().push_back(other);
  EXPECT_NE(client_("CLIENT LIST").find("id=77 addr=127.0.0.1:7777 "), std::string::npos);
  EXPECT_EQ(client_("CLIENT LIST ID 1"), "$0\r\n\r\n");
  EXPECT_NE(client_("CLIENT LIST ID 77").find("id=77"), std::string::npos);
  EXPECT_EQ(client_("CLIENT LIST TYPE pubsub"), "$0\r\n\r\n");
  EXPECT_EQ(client_("CLIENT KILL 127.0.0.1:7777"), kOk);
  EXPECT_EQ(client_("CLIENT KILL 127.0.0.1:1"), "-ERR No such client\r\n");
  EXPECT_EQ(client_("CLIENT KILL ID 77"), ":1\r\n");
  EXPECT_EQ(client_("CLIENT KILL ID 77 ADDR x"), ":0\r\n");
  EXPECT_EQ(client_("CLIENT KILL ID 0"), "-ERR client-id should be greater than 0\r\n");
  EXPECT_EQ(client_("CLIENT KILL TYPE foo x"), "-ERR Unknown client type 'foo'\r\n");
  EXPECT_FALSE(client_.session().close_after_reply);
  client_("CLIENT KILL ID 1 SKIPME no");
  EXPECT_TRUE(client_.session().close_after_reply);
}

TEST_F(RedisSession, NamesOfClientsFitIntoOneField) {
  EXPECT_EQ(client_("CLIENT SETNAME 'a b'"),
            "-ERR Client names cannot contain spaces, newlines or special characters.\r\n");
  EXPECT_EQ(client_("CLIENT SETINFO LIB-NAME lib"), kOk);
  EXPECT_EQ(client_("CLIENT SETINFO lib-ver 1.0"), kOk);
  EXPECT_EQ(client_("CLIENT SETINFO foo bar"), "-ERR Unrecognized option 'foo'\r\n");
  const std::string info = client_("CLIENT INFO");
  EXPECT_NE(info.find(" cmd=client|info user=default redir=-1 resp=2 lib-name=lib lib-ver=1.0\n"),
            std::string::npos)
      << info;
}

TEST_F(RedisSession, ConfigChangesAllOrNothing) {
  EXPECT_EQ(client_("CONFIG GET time*"), "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
  EXPECT_EQ(client_("CONFIG SET timeout 5 maxclients x"),
            "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - argument "
            "couldn't be parsed into an integer\r\n");
  EXPECT_EQ(client_("CONFIG SET timeout 5 maxclients 13"),
            "-ERR CONFIG SET failed (possibly related to argument 'maxclients') - not that "
            "one\r\n");
  EXPECT_EQ(client_("CONFIG GET timeout"), "*2\r\n$7\r\ntimeout\r\n$1\r\n0\r\n");
  EXPECT_EQ(worker_.hooks.applied(), "") << "nothing takes effect of a change that is refused";
  EXPECT_EQ(client_("CONFIG SET timeout 5 maxclients 14"), kOk);
  EXPECT_EQ(worker_.hooks.applied(), "timeout=5 maxclients=14 ");
  EXPECT_EQ(worker_.hooks.config().timeout_s(), 5U);
  EXPECT_EQ(worker_.hooks.config().max_clients(), 14U);
  EXPECT_EQ(client_("CONFIG SET foo bar"),
            "-ERR Unknown option or number of arguments for CONFIG SET - 'foo'\r\n");
  EXPECT_EQ(client_("CONFIG SET databases 3"),
            "-ERR CONFIG SET failed (possibly related to argument 'databases') - can't set "
            "immutable config\r\n");
  EXPECT_EQ(client_("CONFIG SET lua-time-limit 1 busy-reply-threshold 2"),
            "-ERR CONFIG SET failed (possibly related to argument 'busy-reply-threshold') - "
            "duplicate parameter\r\n");
}

TEST_F(RedisSession, ConfigShowsBothNamesOfAParameter) {
  EXPECT_EQ(client_("CONFIG SET slave-read-only no"), kOk);
  EXPECT_EQ(client_("CONFIG GET replica-read-only"),
            "*2\r\n$17\r\nreplica-read-only\r\n$2\r\nno\r\n");
  EXPECT_EQ(client_("CONFIG GET *-read-only").substr(0, 4), "*4\r\n");
  EXPECT_EQ(client_("CONFIG GET TimeOut timeout"), "*2\r\n$7\r\nTimeOut\r\n$1\r\n0\r\n");
}

TEST_F(RedisSession, CommandDescribesItself) {
  EXPECT_EQ(client_("COMMAND GETKEYS MSET a 1 b 2"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
  EXPECT_EQ(client_("COMMAND GETKEYSANDFLAGS SET a 1 GET"),
            "*1\r\n*2\r\n$1\r\na\r\n*3\r\n+RW\r\n+access\r\n+update\r\n");
  EXPECT_EQ(client_("COMMAND GETKEYS PING a"), "-ERR The command has no key arguments\r\n");
  EXPECT_EQ(client_("COMMAND GETKEYS GET a b"),
            "-ERR Invalid number of arguments specified for command\r\n");
  EXPECT_EQ(client_("COMMAND INFO foo"), "*1\r\n$-1\r\n");
  EXPECT_EQ(client_("COMMAND LIST FILTERBY PATTERN ?etrange"),
            "*2\r\n$8\r\ngetrange\r\n$8\r\nsetrange\r\n");
  EXPECT_EQ(client_("COMMAND DOCS foo"), "*0\r\n");
  EXPECT_NE(client_("CLIENT HELP").find("+    Tells the number of this connection.\r\n"),
            std::string::npos);
}

TEST_F(RedisSession, APauseOfCenturiesHoldsWritesInAnHour) {
  for (const char* ms : {"18446744073709", "18446744073710", "9223370000000000000"}) {
    EXPECT_EQ(client_(std::string("CLIENT PAUSE ") + ms + " WRITE"), "+OK\r\n");
    const uint64_t in_an_hour_ns = worker_.hooks.clock().NowNs() + 3'600'000'000'000;
    EXPECT_TRUE(worker_.hooks.observation().pause.Holds(true, in_an_hour_ns)) << ms;
    EXPECT_EQ(client_("CLIENT UNPAUSE"), "+OK\r\n");
  }
  // Its end is more than Redis can count: there it lies in the past.
  EXPECT_EQ(client_("CLIENT PAUSE 9223372036854775807"), "+OK\r\n");
  EXPECT_FALSE(worker_.hooks.observation().pause.Holds(true, worker_.hooks.clock().NowNs()));
}

TEST_F(RedisSession, TimeIsTheWallClock) {
  worker_.hooks.manual_clock().SetUnixOriginUs(1'234'567'890'000'042);
  EXPECT_EQ(client_("TIME"), "*2\r\n$10\r\n1234567890\r\n$2\r\n42\r\n");
}

std::string StatusReply(StatusCode code, StorageStep step) {
  OutputBuffer buffer;
  ReplyWriter out(buffer, 2);
  ReplyStatus(out, Status(code), step);
  return std::string(out.last_error_word());
}

TEST(ReplyStatus, AsksToTryAgainOnlyIfNothingHappened) {
  EXPECT_EQ(StatusReply(StatusCode::kUnavailable, StorageStep::kWrite), "TRYAGAIN");
  EXPECT_EQ(StatusReply(StatusCode::kUnavailable, StorageStep::kLaterWrite), "UNKNOWN");
  EXPECT_EQ(StatusReply(StatusCode::kUnknownOutcome, StorageStep::kWrite), "UNKNOWN");
  EXPECT_EQ(StatusReply(StatusCode::kUnknownOutcome, StorageStep::kLaterWrite), "UNKNOWN");
  EXPECT_EQ(StatusReply(StatusCode::kUnknownOutcome, StorageStep::kRead), "TRYAGAIN");
  EXPECT_EQ(StatusReply(StatusCode::kOutOfMemory, StorageStep::kWrite), "OOM");
  EXPECT_EQ(StatusReply(StatusCode::kFenced, StorageStep::kWrite), "ERR");
}

TEST(ServerConfig, TakesStartUpValuesAndRefusesNonsense) {
  ServerConfig config;
  EXPECT_TRUE(config.SetByServer("port", "7000"));
  EXPECT_TRUE(config.SetByServer("maxmemory", "64mb"));
  EXPECT_FALSE(config.SetByServer("port", "70000"));
  EXPECT_FALSE(config.SetByServer("nosuch", "1"));
  EXPECT_EQ(config.Value("port"), "7000");
  EXPECT_EQ(config.Value("maxmemory"), "67108864");
}

TEST(ServerConfig, LetsClientsSetNoLimitThatNobodyKeeps) {
  ServerConfig config;
  ASSERT_TRUE(config.SetByServer("maxmemory", "64mb"));
  std::string canonical;
  std::string error;
  EXPECT_TRUE(config.Check("maxmemory", "65536kb", &canonical, &error));
  EXPECT_EQ(canonical, "67108864");
  EXPECT_FALSE(config.Check("maxmemory", "32mb", &canonical, &error));
  EXPECT_NE(error.find("pool of memory nodes"), std::string::npos) << error;
  EXPECT_FALSE(config.Check("maxmemory-policy", "allkeys-lru", &canonical, &error));
  EXPECT_TRUE(config.Check("maxmemory-policy", "noeviction", &canonical, &error));
}

TEST(ServerConfig, ComparesPasswords) {
  ServerConfig config;
  EXPECT_FALSE(config.password_required());
  config.Store("requirepass", "sesame");
  EXPECT_TRUE(config.password_required());
  EXPECT_TRUE(config.IsPassword("sesame"));
  for (const std::string_view guess : {"", "sesam", "sesamex", "Sesame"}) {
    EXPECT_FALSE(config.IsPassword(guess)) << guess;
  }
  EXPECT_FALSE(config.IsPassword(std::string_view("sesame\0", 7)));
}

}  // namespace
}  // namespace onetrip
