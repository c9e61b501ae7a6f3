// hiredis through what applications do with it; see run.py. Usage: hiredis_client PORT
//
// hiredis brings neither a pool nor reconnecting: both are here as its users write them. A step
// that goes wrong ends the program with the line that was not so.

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/clients/hiredis_connection.h"

namespace onetrip {
namespace {

int g_port = 0;

void Check(bool truth, int line = __builtin_LINE()) {
  if (truth) return;
  std::cout << "not so: line " << line << std::endl;
  std::exit(1);
}

HiredisConnection Connect() {
  HiredisConnection connection = HiredisConnection::ToPort(g_port);
  Check(!connection.failed());
  return connection;
}

void SleepMs(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

using Arguments = std::vector<std::string>;

// The reply, which must be there.
Reply Ask(HiredisConnection& connection, const Arguments& args) {
  Reply reply = connection.Call(args);
  Check(reply != nullptr);
  return reply;
}

bool IsText(const Reply& reply, std::string_view text) {
  return reply != nullptr &&
         (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS) &&
         Text(reply) == text;
}
bool IsNumber(const Reply& reply, int64_t number) {
  return reply != nullptr && reply->type == REDIS_REPLY_INTEGER && reply->integer == number;
}
bool IsNil(const Reply& reply) { return reply != nullptr && reply->type == REDIS_REPLY_NIL; }

// MULTI, the commands and EXEC in one pipeline; EXEC's reply.
Reply Transact(HiredisConnection& connection, const std::vector<Arguments>& commands) {
  connection.Append({"MULTI"});
  for (const Arguments& command : commands) connection.Append(command);
  connection.Append({"EXEC"});
  Check(IsText(connection.Next(), "OK"));
  for (size_t i = 0; i < commands.size(); ++i) Check(IsText(connection.Next(), "QUEUED"));
  Reply reply = connection.Next();
  Check(reply != nullptr);
  return reply;
}

void RunThreads(int count, const std::function<void()>& body) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
}

class Pool {
 public:
  explicit Pool(int connections) {
    for (int i = 0; i < connections; ++i) free_.push_back(Connect());
  }

  HiredisConnection Take() {
    std::unique_lock lock(mutex_);
    given_back_.wait(lock, [this] { return !free_.empty(); });
    HiredisConnection connection = std::move(free_.back());
    free_.pop_back();
    return connection;
  }

  void GiveBack(HiredisConnection connection) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(connection));
    given_back_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_back_;
  std::vector<HiredisConnection> free_;
};

void ConnectStep() {
  HiredisConnection redis = Connect();
  Check(IsText(Ask(redis, {"CLIENT", "SETNAME", "cc"}), "OK"));
  Check(IsText(Ask(redis, {"PING"}), "PONG"));
  Check(IsText(Ask(redis, {"SET", "greeting", "hello"}), "OK"));
  Check(IsText(Ask(redis, {"GET", "greeting"}), "hello"));
  Check(IsNil(Ask(redis, {"GET", "missing"})));
  Check(IsText(Ask(redis, {"CLIENT", "GETNAME"}), "cc"));
  const Reply info = Ask(redis, {"INFO", "server"});
  Check(Text(info).find("redis_mode:standalone") != std::string_view::npos);
}

void PoolStep() {
  Pool pool(4);
  RunThreads(8, [&pool] {
    for (int i = 0; i < 50; ++i) {
      HiredisConnection redis = pool.Take();
      Ask(redis, {"INCR", "pooled"});
      pool.GiveBack(std::move(redis));
    }
  });
  HiredisConnection redis = Connect();
  Check(IsText(Ask(redis, {"GET", "pooled"}), "400"));
}

void PipelineStep() {
  constexpr int kPairs = 200;
  HiredisConnection redis = Connect();
  for (int i = 0; i < kPairs; ++i) {
    const std::string key = "p" + std::to_string(i);
    redis.Append({"SET", key, std::to_string(i)});
    redis.Append({"GET", key});
  }
  for (int i = 0; i < kPairs; ++i) {
    Check(IsText(redis.Next(), "OK"));
    Check(IsText(redis.Next(), std::to_string(i)));
  }
}

void MultiStep() {
  HiredisConnection redis = Connect();
  const Reply reply =
      Transact(redis, {{"SET", "m", "1"}, {"INCR", "m"}, {"INCRBY", "m", "5"}, {"GET", "m"}});
  Check(reply->elements == 4 && Text(*reply->element[0]) == "OK" &&
        reply->element[1]->integer == 2 && reply->element[2]->integer == 7 &&
        Text(*reply->element[3]) == "7");
  Ask(redis, {"SET", "text", "x"});
  const Reply mixed = Transact(redis, {{"INCR", "text"}, {"SET", "after", "1"}});
  Check(mixed->elements == 2 && mixed->element[0]->type == REDIS_REPLY_ERROR);
  Check(IsText(Ask(redis, {"GET", "after"}), "1"));
}

void WatchStep() {
  HiredisConnection redis = Connect();
  Ask(redis, {"SET", "balance", "0"});
  RunThreads(4, [] {
    HiredisConnection own = Connect();
    for (int i = 0; i < 20; ++i) {
      bool done = false;
      while (!done) {
        Ask(own, {"WATCH", "balance"});
        const int value = std::stoi(std::string(Text(Ask(own, {"GET", "balance"}))));
        done = !IsNil(Transact(own, {{"SET", "balance", std::to_string(value + 1)}}));
      }
    }
  });
  Check(IsText(Ask(redis, {"GET", "balance"}), "80"));
}

// Takes the lock for so long, if it is free.
bool Lock(HiredisConnection& redis, const std::string& token, int ms) {
  return IsText(Ask(redis, {"SET", "lock", token, "NX", "PX", std::to_string(ms)}), "OK");
}

// Deletes the lock if it is still ours: compare-and-delete without a script.
bool Release(HiredisConnection& redis, const std::string& token) {
  Ask(redis, {"WATCH", "lock"});
  if (!IsText(Ask(redis, {"GET", "lock"}), token)) {
    Ask(redis, {"UNWATCH"});
    return false;
  }
  const Reply reply = Transact(redis, {{"DEL", "lock"}});
  return reply->elements == 1 && reply->element[0]->integer == 1;
}

void LockStep() {
  HiredisConnection redis = Connect();
  HiredisConnection other = Connect();
  Check(Lock(redis, "a", 30000));
  Check(!Lock(other, "b", 30000));
  Check(!Release(other, "b") && IsText(Ask(redis, {"GET", "lock"}), "a"));
  Check(Release(redis, "a") && !Release(redis, "a"));
  Check(Lock(other, "b", 20));
  SleepMs(80);
  Check(Lock(redis, "a", 30000));
}

void RateLimitStep() {
  HiredisConnection redis = Connect();
  const auto allowed = [&redis] {
    const Reply reply = Transact(redis, {{"INCR", "rate"}, {"EXPIRE", "rate", "1", "NX"}});
    return reply->elements == 2 && reply->element[0]->integer <= 5;
  };
  for (int i = 0; i < 7; ++i) Check(allowed() == (i < 5));
  SleepMs(1100);
  Check(allowed());
}

void CacheStep() {
  HiredisConnection redis = Connect();
  Check(IsText(Ask(redis, {"SETEX", "page", "100", "text"}), "OK"));
  const int64_t ttl = Ask(redis, {"TTL", "page"})->integer;
  Check(ttl > 0 && ttl <= 100);
  Ask(redis, {"SET", "short", "text", "PX", "30"});
  SleepMs(80);
  Check(IsNil(Ask(redis, {"GET", "short"})) && IsNumber(Ask(redis, {"TTL", "short"}), -2));
  Check(IsText(Ask(redis, {"MSET", "c1", "1", "c2", "2"}), "OK"));
  const Reply many = Ask(redis, {"MGET", "c1", "c2", "c3"});
  Check(many->elements == 3 && Text(*many->element[0]) == "1" && Text(*many->element[1]) == "2" &&
        many->element[2]->type == REDIS_REPLY_NIL);
  Check(IsText(Ask(redis, {"GETEX", "page", "PERSIST"}), "text"));
  Check(IsNumber(Ask(redis, {"TTL", "page"}), -1));
}

void SessionStep() {
  HiredisConnection redis = Connect();
  Check(IsNumber(Ask(redis, {"HSET", "session", "user", "ann", "visits", "1"}), 2));
  Check(IsNumber(Ask(redis, {"HINCRBY", "session", "visits", "2"}), 3));
  const Reply all = Ask(redis, {"HGETALL", "session"});
  Check(all->elements == 4 && Text(*all->element[1]) == "ann" && Text(*all->element[3]) == "3");
  Check(IsNumber(Ask(redis, {"HDEL", "session", "user", "visits"}), 2));
  Check(IsNumber(Ask(redis, {"EXISTS", "session"}), 0));
}

void LeaderboardStep() {
  HiredisConnection redis = Connect();
  Check(IsNumber(Ask(redis, {"ZADD", "board", "10", "ann", "20", "bob", "15", "eve"}), 3));
  Check(IsText(Ask(redis, {"ZINCRBY", "board", "7.5", "ann"}), "17.5"));
  Check(IsNumber(Ask(redis, {"ZREVRANK", "board", "ann"}), 1));
  const Reply best = Ask(redis, {"ZREVRANGE", "board", "0", "0", "WITHSCORES"});
  Check(best->elements == 2 && Text(*best->element[0]) == "bob" && Text(*best->element[1]) == "20");
}

void QueueStep() {
  HiredisConnection redis = Connect();
  for (int i = 0; i < 50; ++i) Ask(redis, {"RPUSH", "jobs", std::to_string(i)});
  for (int i = 0; i < 50; ++i) {
    const std::string job = std::to_string(i);
    Check(IsText(Ask(redis, {"LMOVE", "jobs", "running", "LEFT", "RIGHT"}), job));
    Check(IsNumber(Ask(redis, {"LREM", "running", "1", job}), 1));
  }
  Check(IsNil(Ask(redis, {"LPOP", "jobs"})) && IsNumber(Ask(redis, {"LLEN", "running"}), 0));
}

void TagsStep() {
  HiredisConnection redis = Connect();
  Ask(redis, {"SADD", "red", "a", "b", "c"});
  Ask(redis, {"SADD", "round", "b", "c", "d"});
  Check(Ask(redis, {"SINTER", "red", "round"})->elements == 2);
  Check(IsNumber(Ask(redis, {"SUNIONSTORE", "both", "red", "round"}), 4));
}

void StreamStep() {
  HiredisConnection redis = Connect();
  std::vector<std::string> ids;
  ids.reserve(5);
  for (int i = 0; i < 5; ++i) {
    ids.emplace_back(Text(Ask(redis, {"XADD", "events", "*", "n", std::to_string(i)})));
  }
  const Reply range = Ask(redis, {"XRANGE", "events", ids[3], "+"});
  Check(range->elements == 2 && Text(*range->element[0]->element[0]) == ids[3]);
  Check(IsText(Ask(redis, {"XGROUP", "CREATE", "events", "workers", "0"}), "OK"));
  const Reply read =
      Ask(redis, {"XREADGROUP", "GROUP", "workers", "ann", "COUNT", "3", "STREAMS", "events", ">"});
  Check(read->elements == 1 && read->element[0]->element[1]->elements == 3);
  Check(IsNumber(Ask(redis, {"XACK", "events", "workers", ids[0], ids[1]}), 2));
  Check(Ask(redis, {"XPENDING", "events", "workers"})->element[0]->integer == 1);
  Check(IsNumber(Ask(redis, {"XTRIM", "events", "MAXLEN", "2"}), 3));
  Check(IsNumber(Ask(redis, {"XDEL", "events", ids[3]}), 1));
}

std::string NameOf(int number) {
  const std::string digits = std::to_string(number);
  return "element:" + std::string(5 - digits.size(), '0') + digits;
}

// Each far beyond what lies in one piece.
void LargeStep() {
  constexpr int kNames = 2000;
  HiredisConnection redis = Connect();
  for (int i = 0; i < kNames; ++i) {
    const std::string name = NameOf(i);
    redis.Append({"HSET", "large:hash", name, std::to_string(i)});
    redis.Append({"RPUSH", "large:list", name});
    redis.Append({"SADD", "large:set", name});
    redis.Append({"ZADD", "large:board", std::to_string(i), name});
  }
  for (int i = 0; i < kNames; ++i) {
    for (const int64_t reply : {1, i + 1, 1, 1}) Check(IsNumber(redis.Next(), reply));
  }
  Check(Ask(redis, {"HGETALL", "large:hash"})->elements == 2 * kNames);
  Check(IsNumber(Ask(redis, {"HINCRBY", "large:hash", NameOf(7), "3"}), 10));
  const Reply part = Ask(redis, {"LRANGE", "large:list", "995", "1004"});
  Check(part->elements == 10 && Text(*part->element[9]) == NameOf(1004));
  Check(IsText(Ask(redis, {"LPOP", "large:list"}), NameOf(0)));
  Check(IsText(Ask(redis, {"RPOP", "large:list"}), NameOf(kNames - 1)));
  Check(Ask(redis, {"SMEMBERS", "large:set"})->elements == kNames);
  Check(IsNumber(Ask(redis, {"SREM", "large:set", NameOf(3), NameOf(1999), "none"}), 2));
  Check(IsNumber(Ask(redis, {"ZRANK", "large:board", NameOf(77)}), 77));
  Check(IsNumber(Ask(redis, {"ZREMRANGEBYRANK", "large:board", "0", "9"}), 10));
  Check(Text(*Ask(redis, {"ZRANGE", "large:board", "0", "0"})->element[0]) == NameOf(10));
  Check(IsNumber(Ask(redis, {"DEL", "large:hash", "large:list", "large:set", "large:board"}), 4));
}

// Jobs that are due later, in a sorted set; due ones go to a list. Who takes one out owns it.
void ScheduleStep() {
  HiredisConnection redis = Connect();
  for (int i = 0; i < 100; ++i) {
    Ask(redis, {"ZADD", "scheduled", std::to_string(i), "job:" + std::to_string(i)});
  }
  RunThreads(4, [] {
    HiredisConnection own = Connect();
    while (true) {
      const Reply due = Ask(own, {"ZRANGEBYSCORE", "scheduled", "-inf", "49", "LIMIT", "0", "5"});
      if (due->elements == 0) break;
      for (size_t i = 0; i < due->elements; ++i) {
        const std::string job(Text(*due->element[i]));
        if (IsNumber(Ask(own, {"ZREM", "scheduled", job}), 1)) Ask(own, {"LPUSH", "due", job});
      }
    }
  });
  Check(IsNumber(Ask(redis, {"LLEN", "due"}), 50));
  Check(IsNumber(Ask(redis, {"ZCARD", "scheduled"}), 50));
}

// The reply, over as many connections as it takes.
Reply AskPatiently(HiredisConnection& redis, const Arguments& args) {
  constexpr int kAttemptsMax = 200;
  for (int i = 0; i < kAttemptsMax; ++i) {
    if (!redis.failed() || redis.Reconnect()) {
      Reply reply = redis.Call(args);
      if (reply != nullptr) return reply;
    }
    SleepMs(50);
  }
  return nullptr;
}

void ReconnectStep() {
  HiredisConnection redis = Connect();
  Ask(redis, {"SET", "before", "1"});
  std::cout << "restart" << std::endl;
  std::string line;
  Check(static_cast<bool>(std::getline(std::cin, line)));
  Check(IsText(AskPatiently(redis, {"SET", "after", "2"}), "OK"));
  Check(IsText(Ask(redis, {"GET", "after"}), "2"));
}

constexpr struct {
  const char* name;
  void (*run)();
} kSteps[] = {
    {"connect", ConnectStep},      {"pool", PoolStep},
    {"pipeline", PipelineStep},    {"multi", MultiStep},
    {"watch", WatchStep},          {"lock", LockStep},
    {"rate_limit", RateLimitStep}, {"cache", CacheStep},
    {"session", SessionStep},      {"leaderboard", LeaderboardStep},
    {"queue", QueueStep},          {"tags", TagsStep},
    {"stream", StreamStep},        {"large", LargeStep},
    {"schedule", ScheduleStep},    {"reconnect", ReconnectStep},
};

int Main(const char* port) {
  g_port = std::atoi(port);
  for (const auto& step : kSteps) {
    step.run();
    std::cout << "ok " << step.name << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace onetrip

int main(int argc, char** argv) { return argc == 2 ? onetrip::Main(argv[1]) : 2; }
