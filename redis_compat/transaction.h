// Transaction: what a connection has said between MULTI and EXEC, and which keys it watches.
//
// Held by the Session from the first WATCH or MULTI until EXEC, DISCARD, RESET or the end of the
// connection. Thread rule: the connection's worker.
#ifndef ONETRIP_REDIS_COMPAT_TRANSACTION_H_
#define ONETRIP_REDIS_COMPAT_TRANSACTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/kv/staged_kv.h"

namespace onetrip {

struct CommandRow;

// A call that has passed every check; its arguments are its own, for the read buffer moves on.
struct QueuedCommand {
  QueuedCommand(const CommandRow* call, std::span<const std::string_view> arguments)
      : row(call), argv(arguments.begin(), arguments.end()) {}

  const CommandRow* row;
  std::vector<std::string> argv;
};

struct WatchedKey {
  uint32_t database;
  std::string bytes;
  KeyVersion seen;  // When it was first watched.
};

struct Transaction {
  bool open = false;     // MULTI was said.
  bool refused = false;  // A command could not be queued: EXEC runs none.
  std::vector<QueuedCommand> queue;
  uint64_t queued_bytes = 0;  // Of the queue, what it takes to hold it included.
  std::vector<WatchedKey> watched;

  void Queue(const CommandRow* row, std::span<const std::string_view> argv) {
    queued_bytes += sizeof(QueuedCommand);
    for (const std::string_view argument : argv) {
      queued_bytes += sizeof(std::string) + argument.size();
    }
    queue.emplace_back(row, argv);
  }
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_TRANSACTION_H_
