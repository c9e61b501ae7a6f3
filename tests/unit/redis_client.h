// A client of the commands without a socket: bytes in, bytes out, one worker on a little cluster.
#ifndef ONETRIP_TESTS_UNIT_REDIS_CLIENT_H_
#define ONETRIP_TESTS_UNIT_REDIS_CLIENT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "redis_compat/dispatch/dispatch.h"
#include "redis_compat/protocol/output_buffer.h"
#include "redis_compat/protocol/resp.h"
#include "redis_compat/protocol/resp_writer.h"
#include "tests/support/test_cluster.h"
#include "tests/unit/redis_fake_hooks.h"

namespace onetrip {

// The server of one test, on the default engine; its clients share it.
struct RedisWorker {
  SystemClock clock;
  TestCluster cluster{clock, {.nodes = 3, .replicas = 3, .node_bytes = 128ULL << 20}};
  ShmWorker worker{cluster, EngineKind::kSwarm, {.location_cache_bytes = 16 << 20}};
  FakeHooks hooks;
  uint64_t next_client_id = 1;
};

class RedisClient {
 public:
  explicit RedisClient(RedisWorker& worker) : RedisClient(worker, worker.worker->kv()) {}
  // `kv`: another face of the worker's store.
  RedisClient(RedisWorker& worker, Kv& kv) : worker_(worker), kv_(kv) {
    InitializeSession(session_, worker.next_client_id++, worker.hooks.clock().NowNs(),
                      worker.hooks.config());
  }

  Session& session() { return session_; }

  // Runs everything in `bytes`; returns the replies. Stops where the connection would be closed.
  std::string Send(std::string_view bytes) {
    pending_.append(bytes);
    while (!session_.close_after_reply && RunNext()) {
    }
    std::string replies = output_.TEST_ToString();
    output_.Clear();
    return replies;
  }

  // An inline command.
  std::string operator()(std::string_view line) { return Send(std::string(line) + "\r\n"); }

  std::string Call(const std::vector<std::string>& arguments) {
    std::string text = "*" + std::to_string(arguments.size()) + "\r\n";
    for (const std::string& argument : arguments) {
      text += "$" + std::to_string(argument.size()) + "\r\n" + argument + "\r\n";
    }
    return Send(text);
  }

 private:
  // False when nothing more can be run.
  bool RunNext() {
    FakeHooks& hooks = worker_.hooks;
    const std::string input = pending_;
    const RespResult result = parser_.Next(input, LimitsOf(session_, hooks.config()));
    pending_.erase(0, parser_.consumed());
    ReplyWriter out(output_, session_.protocol);
    if (result == RespResult::kError) {
      AnswerProtocolError(parser_, session_, hooks.stats(), out);
      return false;
    }
    if (result == RespResult::kNeedMore) {
      return false;
    }
    CommandContext context{session_, hooks, kv_, hooks.stats(), out, parser_.argv()};
    BlockOn(worker_.worker.executor(), Dispatch(context));
    return true;
  }

  RedisWorker& worker_;
  Kv& kv_;
  Session session_;
  RespParser parser_;
  OutputBuffer output_;
  std::string pending_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_UNIT_REDIS_CLIENT_H_
