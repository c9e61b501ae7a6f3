// CommandContext: everything one command sees while it runs.
//
// Built by the frontend per command (a handful of words on the connection's frame); every reference
// outlives the command. `argv` are views into the read buffer: they stay valid until the command
// has finished, and no longer. Thread rule: the connection's worker.
#ifndef ONETRIP_REDIS_COMPAT_DISPATCH_COMMAND_CONTEXT_H_
#define ONETRIP_REDIS_COMPAT_DISPATCH_COMMAND_CONTEXT_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "client_core/base/status.h"
#include "client_core/coro/maybe_task.h"
#include "redis_compat/dispatch/command_stats.h"
#include "redis_compat/dispatch/server_hooks.h"
#include "redis_compat/dispatch/session.h"
#include "redis_compat/protocol/reply_flow.h"
#include "redis_compat/protocol/resp_writer.h"

namespace onetrip {

class Kv;
struct CommandRow;
struct InOrder;
struct Key;
struct LargeValue;

struct CommandContext {
  Session& session;
  ServerHooks& hooks;
  Kv& kv;
  CommandStats& stats;  // The worker's own.
  ReplyWriter& out;
  std::span<const std::string_view> argv;  // argv[0] is the command's name; never empty.

  // Filled by BeginCommand(); a caller that has looked the command up may do so instead.
  const CommandRow* command = nullptr;

  // argv[1] with the hash that a prefetch has left; null, or without a hash: there was none.
  const Key* first_key = nullptr;
  // For operations on argv[1]; null: no other command of the connection is under way on that key.
  InOrder* in_order = nullptr;

  // Filled by BeginCommand().
  uint64_t started_ns = 0;  // 0: this call is not timed.
  bool sampled = false;     // Its time is one of those that stand for all calls of the command.
  // Filled by the frontend between awaiting the command and EndCommand(): how long it has been
  // suspended, to the turn of the loop; 0: never.
  uint64_t waited_ns = 0;
  uint64_t errors_before = 0;
  // Filled by the command: keys that it looked for and found, or did not.
  uint32_t hits = 0;
  uint32_t misses = 0;
  OutputBuffer* dropped_from =
      nullptr;  // The connection's buffer while CLIENT REPLY drops replies.

  // By the command's `fast` handler: what it has begun, and its `awaited` one brings to an end.
  std::optional<MaybeTask<Status>> begun = std::nullopt;

  // By the command: the last value in extents that its replies keep; null: none.
  std::shared_ptr<LargeValue> answered_large = nullptr;

  // Null where replies are kept until all of them are there.
  ReplyFlow* flow = nullptr;

  // Null where the commands before it have been answered.
  ReplyTurn* turn = nullptr;
};

}  // namespace onetrip

#endif  // ONETRIP_REDIS_COMPAT_DISPATCH_COMMAND_CONTEXT_H_
