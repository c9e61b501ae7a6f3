// ReplyFlow and ReplyTurn: how a command that answers more than memory should hold waits for its
// client, and for the commands before it.
#ifndef ONETRIP_REDIS_COMPAT_PROTOCOL_REPLY_FLOW_H_
#define ONETRIP_REDIS_COMPAT_PROTOCOL_REPLY_FLOW_H_

#include <cstddef>

#include "client_core/coro/task.h"

namespace onetrip {

class ReplyFlow {
 public:
  // Replies beyond which nothing is added before the client has taken them. Far above what clients
  // are known to leave unread while they still send.
  static constexpr size_t kMostBytes = size_t{64} << 20;

  virtual ~ReplyFlow() = default;
  // Goes on when the client has taken everything that was answered so far, or never will, for the
  // connection ends: Session::abandoned. What was taken cannot be rolled back. False: it takes
  // nothing, perhaps before it has sent all that it has to say, and kMostBytes are not reached.
  virtual Task<bool> AwaitTaken() = 0;
  // Goes on when the client has taken so much of what was answered that there is room for more.
  virtual Task<void> Relieve() = 0;
};

// The turn of a command that runs beside others of its connection, whose replies come first.
class ReplyTurn {
 public:
  virtual ~ReplyTurn() = default;
  // True if all of them have been answered.
  [[nodiscard]] virtual bool has_come() const = 0;
  virtual Task<void> Await() = 0;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_PROTOCOL_REPLY_FLOW_H_
