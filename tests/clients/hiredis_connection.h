// A connection by hiredis, with replies that free themselves. One thread at a time.
#ifndef ONETRIP_TESTS_CLIENTS_HIREDIS_CONNECTION_H_
#define ONETRIP_TESTS_CLIENTS_HIREDIS_CONNECTION_H_

#include <hiredis/hiredis.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace onetrip {

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
// Null when the connection failed.
using Reply = std::unique_ptr<redisReply, FreeReply>;

inline std::string_view Text(const redisReply& reply) { return {reply.str, reply.len}; }
inline std::string_view Text(const Reply& reply) { return Text(*reply); }

class HiredisConnection {
 public:
  static HiredisConnection ToPort(int port) {
    return HiredisConnection(redisConnect("127.0.0.1", port));
  }
  static HiredisConnection ToSocket(const std::string& path) {
    return HiredisConnection(redisConnectUnix(path.c_str()));
  }

  [[nodiscard]] redisContext* context() const { return context_.get(); }
  [[nodiscard]] bool failed() const { return context_ == nullptr || context_->err != 0; }
  bool Reconnect() { return redisReconnect(context_.get()) == REDIS_OK; }

  // One command with binary-safe arguments, and its reply.
  Reply Call(const std::vector<std::string>& args) {
    Append(args);
    return Next();
  }

  // The same in two halves: what is appended travels with the first Next().
  void Append(const std::vector<std::string>& args) {
    std::vector<const char*> data;
    std::vector<size_t> sizes;
    for (const std::string& arg : args) {
      data.push_back(arg.data());
      sizes.push_back(arg.size());
    }
    redisAppendCommandArgv(context_.get(), static_cast<int>(args.size()), data.data(),
                           sizes.data());
  }
  Reply Next() {
    void* reply = nullptr;
    if (redisGetReply(context_.get(), &reply) != REDIS_OK) return nullptr;
    return Reply(static_cast<redisReply*>(reply));
  }

 private:
  struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  explicit HiredisConnection(redisContext* context) : context_(context) {}

  std::unique_ptr<redisContext, FreeContext> context_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_CLIENTS_HIREDIS_CONNECTION_H_
