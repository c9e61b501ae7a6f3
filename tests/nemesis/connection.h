// A connection to one agent that survives it: hiredis, with replies as a history keeps them.
//
// One thread at a time. Whatever goes wrong on the way (refused, reset, too late) is a reply that
// did not come, and the next call connects anew.
#ifndef ONETRIP_TESTS_NEMESIS_CONNECTION_H_
#define ONETRIP_TESTS_NEMESIS_CONNECTION_H_

#include <hiredis/hiredis.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/history.h"

namespace onetrip {

class Connection {
 public:
  // `address` is HOST:PORT, or the path of a unix socket. No call takes longer than `timeout_ms`.
  Connection(std::string address, uint32_t timeout_ms);

  // Sets the database of the calls from now on.
  void Select(uint32_t database);

  // True if there is a connection, as far as this side knows; else tries once to make one.
  bool Connect();

  // The reply in RESP2. Empty: none came, what the command did is unknown, and the connection is
  // closed. REQUIRES: Connect() was true.
  std::string Call(const Command& command);

  // The replies to a pipeline, one a command; empty ones from where the connection was lost.
  std::vector<std::string> CallAll(const std::vector<Command>& commands);

  void Close() { context_.reset(); }

 private:
  struct FreeContext {
    void operator()(redisContext* context) const { redisFree(context); }
  };

  void Append(const Command& command);
  std::string Next();

  std::string address_;
  uint32_t timeout_ms_;
  uint32_t database_ = 0;
  std::unique_ptr<redisContext, FreeContext> context_;
};

}  // namespace onetrip

#endif  // ONETRIP_TESTS_NEMESIS_CONNECTION_H_
