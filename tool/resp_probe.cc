#include "tool/resp_probe.h"

#include <hiredis/hiredis.h>

#include <cstdlib>
#include <memory>
#include <sstream>

#include "tool/overview.h"

namespace onetrip {
namespace {

struct FreeContext {
  void operator()(redisContext* context) const { redisFree(context); }
};
struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Context = std::unique_ptr<redisContext, FreeContext>;
using Reply = std::unique_ptr<redisReply, FreeReply>;

Context Connect(const std::string& address) {
  constexpr timeval kTimeout{1, 0};
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return nullptr;
  const std::string host = address.substr(0, colon);
  const int port = std::atoi(address.c_str() + colon + 1);
  Context context(redisConnectWithTimeout(host.c_str(), port, kTimeout));
  if (context == nullptr || context->err != 0) return nullptr;
  redisSetTimeout(context.get(), kTimeout);
  return context;
}

void Authenticate(const Context& context, const std::string& password) {
  if (password.empty()) return;
  const Reply ignored(
      static_cast<redisReply*>(redisCommand(context.get(), "AUTH %s", password.c_str())));
}

}  // namespace

bool Answers(const std::string& address) {
  const Context context = Connect(address);
  if (context == nullptr) return false;
  const Reply reply(static_cast<redisReply*>(redisCommand(context.get(), "PING")));
  if (reply == nullptr) return false;
  const std::string text(reply->str == nullptr ? "" : reply->str, reply->len);
  return text == "PONG" || text.starts_with("NOAUTH") || text.starts_with("DENIED");
}

std::optional<std::map<std::string, std::string>> AgentInfo(const std::string& address,
                                                            const std::string& password) {
  const Context context = Connect(address);
  if (context == nullptr) return std::nullopt;
  Authenticate(context, password);
  const Reply reply(static_cast<redisReply*>(redisCommand(context.get(), "INFO everything")));
  if (reply == nullptr || reply->type != REDIS_REPLY_STRING) {
    return std::nullopt;
  }
  std::map<std::string, std::string> fields;
  std::istringstream lines(std::string(reply->str, reply->len));
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    const size_t colon = line.find(':');
    if (line.starts_with('#') || colon == std::string::npos) continue;
    fields[line.substr(0, colon)] = line.substr(colon + 1);
  }
  // INFO never fails: what it could not count, it leaves out.
  const Reply counted(static_cast<redisReply*>(redisCommand(context.get(), "DBSIZE")));
  if (counted == nullptr || counted->type != REDIS_REPLY_INTEGER)
    fields.emplace(kKeysNotCounted, "yes");
  return fields;
}

std::optional<std::string> AskForText(const std::string& address, const std::string& password,
                                      const std::string& command, std::string* reason) {
  const Context context = Connect(address);
  if (context == nullptr) {
    *reason = "the agent at " + address + " does not answer";
    return std::nullopt;
  }
  Authenticate(context, password);
  constexpr timeval kUnbounded{0, 0};
  redisSetTimeout(context.get(), kUnbounded);
  const Reply reply(static_cast<redisReply*>(redisCommand(context.get(), command.c_str())));
  if (reply == nullptr) {
    *reason = "the agent at " + address + " closed the connection";
    return std::nullopt;
  }
  std::string text(reply->str == nullptr ? "" : reply->str, reply->len);
  if (reply->type == REDIS_REPLY_STRING) return text;
  *reason = "the agent at " + address + " says: " + text;
  return std::nullopt;
}

}  // namespace onetrip
