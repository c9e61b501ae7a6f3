// Session: what one client connection has agreed with us, as far as a command may see or change it.
//
// The frontend owns one per connection, on that connection's worker; it has no socket and no
// buffer. Thread rule: touched only by the connection's worker.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_SESSION_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_SESSION_H_

#include <cstdint>
#include <memory>
#include <string>

#include "redis_compat/dispatch/transaction.h"
#include "redis_compat/protocol/output_buffer.h"

namespace onetrip {

struct CommandRow;

// CLIENT REPLY: what happens to the replies of this connection.
enum class ReplyMode : uint8_t {
  kOn,
  kOff,       // Dropped until CLIENT REPLY ON.
  kSkipNext,  // The running command asked for it: drop the next command's reply.
  kSkip,      // Drop this command's reply, then go back to kOn.
};

struct Session {
  // Set by the frontend when the connection is accepted.
  uint64_t id = 0;                // Unique in the process, never reused.
  uint64_t connected_at_ns = 0;   // Steady clock.
  uint64_t last_activity_ns = 0;  // Steady clock; updated by the frontend as it likes.
  // True for connections accepted while no password was set; AUTH makes it true. Only matters while
  // ServerConfig::password_required().
  bool authenticated = false;

  // Set by commands, obeyed by the frontend.
  bool close_after_reply = false;  // Send what is in the buffer, then close; run nothing more.
  bool no_evict = false;           // Accepted and shown; nothing evicts clients yet.
  bool no_touch = false;           // The same; reads do not change what is kept yet.
  bool monitors = false;           // Gets a line for every call; counted in Observation::monitors.
  ReplyMode reply_mode = ReplyMode::kOn;
  uint8_t protocol = 2;  // RESP version, 2 or 3. The frontend's ReplyWriters start from it.

  uint32_t database = 0;
  std::string name;
  std::string library_name;
  std::string library_version;
  const CommandRow* last_command = nullptr;  // Null when the last one was unknown.
  // Where replies go that CLIENT REPLY drops; made when first needed.
  std::unique_ptr<OutputBuffer> dropped_replies;

  // Null: neither MULTI nor WATCH since the last EXEC.
  std::unique_ptr<Transaction> transaction;

  // Set by the frontend: the connection has been cut, and no client waits for a reply. A command
  // that takes long and only reads may end.
  bool abandoned = false;

  // Counters of this connection.
  uint64_t commands = 0;
  uint64_t errors = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_SESSION_H_
