// Transaction: what a connection has said between MULTI and EXEC, and which keys it watches.
//
// Held by the Session from the first WATCH or MULTI until EXEC, DISCARD, RESET or the end of the
// connection. Thread rule: the connection's worker.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_TRANSACTION_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_TRANSACTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client_core/base/large_memory.h"
#include "client_core/store/staged_store.h"

namespace onetrip {

struct CommandRow;

// A call that has passed every check; its arguments are its own, for the read buffer moves on.
class QueuedCommand {
 public:
  // CopyNext() brings the arguments' bytes. REQUIRES: has_memory() before anything else is asked.
  QueuedCommand(const CommandRow* row, std::span<const std::string_view> arguments);

  // False: the host had no memory for it.
  [[nodiscard]] bool has_memory() const { return memory_.start() != nullptr; }

  // Copies up to kTurnBytes more of the same arguments. False: now they are all there.
  bool CopyNext(std::span<const std::string_view> arguments);

  [[nodiscard]] const CommandRow* row() const { return row_; }
  [[nodiscard]] std::span<const std::string_view> argv() const { return argv_; }
  // Bytes that the queued command takes.
  [[nodiscard]] uint64_t bytes() const {
    return sizeof(*this) + argv_.size() * sizeof(std::string_view) + memory_.bytes();
  }

 private:
  const CommandRow* row_;
  LargeMemory memory_;  // keeps the arguments, one behind the other
  std::vector<std::string_view> argv_;
  size_t next_ = 0;    // argument to go on with
  size_t copied_ = 0;  // its bytes copied so far
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
  uint64_t queued_bytes = 0;  // Bytes of the queue, its own overhead included.
  std::vector<WatchedKey> watched;

  // False: the host has no memory for it.
  bool Queue(const CommandRow* row, std::span<const std::string_view> argv) {
    const QueuedCommand& queued = queue.emplace_back(row, argv);
    if (!queued.has_memory()) {
      queue.pop_back();
      return false;
    }
    queued_bytes += queued.bytes();
    return true;
  }
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_TRANSACTION_H_
