#include "tests/nemesis/connection.h"

#include <utility>

#include "client_core/base/check.h"

namespace onetrip {
namespace {

struct FreeReply {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};

// hiredis makes the same reply of both nulls of RESP2, a string's and an array's. Here an array's
// has this for an integer.
constexpr long long kNullArray = 1;

redisReplyObjectFunctions* RepliesWithNulls(const redisReplyObjectFunctions& plain) {
  static const redisReplyObjectFunctions hiredis = plain;
  static redisReplyObjectFunctions marking = [] {
    redisReplyObjectFunctions functions = hiredis;
    functions.createNil = [](const redisReadTask* task) {
      void* const reply = hiredis.createNil(task);
      const bool is_marked = reply != nullptr && task->type == REDIS_REPLY_ARRAY;
      if (is_marked) static_cast<redisReply*>(reply)->integer = kNullArray;
      return reply;
    };
    return functions;
  }();
  return &marking;
}

std::string Encode(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_STATUS:
      return "+" + std::string(reply.str, reply.len) + "\r\n";
    case REDIS_REPLY_ERROR:
      return RespError(std::string(reply.str, reply.len));
    case REDIS_REPLY_INTEGER:
      return RespInteger(reply.integer);
    case REDIS_REPLY_STRING:
      return RespBulk(std::string_view(reply.str, reply.len));
    case REDIS_REPLY_NIL:
      return std::string(reply.integer == kNullArray ? kRespNullArray : kRespNil);
    case REDIS_REPLY_ARRAY: {
      std::vector<std::string> elements;
      for (size_t i = 0; i < reply.elements; ++i) elements.push_back(Encode(*reply.element[i]));
      return RespArray(elements);
    }
    default:
      return "?\r\n";  // Malformed for every reader of histories.
  }
}

}  // namespace

Connection::Connection(std::string address, uint32_t timeout_ms)
    : address_(std::move(address)), timeout_ms_(timeout_ms) {}

void Connection::Select(uint32_t database) {
  if (database != database_) Close();
  database_ = database;
}

bool Connection::Connect() {
  if (context_ != nullptr) return true;
  const timeval timeout = {.tv_sec = timeout_ms_ / 1000, .tv_usec = timeout_ms_ % 1000 * 1000};
  const size_t colon = address_.rfind(':');
  if (address_.starts_with("/")) {
    context_.reset(redisConnectUnixWithTimeout(address_.c_str(), timeout));
  } else {
    CHECK(colon != std::string::npos);
    context_.reset(redisConnectWithTimeout(address_.substr(0, colon).c_str(),
                                           std::stoi(address_.substr(colon + 1)), timeout));
  }
  if (context_ != nullptr &&
      (context_->err != 0 || redisSetTimeout(context_.get(), timeout) != REDIS_OK)) {
    context_.reset();
  }
  if (context_ != nullptr) context_->reader->fn = RepliesWithNulls(*context_->reader->fn);
  if (context_ != nullptr && database_ != 0) {
    Append({"SELECT", std::to_string(database_)});
    if (Next() != kRespOk) context_.reset();
  }
  return context_ != nullptr;
}

void Connection::Append(const Command& command) {
  std::vector<const char*> data;
  std::vector<size_t> sizes;
  for (const std::string& argument : command) {
    data.push_back(argument.data());
    sizes.push_back(argument.size());
  }
  redisAppendCommandArgv(context_.get(), static_cast<int>(command.size()), data.data(),
                         sizes.data());
}

std::string Connection::Next() {
  if (context_ == nullptr) return "";
  void* reply = nullptr;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
    context_.reset();
    return "";
  }
  return Encode(*std::unique_ptr<redisReply, FreeReply>(static_cast<redisReply*>(reply)));
}

std::string Connection::Call(const Command& command) {
  CHECK(context_ != nullptr);
  Append(command);
  return Next();
}

std::vector<std::string> Connection::CallAll(const std::vector<Command>& commands) {
  CHECK(context_ != nullptr);
  for (const Command& command : commands) Append(command);
  std::vector<std::string> replies;
  while (replies.size() < commands.size()) replies.push_back(Next());
  return replies;
}

}  // namespace onetrip
